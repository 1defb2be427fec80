//! Programs inside of the kernel (`bpf/recorder.bpf.c`): loaded, asked at each sample, and their
//! numbers turned into [`TraceSums`] and [`Who`].
//!
//! 1. Programs are attached one after another, then a walk over all tasks gives each thread of the
//!    subject its storage. What was counted until then is the base that is subtracted.
//! 2. Threads that use much report by themselves. A walk over the tasks has the rest, for the
//!    machine once a second, else at each sample: what each used, what all used together, and long
//!    sleepers get the class of their wait. On a machine with very many tasks the walk is made less
//!    often. Each read takes the sums.
//! 3. Stacks that the kernel has not met before are reported once; the answer, which state they
//!    stand for, goes back into the kernel.

mod files;
pub(super) mod objects;
mod program_name;
mod requests;
mod samples;
mod stacks;
mod sums;
mod totals;
mod who;

use super::accesses::AccessRecorder;
use super::block::RequestTotals;
use super::cpu::{self, CpuSums, sample_period_ns};
use super::hits::HitSums;
use super::reducer::TraceSums;
use super::returns::ReturnSums;
use super::sources::online;
use super::stack::FunctionTable;
use super::{Family, sources};
use crate::collect::LimitedPaths;
use crate::collect::TreeTotals;
use files::Files;
use machine::Root;
use machine::cgroup::{MemoryLimit, memory_limits};
use model::recording::{SourceState, Who};
use objects::{Maps, News};
use requests::DeviceUsers;
use samples::Samples;
use stacks::Stacks;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use sums::{Count, Sums};
use sys::bpf::{Attachment, Programs, TaskReport};
use sys::clock::{now_ns, since_boot_ns};
use sys::perf::{self, Attributes, EventSource};
use sys::process::{Capability, has_capability};
use totals::BeforeWalk;
use who::Processes;

/// A processor that keeps running one thread asks it so often what it used.
const USE_PERIOD_NS: u64 = 97_000_000;
/// The walk over the tasks may take so much of the time: a hundredth, or where the class of each
/// sleep matters, as in a command, a 25th.
const WALK_SHARE: u64 = 100;
const WALK_SHARE_OF_FEW: u64 = 25;
/// What loading may take of memory: 40 MiB here and 16 MiB of maps in the kernel, and room beside.
const LOADING_BYTES: u64 = 96 << 20;
/// All tasks and files are looked at so often.
const SECOND_NS: u64 = 1_000_000_000;

