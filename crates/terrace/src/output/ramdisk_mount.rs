//! What `ramdisk create`, `list`, `status`, `grow` and `remove` say: first what a crash would cost
//! or what is there now, then the figures. Pure.

use super::clean::escaped;
use super::copy::loss_words;
use super::figure;
use super::prose::{PageText, commands_tied, count};
use super::ramdisk_store::{entries, path_words, seconds, write_failures};
use super::report::Report;
use model::Bytes;
use place::ramdisk::record::{RamdiskRecord, RamdiskState};
use place::ramdisk::{
    RamdiskCreateReport, RamdiskGrowReport, RamdiskGrowth, RamdiskKind, RamdiskRemoveReport,
    RamdiskStatus,
};
use serde::Serialize;

/// A RAM disk that was made.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct CreatePage(pub RamdiskCreateReport);

/// A RAM disk of another size.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct GrowPage(pub RamdiskGrowReport);

/// A RAM disk that was removed.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct RemovePage(pub RamdiskRemoveReport);

/// The RAM disks that are known here.
#[derive(Debug, Serialize)]
pub struct RamdisksPage {
    /// They, by mount point.
    pub ramdisks: Vec<RamdiskStatus>,
}

/// The state of one or all of them.
#[derive(Debug, Serialize)]
pub struct StatusPage {
    /// They, by mount point.
    pub ramdisks: Vec<RamdiskStatus>,
}

impl Report for CreatePage {
    const COMMAND: &'static str = "ramdisk create";
    const SCHEMA: &'static str = "terrace.ramdisk-create/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        let Self(made) = self;
        if !made.is_complete {
            return;
        }
        let ramdisk = &made.ramdisk;
        let (point, size) = (path_words(&ramdisk.mount_point), ramdisk.options.size);
        let kind = match ramdisk.kind {
            RamdiskKind::Tmpfs => "a RAM disk",
            RamdiskKind::Atomic(_) => "an atomic RAM disk",
        };
        match &made.restored {
            None => out.sentence(&format!("{point} is {kind} of {size}, and empty")),
            Some(restored) => {
                out.sentence(&format!(
                    "{point} is {kind} of {size} with all of generation {}: {} with {}, in {}",
                    restored.generation,
                    entries(restored.entries),
                    Bytes(restored.bytes),
                    seconds(restored.seconds),
                ));
                out.notes(restored.losses.iter().map(|loss| loss_words(loss, "what was saved")));
                write_failures(&restored.failures, restored.failure_count, "not restored", out);
            }
        }
        out.note(&commands_tied(&cost_of_no_store(ramdisk)));
        if made.touched_bytes > 0 {
            let touched = Bytes(made.touched_bytes);
            out.note(&format!("{touched} of memory were touched, and are backed by the host now"));
        }
        out.notes(made.notes.iter().map(|note| escaped(note)));
    }

    fn shortfall(&self) -> Option<String> {
        let Self(made) = self;
        if !made.is_complete {
            return Some("interrupted: nothing is mounted".to_owned());
        }
        let failed = made.restored.as_ref().map_or(0, |restored| restored.failure_count);
        (failed > 0).then(|| format!("{} not restored, the rest is", entries(failed)))
    }
}

/// What becomes of a RAM disk at a restart, and the command that saves it.
fn cost_of_no_store(ramdisk: &RamdiskRecord) -> String {
    let point = path_words(&ramdisk.mount_point);
    match &ramdisk.persist {
        Some(persist) => format!(
            "what changes on it from now on is lost by a restart until it is saved: terrace ramdisk \
             save {point} --persist {}",
            path_words(&persist.store)
        ),
        None => {
            "all that is written to it is lost by a restart: it has no store (--persist)".to_owned()
        }
    }
}

impl Report for GrowPage {
    const COMMAND: &'static str = "ramdisk grow";
    const SCHEMA: &'static str = "terrace.ramdisk-grow/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        let Self(grown) = self;
        out.sentence(&format!(
            "{} holds up to {} now, {} before; {} are in use",
            path_words(&grown.ramdisk.mount_point),
            grown.ramdisk.options.size,
            grown.size_before,
            Bytes(grown.used_bytes)
        ));
    }

    fn shortfall(&self) -> Option<String> {
        None
    }
}

impl Report for RemovePage {
    const COMMAND: &'static str = "ramdisk remove";
    const SCHEMA: &'static str = "terrace.ramdisk-remove/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        let Self(removed) = self;
        if !removed.is_complete {
            return;
        }
        let (point, used) = (path_words(&removed.ramdisk.mount_point), Bytes(removed.used_bytes));
        out.sentence(&match (removed.state, &removed.compared) {
            (RamdiskState::Unmounted, _) => {
                format!("{point} had been unmounted by another program, and is forgotten")
            }
            (RamdiskState::Replaced, _) => {
                format!("{point} is forgotten; what is mounted there now was not touched")
            }
            (RamdiskState::Mounted, Some(compared)) if compared.generation > 0 => format!(
                "{point} is unmounted, {used} of memory are free; generation {} has all of it",
                compared.generation
            ),
            (RamdiskState::Mounted, Some(_)) => format!("{point} is unmounted; it was empty"),
            (RamdiskState::Mounted, None) if removed.used_bytes == 0 => {
                format!("{point} is unmounted; it was empty")
            }
            (RamdiskState::Mounted, None) => {
                format!("{point} is unmounted, and what was not saved of its {used} is given up")
            }
        });
    }

    fn shortfall(&self) -> Option<String> {
        let is_interrupted = !self.0.is_complete;
        is_interrupted.then(|| "interrupted: it is as it was".to_owned())
    }
}

