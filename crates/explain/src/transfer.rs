//! What limits a transfer: plain numbers of one window in, one sentence with its figures out.
//!
//! A transfer has two sides with buffers between them. Where the buffers are empty, writers wait
//! for readers, so the source limits; where they are full, readers wait for writers, so the target
//! does. The first of these that holds is the answer:
//!
//! 1. The copy held itself back: its allowance, by a limit or as background work.
//! 2. One side waited for the other for much of the time, and the other did not.
//! 3. Both waited in turn: the two sides did not overlap.
//! 4. Neither waited: the processor was busy, or the files are small.
//!
//! All else is `Unproven`, with its figures: of the last seconds as well as of a whole recording.

mod meter;

use crate::wording::{count, percent};
pub use meter::TransferMeter;
use model::Evidence;
use model::bytes::{show_rate, three_digits};
use model::duration::show_ns;
use serde::{Deserialize, Serialize};

/// From this share of the window on a wait says something. Picked: below a quarter the other three
/// quarters need another reason.
const MUCH: f64 = 0.25;

/// One side waits and the other does not where one wait is so many times the other. Picked: a side
/// that waits for 60 % beside one that waits for 20 % is the faster one.
const CLEARLY: f64 = 3.0;

/// A side gives what it can from this share of its known rate on.
const NEARLY_ALL: f64 = 0.9;

/// More than a side can: its known rate is too low to compare with.
const BEYOND: f64 = 1.15;

/// Threads that work are busy from this share of their time on.
const BUSY: f64 = 0.9;

/// Files that are smaller on average cost more to make than to fill. Picked: at 64 KiB a disk of
/// 1 GB/s writes 16,000 files a second, more than a file system makes.
const SMALL_FILE_BYTES: f64 = 65_536.0;

/// A shorter window holds too few requests to judge.
const LEAST_WINDOW_NS: u64 = 200_000_000;

/// Where a side's rate is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateSource {
    /// A survey of this machine measured it.
    Survey,
    /// The best seconds of this transfer.
    BestSeconds,
}

/// What one side of a transfer can, bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownRate {
    /// The rate.
    pub bytes_per_s: f64,
    /// Where it is known from.
    pub source: RateSource,
}

/// What one side did in a window; what is not known is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransferSide {
    /// Bytes that it moved.
    pub bytes: u64,
    /// Time that it waited for the other side.
    pub waited_ns: Option<u64>,
    /// Requests that it had in flight, on average.
    pub depth: Option<f64>,
    /// The most requests that it may have in flight.
    pub depth_limit: Option<u64>,
    /// What it can.
    pub known: Option<KnownRate>,
}

/// One window of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransferWindow {
    /// Its length.
    pub ns: u64,
    /// The source.
    pub read: TransferSide,
    /// The target.
    pub write: TransferSide,
    /// Files that were completed.
    pub files: Option<u64>,
    /// Processor time of the transfer's threads.
    pub cpu_ns: Option<u64>,
    /// How many of these threads may run at once; 0 if unknown.
    pub threads: u32,
    /// Time that it waited for its allowance.
    pub held_back_ns: Option<u64>,
    /// The rate that the user asked for at most, bytes a second.
    pub rate_limit: Option<f64>,
    /// Whether both sides are one device.
    pub is_one_device: bool,
}

/// What limits a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferLimit {
    /// The source.
    Read,
    /// The target.
    Write,
    /// The limit that the user asked for.
    RateLimit,
    /// What background work may take.
    Background,
    /// The two sides took turns.
    Turns,
    /// The transfer's processor time.
    Processor,
    /// Making files, not moving their bytes.
    SmallFiles,
    /// Nothing that the numbers prove.
    Unproven,
}

/// What limits a transfer, in one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferVerdict {
    /// What.
    pub limit: TransferLimit,
    /// The sentence: `read-bound: the source gives 1.06 GB/s, 99 % of what it can`.
    pub sentence: String,
    /// Its figures.
    pub evidence: Vec<Evidence>,
}

