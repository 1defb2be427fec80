//! Sources of one recording that say what cannot both be true.
//!
//! 1. Each check compares two sources that know the same thing, and has both numbers.
//! 2. Where a third source decides, the contradiction is resolved: it says which is believed.
//! 3. What rests on it is `inferred` at most, and clears no suspect while it is not resolved.
//!
//! Small differences between clocks are no contradiction; [`super::doubts`] has them.

use super::accounting::{PROCESSORS_RUN, ran_by_events};
use super::rules::RunView;
use super::witness::{charged_too_little, watches_switches, watching_command};
use crate::wording::{count, long_time, percent};
use model::explanation::{Cause, ClearedCause, Contradiction, TimeSlice, Unseen};
use model::{Bytes, Grade};

/// Two sources of the same time differ by more than clocks do from this share of the longer one on.
/// Picked.
const MOST_DIFFERENCE: f64 = 0.25;

/// The kernel's ticks count nothing useful if all kinds of them are less than this share of the
/// processors' time: some sandboxes show zeros.
const LEAST_TICKS: f64 = 0.5;

/// Ticks and events may differ by so much of the wall time.
const CLOCKS: f64 = 0.05;

/// Less than this part of a stall is no wait to believe. Picked: as of the disks.
const LEAST_WAITED: u64 = 20;

/// Nothing that stores data delivers more bytes in a nanosecond to a thread that waits for it.
/// Picked: twice the fastest memory bus of a thread.
const MOST_BYTES_PER_NS: u64 = 40;

/// What a fast device delivers in a nanosecond. Picked.
const FAST_BYTES_PER_NS: u64 = 2;

/// What rests on how long threads ran, with no time of its own in the bars.
const BY_RUN: &[&str] = &["cpu_bound", "kernel_time"];

/// What a missed wait looks like.
const BY_MISSED_WAITS: &[&str] = &["cpu_bound", "kernel_time", "other_sleep", "other_block_io"];

/// The rules whose suspects clear themselves by waits for devices.
const OF_DEVICES: &[&str] = &[
    "reads_from_device",
    "writes_to_device",
    "cache_too_small",
    "cache_evicted_by_stream",
    "memory_limit",
    "dirty_throttle",
    "small_sync_writes",
    "io_limit",
];

/// A contradiction, and what it touches.
struct Found {
    contradiction: Contradiction,
    /// Findings that account for time of these slices rest on it.
    slices: &'static [TimeSlice],
    /// So do these.
    findings: &'static [&'static str],
    /// Suspects that are not cleared while it is not resolved.
    suspects: &'static [&'static str],
}

/// All contradictions of a recording, those that are not resolved first. What rests on them loses
/// its grade, and cleared suspects become unseen.
pub(super) fn settle(
    run: &RunView,
    findings: &mut [Cause],
    cleared: &mut Vec<ClearedCause>,
    unseen: &mut Vec<Unseen>,
) -> Vec<Contradiction> {
    let checks = [ran_longer(run), waits_missed(run), accounts_differ(run), stalled(run)];
    let mut found: Vec<Found> = checks.into_iter().flatten().collect();
    found.sort_by_key(|one| one.contradiction.believed.is_some());
    for one in &mut found {
        let is_lowered =
            |cause: &&mut Cause| cause.finding.grade == Grade::Measured && one.touches(cause);
        let lowered = findings.iter_mut().filter(is_lowered).map(|cause| {
            cause.finding.grade = Grade::Inferred;
            cause.finding.id.clone()
        });
        one.contradiction.lowered = lowered.collect();
        if one.contradiction.believed.is_none() {
            let is_touched = |cause: &ClearedCause| one.suspects.contains(&cause.id.as_str());
            for cause in cleared.extract_if(.., |cause| is_touched(cause)) {
                unseen.push(Unseen {
                    what: cause.id,
                    why: format!("sources contradict each other: {}", one.contradiction.text),
                    remedy: one.contradiction.remedy.clone(),
                });
            }
        }
    }
    found.into_iter().map(|one| one.contradiction).collect()
}

impl Found {
    fn touches(&self, cause: &Cause) -> bool {
        let id = cause.finding.id.as_str();
        let lies_in = |slice: &TimeSlice| cause.accounts_for.iter().any(|at| at.slice == *slice);
        self.findings.contains(&id) || self.slices.iter().any(lies_in)
    }
}

fn contradiction(text: String, believed: Option<String>, remedy: Option<String>) -> Contradiction {
    Contradiction { text, believed, remedy, lowered: Vec::new() }
}

/// Threads ran for longer than all processors did.
fn ran_longer(run: &RunView) -> Option<Found> {
    let found = |contradiction| Found {
        contradiction,
        slices: &[TimeSlice::Run],
        findings: BY_RUN,
        suspects: &[],
    };
    if run.is_machine() {
        let (by_events, by_ticks) = ran_by_events(run.view)?;
        let text = both_ran("some thread", by_events, by_ticks);
        let believed = "the processors' own count; switches to an idle processor were missed";
        return Some(found(contradiction(text, Some(believed.to_owned()), None)));
    }
    let ran = run.view.sum("trace.sched.run_ns").map(|_| run.run_ns())?;
    let by_ticks = ticks(run)?;
    let allowed = (run.wall_ns() as f64 * CLOCKS) as u64;
    if ran <= by_ticks.saturating_add(allowed) || !run.hurts(ran - by_ticks) {
        return None;
    }
    let text = both_ran("its threads", ran, by_ticks);
    let by_wait4 = run.usage().filter(|_| run.is_command()).map(|usage| usage.cpu_ns());
    let charged = by_wait4.or_else(|| run.growth("tree.run_ns"));
    let is_confirmed = charged.is_some_and(|ns| ns.saturating_add(allowed) >= ran);
    // Ticks see a thread that always sleeps when one comes not at all.
    let believed = is_confirmed.then(|| {
        let charged = long_time(charged.unwrap_or(0) as f64);
        format!(
            "the events; the kernel charged its threads with {charged}, and ticks miss short runs"
        )
    });
    Some(found(contradiction(text, believed, None)))
}

