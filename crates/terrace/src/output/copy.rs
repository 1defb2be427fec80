//! What `copy` says: its panel while it works ([`panel`]), and the receipt, which begins with what
//! is on the device. Pure.

pub mod panel;

use super::clean::escaped;
use super::figure;
use super::prose::{PageText, count, shell_word};
use super::report::Report;
use explain::transfer::{TransferLimit, TransferVerdict};
use model::Bytes;
use place::EntryFailure;
use place::copy::{
    CopyCount, CopyPlan, CopyReport, DiskTurn, EjectHolder, EjectReport, HolderUse, MountedCheck,
    TurnHolder,
};
use place::metadata::LossCount;
use serde::Serialize;
use std::path::PathBuf;

/// Failures on the page; the JSON has more.
const SHOWN_FAILURES: usize = 10;
/// A shorter wait for other copies is not named: it is the time to look for them.
const LEAST_WAIT_SECONDS: f64 = 0.05;

/// The receipt of a copy, or what one would do.
#[derive(Debug, Serialize)]
pub struct CopyPage {
    /// The copies' paths.
    pub targets: Vec<PathBuf>,
    /// What would be copied, of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<CopyCount>,
    /// What the target cannot hold, of a dry run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfit: Vec<EntryFailure>,
    /// What was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<CopyReport>,
    /// What limited the copy in its last seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Seconds for which it waited for other copies on its disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_seconds: Option<f64>,
    /// Disks on which other copies could not be waited for, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unlocked: Vec<String>,
    /// What became of the target's file system, with `--eject`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eject: Option<EjectReport>,
}

impl CopyPage {
    /// Of a dry run.
    pub fn planned(plan: &CopyPlan, planned: CopyCount, unfit: Vec<EntryFailure>) -> Self {
        Self { planned: Some(planned), unfit, ..Self::never_begun(plan) }
    }

    /// Of a copy that was stopped while it waited for its turn.
    pub fn never_begun(plan: &CopyPlan) -> Self {
        Self::to(plan.target_paths())
    }

    fn to(targets: Vec<PathBuf>) -> Self {
        let (planned, done, limit, waited_seconds) = (None, None, None, None);
        let (unfit, unlocked) = (Vec::new(), Vec::new());
        let eject = None;
        Self { targets, planned, unfit, done, limit, waited_seconds, unlocked, eject }
    }

    /// Of a copy.
    pub fn done(done: CopyReport, targets: Vec<PathBuf>, verdict: Option<TransferVerdict>) -> Self {
        let known = verdict.filter(|verdict| verdict.limit != TransferLimit::Unproven);
        let limit = known.map(|verdict| verdict.sentence);
        Self { done: Some(done), limit, ..Self::to(targets) }
    }

    /// With what its turn on the disks took.
    pub fn after(self, turn: &DiskTurn) -> Self {
        let waited = turn.waited.as_secs_f64();
        let waited_seconds = (waited >= LEAST_WAIT_SECONDS).then_some(waited);
        Self { waited_seconds, unlocked: turn.unlocked.clone(), ..self }
    }

    /// Whether the copy is on the device and has its name.
    pub fn is_complete(&self) -> bool {
        self.done.as_ref().is_some_and(|done| done.is_complete)
    }

    fn target_words(&self) -> String {
        match self.targets.as_slice() {
            [only] => escaped(&only.display().to_string()).into_owned(),
            several => format!("{} names", count(several.len() as u64)),
        }
    }
}

