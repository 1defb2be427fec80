//! Detaching: what is open is written, everything is flushed, and a last list proves what is fresh.
//!
//! Each step begins when nothing is under way. A step that fails leaves the journal as after a
//! crash, which drops no more than that does.

use model::engine::{Event, IoResult};
use policy::eviction::LogQueue;

use crate::attach::{Cache, Io, Phase, report};
use crate::marks::JournalTrust;

/// What is done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DetachStep {
    /// The open segments are written.
    Close,
    /// The medium is flushed.
    FlushMedium,
    /// The backing device is flushed.
    FlushBacking,
    /// That is under way.
    Flushing,
    /// The last list is written.
    List,
    /// Nothing is listed: the recovery had not ended.
    Unproved,
    /// That is under way.
    Listing,
}

impl Cache {
    pub(crate) fn begin_detach(&mut self) {
        match self.phase {
            Phase::Running => self.phase = Phase::Detaching(DetachStep::Close),
            Phase::Starting | Phase::Recovering(_) => {
                self.phase = Phase::Detaching(DetachStep::Unproved);
            }
            Phase::Detaching(_) | Phase::Detached => {}
        }
    }

    /// Does the next step if nothing is under way.
    pub(crate) fn drive_detach(&mut self, io: &mut Io<'_>) {
        loop {
            let Phase::Detaching(step) = self.phase else { return };
            let is_idle = self.is_quiet() && self.waiting.is_empty();
            if !is_idle || !self.journal.is_idle() {
                return;
            }
            let is_proved = step != DetachStep::Unproved && !self.is_abandoned;
            if !is_proved || self.journal.trust() != JournalTrust::Whole {
                return self.end_detach(false, io);
            }
            let next = match step {
                DetachStep::Close => {
                    self.reclaim = None;
                    self.close(LogQueue::Small, io);
                    self.close(LogQueue::Main, io);
                    DetachStep::FlushMedium
                }
                DetachStep::FlushMedium => {
                    if self.is_on() {
                        self.flush_medium(io);
                    }
                    DetachStep::FlushBacking
                }
                DetachStep::FlushBacking => {
                    self.flush_backing(None, io);
                    DetachStep::Flushing
                }
                DetachStep::Flushing | DetachStep::Listing | DetachStep::Unproved => return,
                DetachStep::List if !self.can_prove => return self.end_detach(false, io),
                DetachStep::List => {
                    self.journal.wants_base = true;
                    self.journal.is_last = true;
                    DetachStep::Listing
                }
            };
            self.phase = Phase::Detaching(next);
            if next == DetachStep::Listing {
                return;
            }
        }
    }

    /// A flush of the backing device that no request asked for has ended.
    pub(crate) fn own_flush_ended(&mut self, result: IoResult, io: &mut Io<'_>) {
        self.is_own_flush_sent = false;
        if self.phase == Phase::Detaching(DetachStep::Flushing) {
            match result {
                Ok(()) => self.phase = Phase::Detaching(DetachStep::List),
                Err(_) => self.end_detach(false, io),
            }
        }
    }

    /// What the disk still held in its own cache at the start must be durable before anything of it
    /// is cached: without that, a flush is tried again.
    pub(crate) fn repeat_first_flush(&mut self, io: &mut Io<'_>) {
        let is_open = !matches!(self.phase, Phase::Detaching(_) | Phase::Detached);
        if is_open && !self.regions.has_flushed() && !self.is_own_flush_sent {
            self.is_own_flush_sent = true;
            self.flush_backing(None, io);
        }
    }

    pub(crate) fn end_detach(&mut self, is_proved: bool, io: &mut Io<'_>) {
        self.phase = Phase::Detached;
        report(Event::Detached { is_proved }, io);
    }
}
