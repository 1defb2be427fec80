//! What a recording's findings propose: ordered by what the subject gains, each with its model, and
//! never what cannot work on the machine that was recorded.

#![allow(clippy::unwrap_used, reason = "a case that cannot be made must fail the test")]

use explain::recording::accounting::Accounts;
use explain::recording::rules::{RunView, judge};
use explain::recording::{View, Window};
use model::Grade;
use model::explanation::{DiskState, Explanation, OverlappingPart, Remedy, Slice};
use model::recording::{
    Ending, GroupFacts, Recording, RecordingOutcome, Series, SeriesKind, SourceState, Subject,
    SurveyedDevice, Tick,
};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// How long each case lasts.
const WALL_NS: u64 = 8_000_000_000;

/// A case: a recording, and its time in milliseconds.
struct Case {
    recording: Recording,
    accounts: Accounts,
}

impl Case {
    /// Threads with this time: run, queue, block I/O.
    fn new(subject: Subject, times_ms: [u64; 3]) -> Self {
        let mut recording = Recording::default();
        let facts = &mut recording.facts;
        facts.subject = subject;
        facts.processors = 2;
        facts.page_bytes = 4096;
        for events in ["sched", "block", "vmscan", "writeback"] {
            facts.sights.insert(format!("events.{events}"), SourceState::Open);
        }
        recording.ticks = [0, WALL_NS].iter().map(|at| Tick { due_ns: *at, at_ns: *at }).collect();
        recording.outcome = Some(RecordingOutcome {
            ended_ns: WALL_NS,
            ending: Ending::Stopped,
            ..RecordingOutcome::default()
        });
        let mut accounts = Accounts::default();
        for (name, ms) in ["run", "queue", "block_io"].iter().zip(times_ms) {
            accounts.bars.thread.push(Slice {
                name: (*name).to_owned(),
                ns: ms * 1_000_000,
                grade: Grade::Measured,
                evidence: Vec::new(),
            });
        }
        accounts.thread_ns = times_ms.iter().sum::<u64>() * 1_000_000;
        Self { recording, accounts }
    }

    fn part(mut self, name: &str, within: &str, ms: u64) -> Self {
        self.accounts.of_which.push(OverlappingPart {
            name: name.to_owned(),
            within: within.to_owned(),
            ns: ms * 1_000_000,
            count: None,
            grade: Grade::Measured,
            evidence: Vec::new(),
            span: None,
        });
        self
    }

    /// A counter that grew from 0 to this.
    fn grew(self, name: &str, to: u64) -> Self {
        self.series(name, "", SeriesKind::Counter, [0, to])
    }

    /// A level that was this all the time.
    fn level(self, name: &str, value: u64) -> Self {
        self.series(name, "", SeriesKind::Gauge, [value; 2])
    }

    fn series(mut self, name: &str, source: &str, kind: SeriesKind, values: [u64; 2]) -> Self {
        let mut series = Series::default();
        series.schema.name = name.to_owned();
        series.schema.source = source.to_owned();
        series.schema.kind = kind;
        for (sample, value) in values.iter().enumerate() {
            series.push(sample as u32, Some(i64::try_from(*value).unwrap()));
        }
        self.recording.series.push(series);
        self
    }

    /// A memory limit of the own group, reached so often.
    fn limit(mut self, bytes: u64, times: u64) -> Self {
        self.recording.facts.groups.push(GroupFacts {
            level: 0,
            paths: [("memory".to_owned(), "/ncpg".to_owned())].into(),
            made: false,
        });
        let file = "/sys/fs/cgroup/memory/ncpg/memory.limit_in_bytes";
        self.grew("group0.memory.failcnt", times).level("group0.memory.usage_bytes", bytes).series(
            "group0.memory.limit_bytes",
            file,
            SeriesKind::Gauge,
            [bytes; 2],
        )
    }

    /// Memory of the machine: all of it, what is available, what is free.
    fn memory(self, all: u64, available: u64, free: u64) -> Self {
        self.level("meminfo.MemTotal", all)
            .level("meminfo.MemAvailable", available)
            .level("meminfo.MemFree", free)
    }

