//! A running copy, judged by its last seconds: snapshots of its gauges in, a [`TransferWindow`] and
//! its verdict out.
//!
//! The caller has the clock and takes a snapshot as often as it draws. A few seconds are kept, and
//! the best second of either side as what that side can, unless a survey says it.

use super::{KnownRate, RateSource, TransferSide, TransferVerdict, TransferWindow, transfer_limit};
use model::CopyGauges;
use std::collections::VecDeque;

/// How much of the past a verdict is of. Picked: long enough that a single slow request does not
/// turn it, short enough that a person sees a change.
const WINDOW_NS: u64 = 5_000_000_000;

/// The best rate is that of a stretch of at least this length.
const BEST_NS: u64 = 1_000_000_000;

/// Before so much was seen the best second is nearly all of it and says nothing.
const LEAST_FOR_BEST_NS: u64 = 3_000_000_000;

/// What the gauges said at one instant.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    at_ns: u64,
    read_bytes: u64,
    written_bytes: u64,
    files: Option<u64>,
    readers_waited_ns: Option<u64>,
    writers_waited_ns: Option<u64>,
    held_back_ns: Option<u64>,
    cpu_ns: Option<u64>,
    read_depth: Option<u64>,
    write_depth: Option<u64>,
}

/// Judges a running copy.
#[derive(Debug, Default)]
pub struct TransferMeter {
    /// Oldest first; at least two once there are two.
    snapshots: VecDeque<Snapshot>,
    started_ns: Option<u64>,
    /// Of reads and writes, bytes a second.
    best: [f64; 2],
    surveyed: [Option<f64>; 2],
    threads: u32,
    is_one_device: bool,
    /// Constants of the copy, as they were last.
    limits: [Option<u64>; 3],
}

impl TransferMeter {
    /// For a copy by so many threads (0 if unknown); `is_one_device` if source and target share
    /// one.
    #[must_use]
    pub fn new(threads: u32, is_one_device: bool) -> Self {
        Self { threads, is_one_device, ..Self::default() }
    }

    /// With what a survey measured of the source and of the target, bytes a second.
    #[must_use]
    pub fn surveyed(self, source: Option<f64>, target: Option<f64>) -> Self {
        Self { surveyed: [source, target], ..self }
    }

    /// Notes what the gauges say now; times never run backwards.
    pub fn take(&mut self, at_ns: u64, gauges: &CopyGauges) {
        self.started_ns.get_or_insert(at_ns);
        self.limits = [&gauges.read_depth_limit, &gauges.write_depth_limit, &gauges.rate_limit]
            .map(|it| it.get());
        self.snapshots.push_back(Snapshot {
            at_ns,
            read_bytes: gauges.read_bytes.get().unwrap_or(0),
            written_bytes: gauges.written_bytes.get().unwrap_or(0),
            files: gauges.files_done.get(),
            readers_waited_ns: gauges.readers_waited_ns.get(),
            writers_waited_ns: gauges.writers_waited_ns.get(),
            held_back_ns: gauges.held_back_ns.get(),
            cpu_ns: gauges.cpu_ns.get(),
            read_depth: gauges.read_depth.get(),
            write_depth: gauges.write_depth.get(),
        });
        let oldest_ns = at_ns.saturating_sub(WINDOW_NS);
        while self.snapshots.get(1).is_some_and(|next| next.at_ns <= oldest_ns) {
            self.snapshots.pop_front();
        }
        self.note_best();
    }

    /// The last seconds; empty before the second snapshot.
    #[must_use]
    pub fn window(&self) -> TransferWindow {
        let (Some(first), Some(last)) = (self.snapshots.front(), self.snapshots.back()) else {
            return TransferWindow::default();
        };
        let grown = |value: fn(&Snapshot) -> Option<u64>| {
            value(last).map(|now| now.saturating_sub(value(first).unwrap_or(0)))
        };
        let mean = |value: fn(&Snapshot) -> Option<u64>| {
            let values: Vec<u64> = self.snapshots.iter().filter_map(value).collect();
            let sum: f64 = values.iter().map(|value| *value as f64).sum();
            (!values.is_empty()).then(|| sum / values.len() as f64)
        };
        let [read_limit, write_limit, rate_limit] = self.limits;
        TransferWindow {
            ns: last.at_ns - first.at_ns,
            read: TransferSide {
                bytes: last.read_bytes.saturating_sub(first.read_bytes),
                waited_ns: grown(|it| it.readers_waited_ns),
                depth: mean(|it| it.read_depth),
                depth_limit: read_limit,
                known: self.known(0),
            },
            write: TransferSide {
                bytes: last.written_bytes.saturating_sub(first.written_bytes),
                waited_ns: grown(|it| it.writers_waited_ns),
                depth: mean(|it| it.write_depth),
                depth_limit: write_limit,
                known: self.known(1),
            },
            files: grown(|it| it.files),
            cpu_ns: grown(|it| it.cpu_ns),
            threads: self.threads,
            held_back_ns: grown(|it| it.held_back_ns),
            rate_limit: rate_limit.map(|rate| rate as f64),
            is_one_device: self.is_one_device,
        }
    }

