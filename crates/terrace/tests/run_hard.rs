//! `terrace run` and `explain` when things go wrong: a kill by a memory limit, a full disk,
//! thousands of children, a recording that is damaged, hostile or of a later version.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::Command;
use support::{TERRACE, has_program, run, run_command, terrace, valid_explanation};
use testkit::{Cgroup, TempDir, Tmpfs};

/// The verdict names the limit, so that no one has to search the kernel's log. The limit is
/// the group's, so the machine's own memory does not matter.
#[test]
fn a_kill_for_want_of_memory_names_the_limit() {
    let group = match Cgroup::v1_memory(96 << 20) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let mut command: Command = group.command(TERRACE);
    // A line without an end, all of which `tail` keeps.
    command.args(["run", "--trace", "none", "--", "tail", "/dev/zero"]);
    command.env("COLUMNS", "200").env_remove("NO_COLOR");
    let ran = run(command);
    if ran.err.is_empty() {
        // The kernel may choose the recorder, which lives under the same limit.
        return testkit::skip("the kernel to choose the command");
    }
    assert_eq!(ran.code, Some(137), "{ran:?}");
    for words in ["want of memory", "96 MiB", "terrace-test-"] {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
}

/// The command fills the disk on which it is recorded, and goes on to its own end.
#[test]
fn a_full_disk_is_said_and_the_command_goes_on() {
    let tmpfs = match Tmpfs::mount(32 << 10) {
        Ok(tmpfs) => tmpfs,
        Err(need) => return testkit::skip(need),
    };
    let file = tmpfs.path().join("x.trec");
    let filler = tmpfs.path().join("filler");
    // The marks are random: four of them cannot be made smaller than what is left of the
    // recording's last page, so its end cannot fit.
    let line = format!(
        "cat /dev/zero > {} 2>/dev/null; for i in 1 2 3 4; do {TERRACE} mark $(head -c 2000 \
         /dev/urandom | od -An -tx1 | tr -d ' \\n') > /dev/null; done; echo after; exit 9",
        filler.display()
    );
    let options = ["--trace", "none", "-o", file.to_str().unwrap()];
    let mut command = run_command(&options, &["sh", "-c", &line]);
    command.env("COLUMNS", "200");
    let ran = run(command);
    assert_eq!((ran.code, ran.out.as_str()), (Some(9), "after\n"), "{ran:?}");
    assert!(ran.err.contains("no space"), "{}", ran.err);
}

#[test]
fn ten_thousand_children_do_no_harm() {
    let line = "i=0; while [ $i -lt 10000 ]; do (:); i=$((i+1)); done; echo done; exit 5";
    let ran = run(run_command(&[], &["sh", "-c", line]));
    assert_eq!((ran.code, ran.out.as_str()), (Some(5), "done\n"), "{ran:?}");
    assert!(ran.err.starts_with("-- terrace "), "{ran:?}");
}

/// A recording of a short command.
fn recorded(directory: &TempDir) -> Vec<u8> {
    let file = directory.join("whole.trec");
    let options = ["--quiet", "--trace", "none", "-o", file.to_str().unwrap()];
    run(run_command(&options, &["sh", "-c", "sleep 0.3"])).done();
    fs::read(&file).unwrap()
}

/// Whatever became of the bytes, there is a page or one line of refusal, never a panic.
#[test]
fn a_damaged_recording_is_explained_or_refused() {
    let directory = TempDir::new();
    let whole = recorded(&directory);
    let file = directory.join("hurt.trec");
    let mut random = testkit::Random(11);
    for round in 0..40_u64 {
        let mut bytes = whole.clone();
        if round % 2 == 0 {
            bytes.truncate(random.below(whole.len() as u64) as usize);
        } else {
            let at = random.below(whole.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        fs::write(&file, &bytes).unwrap();
        let ran = terrace(&format!("explain --json {}", file.display()));
        match ran.code {
            Some(0) => drop(valid_explanation(&ran.out)),
            _ => ran.refused(2, "hurt.trec"),
        }
    }
}

/// A chunk that claims to unpack to 4 GiB costs no memory: the program has 1 GiB of
/// addresses here, and needs far less.
#[test]
fn a_hostile_recording_takes_no_memory() {
    if !has_program("prlimit") {
        return testkit::skip("prlimit (util-linux)");
    }
    let directory = TempDir::new();
    let mut bytes = recorded(&directory);
    bytes.truncate(16);
    let mut chunk = vec![3, 1, 0, 0];
    chunk.extend(u32::MAX.to_le_bytes());
    chunk.extend(u32::MAX.to_le_bytes());
    chunk.extend([0; 20]);
    bytes.extend(chunk);
    let file = directory.join("hostile.trec");
    fs::write(&file, &bytes).unwrap();
    let mut command = Command::new("prlimit");
    command.args(["--as=1073741824", TERRACE, "explain"]).arg(&file);
    let ran = run(command);
    assert!(matches!(ran.code, Some(0 | 2)), "{ran:?}");
    assert!(!ran.err.contains("panicked"), "{ran:?}");
}

#[test]
fn a_later_version_is_named() {
    let directory = TempDir::new();
    let mut bytes = recorded(&directory);
    bytes[8..10].copy_from_slice(&99_u16.to_le_bytes());
    let sum = crc32c(&bytes[..12]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    let file = directory.join("later.trec");
    fs::write(&file, &bytes).unwrap();
    terrace(&format!("explain {}", file.display())).refused(2, "newer");
}

/// CRC-32C bit by bit: slow, and a second witness for the header's checksum.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |sum: u32| (sum >> 1) ^ (0x82F6_3B78 & (sum & 1).wrapping_neg());
    let fold = |sum: u32, byte: &u8| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum));
    !bytes.iter().fold(u32::MAX, fold)
}