    fn judged(&self) -> Explanation {
        let view = View::new(&self.recording, Window::default());
        judge(&RunView { view: &view, accounts: &self.accounts })
    }
}

fn group() -> Subject {
    Subject::Group { path: "/ncpg".to_owned(), unit: None }
}

fn command() -> Subject {
    Subject::Command { argv: vec!["cmd".to_owned()] }
}

/// A database with four workers in a group of 256 MiB, as it was recorded: 80 s of thread time, of
/// which 12.1 s ran, 10.6 s were queued and 6.29 s waited for reads. Measured: a limit of 2 GiB
/// gave 2.9 times as many transactions, half the clients a third less.
fn pooled_database() -> Case {
    Case::new(group(), [12_100, 10_600, 6_290])
        .part("block_read", "block_io", 6_290)
        .part("direct_reclaim", "run", 780)
        .part("kernel", "run", 7_300)
        .grew("trace.cpu.samples", 584)
        .grew("trace.cpu.call.pread64", 235)
        .grew("tree.read_bytes", 1_300 * MIB)
        .grew("group0.memory.stat.workingset_refault_file", 316_666)
        .grew("stat.cpu.user_ns", 14_500_000_000)
        .grew("stat.cpu.idle_ns", 1_000_000_000)
        .limit(256 * MIB, 269_296)
        .memory(24 << 30, 20 << 30, 18 << 30)
}

#[test]
fn a_pool_of_workers_at_its_memory_limit_is_helped_by_memory_not_by_fewer_workers() {
    let judged = pooled_database().judged();
    let first = &judged.findings[0].finding;
    assert_eq!(first.id, "memory_limit", "{:#?}", judged.findings);
    let remedy = &judged.remedies[0];
    assert_eq!(remedy.finding, "memory_limit", "{:#?}", judged.remedies);
    assert!(remedy.text.starts_with("Raise the limit 256 MiB of group /ncpg"), "{}", remedy.text);
    let gain = remedy.gain.as_ref().unwrap();
    assert!(gain.low >= 1.0 && gain.low < 2.9 && gain.high >= 2.9, "{gain:?} holds what was seen");
    assert!(gain.model.contains("processors are full"), "{}", gain.model);
    assert!(remedy.is_to_be_tried, "so wide a range is no promise");
    let change = remedy.change.as_ref().unwrap();
    assert_eq!(change.path, "/sys/fs/cgroup/memory/ncpg/memory.limit_in_bytes");
    assert!(change.to.parse::<u64>().unwrap() >= 1 << 30, "{change:?}");
    let all: Vec<&str> = judged.remedies.iter().map(|remedy| remedy.text.as_str()).collect();
    assert!(all.iter().all(|text| !text.to_lowercase().contains("fewer threads")), "{all:?}");
}

/// The order is that of the gain: half of the work in a wait that goes away beats a tenth.
#[test]
fn the_larger_gain_comes_first_and_has_a_model() {
    let judged = pooled_database().judged();
    let middles: Vec<f64> = judged
        .remedies
        .iter()
        .map(|remedy| remedy.gain.as_ref().map_or(0.0, |gain| gain.middle()))
        .collect();
    assert!(middles.len() > 1 && middles.is_sorted_by(|a, b| a >= b), "{middles:?}");
    for gain in judged.remedies.iter().filter_map(|remedy| remedy.gain.as_ref()) {
        assert!(!gain.model.is_empty());
    }
}

/// Where nothing else holds the workers, processors are still what they lack.
#[test]
fn own_threads_are_named_where_nothing_else_is_a_cause() {
    let case = Case::new(group(), [12_500, 8_800, 0])
        .grew("stat.cpu.user_ns", 15_900_000_000)
        .grew("stat.cpu.idle_ns", 100_000_000);
    let judged = case.judged();
    assert_eq!(judged.findings[0].finding.id, "cpu_contention");
    assert!(judged.remedies[0].text.starts_with("More processors"), "{:?}", judged.remedies);
}

