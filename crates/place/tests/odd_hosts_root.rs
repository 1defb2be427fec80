//! Hosts that are not one process with base pages on one disk: compressed RAM, two swap areas,
//! huge pages, System V memory, containers, limits of version 2. Needs root, memory groups of
//! version 1, and for each test what it names.
#![allow(clippy::unwrap_used, reason = "a test program")]

#[macro_use]
mod support;

use machine::Root;
use model::{Control, progress};
use place::background::StopReason;
use place::workingset::restore::RestoreMethod;
use place::workingset::restore::{
    self, MemoryKind, PlannedSource, RestoreReport, RestoreRequest, RestoredSource,
};
use place::workingset::targets::Selection;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;
use support::{Holding, SET_BYTES, Toucher, alone, request};
use sys::memory::Pages;
use testkit::{Cgroup, FakeRoot, SlowDisk, SwapArea, ZramDevice};

const MIB: u64 = 1 << 20;
/// The test that the toucher is started by.
const TOUCHER: &str = "the_toucher";

#[test]
fn the_toucher() {
    support::serve();
}

fn restored(request: &RestoreRequest) -> (Vec<PlannedSource>, RestoreReport) {
    restored_at(&Root::system(), request, &mut |_| {})
}

/// Calls `progress` with the bytes read so far.
fn restored_at(
    root: &Root,
    request: &RestoreRequest,
    progress: &mut dyn FnMut(u64),
) -> (Vec<PlannedSource>, RestoreReport) {
    let plan = restore::plan(root, request).unwrap();
    let parts = plan.parts.clone();
    let report = restore::carry_out(root, request, plan, &mut |now| {
        progress(now.done);
        Control::Continue
    })
    .unwrap();
    (parts, report)
}

/// A field of /proc/PID/FILE in bytes.
fn read_kib_field(pid: u32, file: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() * 1024
}

#[test]
fn what_lies_in_compressed_memory_is_left_there() {
    let _alone = alone();
    const SET: u64 = 8 * MIB;
    let device = or_skip!(ZramDevice::add(4 * SET));
    let _swap = or_skip!(device.as_swap());
    let own = Holding::Own(Pages::Base);
    let mut toucher = or_skip!(Toucher::start(TOUCHER, SET, &[], own));
    toucher.push_out_as_touched();
    let in_swap = read_kib_field(toucher.pid(), "status", "VmSwap:");
    assert!(in_swap >= SET, "{in_swap} bytes");
    let (parts, report) = restored(&request(toucher.pid()));
    let [part] = parts.as_slice() else { panic!("{parts:?}") };
    assert_eq!(Path::new(&part.source), device.path());
    assert!(part.bytes >= SET);
    let why = part.skipped.as_deref().unwrap();
    assert!(why.contains("compressed"), "{why}");
    assert_eq!((report.stop, report.parts), (StopReason::Done, Vec::new()));
    assert_eq!(read_kib_field(toucher.pid(), "status", "VmSwap:"), in_swap, "nothing was read");
    assert_eq!(toucher.touch().wrong_pages, 0);
}

#[test]
fn of_two_areas_each_is_read_in_its_order() {
    let _alone = alone();
    const SET: u64 = 8 * MIB;
    const DISK: u64 = 4 * MIB;
    let disk = or_skip!(SlowDisk::hdd(DISK));
    let file = or_skip!(SwapArea::on(4 * SET));
    let swap = or_skip!(disk.as_swap());
    let own = Holding::Own(Pages::Base);
    let mut toucher = or_skip!(Toucher::start(TOUCHER, SET, &[], own));
    toucher.push_out_as_touched();
    let plan = restore::plan(&Root::system(), &request(toucher.pid())).unwrap();
    let before = disk.statistics();
    let parts = plan.parts.clone();
    let report =
        restore::carry_out(&Root::system(), &request(toucher.pid()), plan, &mut progress::ignore)
            .unwrap();
    let seeks = disk.statistics().seeks - before.seeks;
    let sources: Vec<_> = report.parts.iter().map(|part| &part.source).collect();
    let expected = [swap.path(), &file.path()].map(|path| path.display().to_string());
    assert_eq!(sources, expected.each_ref(), "{parts:?}");
    println!(
        "{} and {} bytes in {} and {} runs, {seeks} seeks; by {:?} and {:?}",
        parts[0].bytes,
        parts[1].bytes,
        parts[0].runs,
        parts[1].runs,
        report.parts[0].method,
        report.parts[1].method
    );
    // The header takes a page of the area.
    assert!(parts[0].bytes > DISK / 2 && parts[0].bytes < DISK);
    assert!(parts[0].bytes + parts[1].bytes >= SET);
    assert_eq!(report.parts[0].method, Some(RestoreMethod::RemoteRead));
    assert!(seeks <= 2 * parts[0].runs + 4, "{seeks} seeks, {} runs", parts[0].runs);
    for (part, done) in parts.iter().zip(&report.parts) {
        assert_eq!((done.bytes, done.present_pages), (part.bytes, part.bytes / 4096));
    }
    let touched = toucher.touch();
    assert_eq!((touched.wrong_pages, touched.major_faults), (0, 0));
}

