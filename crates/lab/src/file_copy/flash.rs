//! Hits of a flash tier: of bcache, which counts them for each device. Other kinds are not seen,
//! and a directory on a partition of a tier is not either.

use machine::Root;
use serde::Serialize;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a flash tier below a directory has answered and what not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlashCount {
    /// Requests that it answered.
    pub hits: u64,
    /// Requests that went to the disk.
    pub misses: u64,
}

impl FlashCount {
    /// Of all tiers below these directories; `None` without any.
    pub(super) fn below(root: &Root, directories: &[&Path]) -> Option<Self> {
        let mut devices: Vec<u64> = directories
            .iter()
            .filter_map(|directory| Some(std::fs::metadata(directory).ok()?.dev()))
            .collect();
        devices.sort_unstable();
        devices.dedup();
        let counts = devices.into_iter().filter_map(|device| Self::of(root, device));
        counts.reduce(|sum, more| Self {
            hits: sum.hits + more.hits,
            misses: sum.misses + more.misses,
        })
    }

    fn of(root: &Root, device: u64) -> Option<Self> {
        // As the C library takes a device's number apart.
        let major = ((device >> 32) & 0xffff_f000) | ((device >> 8) & 0xfff);
        let minor = ((device >> 12) & 0xffff_ff00) | (device & 0xff);
        let read = |name: &str| {
            let path = format!("/sys/dev/block/{major}:{minor}/bcache/stats_total/{name}");
            root.read(path).ok()?.trim().parse().ok()
        };
        Some(Self { hits: read("cache_hits")?, misses: read("cache_misses")? })
    }

    /// What came since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            hits: self.hits.saturating_sub(before.hits),
            misses: self.misses.saturating_sub(before.misses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    #[test]
    fn a_tier_is_counted_by_the_number_of_its_device() {
        let fake = FakeRoot::new()
            .file("/sys/dev/block/252:3/bcache/stats_total/cache_hits", "17\n")
            .file("/sys/dev/block/252:3/bcache/stats_total/cache_misses", "5\n");
        let root = Root::at(fake.path());
        let found = FlashCount::of(&root, (252 << 8) | 3).unwrap();
        assert_eq!(found, FlashCount { hits: 17, misses: 5 });
        assert_eq!(FlashCount::of(&root, 8 << 8), None);
        let before = FlashCount { hits: 10, misses: 5 };
        assert_eq!(found.since(before), FlashCount { hits: 7, misses: 0 });
    }
}