impl Report for RamdisksPage {
    const COMMAND: &'static str = "ramdisk list";
    const SCHEMA: &'static str = "terrace.ramdisks/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        out.sentence(&match self.ramdisks.len() as u64 {
            0 => "no RAM disk is known here; `terrace ramdisk create` makes one".to_owned(),
            1 => "one RAM disk is known here".to_owned(),
            more => format!("{} RAM disks are known here", count(more)),
        });
        out.notes(self.ramdisks.iter().map(|status| {
            let store = status.ramdisk.persist.as_ref();
            let saved = match (store, status.age_seconds) {
                (None, _) => "saved nowhere".to_owned(),
                (Some(_), Some(age)) => format!("last saved {} ago", age_words(age)),
                (Some(_), None) => "never saved, or being saved now".to_owned(),
            };
            let store = store.map(|persist| format!(" (store {})", path_words(&persist.store)));
            let point = path_words(&status.ramdisk.mount_point);
            format!("{point}: {}; {saved}{}", use_words(status), store.unwrap_or_default())
        }));
    }

    fn shortfall(&self) -> Option<String> {
        missing(&self.ramdisks)
    }
}

impl Report for StatusPage {
    const COMMAND: &'static str = "ramdisk status";
    const SCHEMA: &'static str = "terrace.ramdisk-status/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        if self.ramdisks.is_empty() {
            out.sentence("no RAM disk is known here; `terrace ramdisk create` makes one");
        }
        for status in &self.ramdisks {
            out.sentence(&cost_of_crash(status));
            if status.state == RamdiskState::Mounted {
                out.note(&use_words(status));
                out.note(&commands_tied(&swap_words(status)));
                out.notes(compression_words(status));
                out.notes(growth_words(status));
                out.notes(status.written_today_bytes.map(|bytes| {
                    let bytes = Bytes(bytes);
                    format!("its store wrote {bytes} to its disk today (UTC)")
                }));
            }
            out.notes(status.not_compared.as_deref().map(escaped));
        }
    }

    fn shortfall(&self) -> Option<String> {
        missing(&self.ramdisks)
    }
}

/// What a crash now would lose, the first sentence about a RAM disk.
fn cost_of_crash(status: &RamdiskStatus) -> String {
    let point = path_words(&status.ramdisk.mount_point);
    if status.state != RamdiskState::Mounted {
        return format!("{point}: {}", use_words(status));
    }
    let used = Bytes(status.used_bytes.unwrap_or(0));
    let age = status
        .age_seconds
        .map_or_else(String::new, |age| format!(", saved {} ago", age_words(age)));
    match (&status.compared, &status.ramdisk.persist) {
        (_, None) if used.0 == 0 => format!("a crash now costs nothing: {point} is empty"),
        (_, None) => format!("a crash now costs all of {point} ({used}): it is saved nowhere"),
        (None, Some(_)) => {
            format!("what a crash now costs of {point} is not known: it could not be compared{age}")
        }
        (Some(compared), _) if compared.generation == 0 => {
            format!("a crash now costs all of {point} ({used}): it was never saved")
        }
        (Some(compared), _) if compared.is_saved() => format!(
            "a crash now costs nothing of {point}: generation {}{age}, has all of it",
            compared.generation
        ),
        (Some(compared), _) => format!(
            "a crash now costs what changed on {point} since generation {}{age}: {} not saved",
            compared.generation,
            compared.unsaved_words()
        ),
    }
}

/// What is in use, or why nothing is known.
fn use_words(status: &RamdiskStatus) -> String {
    match (status.state, status.used_bytes, status.size_bytes) {
        (RamdiskState::Unmounted, ..) => {
            let kept = status.ramdisk.kind.after_unmount();
            format!("unmounted by another program, and {kept}")
        }
        (RamdiskState::Replaced, ..) => "something else is mounted there".to_owned(),
        (RamdiskState::Mounted, Some(used), Some(size)) => {
            let share = used as f64 / size.max(1) as f64;
            let memory = status
                .memory_bytes
                .map(|bytes| format!(", which takes {} of memory, compressed", Bytes(bytes)));
            let (used, size, share) = (Bytes(used), Bytes(size), figure::percent(share));
            format!("{used} of {size} in use ({share}){}", memory.unwrap_or_default())
        }
        (RamdiskState::Mounted, ..) => "how much is in use is not known".to_owned(),
    }
}

