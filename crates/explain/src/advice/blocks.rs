//! A recording as blocks of time, each with its waits for disks and with the distances of the pages
//! that left memory and came back in it.
//!
//! The waits that more memory can spare are those for what came back. Of the waits for reads that
//! is the share that each process read again, of the waits for swap all. A block is five minutes,
//! or a sixth of a recording that is shorter than six of them.

use super::flash::BlockReads;
use super::less::CacheUse;
use super::trace::TraceFacts;
use crate::recording::accounting::{Accounts, account};
use crate::recording::doubts;
use crate::recording::who::shares;
use crate::recording::words;
use crate::recording::{View, Window, is_in_kernel};
use model::explanation::{Interval, TimePart, TimeSlice};
use model::recording::{GroupName, Recording, SourceState, Subject};
use std::collections::BTreeMap;

/// The length of a block of a long recording.
const BLOCK_NS: u64 = 300_000_000_000;

/// So many blocks at least: an interval needs several.
const BLOCKS_MIN: u64 = 6;

/// More blocks of one recording are made longer: a week of five minutes gives 2,016.
const BLOCKS_MAX: u64 = 2_016;

/// Groups are rarely nested deeper.
const GROUPS_MAX: usize = 16;

/// Pages of files, and of swap.
pub(super) const KINDS: [&str; 2] = ["file", "swap"];

/// How distances are counted; in the order of the series of the recorder.
pub(super) const ORDERS: [&str; 2] = ["still_out", "left"];

/// Bytes that came back, by the bound of their class of distance; [`u64::MAX`]: too far to know.
pub(super) type Distances = BTreeMap<u64, u64>;

/// What came back of one kind of pages in one block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KindReturns {
    /// What left.
    pub(super) left_bytes: u64,
    /// What was seen to leave and come back.
    pub(super) seen_bytes: u64,
    /// What came back by the kernel's own count, if that is the subject's.
    pub(super) counted_bytes: Option<u64>,
    /// The waits of threads for what came back.
    pub(super) waited_ns: u64,
    /// Distances by [`ORDERS`].
    pub(super) distances: [Distances; 2],
}

impl KindReturns {
    /// What was seen to leave and come back.
    pub(super) fn seen(&self) -> u64 {
        self.seen_bytes
    }

    /// All that came back.
    pub(super) fn all_bytes(&self) -> u64 {
        self.seen_bytes.max(self.counted_bytes.unwrap_or(0))
    }

    /// What came back from a distance that is not known: too far, or not seen to leave.
    pub(super) fn unknown_bytes(&self) -> u64 {
        let too_far = self.distances[0].get(&u64::MAX).copied().unwrap_or(0).min(self.seen_bytes);
        too_far.saturating_add(self.all_bytes().saturating_sub(self.seen_bytes))
    }
}

/// A piece of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeBlock {
    /// Its length, without the time in which no recorder ran.
    pub(super) length_ns: u64,
    /// That time, in it and since the piece before.
    pub(super) gap_ns: u64,
    /// Block I/O of the wall bar.
    pub(super) disk_ns: u64,
    /// Waits for reads and for pages of swap, added up over threads.
    pub(super) waited_ns: u64,
    /// The waits for reads alone, and what was read.
    pub(super) read_ns: u64,
    pub(super) read_bytes: u64,
    /// What ran, added up over threads; of a machine over its processors.
    pub(super) ran_ns: u64,
    /// Whether all swap is compressed memory.
    pub(super) swap_is_zram: bool,
    /// What came back, by [`KINDS`].
    pub(super) returns: [KindReturns; 2],
    /// What was used again in the page cache.
    pub(super) cache: CacheUse,
}

impl TimeBlock {
    /// Whether waits for what came back of this kind are waits for a disk.
    pub(super) fn is_priced(&self, kind: usize) -> bool {
        kind == 0 || !self.swap_is_zram
    }
}

