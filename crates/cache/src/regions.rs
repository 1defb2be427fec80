//! What is known of each region of the volume: whether it is marked, and whether a frame that is
//! read now may be kept.
//!
//! A region of which a start could find frames is marked in the journal before it is written for
//! the first time, and unmarked only when the writes are durable on the backing device and the
//! journal lists which frames are fresh. A region of which it would find none needs no mark to be
//! written, and no frame of it is kept until it has one or what was written is durable. So after a
//! crash all frames of a region without a mark are fresh.

use model::engine::REQUESTS_MAX;

/// What the journal says of a region, and what is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Not marked: a write must wait.
    Clear,
    /// To be marked by the next record.
    Wanted,
    /// In the record that is being written.
    Writing,
    /// Marked, durably.
    Durable,
}

/// A start may find frames of the region on the medium.
const FOUND: u8 = 1;
/// The base that is being written lists a frame of it.
const LISTED: u8 = 2;
/// A frame of it was kept since that base was begun.
const KEPT: u8 = 4;

/// All regions; 25 bytes each.
#[derive(Clone, Debug)]
pub(crate) struct Regions {
    marks: Box<[Mark]>,
    /// Grows with each write that begins or ends.
    generations: Box<[u32]>,
    /// Writes under way.
    writes: Box<[u16]>,
    /// The flushes of the backing device that had begun when the last write ended.
    flushes: Box<[u64]>,
    /// A flush failed that should have made its writes durable: kernels and disks may have dropped
    /// them since, and the next flush says nothing of them.
    doubted: Box<[bool]>,
    /// What a start would find of it: `FOUND`, `LISTED`, `KEPT`.
    found: Box<[u8]>,
    /// The base that is being written lists all fresh frames.
    is_listing: bool,
    /// Flushes of the backing device that were begun.
    begun: u64,
    /// Those that are under way.
    flushing: Vec<u64>,
    /// The latest that succeeded.
    done: u64,
    /// All writes that ended before this many flushes had begun are durable.
    flushed: u64,
    /// Regions whose mark is `Wanted`.
    wanted: Vec<u32>,
    /// Regions whose mark is `Writing`.
    writing: Vec<u32>,
}

