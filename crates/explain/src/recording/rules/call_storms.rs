//! Processor time inside of system calls of one purpose: files by name, new processes, changes of
//! the address space. Sampled; each names its first calls.

use super::run_view::{part_of, ratio};
use super::{RunVerdict, RunView};
use crate::recording::who::sums::ProcessSum;
use crate::verdict::NoFinding;
use crate::wording::{count, list, long_time};
use model::explanation::Cause;
use model::recording::{CallPurpose, ProcessFigure, SampledPart};
use model::{Finding, Grade};

/// Calls that make and end processes.
pub(super) const EXEC: &[&str] = CallPurpose::Processes.calls();

/// Calls that change what is mapped where.
pub(super) const MMAP: &[&str] = CallPurpose::Mappings.calls();

/// Calls that open, look up, list, name or remove files.
pub(super) const FILES: &[&str] = CallPurpose::Files.calls();

/// So many calls are named.
const MOST_NAMED: usize = 3;

/// From so many processes on, what they ran for on average is said to be their start. Picked.
const LEAST_SHORT_LIVED: u64 = 100;

/// A program that runs for no longer than this does hardly more than load its libraries and end.
/// Picked: `true` takes 0.5 to 2 ms.
const LOADING_NS: u64 = 3_000_000;

pub(super) fn exec(run: &RunView) -> RunVerdict {
    let mut cause = starts_and_ends(run)?;
    if let (Some(loading), Some(ns)) = (loading(run), cause.ns) {
        cause.order_ns = Some(ns.saturating_add(loading.user_ns));
        let each = long_time(loading.each_ns as f64);
        cause.finding.claim.push_str(&format!(
            "; {} more in the code of {} that ran for {each} each: their libraries' loading",
            long_time(loading.user_ns as f64),
            count(loading.processes),
        ));
        cause.finding.grade = Grade::Inferred;
    }
    Ok(cause)
}

/// What short-lived processes ran of their own code.
struct Loading {
    processes: u64,
    each_ns: u64,
    user_ns: u64,
}

/// Of processes that lived so briefly that starting them was nearly all that they did.
fn loading(run: &RunView) -> Option<Loading> {
    let is_short = |sum: &&ProcessSum| sum.process.is_many && sum.process.parent > 0;
    let mut loading = Loading { processes: 0, each_ns: 0, user_ns: 0 };
    let mut ran_ns = 0u64;
    for sum in run.process_sums().iter().filter(is_short) {
        let (ran, user) = (sum.get(ProcessFigure::Cpu).value, sum.sampled(SampledPart::User).value);
        let all = user.saturating_add(sum.in_kernel().value);
        if ran / sum.processes.max(1) <= LOADING_NS && all > 0 {
            loading.processes = loading.processes.saturating_add(sum.processes);
            loading.user_ns =
                loading.user_ns.saturating_add(part_of(ran, ratio(user as f64, all as f64)));
            ran_ns = ran_ns.saturating_add(ran);
        }
    }
    loading.each_ns = ran_ns / loading.processes.max(1);
    (loading.processes >= LEAST_SHORT_LIVED && loading.user_ns > 0).then_some(loading)
}

fn starts_and_ends(run: &RunView) -> RunVerdict {
    judge(
        run,
        EXEC,
        "to start and end processes",
        "Start fewer: built-in commands of the shell instead of programs, one process that stays \
         instead of one for each task. Risk: a process that stays keeps its memory.",
    )
}

pub(super) fn mmap(run: &RunView) -> RunVerdict {
    judge(
        run,
        MMAP,
        "to map and unmap memory",
        "Keep memory instead of giving it back (a pool; MALLOC_TRIM_THRESHOLD_ and \
         MALLOC_MMAP_THRESHOLD_ of glibc), and map files whole. Risk: more memory is held than is \
         in use.",
    )
}

pub(super) fn files(run: &RunView) -> RunVerdict {
    judge(
        run,
        FILES,
        "to open, look up and name files",
        "Touch fewer files: keep an archive or an index instead of walking a tree, or watch it \
         (inotify). Risk: an index can be out of date.",
    )
}

fn judge(run: &RunView, calls: &[&str], purpose: &str, remedy: &str) -> RunVerdict {
    let time = run.sampled_calls(calls).ok_or(NoFinding::Nothing)?;
    if !run.hurts(time.low_ns) {
        return Err(time.cleared());
    }
    let claim = format!(
        "Took {} {purpose}: {}",
        long_time(time.ns as f64),
        list(&first_calls(run, |call| calls.contains(&call))),
    );
    let grown = ["trace.sched.threads", "stat.processes", "tree.minor_faults"];
    let finding = Finding::new(Grade::Measured, claim, time.evidence).and(run.all_grown(&grown));
    Ok(Cause::new(Some(time.ns), finding.remedy(remedy)))
}

/// The calls of this kind with most samples, with their times: `openat 0.9 s`.
pub(super) fn first_calls(run: &RunView, is_one: impl Fn(&str) -> bool) -> Vec<String> {
    let Some(samples) = run.processor_samples() else {
        return Vec::new();
    };
    let calls = samples.calls(run.run_ns()).into_iter().filter(|(call, _)| is_one(call));
    let named = calls.take(MOST_NAMED);
    named.map(|(call, time)| format!("{call} {}", long_time(time.ns as f64))).collect()
}
