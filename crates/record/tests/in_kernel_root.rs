//! Programs in the kernel: what they count is held against what the kernel counts by itself, and
//! who did something against who was made to do it.
//!
//! Nothing here judges how fast. Skipped where the kernel runs no programs of ours.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod captured;

use captured::Killed;
use model::recording::{ProcessFigure, SampledPart, Who};
use record::capture::{Keep, Live, RecordOptions, Target};
use record::trace::{Family, IN_KERNEL, Tracer};
use record::{Registry, Row};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::TempDir;

/// An emulated machine runs a shell some fifty times slower.
const PATIENCE: Duration = Duration::from_secs(60);

const ALL: [Family; 6] =
    [Family::Sched, Family::Block, Family::Vmscan, Family::Writeback, Family::Cpu, Family::Who];

/// A tracer of the machine with what it has said so far.
struct Watched {
    tracer: Tracer,
    registry: Registry,
    row: Row,
    started: Instant,
    who: Who,
}

impl Watched {
    /// `None`, and a line why, where the kernel runs no programs.
    fn machine() -> Option<Self> {
        let mut registry = Registry::new();
        let (tracer, sights) = Tracer::open(&ALL, None, &mut registry);
        let is_in_kernel = sights[IN_KERNEL].is_open();
        let Some(tracer) = tracer.filter(|_| is_in_kernel) else {
            testkit::skip(format!("programs in the kernel: {:?}", sights[IN_KERNEL]));
            return None;
        };
        for family in ALL {
            assert!(sights[family.sight()].is_open(), "{sights:?}");
        }
        let started = Instant::now();
        let mut watched =
            Self { tracer, registry, row: Row::default(), started, who: Who::default() };
        watched.tracer.read(0, true, &mut watched.registry, &mut watched.row);
        watched.tracer.restart_who();
        Some(watched)
    }

    /// Takes a sample; with `all` nothing waits for the end of its second.
    fn read_now(&mut self, all: bool) {
        let now_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap();
        self.tracer.read(now_ns, all, &mut self.registry, &mut self.row);
        let mut news = self.tracer.who().unwrap();
        self.who.processes.append(&mut news.processes);
        self.who.rows.append(&mut news.rows);
        self.who.files.append(&mut news.files);
        self.who.file_rows.append(&mut news.file_rows);
        self.who.samples.append(&mut news.samples);
        self.who.requests.append(&mut news.requests);
    }

    /// Requests of a process and their bytes; each is in a class of latency.
    fn requests_of(&self, pid: u32, is_write: bool) -> (u64, u64) {
        let rows = self.who.requests.iter().filter(|row| row.is_write == is_write);
        let of_it = rows.filter(|row| self.who.processes[row.process as usize].pid == pid);
        of_it.fold((0, 0), |(requests, bytes), row| {
            assert_eq!(row.classes.iter().sum::<u64>(), row.requests);
            (requests + row.requests, bytes + row.bytes)
        })
    }

    fn read(&mut self) {
        self.read_now(true);
    }

    /// Reads ten times a second for so long.
    fn read_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100));
            self.read_now(false);
        }
    }

    fn get(&self, name: &str) -> u64 {
        let found = self.registry.schemas().iter().find(|schema| schema.name == name);
        found.map_or(0, |schema| self.row.values()[schema.id as usize].unsigned_abs())
    }

    /// What all entries that `is_it` names used.
    fn used(
        &self,
        figure: ProcessFigure,
        is_it: impl Fn(&model::recording::Process) -> bool,
    ) -> u64 {
        let rows = self.who.rows.iter();
        let of = rows.filter(|row| is_it(&self.who.processes[row.process as usize]));
        of.map(|row| row.get(figure)).sum()
    }
}

