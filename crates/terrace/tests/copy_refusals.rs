//! `terrace copy` where the kernel refuses what it would like to use: the next engine copies, the
//! copy is equal, and the receipt says what was refused. The refusals are made by strace, and one
//! by a file system of the test.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;
#[path = "support/trees.rs"]
mod trees;

use rustix::io::Errno;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{TERRACE, has_program, terrace};
use testkit::disk_model::RequestKind::Write as Writes;
use testkit::{FaultPlan, FaultyFiles, FileFault, Mounted, TempDir, Trigger};
use trees::{assert_same, described};

const MIB: usize = 1 << 20;

fn make_tree(top: &Path) {
    fs::create_dir_all(top.join("below")).unwrap();
    for (at, length) in [3 * MIB + 5, 2 * MIB, 5000, 3].into_iter().enumerate() {
        let data: Vec<u8> = (0..length).map(|byte| (byte / 7 + at) as u8).collect();
        fs::write(top.join(format!("below/{at}")), data).unwrap();
    }
    fs::hard_link(top.join("below/0"), top.join("second")).unwrap();
    std::os::unix::fs::symlink("below/1", top.join("link")).unwrap();
}

/// A copy of a tree on `directory`, with faults as `strace --inject` takes them.
fn copy_with(directory: &Path, faults: &[&str], options: &[&str]) -> Value {
    let (source, target) = (directory.join("source"), directory.join("copy"));
    make_tree(&source);
    let mut line = Command::new("strace");
    line.args(["-f", "-qq", "-o", "/dev/null"]);
    let calls: Vec<&str> = faults.iter().filter_map(|fault| fault.split(':').next()).collect();
    line.arg(format!("--trace={}", calls.join(",")));
    for fault in faults {
        line.arg(format!("--inject={fault}"));
    }
    line.args([TERRACE, "copy", "--json"]).arg(&source).arg(&target).args(options);
    let ran = line.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{faults:?} {options:?}: {said}");
    assert_same(&described(&source), &target, &format!("{faults:?}"));
    fs::remove_dir_all(&source).unwrap();
    fs::remove_dir_all(&target).unwrap();
    let json: Value = serde_json::from_slice(&ran.stdout).unwrap();
    json["result"]["done"].clone()
}

fn used(done: &Value) -> Vec<&str> {
    let engines = done["engines"].as_array().unwrap();
    engines.iter().map(|used| used["engine"].as_str().unwrap()).collect()
}

fn refused(done: &Value) -> String {
    done["refusals"].to_string()
}

#[test]
fn what_the_kernel_refuses_is_not_used_and_is_in_the_receipt() {
    if !has_program("strace") {
        return testkit::skip("strace");
    }
    let mount = match Mounted::ext4(200 << 20) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    let copy = |faults: &[&str], options: &[&str]| copy_with(mount.path(), faults, options);
    // As a filter of a container, as an old kernel, and as a limit.
    for error in ["EPERM", "ENOSYS", "ENOMEM"] {
        let done = copy(&[&format!("io_uring_setup:error={error}")], &[]);
        assert!(refused(&done).contains("uring: "), "{error}: {done}");
        assert!(!used(&done).contains(&"uring"), "{error}: {done}");
    }
    let no_ring = "io_uring_setup:error=EPERM";
    let uncached = ["preadv2:error=EOPNOTSUPP", "pwritev2:error=EOPNOTSUPP"];
    let done = copy(&[no_ring, uncached[0], uncached[1]], &["--verify"]);
    assert!(refused(&done).contains("uncached: "), "{done}");
    assert_eq!(used(&done), ["paced", "plain"], "{done}");
    // Only the second write is refused: what was written is written again.
    let done = copy(&[no_ring, "pwritev2:error=EOPNOTSUPP:when=2+"], &["--verify"]);
    assert!(used(&done).contains(&"paced"), "{done}");
    copy(&["openat2:error=ENOSYS"], &[]);
    copy(&["openat2:error=EPERM"], &[]);
    copy(&["copy_file_range:error=EXDEV"], &[]);
    copy(&["renameat2:error=ENOSYS"], &[]);
    copy(&["fallocate:error=EOPNOTSUPP"], &[]);
}

#[test]
fn shared_data_that_is_refused_is_copied() {
    if !has_program("strace") {
        return testkit::skip("strace");
    }
    for system in ["btrfs", "xfs"] {
        let mount = match Mounted::made(system, &["-q", "-f"], 600 << 20) {
            Ok(mount) => mount,
            Err(need) => {
                testkit::skip(need);
                continue;
            }
        };
        let done = copy_with(mount.path(), &["fallocate:error=EOPNOTSUPP"], &[]);
        assert!(used(&done).contains(&"reflink"), "{system}: {done}");
        for error in ["EOPNOTSUPP", "EXDEV", "EPERM"] {
            let done = copy_with(mount.path(), &[&format!("ioctl:error={error}")], &[]);
            assert!(!used(&done).contains(&"reflink"), "{system}, {error}: {done}");
        }
    }
}

/// Direct writes that the file system takes at first, and then not.
#[test]
fn direct_writes_that_are_refused_midway_are_written_through_the_cache() {
    // A refusal that comes when nothing is written directly any more is an error of its file.
    let is_done = (0..5).any(|_| copied_past_refusals().unwrap_or(true));
    assert!(is_done, "the second refusal never met a direct write");
}

/// Whether both refusals met direct writes; `None` where it cannot be tried.
fn copied_past_refusals() -> Option<bool> {
    let (real, source) = (TempDir::new(), TempDir::new());
    for at in 0..6 {
        fs::write(source.join(format!("{at}")), vec![at + 1; 4 * MIB + 100]).unwrap();
    }
    let refused = FileFault::Fail(Errno::INVAL.raw_os_error());
    // One of the first file, and one while several files are under way.
    let plan = FaultPlan::new()
        .with(Trigger::Nth(Writes, 2), refused.clone())
        .with(Trigger::Nth(Writes, 9), refused);
    let files = match FaultyFiles::over(real.path(), plan) {
        Ok(files) => files,
        Err(need) => {
            testkit::skip(need);
            return None;
        }
    };
    let (from, to) = (source.path().display(), files.path().display());
    let ran = terrace(&format!("copy {from}/. {to} --json"));
    if ran.code == Some(1) && ran.out.contains("cannot write at byte") {
        return Some(false);
    }
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert_same(&described(source.path()), real.path(), "direct writes refused midway");
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    let done = &json["result"]["done"];
    assert!(done["refusals"].to_string().contains("uring: "), "{done}");
    Some(true)
}
