//! `terrace-recorder.service` in a guest that boots systemd: off until it is enabled, its ring
//! opens after each kill, its watchdog starts it anew, and within its fences it sees what root sees
//! without them. Each of its capabilities is tried to be left out.
//!
//! Skipped where QEMU or the image is missing: `cargo xtask vm --build --systemd`.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::program;
use testkit::TempDir;

const FILES: [(&str, &str); 3] = [
    ("units.sh", include_str!("recorder_guest/units.sh")),
    ("service.sh", include_str!("recorder_guest/service.sh")),
    ("terrace-recorder.service", include_str!("../../packaging/terrace-recorder.service")),
];

#[test]
fn the_service_keeps_a_ring_that_opens_and_sees_what_root_sees() {
    if !xtask::vm::is_ready_with(&["systemd"]) {
        let need = "qemu-system-x86 and an image (cargo xtask vm --build --systemd)";
        return testkit::skip(need);
    }
    let (folder, out) = (TempDir::new(), TempDir::new());
    for (name, text) in FILES {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let found = found_in_a_guest(folder.path(), out.path());
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

/// What the script says, by name.
fn found_in_a_guest(folder: &Path, out: &Path) -> BTreeMap<String, String> {
    let work = TempDir::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["vm", "--systemd", "--before", "sh units.sh"]).env("TMPDIR", work.path());
    command.arg("--bin").arg(program()).arg("--dir").arg(folder).arg("--out").arg(out);
    command.args(["--mem", "1G", "--timeout", "500"]);
    let run = command.args(["--", "bash service.sh"]).output().unwrap();
    let [said, complained] = [run.stdout, run.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(run.status.code(), Some(0), "{said}{complained}");
    support::said(&said)
}