/// Requests that all devices completed: reads and writes, and flushes. A flush without data is one
/// of the writes too, the flushes of a write with data are not.
fn completed_by_the_kernel() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/diskstats").unwrap();
    let line = |line: &str| {
        let fields: Vec<u64> =
            line.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        let of = |index: usize| fields.get(index).copied().unwrap_or(0);
        // Partitions repeat their disk; devices without a queue issue no requests.
        let has_queue = Path::new(&format!("/sys/dev/block/{}:{}/mq", of(0), of(1))).exists();
        if has_queue { [of(3) + of(7), of(18)] } else { [0; 2] }
    };
    text.lines().map(line).fold([0; 2], |all, one| [all[0] + one[0], all[1] + one[1]])
}

#[test]
fn no_completion_is_lost_in_idle_processors() {
    let directory = TempDir::new();
    let Some(mut watched) = Watched::machine() else {
        return;
    };
    let completed = |watched: &Watched| {
        ["reads", "writes", "flushes"].map(|name| watched.get(&format!("trace.block.{name}")))
    };
    watched.read();
    let (before, kernel_before) = (completed(&watched), completed_by_the_kernel());
    let mut file = std::fs::File::create(directory.join("flushed")).unwrap();
    for _ in 0..200 {
        file.write_all(&[7; 4096]).unwrap();
        file.sync_all().unwrap();
    }
    watched.read();
    let kernel_after = completed_by_the_kernel();
    let [kernel, flushes] = [0, 1].map(|which| kernel_after[which] - kernel_before[which]);
    let seen: u64 = completed(&watched).iter().sum::<u64>() - before.iter().sum::<u64>();
    if kernel < 200 {
        return testkit::skip("temporary files on a disk with a queue");
    }
    // The two are not read at one instant; a ring of samples has one in a hundred of these.
    let is_as_many = seen * 100 >= kernel * 97 && (kernel + flushes) * 100 >= seen * 90;
    assert!(is_as_many, "{seen} of {kernel}, {flushes} flushes");
    assert_eq!(watched.get("trace.lost"), 0);
}

#[test]
fn who_used_the_processor_is_named_with_its_share() {
    let Some(mut watched) = Watched::machine() else {
        return;
    };
    // A name that a terminal would obey is kept as it is; it is made harmless where it is shown.
    let script = "exec 2>/dev/null; printf 'busy\\033[31m' > /proc/self/comm; while :; do :; done";
    let busy = Killed(Command::new("bash").args(["-c", script]).spawn().unwrap());
    let pid = busy.0.id();
    let cpu_before = cpu_ns(pid);
    watched.read_for(Duration::from_millis(2500));
    let ran_ns = cpu_ns(pid) - cpu_before;
    watched.read();
    let named = watched.used(ProcessFigure::Cpu, |process| process.pid == pid);
    // What it used in the last second may still wait for its row; /proc is read a bit earlier.
    assert!(named <= ran_ns + 200_000_000, "{named} of {ran_ns}");
    assert!(named + 150_000_000 >= ran_ns, "{named} of {ran_ns}");
    let entry = watched.who.processes.iter().rfind(|process| process.pid == pid).unwrap();
    assert!(entry.name.contains('\u{1b}') && !entry.is_kernel, "{entry:?}");
    assert_eq!(entry.parent, std::process::id());
    let own = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    assert!(own.contains(&entry.group) && !entry.group.is_empty(), "{} in {own}", entry.group);
    assert!(watched.get("trace.cpu.in.user") > 0);
    // One each `period_ns`; those after the last second wait for their row.
    let rows = watched.who.samples.iter();
    let of_it = rows.filter(|row| watched.who.processes[row.process as usize].pid == pid);
    let user: u64 = of_it.map(|row| row.samples[SampledPart::User as usize]).sum();
    let expected = ran_ns / watched.get("trace.cpu.period_ns");
    assert!(user * 2 >= expected && user <= expected + expected / 4, "{user} of {expected}");
}

