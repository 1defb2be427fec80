//! Watching as root: the command's own group, a full disk, a limit that kills.
//!
//! Needs a mounted cgroup2 tree without a service manager for the groups, and says so where
//! there is none.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod captured;

use captured::{DiskFile, Flag, alone, command, shell};
use model::recording::{Ending, Recording, SourceState};
use record::capture::{self, RecordOptions, Target};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use testkit::{Cgroup, TempDir, Tmpfs};

/// How much of what led to a jump is looked at.
const HISTORY_NS: u64 = 400_000_000;

/// A limit that a file of a few times its size reaches at once.
const LIMIT_BYTES: u64 = 16 << 20;

/// The groups that recorders of this process made.
fn own_groups() -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let points = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let point = words.next()?;
        (words.next()? == "cgroup2").then(|| point.to_owned())
    });
    let name = format!("terrace-{}-", std::process::id());
    let mut found = Vec::new();
    let mut waiting: Vec<PathBuf> = points.map(PathBuf::from).collect();
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_string_lossy().starts_with(&name) {
                found.push(entry.path());
            }
            waiting.push(entry.path());
        }
    }
    found
}

/// A launcher joins a group and becomes the program: what limits the program is that group.
#[test]
fn a_command_that_joins_another_group_is_followed_there() {
    let group = match Cgroup::v1_memory(LIMIT_BYTES) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let _alone = alone();
    let file = DiskFile::new("followed");
    let write = format!("dd if=/dev/zero of={} bs=1M count=64 status=none", file.path().display());
    // What the group held before the command came is not the command's.
    let earlier = group.command("sh").args(["-c", &write]).status().unwrap();
    assert!(earlier.success());
    let before = number(&group.path().join("memory.failcnt"));
    let joins = format!("echo $$ > {}/cgroup.procs", group.path().display());
    let plan = shell(&format!("{joins} && sleep 1 && {write}"));
    let recording = command(&plan);
    let refused = number(&group.path().join("memory.failcnt")) - before;
    let own = recording.facts.groups[0].paths["memory"].clone();
    let name = group.path().file_name().unwrap().to_string_lossy();
    assert!(own.ends_with(&*name), "{own} is not {name}");
    let last_sample = recording.ticks.len() as u32 - 1;
    let series = |name: &str| recording.series(&format!("group0.memory.{name}")).unwrap();
    let counted = series("failcnt").growth(0, last_sample).unwrap();
    assert!(before > 0 && refused > 0, "{before}, {refused}: the limit was not reached");
    assert_eq!(counted, refused);
    assert_eq!(series("limit_bytes").at(last_sample), Some(LIMIT_BYTES as i64));
    let changes = recording.spans.iter().filter(|span| span.kind == "group_changed");
    let moves: Vec<&str> = changes.map(|span| span.text.as_str()).collect();
    assert!(moves.len() == 1 && moves[0].contains(&*name), "{moves:?}");
}

fn number(path: &Path) -> u64 {
    let text = std::fs::read_to_string(path).unwrap();
    text.trim().parse().unwrap()
}

#[test]
fn the_command_s_group_is_there_while_it_runs_and_gone_afterwards() {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    let _alone = alone();
    let directory = TempDir::new();
    let shown = Flag::new(&directory, "cgroup");
    let mut plan = shell(&shown.showing("cat /proc/self/cgroup"));
    plan.own_group = true;
    let recording = command(&plan);
    if let SourceState::Closed { why, .. } = recording.facts.sight("own_group") {
        return testkit::skip(format!("a cgroup2 tree to make groups in: {why}"));
    }
    let membership = shown.text();
    let unified = membership.lines().find(|line| line.starts_with("0::")).unwrap();
    assert!(unified.contains("/terrace-"), "{unified}");
    assert_eq!(own_groups(), Vec::<PathBuf>::new());
}

#[test]
fn a_daemon_is_moved_out_of_the_group_and_lives() {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    let _alone = alone();
    let directory = TempDir::new();
    let [go, done] = ["go", "done"].map(|name| Flag::new(&directory, name));
    let script = format!(
        "({}; {}) >/dev/null 2>&1 & exit 0",
        go.waiting(),
        done.showing("cat /proc/self/cgroup")
    );
    let mut plan = shell(&script);
    plan.own_group = true;
    let recording = command(&plan);
    assert_eq!(own_groups(), Vec::<PathBuf>::new());
    assert_eq!(recording.outcome.unwrap().ending, Ending::Exited { code: 0 });
    go.raise();
    done.wait();
    let membership = done.text();
    assert!(!membership.contains("/terrace-"), "{membership}");
}