/// A program, what it is attached to, and whether its family is blind without it.
type Wanted = (&'static str, Attachment, bool);

/// Programs that the kernel refuses or has no event for, by name, and why.
type Lost = BTreeMap<&'static str, SourceState>;

const fn at(name: &'static str, event: &'static str) -> Wanted {
    (name, Attachment::Tracepoint(event), true)
}

const fn perhaps(name: &'static str, event: &'static str) -> Wanted {
    (name, Attachment::Tracepoint(event), false)
}

/// What every family needs: storage for each thread of the subject.
const THREADS: &[Wanted] = &[
    at("thread_forked", "sched_process_fork"),
    at("thread_begins", "sched_wakeup_new"),
    at("thread_wakes", "sched_waking"),
    at("threads_switch", "sched_switch"),
];
/// What the kernel does not trace of pages that are read is absent.
const ACCESSES: &[Wanted] = &[
    at("access_completed", "block_rq_complete"),
    at("access_added", "mm_filemap_add_to_page_cache"),
    at("access_deleted", "mm_filemap_delete_from_page_cache"),
    perhaps("access_read", "mm_filemap_get_pages"),
    perhaps("access_faulted", "mm_filemap_fault"),
];
const BLOCK: &[Wanted] = &[
    at("request_issued", "block_rq_issue"),
    at("request_completed", "block_rq_complete"),
    at("request_requeued", "block_rq_requeue"),
];
const VMSCAN: &[Wanted] = &[
    at("reclaim_begins", "mm_vmscan_direct_reclaim_begin"),
    at("reclaim_ends", "mm_vmscan_direct_reclaim_end"),
    perhaps("group_reclaim_begins", "mm_vmscan_memcg_reclaim_begin"),
    perhaps("group_reclaim_ends", "mm_vmscan_memcg_reclaim_end"),
    perhaps("reclaim_throttled", "mm_vmscan_throttled"),
    perhaps("compaction_begins", "mm_compaction_begin"),
    perhaps("compaction_ends", "mm_compaction_end"),
];
/// Two forms of one event, by the age of the kernel.
const DIRTY_PAUSES: [Wanted; 2] =
    [at("dirty_paused", "balance_dirty_pages"), at("dirty_paused_long", "balance_dirty_pages")];
const WHO: &[Wanted] = &[
    perhaps("request_made", "block_io_start"),
    perhaps("page_added", "mm_filemap_add_to_page_cache"),
    perhaps("page_deleted", "mm_filemap_delete_from_page_cache"),
    perhaps("page_dirtied", "writeback_dirty_folio"),
    perhaps("swap_queued", "block_bio_queue"),
];
/// Where the kernel does not trace reads of the page cache the family is closed.
const HITS: &[Wanted] = &[
    at("hit_read", "mm_filemap_get_pages"),
    at("hit_added", "mm_filemap_add_to_page_cache"),
    at("hit_deleted", "mm_filemap_delete_from_page_cache"),
    perhaps("hit_mapped", "mm_filemap_fault"),
];
const SAMPLES: Wanted = ("processor_sampled", Attachment::PerfEvent, true);
/// Without it a thread that keeps its processor is heard of once a second.
const USE: Wanted = ("use_reported", Attachment::PerfEvent, false);
const REPORT: Wanted = ("report", Attachment::Tasks, true);

/// The loaded programs and what they have said so far.
#[derive(Debug)]
pub struct InKernel {
    /// Held so that they stay loaded.
    programs: Programs,
    #[expect(dead_code, reason = "processors are looked at as long as these are held")]
    clocks: Vec<perf::Event>,
    /// Whether the subject is the whole machine.
    is_machine: bool,
    report: TaskReport,
    maps: Maps,
    sights: BTreeMap<Family, SourceState>,
    lost: Lost,
    table: &'static FunctionTable,
    sums: Sums,
    requests: RequestTotals,
    stacks: Stacks,
    cpu: CpuSums,
    processes: Option<Processes>,
    files: Files,
    /// By process.
    samples: Samples,
    users: DeviceUsers,
    /// Of pages that came back: what was counted before the begin, and since.
    returns: Option<(ReturnSums, ReturnSums)>,
    /// The same of pages that were used again, where that is asked for.
    hits: Option<(HitSums, HitSums)>,
    /// Keeps single accesses, where that is asked for.
    accesses: Option<AccessRecorder>,
    /// Processes of the subject whose threads get storage from the next walk.
    adopted: Vec<u32>,
    /// What a walk wrote, kept for its room.
    records: Vec<u8>,
    /// Before this no walk is made again, as the last one took long.
    next_walk_ns: u64,
    is_walk_due: bool,
    totals: Option<TreeTotals>,
    next_second_ns: u64,
    /// Whether all that used anything is reported now, not only the first.
    is_second: bool,
    caller_ns: u64,
}

impl InKernel {
    /// Loads the programs of the families for the subject: everyone, or these processes with their
    /// children. What cannot be seen of a family is in its sight.
    ///
    /// # Errors
    /// Why the kernel runs none of them, and what would help.
    pub fn open(
        families: &BTreeSet<Family>,
        subject: Option<&HashSet<u32>>,
        table: &'static FunctionTable,
    ) -> std::result::Result<Self, SourceState> {
        may_load()?;
        has_memory()?;
        let epoch_ns = now_ns();
        let opened = objects::open(epoch_ns, subject.is_none(), families);
        let (mut programs, mut maps) = opened.map_err(|error| refused(&error))?;
        for process in subject.into_iter().flatten() {
            maps.members.insert(*process).map_err(|error| refused(&error))?;
        }
        programs.load(&wanted(families));
        let mut lost = BTreeMap::new();
        attach_all(&mut programs, THREADS, &mut lost).map_err(|error| refused(&error))?;
        let mut sights = BTreeMap::new();
        for family in families {
            sights.insert(*family, attach_family(&mut programs, *family, &mut lost));
        }
        let period_ns = sample_period_ns(subject.is_none(), online().len());
        let mut clocks = Vec::new();
        if let Some(sight) = sights.get_mut(&Family::Cpu) {
            match start_clocks(&mut programs, &SAMPLES, period_ns) {
                Ok(started) => clocks = started,
                Err(error) => *sight = sources::closed(&error),
            }
        }
        let names_processes = sights.get(&Family::Who).is_some_and(SourceState::is_open);
        if names_processes && let Ok(started) = start_clocks(&mut programs, &USE, USE_PERIOD_NS) {
            clocks.extend(started);
        }
        let (name, to, _) = REPORT;
        let report = programs.attach(name, to).map_err(|error| refused(&error));
        let Some(report) = report? else {
            return Err(SourceState::closed("the kernel walks over no tasks", None));
        };
        let mut in_kernel = Self {
            programs,
            clocks,
            is_machine: subject.is_none(),
            report,
            maps,
            sights,
            lost,
            table,
            sums: Sums::new(epoch_ns),
            requests: RequestTotals::default(),
            stacks: Stacks::default(),
            cpu: CpuSums::new(period_ns),
            processes: names_processes.then(Processes::default),
            files: Files::default(),
            samples: Samples::default(),
            users: DeviceUsers::default(),
            returns: None,
            hits: None,
            accesses: None,
            adopted: subject.into_iter().flatten().copied().collect(),
            records: Vec::new(),
            next_walk_ns: 0,
            is_walk_due: true,
            totals: None,
            next_second_ns: SECOND_NS,
            is_second: false,
            caller_ns: 0,
        };
        in_kernel.programs.seal();
        in_kernel.keep_accesses();
        in_kernel.walk().map_err(|error| refused(&error))?;
        in_kernel.sums.begin(&in_kernel.maps).map_err(|error| refused(&error))?;
        in_kernel.begin_distances(names_processes).map_err(|error| refused(&error))?;
        Ok(in_kernel)
    }

    /// Distances of pages are counted from here on, where the kernel shows them.
    fn begin_distances(&mut self, names_processes: bool) -> sys::Result<()> {
        if names_processes && self.sees_returns() {
            self.returns = Some((objects::returns(&self.maps)?, ReturnSums::default()));
        }
        if self.sights.get(&Family::Hits).is_some_and(SourceState::is_open) {
            self.hits = Some((objects::hits(&self.maps)?, HitSums::default()));
        }
        Ok(())
    }

    /// Asks for everything that happened until now; `caller_ns` is the clock of the rows. With
    /// `all` nothing waits for the end of its second.
    pub fn advance(&mut self, caller_ns: u64, all: bool) {
        self.caller_ns = caller_ns;
        if let Some(processes) = &mut self.processes {
            processes.set_clock(caller_ns, since_boot_ns());
        }
        self.is_second = all || caller_ns >= self.next_second_ns;
        if self.is_second {
            self.next_second_ns = caller_ns + SECOND_NS;
            self.is_walk_due = true;
        }
        // One that sleeps has the class of its wait before until a walk looks at it: among the
        // many threads of a machine that hardly counts, in a command it is the verdict.
        self.is_walk_due |= !self.is_machine;
        let may_walk = |it: &Self| all || now_ns() >= it.next_walk_ns;
        // What fails is absent until the next time; the sums stay as they were.
        if self.is_walk_due && may_walk(self) {
            let _ = self.walk();
        }
        self.take_news();
        let has_new = self.stacks.has_new();
        let _ = self.stacks.settle(&mut self.maps, &mut self.sums);
        // Those that sleep now get the class that has just been learned.
        self.is_walk_due |= has_new;
        if has_new && (!self.is_machine || may_walk(self)) {
            let _ = self.walk();
        }
        let _ = self.sums.read(&self.maps);
        let _ = objects::read_devices(&mut self.maps.devices, &mut self.requests);
        self.requests.issued = self.sums.count(Count::RequestsIssued);
        if let (Some((base, since)), Ok(now)) = (&mut self.returns, objects::returns(&self.maps)) {
            *since = now.since(base);
        }
        if let (Some((base, since)), Ok(now)) = (&mut self.hits, objects::hits(&self.maps)) {
            *since = now.since(base);
        }
    }

    /// Whether pages of files and of swap are seen both when they leave and when they come: they
    /// are in one order.
    fn sees_returns(&self) -> bool {
        ["page_added", "page_deleted", "swap_queued"]
            .iter()
            .all(|name| !self.lost.contains_key(name))
    }

    /// Walks over all tasks: new ones get their storage, the others say what they used.
    fn walk(&mut self) -> sys::Result<()> {
        let begun_ns = now_ns();
        let before = self.is_machine.then(|| BeforeWalk::read(&self.maps)).transpose()?;
        self.report.read(&mut self.records)?;
        // Their children follow them from now on, and their numbers may be given to others.
        for process in self.adopted.drain(..) {
            let _ = self.maps.members.remove(process);
        }
        if let Some(before) = before {
            self.totals = Some(before.totals(&self.maps)?);
        }
        if let Some(processes) = &mut self.processes {
            for record in objects::threads(&self.records) {
                processes.take(&record, self.caller_ns);
            }
        }
        let took_ns = now_ns().saturating_sub(begun_ns);
        let share = if self.is_machine { WALK_SHARE } else { WALK_SHARE_OF_FEW };
        self.next_walk_ns = begun_ns + took_ns.saturating_mul(share);
        self.is_walk_due = false;
        Ok(())
    }

    /// What all processes used as of the last walk; `None` unless the subject is the machine.
    pub fn totals(&self) -> Option<&TreeTotals> {
        self.totals.as_ref()
    }

    /// Takes what the programs reported at once.
    fn take_news(&mut self) {
        let Self { maps, processes, stacks, cpu: sums, table, caller_ns, samples, .. } = self;
        maps.news.drain(|record| match objects::news(record) {
            Some(News::Used(thread)) => {
                if let Some(processes) = processes {
                    processes.take(&thread, *caller_ns);
                }
            }
            Some(News::Stack { id, is_block, frames }) => {
                stacks.meet(id, table.classify_wait(is_block, frames));
            }
            Some(News::Cpu { of, frames }) => {
                let parts = sums.take(cpu::judge(of.is_kernel_thread, frames));
                if processes.is_some() {
                    samples.take(of, parts);
                }
            }
            None => {}
        });
    }

    /// The sums as of the last [`InKernel::advance`].
    pub fn sums(&self, faults: u64) -> TraceSums<'_> {
        TraceSums {
            threads: self.sums.threads(),
            requests: &self.requests,
            reclaim: self.sums.reclaim(),
            cpu: &self.cpu,
            events: self.sums.count(Count::Events),
            lost: self.lost(),
            stopped: false,
            faults,
            returns: self.returns.as_ref().map(|(_, since)| since),
            hits: self.hits.as_ref().map(|(_, since)| since),
        }
    }

    /// What single processes used since the last call, and which files.
    pub fn who(&mut self) -> Option<Who> {
        let (caller_ns, is_second, maps) = (self.caller_ns, self.is_second, &mut self.maps);
        let processes = self.processes.as_mut()?;
        let mut who = Who::default();
        if is_second {
            let _ = maps.short.drain(|key, value| {
                processes.take_short(&objects::short(key, value), caller_ns);
            });
            processes.set_others(self.sums.others());
            // Before the processes that have ended are forgotten.
            let files = &mut self.files;
            let _ = maps.files.drain(|key, value| files.take(key, value));
            self.files.write(processes, caller_ns, &mut who);
            self.samples.write(processes, caller_ns, &mut who);
            let users = &mut self.users;
            let _ = maps.device_users.drain(|key, value| users.take(key, value));
            self.users.write(processes, caller_ns, &mut who);
        }
        processes.write(is_second, caller_ns, &mut who);
        Some(who)
    }

    /// Takes single accesses from now on, where their programs are attached.
    fn keep_accesses(&mut self) {
        let is_open = self.sights.get(&Family::Accesses).is_some_and(SourceState::is_open);
        let maps = self.maps.accesses.take().filter(|_| is_open);
        self.accesses = maps.map(AccessRecorder::new);
    }

    /// What keeps single accesses.
    pub fn accesses_mut(&mut self) -> Option<&mut AccessRecorder> {
        self.accesses.as_mut()
    }

    /// Adds processes to the subject: the next walk gives their threads storage.
    pub fn adopt(&mut self, processes: &[u32]) {
        for process in processes {
            // A full set watches no more until the next walk.
            if self.maps.members.insert(*process).is_ok() {
                self.adopted.push(*process);
                self.is_walk_due = true;
                self.next_walk_ns = 0;
            }
        }
    }

    /// Names the groups of processes by those that have a limit.
    pub fn name_groups_by(&mut self, limited: LimitedPaths) {
        if let Some(processes) = &mut self.processes {
            processes.name_groups_by(limited);
        }
    }

    /// Forgets what processes and files did until now: the recording begins here.
    pub fn restart_who(&mut self) {
        let others = self.sums.others();
        if let Some(processes) = &mut self.processes {
            processes.restart(others);
        }
        // What cannot be emptied is in the first rows.
        let _ = self.maps.short.drain(|_, _| {});
        let _ = self.maps.files.drain(|_, _| {});
        let _ = self.maps.device_users.drain(|_, _| {});
        self.samples = Samples::default();
    }

    /// From when on everything counts, on the clock of [`sys::clock`].
    pub fn opened_ns(&self) -> u64 {
        self.sums.opened_ns()
    }

    /// Up to when everything has been counted.
    pub fn horizon_ns(&self) -> u64 {
        self.sums.horizon_ns()
    }

    /// Requests, samples of processors and new stacks for which there was no room.
    pub fn lost(&self) -> u64 {
        self.sums.count(Count::LostRequests).saturating_add(self.sums.count(Count::LostRecords))
    }

    /// Which programs are missing of families that can do without, and why.
    pub fn lost_programs(&self) -> impl Iterator<Item = (&'static str, &SourceState)> {
        self.lost.iter().map(|(name, why)| (*name, why))
    }

    /// What could be seen of each family.
    pub fn sights(&self) -> &BTreeMap<Family, SourceState> {
        &self.sights
    }
}

