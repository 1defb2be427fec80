//! The thread bar of a command, a process or a group: the lives of its threads, split by
//! what they did. Each of the three sources fills it in its own way.

use super::bar::{Bar, FilledBar};
use super::queued;
use super::rows::Rows;
use super::sampled::{self, SampleStep};
use super::source::Sources;
use crate::recording::View;
use crate::wording::long_time;
use model::explanation::Repair;
use model::explanation::TimeSlice;
use model::{Evidence, Grade};

/// Who tells in rows.
pub(super) const TASKSTATS: &str = "taskstats";

/// What the bar is a bar of.
const OF: &str = "the lives of all threads";

/// The states that events tell apart, in the order of the bar.
pub(super) const STATES: [TimeSlice; 5] =
    [TimeSlice::Run, TimeSlice::Queue, TimeSlice::BlockIo, TimeSlice::Children, TimeSlice::Sleep];

/// Fills the thread bar from the best source.
pub(super) fn bar(view: &View, sources: &Sources) -> FilledBar {
    if sources.events {
        by_events(view, sources)
    } else if let Some(rows) = &sources.rows {
        by_rows(view, rows, sources.lost_exits)
    } else {
        by_samples(view)
    }
}

/// Every state is measured, so the sum of all is a life, unless rows know of longer ones.
/// With lost events a state may be counted beyond its end, so the rows' lives are the
/// limit then.
fn by_events(view: &View, sources: &Sources) -> FilledBar {
    let names = STATES.map(|state| format!("trace.sched.{}_ns", state.id()));
    let lengths = names.each_ref().map(|name| view.sum(name).unwrap_or(0));
    let known = lengths.iter().fold(0u64, |sum, ns| sum.saturating_add(*ns));
    let rows = sources.rows.as_ref().filter(|_| sources.lost_exits == 0);
    let whole_ns = match rows {
        Some(rows) if sources.events_lost => rows.alive_ns,
        Some(rows) => rows.alive_ns.max(known),
        None => known,
    };
    let grade = sources.events_grade();
    let late = sources.late;
    let mut bar = Bar::new(OF, whole_ns).repaired(late.repair(lengths[0]));
    for ((state, name), ns) in STATES.into_iter().zip(&names).zip(lengths) {
        let mut evidence = vec![Evidence::time(name, ns, view.source(name))];
        if let (Some(rows), TimeSlice::Run) = (rows.filter(|_| late.ns() > 0), state) {
            let charged = Evidence::time("run of all threads", rows.run_ns, TASKSTATS);
            evidence.push(charged.seen_in(["tree.run_ns"]));
        }
        bar.add(state, late.put_right(state, ns), grade, evidence);
    }
    let whole = match rows {
        Some(rows) => lives(rows),
        None => {
            Evidence::time("time of all threads by events", known, "sched_switch").seen_in(&names)
        }
    };
    bar.close(whole)
}

/// Run, queue and block I/O are charged to each thread; what it slept for is not.
fn by_rows(view: &View, rows: &Rows, lost_exits: u64) -> FilledBar {
    // Threads whose end nobody told still ran: `wait4` has their processor time, and they
    // lived at least as long.
    let used = usage_ns(view).filter(|_| lost_exits > 0).unwrap_or(0);
    let unreported = used.saturating_sub(rows.run_ns);
    let grade = match lost_exits {
        0 => Grade::Measured,
        _ => Grade::Inferred,
    };
    let whole_ns = rows.alive_ns.saturating_add(unreported);
    let mut bar = Bar::new(OF, whole_ns).repaired(rows.repairs.clone());
    let run = Evidence::time("run of all threads", rows.run_ns, TASKSTATS);
    let mut evidence = vec![run.seen_in(["tree.run_ns"])];
    if unreported > 0 {
        evidence.push(waited_for(used));
    }
    let run_ns = rows.run_ns.saturating_add(unreported);
    bar.add(TimeSlice::Run, run_ns, grade, evidence);
    let queue = Some(rows.queue);
    for (state, name, series, charged) in [
        (TimeSlice::Queue, "cpu_delay_total", "tree.queue_ns", queue),
        (TimeSlice::BlockIo, "blkio_delay_total", "tree.block_io_ns", rows.block_io),
    ] {
        if let Some(charged) = charged {
            let grade = if charged.cut { Grade::Inferred } else { grade };
            let evidence = Evidence::time(name, charged.ns, TASKSTATS).seen_in([series]);
            bar.add(state, charged.ns, grade, vec![evidence]);
        }
    }
    bar.close(lives(rows))
}

