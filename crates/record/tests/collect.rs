//! The collectors over whole machines: fake ones with groups of both versions, two memory
//! nodes, devices that come and go; and this one, with processes that really run.
//!
//! Nothing here depends on how fast anything is: samples are taken when a child says that it
//! is where it should be, and only counts, sums and presence are judged.
#![allow(clippy::unwrap_used, reason = "its helpers are tests too")]

use machine::Root;
use model::recording::{DeviceKind, Facts, SourceState};
use model::{CopyGauges, GaugeSet};
use proptest::prelude::*;
use record::collect::{Collectors, Scope};
use record::{ABSENT, Registry, Row};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use testkit::FakeRoot;

/// Collectors with what they fill.
struct Watched {
    collectors: Collectors,
    registry: Registry,
    facts: Facts,
    row: Row,
    at_ns: u64,
}

impl Watched {
    fn open(root: &Root, scope: &Scope) -> Self {
        let (mut registry, mut facts) = (Registry::new(), Facts::default());
        let mut watched = Self {
            collectors: Collectors::open(root, scope, &mut registry, &mut facts),
            registry,
            facts,
            row: Row::default(),
            at_ns: 0,
        };
        watched.read_all();
        watched
    }

    fn fake(root: &FakeRoot, scope: &Scope) -> Self {
        Self::open(&Root::at(root.path()), scope)
    }

    /// A sample a tenth of a second later, on the clock of the samples.
    fn read(&mut self) {
        self.at_ns += 100_000_000;
        let (registry, row) = (&mut self.registry, &mut self.row);
        self.collectors.read(self.at_ns, false, registry, row);
    }

    fn read_all(&mut self) {
        let (registry, row) = (&mut self.registry, &mut self.row);
        self.collectors.read(self.at_ns, true, registry, row);
    }

    /// The value now; `None` where it is absent or no series at all.
    fn value(&self, name: &str) -> Option<i64> {
        let schemas = self.registry.schemas();
        let id = schemas.iter().find(|schema| schema.name == name)?.id;
        let value = self.row.values().get(id as usize).copied();
        value.filter(|value| *value != ABSENT)
    }

    fn has(&self, name: &str) -> bool {
        let mut schemas = self.registry.schemas().iter();
        schemas.any(|schema| schema.name == name)
    }
}

fn of_process(number: u32) -> Scope {
    Scope { processes: vec![number], ..Scope::default() }
}

const DISKSTATS: &str = "\
 254       0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
 254       1 vda1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
";

/// A machine of one disk, with the counters that every machine has.
fn small() -> FakeRoot {
    FakeRoot::small_vm()
        .file("/proc/vmstat", "nr_free_pages 100\nnr_dirtied 7\npgfault 12\nworkingset_nodes 3\n")
        .file("/proc/diskstats", DISKSTATS)
        .files(
            "/proc/pressure",
            &[
                ("cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"),
                ("io", "some avg10=1.00 avg60=0.00 avg300=0.00 total=6\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=4\n"),
            ],
        )
}

/// A process with one thread, of 100 pages, that ran 1,000 ns.
fn with_process(root: FakeRoot, number: u32, parent: u32) -> FakeRoot {
    let stat = format!(
        "{number} (a b) S {parent} {number} {number} 0 -1 0 11 0 2 0 3 4 0 0 20 0 1 0 50 4096 100{}\n",
        " 0".repeat(28)
    );
    root.files(
        &format!("/proc/{number}"),
        &[
            ("stat", &stat),
            ("schedstat", "1000 200 3\n"),
            ("io", "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n"),
            (&format!("task/{number}/stat"), &stat),
            (&format!("task/{number}/schedstat"), "1000 200 3\n"),
        ],
    )
}