/// Seen: the advice to leave 66 MiB more to the page cache of a machine with 20 GiB free.
#[test]
fn no_more_page_cache_is_advised_where_memory_is_free() {
    let case = |free: u64| {
        Case::new(command(), [1_000, 0, 5_000])
            .part("block_read", "block_io", 5_000)
            .grew("tree.read_bytes", 66 * MIB)
            .grew("vmstat.workingset_refault_file", 16_900)
            .memory(24 << 30, free, free)
            .judged()
    };
    let texts = |judged: Explanation| -> Vec<String> {
        judged.remedies.into_iter().map(|remedy| remedy.text).collect()
    };
    let short = texts(case(10 * MIB));
    assert!(short.iter().any(|text| text.contains("page cache")), "{short:?}");
    let plenty = case(20 << 30);
    let found = plenty.findings.iter().find(|cause| cause.finding.id == "cache_too_small");
    assert_eq!(found.unwrap().finding.remedy, None);
    assert_eq!(texts(plenty), Vec::<String>::new());
}

/// A limit above that is as low makes the raise of this one useless.
#[test]
fn a_limit_above_is_named_with_it_and_no_trial_changes_one_alone() {
    let case = pooled_database().level("group1.memory.limit_bytes", 256 * MIB);
    let mut remedies = case.judged().remedies.into_iter();
    let remedy = remedies.find(|one| one.finding == "memory_limit").unwrap();
    assert!(remedy.text.contains("and those above it"), "{}", remedy.text);
    assert_eq!(remedy.change, None);
}

/// A limit of 48 MiB that frees memory for a writer of `written` MiB, of whose pages so many were
/// read again.
fn writer_at_its_limit(written: u64, again_pages: u64) -> Case {
    Case::new(command(), [4_000, 100, 0])
        .part("direct_reclaim", "run", 1_500)
        .part("kernel", "run", 3_900)
        .grew("tree.write_bytes", written * MIB)
        .grew("group0.memory.stat.workingset_refault_file", again_pages)
        .limit(48 * MIB, 490)
        .memory(24 << 30, 20 << 30, 18 << 30)
}

/// Seen: 300 MiB written in a group of 48 MiB took as long with 192 MiB, and longer with 1 GiB.
#[test]
fn no_higher_limit_is_advised_for_what_is_written_once() {
    let remedy = |case: Case| {
        let mut remedies = case.judged().remedies.into_iter();
        remedies.find(|remedy| remedy.finding == "memory_limit").unwrap()
    };
    let stream = remedy(writer_at_its_limit(300, 1_062));
    assert!(stream.text.starts_with("Write past the page cache"), "{}", stream.text);
    assert_eq!(stream.change, None);
    for (what, case) in [
        ("it is read again", writer_at_its_limit(300, 40_000)),
        ("it fills the limit twice", writer_at_its_limit(100, 0)),
        ("it was swapped", writer_at_its_limit(300, 0).grew("vmstat.pswpin", 9_000)),
    ] {
        let helped = remedy(case);
        assert!(helped.text.starts_with("Raise the limit 48 MiB"), "{what}: {}", helped.text);
        assert!(helped.change.is_some(), "{what}");
    }
}

/// Seen: a page for each mapping, 762 ms to map and unmap beside 355 ms to touch; huge pages for
/// all memory changed nothing.
///
/// Where the host takes free memory back, the same holds of large mappings: a huge page is a block
/// that the host has taken.
#[test]
fn huge_pages_are_advised_only_where_new_memory_is_then_cheaper() {
    let case = |mapping_samples: u64, reporting: &str| {
        let mut case = Case::new(command(), [8_000, 0, 0])
            .part("first_touch", "run", 1_500)
            .part("kernel", "run", 7_000)
            .grew("tree.minor_faults", 900_000)
            .grew("trace.cpu.samples", 800)
            .grew("trace.cpu.in.fault_first_touch", 150)
            .grew("trace.cpu.call.munmap", mapping_samples);
        for (name, value) in
            [("thp.enabled", "madvise"), ("balloon.free_page_reporting", reporting)]
        {
            case.recording.facts.settings.insert(name.to_owned(), value.to_owned());
        }
        let mut remedies = case.judged().remedies.into_iter();
        remedies.find(|remedy| remedy.finding == "first_touch").unwrap()
    };
    for unhelped in [case(300, "0"), case(50, "1")] {
        assert!(!unhelped.text.contains("huge pages"), "{}", unhelped.text);
        assert_eq!(unhelped.change, None);
    }
    let many_pages = case(50, "0");
    assert!(many_pages.text.contains("huge pages"), "{}", many_pages.text);
    assert!(many_pages.change.is_some());
}

