//! Watching commands and processes with what an ordinary user may do: statuses, samples,
//! marks, ends, and what the command must not notice.
//!
//! No test here judges a time from above: a recorder on a busy machine is late, never wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod captured;

use captured::{Flag, alone, command, plan, shell, text};
use model::recording::{Ending, Subject};
use model::{CopyGauges, GaugeSet};
use record::ErrorKind;
use record::capture::{self, BackgroundRecording, CommandPlan, Keep, Live, RecordOptions, Target};
use std::process::{Command, Stdio};
use std::sync::Arc;
use testkit::TempDir;

fn ending(script: &str) -> Ending {
    command(&shell(script)).outcome.unwrap().ending
}

#[test]
fn statuses_are_the_command_s() {
    let _alone = alone();
    assert_eq!(ending("exit 0"), Ending::Exited { code: 0 });
    assert_eq!(ending("exit 7"), Ending::Exited { code: 7 });
    let killed = Ending::Killed { signal: 15, out_of_memory: None };
    assert_eq!(ending("kill -TERM $$"), killed);
}

#[test]
fn a_command_that_cannot_start_says_which_way_and_leaves_no_file() {
    let _alone = alone();
    let directory = TempDir::new();
    let tried = |program: &str| {
        let mut plan = plan(&[program]);
        plan.watch.output = Some(directory.join("x.trec"));
        capture::command(&plan).unwrap_err().kind
    };
    assert_eq!(tried("terrace-no-such-program"), ErrorKind::CommandNotFound);
    assert_eq!(tried("/nowhere/program"), ErrorKind::CommandNotFound);
    let text = directory.join("text");
    std::fs::write(&text, "plain").unwrap();
    assert_eq!(tried(text.to_str().unwrap()), ErrorKind::CommandNotExecutable);
    assert_eq!(directory.names(), ["text"]);
    let nothing = CommandPlan { argv: Vec::new(), ..plan(&["x"]) };
    assert_eq!(capture::command(&nothing).unwrap_err().kind, ErrorKind::Usage);
}