#[test]
fn one_that_runs_another_program_is_named_by_it() {
    let directory = TempDir::new();
    let report = directory.join("report");
    std::fs::write(&report, "while :; do :; done").unwrap();
    let Some(mut watched) = Watched::machine() else {
        return;
    };
    // As wrappers of services do: work, then become the program.
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exec bash \"$0\"";
    let mut wrapper = Command::new("sh");
    wrapper.args(["-c", script]).arg(&report);
    let wrapper = Killed(wrapper.spawn().unwrap());
    let pid = wrapper.0.id();
    let of_pid = |process: &model::recording::Process| process.pid == pid;
    let is_report = |process: &model::recording::Process| process.name == "bash report";
    let began = Instant::now();
    while !watched.who.processes.iter().any(is_report) {
        assert!(began.elapsed() < PATIENCE, "{:?}", watched.who.processes);
        watched.read_for(Duration::from_millis(100));
    }
    // Longer than the wrapper ran.
    watched.read_for(Duration::from_millis(2000) + 2 * began.elapsed());
    watched.read();
    let entries = watched.who.processes.iter().filter(|process| of_pid(process));
    let names: Vec<&str> = entries.map(|process| process.name.as_str()).collect();
    assert_eq!(names, ["sh", "bash report"]);
    let ran_ns = watched.used(ProcessFigure::Cpu, of_pid);
    let as_report = watched.used(ProcessFigure::Cpu, is_report);
    assert!(as_report > ran_ns / 2, "{as_report} of {ran_ns}");
}

/// Processor time of all threads, by the scheduler.
fn cpu_ns(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn who_read_which_file_is_named() {
    const BYTES: usize = 8 << 20;
    let directory = TempDir::new();
    let path = directory.join("read by cat");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&vec![3; BYTES]).unwrap();
    file.sync_all().unwrap();
    sys::file::advise(&file, 0, 0, sys::file::CacheAdvice::DontNeed).unwrap();
    drop(file);
    let Some(mut watched) = Watched::machine() else {
        return;
    };
    let mut cat = Command::new("cat").arg(&path).stdout(Stdio::piped()).spawn().unwrap();
    let pid = cat.id();
    let mut output = cat.stdout.take().unwrap();
    let mut bytes = vec![0; BYTES];
    output.read_exact(&mut bytes).unwrap();
    watched.read_for(Duration::from_millis(1500));
    cat.wait().unwrap();
    watched.read_for(Duration::from_millis(1500));
    let device = std::fs::metadata(&path).unwrap().dev();
    let inode = std::fs::metadata(&path).unwrap().ino();
    let (major, _) = sys::block::device_numbers(device);
    if major == 0 {
        return testkit::skip("temporary files on a disk");
    }
    let id = watched.who.files.iter().find(|file| file.inode == inode).unwrap();
    assert_eq!(id.path.as_deref(), path.to_str(), "{id:?}");
    let rows = watched.who.file_rows.iter().filter(|row| row.file == id.id);
    let of_cat = rows.filter(|row| watched.who.processes[row.process as usize].pid == pid);
    let added: u64 = of_cat.map(|row| row.added_bytes).sum();
    assert!(added >= BYTES as u64, "{added} of {BYTES}");
    let read = watched.used(ProcessFigure::ReadBytes, |process| process.pid == pid);
    assert!(read >= BYTES as u64, "{read} of {BYTES}");
    let (requests, bytes) = watched.requests_of(pid, false);
    assert!(bytes >= BYTES as u64 * 9 / 10 && requests > 0, "{requests} of {bytes}");
}

/// The kernel keeps such a number in other bits than it shows it in.
#[test]
fn a_file_of_a_device_with_a_large_number_is_named() {
    const MINOR: u32 = 300;
    match testkit::Mounted::ext4_numbered(64 << 20, MINOR) {
        Ok(mounted) => {
            let metadata = std::fs::metadata(mounted.path()).unwrap();
            assert_eq!(sys::block::device_numbers(metadata.dev()).1, MINOR);
            named_when_read(&mounted, &mounted.path().join("far away"));
        }
        Err(need) => testkit::skip(need),
    }
}

#[test]
fn a_file_whose_inode_number_needs_more_than_32_bits_is_named() {
    match testkit::Mounted::large_xfs() {
        Ok(mounted) => {
            let directories = [1, 2, 3, 4, 5, 6].map(|one| mounted.path().join(one.to_string()));
            directories.iter().for_each(|path| std::fs::create_dir(path).unwrap());
            let path = directories[5].join("far away");
            named_when_read(&mounted, &path);
            assert!(std::fs::metadata(path).unwrap().ino() > u64::from(u32::MAX));
        }
        Err(need) => testkit::skip(need),
    }
}

