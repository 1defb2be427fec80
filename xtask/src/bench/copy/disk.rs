//! What a disk did while a program ran: its counters, ten times a second.
//!
//! `/sys/dev/block/MAJOR:MINOR/stat` counts what requests moved, at their end. A window in which
//! nothing was written is one in which the disk waited for the program.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::Error;

/// The length of a window.
pub(super) const WINDOW: Duration = Duration::from_millis(100);
const SECTOR_BYTES: u64 = 512;
/// Fewer in a window are those of the file system.
const FEW_BYTES: u64 = 64 << 10;
/// The field of the sectors that were written, from 0.
const WRITTEN_FIELD: usize = 6;

/// What had been written at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DiskSample {
    /// Seconds since the start.
    pub(super) at_s: f64,
    /// Bytes since the start.
    pub(super) written_bytes: u64,
}

/// A thread that reads the counters.
#[derive(Debug)]
pub(super) struct DiskWatch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<DiskSample>>,
}

impl DiskWatch {
    /// Watches the disk of the file system that holds `path`, at every `window`.
    ///
    /// # Errors
    /// Where the disk has no counters.
    pub(super) fn start(path: &str, window: Duration) -> Result<Self, Error> {
        let counters = counters_of(path)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (first, started) = (written(&counters)?, Instant::now());
        let seen = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut samples = vec![DiskSample { at_s: 0.0, written_bytes: 0 }];
            while !seen.load(Ordering::Relaxed) {
                let next = window * samples.len() as u32;
                std::thread::sleep(next.saturating_sub(started.elapsed()));
                // A disk does not go away while a file system is on it.
                let Ok(now) = written(&counters) else { break };
                let at_s = started.elapsed().as_secs_f64();
                samples.push(DiskSample { at_s, written_bytes: now - first });
            }
            samples
        });
        Ok(Self { is_over, thread })
    }

    /// What it saw.
    pub(super) fn end(self) -> Vec<DiskSample> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// The share of windows, in percent, in which nothing was written. The last window is left out:
/// the program ended in it.
pub(super) fn idle_windows(samples: &[DiskSample]) -> f64 {
    let pairs: Vec<_> = samples.windows(2).collect();
    let whole = &pairs[..pairs.len().saturating_sub(1)];
    let idle = whole.iter().filter(|pair| pair[0].written_bytes == pair[1].written_bytes);
    100.0 * idle.count() as f64 / whole.len().max(1) as f64
}

/// The second from which on the disk writes no more than a few blocks of its own.
pub(super) fn quiet_at(samples: &[DiskSample]) -> f64 {
    let written = |pair: &&[DiskSample]| pair[1].written_bytes - pair[0].written_bytes;
    let last = samples.windows(2).rev().find(|pair| written(pair) >= FEW_BYTES);
    last.map_or(0.0, |pair| pair[1].at_s)
}

/// The bytes that were written by `at_s`, between two samples in proportion.
pub(super) fn written_by(samples: &[DiskSample], at_s: f64) -> f64 {
    let after = samples.iter().position(|sample| sample.at_s >= at_s);
    let Some(after) = after else {
        return samples.last().map_or(0.0, |last| last.written_bytes as f64);
    };
    let Some(before) = after.checked_sub(1) else { return 0.0 };
    let (before, after) = (samples[before], samples[after]);
    let part = (at_s - before.at_s) / (after.at_s - before.at_s).max(1e-9);
    let grown = (after.written_bytes - before.written_bytes) as f64;
    before.written_bytes as f64 + grown * part
}

/// The disk's number as `7:0`, of the file system that holds `path`.
pub(super) fn number_of(path: &str) -> Result<String, Error> {
    let device = fs::metadata(path).map_err(Error::io("examine", Path::new(path)))?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    Ok(format!("{major}:{minor}"))
}

fn counters_of(path: &str) -> Result<String, Error> {
    Ok(format!("/sys/dev/block/{}/stat", number_of(path)?))
}

fn written(counters: &str) -> Result<u64, Error> {
    let text = fs::read_to_string(counters).map_err(Error::io("read", Path::new(counters)))?;
    let sectors = text.split_whitespace().nth(WRITTEN_FIELD).and_then(|field| field.parse().ok());
    let malformed = || Error::Malformed { what: "the counters of a disk", why: text.clone() };
    let sectors: u64 = sectors.ok_or_else(malformed)?;
    Ok(sectors * SECTOR_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(written: &[u64]) -> Vec<DiskSample> {
        let at = |(index, bytes): (usize, &u64)| DiskSample {
            at_s: index as f64 / 10.0,
            written_bytes: *bytes,
        };
        written.iter().enumerate().map(at).collect()
    }

    #[test]
    fn windows_without_a_write_are_idle_but_for_the_last() {
        assert_eq!(idle_windows(&samples(&[0, 0, 5, 5, 9, 9])), 50.0);
        assert_eq!(idle_windows(&samples(&[0, 1, 2, 2])), 0.0);
        assert_eq!(idle_windows(&samples(&[0])), 0.0);
    }

    #[test]
    fn a_disk_is_quiet_after_the_last_window_with_more_than_a_few_blocks() {
        let samples = samples(&[0, FEW_BYTES, 2 * FEW_BYTES, 2 * FEW_BYTES + 4096]);
        assert_eq!(quiet_at(&samples), 0.2);
        assert_eq!(quiet_at(&samples[..1]), 0.0);
    }

    #[test]
    fn bytes_between_two_samples_are_in_proportion() {
        let samples = samples(&[0, 100, 100]);
        assert_eq!(written_by(&samples, 0.05), 50.0);
        assert_eq!(written_by(&samples, 0.15), 100.0);
        assert_eq!(written_by(&samples, 9.0), 100.0);
        assert_eq!(written_by(&samples, 0.0), 0.0);
    }
}
