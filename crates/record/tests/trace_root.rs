//! Kernel events of the real kernel: what a child process does on purpose must come out as
//! the state, the class and the sums that it stands for.
//!
//! The child is this test binary again, told by its environment what to do. It says `ready`,
//! waits for a line, works, says `done`, and waits for the end of its input. Nothing here
//! judges how fast: a wait that a test asserts lasts so long by construction, and sums are
//! exact. Where the machine was so busy that records were lost, nothing is judged.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test, and the child that it talks to"
)]

mod captured;

use captured::Killed;
use record::trace::{Family, Limit, Tracer};
use record::{ABSENT, Registry, Row};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use sys::clock::now_ns;

const TASK: &str = "TRACE_TASK";
const FILE: &str = "TRACE_FILE";
/// Pages of the cold file: half a second at the rate that the test allows.
const COLD_PAGES: u64 = 128;

/// What the child does when it is this binary's child, and nothing in a usual run.
#[test]
fn child() {
    let Ok(task) = std::env::var(TASK) else {
        return;
    };
    say("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let file = std::env::var(FILE).unwrap_or_default();
    match task.as_str() {
        "sleep" => std::thread::sleep(Duration::from_millis(300)),
        "pipe" => ping_pong(500),
        "flood" => ping_pong(20_000),
        "lock" => contend(),
        "read" => read_cold(Path::new(&file)),
        "flush" => flush(Path::new(&file)),
        "reclaim" => fill_cache(Path::new(&file)),
        "fork" => fork(),
        "fault" => touch(),
        "busy" => stay_busy(),
        other => panic!("what is {other}?"),
    }
    say("done");
    std::io::stdin().read_line(&mut line).unwrap();
}

fn say(word: &str) {
    println!("\n{word}");
    std::io::stdout().flush().unwrap();
}

/// A byte goes to a thread and back, so many times; the thread answers only when this one has
/// been found asleep for the first, so one wait of 20 ms is certain.
fn ping_pong(turns: u32) {
    let (mut ours, mut there) = std::io::pipe().unwrap();
    let (mut theirs, mut back) = std::io::pipe().unwrap();
    let first = own_thread();
    let other = std::thread::spawn(move || {
        let mut byte = [0];
        let mut is_first = true;
        while ours.read(&mut byte).unwrap() == 1 {
            if std::mem::take(&mut is_first) {
                wait_until_asleep(first);
            }
            back.write_all(&byte).unwrap();
        }
    });
    for _ in 0..turns {
        let mut byte = [1];
        there.write_all(&byte).unwrap();
        theirs.read_exact(&mut byte).unwrap();
    }
    drop(there);
    other.join().unwrap();
}

/// The other thread waits for the lock for at least 20 ms: it is let go only when it has been
/// seen asleep for that long.
fn contend() {
    let lock = std::sync::Mutex::new(());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let held = lock.lock().unwrap();
        scope.spawn(|| {
            sender.send(own_thread()).unwrap();
            drop(lock.lock().unwrap());
        });
        wait_until_asleep(receiver.recv().unwrap());
        drop(held);
    });
}

fn own_thread() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// Returns when a thread has been found asleep 20 times in a row, a millisecond apart.
fn wait_until_asleep(thread: u32) {
    wait_until_asleep_at(&format!("/proc/self/task/{thread}/stat"));
}

fn wait_until_asleep_at(stat: &str) {
    let mut times = 0;
    while times < 20 {
        std::thread::sleep(Duration::from_millis(1));
        let stat = std::fs::read_to_string(stat).unwrap();
        let asleep = stat.rsplit(')').next().unwrap().trim().starts_with('S');
        times = if asleep { times + 1 } else { 0 };
    }
}

fn read_cold(path: &Path) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(path).unwrap();
    sys::file::advise(&file, 0, 0, sys::file::CacheAdvice::Random).unwrap();
    let mut page = vec![0; 4096];
    for number in 0..COLD_PAGES {
        file.read_exact_at(&mut page, number * 4096).unwrap();
    }
}

fn flush(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    for _ in 0..30 {
        file.write_all(&[7; 8192]).unwrap();
        file.sync_all().unwrap();
    }
}

/// A grandchild sleeps for 100 ms; another one ends when this thread has been found waiting.
fn fork() {
    assert!(Command::new("sleep").arg("0.1").status().unwrap().success());
    let mut grandchild =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    // Taken, so that the wait does not close it.
    let input = grandchild.stdin.take().unwrap();
    let waiting = own_thread();
    let helper = std::thread::spawn(move || {
        wait_until_asleep(waiting);
        drop(input);
    });
    assert!(grandchild.wait().unwrap().success());
    helper.join().unwrap();
}