/// Judges one window.
#[must_use]
pub fn transfer_limit(window: &TransferWindow) -> TransferVerdict {
    let (limit, sentence) = judge(window);
    TransferVerdict { limit, sentence, evidence: evidence(window) }
}

fn judge(window: &TransferWindow) -> (TransferLimit, String) {
    if window.ns < LEAST_WINDOW_NS {
        return unproven("too short to judge");
    }
    if window.read.bytes == 0 && window.write.bytes == 0 && window.files.unwrap_or(0) == 0 {
        return unproven("nothing was moved");
    }
    held_back(window)
        .or_else(|| by_waits(window))
        .or_else(|| without_waits(window))
        .unwrap_or_else(|| undecided(window))
}

fn unproven(why: &str) -> (TransferLimit, String) {
    (TransferLimit::Unproven, format!("unproven: {why}"))
}

/// The copy waited for its own allowance.
fn held_back(window: &TransferWindow) -> Option<(TransferLimit, String)> {
    let share = window.share(window.held_back_ns?);
    let moved = show_rate(window.rate(window.write.bytes.max(window.read.bytes)));
    if share < MUCH {
        return None;
    }
    Some(match window.rate_limit {
        Some(limit) => {
            let limit = show_rate(limit);
            let sentence = format!("held back by --limit-rate: {moved} of {limit} allowed");
            (TransferLimit::RateLimit, sentence)
        }
        None => {
            let share = percent(share);
            let why = format!("held back as background work for {share} of the time: {moved}");
            (TransferLimit::Background, why)
        }
    })
}

/// One side waited for the other, or both did in turn.
fn by_waits(window: &TransferWindow) -> Option<(TransferLimit, String)> {
    let readers = window.share(window.read.waited_ns?);
    let writers = window.share(window.write.waited_ns?);
    if writers >= MUCH && writers >= readers * CLEARLY {
        return Some(bound(window, TransferLimit::Read, writers));
    }
    if readers >= MUCH && readers >= writers * CLEARLY {
        return Some(bound(window, TransferLimit::Write, readers));
    }
    if readers < MUCH || writers < MUCH {
        return None;
    }
    let why = if window.is_one_device { ", as one device serves both" } else { "" };
    let sentence = format!(
        "the two sides took turns{why}: reads waited {} of the time, writes {}",
        percent(readers),
        percent(writers)
    );
    Some((TransferLimit::Turns, sentence))
}

/// `read-bound: the source gives 1.06 GB/s, 99 % of what it can`.
fn bound(window: &TransferWindow, limit: TransferLimit, waited: f64) -> (TransferLimit, String) {
    let (side, name, other, gives) = if limit == TransferLimit::Read {
        (window.read, "read-bound: the source", "writes waited for it", "gives")
    } else {
        (window.write, "write-bound: the target", "reads waited for it", "takes")
    };
    let rate = window.rate(side.bytes);
    let (shown, waited) = (show_rate(rate), percent(waited));
    let share = side.known.filter(|known| known.bytes_per_s > 0.0).map(|known| {
        let of = match known.source {
            RateSource::Survey => "of what it can",
            RateSource::BestSeconds => "of its best seconds",
        };
        (rate / known.bytes_per_s, of, show_rate(known.bytes_per_s))
    });
    let sentence = match share {
        Some((share, of, _)) if (NEARLY_ALL..=BEYOND).contains(&share) => {
            format!("{name} {gives} {shown}, {} {of}", percent(share.min(1.0)))
        }
        Some((share, of, known)) if share < NEARLY_ALL => {
            let depth = shallow(side).map(|depth| format!(" and {depth}")).unwrap_or_default();
            format!(
                "{name} {gives} only {shown}, {} {of} ({known}); {other} {waited} of the time{depth}",
                percent(share)
            )
        }
        _ => format!("{name} {gives} {shown}; {other} {waited} of the time"),
    };
    (limit, sentence)
}