#[test]
fn huge_pages_that_were_pushed_out_come_back() {
    let _alone = alone();
    const SET: u64 = 16 * MIB;
    let disk = or_skip!(SlowDisk::hdd(64 * MIB));
    let _swap = or_skip!(disk.as_swap());
    let huge = Holding::Own(Pages::Transparent);
    let mut toucher = or_skip!(Toucher::start(TOUCHER, SET, &[], huge));
    let huge_bytes = read_kib_field(toucher.pid(), "smaps_rollup", "AnonHugePages:");
    if huge_bytes < SET / 2 {
        return testkit::skip(format!("huge pages: {huge_bytes} bytes of {SET} are"));
    }
    toucher.push_out_as_touched();
    let in_swap = read_kib_field(toucher.pid(), "status", "VmSwap:");
    assert!(in_swap >= SET, "{in_swap} bytes");
    let (parts, report) = restored(&request(toucher.pid()));
    println!(
        "{huge_bytes} bytes were huge pages; {} runs, {} ms",
        parts[0].runs,
        report.elapsed_ns / 1_000_000
    );
    assert_eq!(report.stop, StopReason::Done);
    let done = &report.parts[0];
    assert!(done.bytes >= SET);
    assert_eq!((done.present_pages, done.gone_pages), (done.pages, 0));
    let touched = toucher.touch();
    assert_eq!((touched.wrong_pages, touched.major_faults), (0, 0));
}

#[test]
fn a_process_of_another_pid_namespace_is_found_and_brought_back() {
    let _alone = alone();
    const SET: u64 = 16 * MIB;
    let _swap = or_skip!(SwapArea::on(4 * SET));
    let into = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let own = Holding::Own(Pages::Base);
    let mut toucher = or_skip!(Toucher::start(TOUCHER, SET, &into, own));
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap();
    assert_ne!(namespace(&toucher.pid().to_string()), namespace("self"), "it is in another");
    let selections = [
        Selection::Processes(vec![toucher.pid()]),
        Selection::Group(toucher.group.path().to_owned()),
    ];
    for selection in selections {
        toucher.push_out_as_touched();
        let request = RestoreRequest { selection, ..request(toucher.pid()) };
        let (_, report) = restored(&request);
        assert_eq!(report.stop, StopReason::Done);
        let bytes: u64 = report.parts.iter().map(|part| part.bytes).sum();
        assert!(bytes >= SET, "{report:?}");
        let is_there = |part: &RestoredSource| part.present_pages == part.pages;
        assert!(report.parts.iter().all(is_there), "{report:?}");
        let touched = toucher.touch();
        assert_eq!((touched.wrong_pages, touched.major_faults), (0, 0));
    }
}

/// The machine with a tree of version 2 that says what a test wants: the process is in a group
/// of it that may use `limit_bytes` together.
fn tree_of_version_2(pid: u32, limit_bytes: u64) -> FakeRoot {
    const GROUP: &str = "/sys/fs/cgroup/system.slice/app.service";
    let mut tree = FakeRoot::bare()
        .file(&format!("/proc/{pid}/cgroup"), "0::/system.slice/app.service\n")
        .file(
            "/proc/self/mountinfo",
            "30 25 0:26 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n",
        )
        .file(&format!("{GROUP}/memory.max"), "max\n")
        .file(&format!("{GROUP}/memory.current"), "0\n")
        // The limit of the slice above holds for its services too.
        .file("/sys/fs/cgroup/system.slice/memory.max", format!("{limit_bytes}\n"))
        .file("/sys/fs/cgroup/system.slice/memory.current", "0\n");
    for file in ["stat", "maps", "pagemap", "exe", "comm"] {
        tree = tree.link(&format!("/proc/{pid}/{file}"), &format!("/proc/{pid}/{file}"));
    }
    for file in ["/proc/swaps", "/proc/meminfo", "/proc/vmstat", "/proc/pressure"] {
        tree = tree.link(file, file);
    }
    for file in ["/sys/block", "/sys/dev", "/sys/devices", "/dev"] {
        tree = tree.link(file, file);
    }
    tree
}

