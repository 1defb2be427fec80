//! The processes of `terrace boost attach`: how they are protected, that a successor needs no
//! path to its state, that one that fails again and again is followed by one without the cache, and
//! which ways to serve are refused. Needs root and FUSE with resend (Linux 6.9).

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/boost_scene.rs"]
mod boost_scene;
mod support;

use boost_scene::{Scene, read_blocks};
use serde_json::Value;
use std::fs;
use std::process::Command;
use support::terrace;
use sys::process::{Capability, has_capability};
use testkit::{FileSystem, Mount};

/// A number of `/proc/PID/status`.
fn of_status(process: u64, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_service_is_protected_and_its_successor_needs_no_path_to_its_state() {
    let Some(scene) = Scene::new("state") else { return };
    let file = scene.medium();
    let attached = scene.attach(&file).done();
    let process = scene.status()["process"].as_u64().unwrap();
    let keeper = of_status(process, "PPid:");
    // A container may have refused it; then the plan says so.
    let is_permitted = has_capability(Capability::SysResource);
    for pid in [process, keeper] {
        let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        assert_eq!(score.trim() == "-900", is_permitted, "{score}");
        assert!(of_status(pid, "VmLck:") > 1 << 10, "{pid} is not locked in memory");
    }
    let said =
        ["refused  the kernel may kill the service", "refused  the service may have to wait"];
    assert!(said.iter().all(|it| attached.contains(it) != is_permitted), "{attached}");
    // What was there is gone, and another one may be in its place.
    let state = scene.directory.join("state");
    fs::rename(&state, scene.directory.join("elsewhere")).unwrap();
    let device = scene.device();
    let first = read_blocks(&device, 200);
    scene.kill();
    assert!(read_blocks(&device, 200) == first);
    assert!(!state.exists(), "a successor made it anew");
    fs::rename(scene.directory.join("elsewhere"), &state).unwrap();
    scene.kill();
    assert_eq!(scene.status()["cold"], Value::Null);
    scene.detach().done();
}

#[test]
fn a_service_that_fails_again_and_again_goes_on_without_the_cache() {
    let Some(scene) = Scene::new("fails") else { return };
    let file = scene.medium();
    scene.attach(&file).done();
    let device = scene.device();
    let point = scene.directory.join("point");
    let mount = Mount::existing(FileSystem::Ext4, &device, point).unwrap();
    fs::write(mount.path().join("before"), vec![5; 1 << 20]).unwrap();
    for _ in 0..5 {
        assert!(!scene.status()["off"].to_string().contains("failed again"));
        // As a panic of the engine ends it.
        scene.end_process("-ABRT");
    }
    let off = scene.status()["off"].to_string();
    assert!(off.contains("failed again and again"), "{off}");
    // It serves, and what it has written is on the disk.
    fs::write(mount.path().join("after"), vec![6; 1 << 20]).unwrap();
    assert_eq!(fs::read(mount.path().join("before")).unwrap(), vec![5; 1 << 20]);
    scene.detach().refused(3, "is mounted at");
    scene.kill();
    assert_eq!(fs::read(mount.path().join("after")).unwrap(), vec![6; 1 << 20]);
    drop(mount);
    let checked = Command::new("e2fsck").args(["-f", "-n"]).arg(&device).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let detached = scene.detach().done();
    assert!(detached.contains("not proved fresh"), "{detached}");
    // Its writes left no marks, so nothing of before is used.
    let attached = scene.attach(&file).done();
    assert!(attached.contains("start    cold"), "{attached}");
    scene.detach().done();
}

#[test]
fn a_way_to_serve_that_is_not_there_is_refused_in_one_line() {
    let Some(scene) = Scene::new("export") else { return };
    let words = format!("{} --export nbd", scene.line("attach", &scene.medium()));
    if sys::nbd::NbdClient::open().is_err() {
        terrace(&words).refused(3, "NBD");
    }
    terrace(&format!("{words}s")).refused(2, "--export");
    let fuse = format!("{} --export fuse", scene.line("attach", &scene.medium()));
    let attached = terrace(&fuse).done();
    assert!(attached.contains("a kill   requests wait for the next process"), "{attached}");
    scene.detach().done();
}