/// `3.1 of 32 requests were in flight`, where that is less than half of what may be.
fn shallow(side: TransferSide) -> Option<String> {
    let (depth, limit) = (side.depth?, side.depth_limit?);
    let is_shallow = limit > 1 && depth < limit as f64 / 2.0;
    is_shallow.then(|| format!("{} of {limit} requests were in flight", three_digits(depth)))
}

/// Neither side waited for the other: the processor, or the making of files.
fn without_waits(window: &TransferWindow) -> Option<(TransferLimit, String)> {
    let is_waiting = |side: TransferSide| side.waited_ns.is_some_and(|ns| window.share(ns) >= MUCH);
    if is_waiting(window.read) || is_waiting(window.write) {
        return None;
    }
    let bytes = window.write.bytes.max(window.read.bytes);
    let files = window.files.filter(|files| *files > 0);
    if let Some(files) = files
        && bytes as f64 / (files as f64) < SMALL_FILE_BYTES
    {
        let per_s = count(window.rate(files).round() as u64);
        let each = window.cpu_ns.map_or_else(String::new, |ns| {
            format!(", {} of processor each", show_ns(ns as f64 / files as f64))
        });
        let sentence =
            format!("bound by the number of files, as they are small: {per_s} files/s{each}");
        return Some((TransferLimit::SmallFiles, sentence));
    }
    let busy = window.share(window.cpu_ns?) / f64::from(window.threads.max(1));
    if window.threads == 0 || busy < BUSY {
        return None;
    }
    let threads = if window.threads == 1 {
        "its thread was".to_owned()
    } else {
        format!("its {} threads were", window.threads)
    };
    let rate = show_rate(window.rate(bytes));
    let sentence =
        format!("processor-bound: {threads} busy {} of the time at {rate}", percent(busy));
    Some((TransferLimit::Processor, sentence))
}

/// What is known where it proves nothing.
fn undecided(window: &TransferWindow) -> (TransferLimit, String) {
    let rates = format!(
        "the source gives {}, the target takes {}",
        show_rate(window.rate(window.read.bytes)),
        show_rate(window.rate(window.write.bytes))
    );
    let (Some(readers), Some(writers)) = (window.read.waited_ns, window.write.waited_ns) else {
        return unproven(&format!("{rates}; which of them waits for the other was not counted"));
    };
    unproven(&format!(
        "{rates}; reads waited {} of the time, writes {}",
        percent(window.share(readers)),
        percent(window.share(writers))
    ))
}

fn evidence(window: &TransferWindow) -> Vec<Evidence> {
    let number = |name: &str, value: f64, unit: &str, series: &str| {
        Evidence::new(name, value, unit, "this program").seen_in(vec![series.to_owned()])
    };
    let wait = |name: &str, ns: Option<u64>, series: &str| {
        ns.map(|ns| number(name, window.share(ns), "ratio", series))
    };
    let (read, write) = (window.rate(window.read.bytes), window.rate(window.write.bytes));
    let mut all = vec![
        number("read", read, "bytes_per_s", "copy.read_bytes"),
        number("written", write, "bytes_per_s", "copy.written_bytes"),
    ];
    let files = window.files.map(|files| window.rate(files));
    all.extend(wait("reads waited for writes", window.read.waited_ns, "copy.readers_waited_ns"));
    all.extend(wait("writes waited for reads", window.write.waited_ns, "copy.writers_waited_ns"));
    all.extend(wait("held back", window.held_back_ns, "copy.held_back_ns"));
    all.extend(wait("processors busy", window.cpu_ns, "copy.cpu_ns"));
    all.extend(files.map(|rate| number("files", rate, "files_per_s", "copy.files_done")));
    all
}

