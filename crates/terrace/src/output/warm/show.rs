//! The page of `warm show`: who has how much where, and what a restore would read.
//! It names the first processes; the JSON has all of them.

use super::{counted, parts};
use crate::output::figure::or_absent;
use crate::output::prose::PageText;
use crate::output::report::{Report, interrupted_after};
use crate::output::table::Table;
use model::Bytes;
use place::workingset::show::{ProcessMemory, WorkingSetReport};

/// How many processes have a line.
const MOST_LINES: usize = 20;

impl Report for WorkingSetReport {
    const COMMAND: &'static str = "warm show";
    const SCHEMA: &'static str = "terrace.warm.show/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        out.heading(&title(self));
        if !self.processes.is_empty() {
            out.table(&table(&self.processes), 3);
        }
        let beyond = self.processes.len().saturating_sub(MOST_LINES) as u64;
        if beyond > 0 {
            let more = counted(beyond, "process more has", "processes more have");
            out.note(&format!("{more} less; --json names them"));
        }
        parts::write_planned(&self.parts, out);
        out.sentence(&cache(self));
        out.notes(&self.notes);
    }

    fn shortfall(&self) -> Option<String> {
        interrupted_after("seen", sys::interrupt::requested())
    }
}

/// "terrace warm show: 43 processes have 1.2 GiB in RAM and 300 MiB in swap"
fn title(shown: &WorkingSetReport) -> String {
    let sum = |of: fn(&ProcessMemory) -> u64| Bytes(shown.processes.iter().map(of).sum());
    format!(
        "terrace warm show: {}, {} in RAM, {} in swap",
        counted(shown.processes.len() as u64, "process", "processes"),
        sum(|process| process.resident_bytes),
        sum(|process| process.swapped_bytes)
    )
}

fn table(processes: &[ProcessMemory]) -> Table<&ProcessMemory> {
    let size = |bytes: u64| Bytes(bytes).to_string();
    Table::of(processes.iter().take(MOST_LINES))
        .words("process", 0, |process| process.name.as_str())
        .numbers("number", 0, |process| process.pid.to_string())
        .numbers("in RAM", 0, |process| size(process.resident_bytes))
        .numbers("in swap", 0, |process| size(process.swapped_bytes))
        .numbers("shared in swap", 1, |process| or_absent(process.shared_swapped_bytes, size))
        .numbers("files cached", 2, |process| or_absent(process.file_cached_bytes, size))
        .numbers("files absent", 1, |process| or_absent(process.file_absent_bytes, size))
        .words("group", 3, |process| process.group.as_deref().unwrap_or_default())
}

/// "Page cache 9.1 GiB: 8.2 GiB of it in files that these processes use, 0.9 GiB not found"
fn cache(shown: &WorkingSetReport) -> String {
    let size = |bytes: u64| Bytes(bytes).to_string();
    format!(
        "Page cache {}: {} of it in files that these processes use, {} in others.",
        or_absent(shown.cached_bytes, size),
        Bytes(shown.found_bytes),
        or_absent(shown.unseen_bytes, size)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Page;
    use place::workingset::restore::{MemoryKind, PlannedSource};

    fn shown() -> WorkingSetReport {
        let process = ProcessMemory {
            pid: 7,
            name: "victim".to_owned(),
            group: Some("/app".to_owned()),
            resident_bytes: 16 << 20,
            swapped_bytes: 48 << 20,
            shared_swapped_bytes: None,
            file_cached_bytes: Some(0),
            file_absent_bytes: Some(4096),
        };
        let part = PlannedSource {
            kind: MemoryKind::Anonymous,
            source: "/dev/sdb2".to_owned(),
            bytes: 1 << 30,
            runs: 1234,
            estimated_ns: Some(2_100_000_000),
            by_demand_ns: Some(600_000_000_000),
            skipped: None,
        };
        let skipped = PlannedSource {
            source: "/dev/zram0".to_owned(),
            skipped: Some("compressed in memory".to_owned()),
            ..part.clone()
        };
        WorkingSetReport {
            processes: vec![process; 22],
            parts: vec![part, skipped],
            cached_bytes: Some(9 << 30),
            found_bytes: 8 << 30,
            unseen_bytes: Some(1 << 30),
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn the_page_names_the_largest_and_what_a_restore_would_read() {
        for width in [40, 80, 140] {
            let text = shown().page(Page::plain(width));
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for expected in [
                "22 processes, 352 MiB in RAM, 1.03 GiB in swap",
                "2 processes more have less",
                "Left out: 1 GiB anonymous in /dev/zram0: compressed in memory",
                "Page cache 9 GiB: 8 GiB of it in files that these processes use, 1 GiB in others.",
                "a note",
            ] {
                assert!(words.contains(expected), "{expected}: {text}");
            }
            assert_eq!(text.matches("victim").count(), MOST_LINES);
        }
        let text = shown().page(Page::plain(80));
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("anonymous 1 GiB /dev/sdb2 1,234 2.1 s 10 min"), "{text}");
        // What cannot be seen is a dash, and nothing is a number.
        assert!(words.contains("victim 7 16 MiB 48 MiB - 0 B 4 KiB"), "{text}");
    }
}
