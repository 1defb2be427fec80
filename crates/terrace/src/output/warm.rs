//! What `warm` says: pages for a person, one line for what is done at once, and always what could
//! not be seen: the kernel has no list of cached files. Pure.
//!
//! Sizes are in powers of 1024, as memory is; a page names the largest, the JSON has all.

mod parts;
mod receipt;
mod show;
pub mod watch;

pub use receipt::RestoreReceipt;

use super::clean::escaped;
use super::figure::or_absent;
use super::prose::{count, shell_word};
use model::Bytes;
use place::ranges;
use place::workingset::evict::Evicted;
use place::workingset::restore::MemoryKind;
use place::workingset::snapshot::Snapshot;
use std::path::Path;

/// What was pushed out, and why something stayed.
pub fn evicted(evicted: &Evicted, whose: &str) -> String {
    let (before, after) = (Bytes(evicted.before_bytes), Bytes(evicted.after_bytes));
    let whose = escaped(whose);
    let mut text = format!("{whose}: {before} were in memory, {after} still are\n");
    for why in &evicted.kept {
        text.push_str(&format!(" stayed: {}\n", escaped(why)));
    }
    text
}

/// What stands in the snapshot at `file`, how much of the page cache that is, and what to do
/// with it.
pub fn snapshot_summary(snapshot: &Snapshot, file: &Path, file_bytes: Option<u64>) -> String {
    let size = |bytes: u64| Bytes(bytes).to_string();
    let held = snapshot.processes.iter();
    let held_bytes = held.map(|process| ranges::total(&process.present)).sum();
    let name = file.display().to_string();
    let notes: String = snapshot.notes.iter().map(|note| format!("{}\n", escaped(note))).collect();
    format!(
        "{}: {}, {} with {} of their own, {}\n\
         Page cache {}: {} of it listed, {} unseen\n\
         {notes}Bring it back: terrace warm restore {}\n",
        escaped(&name),
        counted(snapshot.files.len() as u64, "file", "files"),
        counted(snapshot.processes.len() as u64, "process", "processes"),
        Bytes(held_bytes),
        or_absent(file_bytes, size),
        or_absent(snapshot.cached_bytes, size),
        Bytes(snapshot.found_bytes),
        or_absent(snapshot.unseen_bytes(), size),
        shell_word(&name)
    )
}

/// The word for a kind of memory.
fn kind_name(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Anonymous => "anonymous",
        MemoryKind::Shared => "shared",
        MemoryKind::File => "files",
    }
}

/// What stands for the place that memory comes from. Shared objects are many, and where in swap
/// they lie cannot be seen.
fn place_name(kind: MemoryKind, source: &str) -> &str {
    match kind {
        MemoryKind::Shared => "swap",
        _ => source,
    }
}

/// `1 process`, `2 processes`: the plural is the third word.
fn counted(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{} {noun}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_what_was_done_at_once() {
        let gone = Evicted {
            before_bytes: 64 << 20,
            after_bytes: 4096,
            kept: vec!["1 file: mapped".to_owned()],
        };
        assert_eq!(
            evicted(&gone, "/x"),
            "/x: 64 MiB were in memory, 4 KiB still are\n stayed: 1 file: mapped\n"
        );
    }

    #[test]
    fn what_could_not_be_listed_is_said() {
        let snapshot = Snapshot {
            cached_bytes: Some(9 << 30),
            found_bytes: 8 << 30,
            notes: vec!["1 file was left out".to_owned()],
            ..Snapshot::default()
        };
        let text = snapshot_summary(&snapshot, Path::new("/x/a b"), Some(1 << 20));
        assert_eq!(
            text,
            "/x/a b: 0 files, 0 processes with 0 B of their own, 1 MiB\n\
             Page cache 9 GiB: 8 GiB of it listed, 1 GiB unseen\n\
             1 file was left out\n\
             Bring it back: terrace warm restore '/x/a b'\n"
        );
        let unknown = Snapshot { cached_bytes: None, ..snapshot };
        let text = snapshot_summary(&unknown, Path::new("x"), None);
        assert!(text.contains("Page cache -: 8 GiB of it listed, - unseen"), "{text}");
    }
}