/// Reads a file that takes twice the memory that the test allows.
fn fill_cache(path: &Path) {
    let mut file = std::fs::File::open(path).unwrap();
    let mut block = vec![0; 1 << 20];
    while file.read(&mut block).unwrap() > 0 {}
}

fn touch() {
    let mut memory = vec![0u8; 8 << 20];
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&memory);
}

/// Touches memory that was never touched, for a second of the processor's time.
fn stay_busy() {
    let ticks = || {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let fields: Vec<u64> = stat.rsplit_once(')').unwrap().1.split(' ').map(number).collect();
        fields[12] + fields[13]
    };
    let end = ticks() + 100;
    while ticks() < end {
        let pages = sys::memory::Pages::Base;
        let mut memory = sys::memory::Mapping::anonymous(8 << 20, pages).unwrap();
        memory.as_mut_slice().chunks_mut(4096).for_each(|page| page[0] = 1);
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or(0)
}

/// A child of this binary that does `task`; killed when it goes out of scope.
struct Subject {
    child: Killed,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Subject {
    fn start(task: &str, file: &Path) -> Self {
        Self::spawn(Command::new(std::env::current_exe().unwrap()), task, file)
    }

    fn spawn(command: Command, task: &str, file: &Path) -> Self {
        let mut child = captured::again_by(command, "child")
            .env(TASK, task)
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child: Killed(child),
        }
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while line.trim() != word {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "no {word}");
        }
    }

    /// Lets it work to the end of its work.
    fn work(&mut self) {
        self.input.as_mut().unwrap().write_all(b"go\n").unwrap();
        self.wait_for("done");
    }

    fn end(&mut self) {
        self.input = None;
        assert!(self.child.0.wait().unwrap().success());
    }

    fn threads(&self) -> u64 {
        let path = format!("/proc/{}/task", self.id());
        std::fs::read_dir(path).unwrap().count() as u64
    }
}

/// A tracer with its columns and their values.
struct Traced {
    tracer: Tracer,
    registry: Registry,
    row: Row,
}

