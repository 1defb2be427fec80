//! What the kernel reports of real commands: all their threads, children and orphans, no others,
//! and what they waited for. Needs root, outside a PID namespace.
//!
//! Counts, sums and membership are asserted, never speed: what is lost or late on a slow
//! machine changes none of them.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod captured;

use captured::{DiskFile, Killed, alone};
use model::recording::{SourceState, Task, TaskSource};
use record::tasks::{Listener, TaskReport, TaskScope};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;
use sys::parent::Reaper;
use sys::spawn::Gated;
use sys::wait::{try_wait, wait};
use testkit::{TempDir, skip};
use undo::AppliedChange;

/// A listener that receives ends, or the reason why the test cannot run.
fn listener() -> Option<Listener> {
    let (listener, sights) = Listener::open(sys::clock::now_ns());
    match &sights.iter().find(|(name, _)| name == "exits").unwrap().1 {
        SourceState::Open => listener,
        SourceState::Closed { why, .. } => {
            skip(why);
            None
        }
        SourceState::NotAsked => panic!("it was asked for"),
    }
}

/// This test program once more, as a workload of the tests.
fn workload(name: &str) -> Vec<OsString> {
    captured::words(&captured::again(name))
}

fn shell(script: &str) -> Vec<OsString> {
    ["/bin/sh", "-c", script].map(OsString::from).to_vec()
}

/// Runs a command under the listener as a recorder does.
fn watch(mut listener: Listener, argv: &[OsString]) -> (u32, TaskReport) {
    let _reaper = Reaper::start().unwrap();
    let mut command = Gated::spawn(argv).unwrap();
    listener.watch(&TaskScope {
        processes: Some(vec![command.pid()]),
        reaper: Some(std::process::id()),
    });
    command.open_gate().unwrap();
    // Reads meanwhile, so that a busy machine around loses no ends.
    while try_wait(command.pid()).unwrap().is_none() {
        listener.read();
        std::thread::sleep(Duration::from_millis(5));
    }
    let report = listener.finish(sys::clock::now_ns());
    (command.pid(), report)
}

/// What holds for every row, whatever the machine does. The kernel keeps ages and run times
/// on two clocks, one of which is slewed by up to 0.05 %: hence the slack.
fn plausible(task: &Task) {
    let alive_ns = task.alive_ns + task.alive_ns / 100 + 1_000_000 * task.threads;
    assert!(task.run_ns + task.queue.total_ns <= alive_ns, "{task:?}");
    assert!(task.threads >= 1 && !task.comm.is_empty());
}

const SLEEP_MS: u64 = 30;

/// Says what it can see; for an ordinary user and in a namespace.
#[test]
#[ignore = "a workload of the other tests"]
fn tell_the_sights() {
    let (listener, sights) = Listener::open(sys::clock::now_ns());
    println!("{sights:?}");
    // What can be had without the sight is had.
    let mut listener = listener.unwrap();
    listener.watch(&TaskScope { processes: Some(vec![std::process::id()]), reaper: None });
    let report = listener.finish(sys::clock::now_ns());
    println!(
        "own rows: {}",
        report.tasks.iter().filter(|task| task.tid == std::process::id()).count()
    );
}

#[test]
fn an_old_acknowledgement_is_no_permission() {
    let _alone = alone();
    if listener().is_none() {
        return;
    }
    let program = workload("tell_the_sights");
    let in_namespace =
        Command::new("unshare").args(["--pid", "--fork", "--mount-proc"]).args(&program).output();
    let ordinary = Command::new(&program[0]).args(&program[1..]).uid(65_534).gid(65_534).output();
    for (output, why) in [(in_namespace, "namespace"), (ordinary, "root")] {
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        match text {
            // Where the tool or the way to this program is closed to it.
            Ok(text) if text.contains("exits") => {
                assert!(text.contains("Closed") && text.contains(why), "{text}");
                assert!(text.contains("own rows: 1"), "{text}");
            }
            _ => skip("unshare, and a program that everybody may execute"),
        }
    }
}

