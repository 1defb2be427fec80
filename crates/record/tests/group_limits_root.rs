//! Control groups with limits in a recording of the machine, and processes that join a watched
//! group: against what the kernel counts for the same groups.
//!
//! Needs root and the controllers of version 1, and says so where they are missing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod captured;

use captured::{A_WHILE, alone};
use model::recording::{
    LIMITED, Process, ProcessFigure, Recording, Series, SourceState, path_in_source,
};
use record::capture::{RecordOptions, Target};
use record::trace::{Family, Tracer};
use record::{Registry, Row};
use std::path::Path;
use std::process::{Child, Stdio};
use testkit::{Cgroup, TempDir};

/// Watches `target` and who is in it while `happening` runs.
fn watched(target: &Target, happening: impl FnOnce() + Send) -> Recording {
    let families = vec![Family::Sched, Family::Who];
    let watch = RecordOptions { rate_hz: 10, families, ..RecordOptions::default() };
    captured::watched(target, 5, watch, happening)
}

/// A group in which a shell runs `script`, whose `$0` is `argument`; `None`, and a line why,
/// where it cannot be made.
fn occupied_group(script: &str, argument: &Path) -> Option<(Cgroup, Child)> {
    let group = Cgroup::v1_cpu(200_000, 100_000).map_err(testkit::skip).ok()?;
    let mut command = group.command("sh");
    command.args(["-c", script]).arg(argument).stdin(Stdio::null());
    let first = group.spawn(&mut command).unwrap();
    Some((group, first))
}

/// A process of the group that works until it is killed.
fn worker(group: &Cgroup) -> Child {
    let mut command = group.command("sh");
    let child = command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
    child.unwrap()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn name(group: &Cgroup) -> String {
    group.path().file_name().unwrap().to_string_lossy().into_owned()
}

/// The series `limited<N>.<rest>` of the groups at a path, one after another.
fn all_of_group<'a>(
    recording: &'a Recording,
    group: &'a str,
    rest: &'a str,
) -> impl Iterator<Item = &'a Series> {
    recording.series.iter().filter(move |series| {
        let schema = &series.schema;
        let is_its = path_in_source(&schema.source).is_some_and(|path| path.ends_with(group));
        is_its && schema.name.starts_with(LIMITED) && schema.name.ends_with(rest)
    })
}

/// The series `limited<N>.<rest>` of a group.
fn of_group<'a>(recording: &'a Recording, group: &'a str, rest: &'a str) -> Option<&'a Series> {
    all_of_group(recording, group, rest).next()
}