#[test]
fn the_machine_has_its_names_and_units() {
    let root = small();
    let watched = Watched::fake(&root, &Scope::default());
    assert_eq!(watched.value("vmstat.pgfault"), Some(12));
    assert_eq!(watched.value("disk.vda.read_bytes"), Some(3 * 512));
    assert_eq!(watched.value("disk.vda.flush_ns"), Some(17_000_000));
    assert_eq!(watched.value("disk.vda.in_flight"), Some(9));
    assert!(!watched.has("disk.vda1.reads"), "a partition is in its disk");
    assert_eq!(watched.value("pressure.cpu.some_ns"), Some(5_000));
    assert_eq!(watched.value("pressure.io.full_ns"), Some(4_000));
    assert!(!watched.has("pressure.cpu.full_ns") && !watched.has("pressure.memory.some_ns"));
    assert_eq!(watched.value("stat.cpu.steal_ns"), Some(50_000_000));
    assert_eq!(watched.value("stat.cpu0.steal_ns"), Some(30_000_000));
    assert_eq!(watched.value("meminfo.MemTotal"), Some(24_684_092 * 1024));
    let kind = |name: &str| {
        let schema = watched.registry.schemas().iter().find(|schema| schema.name == name);
        schema.unwrap().kind
    };
    assert_eq!(kind("vmstat.nr_free_pages"), model::recording::SeriesKind::Gauge);
    assert_eq!(kind("vmstat.workingset_nodes"), model::recording::SeriesKind::Gauge);
    assert_eq!(kind("vmstat.nr_dirtied"), model::recording::SeriesKind::Counter);
    assert_eq!(watched.facts.devices[0].name, "vda");
    assert_eq!(watched.facts.devices[0].write_back, Some(true));
    assert_eq!(watched.facts.mounts[0].device.as_deref(), Some("vda"));
}

#[test]
fn a_bare_machine_has_only_what_the_recorder_knows_of_itself() {
    let root = FakeRoot::bare();
    let watched = Watched::fake(&root, &Scope::default());
    let values = watched.registry.schemas().iter().map(|schema| &schema.name);
    let others: Vec<_> =
        values.filter(|name| !name.starts_with("own.") && !name.starts_with("tree.")).collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(watched.value("tree.processes"), Some(0));
    assert_eq!(watched.value("tree.read_bytes"), None, "nobody's I/O was seen");
}

#[test]
fn a_device_that_appears_gets_columns_and_one_that_vanishes_is_absent() {
    let root = small();
    let mut watched = Watched::fake(&root, &Scope::default());
    assert!(watched.collectors.notes().is_empty(), "what is there is no news");
    let root = root
        .file("/sys/block/sdz/size", "8\n")
        .file("/proc/diskstats", " 8 0 sdz 21 2 3 4 5 6 7 8 9 10 11\n");
    watched.read();
    assert_eq!(watched.value("disk.sdz.reads"), Some(21));
    assert!(!watched.has("disk.sdz.flushes"), "an older kernel has fewer words");
    assert_eq!(watched.value("disk.vda.reads"), None);
    let notes: Vec<_> = watched.collectors.notes().into_iter().map(|note| note.kind).collect();
    assert_eq!(notes, ["device_added", "device_removed"]);
    let _root = root.file("/proc/diskstats", DISKSTATS);
    watched.read();
    assert_eq!(watched.value("disk.vda.reads"), Some(1), "it has the column it had");
    assert_eq!(watched.value("disk.sdz.reads"), None);
}

#[test]
fn a_desktop_has_zram_zswap_and_swap() {
    let meminfo = "MemTotal: 100 kB\nZswap: 3 kB\nZswapped: 9 kB\nActive(anon): 2 kB\n";
    let zram = "/sys/devices/virtual/block/zram0";
    let root = FakeRoot::desktop_v2()
        .file("/proc/meminfo", meminfo)
        .file(&format!("{zram}/io_stat"), "1 2 0 4\n")
        .file("/sys/module/zswap/parameters/enabled", "Y\n");
    let watched = Watched::fake(&root, &Scope::default());
    assert_eq!(watched.value("zswap.pool_bytes"), Some(3 * 1024));
    assert_eq!(watched.value("meminfo.Zswap"), Some(3 * 1024));
    assert_eq!(watched.value("zswap.stored_bytes"), Some(9 * 1024));
    assert_eq!(watched.value("meminfo.Active_anon"), Some(2 * 1024));
    assert_eq!(watched.value("zram.zram0.orig_bytes"), Some(1_048_576));
    assert_eq!(watched.value("zram.zram0.limit_bytes"), None, "0 is no limit");
    assert_eq!(watched.value("zram.zram0.same_pages"), Some(5));
    assert_eq!(watched.value("zram.zram0.notify_free"), Some(4));
    assert_eq!(watched.value("zram.zram0.writes"), Some(20));
    assert_eq!(watched.value("swap.zram0.used_bytes"), Some(1024 * 1024));
    assert_eq!(watched.facts.swaps, ["zram0 zram0"]);
    assert_eq!(watched.facts.settings["zswap.enabled"], "Y");
    let kinds: Vec<_> = watched.facts.devices.iter().map(|device| device.kind).collect();
    assert!(kinds.contains(&DeviceKind::Stacked) && kinds.contains(&DeviceKind::Zram));
}