/// What one recording, or several, say about memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    pub(super) subject: String,
    /// Whether that is the whole machine, of which the block reads are.
    pub(super) is_machine: bool,
    /// Where and when it was recorded, if it says so: of one recording.
    pub(super) host: Option<String>,
    pub(super) started_unix_ns: u64,
    pub(super) wall_ns: u64,
    pub(super) blocks: Vec<TimeBlock>,
    /// Whether it has series of returns.
    pub(super) has_returns: bool,
    /// Whether the kernel's events were summed inside of it, which returns need.
    pub(super) in_kernel: bool,
    pub(super) root: bool,
    pub(super) page_bytes: u64,
    /// Kernel events, and those of them that were lost.
    pub(super) events: u64,
    pub(super) lost: u64,
    /// Bytes that came back from compressed memory.
    pub(super) zswap_bytes: u64,
    pub(super) zram_bytes: u64,
    /// Why its figures deserve less trust.
    pub(super) doubts: Vec<String>,
    /// What it is if it is the trace of another tool.
    pub(super) trace: Option<TraceFacts>,
    /// The block reads, if the recording kept them.
    pub(super) reads: Option<BlockReads>,
    /// Waits for what came back by process and by group, ns.
    pub(super) processes: BTreeMap<String, u64>,
    pub(super) groups: BTreeMap<String, u64>,
}

impl Observation {
    /// The same with the block reads of the recording.
    #[must_use]
    pub fn with_reads(mut self, reads: BlockReads) -> Self {
        self.reads = Some(reads);
        self
    }

    pub(super) fn span_ns(&self) -> u64 {
        self.sum(|block| block.length_ns)
    }

    pub(super) fn disk_ns(&self) -> u64 {
        self.sum(|block| block.disk_ns)
    }

    pub(super) fn waited_ns(&self) -> u64 {
        self.sum(|block| block.waited_ns)
    }

    pub(super) fn ran_ns(&self) -> u64 {
        self.sum(|block| block.ran_ns)
    }

