//! The work on the journal: one write and its flush at a time, a record or a base.
//!
//! 1. A write to a region without a mark waits. A record with all wanted marks is written and
//!    flushed; then the writes go.
//! 2. When writes have settled, a base lists which frames are fresh now, and their marks go.
//! 3. A base is also written when the ring of records is full, or too much is wanted for one.

use model::engine::{BufferId, Device, IoResult, Operation};

use crate::attach::{Cache, Io, Pending, Phase, first};
use crate::format::BLOCK_BYTES;
use crate::frames::NONE;
use crate::journal::{self, Base, Digest, MARKS_MAX, RECORDS, Record, WITNESSES_MAX};
use crate::log::SegmentState;
use crate::regions::Mark;

/// What is being done to the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JournalStep {
    WriteRecord,
    FlushRecord,
    WriteBase,
    FlushBase,
}

/// The journal as the engine has it.
#[derive(Debug)]
pub(crate) struct JournalWork {
    /// The latest base, which the recovery compares with; overwritten by the next one.
    pub(crate) base: Base,
    next_record: u64,
    step: Option<JournalStep>,
    is_failed: bool,
    /// A base is wanted.
    pub(crate) wants_base: bool,
    /// A record is wanted, so that the number of this attach is never given again.
    pub(crate) wants_attach: bool,
    /// The number of this attach is durable, and so segments may be written.
    pub(crate) is_attached: bool,
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
            is_failed: false,
            wants_base: false,
            wants_attach: false,
            is_attached: false,
            is_last: false,
            base_buffer,
            record_buffer,
            witness_wanted: Vec::with_capacity(64),
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

    pub(crate) fn is_idle(&self) -> bool {
        self.step.is_none()
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.is_failed
    }

    fn ring_is_full(&self) -> bool {
        self.next_record - self.base.first_record >= RECORDS - 1
    }
}

impl Cache {
    /// Begins what is wanted of the journal, if nothing is under way.
    pub(crate) fn drive_journal(&mut self, io: &mut Io<'_>) {
        if self.journal.step.is_some() || self.journal.is_failed {
            return;
        }
        let used = self.journal.next_record - self.journal.base.first_record;
        self.journal.wants_base |= used > RECORDS / 2 && self.phase == Phase::Running;
        let marks = self.regions.wanted().len();
        let witnesses = self.journal.witness_wanted.len();
        let is_wanted = marks > 0 || witnesses > 0 || self.journal.wants_attach;
        let is_urgent = is_wanted && (marks > MARKS_MAX || self.journal.ring_is_full());
        let may_list = self.lists_all()
            && self.journal.witness_writes == 0
            && self.journal.witness_wanted.is_empty();
        if is_urgent || self.journal.wants_base && may_list {
            self.begin_base(io);
        } else if is_wanted {
            self.begin_record(io);
        }
    }

    /// Whether a base can say which frames are fresh now: every segment was looked at.
    fn lists_all(&self) -> bool {
        match self.phase {
            Phase::Starting => self.start.cold().is_some(),
            Phase::Recovering(_) => false,
            Phase::Running | Phase::Detaching(_) | Phase::Detached => true,
        }
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
        self.counters.records += 1;
        self.operate(Device::Journal, Operation::Write { offset, data }, Pending::Journal, io);
    }

    /// Writes a base. It lists what is fresh now; before every segment was looked at, the list of
    /// the last base stays, and all marks with it.
    fn begin_base(&mut self, io: &mut Io<'_>) {
        self.regions.begin_marking();
        if self.lists_all() {
            self.clear_settled();
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
        base.witnesses.extend(self.witnesses.iter().map(|witness| witness.digest()));
        let data = first(journal.base_buffer, journal::base_bytes(&self.geometry));
        base.write(io.buffers.bytes_mut(data));
        let offset = journal::base_start(&self.geometry, base.generation);
        journal.wants_base = false;
        journal.base_at_ns = self.now_ns;
        journal.step = Some(JournalStep::WriteBase);
        self.counters.bases += 1;
        self.operate(Device::Journal, Operation::Write { offset, data }, Pending::Journal, io);
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
                if self.frames.key(slot).is_some() {
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
            self.journal.is_failed = true;
            self.journal_failed(io);
            return;
        }
        match step {
            JournalStep::WriteRecord | JournalStep::WriteBase => {
                let is_record = step == JournalStep::WriteRecord;
                self.journal.step =
                    Some(if is_record { JournalStep::FlushRecord } else { JournalStep::FlushBase });
                self.operate(Device::Journal, Operation::Flush, Pending::Journal, io);
            }
            JournalStep::FlushRecord => {
                self.journal.next_record += 1;
                self.marks_are_durable(io);
            }
            JournalStep::FlushBase => {
                let is_first = self.phase == Phase::Starting && self.start.cold().is_some();
                self.marks_are_durable(io);
                if is_first {
                    self.write_header(io);
                }
                if self.journal.is_last {
                    self.end_detach(true, io);
                }
            }
        }
    }

    fn marks_are_durable(&mut self, io: &mut Io<'_>) {
        let journal = &mut self.journal;
        journal.is_attached = true;
        journal.wants_attach = false;
        journal.witness_wanted.drain(..journal.witness_writing);
        journal.witness_durable += journal.witness_writing as u64;
        self.regions.end_marking();
        self.send_waiting(io);
    }

    /// Asks for a base if marks have settled since the last one.
    pub(crate) fn want_base_if_due(&mut self) {
        let is_due =
            self.now_ns.saturating_sub(self.journal.base_at_ns) >= self.limits.base_interval_ns;
        if !is_due || self.phase != Phase::Running || self.journal.wants_base {
            return;
        }
        let regions = 0..self.regions.count();
        self.journal.wants_base = regions.into_iter().any(|region| self.may_clear(region));
    }
}