#[test]
fn two_memory_nodes_and_their_zones() {
    let numastat = |hit: u32| format!("numa_hit {hit}\nnuma_miss 1\nother_node 2\n");
    let zone = |node: u32, name: &str, free: u32| {
        format!(
            "Node {node}, zone   {name}\n  pages free     {free}\n        min      10\n        low      20\n\
             \x20       high     30\n  pagesets\n    cpu: 0\n              high:     999\n"
        )
    };
    let zones = zone(0, "DMA", 1) + &zone(0, "Normal", 2) + &zone(1, "Normal", 3);
    let root = small()
        .file("/sys/devices/system/node/node0/numastat", numastat(5))
        .file("/sys/devices/system/node/node1/numastat", numastat(6))
        .file("/proc/zoneinfo", zones)
        .file(
            "/proc/buddyinfo",
            "Node 0, zone   Normal      1      2      3 \nNode 1, zone   Normal      4 \n",
        );
    let mut watched = Watched::fake(&root, &Scope::default());
    assert_eq!(watched.value("numa.node0.numa_hit"), Some(5));
    assert_eq!(watched.value("numa.node1.numa_hit"), Some(6));
    assert_eq!(watched.value("zone.node0.DMA.free"), Some(1));
    assert_eq!(watched.value("zone.node1.Normal.free"), Some(3));
    assert_eq!(watched.value("zone.node0.Normal.high"), Some(30));
    assert_eq!(watched.value("buddy.node0.Normal.order2"), Some(3));
    assert_eq!(watched.value("buddy.node1.Normal.order0"), Some(4));
    assert!(!watched.has("buddy.node1.Normal.order1"));
    // Slow sources keep their value until a second is over; what has gone is absent then.
    let _root = root.file("/proc/zoneinfo", zone(0, "Normal", 7));
    watched.read();
    assert_eq!(watched.value("zone.node0.Normal.free"), Some(2));
    watched.at_ns += 1_000_000_000;
    watched.read();
    assert_eq!(watched.value("zone.node0.Normal.free"), Some(7));
    assert_eq!(watched.value("zone.node1.Normal.free"), None);
}

const V1_MOUNTS: &str = "\
27 1 254:1 / / rw - ext4 /dev/vda1 rw
32 27 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
33 27 0:30 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio
35 27 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
";

fn v1_host() -> FakeRoot {
    let root = with_process(small(), 7, 1)
        .file("/proc/self/mountinfo", V1_MOUNTS)
        .file("/proc/7/cgroup", "4:memory:/app\n3:blkio:/app\n1:cpu,cpuacct:/app\n")
        .files(
            "/sys/fs/cgroup/memory/app",
            &[
                ("memory.limit_in_bytes", "1048576\n"),
                ("memory.usage_in_bytes", "4096\n"),
                ("memory.failcnt", "3\n"),
                ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
                ("memory.stat", "cache 1\nrss 2\nhierarchical_memory_limit 9\ntotal_cache 8192\ntotal_pgmajfault 5\ntotal_swap 4096\n"),
            ],
        );
    root.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
        .files(
            "/sys/fs/cgroup/cpu/app",
            &[
                ("cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 77\n"),
                ("cpu.cfs_quota_us", "-1\n"),
                ("cpu.cfs_period_us", "100000\n"),
                ("cpuacct.usage", "123\n"),
            ],
        )
        .files(
            "/sys/fs/cgroup/blkio/app",
            &[
                (
                    "blkio.throttle.io_service_bytes_recursive",
                    "254:0 Read 512\n254:0 Write 1024\n254:0 Total 1536\nTotal 1536\n",
                ),
                ("blkio.throttle.io_serviced_recursive", "254:0 Read 1\n254:0 Write 2\n"),
                ("blkio.throttle.read_bps_device", "254:0 1000000\n"),
                ("blkio.throttle.write_bps_device", ""),
            ],
        )
}

