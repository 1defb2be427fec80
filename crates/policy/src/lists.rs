//! Doubly linked lists of slots by number: each slot is in at most one list.
//!
//! The links of all slots are one array of 8 bytes a slot, so that moving a slot between lists
//! allocates nothing. The front is where slots come in, the back where they go out.

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    /// Towards the front.
    front: u32,
    /// Towards the back.
    back: u32,
}

/// One list: its ends and its length. The slots between are in [`Links`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    front: u32,
    back: u32,
    len: u32,
}

/// The links of all slots, and which of them are free.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    links: Box<[Link]>,
    /// Slots that were freed.
    freed: List,
    /// Slots from this one on were never used.
    unused: u32,
}

impl List {
    /// A list without slots.
    pub(crate) const EMPTY: Self = Self { front: NONE, back: NONE, len: 0 };

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The slot that came first.
    #[inline]
    pub(crate) fn back(&self) -> Option<u32> {
        (self.back != NONE).then_some(self.back)
    }
}

impl Links {
    /// Links of `slots` slots, all free.
    pub(crate) fn new(slots: u32) -> Self {
        let links = vec![Link { front: NONE, back: NONE }; slots as usize].into_boxed_slice();
        Self { links, freed: List::EMPTY, unused: 0 }
    }

    pub(crate) fn slots(&self) -> u32 {
        self.links.len() as u32
    }

    /// A slot that is free; the lowest ones first until each was used once.
    #[inline]
    pub(crate) fn take_free(&mut self) -> Option<u32> {
        if self.unused < self.slots() {
            self.unused += 1;
            return Some(self.unused - 1);
        }
        let slot = self.freed.back()?;
        let mut freed = self.freed;
        self.unlink(&mut freed, slot);
        self.freed = freed;
        Some(slot)
    }

    pub(crate) fn has_free(&self) -> bool {
        self.unused < self.slots() || !self.freed.is_empty()
    }

    /// Makes `slot`, which is in no list, free.
    pub(crate) fn free(&mut self, slot: u32) {
        let mut freed = self.freed;
        self.push_front(&mut freed, slot);
        self.freed = freed;
    }

    /// Puts `slot`, which is in no list, at the front of `list`.
    #[inline]
    pub(crate) fn push_front(&mut self, list: &mut List, slot: u32) {
        self.links[slot as usize] = Link { front: NONE, back: list.front };
        if list.front == NONE {
            list.back = slot;
        } else {
            self.links[list.front as usize].front = slot;
        }
        list.front = slot;
        list.len += 1;
    }

    /// Takes `slot` out of `list`, which holds it.
    #[inline]
    pub(crate) fn unlink(&mut self, list: &mut List, slot: u32) {
        let Link { front, back } = self.links[slot as usize];
        if front == NONE {
            list.front = back;
        } else {
            self.links[front as usize].back = back;
        }
        if back == NONE {
            list.back = front;
        } else {
            self.links[back as usize].front = front;
        }
        list.len -= 1;
    }

    /// Moves `slot` to the front of `list`, which holds it.
    #[inline]
    pub(crate) fn move_to_front(&mut self, list: &mut List, slot: u32) {
        if list.front != slot {
            self.unlink(list, slot);
            self.push_front(list, slot);
        }
    }

    /// The neighbour of `slot` that is nearer to the front.
    #[inline]
    pub(crate) fn towards_front(&self, slot: u32) -> Option<u32> {
        let front = self.links[slot as usize].front;
        (front != NONE).then_some(front)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn slots(links: &Links, list: &List) -> Vec<u32> {
        let from_back = std::iter::successors(list.back(), |&slot| links.towards_front(slot));
        from_back.collect()
    }

    proptest! {
        #[test]
        fn two_lists_and_the_free_slots_hold_each_slot_once(
            steps in prop::collection::vec((0_usize..2, 0_u8..4, 0_u32..8), 1..200),
        ) {
            let mut links = Links::new(8);
            let mut lists = [List::EMPTY; 2];
            let mut models = [VecDeque::new(), VecDeque::new()];
            for (which, step, slot) in steps {
                let held = models[which].iter().position(|&held| held == slot);
                match (step, held) {
                    (0, _) => match links.take_free() {
                        Some(free) => {
                            links.push_front(&mut lists[which], free);
                            models[which].push_back(free);
                        }
                        None => prop_assert_eq!(models[0].len() + models[1].len(), 8),
                    },
                    (1, Some(at)) => {
                        links.unlink(&mut lists[which], slot);
                        links.free(slot);
                        models[which].remove(at);
                    }
                    (2, Some(at)) => {
                        links.move_to_front(&mut lists[which], slot);
                        models[which].remove(at);
                        models[which].push_back(slot);
                    }
                    _ => {}
                }
                for (list, model) in lists.iter().zip(&models) {
                    prop_assert_eq!(slots(&links, list), Vec::from(model.clone()));
                    prop_assert_eq!(list.len() as usize, model.len());
                }
                prop_assert_eq!(links.has_free(), models[0].len() + models[1].len() < 8);
            }
        }
    }
}
