//! The work on the journal: one write and its flush at a time, a record or a base.
//!
//! 1. A write to a region without a mark waits, if a start could find frames of it. A record with
//!    all wanted marks is written and flushed; then the writes go.
//! 2. When writes have settled, a base lists which frames are fresh now, and their marks go.
//! 3. A base is also written when the ring of records is full, or too much is wanted for one.
//! 4. A cold cache writes its root first, which ends what an older one listed, then a base.
//! 5. If any of this fails, the root is overwritten, so that the next start is cold; if that fails
//!    as well, the driver revokes the journal. Only then writes go on without marks.

use model::engine::{
    BufferId, BufferRange, CacheOff, Device, ErrorNumber, IoResult, Operation, REQUESTS_MAX,
};

use crate::attach::{Cache, Io, Pending, Phase, first};
use crate::detach::DetachStep;
use crate::format::BLOCK_BYTES;
use crate::frames::NONE;
use crate::journal::{self, Base, Digest, MARKS_MAX, RECORDS, Record, Root, WITNESSES_MAX};
use crate::log::SegmentState;
use crate::regions::Mark;
use crate::setup::FollowedWitness;

/// What is being done to the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JournalStep {
    WriteRoot,
    FlushRoot,
    WriteRecord,
    FlushRecord,
    WriteBase,
    FlushBase,
    /// The journal failed: its root is overwritten.
    EndRoot,
    FlushEnd,
    /// That failed as well: the driver sees to it.
    Revoke,
}

/// Whether the journal can prove anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalTrust {
    /// It is written as it should be.
    Whole,
    /// It failed, and is being made useless for the next start.
    Ending,
    /// The next start is cold for sure: marks are not needed any more.
    Ended,
    /// It failed, and could not be made useless either: writes that are not marked fail.
    Stuck,
}

/// The journal as the engine has it.
#[derive(Debug)]
pub(crate) struct JournalWork {
    /// The latest base, which the recovery compares with; overwritten by the next one.
    pub(crate) base: Base,
    next_record: u64,
    step: Option<JournalStep>,
    trust: JournalTrust,
    /// The root is to be written before anything else.
    pub(crate) wants_root: bool,
    /// A base is wanted.
    pub(crate) wants_base: bool,
    /// A record is wanted, so that the number of this attach is never given again.
    pub(crate) wants_attach: bool,
    /// The number of this attach is durable, and so segments may be written.
    pub(crate) is_attached: bool,
    /// The number of the attach in what is being written.
    attach_writing: u32,
    /// A base of this cache is durable.
    pub(crate) has_base: bool,
    /// The base that is written says that the volume is detached.
    pub(crate) is_last: bool,
    base_buffer: BufferId,
    record_buffer: BufferId,
    /// Digests to be recorded before the writes that make them.
    witness_wanted: Vec<(u8, Digest)>,
    witness_writing: usize,
    /// Digests that were given to the journal, and those of them that are durable.
    pub(crate) witness_given: u64,
    pub(crate) witness_durable: u64,
    /// Writes under way to ranges that identify the content.
    pub(crate) witness_writes: u32,
    base_at_ns: u64,
}

impl JournalWork {
    pub(crate) fn new(
        mut base: Base,
        next_record: u64,
        is_cold: bool,
        [base_buffer, record_buffer]: [BufferId; 2],
    ) -> Self {
        base.attach += 1;
        if is_cold {
            base.threshold = u64::from(base.attach) << 32;
        }
        Self {
            base,
            next_record,
            step: None,
            trust: JournalTrust::Whole,
            wants_root: false,
            wants_base: false,
            wants_attach: false,
            is_attached: false,
            attach_writing: 0,
            has_base: !is_cold,
            is_last: false,
            base_buffer,
            record_buffer,
            witness_wanted: Vec::with_capacity(REQUESTS_MAX * WITNESSES_MAX),
            witness_writing: 0,
            witness_given: 0,
            witness_durable: 0,
            witness_writes: 0,
            base_at_ns: 0,
        }
    }

    /// Asks for a digest to be recorded; the number to compare with `witness_durable`.
    pub(crate) fn want_witness(&mut self, which: usize, digest: Digest) -> u64 {
        self.witness_wanted.push((which as u8, digest));
        self.witness_given += 1;
        self.witness_given
    }

    /// Digests that it has room for.
    #[cfg(test)]
    pub(crate) fn witness_room(&self) -> usize {
        self.witness_wanted.capacity()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.step.is_none()
    }

    pub(crate) fn trust(&self) -> JournalTrust {
        self.trust
    }

    fn ring_is_full(&self) -> bool {
        self.next_record - self.base.first_record >= RECORDS - 1
    }
}