impl TransferWindow {
    /// So much in this window, a second.
    fn rate(&self, amount: u64) -> f64 {
        amount as f64 / (self.ns.max(1) as f64 / 1e9)
    }

    /// A time as a share of the window.
    fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.ns.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Five seconds at 1 GB/s on both sides, without a wait, files of 100 MB.
    fn window() -> TransferWindow {
        let side = TransferSide { bytes: 5 * S, waited_ns: Some(0), ..TransferSide::default() };
        TransferWindow {
            ns: 5 * S,
            read: side,
            write: side,
            files: Some(50),
            cpu_ns: Some(S),
            threads: 2,
            ..TransferWindow::default()
        }
    }

    fn waits(readers_ms: u64, writers_ms: u64) -> TransferWindow {
        let mut window = window();
        window.read.waited_ns = Some(readers_ms * 1_000_000);
        window.write.waited_ns = Some(writers_ms * 1_000_000);
        window
    }

    fn knows(mut window: TransferWindow, can: f64) -> TransferWindow {
        let known = KnownRate { bytes_per_s: can, source: RateSource::Survey };
        (window.read.known, window.write.known) = (Some(known), Some(known));
        window
    }

    fn held(ms: u64, rate_limit: Option<f64>) -> TransferWindow {
        TransferWindow { held_back_ns: Some(ms * 1_000_000), rate_limit, ..window() }
    }

    fn files(files: u64, bytes: u64) -> TransferWindow {
        let mut window = window();
        (window.files, window.cpu_ns) = (Some(files), Some(240_000_000));
        (window.read.bytes, window.write.bytes) = (bytes, bytes);
        window
    }

    fn assert_all(table: &[(TransferWindow, TransferLimit, &str)]) {
        for (window, limit, sentence) in table {
            let verdict = transfer_limit(window);
            assert_eq!((verdict.limit, verdict.sentence.as_str()), (*limit, *sentence));
        }
    }

    const NO_WAITS: &str = "unproven: the source gives 1 GB/s, the target takes 1 GB/s; \
                            reads waited 0 % of the time, writes 0 %";

    #[test]
    fn the_side_that_is_waited_for_limits() {
        use TransferLimit::{Read, Unproven, Write};
        assert_all(&[
            (
                knows(waits(100, 4_000), 1.01e9),
                Read,
                "read-bound: the source gives 1 GB/s, 99 % of what it can",
            ),
            (
                waits(100, 4_000),
                Read,
                "read-bound: the source gives 1 GB/s; writes waited for it 80 % of the time",
            ),
            (
                knows(waits(4_000, 100), 1e9),
                Write,
                "write-bound: the target takes 1 GB/s, 100 % of what it can",
            ),
            // The known rate is too low: it is not spoken of.
            (
                knows(waits(4_000, 100), 0.5e9),
                Write,
                "write-bound: the target takes 1 GB/s; reads waited for it 80 % of the time",
            ),
            (
                knows(waits(0, 4_000), 2e9),
                Read,
                "read-bound: the source gives only 1 GB/s, 50 % of what it can (2 GB/s); \
                 writes waited for it 80 % of the time",
            ),
            // A quarter of the time less one millisecond.
            (
                waits(0, 1_249),
                Unproven,
                "unproven: the source gives 1 GB/s, the target takes 1 GB/s; \
                 reads waited 0 % of the time, writes 25 %",
            ),
            // The other side waited for more than a third of it: neither.
            (
                waits(1_200, 3_000),
                Unproven,
                "unproven: the source gives 1 GB/s, the target takes 1 GB/s; \
                 reads waited 24 % of the time, writes 60 %",
            ),
        ]);
    }

