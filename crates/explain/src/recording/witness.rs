//! Which witness clears a suspect, and whether it watched.
//!
//! A suspect is not to blame only if what would have shown it watched from the start to the end
//! of the span that is judged, and so did the series of the number that clears it. [`TABLE`] names
//! the witnesses of each rule; [`watched`] looks at them and alone makes [`Watched`], without which
//! no suspect is cleared. A rule without a row can find a cause and clears nothing.

mod command;
mod span;
mod table;

use super::rules::{RunRule, RunView};
use crate::wording::long_time;
pub use command::watching_command;
use model::Evidence;
use model::explanation::{ClearedCause, TimeSlice, Unseen};
use model::recording::{GroupFacts, LIMITED, SourceState, Subject, TaskSource};
use span::Missing;
pub use table::{TABLE, WitnessRow};

/// What would have shown a suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// Events of switches between threads: what each waited for.
    Switches,
    /// Events of requests to devices.
    Requests,
    /// Events of freeing and moving memory.
    Reclaim,
    /// Events of writers that are held back.
    Writeback,
    /// Samples of the processors, enough to divide their time.
    Samples,
    /// The kernel's charges to every thread, from its start to its end.
    Charges,
    /// The kernel's charges for block I/O: of every thread, or of the living ones as sampled.
    BlockCharges,
    /// Processor time of all threads.
    RunTime,
    /// Time of all threads in the run queue.
    QueueTime,
    /// No time is left: threads ran, or waited for a processor, nearly always.
    NoTimeLeft,
    /// The subject's bytes and calls.
    ProcessIo,
    /// The subject's page faults and time in the kernel.
    Faults,
    /// The CPU counters of the subject's group and of each one above.
    GroupCpu,
    /// The memory counters of the subject's group and of each one above.
    GroupMemory,
    /// The I/O counters and limits of the subject's group and of each one above.
    GroupIo,
    /// The search of the machine for groups with limits.
    LimitedGroups,
    /// Limits of this controller in all groups of the machine, which held nothing back.
    LimitedStill(&'static str),
    /// What single processes used.
    Who,
    /// Counters of the disks.
    Disks,
    /// Counters of the disks: all their requests took less than matters.
    IdleDisks,
    /// Counters of the memory nodes.
    Nodes,
    /// These counters.
    Counted(&'static [&'static str]),
    /// These counters, which did not move.
    Still(&'static [&'static str]),
    /// The memory limits of the subject's groups, which were not reached.
    MemoryLimitsStill,
    /// The CPU limits of the subject's groups, which stopped nothing.
    CpuLimitsStill,
    /// The process limits of the subject's groups, which refused nothing.
    ProcessLimitsStill,
}

/// Proof that the witness of a suspect watched during the whole span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    by: &'static [Witness],
}

impl Watched {
    /// The witnesses.
    #[must_use]
    pub fn by(&self) -> &'static [Witness] {
        self.by
    }

    /// Clears the suspect of a rule by the number that excludes it, and what that cost at most.
    pub(super) fn clear(
        &self,
        rule: &RunRule,
        evidence: Evidence,
        cost_ns: Option<u64>,
    ) -> ClearedCause {
        ClearedCause { id: rule.id.to_owned(), name: rule.suspect.to_owned(), evidence, cost_ns }
    }
}