/// Writes a file, and reads it from the device: it is named, with its reader and its bytes.
fn named_when_read(mounted: &testkit::Mounted, path: &Path) {
    // Much: a recording has the first files of each second by their bytes.
    const BYTES: usize = 32 << 20;
    std::fs::write(path, vec![3; BYTES]).unwrap();
    if let Err(need) = mounted.remount() {
        return testkit::skip(need);
    }
    let metadata = std::fs::metadata(path).unwrap();
    let (device, inode) = (sys::block::device_numbers(metadata.dev()), metadata.ino());
    let Some(mut watched) = Watched::machine() else {
        return;
    };
    assert_eq!(std::fs::read(path).unwrap().len(), BYTES);
    watched.read_for(Duration::from_millis(1300));
    let files = watched.who.files.iter();
    let Some(id) = files.clone().find(|file| (file.device, file.inode) == (device, inode)) else {
        panic!("no {device:?} {inode} in {:?}", files.collect::<Vec<_>>());
    };
    assert_eq!(id.path.as_deref(), path.to_str(), "{id:?}");
    let rows = watched.who.file_rows.iter().filter(|row| row.file == id.id);
    let own =
        rows.filter(|row| watched.who.processes[row.process as usize].pid == std::process::id());
    let added: u64 = own.map(|row| row.added_bytes).sum();
    assert!(added >= BYTES as u64, "{added} of {BYTES}");
}

/// Two processes of one number within a second are two entries, each with its own time.
#[test]
fn a_process_number_that_is_used_again_at_once_is_another_process() {
    const LAST: &str = "/proc/sys/kernel/ns_last_pid";
    let Some(mut watched) = Watched::machine() else {
        return;
    };
    watched.read_for(Duration::from_millis(1100));
    let busy = |name: &str| {
        let script = format!(
            "printf {name} > /proc/$$/comm; i=0; while [ $i -lt 800000 ]; do i=$((i+1)); done"
        );
        Command::new("sh").args(["-c", &script]).spawn().unwrap()
    };
    // Longer than what is summed by name. Others may take the number in between.
    for _ in 0..20 {
        let mut first = busy("used-first");
        let pid = first.id();
        first.wait().unwrap();
        let number = (pid - 1).to_string();
        if let Err(error) = std::fs::write(LAST, &number) {
            return testkit::skip(format!("to write {LAST}: {error}"));
        }
        let mut second = busy("used-again");
        second.wait().unwrap();
        if second.id() != pid {
            continue;
        }
        watched.read_for(Duration::from_millis(1300));
        watched.read();
        for name in ["used-first", "used-again"] {
            let is_it =
                |process: &model::recording::Process| process.pid == pid && process.name == name;
            let ran_ns = watched.used(ProcessFigure::Cpu, is_it);
            assert!(ran_ns > 50_000_000, "{name}: {ran_ns} of {:?}", watched.who.processes);
        }
        return;
    }
    testkit::skip("a process number that nothing else takes");
}

#[test]
fn what_is_written_back_is_of_whom_made_it_dirty() {
    const BYTES: usize = 8 << 20;
    let directory = TempDir::new();
    let Some(mut watched) = Watched::machine() else {
        return;
    };
    watched.read_for(Duration::from_millis(300));
    let mut file = std::fs::File::create(directory.join("written")).unwrap();
    file.write_all(&vec![5; BYTES]).unwrap();
    let device = file.metadata().unwrap().dev();
    if sys::block::device_numbers(device).0 == 0 {
        return testkit::skip("temporary files on a disk");
    }
    // Others write it back: a flusher, for a process that is not its writer.
    assert!(Command::new("sync").status().unwrap().success());
    watched.read_for(Duration::from_millis(1500));
    let (requests, bytes) = watched.requests_of(std::process::id(), true);
    assert!(bytes >= BYTES as u64 * 9 / 10 && requests > 0, "{requests} of {bytes}");
}