#[test]
fn samples_are_in_order_and_the_first_and_the_last_are_there() {
    let _alone = alone();
    let mut plan = shell("sleep 0.35");
    plan.watch.rate_hz = 100;
    let recording = command(&plan);
    let ticks = &recording.ticks;
    assert_eq!((ticks[0].due_ns, ticks[0].at_ns), (0, 0));
    assert!(ticks.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
    assert!(ticks.iter().all(|tick| tick.due_ns <= tick.at_ns));
    let outcome = recording.outcome.as_ref().unwrap();
    assert!(ticks.last().unwrap().at_ns >= outcome.ended_ns);
    // The command slept that long by itself, after the first sample.
    assert!(outcome.ended_ns >= 350_000_000);
    // Each period was sampled or counted as missed: the command ran for at least 35 of them.
    assert!(ticks.len() as u64 + outcome.missed_samples >= 35);
    assert!(outcome.stopped_early.is_none() && recording.damage.is_empty());
    let Subject::Command { argv } = &recording.facts.subject else {
        panic!("{:?}", recording.facts.subject);
    };
    assert_eq!(argv, &["sh", "-c", "sleep 0.35"]);
}

#[test]
fn the_shortest_command_has_two_samples() {
    let _alone = alone();
    let recording = command(&plan(&["true"]));
    assert!(recording.ticks.len() >= 2, "{:?}", recording.ticks);
    let outcome = recording.outcome.unwrap();
    assert_eq!(outcome.ending, Ending::Exited { code: 0 });
    assert!(outcome.own_cpu_ns > 0 && outcome.own_setup_ns <= outcome.own_cpu_ns);
    assert!(outcome.usage.unwrap().max_rss_bytes > 0);
}

#[test]
fn the_file_holds_what_was_given_back() {
    let _alone = alone();
    let directory = TempDir::new();
    let mut plan = shell("exit 3");
    plan.watch.output = Some(directory.join("x.trec"));
    let captured = capture::command(&plan).unwrap();
    let path = captured.file.unwrap();
    assert_eq!(record::file::open(&path).unwrap(), captured.recording);
    // It is not replaced unasked, and the command does not start.
    plan.argv = shell(&format!("touch {}", directory.join("started").display())).argv;
    assert_eq!(capture::command(&plan).unwrap_err().kind, ErrorKind::Usage);
    assert_eq!(directory.names(), ["x.trec"]);
    plan.watch.force = true;
    capture::command(&plan).unwrap();
    assert_eq!(directory.names(), ["started", "x.trec"]);
}

/// What a command that sleeps and then works to its end has written, as it was recorded and
/// as the kernel reported when it was reaped.
fn written_bytes(work: &str, rate_hz: u32) -> (u64, u64) {
    let mut plan = shell(&format!("sleep 0.25; {work}"));
    plan.watch.rate_hz = rate_hz;
    let recording = command(&plan);
    let recorded = captured::last(&recording, "tree.write_bytes");
    (recorded, recording.outcome.unwrap().usage.unwrap().write_bytes)
}

/// Regression: the last sample was read of a command that had been reaped, so what it did
/// since the one before was missing. Reaping gives the same sums, its children's included.
#[test]
fn what_a_command_did_last_counts_and_its_child_s_work_once() {
    const BYTES: u64 = 4 << 20;
    let _alone = alone();
    let file = captured::DiskFile::new("last-work");
    let dd = format!(
        "dd if=/dev/zero of={} bs=1M count=4 oflag=direct 2>/dev/null",
        file.path().display()
    );
    for work in [format!("exec {dd}"), format!("{dd}; exit 0")] {
        for rate_hz in [1, 10, 100] {
            let (recorded, reaped) = written_bytes(&work, rate_hz);
            if reaped == 0 {
                return testkit::skip("a file system on a block device");
            }
            assert!(reaped >= BYTES, "{reaped}");
            assert_eq!(recorded, reaped, "{work} at {rate_hz} Hz");
        }
    }
}

#[test]
fn three_hundred_children_do_no_harm() {
    let _alone = alone();
    let script = "i=0; while [ $i -lt 300 ]; do true & i=$((i+1)); /bin/true; done; wait; exit 5";
    assert_eq!(ending(script), Ending::Exited { code: 5 });
}

#[test]
fn standard_input_passes_through() {
    let _alone = alone();
    let directory = TempDir::new();
    let target = directory.join("copy");
    let script = format!("cat > {}", target.display());
    let mut recorder = captured::recorder("run_a_command", &script);
    let mut stdin = recorder.0.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"through").unwrap();
    drop(stdin);
    assert!(recorder.0.wait().unwrap().success());
    assert_eq!(std::fs::read(target).unwrap(), b"through");
}

/// Not a test of its own: what other tests start as a second process.
#[test]
fn run_a_command() {
    if let Some(script) = captured::script() {
        command(&shell(&script));
    }
}

#[test]
fn signals_to_the_recorder_are_the_command_s() {
    let _alone = alone();
    let directory = TempDir::new();
    let [ready, heard] = ["ready", "heard"].map(|name| Flag::new(&directory, name));
    let script = format!(
        "trap '{}; exit 0' TERM; {}; while :; do sleep 0.01; done",
        heard.raising(),
        ready.raising()
    );
    let mut recorder = captured::recorder("run_a_command", &script);
    recorder.until(|| ready.is_up());
    let pid = recorder.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    // The recorder lives on, until the command has ended as it chose to.
    assert!(recorder.0.wait().unwrap().success());
    assert!(heard.is_up());
}

