//! `terrace-recorder.service` in a guest that boots systemd: off until it is enabled, its ring
//! opens after each kill, its watchdog starts it anew, and within its fences it sees what root sees
//! without them. Each of its capabilities is tried to be left out.
//!
//! Skipped where QEMU or the image is missing: `cargo xtask vm --build --systemd`.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use testkit::TempDir;

const FILES: [(&str, &str); 5] = [
    ("day.py", include_str!("recorder_guest/day.py")),
    ("day.sh", include_str!("recorder_guest/day.sh")),
    ("units.sh", include_str!("recorder_guest/units.sh")),
    ("service.sh", include_str!("recorder_guest/service.sh")),
    ("terrace-recorder.service", include_str!("../../packaging/terrace-recorder.service")),
];

/// What three of four kills lose at most, in seconds; the emulator may hold up the others.
const LOST_S: f64 = 1.0;

#[test]
fn the_service_keeps_a_ring_that_opens_and_sees_what_root_sees() {
    if !xtask::vm::is_ready_with(&["systemd"]) {
        let need = "qemu-system-x86 and an image (cargo xtask vm --build --systemd)";
        return testkit::skip(need);
    }
    let out = TempDir::new();
    let options = ["--systemd", "--before", "sh units.sh"];
    let found = found_in_a_guest(&options, out.path(), "bash service.sh");
    let is = |name: &str, value: &str| assert_eq!(found[name], value, "{name}: {found:?}");
    is("before", "inactive");
    is("started", "active");
    is("opened", "1 2 3");
    is("restarts", "3");
    is("mode", "700:root");
    is("watchdog", "restarted");
    is("stopped", "success");
    assert!(found["bytes"].parse::<u64>().unwrap() < 1 << 30, "{found:?}");
    assert!(found["exposure"].parse::<f64>().unwrap() <= 4.0, "{found:?}");
    let sights = |name: &str| sights(&out.path().join(name));
    let (within, without) = (sights("within.json"), sights("without.json"));
    assert_eq!(within, without, "what is seen within the unit and without it");
    assert!(within.contains("events.in_kernel") && within.contains("other_users"), "{within:?}");
    // Without these something is not seen; the other two name functions, and read files of others.
    let all = sights("without_none.json");
    for (capability, sight) in [
        ("bpf", "events.in_kernel"),
        ("perfmon", "events.in_kernel"),
        ("net_admin", "exits"),
        ("sys_ptrace", "other_users"),
        ("ipc_lock", "locked"),
        ("sys_nice", "realtime"),
    ] {
        let seen = sights(&format!("without_{capability}.json"));
        assert!(all.contains(sight) && !seen.contains(sight), "{capability}: {seen:?}");
    }
}

/// The sources that were open in a recording.
fn sights(path: &Path) -> BTreeSet<String> {
    let recording: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let sights = recording["facts"]["sights"].as_object().unwrap();
    let open = sights.iter().filter(|(_, sight)| sight["state"] == "open");
    open.map(|(name, _)| name.clone()).collect()
}

/// A day and a half in some minutes: `TERRACE_RECORDER_KILLS` is how often the recorder is killed.
#[test]
fn a_day_of_kills_a_stepped_clock_and_a_full_disk_leave_a_ring_that_opens() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let kills = std::env::var("TERRACE_RECORDER_KILLS").map_or(8, |count| count.parse().unwrap());
    let out = TempDir::new();
    // The last one holds: a kill takes up to half a minute.
    let timeout = (1200 + 30 * kills).to_string();
    let script = format!("bash day.sh {kills}");
    let found = found_in_a_guest(&["--timeout", &timeout], out.path(), &script);
    let opened = found["opened"].split(' ').filter(|word| *word != "full").count();
    assert_eq!(opened, kills, "{found:?}");
    let of = |name: &str| -> Vec<f64> {
        let of_kills = (1..=kills).filter_map(|at| found.get(&format!("{name}.{at}")));
        of_kills.map(|value| value.parse().unwrap()).collect()
    };
    // While the disk is full nothing is kept.
    let mut lost = of("lost");
    assert!(lost.len() >= kills / 2 && lost.len() < kills, "{found:?}");
    lost.sort_by(f64::total_cmp);
    assert!(lost[0] > -0.1 && lost[lost.len() * 3 / 4] < LOST_S, "{lost:?}");
    assert!(lost[lost.len() - 1] < 3.0 * LOST_S, "{lost:?}");
    assert!(of("bytes").iter().all(|bytes| *bytes < 4.5 * 1048576.0), "{found:?}");
    // A segment is an hour, and goes as a whole.
    let hours: f64 = found["hours"].parse().unwrap();
    assert!((12.0..25.5).contains(&hours), "{found:?}");
}

/// What the script says, by name.
fn found_in_a_guest(options: &[&str], out: &Path, script: &str) -> BTreeMap<String, String> {
    let usual = ["--mem", "1G", "--out", out.to_str().unwrap()];
    let words = [&usual, options, &["--", script]].concat();
    support::run_guest(&FILES, &words).0.0
}