    /// What limits the copy now.
    #[must_use]
    pub fn verdict(&self) -> TransferVerdict {
        transfer_limit(&self.window())
    }

    /// Compares the last second with the best one.
    fn note_best(&mut self) {
        let Some(last) = self.snapshots.back() else { return };
        let mut earlier = self.snapshots.iter().rev();
        let Some(from) = earlier.find(|it| last.at_ns - it.at_ns >= BEST_NS) else { return };
        let seconds = (last.at_ns - from.at_ns) as f64 / 1e9;
        let rates = [
            last.read_bytes.saturating_sub(from.read_bytes),
            last.written_bytes.saturating_sub(from.written_bytes),
        ]
        .map(|bytes| bytes as f64 / seconds);
        for (best, rate) in self.best.iter_mut().zip(rates) {
            *best = best.max(rate);
        }
    }

    /// What a side can.
    fn known(&self, side: usize) -> Option<KnownRate> {
        if let Some(bytes_per_s) = self.surveyed[side] {
            return Some(KnownRate { bytes_per_s, source: RateSource::Survey });
        }
        let seen_ns = self.snapshots.back()?.at_ns - self.started_ns?;
        let bytes_per_s = self.best[side];
        (seen_ns >= LEAST_FOR_BEST_NS && bytes_per_s > 0.0)
            .then_some(KnownRate { bytes_per_s, source: RateSource::BestSeconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::TransferLimit;

    const TENTH_NS: u64 = 100_000_000;

    /// Goes on for so many tenths of a second: bytes that both sides moved in each, and how long
    /// writes waited for reads.
    fn goes_on(meter: &mut TransferMeter, gauges: &CopyGauges, tenths: u64, bytes: u64, ms: u64) {
        let now = meter.snapshots.back().map_or(0, |last| last.at_ns);
        for tenth in 1..=tenths {
            gauges.read_bytes.add(bytes);
            gauges.written_bytes.add(bytes);
            gauges.readers_waited_ns.add(0);
            gauges.writers_waited_ns.add(ms * 1_000_000);
            meter.take(now + tenth * TENTH_NS, gauges);
        }
    }

    #[test]
    fn the_verdict_is_of_the_last_seconds() {
        let (mut meter, gauges) = (TransferMeter::new(0, false), CopyGauges::default());
        meter.take(0, &gauges);
        assert_eq!(meter.verdict().sentence, "unproven: too short to judge");
        goes_on(&mut meter, &gauges, 20, 100_000_000, 90);
        let sentence = "read-bound: the source gives 1 GB/s; writes waited for it 90 % of the time";
        assert_eq!(meter.verdict().sentence, sentence);
        goes_on(&mut meter, &gauges, 40, 100_000_000, 90);
        let sentence = "read-bound: the source gives 1 GB/s, 100 % of its best seconds";
        assert_eq!(meter.verdict().sentence, sentence);
        // Half a minute later nothing waits, and nothing is left of before.
        goes_on(&mut meter, &gauges, 300, 50_000_000, 0);
        assert_eq!(meter.verdict().limit, TransferLimit::Unproven);
        assert_eq!(meter.window().ns, WINDOW_NS);
        assert!(meter.snapshots.len() <= 51, "{}", meter.snapshots.len());
        goes_on(&mut meter, &gauges, 60, 50_000_000, 90);
        let sentence = meter.verdict().sentence;
        assert!(
            sentence.contains("only 500 MB/s, 50 % of its best seconds (1 GB/s)"),
            "{sentence}"
        );
    }

    #[test]
    fn a_survey_goes_before_the_best_second() {
        let meter = TransferMeter::new(2, true).surveyed(Some(2e9), None);
        let (mut meter, gauges) = (meter, CopyGauges::default());
        gauges.read_depth.set(4);
        gauges.read_depth_limit.set(32);
        goes_on(&mut meter, &gauges, 60, 100_000_000, 90);
        let sentence = "read-bound: the source gives only 1 GB/s, 50 % of what it can (2 GB/s); \
                        writes waited for it 90 % of the time and 4 of 32 requests were in flight";
        assert_eq!(meter.verdict().sentence, sentence);
        assert!(meter.window().is_one_device && meter.window().threads == 2);
    }

    #[test]
    fn what_is_absent_stays_absent() {
        let (mut meter, gauges) = (TransferMeter::default(), CopyGauges::default());
        assert_eq!(meter.window(), TransferWindow::default());
        meter.take(0, &gauges);
        meter.take(TENTH_NS, &gauges);
        let window = meter.window();
        assert_eq!((window.cpu_ns, window.held_back_ns, window.read.waited_ns), (None, None, None));
        assert_eq!((window.files, window.read.depth, window.read.known), (Some(0), None, None));
    }
}
