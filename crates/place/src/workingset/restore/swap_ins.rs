//! Swap counters of the kernel during a restore: how many pages came from where, and how many are
//! in the swap cache, which pagemap does not show page by page. They count the whole machine, so
//! what is reported of the restored pages is a lower bound.

use machine::{Root, vmstat};

/// A tenth of the pages is worth a line.
const WORTH_A_LINE: u64 = 10;

/// The counters at one time, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SwapIns {
    /// Out of zswap, where they lay compressed in memory; `None` without it.
    from_zswap: Option<u64>,
    from_device: Option<u64>,
    /// In memory with their place in swap kept, mapped or not.
    cached: Option<u64>,
}

impl SwapIns {
    pub(super) fn read(root: &Root) -> Self {
        let counters = vmstat::read(root);
        let counter = |name| counters.get(name).copied();
        Self {
            from_zswap: counter("zswpin"),
            from_device: counter("pswpin"),
            cached: counter("nr_swapcached"),
        }
    }

    /// How many of `asked` pages, for which the kernel was advised since `before`, are in the swap
    /// cache: those that needed no reading were there already, and the others made it grow.
    pub(super) fn came_since(self, before: Self, asked: u64) -> u64 {
        let counters = self.cached.zip(before.cached);
        let grown = counters.map_or(0, |(now, then)| now.saturating_sub(then));
        let there_already = self.unread_since(before, asked).unwrap_or(0);
        asked.min(grown + there_already)
    }

    /// How many of `present` pages, at the most, came from the device since `before`.
    pub(super) fn read_since(self, before: Self, present: u64) -> u64 {
        self.device_since(before).map_or(present, |read| read.min(present))
    }

    /// Lines for the person about `asked` pages.
    pub(super) fn notes_since(self, before: Self, asked: u64) -> Vec<String> {
        let mut notes = Vec::new();
        let unread = self.unread_since(before, asked).unwrap_or(0);
        if unread > 0 && unread * WORTH_A_LINE >= asked {
            notes.push(format!(
                "at least {unread} of these {asked} pages were still in memory, evicted too \
                 recently to have left it: they spare nothing"
            ));
        }
        let zswap = self.zswap_since(before).filter(|pages| *pages > 0);
        if let Some((zswap, device)) = zswap.zip(self.device_since(before)) {
            notes.push(format!(
                "{zswap} pages came from zswap, compressed in memory, and {device} from \
                 the swap device (counted for the whole machine): the former gained little"
            ));
        }
        notes
    }

    /// How many of `asked` pages, at the least, were not read since `before`.
    fn unread_since(self, before: Self, asked: u64) -> Option<u64> {
        let read = self.device_since(before)? + self.zswap_since(before).unwrap_or(0);
        Some(asked.saturating_sub(read))
    }

    fn zswap_since(self, before: Self) -> Option<u64> {
        self.from_zswap?.checked_sub(before.from_zswap?)
    }

    fn device_since(self, before: Self) -> Option<u64> {
        self.from_device?.checked_sub(before.from_device?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(from_zswap: u64, from_device: u64, cached: u64) -> SwapIns {
        SwapIns {
            from_zswap: Some(from_zswap),
            from_device: Some(from_device),
            cached: Some(cached),
        }
    }

    #[test]
    fn what_came_by_advice_was_read_or_there_already() {
        let before = counters(5, 10, 100);
        assert_eq!(counters(5, 50, 140).came_since(before, 40), 40);
        assert_eq!(counters(5, 10, 100).came_since(before, 40), 40);
        assert_eq!(counters(25, 20, 130).came_since(before, 40), 40);
        assert_eq!(counters(5, 50, 110).came_since(before, 40), 10, "the others left again");
        assert_eq!(counters(5, 50, 20).came_since(before, 40), 0);
        assert_eq!(SwapIns::default().came_since(SwapIns::default(), 40), 0);
    }

    #[test]
    fn what_was_in_memory_still_spares_no_fault() {
        let before = SwapIns { from_device: Some(10), ..SwapIns::default() };
        let now = |from_device| SwapIns { from_device, ..before };
        assert_eq!(now(Some(10)).read_since(before, 40), 0);
        assert_eq!(now(Some(25)).read_since(before, 40), 15);
        assert_eq!(now(Some(99)).read_since(before, 40), 40);
        assert_eq!(now(None).read_since(before, 40), 40, "unknown");
    }

    #[test]
    fn only_what_gained_nothing_has_a_line() {
        let before = counters(5, 10, 0);
        let lines = |now: SwapIns| now.notes_since(before, 100).len();
        assert_eq!(lines(counters(5, 110, 0)), 0);
        assert_eq!(lines(counters(5, 101, 0)), 0, "a few pages");
        let lately = counters(5, 20, 0).notes_since(before, 100);
        assert!(lately[0].contains("at least 90 of these 100"), "{lately:?}");
        let zswap = counters(65, 50, 0).notes_since(before, 100);
        assert!(zswap[0].contains("60 pages came from zswap"), "{zswap:?}");
        assert_eq!(lines(SwapIns::default()), 0);
        assert_eq!(counters(5, 10, 0).notes_since(before, 0).len(), 0);
    }
}