#[test]
fn the_groups_of_killed_recorders_are_removed_by_the_next_one() {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    let _alone = alone();
    let directory = TempDir::new();
    let started = Flag::new(&directory, "started");
    let script = format!("{}; exec cat", started.showing("cat /proc/self/cgroup"));
    let mut recorder = captured::recorder("run_a_command_in_its_group", &script);
    // Taken, so that the wait for the killed one does not close it.
    let input = recorder.0.stdin.take();
    recorder.until(|| started.is_up());
    recorder.kill();
    let membership = started.text();
    let Some(left) = membership.lines().find_map(|line| line.strip_prefix("0::")) else {
        return testkit::skip("a cgroup2 tree");
    };
    if !left.contains("/terrace-") {
        return testkit::skip("a cgroup2 tree to make groups in");
    }
    // The command ends with its input; its group is empty when it is gone.
    drop(input);
    let of_the_command = |path: &Path| {
        let text = std::fs::read_to_string(path.join("cgroup.procs"));
        text.is_ok_and(|text| !text.is_empty())
    };
    let mount = std::fs::read_to_string("/proc/mounts").unwrap();
    let point = mount
        .lines()
        .find(|line| line.split(' ').nth(2) == Some("cgroup2"))
        .and_then(|line| line.split(' ').nth(1).map(PathBuf::from))
        .unwrap();
    let left = point.join(left.trim_start_matches('/'));
    captured::until(|| !of_the_command(&left));
    let mut plan = shell("exit 0");
    plan.own_group = true;
    // The kernel lets go of a dead member a moment after it is no longer listed.
    captured::until(|| {
        command(&plan);
        !left.exists()
    });
}

/// Not a test of its own: what another test starts as a second process.
#[test]
fn run_a_command_in_its_group() {
    if let Some(script) = captured::script() {
        let mut plan = shell(&script);
        plan.own_group = true;
        command(&plan);
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_command() {
    let tmpfs = match Tmpfs::mount(64 << 10) {
        Ok(tmpfs) => tmpfs,
        Err(need) => return testkit::skip(need),
    };
    let _alone = alone();
    // The command itself fills the disk that it is recorded on, and runs on.
    let directory = TempDir::new();
    let [full, go] = ["full", "go"].map(|name| Flag::new(&directory, name));
    let script = format!(
        "cat /dev/zero > {} 2>/dev/null; {}; {}; exit 9",
        tmpfs.path().join("filler").display(),
        full.raising(),
        go.waiting()
    );
    let mut plan = shell(&script);
    plan.watch.output = Some(tmpfs.path().join("x.trec"));
    let recording = std::thread::scope(|scope| {
        let watching = scope.spawn(|| command(&plan));
        full.wait();
        // More than the rest of the last page holds, whatever is done to make it small.
        let mut random = testkit::Random(7);
        for _ in 0..8 {
            let text: String = (0..500).map(|_| format!("{:08x}", random.below(1 << 32))).collect();
            captured::until(|| capture::mark(&text).is_ok_and(|recorders| recorders >= 1));
        }
        go.raise();
        watching.join().unwrap()
    });
    let outcome = recording.outcome.unwrap();
    assert_eq!(outcome.ending, Ending::Exited { code: 9 });
    let why = outcome.stopped_early.unwrap_or_default() + &recording.damage.join(" ");
    assert!(why.contains("no space"), "{why}");
}

#[test]
fn a_limit_that_kills_is_named() {
    let group = match Cgroup::v1_memory(48 << 20) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let _alone = alone();
    let directory = TempDir::new();
    let report = directory.join("report");
    let program = group.command(std::env::current_exe().unwrap());
    let mut recorder = captured::again_by(program, "run_a_command_that_needs_memory");
    let status = recorder
        .env(captured::SCRIPT, &report)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    if !report.exists() {
        // The kernel may choose the recorder, which lives under the same limit.
        return testkit::skip(format!("the kernel to choose the command: {status}"));
    }
    let words = std::fs::read_to_string(report).unwrap();
    assert!(words.contains("48 MiB") && words.contains("/terrace-test-"), "{words}");
}

/// Not a test of its own: what another test starts under a limit.
#[test]
fn run_a_command_that_needs_memory() {
    if let Some(report) = captured::script() {
        // A pipe into `tail`, which keeps all of a line without an end.
        let recording = command(&captured::plan(&["tail", "/dev/zero"]));
        let ending = recording.outcome.unwrap().ending;
        let Ending::Killed { signal: 9, out_of_memory: Some(limit) } = ending else {
            panic!("{ending:?}");
        };
        std::fs::write(report, limit).unwrap();
    }
}

#[test]
fn a_group_is_watched_until_it_is_gone() {
    let group = match Cgroup::v1_memory(256 << 20) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let _alone = alone();
    let mut cat = group.command("cat");
    let mut member = group.spawn(cat.stdin(Stdio::piped())).unwrap();
    let stdin = member.stdin.take();
    let path = group.path().to_owned();
    let directory = TempDir::new();
    let watch =
        RecordOptions { output: Some(directory.join("x.trec")), ..RecordOptions::default() };
    let recording = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let target = Target::Group(path.clone());
            capture::watch(&target, None, &watch).unwrap().recording
        });
        // The file is made when the group has been found.
        captured::until(|| directory.join("x.trec").exists());
        drop(stdin);
        member.wait().unwrap();
        drop(group);
        watching.join().unwrap()
    });
    let name = captured::text(&recording.facts.subject);
    assert!(path.ends_with(name.trim_start_matches('/')), "{name}");
}