    pub(super) fn sum(&self, of: impl Fn(&TimeBlock) -> u64) -> u64 {
        self.blocks.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Of both kinds of pages in all blocks.
    pub(super) fn sum_of_kinds(&self, of: fn(&KindReturns) -> u64) -> u64 {
        self.sum(|block| total(block.returns.iter().map(of)))
    }

    /// All that was seen to come back, in pages.
    pub(super) fn returned_pages(&self) -> u64 {
        let bytes = self.sum_of_kinds(|kind| kind.seen_bytes);
        bytes / self.page_bytes.max(1)
    }

    /// The share of kernel events that was lost, 0 to 1.
    pub(super) fn lost_share(&self) -> f64 {
        if self.lost == 0 {
            return 0.0;
        }
        self.lost as f64 / self.events.saturating_add(self.lost) as f64
    }
}

/// Reduces a recording to what advice needs of it.
#[must_use]
pub fn observe(recording: &Recording) -> Observation {
    let view = View::new(recording, Window::default());
    let facts = &recording.facts;
    let page_bytes = if facts.page_bytes > 0 { facts.page_bytes } else { 4096 };
    let (processes, groups) = waits(&view);
    let lost = recording.outcome.as_ref().map(|outcome| outcome.lost_events);
    let zswap_pages = view.growth("vmstat.zswpin").unwrap_or(0);
    Observation {
        subject: words::subject(recording),
        is_machine: matches!(facts.subject, Subject::Machine | Subject::Probe { .. }),
        host: facts.machine.as_ref().and_then(|machine| machine.host.clone()),
        started_unix_ns: facts.started_unix_ns,
        wall_ns: view.wall_ns(),
        has_returns: view.sum("trace.returns.file.came_back_bytes").is_some(),
        in_kernel: is_in_kernel(&view),
        root: facts.root,
        page_bytes,
        events: view.sum("trace.events").unwrap_or(0),
        lost: lost.or_else(|| view.sum("trace.lost")).unwrap_or(0),
        doubts: doubts::besides_losses(&view),
        zswap_bytes: zswap_pages.saturating_mul(page_bytes),
        zram_bytes: view.growth_between("disk.zram", ".read_bytes").unwrap_or(0),
        trace: None,
        reads: None,
        blocks: blocks(&view, page_bytes),
        processes,
        groups,
    }
}

/// How many pieces so long a time has.
pub(super) fn piece_count(wall_ns: u64) -> u64 {
    (wall_ns / BLOCK_NS).clamp(BLOCKS_MIN, BLOCKS_MAX)
}

/// The pieces of a recording.
fn blocks(view: &View, page_bytes: u64) -> Vec<TimeBlock> {
    let wall_ns = view.wall_ns();
    let count = piece_count(wall_ns);
    let (mut from_ns, mut gap_ns) = (view.from_ns(), 0_u64);
    let mut blocks = Vec::new();
    for number in 1..=count {
        let end = u128::from(wall_ns) * u128::from(number) / u128::from(count);
        let to_ns = view.from_ns() + u64::try_from(end).unwrap_or(wall_ns);
        let part = view.during(Interval { from_ns, to_ns });
        // A window moves to its samples: the next one begins where this one ended.
        if part.to_ns() <= from_ns {
            continue;
        }
        from_ns = part.to_ns();
        let missing_ns = doubts::missing_ns(&part).min(part.wall_ns());
        gap_ns = gap_ns.saturating_add(missing_ns);
        if missing_ns < part.wall_ns() {
            let length_ns = part.wall_ns() - missing_ns;
            blocks.push(TimeBlock { length_ns, gap_ns, ..block(&part, page_bytes) });
            gap_ns = 0;
        }
    }
    blocks
}

fn block(view: &View, page_bytes: u64) -> TimeBlock {
    let accounts = account(view);
    let part = |name| accounts.part(name).map_or(0, |part| part.ns);
    let (read_ns, swap_ns) = (part(TimePart::BlockRead), part(TimePart::SwapIn));
    let mut returns = KINDS.map(|kind| returned(view, kind, page_bytes));
    let read_bytes = view.growth("tree.read_bytes").unwrap_or(0).max(returns[0].all_bytes());
    let of_bytes = part_of(read_ns, returns[0].all_bytes(), read_bytes);
    let sums = view.process_sums();
    // A process also waits for writes and for swap: of the reads it has the share that it has of
    // all such waits.
    let among_reads = |ns| part_of(ns, read_ns, shares::block_wait_ns(sums));
    let by_process = shares::refault_wait_ns(sums).map(among_reads);
    let is_machine = view.facts().subject == Subject::Machine;
    let by_process = by_process.filter(|ns| is_machine && *ns > 0);
    returns[0].waited_ns = by_process.map_or(of_bytes, |ns| ns.min(read_ns));
    returns[1].waited_ns = swap_ns;
    let swaps = &view.facts().swaps;
    TimeBlock {
        length_ns: view.wall_ns(),
        gap_ns: 0,
        swap_is_zram: !swaps.is_empty() && swaps.iter().all(|area| area.starts_with("zram")),
        disk_ns: accounts.wall(TimeSlice::BlockIo),
        waited_ns: read_ns.saturating_add(swap_ns),
        read_ns,
        read_bytes,
        ran_ns: ran_ns(&accounts),
        returns,
        cache: cache_use(view, page_bytes),
    }
}

fn ran_ns(accounts: &Accounts) -> u64 {
    let halves = [TimeSlice::User, TimeSlice::Kernel].map(|half| accounts.thread(half));
    accounts.thread(TimeSlice::Run).max(halves[0].saturating_add(halves[1]))
}

fn returned(view: &View, kind: &str, page_bytes: u64) -> KindReturns {
    let name = |what: &str| format!("trace.returns.{kind}.{what}");
    let distances = ORDERS.map(|order| distances(view, &name(&format!("{order}_"))));
    KindReturns {
        left_bytes: view.sum(&name("left_bytes")).unwrap_or(0),
        seen_bytes: view.sum(&name("came_back_bytes")).unwrap_or(0),
        counted_bytes: counted(view, kind).map(|pages| pages.saturating_mul(page_bytes)),
        waited_ns: 0,
        distances,
    }
}

/// The growths of the series that begin so, by the bound of their class.
fn distances(view: &View, prefix: &str) -> Distances {
    let classes = view.starting_with(prefix).filter_map(|series| {
        let class = series.schema.name.strip_prefix(prefix)?;
        Some((bound_of(class)?, view.sum(&series.schema.name)?))
    });
    classes.filter(|(_, bytes)| *bytes > 0).collect()
}

/// What was used again, and what the page cache holds.
fn cache_use(view: &View, page_bytes: u64) -> CacheUse {
    const HITS: &str = "trace.hits.file.";
    const HITS_SIGHT: &str = "events.hits";
    let closed = match view.facts().sight(HITS_SIGHT) {
        SourceState::Closed { why, .. } => Some(why.clone()),
        SourceState::NotAsked | SourceState::Open => None,
    };
    CacheUse {
        is_followed: view.starting_with(HITS).next().is_some(),
        closed,
        // What is tightest decides: a limit, one above it, or the machine.
        room_bytes: rooms_of_groups(view).chain(room_of_machine(view, page_bytes)).min(),
        distances: ["again_", "first_"].map(|order| distances(view, &format!("{HITS}{order}"))),
    }
}

/// The mean of the values at both ends.
fn level(view: &View, name: &str) -> Option<u64> {
    let ends = [view.at_start(name), view.at_end(name)];
    let values: Vec<i64> = ends.into_iter().flatten().collect();
    let sum: i64 = values.iter().fold(0, |sum, value| sum.saturating_add(*value));
    let count = i64::try_from(values.len()).ok().filter(|count| *count > 0)?;
    u64::try_from(sum / count).ok()
}

/// Pages of files on the kernel's lists, and what is free above the mark at which it stops to free
/// memory.
fn room_of_machine(view: &View, page_bytes: u64) -> Option<u64> {
    let lists = ["meminfo.Active_file", "meminfo.Inactive_file"];
    let [active, inactive] = lists.map(|name| level(view, name));
    let zones = view.starting_with("zone.").filter_map(|series| {
        let zone = series.schema.name.strip_suffix(".free")?;
        let high = level(view, &format!("{zone}.high"))?;
        Some(level(view, &series.schema.name)?.saturating_sub(high))
    });
    let free_bytes = total(zones).saturating_mul(page_bytes);
    Some(active?.saturating_add(inactive?).saturating_add(free_bytes))
}

/// The same of each of the subject's groups that has a limit, up to that.
fn rooms_of_groups<'v>(view: &'v View) -> impl Iterator<Item = u64> + 'v {
    (0..GROUPS_MAX).filter_map(|number| {
        let of_group = |name: &str| level(view, &format!("group{number}.memory.{name}"));
        let free = of_group("limit_bytes")?.saturating_sub(of_group("usage_bytes")?);
        let [active, inactive] = ["stat.active_file", "stat.inactive_file"].map(of_group);
        Some(active?.saturating_add(inactive?).saturating_add(free))
    })
}