#[test]
fn marks_reach_the_recording() {
    let _alone = alone();
    let directory = TempDir::new();
    let [go, gone] = ["go", "gone"].map(|name| Flag::new(&directory, name));
    let words = format!("phase {}", directory.path().display());
    let script = format!("{}; {}", go.raising(), gone.waiting());
    let recording = std::thread::scope(|scope| {
        let watching = scope.spawn(|| command(&shell(&script)));
        go.wait();
        // Other recorders of this user may run beside this one and hear it too; one of them
        // that stands still is an error, after which the mark is sent once more.
        captured::until(|| capture::mark(&words).is_ok_and(|recorders| recorders >= 1));
        gone.raise();
        watching.join().unwrap()
    });
    let marks: Vec<_> = recording.spans.iter().filter(|span| span.text == words).collect();
    assert!(!marks.is_empty());
    assert_eq!(marks[0].kind, "mark");
    assert!(marks[0].start_ns <= recording.wall_ns());
    assert!(recording.facts.sight("marks").is_open());
}

#[test]
fn the_time_asked_for_ends_a_watch() {
    let _alone = alone();
    let captured =
        capture::watch(&Target::Machine, Some(250_000_000), &RecordOptions::default()).unwrap();
    let recording = captured.recording;
    assert_eq!(recording.outcome.as_ref().unwrap().ending, Ending::Stopped);
    assert!(recording.wall_ns() >= 250_000_000);
    assert_eq!(recording.facts.subject, Subject::Machine);
    assert!(recording.ticks.len() >= 2);
}

#[test]
fn a_watch_ends_with_its_process() {
    let _alone = alone();
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let stdin = child.stdin.take();
    // It is reported as started a moment before it has its new name.
    let cmdline = format!("/proc/{pid}/cmdline");
    captured::until(|| std::fs::read(&cmdline).is_ok_and(|words| words == b"cat\0"));
    let directory = TempDir::new();
    let watch =
        RecordOptions { output: Some(directory.join("x.trec")), ..RecordOptions::default() };
    let recording = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let watched = capture::watch(&Target::Process(pid), None, &watch);
            watched.unwrap().recording
        });
        // The file is made when the process has been found.
        captured::until(|| directory.join("x.trec").exists());
        drop(stdin);
        watching.join().unwrap()
    });
    child.wait().unwrap();
    assert_eq!(text(&recording.facts.subject), "cat");
    assert_eq!(recording.outcome.unwrap().ending, Ending::Stopped);
}

#[test]
fn who_looks_meanwhile_sees_the_last_moments_until_the_process_ends() {
    let _alone = alone();
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let keep = Keep { time_ns: 200_000_000, bytes: 1 << 20 };
    let watch = RecordOptions { rate_hz: 100, ..RecordOptions::default() };
    let live = Live::start(&Target::Process(child.id()), &watch, keep).unwrap();
    let first_ns = || live.look(|recording| recording.ticks[0].at_ns);
    assert_eq!(first_ns(), 0);
    captured::until(|| first_ns() > 0);
    live.look(|recording| {
        let kept_ns = recording.wall_ns() - recording.ticks[0].at_ns;
        assert!(kept_ns <= keep.time_ns + keep.time_ns / 16, "{kept_ns}");
        assert!(recording.series("tree.run_ns").is_some());
        assert!(recording.outcome.is_none() && recording.damage.is_empty());
    });
    assert!(!live.has_ended());
    drop(child.stdin.take());
    captured::until(|| live.has_ended());
    child.wait().unwrap();
}

#[test]
fn a_probe_is_watched_beside_it() {
    let _alone = alone();
    let directory = TempDir::new();
    let path = directory.join("probe.trec");
    let watch = RecordOptions { output: Some(path.clone()), ..RecordOptions::default() };
    let background = BackgroundRecording::start("survey", &watch).unwrap();
    background.mark("step one");
    background.finish().unwrap();
    let recording = record::file::open(&path).unwrap();
    assert_eq!(text(&recording.facts.subject), "survey");
    // Other tests of this user may set marks at this moment.
    let mut steps = recording.spans.iter().map(|span| span.text.as_str());
    assert!(steps.any(|text| text == "step one"));
    assert!(recording.outcome.is_some());
    assert!(!recording.facts.sight("realtime").is_open());
}