#[test]
fn groups_of_version_1() {
    let root = v1_host();
    let watched = Watched::fake(&root, &of_process(7));
    let expected = [
        ("group0.memory.usage_bytes", Some(4096)),
        ("group0.memory.limit_bytes", Some(1_048_576)),
        ("group1.memory.limit_bytes", None),
        ("group0.memory.failcnt", Some(3)),
        ("group0.memory.events.oom_kill", Some(2)),
        ("group0.memory.stat.cache", Some(8192)),
        ("group0.memory.stat.pgmajfault", Some(5)),
        ("group0.memory.swap_bytes", Some(4096)),
        ("group0.cpu.throttled_periods", Some(4)),
        ("group0.cpu.throttled_ns", Some(77)),
        ("group0.cpu.quota_us", None),
        ("group0.cpu.period_us", Some(100_000)),
        ("group0.cpu.usage_ns", Some(123)),
        ("group0.io.vda.read_bytes", Some(512)),
        ("group0.io.vda.writes", Some(2)),
        ("group0.io.vda.max.rbps", Some(1_000_000)),
    ];
    for (name, value) in expected {
        assert_eq!(watched.value(name), value, "{name}");
    }
    assert!(!watched.has("group0.memory.stat.rss"), "only the lines with children");
    assert!(!watched.has("group0.memory.stat.hierarchical_memory_limit"));
    assert!(!watched.has("group0.pressure.cpu.some_ns"));
    assert_eq!(watched.facts.groups[0].paths["memory"], "/app");
    assert_eq!(watched.facts.groups[1].paths["memory"], "/");
}

/// The files of a version 2 group with every controller.
const V2_FILES: [(&str, &str); 10] = [
    ("memory.current", "4096\n"),
    ("memory.max", "max\n"),
    ("memory.high", "8192\n"),
    ("memory.swap.current", "12\n"),
    ("memory.events", "low 0\nhigh 6\nmax 1\noom 0\noom_kill 0\noom_group_kill 0\n"),
    ("memory.stat", "anon 5\nworkingset_refault_file 8\npgfault 9\n"),
    (
        "cpu.stat",
        "usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 10\nnr_throttled 3\nthrottled_usec 2000\n",
    ),
    ("cpu.max", "max 100000\n"),
    ("io.stat", "254:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n"),
    ("io.max", "254:0 rbps=max wbps=1048576 riops=max wiops=max\n"),
];
const IO_PRESSURE: &str = "some avg10=0.00 avg60=0.00 avg300=0.00 total=9\n\
                           full avg10=0.00 avg60=0.00 avg300=0.00 total=8\n";