#[test]
fn a_limit_of_version_2_is_kept_also_of_a_group_above() {
    let _alone = alone();
    let toucher = or_skip!(Toucher::swapped_out(TOUCHER, SET_BYTES, &[]));
    let limit = SET_BYTES / 2;
    let tree = tree_of_version_2(toucher.pid(), limit);
    let usage = tree.path().join("sys/fs/cgroup/system.slice/memory.current");
    let (_, report) = restored_at(&Root::at(tree.path()), &request(toucher.pid()), &mut |bytes| {
        std::fs::write(&usage, format!("{bytes}\n")).unwrap()
    });
    assert_eq!(report.stop, StopReason::GroupLimit, "{report:?}");
    let bytes: u64 = report.parts.iter().map(|part| part.bytes).sum();
    assert!(bytes > limit / 2 && bytes <= limit, "{bytes} of {limit}");
}

#[test]
fn without_a_limit_of_version_2_all_comes_back() {
    let _alone = alone();
    let mut toucher = or_skip!(Toucher::swapped_out(TOUCHER, SET_BYTES, &[]));
    let tree = tree_of_version_2(toucher.pid(), 0);
    let unlimited = tree.path().join("sys/fs/cgroup/system.slice/memory.max");
    std::fs::write(unlimited, "max\n").unwrap();
    let (_, report) = restored_at(&Root::at(tree.path()), &request(toucher.pid()), &mut |_| {});
    assert_eq!(report.stop, StopReason::Done, "{report:?}");
    assert_eq!(toucher.touch().wrong_pages, 0);
}

/// Fills a System V segment, which goes with its last user, and verifies it on request.
const SEGMENT: &str = r#"
import ctypes, random, sys
size = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
number = libc.shmget(0, ctypes.c_size_t(size), 0o1600)
at = libc.shmat(number, None, 0)
libc.shmctl(number, 0, None)
content = random.Random(4).randbytes(size)
ctypes.memmove(at, content, size)
print("ready", flush=True)
for line in sys.stdin:
    print("same" if ctypes.string_at(at, size) == content else "changed", flush=True)
"#;

struct SegmentUser {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl SegmentUser {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for SegmentUser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lowers the group's limit until no more than this of its shared memory is left and all that went
/// is written: until then a page counts as in memory, and may go after it was counted. At most
/// for 5 s.
fn push_shared_out(group: &Path, limit_bytes: u64, left_bytes: u64) {
    let limit = group.join("memory.limit_in_bytes");
    for _ in 0..500 {
        // Refused where less cannot be reached at once; what went is gone nonetheless.
        let _ = std::fs::write(&limit, limit_bytes.to_string());
        let stat = std::fs::read_to_string(group.join("memory.stat")).unwrap();
        let bytes = |name: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.trim().parse::<u64>().ok())
        };
        // Older kernels do not tell of the swap cache; what is in it is not gone.
        let here = bytes("shmem ").unwrap() + bytes("swapcached ").unwrap_or(0);
        if bytes("writeback ").unwrap() == 0 && here <= left_bytes {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn system_v_memory_comes_back() {
    let _alone = alone();
    const SET: u64 = 16 * MIB;
    let _swap = or_skip!(SwapArea::on(8 * SET));
    let group = or_skip!(Cgroup::v1_memory(16 * SET));
    let mut child = group
        .command("python3")
        .args(["-c", SEGMENT, &SET.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut user = SegmentUser { child, output };
    if user.line() != "ready" {
        return testkit::skip("python3 with ctypes");
    }
    let limit = group.path().join("memory.limit_in_bytes");
    push_shared_out(group.path(), MIB, SET / 4);
    std::fs::write(&limit, (16 * SET).to_string()).unwrap();
    let request = RestoreRequest { anonymous: false, shared: true, ..request(user.child.id()) };
    // The last of it may still be on its way, unseen by the group's account.
    let in_swap = || restore::plan(&Root::system(), &request).unwrap().parts;
    let mut before = Vec::new();
    for _ in 0..50 {
        let now = in_swap();
        if now == before {
            break;
        }
        before = now;
        std::thread::sleep(Duration::from_millis(100));
    }
    let (parts, report) = restored(&request);
    let swapped = parts.first().map_or(0, |part| part.bytes);
    assert!(swapped > SET / 2, "{parts:?}");
    assert_eq!(report.stop, StopReason::Done);
    let [done] = report.parts.as_slice() else { panic!("{report:?}") };
    assert_eq!((done.kind, done.bytes), (MemoryKind::Shared, swapped));
    assert!(done.source.starts_with("/SYSV"), "{}", done.source);
    assert_eq!(done.present_pages, done.pages);
    assert_eq!(in_swap(), [], "nothing of it is left in swap");
    let input = user.child.stdin.as_mut().unwrap();
    input.write_all(b"verify\n").unwrap();
    assert_eq!(user.line(), "same");
}