/// Whether the counters of the first group are those of the subject.
fn has_own_group(view: &View) -> bool {
    let facts = view.facts();
    facts.groups.first().is_some_and(|group| group.made)
        || matches!(facts.subject, Subject::Group { .. })
}

/// The bound of a class of distance: `lt_128kib` is less than 128 KiB.
fn bound_of(class: &str) -> Option<u64> {
    if class == "too_far" {
        return Some(u64::MAX);
    }
    let kib: u64 = class.strip_prefix("lt_")?.strip_suffix("kib")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Pages that came back by the kernel's own counter; `None` if that counts others too.
fn counted(view: &View, kind: &str) -> Option<u64> {
    let of_kind =
        if kind == "file" { "workingset_refault_file" } else { "workingset_refault_anon" };
    match view.facts().subject {
        Subject::Machine | Subject::Probe { .. } => view.growth(&format!("vmstat.{of_kind}")),
        _ if has_own_group(view) => view.growth(&format!("group0.memory.stat.{of_kind}")),
        _ => None,
    }
}

/// Who waited for what came back, by what sentences call it: processes, and control groups.
fn waits(view: &View) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut processes, mut groups) = (BTreeMap::new(), BTreeMap::new());
    let add = |to: &mut BTreeMap<String, u64>, label: String, ns: u64| {
        let sum = to.entry(label).or_insert(0_u64);
        *sum = sum.saturating_add(ns);
    };
    for sum in view.process_sums().iter().filter(|sum| !sum.process.is_kernel) {
        let ns = shares::waited_again(sum).value;
        if ns == 0 {
            continue;
        }
        let process = sum.process;
        let label = match process.pid {
            0 => process.name.clone(),
            pid => format!("{} (pid {pid})", process.name),
        };
        add(&mut processes, label, ns);
        if let Some(group) = GroupName::of(&process.group) {
            add(&mut groups, group.text, ns);
        }
    }
    (processes, groups)
}

/// `ns * part / whole`, at most `ns`.
pub(super) fn part_of(ns: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    let value = u128::from(ns) * u128::from(part.min(whole)) / u128::from(whole);
    u64::try_from(value).unwrap_or(ns)
}

