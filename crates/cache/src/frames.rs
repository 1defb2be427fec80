//! Which frames are cached, and where: 23 bytes for each frame that it can hold.
//!
//! A frame has a slot. A table of open addressing leads from the number of a frame to its slot
//! (6 bytes), arrays hold what a slot says (17 bytes). The slots of a segment are a list, in the
//! order in which their frames were written. A frame that was dropped leaves its slot in the list
//! until the segment is reclaimed, as it leaves its bytes in the segment.

use model::random::mix;

use crate::format::Extent;

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// The key of a slot whose frame was dropped.
const DROPPED: u32 = u32::MAX;

const HITS_MASK: u8 = 3;
const COMPRESSED: u8 = 4;
/// The four bits of the extent are above.
const EXTENT_SHIFT: u8 = 3;

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its segment.
    pub(crate) segment: u16,
    /// Its first byte in the segment, in granules.
    pub(crate) granule: u16,
    /// Its bytes there, with the tag.
    pub(crate) stored: u16,
    /// Its number in the segment.
    pub(crate) ordinal: u16,
    /// Its blocks that are there.
    pub(crate) extent: Extent,
    /// Whether it is compressed.
    pub(crate) is_compressed: bool,
}

/// All cached frames.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    table: Box<[u32]>,
    keys: Box<[u32]>,
    next: Box<[u32]>,
    segments: Box<[u16]>,
    granules: Box<[u16]>,
    stored: Box<[u16]>,
    ordinals: Box<[u16]>,
    flags: Box<[u8]>,
    /// The first free slot; the others follow by `next`.
    free: u32,
    free_count: u32,
    live: u32,
    live_blocks: u64,
}

/// The slots of a segment: a list, appended at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotList {
    pub(crate) first: u32,
    last: u32,
}

impl SlotList {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE };
}

impl Frames {
    /// Room for `capacity` frames.
    pub(crate) fn new(capacity: u32) -> Self {
        let count = capacity as usize;
        let mut next: Box<[u32]> = (1..=capacity).collect();
        if let Some(last) = next.last_mut() {
            *last = NONE;
        }
        Self {
            table: vec![NONE; count + count / 2 + 1].into_boxed_slice(),
            keys: vec![DROPPED; count].into_boxed_slice(),
            next,
            segments: vec![0; count].into_boxed_slice(),
            granules: vec![0; count].into_boxed_slice(),
            stored: vec![0; count].into_boxed_slice(),
            ordinals: vec![0; count].into_boxed_slice(),
            flags: vec![0; count].into_boxed_slice(),
            free: if count == 0 { NONE } else { 0 },
            free_count: capacity,
            live: 0,
            live_blocks: 0,
        }
    }

    /// The memory of its arrays.
    pub(crate) fn bytes(&self) -> u64 {
        let words = size_of_val(&*self.table) + size_of_val(&*self.keys) + size_of_val(&*self.next);
        let halves = 4 * size_of_val(&*self.segments);
        (words + halves + size_of_val(&*self.flags)) as u64
    }

    /// Frames that may be served.
    pub(crate) fn live(&self) -> u32 {
        self.live
    }

    /// The blocks of the volume that they hold.
    pub(crate) fn live_blocks(&self) -> u64 {
        self.live_blocks
    }

    /// A cached frame and its slot, the first one from a place on that the number gives. Slots are
    /// taken from the first one on: only those are places, else few frames would share all numbers.
    pub(crate) fn any_from(&self, number: u64) -> Option<(u32, u32)> {
        let slots = self.keys.len() - self.free_count as usize;
        let start = (number % (slots as u64).max(1)) as usize;
        let mut order = (start..slots).chain(0..start);
        order.find_map(|slot| Some((slot as u32, self.key(slot as u32)?)))
    }

    /// Slots that are free.
    pub(crate) fn free_slots(&self) -> u32 {
        self.free_count
    }

    /// The slot of a frame.
    pub(crate) fn find(&self, key: u32) -> Option<u32> {
        let slot = self.table[self.probe(key)];
        (slot != NONE).then_some(slot)
    }

    /// The frame in a slot; `None` if it was dropped.
    pub(crate) fn key(&self, slot: u32) -> Option<u32> {
        let key = self.keys[slot as usize];
        (key != DROPPED).then_some(key)
    }

    /// The slot that follows in the list of the segment.
    pub(crate) fn next(&self, slot: u32) -> u32 {
        self.next[slot as usize]
    }

    /// Where the frame in a slot is.
    pub(crate) fn place(&self, slot: u32) -> Place {
        let at = slot as usize;
        Place {
            segment: self.segments[at],
            granule: self.granules[at],
            stored: self.stored[at],
            ordinal: self.ordinals[at],
            extent: Extent::of_bits(self.flags[at] >> EXTENT_SHIFT & 15),
            is_compressed: self.flags[at] & COMPRESSED != 0,
        }
    }

    /// How often the frame was hit, up to three times.
    pub(crate) fn hits(&self, slot: u32) -> u8 {
        self.flags[slot as usize] & HITS_MASK
    }

    pub(crate) fn set_hits(&mut self, slot: u32, hits: u8) {
        let flags = &mut self.flags[slot as usize];
        *flags = *flags & !HITS_MASK | hits.min(HITS_MASK);
    }

    /// Adds a frame, which has no slot, to the list of its segment; its slot, or `None` if all are
    /// taken.
    pub(crate) fn insert(&mut self, key: u32, place: Place, list: &mut SlotList) -> Option<u32> {
        let slot = self.append(place, list)?;
        self.keys[slot as usize] = key;
        let at = self.probe(key);
        self.table[at] = slot;
        self.live += 1;
        self.live_blocks += u64::from(place.extent.count);
        Some(slot)
    }