impl Regions {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            marks: vec![Mark::Clear; count].into_boxed_slice(),
            generations: vec![0; count].into_boxed_slice(),
            writes: vec![0; count].into_boxed_slice(),
            flushes: vec![0; count].into_boxed_slice(),
            doubted: vec![false; count].into_boxed_slice(),
            // Nothing is known of the medium before the first base lists what it has.
            found: vec![FOUND; count].into_boxed_slice(),
            is_listing: false,
            begun: 1,
            flushing: Vec::with_capacity(REQUESTS_MAX + 1),
            done: 0,
            flushed: 0,
            wanted: Vec::with_capacity(count),
            writing: Vec::with_capacity(count),
        }
    }

    pub(crate) fn mark(&self, region: usize) -> Mark {
        self.marks[region]
    }

    /// A mark that the journal already has.
    pub(crate) fn set_durable(&mut self, region: usize) {
        self.marks[region] = Mark::Durable;
    }

    /// Asks for a mark; whether it is durable already.
    pub(crate) fn want(&mut self, region: usize) -> bool {
        if self.marks[region] == Mark::Clear {
            self.marks[region] = Mark::Wanted;
            self.wanted.push(region as u32);
        }
        self.marks[region] == Mark::Durable
    }

    /// Whether a write needs a mark: a start could find a frame that it makes stale.
    pub(crate) fn needs_mark(&self, region: usize) -> bool {
        self.found[region] & FOUND != 0
    }

    /// Whether a frame that holds what the backing device has now may be kept: a power cut takes
    /// nothing of that back, or the region is marked.
    pub(crate) fn may_keep(&self, region: usize) -> bool {
        let is_durable = !self.is_unflushed(region) && !self.doubted[region];
        self.marks[region] == Mark::Durable || is_durable
    }

    /// A frame of the region is kept.
    pub(crate) fn keep(&mut self, region: usize) {
        self.found[region] |= FOUND | KEPT;
    }

    /// A base that lists all fresh frames is begun.
    pub(crate) fn begin_listing(&mut self) {
        self.is_listing = true;
        self.found.iter_mut().for_each(|found| *found &= FOUND);
    }

    /// It lists a frame of the region.
    pub(crate) fn list(&mut self, region: usize) {
        self.found[region] |= LISTED;
    }

    /// A base is durable: a start finds what it lists, and what was kept since.
    pub(crate) fn end_listing(&mut self) {
        if std::mem::take(&mut self.is_listing) {
            for found in &mut self.found {
                *found = if *found & (LISTED | KEPT) == 0 { 0 } else { FOUND };
            }
        }
    }

    /// Regions that ask for a mark.
    pub(crate) fn wanted(&self) -> &[u32] {
        &self.wanted
    }

    /// All that are wanted are being written now.
    pub(crate) fn begin_marking(&mut self) {
        std::mem::swap(&mut self.wanted, &mut self.writing);
        for &region in &self.writing {
            self.marks[region as usize] = Mark::Writing;
        }
    }

    /// What was being written is durable.
    pub(crate) fn end_marking(&mut self) {
        for region in self.writing.drain(..) {
            self.marks[region as usize] = Mark::Durable;
        }
    }

    /// A write to the region was requested.
    pub(crate) fn begin_write(&mut self, region: usize) {
        self.generations[region] = self.generations[region].wrapping_add(1);
        self.writes[region] = self.writes[region].saturating_add(1);
    }

    /// A write to the region ended, however.
    pub(crate) fn end_write(&mut self, region: usize) {
        self.generations[region] = self.generations[region].wrapping_add(1);
        self.writes[region] = self.writes[region].saturating_sub(1);
        self.flushes[region] = self.begun;
    }

    /// What a fill compares: `None` while a write is under way, else what changes with each.
    pub(crate) fn stable_generation(&self, region: usize) -> Option<u32> {
        (self.writes[region] == 0).then(|| self.generations[region])
    }

    /// The generation, and how many writes are under way.
    pub(crate) fn generation(&self, region: usize) -> (u32, u16) {
        (self.generations[region], self.writes[region])
    }

    /// A flush of the backing device begins; what [`Regions::end_flush`] takes.
    pub(crate) fn begin_flush(&mut self) -> u64 {
        self.begun += 1;
        self.flushing.push(self.begun);
        self.begun
    }

    /// The flush succeeded. It proves nothing while one that began before it is under way: if that
    /// fails, what both should have stored may be lost, and only the other one says so.
    pub(crate) fn end_flush(&mut self, flush: u64) {
        self.flushing.retain(|other| *other != flush);
        self.done = self.done.max(flush);
        if self.flushing.iter().all(|other| *other > self.done) {
            self.flushed = self.done;
        }
    }

    /// The flush failed: what was written since the last one that counts may be lost although
    /// another one succeeds. It stays marked to the end of this attach.
    pub(crate) fn fail_flush(&mut self, flush: u64) {
        self.flushing.retain(|other| *other != flush);
        for region in 0..self.marks.len() {
            let is_marked = self.flushed == 0 && self.marks[region] == Mark::Durable;
            self.doubted[region] |= is_marked || self.flushes[region] >= self.flushed.max(1);
        }
    }

    /// Whether a flush has succeeded in this attach.
    pub(crate) fn has_flushed(&self) -> bool {
        self.flushed > 0
    }

    /// The memory of all regions.
    pub(crate) fn bytes(&self) -> u64 {
        let each = size_of::<Mark>() + size_of::<u32>() + size_of::<u16>() + size_of::<u64>();
        let lists = self.wanted.capacity() + self.writing.capacity();
        (self.marks.len() * (each + size_of::<bool>() + size_of::<u8>()) + lists * size_of::<u32>())
            as u64
    }

    /// Whether the mark can go: no write is under way, and all are durable on the backing device.
    pub(crate) fn is_settled(&self, region: usize) -> bool {
        self.marks[region] == Mark::Durable
            && self.writes[region] == 0
            && !self.doubted[region]
            && self.flushes[region] < self.flushed
    }

    /// Whether a write to the region may be lost in a power cut.
    pub(crate) fn is_unflushed(&self, region: usize) -> bool {
        self.writes[region] > 0 || self.flushes[region] >= self.flushed.max(1)
    }

    /// As [`Regions::is_settled`], for a cache that forgets to wait for a flush.
    pub(crate) fn is_idle(&self, region: usize) -> bool {
        self.marks[region] == Mark::Durable && self.writes[region] == 0
    }

    /// The mark is removed from the next list of fresh frames.
    pub(crate) fn clear(&mut self, region: usize) {
        self.marks[region] = Mark::Clear;
    }

    pub(crate) fn count(&self) -> usize {
        self.marks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_settles_with_a_flush_that_began_after_its_last_write() {
        let mut regions = Regions::new(2);
        assert!(!regions.want(1) && !regions.want(1));
        assert_eq!(regions.wanted(), [1]);
        regions.begin_write(1);
        regions.begin_marking();
        regions.end_marking();
        assert!(regions.want(1) && regions.wanted().is_empty());
        let early = regions.begin_flush();
        regions.end_write(1);
        regions.end_flush(early);
        assert!(!regions.is_settled(1), "the flush began before the write ended");
        let late = regions.begin_flush();
        assert!(!regions.is_settled(1));
        regions.end_flush(late);
        assert!(regions.is_settled(1) && !regions.is_settled(0));
    }

    #[test]
    fn what_a_failed_flush_should_have_stored_never_settles() {
        let mut regions = Regions::new(2);
        for region in 0..2 {
            regions.want(region);
        }
        regions.begin_marking();
        regions.end_marking();
        let first = regions.begin_flush();
        regions.end_flush(first);
        regions.begin_write(0);
        regions.end_write(0);
        let failed = regions.begin_flush();
        regions.fail_flush(failed);
        regions.begin_write(1);
        regions.end_write(1);
        let flush = regions.begin_flush();
        regions.end_flush(flush);
        assert!(!regions.is_settled(0) && regions.is_settled(1));
    }

    #[test]
    fn a_flush_counts_when_those_before_it_have_ended() {
        for fails in [false, true] {
            let mut regions = Regions::new(1);
            regions.want(0);
            regions.begin_marking();
            regions.end_marking();
            let first = regions.begin_flush();
            regions.end_flush(first);
            regions.begin_write(0);
            regions.end_write(0);
            let [early, late] = [regions.begin_flush(), regions.begin_flush()];
            regions.end_flush(late);
            assert!(!regions.is_settled(0), "the early one is under way");
            if fails {
                regions.fail_flush(early);
            } else {
                regions.end_flush(early);
            }
            assert_eq!(regions.is_settled(0), !fails);
        }
    }

    #[test]
    fn a_generation_is_stable_only_without_a_write() {
        let mut regions = Regions::new(1);
        let before = regions.stable_generation(0);
        regions.begin_write(0);
        assert_eq!(regions.stable_generation(0), None);
        regions.end_write(0);
        assert_ne!(regions.stable_generation(0), before);
    }
}