#[test]
fn groups_of_version_2() {
    let group = "/sys/fs/cgroup/app.slice/a.scope";
    let root = with_process(small(), 7, 1)
        .file("/proc/self/mountinfo", "24 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        .file("/proc/7/cgroup", "0::/app.slice/a.scope\n")
        .files(group, &V2_FILES)
        .file(&format!("{group}/io.pressure"), IO_PRESSURE)
        .file("/sys/fs/cgroup/app.slice/memory.max", "65536\n")
        .file("/sys/fs/cgroup/cpu.stat", "usage_usec 999\n");
    let watched = Watched::fake(&root, &of_process(7));
    let expected = [
        ("group0.memory.usage_bytes", Some(4096)),
        ("group0.memory.limit_bytes", None),
        ("group0.memory.high_bytes", Some(8192)),
        ("group0.memory.events.high", Some(6)),
        ("group0.memory.stat.workingset_refault_file", Some(8)),
        ("group0.cpu.usage_ns", Some(5_000)),
        ("group0.cpu.throttled_ns", Some(2_000_000)),
        ("group0.cpu.quota_us", None),
        ("group0.cpu.period_us", Some(100_000)),
        ("group0.io.vda.write_bytes", Some(20)),
        ("group0.io.vda.max.wbps", Some(1_048_576)),
        ("group0.io.vda.max.rbps", None),
        ("group0.pressure.io.full_ns", Some(8_000)),
        ("group1.memory.limit_bytes", Some(65_536)),
    ];
    for (name, value) in expected {
        assert_eq!(watched.value(name), value, "{name}");
    }
    assert!(!watched.has("group2.cpu.usage_ns"), "the top is the machine");
    assert_eq!(watched.facts.groups.len(), 2);
}

#[test]
fn a_mixed_host_has_the_best_of_both() {
    let own = "/sys/fs/cgroup/unified/terrace-1";
    let mounts =
        format!("{V1_MOUNTS}41 27 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    let membership = "4:memory:/app\n3:blkio:/app\n1:cpu,cpuacct:/app\n0::/terrace-1\n";
    let root = v1_host()
        .file("/proc/self/mountinfo", mounts)
        .file("/proc/7/cgroup", membership)
        .file(&format!("{own}/io.pressure"), IO_PRESSURE)
        .file(&format!("{own}/cpu.stat"), "usage_usec 5\nuser_usec 3\nsystem_usec 2\n")
        .file(&format!("{own}/cgroup.procs"), "7\n");
    let scope = Scope { group: Some(PathBuf::from(own)), ..Scope::default() };
    for scope in [of_process(7), scope] {
        let watched = Watched::fake(&root, &scope);
        assert_eq!(watched.value("group0.memory.limit_bytes"), Some(1_048_576));
        assert_eq!(watched.value("group0.cpu.throttled_periods"), Some(4));
        assert_eq!(watched.value("group0.cpu.usage_ns"), Some(5_000), "of the own group");
        assert_eq!(watched.value("group0.pressure.io.some_ns"), Some(9_000));
        assert_eq!(watched.facts.groups[0].paths["unified"], "/terrace-1");
        assert_eq!(watched.value("tree.processes"), Some(1));
    }
}

#[test]
fn a_tree_sums_its_own_processes_only() {
    let family = with_process(with_process(with_process(small(), 7, 1), 9, 7), 8, 9);
    let root = with_process(family, 30, 1);
    let mut watched = Watched::fake(&root, &of_process(7));
    assert_eq!(watched.value("tree.processes"), Some(3), "7, 9, and 8 of 9");
    assert_eq!(watched.value("tree.run_ns"), Some(3_000));
    assert_eq!(watched.value("tree.user_ns"), Some(3 * 30_000_000));
    assert_eq!(watched.value("tree.cancelled_write_bytes"), Some(21));
    assert_eq!(watched.collectors.processes(), 3);
    let root = root.file("/proc/7/schedstat", "5000 200 4\n");
    watched.read();
    assert_eq!(watched.value("tree.run_ns"), Some(7_000));
    // Without the switch the field of block I/O waits is 0 for everybody, which means nothing.
    assert!(watched.has("tree.block_io_ns"));
    let root = root.file("/proc/sys/kernel/task_delayacct", "0\n");
    assert!(!Watched::fake(&root, &of_process(7)).has("tree.block_io_ns"));
    let everybody = Watched::fake(&root, &Scope::default());
    assert_eq!(everybody.value("tree.processes"), Some(4));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_file_panics_whatever_is_in_it(
        first in prop::collection::vec(any::<u8>(), 0..200),
        second in "((Node 0, zone |Total |254:0 |cpu|7 \\(x\\) S |some )?[ -~]{0,30}\n){0,6}",
    ) {
        let files = [
            "/proc/vmstat", "/proc/meminfo", "/proc/stat", "/proc/diskstats", "/proc/swaps",
            "/proc/zoneinfo", "/proc/buddyinfo", "/proc/pressure/cpu", "/proc/7/stat",
            "/proc/7/io", "/proc/7/schedstat", "/proc/7/cgroup", "/proc/loadavg", "/proc/uptime",
            "/sys/block/zram0/mm_stat", "/sys/devices/system/node/node0/numastat",
            "/sys/fs/cgroup/memory/app/memory.stat",
            "/sys/fs/cgroup/blkio/app/blkio.throttle.io_serviced_recursive",
        ];
        let fill = |root: FakeRoot, text: &[u8]| {
            files.iter().fold(root, |root, file| root.file(file, text))
        };
        let root = fill(v1_host().file("/sys/block/zram0/disksize", "9\n"), &first);
        let mut watched = Watched::fake(&root, &of_process(7));
        let root = fill(root, second.as_bytes());
        watched.read();
        watched.read_all();
        drop(root);
    }
}

/// A shell that goes on by one step for each line it is given, and says so.
struct Steps {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Steps {
    fn new(script: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn go(&mut self) {
        writeln!(self.input.as_mut().unwrap()).unwrap();
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word);
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        // The end of its input leads the script to its end, also when a test fails.
        self.input = None;
        let _ = self.child.wait();
    }
}

#[test]
fn faults_of_this_machine_grow() {
    let mut watched = Watched::open(&Root::system(), &of_process(std::process::id()));
    let before = watched.value("vmstat.pgfault").unwrap();
    let own_before = watched.value("tree.minor_faults").unwrap();
    let memory = vec![1u8; 8 << 20];
    assert_eq!(std::hint::black_box(&memory)[5], 1);
    watched.read_all();
    assert!(watched.value("vmstat.pgfault").unwrap() > before);
    assert!(watched.value("tree.minor_faults").unwrap() > own_before);
    assert!(watched.value("own.cpu_ns").unwrap() > 0);
    assert!(watched.value("own.rss_bytes").unwrap() > 0);
}

#[test]
fn the_own_groups_of_this_machine_are_found() {
    let watched = Watched::open(&Root::system(), &of_process(std::process::id()));
    let limits = machine::cgroup::memory_limits(&Root::system());
    let Some(own) = limits.first() else {
        return testkit::skip("a memory group");
    };
    let found = watched.facts.groups.first().and_then(|group| group.paths.get("memory"));
    if own.path != "/" {
        assert_eq!(found, Some(&own.path));
        assert!(watched.value("group0.memory.usage_bytes").is_some());
    }
}

#[test]
fn a_group_that_is_removed_is_absent_from_then_on() {
    let group = match testkit::Cgroup::v1_memory(64 << 20) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let scope = Scope { group: Some(group.path().to_owned()), ..Scope::default() };
    let mut watched = Watched::open(&Root::system(), &scope);
    assert_eq!(watched.value("group0.memory.limit_bytes"), Some(64 << 20));
    assert!(watched.value("group0.memory.usage_bytes").is_some());
    drop(group);
    watched.read_all();
    assert!(watched.has("group0.memory.usage_bytes"));
    assert_eq!(watched.value("group0.memory.usage_bytes"), None);
    assert_eq!(watched.value("group0.memory.limit_bytes"), None);
}

const MB: i64 = 1_000_000;

#[test]
fn a_childs_io_is_counted_once_while_it_lives_and_after() {
    let inner = "read a; head -c 3000000 /dev/zero >/dev/null; echo one; read b; true";
    let mut steps = Steps::new(&format!("sh -c '{inner}'; echo two; read c; true"));
    let mut watched = Watched::open(&Root::system(), &of_process(steps.child.id()));
    let start = watched.value("tree.write_chars").unwrap();
    let mut samples = vec![watched.row.clone()];
    let grown = |watched: &Watched| watched.value("tree.write_chars").unwrap() - start;
    steps.go();
    steps.wait_for("one");
    watched.read();
    samples.push(watched.row.clone());
    // The shells write a few bytes more. Whatever the machine does, nobody writes megabytes.
    assert!((3 * MB..4 * MB).contains(&grown(&watched)), "{}", grown(&watched));
    steps.go();
    steps.wait_for("two");
    watched.read();
    samples.push(watched.row.clone());
    assert!((3 * MB..4 * MB).contains(&grown(&watched)), "{}", grown(&watched));
    assert_eq!(watched.value("tree.processes"), Some(1));
    drop(steps);
    watched.read_all();
    samples.push(watched.row.clone());
    assert!((3 * MB..4 * MB).contains(&grown(&watched)), "{}", grown(&watched));
    assert_eq!(watched.value("tree.processes"), Some(0));
    // Sums never fall, whoever ended.
    for schema in watched.registry.schemas() {
        let is_sum = schema.kind == model::recording::SeriesKind::Counter;
        if schema.name.starts_with("tree.") && is_sum {
            let values: Vec<i64> =
                samples.iter().map(|row| row.values()[schema.id as usize]).collect();
            assert!(values.is_sorted(), "{}: {values:?}", schema.name);
        }
    }
}

#[test]
fn the_threads_of_a_process_are_summed() {
    const SPUN_NS: i64 = 20_000_000;
    let mut watched = Watched::open(&Root::system(), &of_process(std::process::id()));
    let before = watched.value("tree.run_ns").unwrap();
    let (done, when_done) = std::sync::mpsc::channel();
    // It spins until its own clock of CPU time says so, however long that takes.
    let worker = std::thread::spawn(move || {
        let used = || {
            let usage = sys::usage::thread().unwrap();
            usage.cpu_ns()
        };
        while used() < SPUN_NS.unsigned_abs() {
            std::hint::spin_loop();
        }
        done.send(()).unwrap();
        std::thread::park();
    });
    when_done.recv().unwrap();
    // The kernel adds its last stretch when it is switched off the processor, which may
    // take a while on a busy machine; the file has microseconds less than the other clock.
    let grown = (0..6_000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        watched.read_all();
        let grown = watched.value("tree.run_ns").unwrap() - before;
        (grown >= SPUN_NS - 1_000_000).then_some(grown)
    });
    assert!(grown.is_some());
    assert!(watched.value("tree.threads").unwrap() >= 2);
    worker.thread().unpark();
    worker.join().unwrap();
}

#[test]
fn many_processes_are_read_once_a_second_and_it_is_said() {
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do \
                  sleep 1000 & all=\"$all $!\"; done; echo ready; read a; kill $all; wait; true";
    let mut steps = Steps::new(script);
    steps.wait_for("ready");
    let mut watched = Watched::open(&Root::system(), &of_process(steps.child.id()));
    assert_eq!(watched.value("tree.processes"), Some(26));
    let notes = watched.collectors.notes();
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].kind, "rate");
    assert!(watched.collectors.notes().is_empty(), "it is told once");
    steps.go();
    let _ = steps.child.wait();
    watched.read();
    assert_eq!(watched.value("tree.processes"), Some(26), "not yet");
    watched.read_all();
    assert_eq!(watched.value("tree.processes"), Some(0));
    assert_eq!(watched.collectors.notes()[0].kind, "rate", "few again");
}