/// Evicted in large folios and read back page by page: the folios differ, the pages do not.
#[test]
fn what_was_evicted_is_known_again_in_other_folios() {
    const MIB: usize = 1 << 20;
    let directory = TempDir::new();
    let path = directory.join("larger than its group");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&vec![5; 64 * MIB]).unwrap();
    file.sync_all().unwrap();
    sys::file::advise(&file, 0, 0, sys::file::CacheAdvice::DontNeed).unwrap();
    drop(file);
    let group = match testkit::Cgroup::v1_memory(32 << 20) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let Some(mut watched) = Watched::machine() else {
        return;
    };
    let own = std::env::current_exe().unwrap();
    let mut command = group.command(own);
    command.args(["--exact", "a_reader_of_single_pages"]).env("IN_KERNEL_READS", &path);
    let mut reader = command.stdout(Stdio::null()).spawn().unwrap();
    let pid = reader.id();
    while reader.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(100));
        watched.read();
    }
    watched.read_for(Duration::from_millis(1200));
    let stat = std::fs::read_to_string(group.path().join("memory.stat")).unwrap();
    let counted = stat.lines().find_map(|line| line.strip_prefix("workingset_refault_file "));
    let Some(pages) = counted.and_then(|pages| pages.parse::<u64>().ok()) else {
        return testkit::skip("a group that counts refaults of files");
    };
    let by_kernel = pages * sys::process::page_bytes() as u64;
    assert!(by_kernel > 16 << 20, "{by_kernel}");
    let ours = watched.used(ProcessFigure::Refaulted, |process| process.pid == pid);
    let share = ours as f64 / by_kernel as f64;
    assert!((0.8..1.2).contains(&share), "{ours} of {by_kernel}");
}

/// What the test above starts; nothing in a usual run.
#[test]
fn a_reader_of_single_pages() {
    let Some(path) = std::env::var_os("IN_KERNEL_READS") else {
        return;
    };
    let mut file = std::fs::File::open(path).unwrap();
    let mut bytes = 0;
    let mut piece = vec![0; 1 << 20];
    while let Ok(read @ 1..) = file.read(&mut piece) {
        bytes += read;
    }
    let page_bytes = sys::process::page_bytes();
    for number in (0..bytes / page_bytes).rev() {
        file.read_exact_at(&mut piece[..page_bytes], (number * page_bytes) as u64).unwrap();
    }
}

#[test]
fn a_thousand_short_processes_are_one_entry() {
    let Some(mut watched) = Watched::machine() else {
        return;
    };
    let script = "for i in $(seq 1000); do /bin/true; done";
    let mut shell = Command::new("sh").args(["-c", script]).spawn().unwrap();
    let pid = shell.id();
    while shell.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(100));
        watched.read();
    }
    watched.read_for(Duration::from_millis(1200));
    let many = |process: &model::recording::Process| process.is_many && process.parent == pid;
    let rows = watched.who.rows.iter();
    let of = rows.filter(|row| many(&watched.who.processes[row.process as usize]));
    let ended: u64 = of.map(|row| row.processes).sum();
    // One that was under way when all were read has an entry of its own.
    let of_own = |process: &&model::recording::Process| !process.is_many && process.parent == pid;
    let own = watched.who.processes.iter().filter(of_own).count() as u64;
    assert!((990..=1010).contains(&(ended + own)), "{ended}, {own} of their own");
    assert!(own < 100, "{own}");
    assert!(watched.used(ProcessFigure::Cpu, many) > 0);
}

