//! Mutants of snapshots, read by `warm restore --dry-run`: lines, identities, ranges, bytes.
//!
//! Every snapshot is made here from the documented format, of files that are there, so that a
//! mutant gets past the check of identity. Paths lead to devices, pipes and files of the kernel as
//! well.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};
use testkit::Random;

use super::judge::Form;
use super::mutate::{self, EXTREMES, chance, pick};
use super::stage::{AttackStage, Held, text, words};
use super::trec;

/// What a path may lead to that is not a file on a disk.
const PATHS: &[&str] = &[
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/null",
    "/proc/kmsg",
    "/proc/kcore",
    "/proc/self/mem",
    "/proc/self/fd/0",
    "/etc/shadow",
    "/",
    "",
    "relative/../x",
];

/// One mutant of a snapshot, read by one command.
pub(super) fn attack(stage: &AttackStage, random: &mut Random, directory: &Path) -> Held {
    let file = directory.join("mutant.snap");
    std::fs::write(&file, mutant(random, directory)?)?;
    let path = text(&file);
    let (arguments, form) = match random.below(4) {
        0 => (words(["warm", "restore", "--dry-run", "--json", path]), Form::Json),
        1 => {
            let only = *pick(random, &["files", "anonymous", "shared"]);
            (words(["warm", "restore", "--dry-run", "--only", only, path]), Form::Text)
        }
        _ => (words(["warm", "restore", "--dry-run", path]), Form::Text),
    };
    stage.attack(&arguments, form).map(drop)
}

fn mutant(random: &mut Random, directory: &Path) -> std::io::Result<Vec<u8>> {
    let mut lines = vec![json!({"machine": {"at_ns": 1, "cached_bytes": 1, "found_bytes": 1}})];
    for index in 0..*pick(random, &[1, 5, 20]) {
        let path = directory.join(format!("file{index}"));
        std::fs::write(&path, vec![1; 8192])?;
        lines.push(file(text(&path), &[0, 2])?);
        let present = [0, 2, 6, 1];
        lines
            .push(json!({"process": {"pid": std::process::id(), "start_ticks": index, "name": "x",
            "executable": null, "present": present}}));
    }
    for _ in 0..*pick(random, &[1, 1, 3, 8]) {
        let at = random.below(lines.len() as u64) as usize;
        let changed = change(random, &lines[at])?;
        lines[at] = changed;
    }
    if chance(random, 10) {
        lines.reverse();
    }
    let mut raw = trec::json_lines(&lines);
    if chance(random, 5) {
        mutate::bytes(random, &mut raw);
    }
    let mut bytes = trec::snapshot(&raw);
    if chance(random, 10) {
        mutate::bytes(random, &mut bytes);
        if chance(random, 70) && bytes.len() > 4 {
            bytes.truncate(bytes.len() - 4);
            bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        }
    }
    Ok(bytes)
}

/// The line of a file that is there, with these ranges.
pub(super) fn file(path: &str, cached: &[u64]) -> std::io::Result<Value> {
    let facts = std::fs::symlink_metadata(path)?;
    let changed_ns = facts.ctime() * 1_000_000_000 + facts.ctime_nsec();
    Ok(json!({"file": {
        "path": path,
        "identity": {"device": facts.dev(), "inode": facts.ino(), "bytes": facts.len(), "changed_ns": changed_ns},
        "cached": cached,
    }}))
}

fn change(random: &mut Random, line: &Value) -> std::io::Result<Value> {
    let extremes = |random: &mut Random| -> Vec<u64> {
        (0..*pick(random, &[1, 2, 4, 100])).map(|_| *pick(random, EXTREMES)).collect()
    };
    let mut changed = line.clone();
    match (line.get("file"), random.below(5)) {
        (Some(_), 0) => changed["file"]["path"] = json!(pick(random, PATHS)),
        (Some(_), 1) => changed["file"]["cached"] = json!(extremes(random)),
        (Some(_), 2) => {
            let special = *pick(random, PATHS);
            let length = *pick(random, EXTREMES);
            // Those that are not there here keep the file as it is.
            if let Ok(line) = file(special, &[0, length]) {
                changed = line;
            }
        }
        (Some(_), 3) => {
            let list: Vec<u64> = (0..*pick(random, &[0, 3, 5000])).map(|n| n % 256).collect();
            changed["file"]["path"] = json!(list);
        }
        _ => changed = mutate::json(random, line, 200),
    }
    Ok(changed)
}