/// Looks whether the witnesses of this suspect watched: all of the first alternative of its row
/// that has them all, and the series of `number`, by which it would be cleared. Else what the first
/// alternative lacks.
///
/// # Errors
/// What was not watched, and the command that would watch it.
pub fn watched(run: &RunView, id: &str, number: Option<&Evidence>) -> Result<Watched, Box<Unseen>> {
    let unseen = |missing: Missing| {
        Box::new(Unseen { what: id.to_owned(), why: missing.why, remedy: missing.remedy })
    };
    let Some(row) = TABLE.iter().find(|row| row.id == id) else {
        return Err(unseen(Missing::new("nothing is known that would clear it")));
    };
    number.map_or(Ok(()), |number| span::number(run, number)).map_err(unseen)?;
    let mut first_missing = None;
    for by in row.by.iter().filter(|by| by.iter().all(|witness| witness.applies(run))) {
        match by.iter().try_for_each(|witness| witness.check(run)) {
            Ok(()) => return Ok(Watched { by }),
            Err(missing) => first_missing = first_missing.or(Some(missing)),
        }
    }
    let nothing = || Missing::new("nothing is known that would clear it");
    Err(unseen(first_missing.unwrap_or_else(nothing)))
}

impl Witness {
    /// What the documentation and a person call it.
    #[must_use]
    pub fn words(self) -> String {
        let words = match self {
            Self::Switches => "switch events",
            Self::Requests => "block events",
            Self::Reclaim => "reclaim events",
            Self::Writeback => "write-back events",
            Self::Samples => "samples of the processors",
            Self::Charges => "delay accounting of every thread",
            Self::BlockCharges => "delay accounting of block I/O",
            Self::RunTime => "processor time",
            Self::QueueTime => "run queue time",
            Self::NoTimeLeft => "a bar without time left",
            Self::ProcessIo => "bytes and calls",
            Self::Faults => "page faults and kernel time",
            Self::GroupCpu => "CPU counters of all its groups",
            Self::GroupMemory => "memory counters of all its groups",
            Self::GroupIo => "I/O counters of all its groups",
            Self::LimitedGroups => "the search for groups with limits",
            Self::Who => "what processes used",
            Self::Disks => "counters of the disks",
            Self::IdleDisks => "counters of the disks, which took little time",
            Self::Nodes => "counters of the memory nodes",
            Self::MemoryLimitsStill => "memory limits of all its groups, not reached",
            Self::CpuLimitsStill => "CPU limits of all its groups, not reached",
            Self::ProcessLimitsStill => "process limits of all its groups, not reached",
            Self::LimitedStill(controller) => {
                let shown = match controller {
                    "cpu" => "CPU",
                    "io" => "I/O",
                    "pids" => "process",
                    other => other,
                };
                return format!("{shown} limits of all groups of the machine, not reached");
            }
            Self::Counted(names) => return listed(names),
            Self::Still(names) => return format!("{}, not moved", listed(names)),
        };
        words.to_owned()
    }

    /// Whether such a subject has it: groups of its own, or those of a machine.
    fn applies(self, run: &RunView) -> bool {
        let of_groups = [Self::GroupCpu, Self::GroupMemory, Self::GroupIo];
        let limits = [Self::MemoryLimitsStill, Self::CpuLimitsStill, Self::ProcessLimitsStill];
        match self {
            Self::LimitedGroups | Self::LimitedStill(_) => run.is_machine(),
            _ => !run.is_machine() || !(of_groups.contains(&self) || limits.contains(&self)),
        }
    }

    /// Whether it watched from the start to the end.
    fn check(self, run: &RunView) -> Result<(), Missing> {
        match self {
            Self::Switches => switches(run),
            Self::Requests => span::events(run, "block", &[block_sum(run)]),
            Self::Reclaim => span::events(run, "vmscan", &["trace.vmscan.direct_reclaims"]),
            Self::Writeback => span::events(run, "writeback", &["trace.writeback.dirty_waits"]),
            Self::Samples => span::events(run, "cpu", &["trace.cpu.samples"]),
            Self::Charges => charges(run),
            Self::BlockCharges => block_charges(run),
            Self::RunTime => time(run, &RUN_TIMES),
            Self::QueueTime => time(run, &QUEUE_TIMES),
            Self::NoTimeLeft => no_time_left(run),
            Self::ProcessIo => process_io(run),
            Self::Faults => time(run, &FAULTS),
            Self::GroupCpu => groups(run, "cpu", &["throttled_periods", "throttled_ns"]),
            Self::GroupMemory => group_memory(run),
            Self::GroupIo => group_io(run),
            Self::LimitedGroups => limited_groups(run),
            Self::LimitedStill(controller) => limited_still(run, controller),
            Self::Who => span::source(run, "who"),
            Self::Disks => span::any(run, "disk.", ""),
            Self::IdleDisks => idle_disks(run),
            Self::Nodes => nodes(run),
            Self::Counted(names) => span::counted(run, names),
            Self::Still(names) => span::still(run, names),
            Self::MemoryLimitsStill => limits_still(run, "memory", &MEMORY_HITS),
            Self::CpuLimitsStill => limits_still(run, "cpu", &["throttled_periods"]),
            Self::ProcessLimitsStill => limits_still(run, "pids", &["refused"]),
        }
    }
}

