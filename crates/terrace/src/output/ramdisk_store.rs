//! What `ramdisk save`, `restore`, `extract` and `list` say: first what is safe where, then what is
//! not, by name. Pure.

use super::clean::escaped;
use super::copy::loss_words;
use super::figure;
use super::prose::{PageText, count};
use super::report::Report;
use model::Bytes;
use model::recording::date_and_time;
use place::EntryFailure;
use place::ramdisk::{Description, RamdiskRestoreReport, SaveReport};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Failures on the page; the JSON has more.
const SHOWN_FAILURES: usize = 10;

/// What a save did.
#[derive(Debug, Serialize)]
pub struct SavePage {
    /// The directory.
    pub source: PathBuf,
    /// What was saved of it.
    pub saved: SaveReport,
}

/// What a restore did.
#[derive(Debug, Serialize)]
pub struct RestorePage {
    /// The directory.
    pub target: PathBuf,
    /// When that was saved, in the time of this machine.
    pub saved: String,
    /// What was restored to it.
    pub restored: RamdiskRestoreReport,
}

/// The generations of a store.
#[derive(Debug, Serialize)]
pub struct ListPage {
    /// Its directory.
    pub store: PathBuf,
    /// Its generations, by number.
    pub generations: Vec<GenerationPage>,
}

/// A generation, with its time in words.
#[derive(Debug, Serialize)]
pub struct GenerationPage {
    /// What it holds.
    #[serde(flatten)]
    pub described: Description,
    /// When it was saved, in the time of this machine.
    pub saved: String,
}

impl GenerationPage {
    /// With its time, by a clock so far east of Greenwich.
    pub fn of(described: Description, utc_offset_s: i32) -> Self {
        let saved = date_and_time(described.saved_at, utc_offset_s);
        Self { described, saved }
    }
}

impl Report for SavePage {
    const COMMAND: &'static str = "ramdisk save";
    const SCHEMA: &'static str = "terrace.ramdisk-save/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        let saved = &self.saved;
        if !saved.is_complete {
            return;
        }
        let (source, time) = (path_words(&self.source), seconds(saved.seconds));
        let written = Bytes(saved.data_bytes + saved.manifest_bytes);
        if saved.is_new && saved.changed_entries + saved.removed_entries == 0 {
            out.sentence(&format!(
                "{source} is as it was saved: {}; generation {} notes anew how to tell that, {written} \
                 written in {time}",
                entries(saved.entries),
                saved.generation,
            ));
        } else if saved.is_new {
            out.sentence(&format!(
                "{source} is saved as generation {}: {}, of which {} are new or changed and {} are \
                 gone; {written} written in {time}",
                saved.generation,
                entries(saved.entries),
                count(saved.changed_entries),
                count(saved.removed_entries),
            ));
        } else {
            out.sentence(&format!(
                "{source} is as generation {} has it: {}, nothing written, in {time}",
                saved.generation,
                entries(saved.entries),
            ));
        }
        if saved.is_new && saved.is_snapshot {
            out.note("it is a snapshot: what a power cut would have left");
        }
        if let Some(frozen) = saved.frozen_seconds {
            out.note(&format!("its users were frozen for {}", seconds(frozen)));
        }
        if saved.unseen_processes > 0 {
            out.note(&format!(
                "what {} mapped cannot be seen: a later write through such a mapping may be missed",
                processes(saved.unseen_processes)
            ));
        }
        out.notes(saved.notes.iter().map(|note| escaped(note)));
        write_failures(&saved.failures, saved.failure_count, "not saved", out);
    }

    fn shortfall(&self) -> Option<String> {
        let saved = &self.saved;
        if !saved.is_complete {
            return Some("interrupted: the generation before is the newest".to_owned());
        }
        if let Some(why) = &saved.thaw_failure {
            return Some(format!("saved, but its users may still be frozen: {why}"));
        }
        (saved.failure_count > 0)
            .then(|| format!("{} not saved as they are, the rest is", entries(saved.failure_count)))
    }
}

impl Report for RestorePage {
    const COMMAND: &'static str = "ramdisk restore";
    const SCHEMA: &'static str = "terrace.ramdisk-restore/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        let restored = &self.restored;
        if !restored.is_complete {
            return;
        }
        out.sentence(&format!(
            "generation {} of {} is restored to {}: {} with {}, in {}",
            restored.generation,
            self.saved,
            path_words(&self.target),
            entries(restored.entries),
            Bytes(restored.bytes),
            seconds(restored.seconds),
        ));
        out.notes(restored.losses.iter().map(|loss| loss_words(loss, "what was saved")));
        write_failures(&restored.failures, restored.failure_count, "not restored", out);
        if let Some(before) = restored.generation_before.filter(|_| restored.failure_count > 0) {
            out.note(&format!(
                "an older state may be whole: `terrace ramdisk extract {before} PATH DIR --persist \
                 STORE`"
            ));
        }
    }

    fn shortfall(&self) -> Option<String> {
        let restored = &self.restored;
        if !restored.is_complete {
            return Some("interrupted: nothing was restored".to_owned());
        }
        (restored.failure_count > 0)
            .then(|| format!("{} not restored, the rest is", entries(restored.failure_count)))
    }
}

impl Report for ListPage {
    const COMMAND: &'static str = "ramdisk list";
    const SCHEMA: &'static str = "terrace.ramdisk-list/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        let whole: Vec<&GenerationPage> =
            self.generations.iter().filter(|one| one.described.damage.is_none()).collect();
        out.sentence(&match whole.last() {
            None => format!("{} has no generation that can be restored", path_words(&self.store)),
            Some(newest) => format!(
                "a crash now costs what changed since {}, when generation {} was saved",
                newest.saved, newest.described.generation
            ),
        });
        out.notes(self.generations.iter().map(|one| {
            let described = &one.described;
            match &described.damage {
                Some(why) => format!("generation {}: {}", described.generation, escaped(why)),
                None => format!(
                    "generation {} of {}: {} with {}",
                    described.generation,
                    one.saved,
                    entries(described.entries),
                    Bytes(described.bytes)
                ),
            }
        }));
    }

    fn shortfall(&self) -> Option<String> {
        let damaged = self.generations.iter().filter(|one| one.described.damage.is_some()).count();
        (damaged > 0).then(|| format!("{damaged} of the generations cannot be read"))
    }
}

pub(super) fn write_failures(failures: &[EntryFailure], all: u64, what: &str, out: &mut PageText) {
    for failure in failures.iter().take(SHOWN_FAILURES) {
        let path = path_words(&failure.path);
        out.note(&format!("{what}: {path}: {}", escaped(&failure.reason)));
    }
    let hidden = all.saturating_sub(SHOWN_FAILURES as u64);
    if hidden > 0 {
        out.note(&format!("{what}: {} more; --json names up to 1,000", count(hidden)));
    }
}

pub(super) fn entries(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "entry" } else { "entries" })
}

fn processes(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "process has" } else { "processes have" })
}

pub(super) fn path_words(path: &Path) -> String {
    escaped(&path.display().to_string()).into_owned()
}

pub(super) fn seconds(seconds: f64) -> String {
    figure::precise_time(seconds * 1e9)
}