/// Whether this process may load programs at all; what lacks otherwise.
fn may_load() -> std::result::Result<(), SourceState> {
    let lacking = [(Capability::Bpf, "CAP_BPF"), (Capability::Perfmon, "CAP_PERFMON")]
        .into_iter()
        .filter(|(capability, _)| !has_capability(*capability))
        .map(|(_, name)| name)
        .collect::<Vec<_>>();
    if !has_capability(Capability::SysAdmin) && !lacking.is_empty() {
        let why = format!("to run programs in the kernel needs {}", lacking.join(" and "));
        return Err(SourceState::closed(why, Some("sudo")));
    }
    if super::is_first_namespace() { Ok(()) } else { Err(super::other_numbers()) }
}

/// Whether loading finds the memory that it takes for a moment.
fn has_memory() -> std::result::Result<(), SourceState> {
    let root = Root::system();
    let available = root.read("/proc/meminfo").ok();
    let of_machine = available.and_then(|text| machine::memory::parse_available(&text));
    let of_groups = memory_limits(&root);
    let rooms = of_groups.iter().filter_map(MemoryLimit::room).chain(of_machine);
    match rooms.map(|room| room.0).min() {
        Some(room) if room < LOADING_BYTES => {
            let (needed, room) = (LOADING_BYTES >> 20, room >> 20);
            let why = format!("to load programs needs {needed} MiB, there are {room} MiB");
            Err(SourceState::closed(why, None))
        }
        _ => Ok(()),
    }
}