#[test]
fn the_recorder_keeps_its_beat_as_root() {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    let _alone = alone();
    // A command must not inherit what its recorder took for itself.
    let directory = TempDir::new();
    let shown = Flag::new(&directory, "policy");
    let script = shown.showing("cut -d' ' -f41 /proc/self/stat");
    let recording = command(&shell(&script));
    for sight in ["realtime", "locked"] {
        if let SourceState::Closed { why, .. } = recording.facts.sight(sight) {
            return testkit::skip(format!("{sight}: {why}"));
        }
    }
    assert_eq!(shown.text().trim(), "0");
}

#[test]
fn pressure_raises_the_rate_and_what_led_to_it_is_kept() {
    if !Path::new("/proc/pressure/cpu").exists() {
        return testkit::skip("pressure in the kernel");
    }
    let _alone = alone();
    // Far more busy shells than processors: somebody waits all the time, so that any two
    // looks at the totals show it, however late they come.
    let hogs = 4 * std::thread::available_parallelism().map_or(1, usize::from);
    let script = format!(
        "i=0; while [ $i -lt {hogs} ]; do timeout 2 sh -c 'while :; do :; done' & i=$((i+1)); \
         done; wait; exit 4"
    );
    let mut plan = shell(&script);
    plan.watch.burst = true;
    let recording = command(&plan);
    if !recording.facts.sight("realtime").is_open() {
        return testkit::skip("the right to realtime priorities, to look at all");
    }
    let outcome = recording.outcome.as_ref().unwrap();
    assert_eq!(outcome.ending, Ending::Exited { code: 4 });
    let raised =
        recording.spans.iter().any(|span| span.kind == "rate" && span.text.contains("pressure"));
    assert!(raised, "{:?}", recording.spans);
    let ticks = &recording.ticks;
    assert!(ticks.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
    // A counter never falls, also where looks and samples take turns.
    let series = recording.series("pressure.cpu.some_ns").unwrap();
    let values: Vec<_> = series.steps.iter().filter_map(|step| step.value).collect();
    assert!(values.windows(2).all(|pair| pair[0] <= pair[1]));
}

/// How many different values the series has from the first to the last of these samples.
fn changes(recording: &Recording, name: &str, samples: std::ops::Range<usize>) -> usize {
    let series = recording.series(name).unwrap();
    let numbers = series.steps.iter().map(|step| step.sample as usize);
    numbers.filter(|number| samples.contains(number) && *number > samples.start).count()
}

#[test]
fn what_led_to_a_jump_has_pressure_and_schedstat_a_hundred_times_a_second() {
    let needed = ["/proc/pressure/cpu", "/proc/self/schedstat"];
    if let Some(file) = needed.iter().find(|file| !Path::new(file).exists()) {
        return testkit::skip(file);
    }
    let _alone = alone();
    // The command's first process alone is busy, which presses on nobody; then many are.
    let hogs = 4 * std::thread::available_parallelism().map_or(1, usize::from);
    let script = format!(
        "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done; i=0; \
         while [ $i -lt {hogs} ]; do timeout 1 sh -c 'while :; do :; done' & i=$((i+1)); done; wait"
    );
    let mut plan = shell(&script);
    plan.watch.burst = true;
    // A neighbour's pressure may raise the rate before there is anything that led to it.
    for _ in 0..4 {
        let recording = command(&plan);
        if !recording.facts.sight("realtime").is_open() {
            return testkit::skip("the right to realtime priorities, to look at all");
        }
        let jump_ns = recording.spans.iter().find_map(|span| {
            let raised = span.kind == "rate" && span.text.contains("pressure");
            raised.then_some(span.start_ns)
        });
        let jump_ns = jump_ns.unwrap();
        let at = |ns| recording.ticks.partition_point(|tick| tick.at_ns < ns);
        if jump_ns < HISTORY_NS {
            continue;
        }
        let history = at(jump_ns - HISTORY_NS)..at(jump_ns);
        // Ten times a second alone there would be four of forty. Half of them may come late, and
        // none comes while the host holds up all: that is one gap.
        let ticks = &recording.ticks[history.clone()];
        let gaps = ticks.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns);
        let gap_ns = gaps.max().unwrap_or(HISTORY_NS).min(HISTORY_NS);
        let least = (20 * (HISTORY_NS - gap_ns) / HISTORY_NS) as usize;
        assert!(history.len() >= least.max(5), "{history:?}, {gap_ns} ns");
        assert!(changes(&recording, "leader.run_ns", history.clone()) >= least / 2);
        assert!(changes(&recording, "pressure.cpu.some_ns", history.clone()) >= 2);
        // What only ordinary samples have stands still between them.
        assert!(changes(&recording, "own.sample_ns", history.clone()) < history.len() / 2);
        return;
    }
    testkit::skip("a machine that is not under pressure already");
}
