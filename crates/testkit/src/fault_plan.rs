//! Which requests to a file or a disk fail, and how: a plan made by the test, and the judge of each
//! request. Pure: no I/O.
//!
//! A plan is a list of faults. Each has a trigger (the n-th request of a kind, those from then on,
//! or those that touch a range of bytes) and counts by itself the requests of its kind, from 0.
//! The first fault whose trigger matches decides.

use crate::disk_model::{DiskRequest, RequestKind};
use crate::true_size::{Beyond, TrueSize};
use serve::fuse::protocol::errno;
use std::ops::Range;

/// What makes a fault happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The request of this kind with this number, counted from 0.
    Nth(RequestKind, u64),
    /// That one and all of its kind after it.
    From(RequestKind, u64),
    /// Each request of this kind that touches one of these bytes.
    Touches(RequestKind, Range<u64>),
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// It fails with this error number and does nothing.
    Fail(i32),
    /// It waits, until the test calls `release`, and is then served.
    Hang,
    /// Before it is served its file is cut to this length.
    Shrink(u64),
    /// Before it is served the first byte of its file is inverted and its modification time
    /// moves on by a second.
    Change,
    /// The device is gone: this request and each after it fail with `ENODEV`.
    Remove,
}

/// A fault, and the files that it is for.
#[derive(Clone, Debug)]
struct PlannedFault {
    trigger: Trigger,
    fault: FileFault,
    /// The end of the path; `None` for all files.
    file: Option<String>,
    /// Requests of its kind until now.
    seen: u64,
}

/// The faults of a file system or disk; without any it works.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    faults: Vec<PlannedFault>,
    full_from: Option<u64>,
    true_size: Option<TrueSize>,
}

/// What the plan says about one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Serve,
    /// Only so many bytes of it are done.
    Short(u64),
    Fault(FileFault),
}

impl FaultPlan {
    /// A plan without a fault.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a fault.
    #[must_use]
    pub fn with(mut self, trigger: Trigger, fault: FileFault) -> Self {
        self.faults.push(PlannedFault { trigger, fault, file: None, seen: 0 });
        self
    }

    /// Limits the fault added last to files whose path below the root ends with `name`.
    #[must_use]
    pub fn on(mut self, name: &str) -> Self {
        if let Some(last) = self.faults.last_mut() {
            last.file = Some(name.to_owned());
        }
        self
    }

    /// Makes the n-th request of `kind` fail as a broken disk does (`EIO`).
    #[must_use]
    pub fn failing(self, kind: RequestKind, number: u64) -> Self {
        self.with(Trigger::Nth(kind, number), FileFault::Fail(errno::EIO))
    }

    /// Makes each request of `kind` that touches a byte of `range` fail (`EIO`).
    #[must_use]
    pub fn bad_range(self, kind: RequestKind, range: Range<u64>) -> Self {
        self.with(Trigger::Touches(kind, range), FileFault::Fail(errno::EIO))
    }

    /// No file has room for this byte or those after it: a write that begins before it is cut
    /// short there, one that begins behind it fails with `ENOSPC`.
    #[must_use]
    pub fn full_from(mut self, byte: u64) -> Self {
        self.full_from = Some(byte);
        self
    }

    /// Each file has only so many bytes, whatever its size says. No write fails.
    ///
    /// # Panics
    /// For 0 bytes.
    #[must_use]
    pub fn true_size(mut self, bytes: u64, beyond: Beyond) -> Self {
        assert!(bytes > 0, "a disk has a byte");
        self.true_size = Some(TrueSize { bytes, beyond });
        self
    }

    /// The same lie about the size without any fault.
    pub(crate) fn only_true_size(&self) -> Self {
        Self { true_size: self.true_size, ..Self::default() }
    }

    /// The same plan before any request.
    pub(crate) fn restarted(mut self) -> Self {
        for planned in &mut self.faults {
            planned.seen = 0;
        }
        self
    }