/// What the kernel says of its own types; programs are fitted to them.
const KERNEL_TYPES_FILE: &str = "/sys/kernel/btf/vmlinux";

/// Why the kernel runs no programs. Locked down it refuses one for a helper that it may not call,
/// in the same words as a wrong program.
fn refused(error: &sys::Error) -> SourceState {
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        let why = "the kernel is locked down (confidentiality) and runs no programs";
        return SourceState::closed(why, Some("start it with lockdown=integrity, or none"));
    }
    let has_types = std::path::Path::new(KERNEL_TYPES_FILE).exists();
    let remedy = (!has_types).then_some("a kernel built with CONFIG_DEBUG_INFO_BTF");
    SourceState::closed(error.to_string(), remedy)
}

/// What the families need of programs, to be loaded at once.
fn wanted(families: &BTreeSet<Family>) -> Vec<(&'static str, Attachment)> {
    let of_family = |family: &Family| match family {
        Family::Accesses => ACCESSES,
        Family::Block => BLOCK,
        Family::Vmscan => VMSCAN,
        // Where the kernel refuses this one it is of the other form.
        Family::Writeback => &DIRTY_PAUSES[..1],
        Family::Who => WHO,
        Family::Hits => HITS,
        Family::Cpu => std::slice::from_ref(&SAMPLES),
        Family::Sched | Family::Faults => &[],
    };
    let uses = families.contains(&Family::Who).then_some(&USE);
    let all = families.iter().flat_map(of_family).chain(THREADS).chain([&REPORT]).chain(uses);
    all.map(|(name, to, _)| (*name, *to)).collect()
}