/// A disk with so many reads of 8 KiB, each between 64 and 128 us, in flight for so long.
/// Threads that wait for pages which came back from swap, while memory is free.
fn swapping_in(subject: Subject, outs: u64, available: u64) -> Case {
    Case::new(subject, [2_000, 0, 4_000])
        .part("swap_in", "block_io", 3_000)
        .grew("trace.block_io.swap_in_ns", 3_000_000_000)
        .grew("vmstat.pswpin", 50_000)
        .grew("vmstat.pswpout", outs)
        .memory(24 << 30, available, available)
}

#[test]
fn what_an_earlier_pressure_left_in_swap_is_restored_and_tried() {
    let judged = swapping_in(group(), 10, 20 << 30).judged();
    let remedy = judged.remedies.iter().find(|it| it.finding == "swapping").unwrap();
    let restored = remedy.restores.as_ref().unwrap();
    assert_eq!((restored.pid, restored.group.as_deref()), (None, Some("/ncpg")));
    assert_eq!(restored.command, "terrace warm restore --cgroup /ncpg");
    assert!(remedy.text.contains("(`terrace warm restore --cgroup /ncpg`)"), "{remedy:?}");
    let tries = remedy.try_command.as_ref().unwrap();
    assert!(tries.contains("terrace record --try --cgroup /ncpg --for 10s"), "{tries}");
    for (what, case) in [
        ("it still swaps out", swapping_in(group(), 40_000, 20 << 30)),
        ("there is no room", swapping_in(group(), 10, 1 << 30)),
        ("its limit is reached", swapping_in(group(), 10, 20 << 30).limit(256 * MIB, 9_000)),
        ("a command begins anew", swapping_in(command(), 10, 20 << 30)),
        ("a machine is no process", swapping_in(Subject::Machine, 10, 20 << 30)),
    ] {
        let remedies = case.judged().remedies;
        assert!(remedies.iter().all(|remedy| remedy.restores.is_none()), "{what}: {remedies:?}");
    }
}

fn with_disk(case: Case, reads: u64, in_flight_ms: u64) -> Case {
    case.grew("disk.vda.reads", reads)
        .grew("disk.vda.read_bytes", reads * 8192)
        .grew("disk.vda.read_ns", reads * 100_000)
        .grew("disk.vda.io_ns", in_flight_ms * 1_000_000)
        .grew("trace.block.vda.reads", reads)
        .grew("trace.block.vda.read_bytes", reads * 8192)
        .grew("trace.block.vda.read_ns", reads * 100_000)
        .grew("trace.block.vda.read_le_128us", reads)
}

/// With switch events from the first sample to the last.
fn watched(case: Case) -> Case {
    let still = ["sched.queue_ns", "sched.sleep_ns", "block_io.write_ns", "block_io.direct_ns"];
    let others = ["sched.switches", "block_io.flush_ns", "sleep.flush_ns"];
    let watched = still.iter().chain(&others);
    watched
        .fold(case, |case, name| case.grew(&format!("trace.{name}"), 0))
        .grew("trace.sched.run_ns", 12_000_000_000)
        .grew("trace.sched.block_io_ns", 6_000_000)
        .grew("trace.block_io.read_ns", 6_000_000)
}

fn surveyed(mut case: Case, p50_ns: f64) -> Case {
    case.recording.facts.surveyed_devices.push(SurveyedDevice {
        name: "vda".to_owned(),
        p50_ns,
        p99_ns: Some(p50_ns * 4.0),
        surveyed_unix_s: 1,
    });
    case
}

