//! A table from keys to slots of fixed capacity, which never allocates after it was made.
//!
//! Open addressing with linear probing. A removal moves the entries behind it forward, so there are
//! no marks of removed entries and a table that lives for years stays as fast as a new one. At most
//! two thirds of the places are taken. Keys are hashed without a secret: use it for block and page
//! numbers, not for what an attacker may choose freely.

use model::Bytes;
use model::random::mix;

use crate::lists::NONE;

/// One place of the table; free if the slot is [`NONE`].
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    slot: u32,
}

/// Where each key is: 24 to 48 bytes for each key that it can hold.
#[derive(Clone, Debug)]
pub struct Index {
    entries: Box<[Entry]>,
    /// Places - 1, a power of two - 1.
    mask: usize,
    len: u32,
    capacity: u32,
}

impl Index {
    /// An empty table for up to `capacity` keys.
    pub fn new(capacity: u32) -> Self {
        let places = (capacity as usize + capacity as usize / 2 + 2).next_power_of_two();
        let entries = vec![Entry { key: 0, slot: NONE }; places].into_boxed_slice();
        Self { entries, mask: places - 1, len: 0, capacity }
    }

    /// How many keys it holds.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether it holds no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory of its places.
    pub fn bytes(&self) -> Bytes {
        Bytes(size_of_val(&*self.entries) as u64)
    }

    /// The slot of `key`.
    #[inline]
    pub fn get(&self, key: u64) -> Option<u32> {
        let entry = self.entries[self.find(key)];
        (entry.slot != NONE).then_some(entry.slot)
    }

    /// Notes that `key` is in `slot`, and gives the slot where it was before.
    ///
    /// # Panics
    /// For a new key when it already holds as many as it was made for.
    #[inline]
    pub fn insert(&mut self, key: u64, slot: u32) -> Option<u32> {
        let at = self.find(key);
        let before = self.entries[at].slot;
        if before == NONE {
            assert!(self.len < self.capacity, "an index of {} keys is full", self.capacity);
            self.len += 1;
        }
        self.entries[at] = Entry { key, slot };
        (before != NONE).then_some(before)
    }

    /// Removes `key` and gives the slot where it was.
    #[inline]
    pub fn remove(&mut self, key: u64) -> Option<u32> {
        let mut hole = self.find(key);
        let slot = self.entries[hole].slot;
        if slot == NONE {
            return None;
        }
        self.len -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask;
            let entry = self.entries[at];
            if entry.slot == NONE {
                break;
            }
            // An entry may move forward to the hole if its probe would have passed the hole.
            let from_home = at.wrapping_sub(self.home(entry.key)) & self.mask;
            let from_hole = at.wrapping_sub(hole) & self.mask;
            if from_home >= from_hole {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole].slot = NONE;
        Some(slot)
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        mix(key) as usize & self.mask
    }

    /// The place of `key`, or the free place where it belongs.
    #[inline]
    fn find(&self, key: u64) -> usize {
        let mut at = self.home(key);
        loop {
            let entry = self.entries[at];
            if entry.slot == NONE || entry.key == key {
                return at;
            }
            at = (at + 1) & self.mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    #[should_panic(expected = "an index of 1 keys is full")]
    fn a_full_index_refuses() {
        let mut index = Index::new(1);
        index.insert(1, 0);
        assert_eq!(index.insert(1, 5), Some(0));
        index.insert(2, 1);
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_u64..40, any::<bool>()), 1..400)) {
            let mut index = Index::new(40);
            let mut map = BTreeMap::new();
            for (at, (key, is_insert)) in steps.into_iter().enumerate() {
                if is_insert {
                    prop_assert_eq!(index.insert(key, at as u32), map.insert(key, at as u32));
                } else {
                    prop_assert_eq!(index.remove(key), map.remove(&key));
                }
                prop_assert_eq!(index.len() as usize, map.len());
                prop_assert!((0..40).all(|key| index.get(key) == map.get(&key).copied()));
            }
        }
    }
}