/// Four threads that work and sleep, and the one that waits for them.
#[test]
#[ignore = "a workload of the other tests"]
fn four_threads() {
    let work = || {
        std::thread::sleep(Duration::from_millis(SLEEP_MS));
        let began = sys::scheduling::thread_cpu_ns();
        let mut sum = 0u64;
        while sys::scheduling::thread_cpu_ns() - began < 20_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
    };
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let builder = std::thread::Builder::new().name("worker".into());
            builder.spawn(work).unwrap()
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn every_thread_of_a_process_is_accounted() {
    let _alone = alone();
    let Some(listener) = listener() else { return };
    let (pid, report) = watch(listener, &workload("four_threads"));
    assert_eq!((report.processes, report.lost), (1, 0));
    report.tasks.iter().for_each(plausible);
    let workers: Vec<_> = report.tasks.iter().filter(|task| task.comm == "worker").collect();
    assert_eq!(workers.len(), 4);
    for worker in workers {
        assert_eq!((worker.pid, worker.source), (pid, TaskSource::Exit));
        // The thread measured 20 ms on its own CPU clock; it slept for 30 ms besides.
        assert!(worker.run_ns >= 19_000_000, "{worker:?}");
        assert!(worker.alive_ns >= worker.run_ns + (SLEEP_MS - 1) * 1_000_000);
        assert!(worker.voluntary_switches >= 1);
    }
    // The main thread, the harness's own and the workers; each is a row of its own.
    assert!(report.tasks.iter().any(|task| task.tid == pid));
    assert!(report.tasks.iter().all(|task| task.pid == pid && task.threads == 1));
}

#[test]
fn short_children_all_arrive() {
    let _alone = alone();
    let Some(listener) = listener() else { return };
    let script = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done";
    let (pid, report) = watch(listener, &shell(script));
    assert_eq!((report.processes, report.lost), (201, 0));
    report.tasks.iter().for_each(plausible);
    let children = report.tasks.iter().filter(|task| task.comm == "true");
    assert_eq!(children.filter(|task| task.ppid == pid).count(), 200);
}

/// A process outside of the tree: a script in a shell that ends with the test, and by itself
/// should the test be killed, after a minute on a processor.
fn neighbour(script: &str) -> Killed {
    let script = format!("ulimit -t 60; {script}");
    Killed::start(Command::new("/bin/sh").args(["-c", &script]))
}

#[test]
fn an_orphan_belongs_and_a_neighbour_does_not() {
    let _alone = alone();
    let Some(mut listener) = listener() else {
        return;
    };
    let directory = TempDir::new();
    let ready = directory.path().join("ready");
    // A child of this process that is not below the root; with no reaper it is a stranger.
    let neighbour = neighbour("while :; do /bin/echo; done");
    let script = format!(
        "(/bin/cat {0} > /dev/null; exit 0) & echo $! > {1}; exit 0",
        directory.path().join("fifo").display(),
        ready.display()
    );
    let fifo = Command::new("mkfifo").arg(directory.path().join("fifo")).status();
    assert!(fifo.unwrap().success());
    let _reaper = Reaper::start().unwrap();
    let mut command = Gated::spawn(&shell(&script)).unwrap();
    listener.watch(&TaskScope { processes: Some(vec![command.pid()]), reaper: None });
    command.open_gate().unwrap();
    wait(command.pid()).unwrap();
    let orphan: u32 = std::fs::read_to_string(&ready).unwrap().trim().parse().unwrap();
    // It lives, for its pipe is closed; a sampler has seen it below the command.
    listener.read();
    listener.adopt(&[orphan]);
    drop(std::fs::OpenOptions::new().write(true).open(directory.path().join("fifo")).unwrap());
    wait(orphan).unwrap();
    let report = listener.finish(sys::clock::now_ns());
    assert_eq!(report.lost, 0);
    assert!(report.tasks.iter().any(|task| task.pid == orphan));
    assert!(report.tasks.iter().any(|task| task.comm == "cat"), "its child");
    assert!(report.tasks.iter().all(|task| task.pid != neighbour.id()));
    assert!(report.tasks.iter().all(|task| task.comm != "echo"));
}

#[test]
fn orphans_of_the_reaper_belong_without_being_seen() {
    let _alone = alone();
    let Some(mut listener) = listener() else {
        return;
    };
    let _reaper = Reaper::start().unwrap();
    // A daemon as of old: twice forked, its parent gone.
    let directory = TempDir::new();
    let path = directory.join("pid");
    let script = format!("(/bin/sleep 0.05 & echo $! > {}; exit 0); exit 0", path.display());
    let mut command = Gated::spawn(&shell(&script)).unwrap();
    listener.watch(&TaskScope {
        processes: Some(vec![command.pid()]),
        reaper: Some(std::process::id()),
    });
    command.open_gate().unwrap();
    wait(command.pid()).unwrap();
    let orphan: u32 = std::fs::read_to_string(&path).unwrap().trim().parse().unwrap();
    wait(orphan).unwrap();
    let report = listener.finish(sys::clock::now_ns());
    let sleep = report.tasks.iter().find(|task| task.comm == "sleep").unwrap();
    assert_eq!(sleep.pid, orphan);
    assert!(sleep.alive_ns >= sleep.run_ns);
    assert_eq!(report.lost, 0);
}

#[test]
fn what_was_before_the_watch_is_subtracted_and_what_lives_is_asked() {
    let _alone = alone();
    let Some(mut listener) = listener() else {
        return;
    };
    // It works and ends only when it is killed.
    let worker = neighbour("while :; do :; done");
    let pid = worker.id();
    let run_ns = || {
        let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
        text.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    // However long it takes: 100 ms of work before the watch, 20 ms after it.
    while run_ns() < 100_000_000 {
        std::thread::sleep(Duration::from_millis(5));
    }
    listener.watch(&TaskScope { processes: Some(vec![pid]), reaper: None });
    let before_ns = run_ns();
    while run_ns() < before_ns + 20_000_000 {
        std::thread::sleep(Duration::from_millis(5));
    }
    listener.read();
    let report = listener.finish(sys::clock::now_ns());
    let total_ns = run_ns();
    worker.kill();
    assert_eq!((report.tasks.len(), report.processes), (1, 1));
    let task = &report.tasks[0];
    assert_eq!((task.tid, task.source), (pid, TaskSource::Asked));
    assert!(task.run_ns >= 20_000_000, "{task:?}");
    assert!(task.run_ns <= total_ns - 100_000_000, "{task:?} of {total_ns}");
    plausible(task);
}

#[test]
fn the_whole_machine_is_every_task() {
    let _alone = alone();
    let Some(mut listener) = listener() else {
        return;
    };
    listener.watch(&TaskScope::default());
    assert!(Command::new("/bin/true").status().unwrap().success());
    let report = listener.finish(sys::clock::now_ns());
    assert!(report.tasks.iter().any(|task| task.comm == "true"));
    // On a machine with thousands of threads the first process may be in a sum.
    if report.tasks.iter().all(|task| task.threads == 1) {
        let first = report.tasks.iter().find(|task| task.pid == 1).unwrap();
        assert_eq!(first.source, TaskSource::Asked);
    }
    assert!(
        report.processes as usize
            >= report.tasks.iter().filter(|task| task.pid == task.tid).count()
    );
}

#[test]
fn waits_for_block_io_are_counted_once_they_are_switched_on() {
    let _alone = alone();
    let applied = match AppliedChange::delay_accounting() {
        Ok(applied) => applied,
        Err(error) => return skip(error),
    };
    let Some(listener) = listener() else { return };
    let file = DiskFile::new("delay-test");
    let opened =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file.path());
    opened.unwrap().write_all(&vec![1; 1 << 20]).unwrap();
    let script = format!(
        "dd if=/dev/zero of={0} bs=4096 count=64 oflag=dsync conv=notrunc 2>/dev/null; \
         dd if={0} of=/dev/null bs=4096 count=64 iflag=direct 2>/dev/null; exit 0",
        file.path().display()
    );
    let (_, report) = watch(listener, &shell(&script));
    drop(applied.release());
    let readers: Vec<_> = report.tasks.iter().filter(|task| task.comm == "dd").collect();
    assert_eq!(readers.len(), 2, "{:?}", report.tasks);
    assert!(report.tasks.iter().all(|task| task.block_io.is_some()));
    let waits: u64 = readers.iter().map(|task| task.block_io.unwrap().count).sum();
    let bytes: u64 = readers.iter().map(|task| task.read_bytes).sum();
    if bytes == 0 {
        return skip("a file system on a block device");
    }
    assert!(waits > 0, "{readers:?}");
}