#[test]
fn whether_it_is_the_disk_is_always_said_with_its_numbers() {
    let waiting = || with_disk(pooled_database(), 130_000, 4_800);
    let cases = [
        (
            surveyed(waiting(), 52_000.0),
            DiskState::Healthy,
            "healthy, beside p50 52 us, p99 208 us",
        ),
        (surveyed(waiting(), 20_000.0), DiskState::Slow, "slow, beside p50 20 us"),
        (waiting(), DiskState::Uncompared, "terrace survey"),
        (with_disk(pooled_database(), 130_000, 7_900), DiskState::Busy, "occupied 98.8 %"),
        (
            with_disk(watched(Case::new(group(), [12_000, 0, 6])), 30, 3),
            DiskState::NotInvolved,
            "Not the disk: threads waited 6 ms for block I/O; vda was occupied 0.04 %",
        ),
        // Nobody watched the waits, so few of them say nothing.
        (
            with_disk(Case::new(group(), [12_000, 0, 6]), 30, 3),
            DiskState::Unseen,
            "was not seen all the time",
        ),
        (Case::new(group(), [12_000, 0, 6_000]), DiskState::Unseen, "no device was recorded"),
    ];
    for (case, state, words) in cases {
        let disk = case.judged().disk.unwrap();
        assert_eq!(disk.state, state, "{}", disk.text);
        assert!(disk.text.contains(words), "{}", disk.text);
        assert!(!disk.evidence.is_empty());
    }
    let text = surveyed(waiting(), 52_000.0).judged().disk.unwrap().text;
    for words in ["waited 6.29 s", "occupied 60 % of the time", "130,000 reads, p50 96", "p99 127"]
    {
        assert!(text.contains(words), "{words} in {text}");
    }
    // Nothing waited, and no device was watched: there is nothing to say.
    assert_eq!(Case::new(group(), [12_000, 0, 0]).judged().disk, None);
}

/// A machine has no threads of its own; its waits are those of all.
#[test]
fn of_a_machine_too_it_is_said() {
    let case = with_disk(Case::new(Subject::Machine, [12_000, 0, 0]), 130_000, 4_800);
    let disk =
        surveyed(case.grew("trace.sched.block_io_ns", 6_000_000_000), 52_000.0).judged().disk;
    assert_eq!(disk.unwrap().state, DiskState::Healthy);
}

/// Whether a remedy could not work, by the facts that it was made from.
fn useless(remedy: &Remedy, machine: &Machine) -> Option<&'static str> {
    let text = remedy.text.to_lowercase();
    let has = |words: &str| text.contains(words);
    let refaulted = machine.refaults * 4096;
    if has("page cache") && (machine.free >= refaulted || machine.is_limited) {
        return Some("the cache had free memory, or is bound by a limit");
    }
    if has("raise the limit 64 mib") && machine.available < machine.all / 20 {
        return Some("the machine has no memory to give");
    }
    if has("more processors") && machine.busy_share < 0.75 {
        return Some("processors were idle");
    }
    if has("huge pages (madvise)") && matches!(machine.huge_pages, "always" | "never") {
        return Some("asking changes nothing");
    }
    if has("compressed ram") && machine.has_zram {
        return Some("it is there");
    }
    let is_bound = machine.is_limited && (has("watermark_scale_factor") || has("vm.dirty_bytes"));
    is_bound.then_some("the group's own limit is the bound")
}

/// What a case of the property is made of.
#[derive(Debug)]
struct Machine {
    all: u64,
    available: u64,
    free: u64,
    is_limited: bool,
    refaults: u64,
    busy_share: f64,
    huge_pages: &'static str,
    has_zram: bool,
    times_ms: [u64; 3],
    dirty_ms: u64,
}

