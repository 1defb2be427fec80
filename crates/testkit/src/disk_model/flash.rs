//! What flash behind a cheap controller adds to the time of a write: a fast area that fills up, and
//! erase blocks that must be copied. Both count bytes only and know no clock.

/// The fast area of a disk whose writes are quick until it is full.
///
/// 1. A byte that finds room in it is written at the burst rate, any other at the sustained rate.
/// 2. While the disk is idle it empties at the sustained rate. While the disk reads or writes, it
///    does not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BurstArea {
    filled_bytes: f64,
}

impl BurstArea {
    /// Takes what fits of `len` bytes; how many that were.
    pub(super) fn take(&mut self, len: u64, room_bytes: u64) -> f64 {
        let taken = (room_bytes as f64 - self.filled_bytes).clamp(0.0, len as f64);
        self.filled_bytes += taken;
        taken
    }

    /// The disk was idle for so long.
    pub(super) fn empty(&mut self, idle_ns: u64, sustained_bps: f64) {
        let emptied = idle_ns as f64 / 1e9 * sustained_bps;
        self.filled_bytes = (self.filled_bytes - emptied).max(0.0);
    }
}

/// The erase block that is being filled; there is one.
///
/// 1. A write that begins where the last one ended copies nothing.
/// 2. Any other write makes the controller complete the block that it was filling: what lies
///    between the end of the last write and the end of that block is copied.
/// 3. Then it opens the block in which the write begins: what lies before the write is copied.
///
/// So a write at the start of a block after a whole one is free, and a small write at a random
/// place copies one block on average. Every block counts as full of data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenBlock {
    /// Where the last write ended. At the start of a block none is open.
    end: u64,
}

impl OpenBlock {
    /// Counts a write; the bytes that are copied for it.
    pub(super) fn write(&mut self, offset: u64, len: u64, block_bytes: u64) -> u64 {
        let last_end = std::mem::replace(&mut self.end, offset.saturating_add(len));
        if offset == last_end {
            return 0;
        }
        let filled = last_end % block_bytes;
        let rest_of_old = if filled == 0 { 0 } else { block_bytes - filled };
        rest_of_old + offset % block_bytes
    }
}

/// How many ends of blocks are inside of a range.
pub(super) fn block_ends_within(offset: u64, len: u64, block_bytes: u64) -> u64 {
    let Some(last) = len.checked_sub(1) else {
        return 0;
    };
    offset.saturating_add(last) / block_bytes - offset / block_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_takes_what_fits_and_empties_while_idle() {
        let mut area = BurstArea::default();
        assert_eq!(area.take(600, 1000), 600.0);
        assert_eq!(area.take(600, 1000), 400.0);
        assert_eq!(area.take(600, 1000), 0.0);
        area.empty(500_000_000, 200.0);
        assert_eq!(area.take(600, 1000), 100.0);
        area.empty(60_000_000_000, 200.0);
        assert_eq!(area.take(5000, 1000), 1000.0, "never more than its size");
    }

    #[test]
    fn each_byte_of_a_block_is_written_or_copied_once() {
        let mut open = OpenBlock::default();
        let mut write = |offset, len| open.write(offset, len, 100);
        assert_eq!(write(0, 30), 0);
        assert_eq!(write(30, 70), 0);
        assert_eq!(write(500, 100), 0, "whole blocks");
        assert_eq!(write(220, 10), 20, "opened behind its start");
        assert_eq!(write(300, 10), 70, "the rest of the block before");
        assert_eq!(write(330, 10), 90 + 30, "a gap in one block");
        assert_eq!(write(330, 10), 60 + 30, "the same place again");
        assert_eq!(write(50, 100), 60 + 50);
        assert_eq!(write(200, 1), 50);
    }

    #[test]
    fn a_range_that_ends_with_a_block_does_not_cross_into_the_next() {
        assert_eq!(block_ends_within(90, 10, 100), 0);
        assert_eq!(block_ends_within(90, 11, 100), 1);
        assert_eq!(block_ends_within(0, 300, 100), 2);
        assert_eq!(block_ends_within(100, 0, 100), 0);
    }
}