impl Cache {
    /// Begins what is wanted of the journal, if nothing is under way.
    pub(crate) fn drive_journal(&mut self, io: &mut Io<'_>) {
        if self.journal.step.is_some() || self.journal.trust != JournalTrust::Whole {
            return;
        }
        if self.journal.wants_root {
            return self.begin_root(io);
        }
        let used = self.journal.next_record - self.journal.base.first_record;
        self.journal.wants_base |= used > RECORDS / 2 && self.phase == Phase::Running;
        let marks = self.regions.wanted().len();
        let witnesses = self.journal.witness_wanted.len();
        let is_wanted = marks > 0 || witnesses > 0 || self.journal.wants_attach;
        let is_urgent = is_wanted && (marks > MARKS_MAX || self.journal.ring_is_full());
        let may_list = self.lists_all() && self.witnesses_are_durable();
        if is_urgent || self.journal.wants_base && may_list {
            self.begin_base(io);
        } else if is_wanted {
            self.begin_record(io);
        }
    }

    /// Whether the disk has for good what a base would list of the witnesses. A base lists one
    /// digest of each; until then the records have those that a cut can leave.
    fn witnesses_are_durable(&self) -> bool {
        let count = self.regions.count();
        let is_durable = |witness: &FollowedWitness| {
            let mut regions = self.regions_of(witness.offset, witness.bytes.len().max(1) as u64);
            !regions.any(|region| region < count && self.regions.is_unflushed(region))
        };
        self.journal.witness_writes == 0
            && self.journal.witness_wanted.is_empty()
            && (self.start.cold().is_some() && !self.journal.has_base
                || self.witnesses.iter().all(is_durable))
    }

    /// Whether a base can say which frames are fresh now: every segment was looked at.
    fn lists_all(&self) -> bool {
        match self.phase {
            Phase::Starting => self.start.cold().is_some(),
            Phase::Recovering(_) | Phase::Detaching(DetachStep::Unproved) => false,
            Phase::Running | Phase::Detaching(_) | Phase::Detached => true,
        }
    }

    /// Names this cache in the journal: one sector, and nothing that has another name counts.
    fn begin_root(&mut self, io: &mut Io<'_>) {
        let Base { cache_id, volume_id, geometry, .. } = self.journal.base;
        self.journal.wants_root = false;
        self.journal.step = Some(JournalStep::WriteRoot);
        let data = first(self.journal.record_buffer, BLOCK_BYTES);
        let medium_id = self.health.medium_id;
        Root { cache_id, medium_id, volume_id, geometry }.write(io.buffers.bytes_mut(data));
        self.write_journal(0, data, io);
    }

    fn write_journal(&mut self, offset: u64, data: BufferRange, io: &mut Io<'_>) {
        let operation = Operation::Write { offset, data };
        self.operate(Device::Journal, operation, Pending::Journal, io);
    }

    fn begin_record(&mut self, io: &mut Io<'_>) {
        let witnesses = self.journal.witness_wanted.len().min(WITNESSES_MAX);
        let marks = self.regions.wanted();
        let record = Record {
            number: self.journal.next_record,
            attach: self.journal.base.attach,
            marks,
            witnesses: &self.journal.witness_wanted[..witnesses],
        };
        let data = first(self.journal.record_buffer, BLOCK_BYTES);
        record.write(&self.journal.base.cache_id, io.buffers.bytes_mut(data));
        let offset = journal::record_start(&self.geometry, record.number);
        self.regions.begin_marking();
        self.journal.witness_writing = witnesses;
        self.journal.step = Some(JournalStep::WriteRecord);
        self.journal.attach_writing = self.journal.base.attach;
        self.counters.records += 1;
        self.write_journal(offset, data, io);
    }

    /// Writes a base. It lists what is fresh now; before every segment was looked at, the list of
    /// the last base stays, and all marks with it.
    fn begin_base(&mut self, io: &mut Io<'_>) {
        self.regions.begin_marking();
        if self.lists_all() {
            self.clear_settled();
            self.regions.begin_listing();
            self.journal.base.clear();
            self.list_segments();
            self.journal.base.threshold = self.next_sequence;
        }
        self.list_marks();
        let journal = &mut self.journal;
        journal.witness_writing = journal.witness_wanted.len();
        let base = &mut journal.base;
        base.generation += 1;
        base.first_record = journal.next_record;
        base.is_detached = journal.is_last;
        base.witnesses.clear();
        base.witnesses.extend(self.witnesses.iter().map(|witness| witness.listed()));
        let data = first(journal.base_buffer, journal::base_bytes(&self.geometry));
        base.write(io.buffers.bytes_mut(data));
        let offset = journal::base_start(&self.geometry, base.generation);
        journal.wants_base = false;
        journal.base_at_ns = self.now_ns;
        journal.step = Some(JournalStep::WriteBase);
        journal.attach_writing = journal.base.attach;
        self.counters.bases += 1;
        self.write_journal(offset, data, io);
    }

    /// Removes the marks of regions whose writes are durable.
    fn clear_settled(&mut self) {
        for region in 0..self.regions.count() {
            if self.may_clear(region) {
                self.regions.clear(region);
            }
        }
    }

    fn may_clear(&self, region: usize) -> bool {
        if self.rules.flush_before_clearing {
            self.regions.is_settled(region)
        } else {
            self.regions.is_idle(region)
        }
    }

    fn list_marks(&mut self) {
        for region in 0..self.regions.count() {
            if self.regions.mark(region) != Mark::Clear {
                journal::set_bit(&mut self.journal.base.marked, region);
            }
        }
    }