fn machines() -> impl Strategy<Value = Machine> {
    let memory = (1_u64..64, 0.0..1.0_f64, 0.0..1.0_f64, any::<bool>(), 0_u64..400_000);
    let rest = (0.0..1.0_f64, 0_usize..3, any::<bool>(), [0_u64..30_000, 0..30_000, 0..30_000]);
    (memory, rest, 0_u64..10_000).prop_map(|(memory, rest, dirty_ms)| {
        let (gib, available_share, free_share, is_limited, refaults) = memory;
        let (busy_share, huge, has_zram, times_ms) = rest;
        let all = gib << 30;
        let available = (all as f64 * available_share) as u64;
        Machine {
            all,
            available,
            free: (available as f64 * free_share) as u64,
            is_limited,
            refaults,
            busy_share,
            huge_pages: ["always", "madvise", "never"][huge],
            has_zram,
            times_ms,
            dirty_ms,
        }
    })
}

fn recorded(machine: &Machine) -> Case {
    let whole_ns = WALL_NS as f64 * 2.0;
    let [run_ms, _, block_ms] = machine.times_ms;
    let mut case = Case::new(command(), machine.times_ms)
        .part("block_read", "block_io", block_ms / 2)
        .part("swap_in", "block_io", block_ms / 4)
        .part("dirty_throttle", "block_io", machine.dirty_ms.min(block_ms / 4))
        .part("direct_reclaim", "run", run_ms / 4)
        .part("first_touch", "run", run_ms / 3)
        .grew("tree.minor_faults", 40_000_000)
        .grew("trace.cpu.samples", 580)
        .grew("trace.cpu.in.fault_first_touch", 200)
        .grew("tree.read_bytes", machine.refaults * 4096)
        .grew("vmstat.pswpin", 50_000)
        .grew("vmstat.pswpout", 50_000)
        .grew("vmstat.workingset_refault_file", machine.refaults)
        .grew("stat.cpu.user_ns", (whole_ns * machine.busy_share) as u64)
        .grew("stat.cpu.idle_ns", (whole_ns * (1.0 - machine.busy_share)) as u64)
        .memory(machine.all, machine.available, machine.free);
    if machine.is_limited {
        case = case
            .limit(64 * MIB, 5_000)
            .grew("group0.memory.stat.workingset_refault_file", machine.refaults);
    }
    let facts = &mut case.recording.facts;
    facts.settings.insert("thp.enabled".to_owned(), machine.huge_pages.to_owned());
    facts.swaps.push(if machine.has_zram { "zram0" } else { "vdb" }.to_owned());
    case
}

/// The cases of the property do meet the remedies that it is about.
#[test]
fn the_remedies_that_are_checked_are_proposed_where_they_can_work() {
    let machine = Machine {
        all: 16 << 30,
        available: 8 << 30,
        free: MIB,
        is_limited: false,
        refaults: 200_000,
        busy_share: 1.0,
        huge_pages: "madvise",
        has_zram: false,
        times_ms: [12_000, 20_000, 12_000],
        dirty_ms: 5_000,
    };
    let text = |machine: &Machine| {
        let remedies = recorded(machine).judged().remedies;
        remedies.into_iter().map(|remedy| remedy.text).collect::<Vec<_>>().join("\n")
    };
    let open = text(&machine);
    let words = ["page cache", "ore processors", "huge pages (madvise)", "compressed RAM"];
    for words in words.iter().chain(&["watermark_scale_factor", "vm.dirty_bytes"]) {
        assert!(open.contains(words), "{words} in {open}");
    }
    let limited = text(&Machine { is_limited: true, ..machine });
    assert!(limited.contains("aise the limit 64 MiB"), "{limited}");
}

proptest! {
    #[test]
    fn what_cannot_work_here_is_never_proposed(machine in machines()) {
        let judged = recorded(&machine).judged();
        for remedy in &judged.remedies {
            prop_assert_eq!(useless(remedy, &machine), None, "{:?}", remedy);
            if let Some(gain) = &remedy.gain {
                prop_assert!(gain.low >= 1.0 && gain.low <= gain.high && gain.high.is_finite());
            }
        }
        // What is said below a finding is what is proposed.
        let said = judged.findings.iter().filter_map(|cause| cause.finding.remedy.as_ref());
        let listed: Vec<&String> = judged.remedies.iter().map(|remedy| &remedy.text).collect();
        for text in said {
            let is_same = judged.remedies.iter().any(|one| one.change.is_some());
            prop_assert!(listed.contains(&text) || is_same, "{}", text);
        }
    }
}
