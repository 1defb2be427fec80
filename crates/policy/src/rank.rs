//! Slots in the order in which they came, with the answer to "how much came after this one".
//!
//! Each slot gets the next position of a Fenwick tree (Fenwick, 1994), which sums weights in
//! logarithmic time. There are twice as many positions as slots; when they run out, those in use
//! are moved together, which costs each arrival a constant on average. 32 bytes a slot.

use crate::lists::NONE;

/// An order of slots with weights.
#[derive(Clone, Debug)]
pub(crate) struct RankList {
    /// The position of each slot, or [`NONE`].
    positions: Box<[u32]>,
    weights: Box<[u32]>,
    /// The slot at each position, or [`NONE`].
    slots: Box<[u32]>,
    /// Sums of weights: entry `i - 1` has those of the positions `i - lowest_bit(i)` to `i - 1`.
    tree: Box<[u64]>,
    /// Positions from this one on are unused.
    next: u32,
    /// No position before this one is used.
    first: u32,
    total: u64,
}

impl RankList {
    /// An empty order for `slots` slots.
    pub(crate) fn new(slots: u32) -> Self {
        let (count, positions) = (slots as usize, slots as usize * 2);
        Self {
            positions: vec![NONE; count].into_boxed_slice(),
            weights: vec![0; count].into_boxed_slice(),
            slots: vec![NONE; positions].into_boxed_slice(),
            tree: vec![0; positions].into_boxed_slice(),
            next: 0,
            first: 0,
            total: 0,
        }
    }

    /// The sum of all weights.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The memory of its arrays.
    pub(crate) fn bytes(&self) -> u64 {
        let by_slot = size_of_val(&*self.positions) + size_of_val(&*self.weights);
        (by_slot + size_of_val(&*self.slots) + size_of_val(&*self.tree)) as u64
    }

    /// The weight of `slot`, which is in the order.
    pub(crate) fn weight(&self, slot: u32) -> u32 {
        self.weights[slot as usize]
    }

    /// Adds `slot`, which is not in the order, as the newest.
    pub(crate) fn push_newest(&mut self, slot: u32, weight: u32) {
        if self.next as usize == self.slots.len() {
            self.move_together();
        }
        let position = self.next;
        self.next += 1;
        self.positions[slot as usize] = position;
        self.weights[slot as usize] = weight;
        self.slots[position as usize] = slot;
        self.total += u64::from(weight);
        self.add(position, |sum| sum + u64::from(weight));
    }

    /// Removes `slot`, which is in the order.
    pub(crate) fn remove(&mut self, slot: u32) {
        let position = std::mem::replace(&mut self.positions[slot as usize], NONE);
        let weight = u64::from(self.weight(slot));
        self.slots[position as usize] = NONE;
        self.total -= weight;
        self.add(position, |sum| sum - weight);
    }

    /// The weights of what came after `slot`, which is in the order.
    pub(crate) fn newer_than(&self, slot: u32) -> u64 {
        let mut end = self.positions[slot as usize] as usize + 1;
        let mut upto = 0;
        while end > 0 {
            upto += self.tree[end - 1];
            end &= end - 1;
        }
        self.total - upto
    }

    /// The slot that came first.
    pub(crate) fn oldest(&mut self) -> Option<u32> {
        while self.first < self.next {
            let slot = self.slots[self.first as usize];
            if slot != NONE {
                return Some(slot);
            }
            self.first += 1;
        }
        None
    }

    fn add(&mut self, position: u32, change: impl Fn(u64) -> u64) {
        let mut end = position as usize + 1;
        while end <= self.tree.len() {
            self.tree[end - 1] = change(self.tree[end - 1]);
            end += end & end.wrapping_neg();
        }
    }

    /// Gives the slots the lowest positions, in their order, and sums anew.
    fn move_together(&mut self) {
        let mut kept = 0;
        for position in 0..self.slots.len() {
            let slot = std::mem::replace(&mut self.slots[position], NONE);
            if slot != NONE {
                self.slots[kept] = slot;
                self.positions[slot as usize] = kept as u32;
                kept += 1;
            }
        }
        self.first = 0;
        self.next = kept as u32;
        self.tree.fill(0);
        for end in 1..=self.tree.len() {
            if end <= kept {
                self.tree[end - 1] += u64::from(self.weight(self.slots[end - 1]));
            }
            let parent = end + (end & end.wrapping_neg());
            if parent <= self.tree.len() {
                self.tree[parent - 1] += self.tree[end - 1];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_list(steps in prop::collection::vec((0_u32..7, 1_u32..600), 1..200)) {
            let mut ranks = RankList::new(7);
            let mut list: Vec<(u32, u32)> = Vec::new();
            for (slot, weight) in steps {
                match list.iter().position(|held| held.0 == slot) {
                    Some(at) => {
                        ranks.remove(slot);
                        list.remove(at);
                    }
                    None => {
                        ranks.push_newest(slot, weight);
                        list.push((slot, weight));
                    }
                }
                prop_assert_eq!(ranks.oldest(), list.first().map(|held| held.0));
                for (at, (slot, _)) in list.iter().enumerate() {
                    let newer: u32 = list[at + 1..].iter().map(|held| held.1).sum();
                    prop_assert_eq!(ranks.newer_than(*slot), u64::from(newer));
                }
            }
        }
    }
}
