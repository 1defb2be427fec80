//! Whether the medium is used: errors, time-outs, its absence and its return.
//!
//! A failed read of the medium is a miss, a failed write loses what it would have cached. Failures
//! at three instants of a minute turn the cache off until its medium returns; it is also looked for
//! now and then. Frames stay in the index meanwhile, and writes drop them there as always.
//!
//! A medium is written only while it is known to be that of this cache: its header is compared
//! first, after each return too. The name in it is that of the medium, which a cold start keeps: a
//! cut at any instant of a start leaves a medium that the next start takes. At the start a header
//! of other sizes is replaced, and anything else if the driver said so for what is there.

use model::engine::{CacheOff, Device, Event, IoResult, Operation};

use crate::attach::{Cache, Io, Pending, Phase, first, report};
use crate::format::{self, BLOCK_BYTES};

/// Failures within [`WINDOW_NS`] that turn the cache off.
const FAILURES: usize = 3;

/// What no request waits for may take so many times as long as a read.
const PATIENCE: u64 = 15;

/// A minute.
const WINDOW_NS: u64 = 60_000_000_000;

/// The longest time between two looks for a medium that failed: an hour.
const RETRY_NS_MAX: u64 = 60 * WINDOW_NS;

/// Whether the medium is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediumState {
    /// It is: it was compared, and has not returned since.
    On,
    /// It is not, until it was compared.
    Off,
    /// It is not, and never again in this attach: the journal failed.
    GivenUp,
}

/// What is known of the medium.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    pub(crate) medium: MediumState,
    /// The times of the last failures.
    failures: [Option<u64>; FAILURES],
    /// The header is being read or written.
    is_checking: bool,
    /// The medium has to be compared once more when that has ended.
    must_check_again: bool,
    /// It was said that it is another one.
    is_foreign: bool,
    is_flushing: bool,
    /// A segment was written since the flush that is under way began.
    must_flush: bool,
    /// What is there now may be overwritten whatever it is.
    may_format: bool,
    /// The name of the medium.
    pub(crate) medium_id: [u8; 16],
    /// When a medium that failed is looked for.
    retry_at_ns: Option<u64>,
    retry_after_ns: u64,
}

impl Health {
    pub(crate) fn new(may_format: bool, medium_id: [u8; 16]) -> Self {
        Self {
            medium: MediumState::Off,
            failures: [None; FAILURES],
            is_checking: false,
            must_check_again: false,
            is_foreign: false,
            is_flushing: false,
            must_flush: false,
            may_format,
            medium_id,
            retry_at_ns: None,
            retry_after_ns: WINDOW_NS,
        }
    }
}

impl Cache {
    pub(crate) fn is_on(&self) -> bool {
        self.health.medium == MediumState::On
    }

    /// The medium failed, or took too long. What fails at one instant counts once.
    pub(crate) fn medium_failed(&mut self, io: &mut Io<'_>) {
        self.counters.medium_errors += 1;
        if !self.is_on() || self.health.failures[FAILURES - 1] == Some(self.now_ns) {
            return;
        }
        self.health.failures.rotate_left(1);
        self.health.failures[FAILURES - 1] = Some(self.now_ns);
        let oldest = self.health.failures[0];
        if oldest.is_some_and(|at| self.now_ns.saturating_sub(at) <= WINDOW_NS) {
            self.turn_off(CacheOff::Errors, io);
            self.retry_later();
        }
    }

    /// Flushes the medium, for warmth alone: one flush at a time, and once more if segments were
    /// written meanwhile.
    pub(crate) fn flush_medium(&mut self, io: &mut Io<'_>) {
        self.health.must_flush = self.health.is_flushing;
        if !std::mem::replace(&mut self.health.is_flushing, true) {
            self.operate(Device::Cache, Operation::Flush, Pending::MediumFlush, io);
        }
    }

    pub(crate) fn medium_flush_ended(&mut self, result: IoResult, io: &mut Io<'_>) {
        self.health.is_flushing = false;
        if result.is_err() {
            self.medium_failed(io);
        }
        if std::mem::take(&mut self.health.must_flush) && self.is_on() {
            self.flush_medium(io);
        }
    }

    fn turn_off(&mut self, why: CacheOff, io: &mut Io<'_>) {
        self.health.medium = MediumState::Off;
        self.health.retry_at_ns = None;
        report(Event::CacheOff { why }, io);
    }

    /// Uses the medium no more in this attach.
    pub(crate) fn give_up(&mut self, why: CacheOff, io: &mut Io<'_>) {
        self.health.medium = MediumState::GivenUp;
        report(Event::CacheOff { why }, io);
    }

    fn retry_later(&mut self) {
        self.health.retry_at_ns = Some(self.now_ns.saturating_add(self.health.retry_after_ns));
        self.health.retry_after_ns = (2 * self.health.retry_after_ns).min(RETRY_NS_MAX);
    }

    fn turn_on(&mut self, io: &mut Io<'_>) {
        self.health.medium = MediumState::On;
        self.health.is_foreign = false;
        self.health.failures = [None; FAILURES];
        self.health.retry_at_ns = None;
        if self.phase == Phase::Starting && self.start.cold().is_none() {
            self.phase = Phase::Recovering(0);
        } else if self.phase == Phase::Starting {
            self.free.extend(0..self.geometry.segments as u16);
            self.phase = Phase::Running;
        }
        report(Event::CacheOn, io);
    }