#[test]
fn what_root_sees_of_others_is_noted() {
    let watched = Watched::open(&Root::system(), &Scope::default());
    let sight = watched.facts.sight("other_users");
    assert_ne!(*sight, SourceState::NotAsked);
    assert_eq!(sight.is_open(), std::fs::read("/proc/1/io").is_ok());
}

/// The patterns in the first cells of the tables, each word in braces apart.
fn documented() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/counters.md");
    let text = std::fs::read_to_string(path).unwrap();
    let cells = text.lines().filter_map(|line| {
        let cell = line.strip_prefix("| `")?;
        cell.split_once('`').map(|(pattern, _)| pattern.to_owned())
    });
    cells.flat_map(|pattern| expand(&pattern)).collect()
}

fn expand(pattern: &str) -> Vec<String> {
    let braces = pattern.split_once('{').and_then(|(head, rest)| {
        let (words, tail) = rest.split_once('}')?;
        Some((head, words, tail))
    });
    let Some((head, words, tail)) = braces else {
        return vec![pattern.to_owned()];
    };
    let one = |word: &str| expand(&format!("{head}{word}{tail}"));
    words.split(',').flat_map(one).collect()
}

/// Whether a name is of this pattern, where `<x>` stands for one character or more.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('<') else {
        return pattern == name;
    };
    let tail = rest.split_once('>').map_or("", |(_, tail)| tail);
    let Some(name) = name.strip_prefix(head) else {
        return false;
    };
    let starts = name.char_indices().skip(1).map(|(at, _)| at);
    let mut ends = starts.chain([name.len()]);
    !name.is_empty() && ends.any(|end| matches(tail, &name[end..]))
}