/// Sums over the processes as the samples saw them; short-lived ones are in them only as
/// far as a sample met them, so `wait4` may know of more processor time.
fn by_samples(view: &View) -> FilledBar {
    let run = view.growth("tree.run_ns");
    let used = usage_ns(view);
    let queued = sampled::plausible_ns(view, "tree.queue_ns", |step| queued::most_ns(view, step));
    let queue = queued.map(|(kept, _)| kept);
    let counted = view.facts().sight("delay_accounting").is_open();
    let waited = sampled::plausible_ns(view, "tree.block_io_ns", SampleStep::lived_ns);
    // Where the kernel does not count these waits, the field is there and stays at 0.
    let block_io =
        waited.filter(|(kept, out)| counted || *kept > 0 || *out > 0).map(|(kept, _)| kept);
    let seen_ns = run.unwrap_or(0).max(used.unwrap_or(0));
    let lives_ns = sampled::lives_ns(view);
    // Only the samples' estimate of the lives can be too short for what was counted.
    let counted_ns = seen_ns.saturating_add(queue.unwrap_or(0));
    let whole_ns = lives_ns.max(counted_ns);
    let repairs = [
        (queued, "tree.queue_ns", "processors were at work"),
        (waited, "tree.block_io_ns", "the threads lived"),
    ]
    .into_iter()
    .filter_map(|(sum, name, what)| left_out(sum?.1, name, what));
    let mut bar = Bar::new(OF, whole_ns).repaired(repairs);
    let counter = |name: &str, ns: u64| Evidence::time(name, ns, view.source(name));
    if let Some(run_ns) = run.max(used) {
        let mut evidence: Vec<Evidence> = Vec::new();
        evidence.extend(run.map(|ns| counter("tree.run_ns", ns)));
        evidence.extend(used.map(waited_for));
        let exact = used.is_some_and(|used| used >= run_ns);
        let grade = if exact { Grade::Measured } else { Grade::Inferred };
        bar.add(TimeSlice::Run, run_ns, grade, evidence);
    }
    for (state, name, ns) in [
        (TimeSlice::Queue, "tree.queue_ns", queue),
        (TimeSlice::BlockIo, "tree.block_io_ns", block_io),
    ] {
        if let Some(ns) = ns {
            bar.add(state, ns, Grade::Inferred, vec![counter(name, ns)]);
        }
    }
    let whole = Evidence::time("threads as sampled, times time", lives_ns, "/proc/PID/stat")
        .seen_in(["tree.threads"]);
    bar.close(whole)
}

fn lives(rows: &Rows) -> Evidence {
    Evidence::time("lives of all threads", rows.alive_ns, TASKSTATS).seen_in(["tree.threads"])
}

fn waited_for(used_ns: u64) -> Evidence {
    Evidence::time("processor time of the command", used_ns, "wait4").seen_in(["tree.run_ns"])
}

/// What is said of the steps of a sum that cannot be.
fn left_out(ns: u64, name: &str, what: &str) -> Option<Repair> {
    let text = format!(
        "{name}: waits of {} are longer than {what} since the sample before, counted from a \
         wrong stamp; they are left out",
        long_time(ns as f64)
    );
    (ns > 0).then_some(Repair { text, before_ns: ns, after_ns: 0 })
}

/// The processor time of a whole command by `wait4`.
pub(super) fn usage_ns(view: &View) -> Option<u64> {
    view.usage().filter(|_| view.is_command()).map(|usage| usage.cpu_ns())
}