/// A sum that stays at the largest number: a file may say anything.
pub(super) fn total(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

/// Why recordings cannot be judged together: two machines, twice the same time, or traces among
/// them.
pub(super) fn clash(observations: &[Observation]) -> Option<String> {
    let traces = observations.iter().filter(|one| one.trace.is_some()).count();
    if traces > 0 && traces < observations.len() {
        return Some("recordings and traces of other tools cannot be judged together".to_owned());
    }
    let hosts: Vec<&String> = observations.iter().filter_map(|one| one.host.as_ref()).collect();
    if let Some(other) = hosts.iter().find(|host| **host != hosts[0]) {
        return Some(format!("recordings of two machines, {} and {other}", hosts[0]));
    }
    let known = observations.iter().filter(|one| one.started_unix_ns > 0);
    let mut times: Vec<(u64, u64)> = known.map(|one| (one.started_unix_ns, one.wall_ns)).collect();
    times.sort_unstable();
    let overlap = |pair: &[(u64, u64)]| match pair {
        [(start, wall), (next, _)] => start == next || start.saturating_add(*wall) > *next,
        _ => false,
    };
    let text = "two recordings are of the same time: its seconds would count twice";
    times.windows(2).any(overlap).then(|| text.to_owned())
}

/// Several recordings as one.
pub(super) fn pooled(observations: &[Observation]) -> Observation {
    let Some((first, others)) = observations.split_first() else {
        return Observation::default();
    };
    let mut all = Observation { reads: None, ..first.clone() };
    for one in others {
        if !all.subject.split("; ").any(|subject| subject == one.subject) {
            all.subject = format!("{}; {}", all.subject, one.subject);
        }
        all.blocks.extend_from_slice(&one.blocks);
        all.is_machine &= one.is_machine;
        all.has_returns &= one.has_returns;
        all.in_kernel &= one.in_kernel;
        all.root &= one.root;
        all.events = all.events.saturating_add(one.events);
        all.lost = all.lost.saturating_add(one.lost);
        all.zswap_bytes = all.zswap_bytes.saturating_add(one.zswap_bytes);
        all.zram_bytes = all.zram_bytes.saturating_add(one.zram_bytes);
        all.doubts.extend_from_slice(&one.doubts);
        for (sums, more) in [(&mut all.processes, &one.processes), (&mut all.groups, &one.groups)] {
            for (label, ns) in more {
                let sum = sums.entry(label.clone()).or_insert(0);
                *sum = sum.saturating_add(*ns);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_bounds() {
        assert_eq!(bound_of("lt_128kib"), Some(128 << 10));
        assert_eq!((bound_of("too_far"), bound_of("lt_xkib")), (Some(u64::MAX), None));
        assert_eq!(bound_of("lt_18446744073709551615kib"), None);
    }

    #[test]
    fn the_tightest_limit_bounds_the_page_cache() {
        use model::recording::{Schema, Series, SeriesKind, Steps, Tick};
        const GIB: i64 = 1 << 30;
        let room = |limits: [i64; 2]| {
            let gauge = |name: &str, value: i64| {
                let (name, kind) = (name.to_owned(), SeriesKind::Gauge);
                let schema = Schema { name, kind, ..Schema::default() };
                let mut series = Series { schema, steps: Steps::new() };
                series.push(0, Some(value));
                series.push(1, Some(value));
                series
            };
            let mut series =
                vec![gauge("meminfo.Active_file", 2 * GIB), gauge("meminfo.Inactive_file", GIB)];
            for (number, limit) in limits.into_iter().enumerate().filter(|(_, limit)| *limit > 0) {
                let of_group = |name: &str| format!("group{number}.memory.{name}");
                series.push(gauge(&of_group("limit_bytes"), limit));
                series.push(gauge(&of_group("usage_bytes"), GIB));
                series.push(gauge(&of_group("stat.active_file"), GIB / 2));
                series.push(gauge(&of_group("stat.inactive_file"), GIB / 2));
            }
            let ticks = [0, 1].map(|at| Tick { due_ns: at, at_ns: at }).to_vec();
            let recording = Recording { ticks, series, ..Recording::default() };
            let view = View::new(&recording, Window::default());
            cache_use(&view, 4096).room_bytes.map(|bytes| bytes as i64)
        };
        assert_eq!(room([0, 0]), Some(3 * GIB), "the machine's");
        assert_eq!(room([2 * GIB, 0]), Some(2 * GIB));
        assert_eq!(room([10 * GIB, 2 * GIB]), Some(2 * GIB), "one above has less");
        assert_eq!(room([64 * GIB, 0]), Some(3 * GIB), "no more than the machine's");
    }

    #[test]
    fn a_part_is_never_more_than_the_whole() {
        assert_eq!((part_of(90, 1, 3), part_of(90, 5, 3), part_of(90, 1, 0)), (30, 90, 0));
    }
}
