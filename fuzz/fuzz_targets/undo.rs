//! Fuzzes the reader of the journal of changed settings.
//!
//! The input is an entry, read as that of `kernel.task_delayacct`. It is listed, never put back,
//! so that no setting of this machine changes. Nothing may panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use undo::{Journal, JournalEntry, list_in};

const ENTRY: &str = "setting-proc%2fsys%2fkernel%2ftask_delayacct";

fuzz_target!(|data: &[u8]| {
    let name = format!("terrace-fuzz-undo-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let journal = Journal::at(&directory, vec![PathBuf::from("/proc/sys")]);
    // The first listing of a journal that is not there makes nothing; this makes it.
    let _ = std::fs::create_dir(&directory);
    let entry = directory.join(ENTRY);
    std::fs::write(&entry, data).expect("the entry is written");
    let listed = list_in(&journal);
    if let Ok(entries) = listed {
        let is_setting = |entry: &JournalEntry| match entry {
            JournalEntry::Known { change, .. } => change.path().starts_with("/proc/sys"),
            JournalEntry::Newer { path } => path.ends_with(ENTRY),
        };
        assert!(entries.iter().all(is_setting));
    }
});