impl Report for CopyPage {
    const COMMAND: &'static str = "copy";
    const SCHEMA: &'static str = "terrace.copy/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        if let Some(planned) = &self.planned {
            out.sentence(&format!(
                "would copy {} with {} to {}: {} directories, {} other entries; nothing was touched",
                files(planned.files),
                Bytes(planned.bytes),
                self.target_words(),
                count(planned.directories),
                count(planned.other_entries),
            ));
        }
        out.notes(self.unfit.iter().take(SHOWN_FAILURES).map(|found| {
            let path = escaped(&found.path.display().to_string()).into_owned();
            format!("does not fit: {path}: {}", escaped(&found.reason))
        }));
        let hidden = self.unfit.len().saturating_sub(SHOWN_FAILURES);
        if hidden > 0 {
            out.note(&format!("does not fit: {hidden} more; --json names up to 1,000"));
        }
        if let Some(done) = &self.done {
            self.receipt(done, out);
            self.ejected(out);
        }
    }

    fn shortfall(&self) -> Option<String> {
        let Some(done) = &self.done else {
            let is_planned = self.planned.is_some();
            let why = "interrupted while it waited for another copy; nothing was touched";
            return (!is_planned).then(|| why.to_owned());
        };
        if !done.is_complete {
            let path = done.unfinished.as_ref().map(|path| path.display().to_string());
            return Some(format!(
                "interrupted: {} are on the device, below {}; the same command goes on, and nothing \
                 has its name yet",
                Bytes(done.bytes),
                escaped(&path.unwrap_or_default())
            ));
        }
        let left_out = (done.failure_count > 0).then(|| {
            let rest = if done.files + done.other_entries > 0 { ", the rest is" } else { "" };
            format!("{} not copied{rest}", entries(done.failure_count))
        });
        let changed = (done.differing_files > 0).then(|| {
            let of = if done.differing_files == done.failure_count { "" } else { "of them " };
            let number = files(done.differing_files);
            format!("{of}{number} did not come back as written: do not trust that disk")
        });
        let mounted = self.eject.as_ref().filter(|eject| !eject.is_unmounted).map(still_mounted);
        let differing = self.eject.as_ref().and_then(differing);
        let faults: Vec<String> =
            [left_out, changed, differing, mounted].into_iter().flatten().collect();
        (!faults.is_empty()).then(|| faults.join("; "))
    }
}

impl CopyPage {
    /// What became of the target's file system.
    fn ejected(&self, out: &mut PageText) {
        let Some(eject) = &self.eject else { return };
        if let Some(check) = &eject.verified {
            read_back(check, out);
        }
        for holder in eject.holders.iter().take(SHOWN_FAILURES) {
            out.note(&format!("held by {}", holder_words(holder)));
        }
        let hidden = eject.holders.len().saturating_sub(SHOWN_FAILURES);
        if hidden > 0 {
            out.note(&format!("held by {hidden} more; --json names up to 100"));
        }
        let (device, point) = (escaped(&eject.device), eject.mount_point.display().to_string());
        if eject.is_safe_to_unplug() {
            let point = escaped(&point);
            out.sentence(&format!("unmounted from {point}: {device} is safe to unplug"));
        } else if eject.is_unmounted {
            let used = eject.still_used.join("; ");
            out.sentence(&format!(
                "{device} is unmounted, but do not unplug its disk yet: {}",
                escaped(&used)
            ));
        }
    }

