//! Why the numbers deserve less trust than usual: what the recorder lost or missed, what
//! is wrong with the file. Apart from them what changes no verdict: what this kernel never reports,
//! and small differences between clocks. Sentences; nothing is judged here.

use super::accounting::Difference;
use super::{View, is_in_kernel};
use crate::wording::{count, percent};
use model::duration::show_ns;

/// Samples that came late are worth a word above this share of all: below it, single
/// pauses of the host look alike.
const LATE_SHARE: f64 = 0.1;

/// What is said of a recording without an end, which one that is being made has not either.
pub const RECORDING_WAS_CUT: &str =
    "the recording was cut: what came after its last sample is lost";

/// The share of wake-ups, and of ends of requests, that may be untold without a word: a few are
/// under way at either end.
const UNTOLD_SHARE: f64 = 0.1;

/// And so many of a short recording.
const UNTOLD_LEAST: u64 = 100;

/// All doubts about what `view` shows, the worst first: those that change a verdict, and those that
/// do not, because this kernel always has them or because they are small.
pub(super) fn doubts(view: &View, differences: &[Difference]) -> (Vec<String>, Vec<String>) {
    let mut doubts: Vec<String> = Vec::new();
    doubts.extend(file(view));
    doubts.extend(losses(view));
    doubts.extend(spans(view));
    doubts.extend(gaps(view));
    doubts.extend(window(view));
    let mut usual = unreported(view);
    usual.extend(late(view));
    usual.extend(without_charges(view));
    usual.extend(differences.iter().map(Difference::words));
    (doubts, usual)
}

/// Those doubts without what was lost, for an answer that counts the lost ones itself.
pub(crate) fn besides_losses(view: &View) -> Vec<String> {
    [file(view), spans(view), gaps(view).into_iter().collect()].concat()
}

fn file(view: &View) -> Vec<String> {
    let recording = view.recording();
    let mut texts: Vec<String> = recording.damage.clone();
    match &recording.outcome {
        None if recording.is_growing => {}
        None => texts.push(RECORDING_WAS_CUT.to_owned()),
        Some(outcome) => {
            let why = outcome.stopped_early.as_ref();
            texts.extend(why.map(|why| format!("the recorder stopped before the end: {why}")));
        }
    }
    texts
}

fn losses(view: &View) -> Vec<String> {
    let outcome = view.recording().outcome.clone().unwrap_or_default();
    let mut texts = Vec::new();
    let lost =
        if view.is_whole() { outcome.lost_events } else { view.sum("trace.lost").unwrap_or(0) };
    if outcome.lost_exits > 0 {
        texts.push(format!(
            "the ends of {} threads were lost: what was charged to them is missing",
            count(outcome.lost_exits)
        ));
    }
    if lost > 0 {
        texts.push(format!(
            "{} kernel events were lost: thread states after them were looked up again",
            count(lost)
        ));
    }
    let (first, last) = view.samples();
    let taken = u64::from(last.saturating_sub(first)) + 1;
    let missed = outcome.missed_samples;
    if missed > 0 && view.is_whole() {
        let due = count(taken.saturating_add(missed));
        texts.push(format!("{} of {due} samples were missed", count(missed)));
    } else if missed > 0 {
        let missed = count(missed);
        texts.push(format!("{missed} samples were missed, here or elsewhere in the recording"));
    }
    texts
}

/// A late sample is marked as such, and counts no less.
fn late(view: &View) -> Option<String> {
    let (first, last) = view.samples();
    let taken = u64::from(last.saturating_sub(first)) + 1;
    let late = view.growth("own.ticks_late").unwrap_or(0);
    let share = late as f64 / taken as f64;
    (share > LATE_SHARE).then(|| format!("{} of the samples came late", percent(share.min(1.0))))
}

/// What no part of a recording has.
fn without_charges(view: &View) -> Option<String> {
    let text = "delay accounting covers the whole recording only: this window is known by events \
                and samples";
    (!view.is_whole() && !view.recording().tasks.is_empty()).then(|| text.to_owned())
}

