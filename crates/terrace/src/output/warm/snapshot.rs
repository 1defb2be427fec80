//! The lines about a snapshot: what was noted, and what could not be listed.
//! The kernel has no list of cached files, so the part that is unseen is always said.

use super::counted;
use crate::output::clean::escaped;
use crate::output::figure::or_absent;
use crate::output::prose::shell_word;
use model::Bytes;
use place::workingset::ranges;
use place::workingset::snapshot::Snapshot;
use std::path::Path;

/// What stands in the snapshot at `file`, how much of the page cache that is, and what to do
/// with it.
pub fn summary(snapshot: &Snapshot, file: &Path, file_bytes: Option<u64>) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_listed_is_said() {
        let snapshot = Snapshot {
            cached_bytes: Some(9 << 30),
            found_bytes: 8 << 30,
            notes: vec!["1 file was left out".to_owned()],
            ..Snapshot::default()
        };
        let text = summary(&snapshot, Path::new("/x/a b"), Some(1 << 20));
        assert_eq!(
            text,
            "/x/a b: 0 files, 0 processes with 0 B of their own, 1 MiB\n\
             Page cache 9 GiB: 8 GiB of it listed, 1 GiB unseen\n\
             1 file was left out\n\
             Bring it back: terrace warm restore '/x/a b'\n"
        );
        let unknown = Snapshot { cached_bytes: None, ..snapshot };
        let text = summary(&unknown, Path::new("x"), None);
        assert!(text.contains("Page cache -: 8 GiB of it listed, - unseen"), "{text}");
    }
}
