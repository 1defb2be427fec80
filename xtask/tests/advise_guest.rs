//! `terrace advise` by booting the larger guest: a file and anonymous memory are used at once in a
//! guest that is recorded, then the same in one with more memory. What was advised from the
//! recording must be near what the larger guest's kernel counts. Beside that, files that are cut
//! off and deleted in a guest with room for them predict nothing.
//!
//! The first scripts are those of `cargo xtask bench advise`. Skipped as `vm.rs` is. Times are not
//! looked at: the guest is emulated.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::Value;
use support::program;
use testkit::TempDir;

const SCRIPTS: [(&str, &str); 5] = [
    ("lib.sh", include_str!("../src/bench/advise/guest/lib.sh")),
    ("build.sh", include_str!("../src/bench/advise/guest/build.sh")),
    ("memory.sh", include_str!("../src/bench/advise/guest/memory.sh")),
    ("set.py", include_str!("../src/bench/advise/guest/set.py")),
    ("deleted.sh", include_str!("advise_guest/deleted.sh")),
];

/// MiB of each set, how often a piece of it is used, and the skew.
const SET: &str = "both 180 1500 2.5";
const PAGE_BYTES: f64 = 4096.0;
/// Not so fast that nothing waits for what comes back.
const DATA: &str =
    "data:512M,model=usb,read_bps=60000000,write_bps=400000000,write_ms=0.1,jump_write_ms=0";
/// What is written and deleted at a time; six times so much is deleted in all.
const FILE_BYTES: f64 = (48 << 20) as f64;

#[test]
fn what_a_larger_guest_brings_back_was_advised_from_the_smaller_one() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let folder = TempDir::new();
    let (tool, scripts) = (program(), folder.join("scripts"));
    std::fs::create_dir(&scripts).unwrap();
    for (name, text) in SCRIPTS {
        std::fs::write(scripts.join(name), text).unwrap();
    }
    let use_set = format!("bash build.sh {SET} && bash memory.sh {SET}");
    let with_deleted = format!("{use_set} && bash deleted.sh");
    let run = |memory: &str, script: &str| counted(folder.path(), &tool, memory, script);
    // A guest has one processor.
    let (small, large) = thread::scope(|scope| {
        let small = scope.spawn(|| run("320M", &use_set));
        let large = run("416M", &with_deleted);
        (small.join().unwrap(), large)
    });
    let more = (large["memory_kib"] - small["memory_kib"]) / 1024.0;
    let size = format!("+{more:.0}m");
    let advice = advised(&tool, &folder.join("320M/set.trec"), &size);
    returns_are_those_of_the_larger(&advice, returns(&small), returns(&large));

    let deleted = advised(&tool, &folder.join("416M/deleted.trec"), "+1g");
    assert_eq!((large["deleted"], large["numbers"]), (6.0, 1.0), "{large:?}");
    let bytes = |what: &str| deleted["memory"]["file"][what].as_f64().unwrap();
    for what in ["left_bytes", "came_back_bytes"] {
        assert!(bytes(what) < FILE_BYTES / 4.0, "{what}: {deleted:#}");
    }
    assert_ne!(deleted["memory"]["state"], "helps", "{deleted:#}");
}

fn returns(counts: &BTreeMap<String, f64>) -> f64 {
    counts["workingset_refault_file"] + counts["workingset_refault_anon"]
}

fn returns_are_those_of_the_larger(advice: &Value, base: f64, seen: f64) {
    let of = |kind: &str| advice["memory"][kind]["came_back_bytes"].as_f64().unwrap();
    let recorded = (of("file") + of("swap")) / PAGE_BYTES;
    assert!((0.9..1.1).contains(&(recorded / base)), "{recorded} recorded, {base} counted");
    let size = &advice["memory"]["sizes"][0];
    let kept = size["kept_bytes"].as_f64().unwrap_or_else(|| panic!("{advice:#}")) / PAGE_BYTES;
    assert!(base > 20_000.0 && seen < 0.8 * base, "{base} came back, {seen} with more memory");
    // 2 to 9 % of those of the smaller guest were seen.
    let error = (base - kept - seen).abs() / base;
    assert!(error < 0.2, "{error}: {base} came back, {kept} advised to stay, {seen} seen: {size}");
}

fn advised(tool: &Path, recording: &Path, more: &str) -> Value {
    let mut command = Command::new(tool);
    command.arg("advise").arg(recording).args(["--ram", more, "--json"]);
    let advised = command.output().unwrap();
    let text = String::from_utf8_lossy(&advised.stdout);
    assert!(advised.status.success(), "{text}{}", String::from_utf8_lossy(&advised.stderr));
    serde_json::from_str(&text).unwrap()
}

/// What the kernel of a guest with so much memory counted; its recordings are in the folder of that
/// name.
fn counted(folder: &Path, tool: &Path, memory: &str, script: &str) -> BTreeMap<String, f64> {
    let out = folder.join(memory);
    std::fs::create_dir(&out).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["vm", "--disk", DATA, "--disk", "swap:1G", "--mem", memory]);
    command.args(["--timeout", "300", "--dir"]).arg(folder.join("scripts"));
    command.arg("--bin").arg(tool).arg("--out").arg(&out).args(["--", script]);
    let run = command.output().unwrap();
    let complained = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{}{complained}", String::from_utf8_lossy(&run.stdout));
    let results = std::fs::read_to_string(out.join("results")).unwrap();
    support::counted(&results)
}