/// What switches say of each thread: it ran, was ready, waited for block I/O, or slept; and how
/// often it was switched.
const SWITCH_SUMS: [&str; 5] = [
    "trace.sched.run_ns",
    "trace.sched.queue_ns",
    "trace.sched.block_io_ns",
    "trace.sched.sleep_ns",
    "trace.sched.switches",
];

/// What it waited for, by its stack; a recording has none of these or all.
const WAIT_SUMS: [&str; 5] = [
    "trace.block_io.read_ns",
    "trace.block_io.write_ns",
    "trace.block_io.direct_ns",
    "trace.block_io.flush_ns",
    "trace.sleep.flush_ns",
];

fn switches(run: &RunView) -> Result<(), Missing> {
    span::events(run, "sched", &SWITCH_SUMS)?;
    // Seen: processes that began as the recorder did and were not followed, 40 % of all lives.
    if !run.is_machine() && run.hurts(run.accounts.thread(TimeSlice::Unexplained)) {
        let why = "switch events did not follow all of its threads";
        return Err(Missing::with_events(run, why, "sched"));
    }
    let has_stacks = WAIT_SUMS.iter().any(|name| run.series(name).is_some());
    if has_stacks { span::counted(run, &WAIT_SUMS) } else { Ok(()) }
}

/// A sum of all requests: recordings of before had none of those that were issued.
fn block_sum(run: &RunView) -> &'static str {
    let issued = "trace.block.issued";
    if run.series(issued).is_some() { issued } else { "trace.block.reads" }
}

fn listed(names: &[&str]) -> String {
    let named: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    named.join(", ")
}

/// The counters of a group's memory limit: of version 1, and of version 2.
const MEMORY_HITS: [&str; 3] = ["failcnt", "events.max", "events.high"];

/// What says how long threads ran.
const RUN_TIMES: [&str; 1] = ["tree.run_ns"];

/// How long they were in the run queue.
const QUEUE_TIMES: [&str; 1] = ["tree.queue_ns"];

/// How many page faults they took, and the kernel's part of their time.
const FAULTS: [&str; 2] = ["tree.minor_faults", "tree.system_ns"];

/// Samples of processes have seen a command if they met this share of the processor time that
/// `wait4` reported. Picked: what is shorter than a sample is missed.
const MOST_RUN: f64 = 0.9;

