//! Admits a key when it misses for the second time within the last so many keys that missed. Of
//! what is requested once, and of long scans, nothing is written.

use crate::eviction::ghosts::Ghosts;

use super::Admission;

/// Remembers keys that missed once.
#[derive(Clone, Debug)]
pub struct SecondRequest {
    seen: Ghosts<1>,
}

impl SecondRequest {
    /// Remembers `keys` keys, 41 to 65 bytes each.
    pub fn new(keys: u32) -> Self {
        Self { seen: Ghosts::new(keys) }
    }
}

impl Admission for SecondRequest {
    fn request(&mut self, _key: u64) {}

    fn admits(&mut self, key: u64) -> bool {
        let is_second = self.seen.take(key).is_some();
        if !is_second {
            self.seen.push(0, key);
        }
        is_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_miss_within_the_window_is_admitted() {
        let mut second = SecondRequest::new(2);
        let admitted = [1, 1, 1, 2, 3, 1, 4, 2, 4].map(|key| second.admits(key));
        assert_eq!(admitted, [false, true, false, false, false, false, false, false, true]);
    }
}
