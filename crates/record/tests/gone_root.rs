//! What comes and goes while it is recorded: devices, control groups, the watched process. The
//! recording goes on, and what is not there is absent and never 0.
//!
//! Needs root, and says what else where that is missing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod captured;

use captured::{A_WHILE, alone};
use model::recording::{Recording, Series};
use record::capture::{RecordOptions, Target};
use std::path::Path;
use std::process::{Child, Stdio};
use testkit::{Cgroup, LoopDevice, TempDir, ZramDevice};

/// Watches `target` while `happening` runs, and until the target ends or `happening` is over.
fn watched(target: &Target, happening: impl FnOnce() + Send) -> Recording {
    let watch = RecordOptions { rate_hz: 50, ..RecordOptions::default() };
    captured::watched(target, 4, watch, happening)
}

/// The recording went on to its end and knows of no fault.
fn is_sound(recording: &Recording) {
    let outcome = recording.outcome.as_ref().unwrap();
    assert_eq!(outcome.stopped_early, None);
    assert!(recording.damage.is_empty(), "{:?}", recording.damage);
    let ticks = &recording.ticks;
    assert!(ticks.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
}

/// Whether a series is absent in the first and in the last sample, and known between them.
fn comes_and_goes(series: &Series, recording: &Recording) -> bool {
    let last = recording.ticks.len() as u32 - 1;
    let known = (0..=last).filter(|sample| series.at(*sample).is_some());
    series.at(0).is_none() && series.at(last).is_none() && known.count() > 0
}

#[test]
fn a_device_that_comes_and_goes_has_new_series_and_is_absent_after_it_went() {
    if let Err(need) = ZramDevice::add(1 << 20) {
        return testkit::skip(need);
    }
    let _alone = alone();
    let mut name = String::new();
    let recording = watched(&Target::Machine, || {
        let device = ZramDevice::add(16 << 20).unwrap();
        name = device.name();
        std::thread::sleep(A_WHILE / 2);
        std::fs::write(device.path(), vec![7; 4 << 20]).unwrap();
        std::thread::sleep(A_WHILE);
        drop(device);
    });
    is_sound(&recording);
    for (place, series) in recording.series.iter().enumerate() {
        assert_eq!(series.schema.id as usize, place);
    }
    let written = recording.series(&format!("disk.{name}.write_bytes")).unwrap();
    let old = recording.series("vmstat.pgfault").unwrap();
    assert!(written.schema.id > old.schema.id);
    assert!(comes_and_goes(written, &recording), "{:?}", written.steps);
    // Its growth is what it did while it was there: no fall to 0 when it went, no 0 before.
    let last = recording.ticks.len() as u32 - 1;
    assert!(written.growth(0, last) >= Some(4 << 20));
    let held = recording.series(&format!("zram.{name}.orig_bytes")).unwrap();
    assert!(comes_and_goes(held, &recording), "{:?}", held.steps);
    let gone = written.steps.last().unwrap().sample;
    assert_eq!((written.growth(gone, last), written.max(gone, last)), (None, None));
    for kind in ["device_added", "device_removed"] {
        let named = |text: &str| text.split(' ').any(|word| word == name);
        let mut spans = recording.spans.iter().filter(|span| span.kind == kind);
        assert!(spans.any(|span| named(&span.text)), "{kind}");
    }
}

#[test]
fn a_loop_device_is_attached_and_detached_under_a_recording() {
    let directory = TempDir::new();
    let file = directory.join("image");
    std::fs::write(&file, vec![7u8; 8 << 20]).unwrap();
    if let Err(need) = LoopDevice::over(&file) {
        return testkit::skip(need);
    }
    let _alone = alone();
    let mut name = String::new();
    let recording = watched(&Target::Machine, || {
        let device = LoopDevice::over(&file).unwrap();
        name = device.path().file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(std::fs::read(device.path()).unwrap().len(), 8 << 20);
        std::thread::sleep(A_WHILE / 2);
        drop(device);
    });
    is_sound(&recording);
    let read = recording.series(&format!("disk.{name}.read_bytes")).unwrap();
    let values: Vec<i64> = read.steps.iter().filter_map(|step| step.value).collect();
    // Its numbers stay when it is detached; the kernel counts on when it is used again.
    let least = if read.at(0).is_some() { values[0] } else { 0 };
    assert!(values.last().unwrap() - least >= 8 << 20, "{values:?}");
}

/// A process in a group of its own that lives until its input ends.
fn member(group: &Cgroup) -> Child {
    let mut command = group.command("cat");
    let child = command.stdin(Stdio::piped()).spawn().unwrap();
    let joined = || std::fs::read_to_string(group.path().join("cgroup.procs")).unwrap();
    captured::until(|| joined().contains(&child.id().to_string()));
    child
}

/// Moves the member out, removes its group, and ends it some samples later.
fn leave(group: Cgroup, mut member: Child) {
    let parent: &Path = group.path().parent().unwrap();
    std::fs::write(parent.join("cgroup.procs"), member.id().to_string()).unwrap();
    drop(group);
    std::thread::sleep(A_WHILE);
    drop(member.stdin.take());
    member.wait().unwrap();
}

#[test]
fn a_group_that_vanishes_under_a_process_counts_no_more_and_the_process_is_watched_to_its_end() {
    let groups = [
        ("group0.pressure.cpu.some_ns", Cgroup::v2()),
        ("group0.cpu.periods", Cgroup::v1_cpu(50_000, 100_000)),
    ];
    let _alone = alone();
    for (name, group) in groups {
        let group = match group {
            Ok(group) => group,
            Err(need) => {
                testkit::skip(need);
                continue;
            }
        };
        let member = member(&group);
        let target = Target::Process(member.id());
        let above = group.path().parent().unwrap().parent().unwrap();
        let leaves_to_top = !above.join("cgroup.procs").exists();
        let recording = watched(&target, || leave(group, member));
        is_sound(&recording);
        let series = recording.series(name).unwrap();
        let last = recording.ticks.len() as u32 - 1;
        assert!(series.at(0).is_some(), "{name}");
        // The process is followed to the top, whose counts begin at 0 where it has any.
        let counts_no_more = matches!(series.at(last), None | Some(0));
        assert!(counts_no_more || !leaves_to_top, "{name}");
        let moved = recording.spans.iter().find(|span| span.kind == "group_changed");
        let moved_ns = moved.unwrap_or_else(|| panic!("{name}: no move was told")).start_ns;
        let gone = recording.ticks.partition_point(|tick| tick.at_ns < moved_ns) as u32;
        // It was gone for some samples in which the process was still there.
        let alive = recording.series("tree.processes").unwrap();
        assert_eq!((alive.at(gone + 1), alive.at(last)), (Some(1), Some(0)), "{name}");
        let leader = recording.series("leader.run_ns").unwrap();
        assert!(leader.at(gone + 1).is_some());
        // One that has ended and was not waited for yet still tells its times.
        assert_ne!(leader.at(last), Some(0));
    }
}
