//! The keys of what was evicted lately, in lists of bounded length: ghosts of S3-FIFO and of ARC.
//!
//! A ghost is a key without content. Keys are kept whole, so that a ghost hit is never a collision.

use crate::index::Index;
use crate::lists::{Links, List};

/// `N` lists of keys that share one capacity; a key is in at most one of them.
#[derive(Clone, Debug)]
pub(crate) struct Ghosts<const N: usize> {
    index: Index,
    links: Links,
    lists: [List; N],
    keys: Box<[u64]>,
    /// The list of each key.
    list_of: Box<[u8]>,
}

impl<const N: usize> Ghosts<N> {
    /// Empty lists for `capacity` keys together.
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            index: Index::new(capacity),
            links: Links::new(capacity),
            lists: [List::EMPTY; N],
            keys: vec![0; capacity as usize].into_boxed_slice(),
            list_of: vec![0; capacity as usize].into_boxed_slice(),
        }
    }

    /// How many keys are in a list.
    pub(crate) fn len(&self, list: usize) -> u32 {
        self.lists[list].len()
    }

    /// The list that holds `key`.
    pub(crate) fn find(&self, key: u64) -> Option<usize> {
        self.index.get(key).map(|ghost| usize::from(self.list_of[ghost as usize]))
    }

    /// Removes `key` and gives the list that held it.
    #[inline]
    pub(crate) fn take(&mut self, key: u64) -> Option<usize> {
        let ghost = self.index.remove(key)?;
        let list = usize::from(self.list_of[ghost as usize]);
        self.links.unlink(&mut self.lists[list], ghost);
        self.links.free(ghost);
        Some(list)
    }

    /// Removes the oldest key of a list, if it has one.
    pub(crate) fn drop_oldest(&mut self, list: usize) -> bool {
        let oldest = self.lists[list].back();
        oldest.is_some_and(|ghost| self.take(self.keys[ghost as usize]).is_some())
    }

    /// Adds `key`, which no list holds, as the newest of `list`. If all lists together are full,
    /// the oldest of this list is dropped, or of another one if this is empty.
    #[inline]
    pub(crate) fn push(&mut self, list: usize, key: u64) {
        if !self.links.has_free() && !self.drop_oldest(list) {
            let _ = (0..N).any(|other| self.drop_oldest(other));
        }
        let Some(ghost) = self.links.take_free() else {
            return;
        };
        self.index.insert(key, ghost);
        self.keys[ghost as usize] = key;
        self.list_of[ghost as usize] = list as u8;
        self.links.push_front(&mut self.lists[list], ghost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_a_list_gives_way() {
        let mut ghosts = Ghosts::<2>::new(3);
        ghosts.push(0, 10);
        ghosts.push(1, 11);
        ghosts.push(1, 12);
        ghosts.push(1, 13);
        assert_eq!([10, 11, 12, 13].map(|key| ghosts.find(key)), [Some(0), None, Some(1), Some(1)]);
        assert_eq!(ghosts.take(10), Some(0));
        assert_eq!(ghosts.take(10), None);
        ghosts.push(0, 14);
        assert_eq!((ghosts.len(0), ghosts.len(1)), (1, 2));
        assert!(ghosts.drop_oldest(0) && !ghosts.drop_oldest(0));
        ghosts.push(1, 15);
        ghosts.push(0, 16);
        assert_eq!((ghosts.find(12), ghosts.find(16)), (None, Some(0)), "of the other list");
    }

    #[test]
    fn without_capacity_nothing_is_kept() {
        let mut ghosts = Ghosts::<1>::new(0);
        ghosts.push(0, 1);
        assert_eq!((ghosts.len(0), ghosts.find(1)), (0, None));
    }
}
