//! Whether the medium is used: errors, time-outs, its absence and its return.
//!
//! A failed read of the medium is a miss, a failed write loses what it would have cached. The third
//! failure within a minute turns the cache off until its medium returns. Frames stay in the index
//! meanwhile, and writes drop them there as always; on return the header is compared, and each
//! frame proves itself when it is read.

use model::engine::{CacheOff, Device, Event, IoResult, Operation};

use crate::attach::{Cache, Io, Pending, Phase, first, report};
use crate::format::{self, BLOCK_BYTES};

/// Failures within [`WINDOW_NS`] that turn the cache off.
const FAILURES: usize = 3;

/// A minute.
const WINDOW_NS: u64 = 60_000_000_000;

/// Whether the medium is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Power {
    /// It is.
    On,
    /// It is not, until it returns.
    Off,
    /// It is not, and never again in this attach: the journal failed.
    Poisoned,
}

/// What is known of the medium.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    pub(crate) power: Power,
    /// The times of the last failures.
    failures: [Option<u64>; FAILURES],
    /// The header is being read or written.
    is_checking: bool,
    /// The journal failed, and the medium was overwritten: nothing on it will be used again.
    pub(crate) is_overwritten: bool,
    /// The journal failed, and so did overwriting the medium.
    pub(crate) is_unprovable: bool,
}

impl Health {
    pub(crate) fn new() -> Self {
        Self {
            power: Power::Off,
            failures: [None; FAILURES],
            is_checking: false,
            is_overwritten: false,
            is_unprovable: false,
        }
    }
}

impl Cache {
    pub(crate) fn is_on(&self) -> bool {
        self.health.power == Power::On
    }

    /// The medium failed, or took too long.
    pub(crate) fn medium_failed(&mut self, io: &mut Io<'_>) {
        self.counters.medium_errors += 1;
        if !self.is_on() {
            return;
        }
        self.health.failures.rotate_left(1);
        self.health.failures[FAILURES - 1] = Some(self.now_ns);
        let oldest = self.health.failures[0];
        if oldest.is_some_and(|at| self.now_ns.saturating_sub(at) <= WINDOW_NS) {
            self.turn_off(CacheOff::Errors, io);
        }
    }

    /// A flush or a write of the medium ended, on which nothing depends.
    pub(crate) fn medium_ended(&mut self, result: IoResult, io: &mut Io<'_>) {
        if result.is_err() {
            self.medium_failed(io);
        }
    }

    fn turn_off(&mut self, why: CacheOff, io: &mut Io<'_>) {
        if self.health.power != Power::Poisoned {
            self.health.power = Power::Off;
        }
        report(Event::CacheOff { why }, io);
    }

    fn turn_on(&mut self, io: &mut Io<'_>) {
        self.health.power = Power::On;
        self.health.failures = [None; FAILURES];
        if self.phase == Phase::Starting && self.start.cold().is_none() {
            self.phase = Phase::Recovering(0);
        } else if self.phase == Phase::Starting {
            self.free.extend(0..self.geometry.segments as u16);
            self.phase = Phase::Running;
        }
        report(Event::CacheOn, io);
    }

    /// The medium is there, again or for the first time.
    pub(crate) fn medium_returned(&mut self, io: &mut Io<'_>) {
        let is_closed = matches!(self.phase, Phase::Detaching(_) | Phase::Detached);
        if self.health.power != Power::Off || self.health.is_checking || is_closed {
            return;
        }
        if self.phase == Phase::Starting && self.start.cold().is_some() {
            self.write_header(io);
        } else {
            self.read_header(io);
        }
    }

    pub(crate) fn read_header(&mut self, io: &mut Io<'_>) {
        self.health.is_checking = true;
        let data = first(self.header_buffer, BLOCK_BYTES);
        self.operate(Device::Cache, Operation::Read { offset: 0, data }, Pending::HeaderRead, io);
    }

    pub(crate) fn header_read_ended(&mut self, result: IoResult, io: &mut Io<'_>) {
        self.health.is_checking = false;
        if self.health.power == Power::Poisoned {
            return self.overwrite_header(io);
        }
        if result.is_err() {
            return self.medium_failed(io);
        }
        let expected = format::header(&self.geometry, &self.journal.base.cache_id);
        if io.buffers.bytes(first(self.header_buffer, BLOCK_BYTES)) == expected {
            self.turn_on(io);
        } else {
            self.turn_off(CacheOff::AnotherMedium, io);
        }
    }

    /// Makes the medium one of this cache, once the journal names it.
    pub(crate) fn write_header(&mut self, io: &mut Io<'_>) {
        if !self.journal.is_attached || self.health.is_checking || self.is_on() {
            return;
        }
        let header = format::header(&self.geometry, &self.journal.base.cache_id);
        self.put_header(&header, false, io);
    }

    /// Makes sure that no medium is taken for that of this cache again.
    fn overwrite_header(&mut self, io: &mut Io<'_>) {
        self.put_header(&[0; BLOCK_BYTES as usize], true, io);
    }

    fn put_header(&mut self, header: &[u8], is_poison: bool, io: &mut Io<'_>) {
        self.health.is_checking = true;
        let data = first(self.header_buffer, BLOCK_BYTES);
        io.buffers.bytes_mut(data).copy_from_slice(header);
        let pending = Pending::HeaderWrite { is_poison };
        self.operate(Device::Cache, Operation::Write { offset: 0, data }, pending, io);
    }

    pub(crate) fn header_write_ended(
        &mut self,
        is_poison: bool,
        result: IoResult,
        io: &mut Io<'_>,
    ) {
        self.health.is_checking = false;
        match (is_poison, result) {
            (true, Ok(())) => {
                self.operate(Device::Cache, Operation::Flush, Pending::PoisonFlush, io);
            }
            (true, Err(_)) => self.poison_ended(result, io),
            (false, _) if self.health.power == Power::Poisoned => self.overwrite_header(io),
            (false, Ok(())) => self.turn_on(io),
            (false, Err(_)) => self.medium_failed(io),
        }
    }

    /// The journal failed: nothing more can be marked. What is cached is made unusable, and only
    /// then writes go on without marks.
    pub(crate) fn journal_failed(&mut self, io: &mut Io<'_>) {
        if self.health.power == Power::Poisoned {
            return;
        }
        self.health.power = Power::Poisoned;
        self.turn_off(CacheOff::Journal, io);
        if !self.health.is_checking {
            self.overwrite_header(io);
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
        self.want_base_if_due();
    }
}