#[test]
fn patterns_match_names() {
    assert!(matches("disk.<dev>.reads", "disk.vda.reads"));
    assert!(!matches("disk.<dev>.reads", "disk.vda.read"));
    assert!(!matches("stat.cpu<N>.user_ns", "stat.cpu.user_ns"));
    assert_eq!(expand("a.{b,c}.{d,e}"), ["a.b.d", "a.b.e", "a.c.d", "a.c.e"]);
}

#[test]
fn every_series_is_documented() {
    let patterns = documented();
    let system = Watched::open(&Root::system(), &of_process(std::process::id()));
    let (v1_root, desktop_root) = (v1_host(), FakeRoot::desktop_v2());
    let v1 = Watched::fake(&v1_root, &of_process(7));
    let desktop = Watched::fake(&desktop_root, &Scope::default());
    let copy = CopyGauges::default();
    for named in copy.names() {
        let known = patterns.iter().any(|pattern| matches(pattern, named.name));
        assert!(known, "docs/counters.md does not have {}", named.name);
    }
    for watched in [system, v1, desktop] {
        for schema in watched.registry.schemas() {
            let known = patterns.iter().any(|pattern| matches(pattern, &schema.name));
            assert!(known, "docs/counters.md does not have {}", schema.name);
        }
    }
}
