//! Whether a key that missed is worth a slot at all.
//!
//! A cache on flash wears with each fill, and more than half of what a second-level cache takes is
//! never requested again: a policy of admission keeps that out. It sees every request first, then
//! is asked about those that missed.

mod run;
mod second_request;

pub use run::ShortRuns;
pub use second_request::SecondRequest;

/// A decision on misses.
pub trait Admission {
    /// `key` was requested, whether it is cached or not.
    fn request(&mut self, key: u64);

    /// Whether `key`, which missed, is to be cached. Called after [`Admission::request`].
    fn admits(&mut self, key: u64) -> bool;
}

/// Admits everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Always;

impl Admission for Always {
    #[inline]
    fn request(&mut self, _key: u64) {}

    #[inline]
    fn admits(&mut self, _key: u64) -> bool {
        true
    }
}

/// Admits what both admit; the second one is only asked if the first admits.
impl<A: Admission, B: Admission> Admission for (A, B) {
    fn request(&mut self, key: u64) {
        self.0.request(key);
        self.1.request(key);
    }

    fn admits(&mut self, key: u64) -> bool {
        self.0.admits(key) && self.1.admits(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_must_admit() {
        let mut both = (ShortRuns::new(2), SecondRequest::new(10));
        let mut admits = |key| {
            both.request(key);
            both.admits(key)
        };
        // A run of four blocks, then three of them one by one: two were remembered when they
        // missed, the last one still belongs to the run.
        assert_eq!([10, 11, 12, 13].map(&mut admits), [false; 4]);
        assert_eq!([13, 11, 10].map(&mut admits), [false, true, true]);
    }
}