    /// Counts a request and decides what happens to it; `path` is below the root.
    pub(crate) fn judge(&mut self, path: &str, request: DiskRequest) -> Judgement {
        let mut decided = None;
        for planned in &mut self.faults {
            if planned.counts(path, request.kind) && planned.happens(request) && decided.is_none() {
                decided = Some(planned.fault.clone());
            }
        }
        if let Some(fault) = decided {
            return Judgement::Fault(fault);
        }
        let end = request.offset.saturating_add(request.len);
        match self.full_from {
            Some(full) if request.kind == RequestKind::Write && end > full => {
                match full.saturating_sub(request.offset) {
                    0 => Judgement::Fault(FileFault::Fail(errno::ENOSPC)),
                    room => Judgement::Short(room),
                }
            }
            _ => Judgement::Serve,
        }
    }

    /// Where the bytes `[offset, offset + len)` really are: pieces in order, each with its offset
    /// (`None`: nowhere) and its length.
    pub(crate) fn pieces(&self, offset: u64, len: u64) -> Vec<(Option<u64>, u64)> {
        let whole = || vec![(Some(offset), len)];
        self.true_size.map_or_else(whole, |size| size.places(offset, len))
    }
}

impl PlannedFault {
    fn counts(&self, path: &str, kind: RequestKind) -> bool {
        let (Trigger::Nth(own, _) | Trigger::From(own, _) | Trigger::Touches(own, _)) =
            &self.trigger;
        *own == kind && self.file.as_ref().is_none_or(|name| path.ends_with(name.as_str()))
    }

    fn happens(&mut self, request: DiskRequest) -> bool {
        let number = self.seen;
        self.seen += 1;
        match &self.trigger {
            Trigger::Nth(_, wanted) => number == *wanted,
            Trigger::From(_, first) => number >= *first,
            Trigger::Touches(_, range) => {
                request.offset < range.end
                    && request.offset.saturating_add(request.len) > range.start
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RequestKind::{Flush, Read, Write};

    fn request(kind: RequestKind, offset: u64, len: u64) -> DiskRequest {
        DiskRequest { kind, offset, len }
    }

    fn fails(error: i32) -> Judgement {
        Judgement::Fault(FileFault::Fail(error))
    }

    #[test]
    fn each_kind_is_counted_by_itself() {
        let mut plan = FaultPlan::new().failing(Write, 1).failing(Flush, 0);
        let mut judge = |kind| plan.judge("a", request(kind, 0, 1));
        assert_eq!(judge(Read), Judgement::Serve);
        assert_eq!(judge(Write), Judgement::Serve);
        assert_eq!(judge(Flush), fails(5));
        assert_eq!(judge(Write), fails(5));
        assert_eq!(judge(Write), Judgement::Serve);
    }

    #[test]
    fn a_range_fails_where_it_is_touched_and_for_its_file_only() {
        let mut plan = FaultPlan::new().bad_range(Read, 10..20).on("b/c");
        let mut judge = |path, offset, len| plan.judge(path, request(Read, offset, len));
        for (offset, len) in [(0, 10), (20, 5)] {
            assert_eq!(judge("b/c", offset, len), Judgement::Serve);
        }
        for (offset, len) in [(0, 11), (19, 1), (0, 100)] {
            assert_eq!(judge("b/c", offset, len), fails(5));
            assert_eq!(judge("b/d", offset, len), Judgement::Serve);
        }
    }

    #[test]
    fn from_a_request_on_all_fail() {
        let mut plan = FaultPlan::new().with(Trigger::From(Write, 2), FileFault::Remove);
        let outcomes: Vec<bool> =
            (0..4).map(|_| plan.judge("", request(Write, 0, 1)) != Judgement::Serve).collect();
        assert_eq!(outcomes, [false, false, true, true]);
    }

    #[test]
    fn a_full_disk_takes_what_is_before_its_end() {
        let mut plan = FaultPlan::new().full_from(100);
        let mut judge = |kind, offset, len| plan.judge("", request(kind, offset, len));
        assert_eq!(judge(Write, 0, 100), Judgement::Serve);
        assert_eq!(judge(Write, 90, 20), Judgement::Short(10));
        assert_eq!(judge(Write, 100, 1), fails(28));
        assert_eq!(judge(Read, 90, 20), Judgement::Serve);
    }
}