/// A time of threads: by switch events, by the kernel's charges, or by samples of processes that
/// met most of what ran.
fn time(run: &RunView, names: &[&'static str]) -> Result<(), Missing> {
    if names != FAULTS && Witness::Switches.check(run).is_ok() {
        return Ok(());
    }
    if run.is_machine() && names == RUN_TIMES {
        return span::counted(run, &["stat.cpu.user_ns", "stat.cpu.system_ns", "stat.cpu.idle_ns"]);
    }
    if run.is_machine() && names == QUEUE_TIMES {
        return span::counted(run, &["schedstat.queue_ns"]);
    }
    if names == QUEUE_TIMES && run.series(SWITCH_SUMS[0]).is_some() {
        // The bar is by events then, and has no queue without their sum of it.
        span::whole(run, SWITCH_SUMS[1])?;
    }
    if reported(run).is_ok() {
        return Ok(());
    }
    span::counted(run, names)?;
    most_was_sampled(run)
}

fn most_was_sampled(run: &RunView) -> Result<(), Missing> {
    let used_ns = run.usage().filter(|_| run.is_command()).map_or(0, |usage| usage.cpu_ns());
    let sampled_ns = run.growth("tree.run_ns").unwrap_or(0);
    if sampled_ns as f64 >= used_ns as f64 * MOST_RUN {
        return Ok(());
    }
    let why = "samples met less than most of its processes, which were too short";
    Err(Missing::with_events(run, why, "sched"))
}

/// Whether the kernel reported every thread of the whole recording.
fn reported(run: &RunView) -> Result<(), Missing> {
    let is_reported = |source: TaskSource| source != TaskSource::Proc;
    let tasks = run.tasks();
    if !tasks.iter().any(|task| is_reported(task.source)) {
        return match run.facts().sight("exits") {
            SourceState::Closed { why, remedy } => Err(Missing::of(run, why, remedy.as_deref())),
            _ if !run.is_whole() => {
                let why = "delay accounting covers whole recordings only";
                Err(Missing::with_events(run, why, "sched"))
            }
            _ => Err(Missing::with_events(run, "the kernel charged no thread", "sched")),
        };
    }
    let lost = run.recording().outcome.as_ref().map_or(0, |outcome| outcome.lost_exits);
    if lost > 0 {
        return Err(Missing::with_events(run, "ends of threads were lost", "sched"));
    }
    Ok(())
}

/// Delay accounting counts for a thread only if it was on when the thread began.
const BEGAN_BEFORE: &str = "delay accounting was switched on after some of these processes began, \
                            so their waits were not charged";

fn charges(run: &RunView) -> Result<(), Missing> {
    reported(run)?;
    if run.tasks().iter().any(|task| task.block_io.is_none()) {
        return Err(Missing::with_events(run, BEGAN_BEFORE, "sched"));
    }
    Ok(())
}

fn block_charges(run: &RunView) -> Result<(), Missing> {
    if let SourceState::Closed { why, remedy } = run.facts().sight("delay_accounting") {
        return Err(Missing::of(run, why, remedy.as_deref()));
    }
    let is_repaired =
        |name: &str| run.accounts.repairs.iter().any(|repair| repair.text.starts_with(name));
    if is_repaired("block I/O delay") || is_repaired("tree.block_io_ns") {
        let why = "some waits for block I/O were charged from a wrong stamp and left out";
        return Err(Missing::with_events(run, why, "sched"));
    }
    few_for_the_disks(run)?;
    if charges(run).is_ok() {
        return Ok(());
    }
    if run.tasks().iter().any(|task| task.block_io.is_none()) {
        return Err(Missing::with_events(run, BEGAN_BEFORE, "sched"));
    }
    if !run.facts().sight("delay_accounting").is_open() {
        return Err(Missing::with_events(run, "waits for block I/O were not charged", "sched"));
    }
    span::counted(run, &["tree.block_io_ns"])?;
    most_was_sampled(run)
}

/// Less than this part of what the disks took for the subject's requests is no charge to believe.
/// Picked: read-ahead hides most of the waiting, not nearly all of it.
const LEAST_CHARGED: u64 = 20;

/// A charge that contradicts the disks: they worked for the subject long, and it waited for none of
/// it. Seen: 1.41 GiB read and 6 ms charged.
fn few_for_the_disks(run: &RunView) -> Result<(), Missing> {
    charged_too_little(run).map_or(Ok(()), |why| Err(Missing::with_events(run, why, "sched")))
}

/// Both numbers, where they contradict each other.
pub(super) fn charged_too_little(run: &RunView) -> Option<String> {
    let took_ns = || {
        let own = run.growth("tree.read_bytes")?;
        let all = run.growth_between("disk.", ".read_bytes")?;
        let ns = run.growth_between("disk.", ".read_ns")?;
        let part = u128::from(ns) * u128::from(own.min(all)) / u128::from(all.max(1));
        u64::try_from(part).ok()
    };
    let disks_ns = took_ns().unwrap_or(0);
    let charged_ns = run.accounts.thread(TimeSlice::BlockIo);
    if !run.hurts(disks_ns) || charged_ns >= disks_ns / LEAST_CHARGED {
        return None;
    }
    Some(format!(
        "the disks took {} for its reads, and {} of waiting was charged",
        long_time(disks_ns as f64),
        long_time(charged_ns as f64)
    ))
}

/// Whether switch events followed the subject from the start to the end.
pub(super) fn watches_switches(run: &RunView) -> bool {
    Witness::Switches.check(run).is_ok()
}

/// Threads that ran or were in the queue all of the time waited for nothing else.
fn no_time_left(run: &RunView) -> Result<(), Missing> {
    time(run, &RUN_TIMES)?;
    time(run, &QUEUE_TIMES)?;
    let others =
        [TimeSlice::BlockIo, TimeSlice::Children, TimeSlice::Sleep, TimeSlice::Unexplained];
    let left =
        others.iter().fold(0, |sum: u64, slice| sum.saturating_add(run.accounts.thread(*slice)));
    if run.is_machine() || run.accounts.bars.thread.is_empty() || run.hurts(left) {
        return Err(Missing::with_events(run, "what threads waited for was not seen", "sched"));
    }
    Ok(())
}

/// All requests to all disks, once for each thread, took less than matters.
fn idle_disks(run: &RunView) -> Result<(), Missing> {
    span::any(run, "disk.", "")?;
    span::counted(run, &["tree.threads"])?;
    match run.most_device_wait_ns() {
        Some(most) if !run.hurts(most) => Ok(()),
        _ => Err(Missing::with_events(run, "the disks were busy", "sched")),
    }
}

/// Pages of other nodes, of each node that was read.
fn nodes(run: &RunView) -> Result<(), Missing> {
    span::any(run, "numa.node", ".other_node")?;
    let names = run.names_between("numa.node", "").into_iter();
    let mut roots: Vec<&str> = names.filter_map(|name| Some(name.rsplit_once('.')?.0)).collect();
    roots.dedup();
    roots.iter().try_for_each(|root| span::whole(run, &format!("{root}.other_node")))
}

/// The subject's own I/O; of processes of other users it can be read with a right only.
fn process_io(run: &RunView) -> Result<(), Missing> {
    let is_own = matches!(run.facts().subject, Subject::Command { .. });
    if let SourceState::Closed { why, remedy } = run.facts().sight("other_users")
        && !is_own
    {
        return Err(Missing::of(run, why, remedy.as_deref()));
    }
    span::counted(run, &["tree.read_bytes", "tree.write_bytes"])
}

/// Counters of each group of the subject that can have a limit: any but the root's.
fn groups(run: &RunView, controller: &str, names: &[&str]) -> Result<(), Missing> {
    span::source_if_asked(run, "groups_above")?;
    // A group of the unified tree may have its controllers elsewhere, where they were not found.
    let known = |group: &GroupFacts| group.paths.contains_key(controller);
    if !run.facts().groups.iter().any(known) && !has_files(run, 0, controller) {
        return Err(Missing::new(format!("{controller} limits of its groups were not read")));
    }
    for level in levels(run, controller) {
        for name in names {
            span::whole(run, &format!("group{level}.{controller}.{name}"))?;
        }
    }
    Ok(())
}

/// The levels of the subject's groups below the root that have files of this controller. One that
/// is not enabled below version 2 has none, and no limit.
fn levels(run: &RunView, controller: &str) -> Vec<u32> {
    let groups = run.facts().groups.iter();
    let below_root = groups.filter(|group| {
        let own = group.paths.get(controller);
        match own.or_else(|| group.paths.get("unified")) {
            Some(path) if path == "/" => false,
            Some(_) => own.is_some() || has_files(run, group.level, controller),
            None => false,
        }
    });
    let mut levels: Vec<u32> = below_root.map(|group| group.level).collect();
    if levels.is_empty() && run.facts().groups.is_empty() {
        levels.push(0);
    }
    levels
}

fn has_files(run: &RunView, level: u32, controller: &str) -> bool {
    run.starting_with(&format!("group{level}.{controller}.")).next().is_some()
}

/// Counters of memory limits watched in all groups.
fn group_memory(run: &RunView) -> Result<(), Missing> {
    groups(run, "memory", &["usage_bytes"])?;
    hits(run, "memory", &MEMORY_HITS).map(|_| ())
}

/// How often limits of all groups were reached, or stopped something.
fn hits(run: &RunView, controller: &str, names: &[&str]) -> Result<u64, Missing> {
    let mut sum = 0u64;
    for level in levels(run, controller) {
        let named = names.iter().map(|name| format!("group{level}.{controller}.{name}"));
        let known: Vec<String> = named.filter(|name| run.series(name).is_some()).collect();
        if known.is_empty() {
            let why =
                format!("how often {controller} limits of its groups were reached is not known");
            return Err(Missing::new(why));
        }
        for name in known {
            span::whole(run, &name)?;
            sum = sum.saturating_add(run.growth(&name).unwrap_or(0));
        }
    }
    Ok(sum)
}

/// Limits of all groups, of which none was reached.
fn limits_still(run: &RunView, controller: &str, names: &[&str]) -> Result<(), Missing> {
    groups(run, controller, &[])?;
    match hits(run, controller, names)? {
        0 => Ok(()),
        _ => Err(Missing::new("its limit was reached")),
    }
}

fn group_io(run: &RunView) -> Result<(), Missing> {
    span::source_if_asked(run, "groups_above")?;
    let mut own = run.starting_with("group0.io.").peekable();
    if own.peek().is_none() {
        return Err(Missing::new("I/O counters of its groups were not read"));
    }
    own.try_for_each(|series| span::whole(run, &series.schema.name))
}

fn limited_groups(run: &RunView) -> Result<(), Missing> {
    span::source(run, "group_limits")?;
    span::counted(run, &["limited.groups", "limited.unreadable", "limited.unwatched"])?;
    let missed = |name: &str| run.max(name).unwrap_or(0) > 0;
    if missed("limited.unreadable") || missed("limited.unwatched") {
        return Err(Missing::of(run, "some control groups were not looked at", Some("sudo")));
    }
    Ok(())
}

/// What counts that a limit of a group held something back, or that it has a limit of I/O at all.
const HELD: [(&str, &str); 7] = [
    ("cpu", ".cpu.throttled_periods"),
    ("memory", ".memory.failcnt"),
    ("memory", ".memory.events.max"),
    ("memory", ".memory.events.high"),
    ("io", ".io.held_ns"),
    ("pids", ".pids.refused"),
    ("memory", "others.memory.hits"),
];

fn limited_still(run: &RunView, controller: &str) -> Result<(), Missing> {
    limited_groups(run)?;
    let ends = HELD.iter().filter(|(of, _)| *of == controller).map(|(_, end)| *end);
    let mut moved = ends.filter(|end| run.growth_between(LIMITED, end) > Some(0));
    let has_io_limits = run.starting_with(LIMITED).any(|one| one.schema.name.contains(".max."));
    if moved.next().is_some() || (controller == "io" && has_io_limits) {
        return Err(Missing::new("groups have reached their limit"));
    }
    Ok(())
}
