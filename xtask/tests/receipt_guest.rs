//! `terrace boost receipt` of real caches: in a guest a disk with a head is behind bcache on a
//! stick, another behind dm-cache, and pieces are read from both.
//!
//! What the receipt says must be what the kernel counts, and the seconds near those that the reads
//! took less. Skipped as `vm.rs` is. The disks are modelled, so times are judged by their ratio.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::program;
use testkit::TempDir;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/receipt_guest");
const DISKS: [&str; 4] =
    ["disk:256M,model=hdd", "stick:64M,model=usb", "disk2:256M,model=hdd", "stick2:64M,model=usb"];
const MODULES: [&str; 2] = ["bcache", "dm_cache_smq"];
/// `receipt.sh` reads through bcache once from an empty cache, and so often from a full one.
const READ_AGAIN: f64 = 2.0;
/// Reads of what dm-cache does not hold.
const COLD_READS: f64 = 200.0;
/// Times that what was written is read.
const WARM_TIMES: usize = 9;

#[test]
fn bcache_and_dm_cache_have_the_receipts_that_the_kernel_counts() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let out = TempDir::new();
    run_guest(out.path());
    let counted = counts(&out.join("results"));
    let page = std::fs::read_to_string(out.join("page")).unwrap();
    let of = |name: &str, kind: &str| cache(&out.join(name), kind);
    for kind in ["bcache", "dm_cache"] {
        let unused = of("unused.json", kind);
        assert_eq!(unused["verdict"], "unproven", "{unused}");
    }

    let bcache = of("used.json", "bcache");
    agree(&bcache, "bcache", &counted);
    assert_eq!((&bcache["verdict"], &bcache["is_write_back"]), (&"worth_it".into(), &false.into()));
    // The first time fills it.
    let again = counted["bcache2"] + counted["bcache3"];
    let seen_s = (READ_AGAIN * counted["bcache1"] - again) / 1e3;
    let ratio = number(&bcache, "spared_s") / seen_s;
    assert!((0.75..1.25).contains(&ratio), "{seen_s} s were spared: {bcache}");

    // Only what was written is found again.
    let cold = of("cold.json", "dm_cache");
    assert_eq!((&cold["hits"], &cold["verdict"]), (&0.into(), &"unproven".into()), "{cold}");
    assert!(cold["why"].as_str().unwrap().contains("it also takes writes"), "{cold}");
    let dirty = of("dirty.json", "dm_cache");
    let bytes = number(&dirty, "dirty_bytes");
    assert!(counted["dirty_before"] > 0.0, "{counted:?}");
    assert!(bytes <= counted["dirty_before"] && bytes >= counted["dirty_after"], "{dirty}");
    let used = of("used.json", "dm_cache");
    agree(&used, "dm", &counted);
    assert_eq!((&used["verdict"], &used["is_write_back"]), (&"worth_it".into(), &true.into()));
    assert!(used["why"].as_str().unwrap().contains("reads that write back"), "{used}");
    // Reads of the stick that write back take longer than those of hits: it may say too few.
    let warm: f64 = (1..=WARM_TIMES).map(|time| counted[&format!("warm{time}")]).sum();
    let of_disk = counted["cold1"] / COLD_READS * number(&used, "hits");
    let (spared_s, seen_s) = (number(&used, "spared_s"), (of_disk - warm) / 1e3);
    assert!(spared_s > 0.0 && spared_s < 1.25 * seen_s, "{seen_s} s were spared: {used}");
    for line in ["bcache0 (bcache): worth it: ", "cached (dm-cache): worth it: "] {
        assert!(page.contains(line), "{page}");
    }
}

/// Hits, misses and what was written are the kernel's.
fn agree(receipt: &Value, name: &str, counted: &BTreeMap<String, f64>) {
    let of = |what: &str| counted[&format!("{name}_{what}")];
    assert!(of("hits") > 400.0 && of("misses") >= COLD_READS, "{counted:?}");
    for what in ["hits", "misses"] {
        assert_eq!(number(receipt, what), of(what), "{receipt}");
    }
    // bcache rounds; requests that are under way are not counted.
    let ratio = number(receipt, "written_bytes") / of("written");
    assert!((0.9..1.1).contains(&ratio), "{} were written: {receipt}", of("written"));
}

fn number(receipt: &Value, name: &str) -> f64 {
    receipt[name].as_f64().unwrap_or_else(|| panic!("{name}: {receipt}"))
}

fn cache(receipts: &Path, kind: &str) -> Value {
    let text = std::fs::read_to_string(receipts).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let found = all["caches"].as_array().unwrap().iter().find(|cache| cache["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind}: {text}")).clone()
}

fn run_guest(out: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["vm", "--mem", "320M", "--timeout", "300", "--dir", SCRIPTS]);
    command.args(DISKS.map(|disk| format!("--disk={disk}")));
    command.args(MODULES.map(|module| format!("--module={module}")));
    command.arg("--bin").arg(program()).arg("--out").arg(out).args(["--", "bash", "receipt.sh"]);
    let run = command.output().unwrap();
    let complained = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{}{complained}", String::from_utf8_lossy(&run.stdout));
}

/// Lines `NAME NUMBER`; times are milliseconds.
fn counts(results: &Path) -> BTreeMap<String, f64> {
    support::counted(&std::fs::read_to_string(results).unwrap())
}