    fn receipt(&self, done: &CopyReport, out: &mut PageText) {
        let rate = figure::precise_rate(done.written_bytes as f64 / done.seconds.max(1e-9));
        let time = figure::precise_time(done.seconds * 1e9);
        let state = if done.is_complete { "on the device" } else { "not complete" };
        out.sentence(&format!(
            "{} with {} copied to {} and {state}, in {time} ({rate})",
            files(done.files),
            Bytes(done.bytes),
            self.target_words(),
        ));
        if done.written_bytes < done.bytes {
            let data = Bytes(done.written_bytes);
            out.note(&format!("{data} were moved: the rest is holes, shared data, or was done"));
        }
        if done.is_begun_anew {
            out.note("begun anew: in an earlier run the target's file system failed to write");
        }
        if done.resumed_files > 0 {
            let resumed = files(done.resumed_files);
            out.note(&format!("{resumed} were complete from an earlier run"));
        }
        if done.resumed_bytes > 0 {
            let safe = Bytes(done.resumed_bytes);
            out.note(&format!("{safe} of large files were on the device from an earlier run"));
        }
        if done.kept_files > 0 {
            out.note(&format!("{} existed and were kept", files(done.kept_files)));
        }
        if done.verified_files > 0 {
            out.note(&format!(
                "read back and equal: {} with {}",
                files(done.verified_files),
                Bytes(done.verified_bytes)
            ));
        }
        out.notes(self.limit.as_ref());
        out.notes(self.waited_seconds.map(|seconds| {
            let time = figure::precise_time(seconds * 1e9);
            format!("waited {time} before that for other copies on its disks")
        }));
        out.notes(self.unlocked.iter().map(|why| escaped(why)));
        out.notes(cache_words(done));
        let engines = done.engines.iter().map(|used| {
            format!("{}: {} with {}", used.engine, files(used.files), Bytes(used.bytes))
        });
        out.notes(engines);
        out.notes(done.refusals.iter().map(|why| format!("not used: {}", escaped(why))));
        out.notes(done.losses.iter().map(|loss| loss_words(loss, "the source")));
        for failure in done.failures.iter().take(SHOWN_FAILURES) {
            let path = escaped(&failure.path.display().to_string()).into_owned();
            out.note(&format!("not copied: {path}: {}", escaped(&failure.reason)));
        }
        let hidden = done.failure_count.saturating_sub(SHOWN_FAILURES as u64);
        if hidden > 0 {
            out.note(&format!("not copied: {} more; --json names up to 1,000", count(hidden)));
        }
        for left in &done.leftovers {
            let path = left.display().to_string();
            out.note(&format!(
                "another copy left {}: `rm -r {}` removes it if no copy is running",
                escaped(&path),
                shell_word(&path)
            ));
        }
    }
}

/// What entries lack of the metadata of `what`.
pub fn loss_words(loss: &LossCount, what: &str) -> String {
    format!("without {} of {what}: {}, {}", loss.what, entries(loss.entries), loss.reason)
}

/// What the copy did to the page cache.
fn cache_words(done: &CopyReport) -> Vec<String> {
    let (Some(before), Some(after), Some(target)) =
        (done.source_cached_before, done.source_cached_after, done.target_cached)
    else {
        return Vec::new();
    };
    vec![format!(
        "page cache: {} of the sources before, {} after, {} of the copies",
        Bytes(before),
        Bytes(after),
        Bytes(target)
    )]
}

/// What was read back when the target was unmounted.
fn read_back(check: &MountedCheck, out: &mut PageText) {
    let how = if check.is_after_mount { " by a new mount" } else { "" };
    if check.verified_files > 0 {
        out.note(&format!(
            "read back{how} and equal: {} with {}",
            files(check.verified_files),
            Bytes(check.verified_bytes)
        ));
    }
    for file in check.differing.iter().take(SHOWN_FAILURES) {
        let path = escaped(&file.path.display().to_string()).into_owned();
        out.note(&format!("not what was copied: {path}: {}", escaped(&file.reason)));
    }
    let hidden = check.differing_count.saturating_sub(SHOWN_FAILURES as u64);
    if hidden > 0 {
        out.note(&format!("not what was copied: {} more; --json names up to 1,000", count(hidden)));
    }
    // Else the last line has it.
    let others = check.reason.as_ref().filter(|_| check.differing_count > 0);
    out.notes(others.map(|why| format!("not all of it was read back: {}", escaped(why))));
}

/// What reading back found wrong, or why it could not be done.
fn differing(eject: &EjectReport) -> Option<String> {
    let check = eject.verified.as_ref()?;
    let device = escaped(&eject.device);
    if check.differing_count > 0 {
        let number = files(check.differing_count);
        let are = if check.differing_count == 1 { "is" } else { "are" };
        return Some(format!(
            "{number} on {device} {are} not what was copied, though named: do not trust that disk"
        ));
    }
    let reason = check.reason.as_ref()?;
    Some(format!("the copy is durable, but not all of it was read back: {}", escaped(reason)))
}