/// The machine's processes as one recording has them that reads /proc, and as another one that
/// leaves it to the kernel, at the same time.
#[test]
fn sums_of_all_processes_are_those_of_proc() {
    const BYTES: u64 = 256 << 20;
    let watch = |families: &[Family]| {
        let options = RecordOptions { families: families.to_vec(), ..RecordOptions::default() };
        let keep = Keep { time_ns: 600_000_000_000, bytes: 64 << 20 };
        Live::start(&Target::Machine, &options, keep).unwrap()
    };
    let (in_kernel, of_proc) = (watch(&ALL), watch(&[]));
    if !in_kernel.look(|recording| recording.facts.sight(IN_KERNEL).is_open()) {
        return testkit::skip("programs in the kernel");
    }
    let mut ended = Command::new("head");
    ended.args(["-c", "64M", "/dev/zero"]).stdout(Stdio::null());
    assert!(ended.status().unwrap().success());
    let mut buffer = vec![0; 1 << 20];
    let mut zeros = std::fs::File::open("/dev/zero").unwrap();
    for _ in 0..BYTES >> 20 {
        zeros.read_exact(&mut buffer).unwrap();
    }
    // Both sum up once a second.
    std::thread::sleep(Duration::from_millis(2300));
    let values = |live: &Live, name: &str| {
        live.look(|recording| {
            let steps = &recording.series(name).unwrap().steps;
            let value = |value: Option<i64>| value.unwrap().unsigned_abs();
            (value(steps.first().unwrap().value), value(steps.last().unwrap().value))
        })
    };
    // The kernel sums the memory of a process by processor, and up to 64 pages of each are not in
    // its sum yet; /proc waits for them.
    let processes = values(&of_proc, "tree.processes").1;
    let processors = std::thread::available_parallelism().unwrap().get() as u64;
    let pending = processes * processors * (64 << 12);
    for (name, pending) in [("tree.processes", 0), ("tree.threads", 0), ("tree.rss_bytes", pending)]
    {
        let (kernel, proc) = (values(&in_kernel, name).1, values(&of_proc, name).1);
        let most = proc / 5 + pending;
        assert!(kernel.abs_diff(proc) <= most, "{name}: {kernel}, by /proc {proc}");
    }
    for name in ["tree.read_chars", "tree.run_ns", "tree.read_calls", "tree.minor_faults"] {
        let grown = |live: &Live| values(live, name).1 - values(live, name).0;
        let (kernel, proc) = (grown(&in_kernel), grown(&of_proc));
        // What began and ended between two readings of /proc is in the kernel's sum only.
        assert!(kernel * 10 >= proc * 8, "{name}: {kernel}, by /proc {proc}");
    }
    let grown = values(&in_kernel, "tree.read_chars");
    assert!(grown.1 - grown.0 >= BYTES + (64 << 20), "{grown:?}");
    let source =
        in_kernel.look(|recording| recording.series("tree.run_ns").unwrap().schema.source.clone());
    assert_eq!(source, "task_struct");
}

#[test]
fn programs_are_gone_with_a_recorder_that_is_killed() {
    let Some(watched) = Watched::machine() else {
        return;
    };
    let ours = || {
        let names = sys::bpf::loaded().unwrap();
        names.iter().filter(|name| *name == "threads_switch").count()
    };
    let with_one = ours();
    assert!(with_one >= 1);
    drop(watched);
    let mut recorder = Killed(
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_recorder_that_waits", "--nocapture"])
            .env("IN_KERNEL_WAITS", "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut output = recorder.0.stdout.take().unwrap();
    let mut text = String::new();
    let mut byte = [0];
    while !text.contains("loaded") {
        assert_eq!(output.read(&mut byte).unwrap(), 1, "{text}");
        text.push(char::from(byte[0]));
    }
    let with_another = ours();
    drop(recorder);
    // Programs are let go of after a grace period.
    let until = Instant::now() + Duration::from_secs(10);
    while ours() >= with_another && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(ours() < with_another, "still {with_another}");
}

/// What the test above starts and kills; nothing in a usual run.
#[test]
fn a_recorder_that_waits() {
    if std::env::var_os("IN_KERNEL_WAITS").is_none() {
        return;
    }
    let watched = Watched::machine();
    #[allow(clippy::print_stdout, reason = "what its parent waits for")]
    {
        println!("loaded");
    }
    std::thread::sleep(Duration::from_secs(600));
    drop(watched);
}
