//! `terrace-warm-watch.service` in a guest that boots systemd twice: off until it is enabled, it
//! restores a program's memory after each shortage, also after a kill and at the next boot, and
//! within its fences it does what root does without them.
//!
//! The memory is of another user. Skipped where QEMU or the image is missing: `cargo xtask vm
//! --build --systemd`. Times are not looked at: the guest is emulated.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::path::Path;

use serde_json::Value;
use support::Found;
use testkit::TempDir;

const FILES: [(&str, &str); 6] = [
    support::UNTIL,
    ("lib.sh", include_str!("warm_watch_guest/lib.sh")),
    ("units.sh", include_str!("warm_watch_guest/units.sh")),
    ("first.sh", include_str!("warm_watch_guest/first.sh")),
    ("second.sh", include_str!("warm_watch_guest/second.sh")),
    ("terrace-warm-watch.service", include_str!("../../packaging/terrace-warm-watch.service")),
];

/// The program's memory.
const SET_KIB: f64 = 65536.0;
const SET_PAGES: f64 = SET_KIB / 4.0;
/// Of CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_ADMIN and CAP_SYS_NICE.
const CAPABILITIES: &str = "0000000000a80004";

#[test]
fn the_service_restores_after_each_shortage_each_kill_and_each_boot() {
    if !xtask::vm::is_ready_with(&["systemd"]) {
        let need = "qemu-system-x86 and an image (cargo xtask vm --build --systemd)";
        return testkit::skip(need);
    }
    let out = TempDir::new();
    let machine = ["--disk", "swap:256M,model=hdd", "--disk", "state:32M", "--mem", "384M"];
    let boots = ["--systemd", "--before", "bash units.sh", "--then", "bash second.sh"];
    let rest = ["--timeout", "1200", "--out", out.path().to_str().unwrap(), "--", "bash first.sh"];
    let (found, complained) = support::run_guest(&FILES, &[&machine[..], &boots, &rest].concat());
    found.is("before", "inactive disabled");
    // systemd waits for its word that it is ready.
    found.is("enabled", "active notify");
    let fences = [("CapEff", CAPABILITIES), ("CapBnd", CAPABILITIES), ("Seccomp", "2")];
    for (fence, value) in [&fences[..], &[("NoNewPrivs", "1"), ("net", "own")]].concat() {
        found.is(&format!("fence.{fence}"), value);
    }
    for shortage in ["first", "killed", "second"] {
        is_restored(&found, shortage);
    }
    for boot in ["first", "second"] {
        found.is(&format!("{boot}.restarts"), "0");
        found.is(&format!("{boot}.pid"), "same");
    }
    found.is("killed.restarts", "1");
    found.is("killed.starts", "2");
    // What the killed one left went when the next one started.
    found.is("killed.sockets", "1");
    found.is("stopped.sockets", "0");
    found.is("stopped", "inactive success 0");
    // Enabled once, it runs in each boot.
    found.is("second.service", "active enabled 0");
    found.is("second.starts", "1");
    // No error number, but an end by SIGSYS: the service makes no call that its filter forbids.
    found.is_above("second.error", 4095.0);
    found.is("second.killed", "0");
    found.is("second.stopped", "inactive success 0");
    // In both boots: it says nothing but what it does.
    assert_eq!(found.0["complaints"], "0 0", "{complained}");
    as_much_within_the_fences_as_without(&found, out.path());
}

/// The pages went, came back before the program asked for them, and are what they were.
fn is_restored(found: &Found, shortage: &str) {
    let of = |what: &str| format!("{shortage}.{what}");
    found.is_above(&of("evicted_kib"), SET_KIB / 2.0);
    found.is_above(&of("shortages"), 0.0);
    assert!(found.number(&of("left_kib")) < SET_KIB / 20.0, "{shortage}: {:#?}", found.0);
    assert!(found.number(&of("faults")) < SET_PAGES / 50.0, "{shortage}: {:#?}", found.0);
    found.is(&of("wrong"), "0 0");
    let status = &found.0[&of("status")];
    assert!(status.starts_with("restored: read "), "{status}");
}

/// One restore in a unit with the same fences, and one by root.
fn as_much_within_the_fences_as_without(found: &Found, out: &Path) {
    for name in ["within", "without"] {
        found.is_above(&format!("{name}.evicted_kib"), SET_KIB / 2.0);
        found.is(name, "0");
        assert!(found.number(&format!("{name}.left_kib")) < SET_KIB / 20.0, "{:#?}", found.0);
    }
    let [within, without] = ["within.json", "without.json"].map(|name| restored(&out.join(name)));
    assert_eq!(within, without);
    // Else both saw nothing.
    assert!(within.iter().any(|part| part.starts_with("part \"anonymous\"")), "{within:?}");
    assert!(within.iter().any(|part| part.starts_with("tried ")), "{within:?}");
}

/// What a restore did, without figures: the disks that it tried, what it read and how, its end.
fn restored(path: &Path) -> Vec<String> {
    let report: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let result = &report["result"];
    let lines = |list: &Value, line: &dyn Fn(&Value) -> String| -> Vec<String> {
        list.as_array().unwrap().iter().map(line).collect()
    };
    let tried = lines(&result["speeds"], &|disk| {
        format!("tried {} {}", disk["device"], disk["random_read_ns"].is_u64())
    });
    let planned = lines(&result["planned"], &|part| {
        format!("planned {} {} {}", part["kind"], part["source"], part["skipped"])
    });
    let parts = lines(&result["done"]["parts"], &|part| {
        format!("part {} {} {}", part["kind"], part["source"], part["method"])
    });
    let noted = lines(&result["notes"], &|note| format!("note {note}"));
    [tried, planned, parts, noted, vec![result["done"]["stop"].to_string()]].concat()
}