thread_local! {
    /// Whether events are to be copied out of the kernel.
    static RINGS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs a story with events copied out of the kernel.
fn with_rings(story: impl Fn()) {
    RINGS.set(true);
    story();
}

/// Runs a story with programs in the kernel, and again with events copied out of it.
fn in_both_ways(story: impl Fn()) {
    RINGS.set(false);
    story();
    with_rings(story);
}

impl Traced {
    /// Of these processes, or of all if none is named; `None`, and a word why, where events are not
    /// to be had.
    fn open(families: &[Family], processes: &[u32]) -> Option<Self> {
        let mut registry = Registry::new();
        let open = if RINGS.get() { Tracer::open_rings } else { Tracer::open };
        let processes = (!processes.is_empty()).then_some(processes);
        let (tracer, sights) = open(families, processes, &mut registry);
        let in_kernel = sights[record::trace::IN_KERNEL].is_open();
        if !RINGS.get() && !in_kernel {
            testkit::skip(format!("programs in the kernel: {sights:?}"));
        }
        Self::checked(tracer, &format!("{sights:?}"), registry)
    }

    fn checked(tracer: Option<Tracer>, sights: &str, registry: Registry) -> Option<Self> {
        let Some(tracer) = tracer else {
            testkit::skip(format!("kernel events: {sights}"));
            return None;
        };
        Some(Self { tracer, registry, row: Row::default() })
    }

    /// Reads; how many records were lost so far.
    fn read_lossy(&mut self) -> u64 {
        self.tracer.read(now_ns(), true, &mut self.registry, &mut self.row);
        self.tracer.lost()
    }

    /// Reads; false, and a word why, where records were lost.
    fn read(&mut self) -> bool {
        let whole = self.read_lossy() == 0;
        if !whole {
            testkit::skip("a machine that is less busy: records were lost");
        }
        whole
    }

    fn get(&self, name: &str) -> u64 {
        let found = self.registry.schemas().iter().find(|s| s.name == name);
        let id = found.unwrap_or_else(|| panic!("no series {name}")).id;
        let value = self.row.values()[id as usize];
        assert_ne!(value, ABSENT, "{name}");
        value.unsigned_abs()
    }

    fn sum(&self, group: &str, names: &[&str]) -> u64 {
        let values = names.iter().map(|name| self.get(&format!("trace.{group}.{name}_ns")));
        values.sum()
    }

    fn wall_ns(&self) -> u64 {
        self.sum("wall", &["run", "queue", "block_io", "asleep"])
    }

    fn lives_ns(&self) -> u64 {
        self.sum("sched", &["run", "queue", "block_io", "children", "sleep"])
    }

    /// What must hold whatever happened: parts sum to their whole, the wall to the time.
    fn assert_closed(&self) {
        let sleeps = [
            "timer",
            "lock",
            "pipe",
            "socket",
            "poll",
            "signal",
            "file_lock",
            "file",
            "flush",
            "reclaim",
            "fault",
            "kernel",
            "unknown",
        ];
        assert_eq!(self.sum("sleep", &sleeps), self.get("trace.sched.sleep_ns"));
        let ios = [
            "read",
            "write",
            "dirty",
            "flush",
            "swap_in",
            "direct",
            "metadata",
            "journal",
            "writeback",
            "lower",
            "other",
        ];
        assert_eq!(self.sum("block_io", &ios), self.get("trace.sched.block_io_ns"));
        let wall = self.sum("wall", &["run", "queue", "block_io", "asleep"]);
        assert_eq!(wall, self.tracer.horizon_ns() - self.tracer.opened_ns());
    }

    fn print(&self, what: &str) {
        for schema in self.registry.schemas() {
            let value = self.row.values().get(schema.id as usize);
            if let Some(value) = value.filter(|value| **value != 0 && **value != ABSENT) {
                println!("{what}: {} {value}", schema.name);
            }
        }
    }
}

/// A child that did its task while it was traced; read when it still lives.
fn traced(task: &str, file: &Path, families: &[Family]) -> Option<(Subject, Traced)> {
    traced_subject(Subject::start(task, file), task, families)
}

fn traced_subject(
    mut subject: Subject,
    task: &str,
    families: &[Family],
) -> Option<(Subject, Traced)> {
    subject.wait_for("ready");
    let mut traced = Traced::open(families, &[subject.id()])?;
    subject.work();
    let whole = traced.read();
    traced.print(task);
    whole.then_some((subject, traced))
}

#[test]
fn a_sleep_is_a_timer_and_the_states_sum_to_the_life() {
    in_both_ways(|| {
        let mut subject = Subject::start("sleep", Path::new(""));
        subject.wait_for("ready");
        let threads = subject.threads();
        let Some(mut traced) = Traced::open(&[Family::Sched], &[subject.id()]) else {
            return;
        };
        subject.work();
        if !traced.read() {
            return;
        }
        // It sleeps for at least 300 ms; the run up to its switch is not part of that.
        assert!(traced.get("trace.sleep.timer_ns") >= 290_000_000);
        assert!(traced.get("trace.sched.run_ns") > 0);
        // Its threads were there at the start and are there still, in a read of their input.
        let elapsed_ns = traced.tracer.horizon_ns() - traced.tracer.opened_ns();
        assert_eq!(traced.lives_ns(), threads * elapsed_ns);
        assert_eq!(traced.get("trace.sched.threads"), threads);
        traced.assert_closed();
        subject.end();
        if !traced.read() {
            return;
        }
        // Who waits for a child may be told before it has left its processor for the last time.
        for _ in 0..100 {
            let before_ns = traced.lives_ns();
            std::thread::sleep(Duration::from_millis(10));
            if !traced.read() {
                return;
            }
            if traced.lives_ns() == before_ns {
                return traced.assert_closed();
            }
        }
        panic!("a process still lives");
    });
}

#[test]
fn a_ping_pong_sleeps_in_pipes() {
    in_both_ways(|| {
        let Some((_subject, traced)) = traced("pipe", Path::new(""), &[Family::Sched]) else {
            return;
        };
        // The first answer comes when the wait for it has lasted 20 naps of a millisecond.
        assert!(traced.get("trace.sleep.pipe_ns") >= 19_000_000);
        assert_eq!(traced.get("trace.sleep.socket_ns"), 0);
        traced.assert_closed();
    });
}

#[test]
fn a_contended_lock_is_a_lock() {
    in_both_ways(|| {
        let Some((_subject, traced)) = traced("lock", Path::new(""), &[Family::Sched]) else {
            return;
        };
        // Held for 20 naps of a millisecond after the waiter was first seen asleep.
        assert!(traced.get("trace.sleep.lock_ns") >= 19_000_000);
        assert!(traced.get("trace.sched.threads") >= 2);
        traced.assert_closed();
    });
}

#[test]
fn children_belong_to_the_subject_and_are_waited_for() {
    in_both_ways(|| {
        let Some((mut subject, mut traced)) = traced("fork", Path::new(""), &[Family::Sched])
        else {
            return;
        };
        // The grandchild sleeps for 100 ms with a timer, the helper less than that 20 times.
        assert!(traced.get("trace.sleep.timer_ns") >= 99_000_000);
        // The helper let the second grandchild go only when its parent had waited for 20 ms.
        assert!(traced.get("trace.sched.children_ns") >= 19_000_000);
        assert!(traced.get("trace.sched.threads") >= 4);
        subject.end();
        traced.read();
        traced.assert_closed();
    });
}

/// Keeps every processor at work until dropped: some kernels tell nothing of what happens in
/// the idle task of a processor, and the ends of requests are told wherever an interrupt lands.
struct Busy {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Busy {
    fn start() -> Self {
        use std::sync::atomic::{AtomicBool, Ordering};
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let spin = |stop: std::sync::Arc<AtomicBool>| {
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (0..processors).map(|_| spin(stop.clone())).collect();
        Self { stop, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A directory on a file system with a device behind it, and the device's number.
fn disk_directory() -> Option<(testkit::TempDir, String)> {
    use std::os::unix::fs::MetadataExt;
    let directory = testkit::TempDir::new();
    let device = std::fs::metadata(directory.path()).unwrap().dev();
    let (major, minor) = sys::block::device_numbers(device);
    if major == 0 {
        testkit::skip("temporary files on a disk");
        return None;
    }
    Some((directory, format!("{major}:{minor}")))
}

/// A device of the host's can be done before its reader has gone to sleep, so the reader is
/// held to 1 MiB a second: the kernel then keeps requests back, and some wait is certain.
#[test]
fn a_cold_file_is_read_from_the_device() {
    in_both_ways(|| {
        let Some((directory, number)) = disk_directory() else {
            return;
        };
        let group = match testkit::Cgroup::v1_read_rate(&number, 1 << 20) {
            Ok(group) => group,
            Err(need) => return testkit::skip(need),
        };
        let path = directory.join("cold");
        let bytes = usize::try_from(COLD_PAGES).unwrap() * 4096;
        std::fs::write(&path, vec![5; bytes]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        sys::file::advise(&file, 0, 0, sys::file::CacheAdvice::DontNeed).unwrap();
        let families = [Family::Sched, Family::Block];
        let command = group.command(std::env::current_exe().unwrap());
        let _busy = Busy::start();
        let subject = Subject::spawn(command, "read", &path);
        let Some((_subject, traced)) = traced_subject(subject, "read", &families) else {
            return;
        };
        assert!(traced.get("trace.block_io.read_ns") > 0);
        assert!(traced.get("trace.sched.block_io_waits") > 0);
        assert!(traced.get("trace.block.reads") > 0);
        assert!(traced.get("trace.block.read_bytes") > 0);
        assert!(traced.get("trace.block.read_ns") > 0);
        traced.assert_closed();
        // The machine's sums are those of its devices.
        let schemas = traced.registry.schemas().iter();
        let of_devices = schemas.filter(|schema| {
            let name = schema.name.strip_prefix("trace.block.");
            name.is_some_and(|name| name.ends_with(".reads"))
        });
        let sum: u64 = of_devices.map(|schema| traced.get(&schema.name)).sum();
        assert_eq!(sum, traced.get("trace.block.reads"));
    });
}

#[test]
fn flushing_is_distinguished_from_writing() {
    in_both_ways(|| {
        let Some((directory, _)) = disk_directory() else {
            return;
        };
        let path = directory.join("flushed");
        let families = [Family::Sched, Family::Block];
        let _busy = Busy::start();
        let Some((_subject, traced)) = traced("flush", &path, &families) else {
            return;
        };
        // 30 flushes of new data: some wait for the device or the journal is certain.
        let flush_ns = traced.get("trace.block_io.flush_ns") + traced.get("trace.sleep.flush_ns");
        assert!(flush_ns > 0);
        assert!(traced.get("trace.block.writes") > 0);
        traced.assert_closed();
    });
}

/// Pages of the cache count for the group that reads them, so the second half of the file has
/// no room until the reader has made some.
#[test]
fn reclaim_for_a_limit_is_direct_reclaim() {
    in_both_ways(|| {
        let Some((directory, _)) = disk_directory() else {
            return;
        };
        let group = match testkit::Cgroup::v1_memory(48 << 20) {
            Ok(group) => group,
            Err(need) => return testkit::skip(need),
        };
        let path = directory.join("sparse");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(96 << 20).unwrap();
        let command = group.command(std::env::current_exe().unwrap());
        let subject = Subject::spawn(command, "reclaim", &path);
        let Some((_subject, traced)) = traced_subject(subject, "reclaim", &[Family::Vmscan]) else {
            return;
        };
        assert!(traced.get("trace.vmscan.direct_reclaims") > 0);
        assert!(traced.get("trace.vmscan.direct_reclaim_ns") > 0);
    });
}

#[test]
fn faults_of_the_subject_are_counted() {
    in_both_ways(|| {
        let families = [Family::Faults];
        let Some((_subject, traced)) = traced("fault", Path::new(""), &families) else {
            return;
        };
        // 8 MiB touched: with huge pages of 2 MiB at least 3 faults, else 2,048.
        assert!(traced.get("trace.faults.user") >= 3);
    });
}

/// A small control group has no room for programs, and its samples are missed most.
#[test]
fn processors_are_sampled_while_they_run_the_subject() {
    in_both_ways(|| {
        let families = [Family::Sched, Family::Cpu];
        let Some((_subject, traced)) = traced("busy", Path::new(""), &families) else {
            return;
        };
        let samples = traced.get("trace.cpu.samples");
        let sampled_ns = samples * traced.get("trace.cpu.period_ns");
        let run_ns = traced.get("trace.sched.run_ns");
        let apart = sampled_ns.abs_diff(run_ns) as f64 / run_ns as f64;
        assert!(apart < 0.25, "{samples} samples for {run_ns} ns");
        let touches = traced.get("trace.cpu.in.fault_first_touch");
        assert!(touches * 5 > samples, "{touches} of {samples} samples in first touches");
        let user = traced.get("trace.cpu.in.user");
        assert!(user > 0 && user < samples, "{user} of {samples} samples in user code");
    });
}

/// Regression: threads of a paused container were counted as waiting for a processor.
#[test]
fn a_frozen_thread_does_not_wait_for_a_processor() {
    in_both_ways(|| {
        let group = match testkit::Cgroup::v1_freezer() {
            Ok(group) => group,
            Err(need) => return testkit::skip(need),
        };
        let mut command = group.command("sh");
        let endless = command.args(["-c", "while :; do :; done"]);
        let busy = Killed(group.spawn(endless).unwrap());
        let set = |state: &str| std::fs::write(group.path().join("freezer.state"), state).unwrap();
        let read = || std::fs::read_to_string(group.path().join("freezer.state")).unwrap();
        set("FROZEN");
        while read().trim() != "FROZEN" {
            std::thread::sleep(Duration::from_millis(1));
        }
        let traced = Traced::open(&[Family::Sched], &[busy.0.id()]);
        std::thread::sleep(Duration::from_millis(300));
        let whole = traced.map(|mut traced| (traced.read(), traced));
        // One that is frozen cannot be killed.
        set("THAWED");
        let Some((true, traced)) = whole else {
            return;
        };
        let active_ns = traced.sum("sched", &["run", "queue"]);
        assert!(traced.get("trace.sched.sleep_ns") > 10 * active_ns, "{active_ns} ns");
    });
}

/// Regression: a thread that slept already was counted as running when a switch was seen by
/// half.
#[test]
fn one_that_sleeps_already_never_counts_as_running() {
    in_both_ways(|| {
        let killed = Killed(Command::new("sleep").arg("600").spawn().unwrap());
        let sleeper = &killed.0;
        let stat = format!("/proc/{}/stat", sleeper.id());
        let wchan = || std::fs::read_to_string(format!("/proc/{}/wchan", sleeper.id())).unwrap();
        let asleep = || std::fs::read_to_string(&stat).unwrap().contains(") S ");
        // It is asleep for good when it waits in its own call, not on the way there.
        let mut tries = 0;
        while !(asleep() && wchan().contains("nanosleep")) {
            std::thread::sleep(Duration::from_millis(1));
            tries += 1;
            if tries > 5000 {
                return testkit::skip("a kernel that tells in which function a thread sleeps");
            }
        }
        let mut outcomes = Vec::new();
        for _ in 0..20 {
            let Some(mut traced) = Traced::open(&[Family::Sched], &[sleeper.id()]) else {
                break;
            };
            std::thread::sleep(Duration::from_millis(5));
            if traced.read() {
                traced.assert_closed();
                let sleep_ns = traced.get("trace.sched.sleep_ns");
                outcomes.push((sleep_ns, traced.lives_ns(), traced.get("trace.wall.run_ns")));
            }
        }
        for (sleep_ns, life_ns, run_ns) in outcomes {
            assert_eq!((sleep_ns, run_ns), (life_ns, 0));
            assert!(life_ns >= 5_000_000);
        }
    });
}

/// After records were lost, the states are those of /proc again.
#[test]
fn a_loss_is_noted_and_does_not_last() {
    with_rings(|| {
        let mut subject = Subject::start("flood", Path::new(""));
        subject.wait_for("ready");
        let Some(mut traced) = Traced::open(&[Family::Sched], &[subject.id()]) else {
            return;
        };
        // Nobody reads meanwhile: 40,000 switches do not fit.
        subject.work();
        wait_until_asleep_at(&format!("/proc/{}/stat", subject.id()));
        // The kernel notes a loss when there is room again and something happens.
        traced.read_lossy();
        std::thread::sleep(Duration::from_millis(20));
        if traced.read_lossy() == 0 {
            return testkit::skip("a smaller ring: nothing was lost");
        }
        traced.assert_closed();
        let lost = traced.read_lossy();
        traced.assert_closed();
        assert_eq!(traced.get("trace.lost"), lost);
        let (run_ns, lives_ns) = (traced.get("trace.sched.run_ns"), traced.lives_ns());
        std::thread::sleep(Duration::from_millis(5));
        if traced.read_lossy() > lost {
            return testkit::skip("a machine that is less busy: more was lost");
        }
        // It waits for input: it lives, and does not run.
        assert_eq!(traced.get("trace.sched.run_ns"), run_ns);
        assert!(traced.lives_ns() >= lives_ns + 5_000_000);
        traced.assert_closed();
    });
}

#[test]
fn the_machine_closes_as_well() {
    in_both_ways(|| {
        let Some(mut traced) = Traced::open(&[Family::Sched, Family::Vmscan], &[]) else {
            return;
        };
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(20));
            if !traced.read() {
                return;
            }
            traced.assert_closed();
        }
        assert!(traced.get("trace.sched.threads") > 1);
        assert!(traced.get("trace.events") > 0);
        assert!(traced.get("trace.wall.run_ns") > 0, "this thread ran");
    });
}

#[test]
fn too_many_events_are_paused_and_followed_again() {
    with_rings(|| {
        let Some(mut traced) = Traced::open(&[Family::Sched], &[]) else {
            return;
        };
        let pause_ns = 50_000_000;
        traced.tracer.set_limit(Limit { events_per_s: 0, patience_ns: 0, pause_ns });
        std::thread::sleep(Duration::from_millis(5));
        traced.read_lossy();
        assert_eq!(traced.get("trace.stopped"), 1);
        let spans = traced.tracer.spans();
        assert_eq!(spans.len(), 1);
        assert_eq!(spans[0].kind, "events_paused");
        assert_eq!(spans[0].end_ns - spans[0].start_ns, pause_ns);
        assert!(traced.tracer.sights()["events.sched"].is_open());
        let (events, wall) = (traced.get("trace.events"), traced.wall_ns());
        std::thread::sleep(Duration::from_millis(5));
        traced.read_lossy();
        let paused = (traced.get("trace.events"), traced.wall_ns());
        assert_eq!(paused, (events, wall));
        assert!(traced.tracer.spans().is_empty());
        traced.tracer.set_limit(Limit::default());
        std::thread::sleep(Duration::from_nanos(pause_ns));
        traced.read_lossy();
        assert_eq!(traced.get("trace.stopped"), 0);
        let again = std::time::Instant::now();
        std::thread::sleep(Duration::from_millis(30));
        traced.read_lossy();
        assert!(traced.get("trace.events") > events);
        let passed_ns = u64::try_from(again.elapsed().as_nanos()).unwrap();
        let grown_ns = traced.wall_ns() - wall;
        // The pause is in no sum.
        assert!(grown_ns >= 30_000_000 && grown_ns < passed_ns + pause_ns / 2, "{grown_ns}");
    });
}
