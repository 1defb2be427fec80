//! The keys of late, by fingerprints: 4 bytes a key, for a cache that must stay small in memory.
//!
//! Sets of eight fingerprints of 32 bits. A key goes to the front of its set, and the oldest of
//! that set is forgotten. So a key is remembered for about as many keys as there is room for, more
//! or less by what its set gets. Another key is taken for it once in 500 million.

use model::Bytes;
use model::random::mix;

/// Fingerprints in a set: half a cache line.
const WAYS: usize = 8;

/// What holds no fingerprint.
const EMPTY: u32 = 0;

/// Keys that were added lately.
#[derive(Clone, Debug)]
pub struct RecentKeys {
    sets: Box<[[u32; WAYS]]>,
}

impl RecentKeys {
    /// Remembers about `keys` keys, 4 bytes each.
    #[must_use]
    pub fn new(keys: u32) -> Self {
        let sets = (keys as usize).div_ceil(WAYS).max(1);
        Self { sets: vec![[EMPTY; WAYS]; sets].into_boxed_slice() }
    }

    /// The memory of its fingerprints.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(size_of_val(&*self.sets) as u64)
    }

    /// Whether `key` is remembered.
    #[must_use]
    pub fn has(&self, key: u64) -> bool {
        let (set, fingerprint) = self.place(key);
        self.sets[set].contains(&fingerprint)
    }

    /// Forgets `key`; whether it was remembered.
    pub fn take(&mut self, key: u64) -> bool {
        let (set, fingerprint) = self.place(key);
        let set = &mut self.sets[set];
        let Some(at) = set.iter().position(|held| *held == fingerprint) else { return false };
        set[at..].rotate_left(1);
        set[WAYS - 1] = EMPTY;
        true
    }

    /// Remembers `key`, as the newest of its set.
    pub fn push(&mut self, key: u64) {
        self.take(key);
        let (set, fingerprint) = self.place(key);
        let set = &mut self.sets[set];
        set.rotate_right(1);
        set[0] = fingerprint;
    }

    fn place(&self, key: u64) -> (usize, u32) {
        let hash = mix(key);
        let set = ((u128::from(hash) * self.sets.len() as u128) >> 64) as usize;
        // The set comes from the high bits, the fingerprint from the low ones.
        (set, (hash as u32).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_four_bytes_a_key() {
        assert_eq!(RecentKeys::new(100_000).bytes(), Bytes(400_000));
    }

    #[test]
    fn a_key_is_taken_once_and_forgotten_after_about_as_many_as_there_is_room_for() {
        let mut recent = RecentKeys::new(10_000);
        recent.push(1);
        assert!(recent.has(1) && recent.take(1) && !recent.take(1) && !recent.has(1));
        (0..100_000).for_each(|key| recent.push(key));
        let kept = |keys: std::ops::Range<u64>| keys.filter(|key| recent.has(*key)).count();
        assert!(kept(95_000..100_000) > 4_500, "{}", kept(95_000..100_000));
        assert!(kept(0..80_000) < 1_600, "{}", kept(0..80_000));
        assert_eq!(kept(200_000..300_000), 0, "keys that were never added");
    }

    #[test]
    fn a_key_that_is_added_again_is_the_newest() {
        let mut recent = RecentKeys::new(8);
        (0..8).for_each(|key| recent.push(key));
        recent.push(0);
        recent.push(8);
        assert!(recent.has(0) && !recent.has(1));
    }
}
