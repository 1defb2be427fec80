//! Threads were ready to run and had no processor: because of others, or of each other.
//!
//! The time is the queue less what a CPU limit explains. Who is to blame follows from the
//! time that others used, the time that the subject wanted, and the time left idle.

use super::{RunVerdict, RunView};
use crate::recording::accounting::PROCESSORS_RUN;
use crate::recording::limited::are_processors_busy;
use crate::verdict::{NoFinding, clear};
use crate::wording::{count, long_time};
use model::explanation::{Cause, TimeSlice};
use model::{Evidence, Finding, Grade};

/// Others are the cause if they used at least this share of the time queued. Picked:
/// half of it could have been run instead.
const OTHERS_SHARE: f64 = 0.5;

/// The processors of a whole machine are what its threads waited for only if they waited for this
/// share of what they ran. Picked: a machine that is used well always has a few that wait for a
/// moment.
const QUEUED_SHARE: f64 = 0.25;

/// The part of its time by which a wait for the subject's own threads stands among the causes: that
/// they want more than the processors says little of why, and whatever lets them be ready earlier
/// makes the wait longer. Seen: a database at its memory limit, whose four workers waited 10.6 s
/// for processors and 6.3 s for reads; a higher limit gave 2.9 times the work, fewer workers less.
const OWN_SHARE: u64 = 4;

/// What all threads of a machine waited, by events, else by the scheduler's own sums.
const MACHINE_QUEUES: [&str; 2] = ["trace.sched.queue_ns", "schedstat.queue_ns"];

/// The counter of time that they were not.
const IDLE: &str = "stat.cpu.idle_ns";

/// Who kept the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Others(u64),
    Own,
    Idle(u64),
    Unknown,
}

pub(super) fn check(run: &RunView) -> RunVerdict {
    if run.is_machine() {
        return of_machine(run);
    }
    let queue = run.accounts.thread(TimeSlice::Queue);
    let limited = super::cpu_limit::stopped_ns(run, "group0.cpu");
    let ns = queue.saturating_sub(limited);
    let measured = Evidence::time("ready and not run", ns, "run queue")
        .seen_in(run.slice_series(TimeSlice::Queue));
    if !run.hurts(ns) {
        let slices = &run.accounts.bars.thread;
        let is_known = slices.iter().any(|slice| slice.name == TimeSlice::Queue);
        return clear(is_known.then_some(measured));
    }
    let time = long_time(ns as f64);
    let processors = run.processors();
    let mut evidence = vec![measured];
    let who = who(run, ns);
    let (claim, remedy) = match who {
        Who::Others(used) => {
            let ran = Evidence::time("others ran", used, "/proc/stat");
            evidence.push(ran.seen_in(PROCESSORS_RUN));
            (
                format!(
                    "Waited {time} for a processor, others ran {} ({})",
                    long_time(used as f64),
                    processors_in_words(processors),
                ),
                "Stop or move the other programs, or give this one a larger share. Risk: what \
                 is stopped does not do its work.",
            )
        }
        Who::Own => (
            format!(
                "Waited {time} for a processor: its own threads want more than the {}",
                processors_in_words(processors),
            ),
            "More processors, or less processor time for each piece of work. Risk: processors \
             cost money.",
        ),
        Who::Idle(idle) => {
            evidence.push(Evidence::time("idle", idle, IDLE).seen_in([IDLE]));
            (
                format!("Waited {time} for a processor while others were idle"),
                "Look for a processor mask (taskset, cpusets) narrower than the work. Risk: \
                 without it threads move, and lose what their caches hold.",
            )
        }
        Who::Unknown => (
            format!("Waited {time} for a processor"),
            "More processors, or less processor time for each piece of work, here and in other \
             programs. Risk: processors cost money.",
        ),
    };
    let finding = Finding::new(run.slice_grade(TimeSlice::Queue), claim, evidence).remedy(remedy);
    let order_ns = (who == Who::Own).then_some(ns / OWN_SHARE);
    Ok(Cause { order_ns, ..Cause::new(Some(ns), finding) })
}

/// Of the whole machine: its bar is of processors, and what threads waited is beside it.
fn of_machine(run: &RunView) -> RunVerdict {
    let known = MACHINE_QUEUES.iter().find_map(|name| Some((run.sum(name)?, name)));
    let (ns, name) = known.ok_or(NoFinding::Nothing)?;
    let measured = Evidence::time("ready and not run", ns, run.source(name)).seen_in([name]);
    let ran = run.run_ns();
    let ns = ns.saturating_sub(super::cpu_limit::stopped_on_machine(run));
    if !run.hurts(ns) || (ns as f64) < ran as f64 * QUEUED_SHARE {
        return clear(Some(measured));
    }
    let is_busy = are_processors_busy(run);
    // A quota holds threads in the queue of idle processors. Where quotas were looked at they have
    // their part; then the processors were idle at another time.
    if !is_busy && !run.facts().sight("group_limits").is_open() {
        return clear(Some(measured));
    }
    let claim = format!(
        "Threads waited {} for a processor: {}they wanted more than the {}",
        long_time(ns as f64),
        if is_busy { "" } else { "at times " },
        processors_in_words(run.processors()),
    );
    let busy = Evidence::time("the processors ran", ran, "/proc/stat").seen_in(PROCESSORS_RUN);
    let grade = if is_busy { Grade::Measured } else { Grade::Inferred };
    let finding = Finding::new(grade, claim, [measured, busy]).remedy(
        "A smaller share (a higher nice value, cpu.weight) for who needs the processors least, \
         or more processors. Risk: what has the smaller share takes longer.",
    );
    Ok(Cause::new(Some(ns), finding))
}

fn who(run: &RunView, queued: u64) -> Who {
    let Some(busy) = run.growth_of_all(&PROCESSORS_RUN) else {
        return Who::Unknown;
    };
    let own = run.run_ns().saturating_add(run.growth("own.cpu_ns").unwrap_or(0));
    let others = busy.saturating_sub(own);
    let idle = run.growth(IDLE).unwrap_or(0);
    if others as f64 >= queued as f64 * OTHERS_SHARE {
        Who::Others(others)
    } else if idle >= queued {
        Who::Idle(idle)
    } else {
        Who::Own
    }
}

fn processors_in_words(processors: u64) -> String {
    if processors == 1 {
        "one processor".to_owned()
    } else {
        format!("{} processors", count(processors))
    }
}
