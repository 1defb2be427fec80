//! Processor time in the kernel by what it did there, of all calls and faults: copying, clearing
//! pages, waiting at its locks, network, switching threads, interrupts. Sampled.
//!
//! A class is that of the innermost function that has one. It lies inside of whatever call or
//! fault led to it, so it follows the finding of that where there is one.

use super::call_storms::first_calls;
use super::{RunVerdict, RunView};
use crate::recording::accounting::processor_samples::SampledTime;
use crate::verdict::NoFinding;
use crate::wording::{list, long_time};
use model::explanation::{Cause, TimePart};
use model::{Finding, Grade};

pub(super) fn locks(run: &RunView) -> RunVerdict {
    judge(
        run,
        run.sampled(TimePart::KernelLocks),
        |time| {
            let calls = first_calls(run, |_| true);
            let beside = match calls.as_slice() {
                [] => String::new(),
                calls => format!("; most of its calls: {}", list(calls)),
            };
            format!("Spent {time} at locks inside the kernel{beside}")
        },
        &["trace.sched.threads", "trace.sched.switches"],
        "Let fewer threads work on one file, directory or address space at a time, or take \
         processes instead of threads. Risk: less runs at once where nothing collided.",
    )
}

pub(super) fn clearing(run: &RunView) -> RunVerdict {
    judge(
        run,
        run.sampled(TimePart::KernelClearing),
        |time| format!("Cleared pages for {time} before they were handed out"),
        &["tree.minor_faults", "vmstat.thp_fault_alloc"],
        "Reuse memory instead of freeing and allocating it. Risk: more memory is held than is in \
         use.",
    )
}

pub(super) fn copying(run: &RunView) -> RunVerdict {
    judge(
        run,
        run.sampled(TimePart::KernelCopying),
        |time| format!("Copied data and pages inside the kernel for {time}"),
        &["tree.read_chars", "tree.write_chars"],
        "Map the file, or let the kernel move the data (sendfile, splice, copy_file_range). Risk: \
         mapped files are read fault by fault, and not each file system can.",
    )
}

pub(super) fn network(run: &RunView) -> RunVerdict {
    judge(
        run,
        run.sampled(TimePart::KernelNetwork),
        |time| format!("Processed network traffic for {time}"),
        &["trace.cpu.in.softirq"],
        "Fewer and larger messages (a buffer, sendmmsg), and what the card can do itself \
         (ethtool -k). Risk: a message that is gathered with others leaves later.",
    )
}

pub(super) fn switching(run: &RunView) -> RunVerdict {
    judge(
        run,
        run.sampled(TimePart::KernelScheduling),
        |time| format!("Switched between threads and woke them for {time}"),
        &["trace.sched.switches", "trace.sched.waits", "stat.ctxt"],
        "Hand over more at a time between threads: batches instead of single messages. Risk: what \
         waits for its batch comes later.",
    )
}

pub(super) fn interrupts(run: &RunView) -> RunVerdict {
    let series = ["trace.cpu.in.interrupt", "trace.cpu.in.softirq"];
    let samples = run.processor_samples().ok_or(NoFinding::Nothing)?;
    judge(
        run,
        Some(samples.time(series, run.run_ns())),
        |time| format!("Served interrupts for {time}"),
        &["stat.intr"],
        "Let devices gather their interrupts (ethtool -C), or spread them over processors. Risk: \
         what is gathered is served later.",
    )
}

fn judge(
    run: &RunView,
    time: Option<SampledTime>,
    claim: impl Fn(&str) -> String,
    grown: &[&str],
    remedy: &str,
) -> RunVerdict {
    let time = time.ok_or(NoFinding::Nothing)?;
    if !run.hurts(time.low_ns) {
        return Err(time.cleared());
    }
    let claim = claim(&long_time(time.ns as f64));
    let finding = Finding::new(Grade::Measured, claim, time.evidence).and(run.all_grown(grown));
    Ok(Cause::new(Some(time.ns), finding.remedy(remedy)))
}
