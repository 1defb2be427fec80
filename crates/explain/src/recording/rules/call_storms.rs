//! Processor time inside of system calls of one purpose: files by name, new processes, changes of
//! the address space. Sampled; each names its first calls.

use super::{RunVerdict, RunView};
use crate::verdict::NoFinding;
use crate::wording::{list, long_time};
use model::explanation::Cause;
use model::recording::CallPurpose;
use model::{Finding, Grade};

/// Calls that make and end processes.
pub(super) const EXEC: &[&str] = CallPurpose::Processes.calls();

/// Calls that change what is mapped where.
pub(super) const MMAP: &[&str] = CallPurpose::Mappings.calls();

/// Calls that open, look up, list, name or remove files.
pub(super) const FILES: &[&str] = CallPurpose::Files.calls();

/// So many calls are named.
const MOST_NAMED: usize = 3;

pub(super) fn exec(run: &RunView) -> RunVerdict {
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