/// Attaches programs; those that their family can do without are in `lost` where that fails.
fn attach_all(programs: &mut Programs, wanted: &[Wanted], lost: &mut Lost) -> sys::Result<()> {
    for (name, to, is_needed) in wanted {
        match programs.attach(name, *to) {
            Err(error) if *is_needed => return Err(error),
            Err(error) => drop(lost.insert(name, sources::closed(&error))),
            Ok(_) => {}
        }
    }
    Ok(())
}

fn attach_family(programs: &mut Programs, family: Family, lost: &mut Lost) -> SourceState {
    let attached = match family {
        Family::Sched => Ok(()),
        Family::Accesses => attach_all(programs, ACCESSES, lost),
        Family::Block => attach_all(programs, BLOCK, lost),
        Family::Vmscan => attach_all(programs, VMSCAN, lost),
        Family::Writeback => {
            let mut attach = |wanted| attach_all(programs, std::slice::from_ref(wanted), lost);
            attach(&DIRTY_PAUSES[0]).or_else(|_| attach(&DIRTY_PAUSES[1]))
        }
        Family::Who => attach_all(programs, WHO, lost),
        Family::Hits => attach_all(programs, HITS, lost),
        // These are counted or sampled by other means.
        Family::Faults | Family::Cpu => Ok(()),
    };
    attached.map_or_else(|error| sources::closed(&error), |()| SourceState::Open)
}

