//! A ring without space: it removes its oldest segment and goes on, or waits for room.
//!
//! 1. The rows in memory when a write failed are lost, and counted.
//! 2. The oldest segments are removed until one segment's share of the ring is free, then the next
//!    segment begins. That is done once until something could be written again: another writer that
//!    fills the disk would take the freed space as well, and the ring exists for its history.
//! 3. Without room it tries again each second.
//! 4. The next segment begins with what was lost, and the outcome has the sums.

use super::{Ring, SEGMENTS, start};
use crate::sink::RecordSink;
use crate::{Error, ErrorKind, Result};
use model::recording::Span;

/// Between two tries to begin the next segment.
const TRY_NS: u64 = 1_000_000_000;

/// Samples that a failed write loses.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingSamples {
    pub(super) samples: u64,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

/// What was lost in this run.
#[derive(Debug)]
pub(super) struct Outages {
    now: Option<Outage>,
    samples: u64,
    lost_ns: u64,
    /// Whether something was written since segments were removed for lack of space.
    may_remove: bool,
    why: String,
    news: Option<String>,
    is_reported: bool,
}

/// Samples that are being lost.
#[derive(Debug)]
struct Outage {
    since_ns: u64,
    samples: u64,
    tried_ns: Option<u64>,
}

impl Default for Outages {
    fn default() -> Self {
        Self {
            now: None,
            samples: 0,
            lost_ns: 0,
            may_remove: true,
            why: String::new(),
            news: None,
            is_reported: false,
        }
    }
}

impl Outages {
    /// Notes that something was written.
    pub(super) fn has_gained(&mut self) {
        self.may_remove = true;
    }

    /// Samples that were lost until `now_ns`, and for how long nothing was kept.
    pub(super) fn lost(&self, now_ns: u64) -> (u64, u64) {
        let now = self.now.as_ref();
        let since = now.map_or(0, |now| now_ns.saturating_sub(now.since_ns));
        let samples = now.map_or(0, |now| now.samples);
        (self.samples + samples, self.lost_ns + since)
    }

    /// The first lack of space of this run, for the user; given once.
    pub(super) fn news(&mut self) -> Option<String> {
        self.news.take()
    }

    /// Why nothing could be written the last time.
    pub(super) fn why(&self) -> String {
        self.why.clone()
    }
}

/// Whether an error is one that room mends.
pub(super) fn is_no_space(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::NoSpace | ErrorKind::FileTooLarge)
}

impl Ring {
    /// The samples that a write at `now_ns` loses if it fails, its own included.
    pub(super) fn held(&self, now_ns: u64) -> PendingSamples {
        let held = self.current.as_ref().map(|current| current.writer.held());
        let (samples, first_ns) = held.unwrap_or_default();
        let first_ns = first_ns.map_or(now_ns, |at_ns| at_ns.saturating_add(self.base_ns));
        PendingSamples { samples: samples + 1, first_ns, last_ns: now_ns.max(first_ns) }
    }

    /// A write failed for lack of space: what was held is lost, and the ring goes on if it can.
    pub(super) fn lose(&mut self, error: &Error, held: PendingSamples, now_ns: u64) -> Result<()> {
        let is_empty = self.end_segment();
        if error.kind == ErrorKind::FileTooLarge && is_empty {
            // Not even one chunk may be written: no segment of any size would do.
            return Err(
                Error::new(error.kind, "record to", error.source.to_string()).at(&self.path)
            );
        }
        self.outages.why = error.source.to_string();
        self.outages.now =
            Some(Outage { since_ns: held.first_ns, samples: held.samples, tried_ns: None });
        if !self.outages.is_reported {
            self.outages.is_reported = true;
            let why = &self.outages.why;
            self.outages.news = Some(format!(
                "{}: {why}: samples are lost until there is room",
                self.path.display()
            ));
        }
        if error.kind == ErrorKind::NoSpace {
            self.make_room()?;
        }
        self.begin_again(now_ns).map(drop)
    }

    /// Tries to go on, at most once a second; otherwise the sample at `now_ns` is lost, too.
    pub(super) fn resume(&mut self, now_ns: u64) -> Result<bool> {
        let tried_ns = self.outages.now.as_ref().and_then(|now| now.tried_ns);
        let is_due = tried_ns.is_none_or(|at_ns| now_ns.saturating_sub(at_ns) >= TRY_NS);
        if is_due && self.begin_again(now_ns)? {
            return Ok(true);
        }
        if let Some(now) = &mut self.outages.now {
            now.samples += 1;
        }
        Ok(false)
    }

    /// Ends the segment whose write failed behind its last whole chunk; whether it held nothing,
    /// and is gone.
    fn end_segment(&mut self) -> bool {
        let Some(current) = &mut self.current else {
            return false;
        };
        // What cannot be cut is cut by the reader.
        let _ = current.writer.cut_to_whole();
        if current.writer.bytes() > current.empty_bytes {
            self.close();
            return false;
        }
        // Nothing is in it; what cannot be removed does no harm.
        let _ = self.directory.remove(&current.name);
        self.current = None;
        true
    }

    /// Removes the oldest segments until one segment's share is free.
    fn make_room(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.outages.may_remove) {
            return Ok(());
        }
        let mut freed_bytes = 0;
        while freed_bytes < self.keep_bytes / SEGMENTS && !self.closed.is_empty() {
            freed_bytes += self.remove_oldest()?;
        }
        Ok(())
    }

    /// Begins the next segment; whether there was room.
    fn begin_again(&mut self, now_ns: u64) -> Result<bool> {
        let base_before_ns = std::mem::replace(&mut self.base_ns, now_ns);
        let begun = start(&self.directory, &self.rebased(&self.facts));
        let mut current = match begun {
            Ok(current) => current,
            Err(error) => {
                self.base_ns = base_before_ns;
                if let Some(why) = self.loss() {
                    return Err(Error::new(ErrorKind::Failed, "record to", why).at(&self.path));
                }
                if !is_no_space(&error) {
                    return Err(error);
                }
                if let Some(now) = &mut self.outages.now {
                    now.tried_ns = Some(now_ns);
                }
                return Ok(false);
            }
        };
        if let Some(outage) = self.outages.now.take() {
            let lost_ns = now_ns.saturating_sub(outage.since_ns);
            self.outages.samples += outage.samples;
            self.outages.lost_ns += lost_ns;
            // It only holds it: written with the first samples.
            current.writer.span(&Span {
                kind: "gap".to_owned(),
                text: lost_text(outage.samples, lost_ns, &self.outages.why),
                start_ns: 0,
                end_ns: 0,
            })?;
        }
        self.current = Some(current);
        Ok(true)
    }
}

fn lost_text(samples: u64, lost_ns: u64, why: &str) -> String {
    let noun = if samples == 1 { "sample" } else { "samples" };
    let seconds = lost_ns as f64 / 1e9;
    format!("{samples} {noun} in {seconds:.1} s were lost: {why}")
}