fn both_ran(who: &str, by_events: u64, by_ticks: u64) -> String {
    format!(
        "{who} ran for {} by switch events, all processors ran for {} by their own count",
        long_time(by_events as f64),
        long_time(by_ticks as f64)
    )
}

/// What all processors ran, or the host took, by ticks that count.
fn ticks(run: &RunView) -> Option<u64> {
    let busy = run.growth_of_all(&PROCESSORS_RUN)?;
    let grown = |name| run.growth(name).unwrap_or(0);
    let busy = busy.saturating_add(grown("stat.cpu.steal_ns"));
    let idle = grown("stat.cpu.idle_ns").saturating_add(grown("stat.cpu.iowait_ns"));
    let whole = run.wall_ns().saturating_mul(u64::from(run.facts().processors.max(1)));
    let is_counting = busy.saturating_add(idle) as f64 >= whole as f64 * LEAST_TICKS;
    is_counting.then_some(busy)
}

/// Much was read from devices, and hardly any wait for it was charged.
fn waits_missed(run: &RunView) -> Option<Found> {
    if run.is_machine() || watches_switches(run) {
        return None;
    }
    let text = charged_too_little(run).or_else(|| read_again_for_nothing(run))?;
    let remedy = watching_command(run.facts(), Some("sched"), false);
    Some(Found {
        contradiction: contradiction(text, None, Some(remedy)),
        slices: &[TimeSlice::BlockIo, TimeSlice::Sleep, TimeSlice::Asleep],
        findings: BY_MISSED_WAITS,
        suspects: OF_DEVICES,
    })
}

/// What a group read again came faster than any device delivers.
fn read_again_for_nothing(run: &RunView) -> Option<String> {
    let of_group =
        ["group0.memory.stat.workingset_refault_file", "group0.memory.stat.workingset_refault"];
    let pages = of_group.iter().find_map(|name| run.growth(name))?;
    let bytes = pages.saturating_mul(run.facts().page_bytes.max(4096));
    let waited_ns = run.accounts.thread(TimeSlice::BlockIo);
    let would_matter = run.hurts(bytes / FAST_BYTES_PER_NS);
    (would_matter && waited_ns < bytes / MOST_BYTES_PER_NS).then(|| {
        format!(
            "{} evicted pages ({}) were read again, and {} of waiting was charged",
            count(pages),
            Bytes(bytes),
            long_time(waited_ns as f64)
        )
    })
}

/// Switch events and delay accounting tell different stories of the same threads.
fn accounts_differ(run: &RunView) -> Option<Found> {
    let large = run.accounts.differences.iter().filter(|one| {
        let longer = one.by_events.max(one.charged);
        one.apart() as f64 >= longer as f64 * MOST_DIFFERENCE && run.hurts(one.apart())
    });
    let worst = large.max_by_key(|one| one.apart())?;
    let text = format!(
        "{} was {} by switch events and {} by delay accounting",
        worst.state,
        long_time(worst.by_events as f64),
        long_time(worst.charged as f64)
    );
    let is_of_devices = worst.state != super::accounting::RUN_AND_QUEUE;
    let slices: &[TimeSlice] =
        if is_of_devices { &[TimeSlice::BlockIo] } else { &[TimeSlice::Run, TimeSlice::Queue] };
    Some(Found {
        contradiction: contradiction(text, None, None),
        slices,
        findings: if is_of_devices { &[] } else { BY_RUN },
        suspects: if is_of_devices { OF_DEVICES } else { &["cpu_contention"] },
    })
}

/// Tasks were stalled for I/O by pressure, and waited for none by everything else.
fn stalled(run: &RunView) -> Option<Found> {
    let (series, waited) = if run.is_machine() {
        ("pressure.io.some_ns", run.sum("trace.sched.block_io_ns"))
    } else {
        ("group0.pressure.io.some_ns", Some(run.accounts.thread(TimeSlice::BlockIo)))
    };
    let (stalled_ns, waited_ns) = (run.growth(series)?, waited?);
    let share = stalled_ns as f64 / run.wall_ns().max(1) as f64;
    if share < CLOCKS || !run.hurts(stalled_ns) || waited_ns >= stalled_ns / LEAST_WAITED {
        return None;
    }
    let text = format!(
        "some task was stalled for I/O for {} ({}) by pressure, and {} of waiting for devices was \
         seen",
        long_time(stalled_ns as f64),
        percent(share.min(1.0)),
        long_time(waited_ns as f64)
    );
    let remedy = watching_command(run.facts(), Some("sched"), false);
    Some(Found {
        contradiction: contradiction(text, None, Some(remedy)),
        slices: &[TimeSlice::BlockIo],
        findings: BY_MISSED_WAITS,
        suspects: OF_DEVICES,
    })
}
