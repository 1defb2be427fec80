//! `terrace ramdisk status` of a RAM disk that is in swap: it says so, and what it names brings it
//! back. Needs root, room for swap on the disk, and memory groups of version 1.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Started, has_program, terrace};
use testkit::{Cgroup, SwapArea, TempDir};

const MIB: u64 = 1 << 20;
/// Each of two files.
const FILE_BYTES: u64 = 24 * MIB;
/// Maps a file, and reads no page of it.
const MAPPER: &str = "
import mmap, sys, time
f = open(sys.argv[1], 'r+b')
m = mmap.mmap(f.fileno(), 0)
print('mapped', flush=True)
time.sleep(1000)
";

/// Removed whatever becomes of the test.
struct Ramdisk(String);

impl Drop for Ramdisk {
    fn drop(&mut self) {
        terrace(&format!("ramdisk remove {} --discard", self.0));
    }
}

impl Ramdisk {
    fn swapped_bytes(&self) -> u64 {
        let text = terrace(&format!("ramdisk status {} --json", self.0)).done();
        let status: Value = serde_json::from_str(&text).unwrap();
        status["result"]["ramdisks"][0]["swapped_bytes"].as_u64().unwrap_or(0)
    }

    /// Makes the group of its pages short of memory until most of them are in swap.
    fn push_out(&self, group: &Cgroup) -> u64 {
        let limit = group.path().join("memory.limit_in_bytes");
        for _ in 0..100 {
            // Refused where less cannot be reached; what went is gone nonetheless.
            let _ = fs::write(&limit, (4 * MIB).to_string());
            fs::write(&limit, (256 * MIB).to_string()).unwrap();
            let swapped = self.swapped_bytes();
            if swapped > FILE_BYTES * 3 / 2 {
                return swapped;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("only {} bytes went to swap", self.swapped_bytes());
    }
}

#[test]
fn what_is_in_swap_is_said_and_comes_back_by_what_is_named() {
    let group = match Cgroup::v1_memory(256 * MIB) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    if !has_program("python3") {
        return testkit::skip("python3");
    }
    let _swap = match SwapArea::on(96 * MIB) {
        Ok(swap) => swap,
        Err(need) => return testkit::skip(need),
    };
    let directory = TempDir::new();
    let point = directory.join("ram");
    let ramdisk = Ramdisk(point.display().to_string());
    terrace(&format!("ramdisk create {} --size 64m", ramdisk.0)).done();
    for name in ["mapped", "read"] {
        fill(&group, &point.join(name));
    }
    let mut mapper = Command::new("python3");
    mapper.args(["-c", MAPPER]).arg(point.join("mapped")).stdout(Stdio::piped());
    let mut mapper = Started(mapper.stdin(Stdio::null()).spawn().unwrap());
    let mut said = String::new();
    BufReader::new(mapper.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "mapped\n");

    let pushed_out = ramdisk.push_out(&group);
    let said = terrace(&format!("ramdisk status {}", ramdisk.0)).done();
    let page = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("of it are in swap; reading its files brings them back"), "{page}");
    let remedy = "terrace warm restore --all --only shared";
    assert!(page.contains(remedy), "{page}");
    // One that met a wait for memory elsewhere is made again.
    let line = remedy.strip_prefix("terrace ").unwrap();
    assert!((0..10).any(|_| terrace(line).code == Some(0)), "{:?}", terrace(line));
    let of_mapped = pushed_out - FILE_BYTES / 2;
    let left = ramdisk.swapped_bytes();
    assert!(left > 0 && left < of_mapped, "{left} of {pushed_out} bytes are in swap");
    drop(mapper);
    for name in ["mapped", "read"] {
        assert_eq!(fs::read(point.join(name)).unwrap().len() as u64, FILE_BYTES);
    }
    assert_eq!(ramdisk.swapped_bytes(), 0);
    let page = terrace(&format!("ramdisk status {}", ramdisk.0)).done();
    assert!(page.contains("nothing of it is in swap"), "{page}");
}

/// Writes a file that does not compress, whose memory is the group's.
fn fill(group: &Cgroup, path: &Path) {
    let mut dd = group.command("dd");
    dd.arg("if=/dev/urandom").arg(format!("of={}", path.display()));
    dd.args(["bs=1M", &format!("count={}", FILE_BYTES / MIB), "status=none"]);
    assert!(dd.status().unwrap().success());
}