    /// The medium is there, again or for the first time, or another one is.
    pub(crate) fn medium_returned(&mut self, io: &mut Io<'_>) {
        if self.health.medium == MediumState::GivenUp || self.phase == Phase::Detached {
            return;
        }
        if matches!(self.phase, Phase::Detaching(_)) {
            // It is not worth a comparison any more, and is not written without one.
            self.health.medium = MediumState::Off;
            return;
        }
        if !self.rules.compare_medium {
            return self.turn_on(io);
        }
        self.health.medium = MediumState::Off;
        self.health.may_format = false;
        self.health.is_foreign = false;
        self.health.retry_after_ns = WINDOW_NS;
        self.check_medium(io);
    }

    /// Compares the medium, or makes it that of this cache if that is allowed.
    pub(crate) fn check_medium(&mut self, io: &mut Io<'_>) {
        if self.health.is_checking {
            self.health.must_check_again = true;
        } else {
            self.health.is_checking = true;
            let data = first(self.header_buffer, BLOCK_BYTES);
            let operation = Operation::Read { offset: 0, data };
            self.operate(Device::Cache, operation, Pending::HeaderRead, io);
        }
    }

    /// Whether the end of a check says nothing of what is there now.
    fn is_check_void(&mut self, io: &mut Io<'_>) -> bool {
        self.health.is_checking = false;
        let is_closed = matches!(self.phase, Phase::Detaching(_) | Phase::Detached);
        if self.health.medium == MediumState::GivenUp || is_closed {
            return true;
        }
        let must_again = std::mem::take(&mut self.health.must_check_again);
        if must_again {
            self.check_medium(io);
        }
        must_again
    }

    pub(crate) fn header_read_ended(&mut self, result: IoResult, io: &mut Io<'_>) {
        if self.is_check_void(io) {
            return;
        }
        if result.is_err() {
            self.retry_later();
            return self.medium_failed(io);
        }
        if !self.journal.has_base {
            // A cold cache: it is compared again when the journal names it.
            return;
        }
        let found = io.buffers.bytes(first(self.header_buffer, BLOCK_BYTES));
        if found == format::header(&self.geometry, &self.health.medium_id) {
            return self.turn_on(io);
        }
        let is_ours = format::header_id(found) == Some(self.health.medium_id);
        if self.phase == Phase::Starting && (is_ours || self.health.may_format) {
            return self.write_header(io);
        }
        if !std::mem::replace(&mut self.health.is_foreign, true) {
            self.turn_off(CacheOff::AnotherMedium, io);
        }
        // It may have been read wrongly.
        self.retry_later();
    }

    /// Makes the medium that of this cache.
    fn write_header(&mut self, io: &mut Io<'_>) {
        self.health.is_checking = true;
        let header = format::header(&self.geometry, &self.health.medium_id);
        let data = first(self.header_buffer, BLOCK_BYTES);
        io.buffers.bytes_mut(data).copy_from_slice(&header);
        let operation = Operation::Write { offset: 0, data };
        self.operate(Device::Cache, operation, Pending::HeaderWrite, io);
    }

    pub(crate) fn header_write_ended(&mut self, result: IoResult, io: &mut Io<'_>) {
        if self.is_check_void(io) {
            return;
        }
        if result.is_ok() {
            // A cut must not take the name away: a medium without it is not taken again.
            self.health.is_checking = true;
            return self.operate(Device::Cache, Operation::Flush, Pending::HeaderFlush, io);
        }
        self.retry_later();
        self.medium_failed(io);
    }

    pub(crate) fn header_flush_ended(&mut self, result: IoResult, io: &mut Io<'_>) {
        if self.is_check_void(io) {
            return;
        }
        if result.is_ok() {
            return self.turn_on(io);
        }
        self.retry_later();
        self.medium_failed(io);
    }

    /// A medium that has not answered for long failed. A detach waits for it no more.
    fn time_out_medium(&mut self, io: &mut Io<'_>) {
        let limit = PATIENCE.saturating_mul(self.limits.medium_timeout_ns);
        // Reads that serve a request have a time-out of their own.
        if self.is_medium_late(limit, |pending| !matches!(pending, Pending::HitRead { .. })) {
            self.medium_failed(io);
        }
        if matches!(self.phase, Phase::Detaching(_)) {
            self.is_abandoned |= self.is_medium_late(limit, |_| true);
        }
    }

    /// Looks for a medium that failed, if it is time.
    fn retry_medium(&mut self, io: &mut Io<'_>) {
        let is_due = self.health.retry_at_ns.is_some_and(|at| self.now_ns >= at);
        let is_open = !matches!(self.phase, Phase::Detaching(_) | Phase::Detached);
        if is_due && is_open && self.health.medium == MediumState::Off && !self.health.is_checking {
            self.health.retry_at_ns = None;
            self.check_medium(io);
        }
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now_ns: u64, io: &mut Io<'_>) {
        const DAY_NS: u128 = 86_400_000_000_000;
        let passed = now_ns.saturating_sub(self.now_ns);
        self.now_ns = self.now_ns.max(now_ns);
        let daily = self.limits.budget_bytes_per_day;
        let earned = u128::from(daily) * u128::from(passed) / DAY_NS;
        self.budget = self.budget.saturating_add(earned as u64).min(daily);
        self.time_out_reads(io);
        self.time_out_medium(io);
        self.retry_medium(io);
        self.repeat_first_flush(io);
        self.want_base_if_due(io);
    }
}
