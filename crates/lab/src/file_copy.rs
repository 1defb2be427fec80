//! The driver of `file-copy-2008`: 69 files are copied by two copiers of 2008 and by `terrace copy`
//! as it is, one after the other, each recorded, the files out of the page cache before.
//!
//! What the recordings say of each copy is found by `explain`; what a first read of the copy costs
//! is tried after it.

mod files;
mod flash;
mod plan;

pub use flash::FlashCount;
pub use plan::{FileCopyOptions, FileCopyPlan};

use crate::description::{Experiment, Item};
use crate::held_directory::HeldDirectory;
use crate::host::Host;
use crate::{Error, Result};
use explain::recording::{Window, explain};
use machine::Root;
use model::copy_gauges::{CopyEngine, CopyGauges};
use model::explanation::CopyReport as CopyCourse;
use model::progress::Control;
use place::copy::{self, CopyReport, CopyRequest};
use record::capture::BackgroundRecording;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use sys::directory::Directory;

/// The copier that takes the engines as `terrace copy` does.
const DEFAULT: &str = "default";

/// What came of it.
#[derive(Debug, Default, Serialize)]
pub struct FileCopyOutcome {
    /// The experiment's name.
    pub experiment: String,
    /// Files that were copied each time.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether source and target are one file system.
    pub is_one_disk: bool,
    /// The copies, in their order.
    pub copies: Vec<RecordedCopy>,
    /// The page of all recordings over each other, in the directory of the results.
    pub page: Option<String>,
    /// What the figures do not mean.
    pub notes: Vec<String>,
}

/// One copy. Times count from its first byte; what is absent is unproven.
#[derive(Debug, Default, Serialize)]
pub struct RecordedCopy {
    /// `cached`, `two-thread` or `default`, which is `terrace copy` as it is.
    pub copier: String,
    /// The engines that copied.
    pub engines: Vec<String>,
    /// The file of the recording.
    pub recording: String,
    /// When the disk wrote at its full speed.
    pub full_speed_ns: Option<u64>,
    /// How long reads waited for writes.
    pub readers_waited_ns: Option<u64>,
    /// How long writes waited for reads.
    pub writers_waited_ns: Option<u64>,
    /// When it said that it was done.
    pub done_ns: Option<u64>,
    /// When all of it was on the disk.
    pub durable_ns: Option<u64>,
    /// Bytes of file pages that the kernel took back meanwhile, those of the copy itself too.
    pub cache_dropped_bytes: Option<u64>,
    /// Bytes of the sources in the page cache after it.
    pub source_cached_bytes: Option<u64>,
    /// Bytes of the copies in the page cache after it.
    pub target_cached_bytes: Option<u64>,
    /// How long a first read of all copies took.
    pub first_read_ns: Option<u64>,
    /// What of it was in the page cache.
    pub first_read_cached_bytes: Option<u64>,
    /// What a flash tier answered meanwhile.
    pub flash: Option<FlashCount>,
    /// What the recording says, in sentences.
    pub lines: Vec<String>,
    /// What was not copied or not used, with the reason.
    pub faults: Vec<String>,
}

/// Carries out the plan. `progress` is given each step's name.
///
/// # Errors
/// When not one copy was made, Ctrl-C included, or a recording fails.
pub fn run(
    host: &Host,
    experiment: &Experiment,
    plan: &FileCopyPlan,
    progress: &mut dyn FnMut(&str),
) -> Result<FileCopyOutcome> {
    let mut outcome = FileCopyOutcome {
        experiment: experiment.name.clone(),
        files: plan.files,
        bytes: plan.bytes,
        is_one_disk: plan.is_one_disk,
        notes: notes(plan),
        ..FileCopyOutcome::default()
    };
    let made = match (&plan.options.files, &plan.options.from) {
        (None, Some(from)) => Some(HeldDirectory::make(host, from, "files")?),
        _ => None,
    };
    if let Some(made) = &made {
        progress("making the files");
        files::make(made.path(), plan.bytes)?;
    }
    let source = match (&made, &plan.options.files) {
        (Some(made), _) => made.path().to_owned(),
        (None, Some(own)) => own.clone(),
        (None, None) => return Err(Error::usage("there are no files to copy")),
    };
    for item in experiment.items("copiers") {
        if sys::interrupt::requested() {
            break;
        }
        progress(&format!("copying: {}", item.id));
        let bench = CopyBench { host, plan, source: &source, progress };
        outcome.copies.extend(bench.copy(item)?);
    }
    if outcome.copies.is_empty() {
        return Err(Error::failed("interrupted before anything was measured"));
    }
    Ok(outcome)
}

fn notes(plan: &FileCopyPlan) -> Vec<String> {
    let mut notes = Vec::new();
    if plan.is_one_disk {
        notes.push(
            "source and target are one disk: reads and writes share it, in 2008 they were two"
                .to_owned(),
        );
    }
    notes.push("each copier ran once, in this order: a small difference proves nothing".to_owned());
    notes
}

impl RecordedCopy {
    /// What a person reads of its copier.
    #[must_use]
    pub fn name(&self) -> &str {
        name_of_copier(&self.copier)
    }
}