/// Begins to run a program on every processor, each time that `period_ns` has passed.
fn start_clocks(
    programs: &mut Programs,
    (name, to, _): &Wanted,
    period_ns: u64,
) -> sys::Result<Vec<perf::Event>> {
    programs.attach(name, *to)?;
    let attributes = Attributes::new(EventSource::ProcessorClock(period_ns));
    let start = |processor| {
        let clock = perf::Event::on_processor(&attributes, processor)?;
        clock.run(programs.descriptor(name)?)?;
        clock.enable().map(|()| clock)
    };
    online().into_iter().map(start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::ErrorKind;

    #[test]
    fn adopted_processes_are_waited_for_until_the_next_walk_alone() {
        let sleeper = || std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (mut first, mut second) = (sleeper(), sleeper());
        let subject = HashSet::from([first.id()]);
        let families = BTreeSet::from([Family::Sched]);
        let opened = InKernel::open(&families, Some(&subject), FunctionTable::none());
        let is_watched = |it: &mut InKernel, pid| it.maps.members.remove(pid).is_ok();
        let seen = opened.map(|mut in_kernel| {
            let of_subject = is_watched(&mut in_kernel, first.id());
            let before = in_kernel.sums.count(Count::ThreadsSeen);
            in_kernel.adopt(&[second.id()]);
            in_kernel.advance(1, false);
            let met = in_kernel.sums.count(Count::ThreadsSeen) - before;
            let walked_ns = in_kernel.next_walk_ns;
            in_kernel.adopt(&[]);
            (of_subject, met, is_watched(&mut in_kernel, second.id()), walked_ns, in_kernel)
        });
        for child in [&mut first, &mut second] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let (of_subject, met, of_adopted, walked_ns, in_kernel) = match seen {
            Ok(seen) => seen,
            Err(why) => return testkit::skip(format!("{why:?}")),
        };
        assert!(!of_subject && !of_adopted, "their numbers can be another's");
        assert_eq!(met, 1, "the walk met the one that joined");
        assert!(walked_ns > 0);
        assert_eq!(in_kernel.next_walk_ns, walked_ns, "no new one asks for no walk");
    }

    #[test]
    fn a_program_without_its_event_takes_no_other_with_it() {
        let opened = objects::open(now_ns(), true, &BTreeSet::new());
        let (mut programs, _maps) = match opened {
            Ok(opened) => opened,
            Err(error) => return testkit::skip(error),
        };
        let issued = at("request_issued", "block_rq_issue");
        let without = perhaps("request_completed", "no_such_event");
        let (name, nowhere, _) = without;
        // Beside each other, as a recording loads them.
        programs.load(&[(issued.0, issued.1), (name, nowhere)]);
        let error = programs.attach(name, nowhere).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert!(error.to_string().contains("no_such_event"), "{error}");
        assert!(programs.descriptor(name).is_err());
        let mut lost = Lost::new();
        attach_all(&mut programs, &[without, issued], &mut lost).unwrap();
        assert!(programs.descriptor("request_issued").is_ok());
        assert!(matches!(&lost[name], SourceState::Closed { why, .. } if why.contains("no_such")));
        assert_eq!(lost.len(), 1, "what is attached is not lost");
        // One that the family is blind without is the answer of the family.
        let needed = attach_all(&mut programs, &[at(name, "no_such_event")], &mut lost);
        assert_eq!(needed.unwrap_err().kind, ErrorKind::NotFound);
        let elsewhere = Attachment::Tracepoint("block_rq_complete");
        assert!(programs.attach(name, elsewhere).is_ok());
        assert!(programs.descriptor(name).is_ok());
    }
}