fn swap_words(status: &RamdiskStatus) -> String {
    match status.swapped_bytes {
        Some(0) => "nothing of it is in swap".to_owned(),
        Some(bytes) => format!(
            "{} of it are in swap; reading its files brings them back; for those that processes \
             have mapped: terrace warm restore --all --only shared",
            Bytes(bytes)
        ),
        None => "how much of it is in swap is not known (needs Linux 6.5)".to_owned(),
    }
}

fn compression_words(status: &RamdiskStatus) -> Option<String> {
    let sample = status.sample?;
    let share = sample.compressed_bytes as f64 / sample.bytes.max(1) as f64;
    Some(format!(
        "a sample of {} compresses to {} of its size, by zstd",
        Bytes(sample.bytes),
        figure::percent(share)
    ))
}

fn growth_words(status: &RamdiskStatus) -> Option<String> {
    status.ramdisk.persist.as_ref()?;
    let Some(RamdiskGrowth { bytes_per_hour, seen_seconds, hours_until_full }) = status.growth
    else {
        return Some(
            "when it is full is unproven: its generations do not show that it grows".to_owned(),
        );
    };
    let rate = format!("{} an hour", Bytes(bytes_per_hour as u64));
    let seen = age_words(seen_seconds);
    Some(match hours_until_full {
        Some(hours) => {
            let when = age_words((hours * 3600.0) as i64);
            format!("full in {when} if it grows on by {rate}, as in the last {seen}")
        }
        None => format!("it grew by {rate} in the last {seen}: when it is full is far off"),
    })
}

fn missing(ramdisks: &[RamdiskStatus]) -> Option<String> {
    let gone = ramdisks.iter().filter(|status| status.state != RamdiskState::Mounted).count();
    (gone > 0).then(|| {
        let verb = if gone == 1 { "is" } else { "are" };
        format!("{gone} of {} {verb} not where it was mounted", ramdisks.len())
    })
}

/// A time in whole units, as people say it.
fn age_words(seconds: i64) -> String {
    let (number, unit) = match seconds {
        ..120 => (seconds.max(0), "s"),
        120..7200 => (seconds / 60, "min"),
        7200..172_800 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Page;
    use serde_json::json;

    /// The state of a RAM disk that was read from JSON, as a page of this width.
    fn shown(change: impl FnOnce(&mut RamdiskStatus), width: usize) -> String {
        let record = json!({
            "version": 1, "mount_point": "/mnt/x\u{1b}[31m", "created_at": 0,
            "mount": {
                "id": 1, "is_unique": true, "namespace": 1,
                "top": { "boot": "b", "device": 1, "inode": 1, "made": null },
            },
            "is_mounted": true, "made_directory": false,
            "options": {
                "size": 1 << 30, "huge": null, "noswap": false, "mode": 493, "user": 0, "group": 0,
            },
            "persist": { "store": "/var/s", "every_seconds": 300, "keep": 3 },
        });
        let mut status = RamdiskStatus {
            ramdisk: serde_json::from_value(record).unwrap(),
            state: RamdiskState::Mounted,
            size_bytes: Some(1 << 30),
            used_bytes: Some(12 << 20),
            memory_bytes: None,
            swapped_bytes: Some(0),
            sample: None,
            compared: None,
            not_compared: None,
            age_seconds: Some(240),
            written_today_bytes: None,
            growth: None,
        };
        change(&mut status);
        let page = StatusPage { ramdisks: vec![status] };
        let text = page.page(Page { width, style: crate::output::style::Style::new(false) });
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_first_sentence_says_what_a_crash_costs() {
        use place::ramdisk::Comparison;
        let compared = |changed| Comparison {
            generation: 4,
            saved_at: Some(1),
            is_complete: true,
            changed_entries: changed,
            unsaved_bytes: changed * 1024,
            ..Comparison::default()
        };
        let text = shown(|status| status.compared = Some(compared(0)), 80);
        assert!(text.starts_with("a crash now costs nothing of"), "{text}");
        assert!(text.contains("generation 4, saved 4 min ago, has all of it"), "{text}");
        let text = shown(|status| status.compared = Some(compared(3)), 40);
        assert!(text.contains("3 new or changed entries (3 KiB) are not saved"), "{text}");
        let text = shown(|status| status.ramdisk.persist = None, 80);
        assert!(text.contains("(12 MiB): it is saved nowhere"), "{text}");
        let text = shown(|status| status.state = RamdiskState::Replaced, 80);
        assert!(text.contains("something else is mounted there"), "{text}");
    }

    #[test]
    fn what_is_in_swap_names_its_remedy_and_an_unknown_end_is_unproven() {
        let text = shown(|status| status.swapped_bytes = Some(1 << 20), 80);
        let remedy = "terrace warm restore --all --only shared";
        assert!(text.contains("1 MiB of it are in swap") && text.contains(remedy), "{text}");
        assert!(text.contains("unproven"), "{text}");
        let grown = RamdiskGrowth {
            bytes_per_hour: 1048576.0,
            seen_seconds: 7200,
            hours_until_full: Some(36.5),
        };
        let text = shown(|status| status.growth = Some(grown), 80);
        assert!(text.contains("full in 36 h if it grows on by 1 MiB an hour"), "{text}");
    }
}