/// What the kernel counted: periods in which the group was stopped.
fn stopped(group: &Cgroup) -> i64 {
    let text = std::fs::read_to_string(group.path().join("cpu.stat")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
    line.unwrap().parse().unwrap()
}

#[test]
fn groups_that_reach_their_limit_have_series_and_others_do_not() {
    let old = match Cgroup::v1_cpu(10_000, 50_000) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let _alone = alone();
    // What it counted before belongs to no recording.
    let child = worker(&old);
    std::thread::sleep(A_WHILE / 3);
    end(child);
    let before = stopped(&old);
    assert!(before > 0);
    let idle = Cgroup::v1_cpu(10_000, 50_000).unwrap();
    let mut counted = (0, 0);
    let mut new_name = String::new();
    let recording = watched(&Target::Machine, || {
        let new = Cgroup::v1_cpu(10_000, 50_000).unwrap();
        new_name = name(&new);
        let workers = [worker(&old), worker(&new)];
        std::thread::sleep(3 * A_WHILE);
        workers.into_iter().for_each(end);
        counted = (stopped(&old) - before, stopped(&new));
        // The last sample comes before the group goes.
        std::thread::sleep(A_WHILE);
    });
    let end_of = |group: &str| {
        let series = of_group(&recording, group, ".cpu.throttled_periods").unwrap();
        series.steps.iter().filter_map(|step| step.value).last().unwrap()
    };
    assert_eq!(end_of(&name(&old)), counted.0);
    assert_eq!(end_of(&new_name), counted.1);
    assert!(of_group(&recording, &name(&idle), "").is_none(), "it was never stopped");
    let limited = recording.series("limited.groups").unwrap();
    assert!(limited.max(0, u32::MAX) >= Some(3), "{:?}", limited.steps);
    let quota = of_group(&recording, &new_name, ".cpu.quota_us").unwrap();
    assert_eq!(quota.max(0, u32::MAX), Some(10_000));
    let in_group = |process: &&Process| process.group.ends_with(&name(&old));
    assert!(recording.who.processes.iter().any(|process| in_group(&process)));
}

#[test]
fn a_process_that_joins_a_watched_group_is_followed() {
    let _alone = alone();
    let directory = TempDir::new();
    let flag = directory.join("flag");
    // A child of it lives for many samples, then it only waits.
    let script = "until [ -e $0 ]; do sleep 0.1; done
                  timeout 1 cat /dev/zero > /dev/null
                  exec sleep 1000";
    let Some((group, first)) = occupied_group(script, &flag) else {
        return;
    };
    // It is watched until it is gone.
    let recording = watched(&Target::Group(group.path().to_owned()), move || {
        std::fs::write(&flag, "").unwrap();
        let joined = worker(&group);
        std::thread::sleep(2 * A_WHILE);
        end(joined);
        std::thread::sleep(A_WHILE / 3);
        end(first);
        drop(group);
    });
    if !recording.facts.sight("events.sched").is_open() {
        return testkit::skip("kernel events");
    }
    let ran = captured::last(&recording, "trace.sched.run_ns");
    // Another test's program may share the processors; a whole one is not needed.
    assert!(ran > A_WHILE.as_nanos() as u64 / 2, "{ran} ns");
    if recording.facts.sight("who").is_open() {
        let rows = recording.who.rows.iter();
        let named: u64 = rows
            .filter(|row| recording.who.processes[row.process as usize].name == "sh")
            .map(|row| row.get(ProcessFigure::Cpu))
            .sum();
        assert!(named > A_WHILE.as_nanos() as u64 / 2, "{named} ns");
    }
    let charged: u64 = recording.tasks.iter().map(|task| task.run_ns).sum();
    assert!(charged > A_WHILE.as_nanos() as u64 / 2, "{charged} ns");
    // Members have begun these: what they did first, before a sample met them, is theirs.
    for name in ["timeout", "cat"] {
        let tasks = recording.tasks.iter().filter(|task| task.comm == name).collect::<Vec<_>>();
        assert!(tasks.len() == 1 && tasks[0].minor_faults > 30, "{tasks:?}");
    }
}

/// A service that is not started yet: its group is there and empty.
#[test]
fn a_group_that_is_empty_at_first_is_watched_from_its_first_member_on() {
    let _alone = alone();
    let group = match Cgroup::v1_cpu(200_000, 100_000) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let recording = watched(&Target::Group(group.path().to_owned()), move || {
        let mut command = group.command("sh");
        // It works for some samples, then it waits for some.
        let script = "timeout 1 cat /dev/zero > /dev/null; exec sleep 1000";
        let joined = command.args(["-c", script]).stdin(Stdio::null()).spawn().unwrap();
        std::thread::sleep(2 * A_WHILE);
        end(joined);
        std::thread::sleep(A_WHILE / 3);
        drop(group);
    });
    let events = recording.facts.sight("events.sched");
    if !recording.facts.root || matches!(events, SourceState::Closed { remedy: Some(_), .. }) {
        return testkit::skip(format!("kernel events: {events:?}"));
    }
    assert!(events.is_open(), "{events:?}");
    let charged: u64 = recording.tasks.iter().map(|task| task.run_ns).sum();
    let ran = captured::last(&recording, "trace.sched.run_ns");
    assert!(charged > 0 && ran > charged / 2, "{ran} ns of {charged}");
    assert!(captured::last(&recording, "trace.sched.sleep_ns") > 0);
    assert!(recording.facts.sight("exits").is_open());
    let named = |name: &str| recording.tasks.iter().any(|task| task.comm == name);
    assert!(named("cat") && named("sleep"), "{:?}", recording.tasks);
    let strangers = recording.tasks.iter().filter(|task| task.tid == std::process::id());
    assert_eq!(strangers.count(), 0, "an empty group is not every process");
}

/// The same where events are copied out of the kernel.
#[test]
fn rings_follow_the_first_member_of_an_empty_group() {
    let _alone = alone();
    let group = match Cgroup::v1_cpu(200_000, 100_000) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let mut registry = Registry::new();
    let (tracer, _) = Tracer::open_rings(&[Family::Sched], Some(&[]), &mut registry);
    let Some(mut tracer) = tracer else {
        return testkit::skip("kernel events");
    };
    let mut row = Row::default();
    let outside = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
    std::thread::sleep(A_WHILE / 5);
    let before = run_ns(&mut tracer, &mut registry, &mut row);
    let joined = worker(&group);
    tracer.adopt(&[joined.id()]);
    let ran_before = ran_ns(&joined);
    std::thread::sleep(A_WHILE);
    let after = run_ns(&mut tracer, &mut registry, &mut row);
    let ran = ran_ns(&joined) - ran_before;
    end(joined);
    end(outside.unwrap());
    assert_eq!(before, 0, "nothing is followed yet");
    assert!(ran > 0 && after > ran / 2, "{after} ns of {ran}");
}

/// What a process ran, as the kernel counts it.
fn ran_ns(child: &Child) -> i64 {
    let text = std::fs::read_to_string(format!("/proc/{}/schedstat", child.id())).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// What the processes ran that a tracer follows.
fn run_ns(tracer: &mut Tracer, registry: &mut Registry, row: &mut Row) -> i64 {
    tracer.read(0, true, registry, row);
    let found = registry.schemas().iter().find(|one| one.name == "trace.sched.run_ns");
    row.values()[found.unwrap().id as usize]
}

/// A group that is removed and made again at the same path, as by the restart of a service.
#[test]
fn a_group_that_is_made_anew_is_another_one() {
    let group = match Cgroup::v1_cpu(10_000, 50_000) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let _alone = alone();
    let (group_name, mut counted) = (name(&group), (0, 0));
    let recording = watched(&Target::Machine, || {
        let before = worker(&group);
        std::thread::sleep(A_WHILE);
        end(before);
        counted.0 = stopped(&group);
        std::fs::remove_dir(group.path()).unwrap();
        std::fs::create_dir(group.path()).unwrap();
        for (file, value) in [("cpu.cfs_period_us", "50000"), ("cpu.cfs_quota_us", "10000")] {
            std::fs::write(group.path().join(file), value).unwrap();
        }
        let after = worker(&group);
        std::thread::sleep(2 * A_WHILE);
        end(after);
        counted.1 = stopped(&group);
    });
    let throttled = ".cpu.throttled_periods";
    let mut ends = Vec::new();
    for series in all_of_group(&recording, &group_name, throttled) {
        let values = series.steps.iter().filter_map(|step| step.value).collect::<Vec<_>>();
        assert!(values.is_sorted() && values[0] >= 0, "{values:?}");
        ends.extend(values.last().copied());
    }
    // Nothing reads the last of a group that is removed.
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert!(ends[0] > 0 && ends[0] <= counted.0, "{ends:?} of {counted:?}");
    // A period that had begun ends after the worker.
    let last = counted.1..=stopped(&group);
    assert!(last.contains(&ends[1]), "{ends:?}, {last:?}");
}

#[test]
fn rings_follow_a_process_that_joined() {
    let _alone = alone();
    let Some((group, first)) = occupied_group("exec sleep 1000", Path::new("sh")) else {
        return;
    };
    let mut registry = Registry::new();
    let (tracer, _) = Tracer::open_rings(&[Family::Sched], Some(&[first.id()]), &mut registry);
    let Some(mut tracer) = tracer else {
        end(first);
        return testkit::skip("kernel events");
    };
    let mut row = Row::default();
    // It is no child of what is watched.
    let joined = worker(&group);
    std::thread::sleep(A_WHILE / 5);
    let before = run_ns(&mut tracer, &mut registry, &mut row);
    tracer.adopt(&[joined.id()]);
    let ran_before = ran_ns(&joined);
    std::thread::sleep(A_WHILE);
    let after = run_ns(&mut tracer, &mut registry, &mut row);
    let ran = ran_ns(&joined) - ran_before;
    end(joined);
    end(first);
    assert_eq!(before, 0, "only what was named is followed");
    assert!(ran > 0 && after > ran / 2, "{after} ns of {ran}");
}