/// Events that the kernel should have sent and did not. Some kernels lose what happens in the idle
/// task of a processor, without counting it among the lost. Programs inside the kernel see all.
fn unreported(view: &View) -> Vec<String> {
    if is_in_kernel(view) {
        return Vec::new();
    }
    let sum = |name: &str| view.sum(name).unwrap_or(0);
    let matters = |unreported: u64, all: u64| {
        unreported >= UNTOLD_LEAST && unreported as f64 > all as f64 * UNTOLD_SHARE
    };
    let mut texts = Vec::new();
    let issued = sum("trace.block.issued");
    let ends = ["reads", "writes", "flushes"].map(|name| sum(&format!("trace.block.{name}")));
    let done = ends.into_iter().fold(0, u64::saturating_add);
    if matters(issued.saturating_sub(done), issued) {
        texts.push(format!(
            "{} requests were issued and {} completions were seen: the kernel lost the others, so the \
             figures of a disk are its own counters'",
            count(issued),
            count(done)
        ));
    }
    let (waits, woken) = (sum("trace.sched.waits"), sum("trace.sched.untold_wakeups"));
    if matters(woken, waits) {
        texts.push(format!(
            "the wake-ups after {} of {} waits were lost: what these waited for a processor \
             counts as wait",
            count(woken),
            count(waits)
        ));
    }
    texts
}

/// What happened while it was recorded, in the recorder's own words.
fn spans(view: &View) -> Vec<String> {
    let (from, to) = (view.from_ns(), view.to_ns());
    let mut texts = Vec::new();
    for span in &view.recording().spans {
        let doubted = match span.kind.as_str() {
            "events_stopped" | "group_changed" => span.start_ns <= to,
            "clock_jump" => span.start_ns <= to && span.end_ns >= from,
            _ => false,
        };
        if doubted && !texts.contains(&span.text) {
            texts.push(span.text.clone());
        }
    }
    texts.extend(paused(view));
    texts
}

/// How long events were not followed, because they came too fast.
fn paused(view: &View) -> Option<String> {
    let (from, to) = (view.from_ns(), view.to_ns());
    let pauses = view.recording().spans.iter().filter(|span| span.kind == "events_paused");
    let inside = pauses.map(|span| span.end_ns.min(to).saturating_sub(span.start_ns.max(from)));
    let paused_ns = inside.fold(0, u64::saturating_add);
    let span = view.events_gap().filter(|span| span.kind == "events_paused")?;
    (paused_ns > 0).then(|| {
        let [paused, whole] = [paused_ns, view.wall_ns()].map(|ns| show_ns(ns as f64));
        format!("{}, and were not followed for {paused} of these {whole}", span.text)
    })
}

/// How much of a flight recorder's time is missing.
fn gaps(view: &View) -> Option<String> {
    let missing_ns = missing_ns(view);
    (missing_ns > 0).then(|| {
        let whole = show_ns(view.wall_ns() as f64);
        let missing = show_ns(missing_ns as f64);
        format!("no recorder ran for {missing} of these {whole}")
    })
}

/// How long no recorder ran in it.
pub(crate) fn missing_ns(view: &View) -> u64 {
    let (from, to) = (view.from_ns(), view.to_ns());
    let gaps = view.recording().spans.iter().filter(|span| span.kind == "gap");
    let inside = gaps.map(|gap| gap.end_ns.min(to).saturating_sub(gap.start_ns.max(from)));
    inside.fold(0, u64::saturating_add)
}

fn window(view: &View) -> Vec<String> {
    let mut texts = Vec::new();
    let (first, last) = view.samples();
    if view.recording().ticks.is_empty() && view.recording().is_growing {
        texts.push("no sample was written yet: try again in a second".to_owned());
    } else if view.recording().ticks.is_empty() {
        texts.push("there are no samples: only the figures of its end are known".to_owned());
    } else if !view.is_whole() && last.saturating_sub(first) < 2 {
        texts.push(format!(
            "the window is narrower than two samples: all it shows is one interval of {}",
            show_ns(view.wall_ns() as f64)
        ));
    }
    texts
}
