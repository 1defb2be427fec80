//! A file that is replaced again and again by a process that is killed again and again.
//!
//! Whenever it is read, the file holds the text of one replacement, whole. After the last kill
//! one more replacement removes whatever temporary file was left.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use sys::directory::Directory;
use sys::file::{Durability, FileMode, replace};
use testkit::TempDir;

const PLACE: &str = "TERRACE_TEST_REPLACE";
const TARGET: &str = "target";
const KILLS: u64 = 40;
/// More than a pipe or a page holds, so that a part of it would be seen.
const TEXT_BYTES: usize = 300_000;

fn put(directory: &Directory, letter: u8, durability: Durability) {
    let text = vec![letter; TEXT_BYTES + usize::from(letter)];
    let mode = FileMode::AsBefore { new: 0o600 };
    replace(directory, OsStr::new(TARGET), &text, mode, durability).unwrap();
}

#[test]
#[ignore = "a workload of the other test"]
fn replace_until_killed() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let directory = Directory::open(&place).unwrap();
    for letter in (b'a'..=b'z').cycle() {
        let durability = match letter % 2 {
            0 => Durability::Synced,
            _ => Durability::Unsynced,
        };
        put(&directory, letter, durability);
    }
}

#[test]
fn a_reader_sees_a_whole_file_whenever_the_writer_is_killed() {
    let place = TempDir::new();
    let directory = Directory::open(place.path()).unwrap();
    put(&directory, b'a', Durability::Synced);
    let (mut letters, mut left) = (std::collections::BTreeSet::new(), 0);
    for kill in 0..KILLS {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "replace_until_killed"])
            .env(PLACE, place.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Picked: from before its first replacement to its twentieth.
        std::thread::sleep(Duration::from_millis(1 + kill * 7 % 31));
        letters.insert(read_whole(&place));
        writer.kill().unwrap();
        writer.wait().unwrap();
        letters.insert(read_whole(&place));
        left += usize::from(place.names().len() > 1);
    }
    assert!(letters.len() > 1, "no replacement was seen in {KILLS} runs");
    put(&directory, b'z', Durability::Synced);
    assert_eq!(place.names(), [TARGET], "{left} kills left a file");
}

/// The letter that all of the file is.
fn read_whole(place: &TempDir) -> u8 {
    let text = std::fs::read(place.join(TARGET)).unwrap();
    let letter = text[0];
    assert_eq!(text.len(), TEXT_BYTES + usize::from(letter));
    assert!(text.iter().all(|byte| *byte == letter));
    letter
}