    /// Adds the slot of a frame that may not be served.
    pub(crate) fn append(&mut self, place: Place, list: &mut SlotList) -> Option<u32> {
        let slot = self.free;
        let at = slot as usize;
        if slot == NONE {
            return None;
        }
        self.free = self.next[at];
        self.free_count -= 1;
        self.next[at] = NONE;
        self.keys[at] = DROPPED;
        self.segments[at] = place.segment;
        self.granules[at] = place.granule;
        self.stored[at] = place.stored;
        self.ordinals[at] = place.ordinal;
        self.flags[at] = place.extent.to_bits() << EXTENT_SHIFT
            | if place.is_compressed { COMPRESSED } else { 0 };
        if list.last == NONE {
            list.first = slot;
        } else {
            self.next[list.last as usize] = slot;
        }
        list.last = slot;
        Some(slot)
    }

    /// Drops the frame; its slot stays in the list of its segment. Whether it was cached.
    pub(crate) fn drop_key(&mut self, key: u32) -> bool {
        let mut hole = self.probe(key);
        let slot = self.table[hole];
        if slot == NONE {
            return false;
        }
        self.keys[slot as usize] = DROPPED;
        self.live -= 1;
        self.live_blocks -= u64::from(self.place(slot).extent.count);
        let places = self.table.len();
        let mut at = hole;
        loop {
            at = (at + 1) % places;
            let moved = self.table[at];
            if moved == NONE {
                break;
            }
            // An entry may move forward to the hole if its probe would have passed the hole.
            let home = self.home(self.keys[moved as usize]);
            let from = |start: usize| (at + places - start) % places;
            if from(home) >= from(hole) {
                self.table[hole] = moved;
                hole = at;
            }
        }
        self.table[hole] = NONE;
        true
    }

    /// Drops all frames of a range: for one of more frames than there are slots.
    pub(crate) fn drop_range(&mut self, keys: std::ops::RangeInclusive<u32>) {
        for slot in 0..self.keys.len() as u32 {
            if let Some(key) = self.key(slot).filter(|key| keys.contains(key)) {
                self.drop_key(key);
            }
        }
    }

    /// Drops all frames of a segment and frees their slots.
    pub(crate) fn free_list(&mut self, list: &mut SlotList) {
        let mut slot = list.first;
        while slot != NONE {
            if let Some(key) = self.key(slot) {
                self.drop_key(key);
            }
            let next = self.next[slot as usize];
            self.next[slot as usize] = self.free;
            self.free = slot;
            self.free_count += 1;
            slot = next;
        }
        *list = SlotList::EMPTY;
    }

    fn home(&self, key: u32) -> usize {
        ((u128::from(mix(u64::from(key))) * self.table.len() as u128) >> 64) as usize
    }

    /// The place of a frame in the table, or the free one where it belongs.
    fn probe(&self, key: u32) -> usize {
        let mut at = self.home(key);
        loop {
            let slot = self.table[at];
            if slot == NONE || self.keys[slot as usize] == key {
                return at;
            }
            at = (at + 1) % self.table.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn place(number: u16) -> Place {
        Place {
            segment: number,
            granule: 1,
            stored: 2,
            ordinal: number,
            extent: Extent { first: 1, count: 3 },
            is_compressed: true,
        }
    }

    #[test]
    fn it_takes_at_most_24_bytes_a_frame() {
        assert!(Frames::new(100_000).bytes() <= 2_400_000);
    }

    #[test]
    fn it_is_a_map_and_lists() {
        let mut random = testkit::Random(5);
        let mut frames = Frames::new(60);
        let mut lists = [SlotList::EMPTY; 4];
        let mut map = BTreeMap::<u32, u16>::new();
        for step in 0..20_000 {
            let key = random.below(90) as u32;
            match random.below(8) {
                0..=3 if !map.contains_key(&key) => {
                    let list = random.below(4) as u16;
                    let is_free = frames.free_slots() > 0;
                    let slot = frames.insert(key, place(list), &mut lists[usize::from(list)]);
                    assert_eq!(slot.is_some(), is_free);
                    slot.map(|_| map.insert(key, list));
                }
                4..=6 => assert_eq!(frames.drop_key(key), map.remove(&key).is_some()),
                7 if step % 5 == 0 => {
                    let list = random.below(4) as u16;
                    frames.free_list(&mut lists[usize::from(list)]);
                    map.retain(|_, of| *of != list);
                }
                _ => {}
            }
            let found = frames.find(key).map(|slot| frames.place(slot).segment);
            assert_eq!(found, map.get(&key).copied());
            assert_eq!(frames.live() as usize, map.len());
            assert_eq!(frames.live_blocks() as usize, 3 * map.len());
        }
        lists.iter_mut().for_each(|list| frames.free_list(list));
        assert_eq!((frames.free_slots(), frames.live(), frames.live_blocks()), (60, 0, 0));
    }

    #[test]
    fn hits_count_up_to_three() {
        let mut frames = Frames::new(1);
        let slot = frames.insert(1, place(0), &mut SlotList::EMPTY.clone()).unwrap();
        frames.set_hits(slot, 9);
        assert_eq!(frames.hits(slot), 3);
        frames.set_hits(slot, 1);
        assert_eq!((frames.hits(slot), frames.place(slot)), (1, place(0)));
    }
}