    #[test]
    fn turns_and_allowances_limit() {
        use TransferLimit::{Background, RateLimit, Turns, Unproven};
        let one_device = TransferWindow { is_one_device: true, ..waits(2_200, 2_500) };
        assert_all(&[
            (
                waits(2_200, 2_500),
                Turns,
                "the two sides took turns: reads waited 44 % of the time, writes 50 %",
            ),
            (
                one_device,
                Turns,
                "the two sides took turns, as one device serves both: \
                 reads waited 44 % of the time, writes 50 %",
            ),
            (
                held(2_000, Some(1e9)),
                RateLimit,
                "held back by --limit-rate: 1 GB/s of 1 GB/s allowed",
            ),
            (
                held(2_000, None),
                Background,
                "held back as background work for 40 % of the time: 1 GB/s",
            ),
            (held(1_000, Some(1e9)), Unproven, NO_WAITS),
        ]);
    }

    #[test]
    fn small_files_and_processors_limit_where_neither_side_waits() {
        use TransferLimit::{Processor, SmallFiles, Unproven};
        let busy = |cpu_ns, threads| TransferWindow { cpu_ns: Some(cpu_ns), threads, ..window() };
        assert_all(&[
            (
                files(60_000, 60_000 * 4_096),
                SmallFiles,
                "bound by the number of files, as they are small: 12,000 files/s, 4 us of processor each",
            ),
            (
                files(60_000, 60_000 * 65_536),
                Unproven,
                "unproven: the source gives 786 MB/s, the target takes 786 MB/s; \
                 reads waited 0 % of the time, writes 0 %",
            ),
            (
                busy(9 * S, 2),
                Processor,
                "processor-bound: its 2 threads were busy 90 % of the time at 1 GB/s",
            ),
            (busy(8 * S, 2), Unproven, NO_WAITS),
            (busy(9 * S, 0), Unproven, NO_WAITS),
        ]);
    }

    #[test]
    fn what_was_not_counted_proves_nothing() {
        use TransferLimit::Unproven;
        let side = |bytes| TransferSide { bytes, ..TransferSide::default() };
        let uncounted = TransferWindow { read: side(5 * S), write: side(4 * S), ..window() };
        let still = TransferWindow { ns: 5 * S, ..TransferWindow::default() };
        let short = TransferWindow { ns: 100_000_000, ..window() };
        assert_all(&[
            (
                uncounted,
                Unproven,
                "unproven: the source gives 1 GB/s, the target takes 800 MB/s; \
                 which of them waits for the other was not counted",
            ),
            (still, Unproven, "unproven: nothing was moved"),
            (short, Unproven, "unproven: too short to judge"),
        ]);
    }

    #[test]
    fn a_shallow_queue_is_named_where_the_source_gives_less_than_it_can() {
        let mut window = knows(waits(0, 4_000), 2e9);
        (window.read.depth, window.read.depth_limit) = (Some(3.06), Some(32));
        let sentence = transfer_limit(&window).sentence;
        assert!(sentence.ends_with("and 3.06 of 32 requests were in flight"), "{sentence}");
        window.read.depth = Some(16.0);
        let sentence = transfer_limit(&window).sentence;
        assert!(sentence.ends_with("80 % of the time"), "{sentence}");
    }

    #[test]
    fn absent_numbers_are_no_evidence() {
        let names = |window: &TransferWindow| -> Vec<String> {
            transfer_limit(window).evidence.into_iter().map(|number| number.name).collect()
        };
        assert_eq!(names(&TransferWindow::default()), ["read", "written"]);
        assert_eq!(names(&window()).len(), 6);
    }

    #[test]
    fn no_number_makes_it_fail() {
        let wild = TransferWindow {
            ns: u64::MAX,
            cpu_ns: Some(u64::MAX),
            rate_limit: Some(f64::NAN),
            held_back_ns: Some(u64::MAX),
            ..knows(waits(u64::MAX / 2_000_000, 0), 0.0)
        };
        assert!(!transfer_limit(&wild).sentence.is_empty());
        assert!(!transfer_limit(&TransferWindow::default()).sentence.is_empty());
    }
}