/// Why the file system is still mounted.
fn still_mounted(eject: &EjectReport) -> String {
    let point = eject.mount_point.display().to_string();
    let why = eject.reason.clone().unwrap_or_default();
    let holder = match eject.holders.as_slice() {
        [] => "what holds it cannot be seen".to_owned(),
        [only] => format!("held by {}", holder_words(only)),
        [first, others @ ..] => {
            format!("held by {} and {} more", holder_words(first), others.len())
        }
    };
    format!("the copy is durable, but {point} is still mounted ({why}): {holder}")
}

fn holder_words(holder: &EjectHolder) -> String {
    let what = match holder.uses {
        HolderUse::WorkingDirectory => "working directory",
        HolderUse::RootDirectory => "root directory",
        HolderUse::Program => "program",
        HolderUse::OpenFile => "open file",
        HolderUse::MappedFile => "mapped file",
        HolderUse::LoopDevice => "file behind it",
    };
    let name = escaped(&holder.name);
    let path = holder.path.display().to_string();
    let process = holder.pid.map_or(format!("{name}"), |pid| format!("process {pid} ({name})"));
    format!("{process}, {what} {}", escaped(&path))
}

/// For whom a copy waits.
pub fn turn_text(holder: &TurnHolder) -> String {
    let process = match (holder.pid, &holder.command) {
        (Some(pid), Some(command)) => format!("process {pid} ({command})"),
        (Some(pid), None) => format!("process {pid}"),
        (None, _) => "a process that cannot be seen from here".to_owned(),
    };
    let running = holder.running.map_or(String::new(), |running| {
        format!(", running for {}", figure::precise_time(running.as_nanos() as f64))
    });
    let disk = &holder.disk;
    format!("waits for {process}, which copies on {disk}{running}; --now does not wait")
}

fn files(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "file" } else { "files" })
}

fn entries(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "entry" } else { "entries" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Page;
    use place::copy::EjectMethod;

    fn ejected(differing: u64) -> (String, String) {
        let file = EntryFailure { path: "/mnt/one".into(), reason: "it differs".to_owned() };
        let check = MountedCheck {
            is_after_mount: true,
            differing: vec![file; differing as usize],
            differing_count: differing,
            reason: Some("/mnt/two: cannot read it back: input/output error".to_owned()),
            ..MountedCheck::default()
        };
        let eject = EjectReport {
            mount_point: "/mnt".into(),
            device: "/dev/sdx1".to_owned(),
            by: EjectMethod::Umount,
            is_unmounted: true,
            is_flushed: true,
            reason: None,
            verified: Some(check),
            holders: Vec::new(),
            still_used: Vec::new(),
        };
        let done = CopyReport { is_complete: true, ..CopyReport::default() };
        let copied = CopyPage::done(done, vec!["/mnt/one".into()], None);
        let page = CopyPage { eject: Some(eject), ..copied };
        (page.page(Page::plain(100)), page.shortfall().unwrap())
    }

    #[test]
    fn a_file_that_differs_does_not_hide_one_that_could_not_be_read() {
        let (page, line) = ejected(1);
        assert!(page.contains("not what was copied: /mnt/one: it differs"), "{page}");
        assert!(page.contains("not all of it was read back: /mnt/two: cannot read"), "{page}");
        assert!(line.contains("do not trust that disk"), "{line}");
    }

    #[test]
    fn a_file_that_could_not_be_read_says_nothing_against_the_disk() {
        let (page, line) = ejected(0);
        assert!(!page.contains("/mnt/two"), "{page}");
        assert!(line.contains("not all of it was read back: /mnt/two: cannot read"), "{line}");
        assert!(!line.contains("trust"), "{line}");
    }
}