fn name_of_copier(id: &str) -> &str {
    if id == DEFAULT { "terrace copy" } else { id }
}

/// What one copy needs.
struct CopyBench<'a> {
    host: &'a Host,
    plan: &'a FileCopyPlan,
    source: &'a Path,
    progress: &'a mut dyn FnMut(&str),
}

impl CopyBench<'_> {
    /// One copy, recorded, its first read, and its removal; `None` after Ctrl-C.
    fn copy(self, item: &Item) -> Result<Option<RecordedCopy>> {
        let engine = CopyEngine::ALL.into_iter().find(|engine| engine.name() == item.id);
        let place = HeldDirectory::make(self.host, &self.plan.options.to, &item.id)?;
        let cold = files::evict(self.source)?;
        sys::file::sync_file_system(Directory::open(place.path())?.file())?;
        let root = Root::system();
        let flash_before = FlashCount::below(&root, &[self.source, place.path()]);
        let recording = format!("{}.trec", name_of_copier(&item.id).replace(' ', "-"));
        let file = self.plan.out.join(&recording);
        let target = place.path().join("copy");
        let Some(report) = self.recorded(engine, &target, &file)? else { return Ok(None) };
        let flash_after = FlashCount::below(&root, &[self.source, place.path()]);
        let course = explain(&record::file::open(&file)?, Window::default()).copy;
        // The receipt counts each file when it is copied: by now others may have taken its place.
        let source_cached_bytes = files::cached(self.source)?;
        (self.progress)(&format!("reading once: {}", item.id));
        let read = files::read_once(&target)?;
        let course = course.unwrap_or_default();
        Ok(Some(RecordedCopy {
            copier: item.id.clone(),
            engines: report.engines.iter().map(|used| used.engine.clone()).collect(),
            recording,
            flash: flash_after.zip(flash_before).map(|(after, before)| after.since(before)),
            first_read_ns: read.map(|read| read.ns),
            first_read_cached_bytes: read.and_then(|read| read.cached_bytes),
            source_cached_bytes,
            target_cached_bytes: read.and_then(|read| read.cached_bytes),
            faults: faults(&report, cold),
            ..of_course(course)
        }))
    }

    /// Copies while the machine is recorded.
    fn recorded(
        &self,
        engine: Option<CopyEngine>,
        target: &Path,
        file: &Path,
    ) -> Result<Option<CopyReport>> {
        let request = CopyRequest {
            sources: vec![self.source.to_owned()],
            target: target.to_owned(),
            engine,
            ..CopyRequest::default()
        };
        let planned = copy::plan(&request)?;
        let gauges: Arc<CopyGauges> = Arc::default();
        gauges.files_total.set(self.plan.files);
        gauges.bytes_total.set(self.plan.bytes);
        let recording = self.host.record_copy(file, &gauges)?;
        // The copiers of 2008 said "done" when their last write returned.
        let says_done_early = engine.is_some();
        let mut done = DoneMark { recording: &recording, is_made: false };
        let copied = copy::carry_out(&request, planned, &gauges, &mut || {
            let written = gauges.written_bytes.get().unwrap_or(0);
            if says_done_early && written >= self.plan.bytes {
                done.make();
            }
            Control::stop_if(sys::interrupt::requested())
        });
        done.make();
        recording.finish()?;
        let report = copied?.report;
        Ok(report.is_complete.then_some(report))
    }
}

/// The mark `done`, made once.
struct DoneMark<'a> {
    recording: &'a BackgroundRecording,
    is_made: bool,
}

impl DoneMark<'_> {
    fn make(&mut self) {
        if !std::mem::replace(&mut self.is_made, true) {
            self.recording.mark("done");
        }
    }
}

/// What the recording says.
fn of_course(course: CopyCourse) -> RecordedCopy {
    RecordedCopy {
        full_speed_ns: course.full_speed_ns,
        readers_waited_ns: course.readers_waited_ns,
        writers_waited_ns: course.writers_waited_ns,
        done_ns: course.done_ns,
        durable_ns: course.durable_ns,
        cache_dropped_bytes: course.cache_dropped_bytes,
        lines: course.lines,
        ..RecordedCopy::default()
    }
}

/// What is to be known of a copy beside its figures.
fn faults(report: &CopyReport, cold: Option<u64>) -> Vec<String> {
    let failed = report
        .failures
        .iter()
        .map(|failure| format!("not copied: {}: {}", failure.path.display(), failure.reason));
    let refused = report.refusals.iter().map(|why| format!("not used: {why}"));
    let warm = cold.filter(|bytes| *bytes > report.bytes / 100).map(|bytes| {
        format!("{} of the files could not be put out of the page cache", model::Bytes(bytes))
    });
    failed.chain(refused).chain(warm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copiers_are_engines_or_the_default() {
        let experiment = crate::description::named("file-copy-2008").unwrap();
        let items = experiment.items("copiers");
        let names: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(names, ["cached", "two-thread", "default"]);
        let engines = CopyEngine::ALL.map(CopyEngine::name);
        assert!(names[..2].iter().all(|name| engines.contains(name)));
    }
}