#[test]
fn what_a_program_counts_of_itself_is_in_its_recording_and_shown_meanwhile() {
    let _alone = alone();
    let directory = TempDir::new();
    let path = directory.join("copy.trec");
    let gauges = Arc::new(CopyGauges::default());
    let watch = RecordOptions {
        output: Some(path.clone()),
        gauges: Some(Arc::clone(&gauges) as Arc<dyn GaugeSet>),
        ..RecordOptions::default()
    };
    let keep = Keep { time_ns: 60_000_000_000, bytes: 1 << 20 };
    let background = BackgroundRecording::start_shown("copy", &watch, keep).unwrap();
    let shown = |name: &str| {
        let value = background
            .look(|recording| recording.series(name).and_then(|series| series.steps.last()?.value));
        value.flatten()
    };
    assert_eq!(shown("copy.read_bytes"), Some(0));
    assert_eq!(shown("copy.dirty_bytes"), None);
    gauges.read_bytes.add(3 << 20);
    gauges.dirty_bytes.set(1 << 20);
    for done in 1..=50 {
        background.progress(done, "bytes");
    }
    captured::until(|| shown("copy.dirty_bytes").is_some());
    assert_eq!(shown("copy.read_bytes"), Some(3 << 20));
    assert!(shown("stat.ctxt").is_some(), "the machine is beside it");
    gauges.durable_bytes.set(3 << 20);
    background.finish().unwrap();
    let recording = record::file::open(&path).unwrap();
    assert_eq!(captured::last(&recording, "copy.durable_bytes"), 3 << 20);
    assert!(recording.series("copy.held_back_ns").is_none());
    let progress = recording.spans.iter().filter(|span| span.kind == "progress");
    let texts: Vec<&str> = progress.map(|span| span.text.as_str()).collect();
    assert_eq!((texts.first(), texts.last()), (Some(&"1 bytes"), Some(&"50 bytes")));
    assert!(texts.len() < 50, "one a second");
}

#[test]
fn without_a_file_only_the_last_minutes_are_kept() {
    let _alone = alone();
    let keep = Keep { time_ns: 60_000_000_000, bytes: 1 << 20 };
    let watch = RecordOptions::default();
    let background = BackgroundRecording::start_shown("copy", &watch, keep).unwrap();
    assert!(background.look(|recording| !recording.ticks.is_empty()).unwrap());
    background.finish().unwrap();
    let plain = BackgroundRecording::start("copy", &watch).unwrap();
    assert!(plain.look(|_| ()).is_none());
}

#[test]
fn a_probe_that_is_abandoned_ends_its_recording() {
    let _alone = alone();
    let directory = TempDir::new();
    let path = directory.join("probe.trec");
    let watch = RecordOptions { output: Some(path.clone()), ..RecordOptions::default() };
    drop(BackgroundRecording::start("survey", &watch).unwrap());
    assert!(record::file::open(&path).unwrap().outcome.is_some());
}

#[test]
fn absurd_rates_are_refused() {
    for rate_hz in [0, 101] {
        let watch = RecordOptions { rate_hz, ..RecordOptions::default() };
        let error = capture::watch(&Target::Machine, Some(0), &watch).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
    }
}

#[test]
fn the_killed_recorder_leaves_its_command_alone() {
    let _alone = alone();
    let directory = TempDir::new();
    let [started, killed, done] =
        ["started", "killed", "done"].map(|name| Flag::new(&directory, name));
    // The command goes on only after its recorder was killed, and writes to what it had.
    let script =
        format!("{}; {}; echo lives; {}", started.raising(), killed.waiting(), done.raising());
    let mut recorder = captured::recorder("run_a_command", &script);
    recorder.until(|| started.is_up());
    recorder.kill();
    killed.raise();
    done.wait();
}

#[test]
fn a_daemon_outlives_the_recording() {
    let _alone = alone();
    let directory = TempDir::new();
    let [go, done] = ["go", "done"].map(|name| Flag::new(&directory, name));
    let script = format!("({}; {}) >/dev/null 2>&1 & exit 0", go.waiting(), done.raising());
    assert_eq!(ending(&script), Ending::Exited { code: 0 });
    assert!(!done.is_up());
    go.raise();
    done.wait();
}