    fn list_segments(&mut self) {
        for (number, segment) in self.segments.iter().enumerate() {
            if segment.state == SegmentState::Free {
                continue;
            }
            self.journal.base.segments[number] = (segment.sequence, segment.count);
            let mut slot = segment.list.first;
            while slot != NONE {
                if let Some(key) = self.frames.key(slot) {
                    self.regions.list(self.geometry.region(key));
                    let ordinal = self.frames.place(slot).ordinal;
                    self.journal.base.set_fresh(number as u32, ordinal);
                }
                slot = self.frames.next(slot);
            }
        }
    }

    pub(crate) fn journal_ended(&mut self, result: IoResult, io: &mut Io<'_>) {
        let Some(step) = self.journal.step.take() else { return };
        if result.is_err() {
            return self.journal_failed(step, io);
        }
        let flush = match step {
            JournalStep::WriteRoot => Some(JournalStep::FlushRoot),
            JournalStep::WriteRecord => Some(JournalStep::FlushRecord),
            JournalStep::WriteBase => Some(JournalStep::FlushBase),
            JournalStep::EndRoot => Some(JournalStep::FlushEnd),
            _ => None,
        };
        if flush.is_some() {
            self.journal.step = flush;
            return self.operate(Device::Journal, Operation::Flush, Pending::Journal, io);
        }
        match step {
            JournalStep::FlushEnd | JournalStep::Revoke => {
                self.journal.trust = JournalTrust::Ended;
                self.send_waiting(io);
            }
            JournalStep::FlushRecord => {
                self.journal.next_record += 1;
                self.marks_are_durable(io);
            }
            JournalStep::FlushBase => {
                let is_first = !std::mem::replace(&mut self.journal.has_base, true);
                self.regions.end_listing();
                self.marks_are_durable(io);
                if is_first && self.phase == Phase::Starting {
                    self.check_medium(io);
                }
                if self.journal.is_last {
                    self.end_detach(true, io);
                }
            }
            _ => {}
        }
    }

    /// A step failed: nothing more can be marked. The next start must be cold before writes go on
    /// without marks, and only what is trusted can see to that: the journal, or the driver.
    fn journal_failed(&mut self, step: JournalStep, io: &mut Io<'_>) {
        let was = std::mem::replace(&mut self.journal.trust, JournalTrust::Ending);
        if was == JournalTrust::Whole {
            self.give_up(CacheOff::Journal, io);
        }
        if !self.rules.revoke_before_unmarked {
            self.journal.trust = JournalTrust::Ended;
            return self.send_waiting(io);
        }
        match step {
            JournalStep::Revoke => {
                self.journal.trust = JournalTrust::Stuck;
                self.fail_if_stuck(io);
            }
            JournalStep::EndRoot | JournalStep::FlushEnd => {
                self.journal.step = Some(JournalStep::Revoke);
                self.operate(Device::Journal, Operation::Revoke, Pending::Journal, io);
            }
            _ => {
                self.journal.step = Some(JournalStep::EndRoot);
                let data = first(self.journal.record_buffer, BLOCK_BYTES);
                io.buffers.bytes_mut(data).fill(0);
                self.write_journal(0, data, io);
            }
        }
    }

    /// Without a journal that could be made useless, a write without a mark could make an old frame
    /// be served one day: it fails.
    pub(crate) fn fail_if_stuck(&mut self, io: &mut Io<'_>) {
        if self.journal.trust != JournalTrust::Stuck {
            return;
        }
        while let Some(at) = self.waiting.pop() {
            self.write_ended(at, Err(ErrorNumber::EIO), io);
        }
    }

    /// Whether writes need no mark: the next start is cold for sure.
    pub(crate) fn needs_no_marks(&self) -> bool {
        self.journal.trust == JournalTrust::Ended
    }

    fn marks_are_durable(&mut self, io: &mut Io<'_>) {
        let journal = &mut self.journal;
        if journal.attach_writing == journal.base.attach {
            journal.is_attached = true;
            journal.wants_attach = false;
        }
        journal.witness_wanted.drain(..journal.witness_writing);
        journal.witness_durable += journal.witness_writing as u64;
        self.regions.end_marking();
        self.send_waiting(io);
    }

    /// Asks for a base if marks have settled since the last one. Where clients never flush what a
    /// base would list of the witnesses, the disk is flushed before the records run out.
    pub(crate) fn want_base_if_due(&mut self, io: &mut Io<'_>) {
        let is_waiting = self.journal.wants_base && self.phase == Phase::Running;
        if is_waiting && !self.is_own_flush_sent && !self.witnesses_are_durable() {
            self.is_own_flush_sent = true;
            self.flush_backing(None, io);
        }
        let is_due =
            self.now_ns.saturating_sub(self.journal.base_at_ns) >= self.limits.base_interval_ns;
        if !is_due || self.phase != Phase::Running || self.journal.wants_base {
            return;
        }
        let regions = 0..self.regions.count();
        self.journal.wants_base = regions.into_iter().any(|region| self.may_clear(region));
    }
}
