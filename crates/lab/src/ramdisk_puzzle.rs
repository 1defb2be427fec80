//! The driver of `ramdisk-puzzle`: requests, three times the same size, then size after size, each
//! judged by the counters that the original lacks; and the original judged by its figures alone.

mod plan;

use crate::description::Experiment;
use crate::host::Host;
use crate::{Error, Result};
use explain::ramdisk::course::{self, Course, TimedWrite};
use machine::Root;
use measure::pressure::PageContent;
use measure::storage;
use measure::storage::iolat::{DEFAULT_REGION, IolatPlan};
use measure::storage::seqio::{PhaseName, SeqPhase, SeqPlan};
use measure::{Budget, ramdisk};
use model::Bytes;
use model::ramdisk::{RamDiskObservation, RamDiskVerdict, Round};
pub use plan::{RamDiskPuzzleOptions, RamDiskPuzzlePlan};
use plan::{Size, TimedPlace};
use record::capture::BackgroundRecording;
use serde::Serialize;
use std::time::Duration;

/// Requests whose time is taken in each place.
const REQUESTS: u64 = 200;
/// How often the same size is written and read back.
const REPEATS: u32 = 3;
/// The unit of the original's sizes.
const GB: u64 = 1_000_000_000;

/// What came of it; parts that were not reached are empty.
#[derive(Debug, Default, Serialize)]
pub struct RamDiskPuzzleOutcome {
    /// The experiment's name.
    pub experiment: String,
    /// What stands for the original's 1 GB.
    pub unit_bytes: u64,
    /// What the original's figures say.
    pub original: Course,
    /// What today's say, of what does not compress.
    pub today: Course,
    /// Requests.
    pub requests: Vec<Requests>,
    /// Two units, again and again.
    pub repeats: Vec<Repeat>,
    /// Every size and content.
    pub written: Vec<Written>,
    /// What was left out, each with its reason.
    pub notes: Vec<String>,
}

/// The times of single requests.
#[derive(Debug, Serialize)]
pub struct Requests {
    /// `RAM disk` or `disk`.
    pub place: &'static str,
    /// The shortest.
    pub min_ns: Option<f64>,
    /// The mean.
    pub mean_ns: Option<f64>,
    /// The longest.
    pub max_ns: Option<f64>,
}

/// Two units written and read back.
#[derive(Debug, Serialize)]
pub struct Repeat {
    /// `RAM disk` or `disk`.
    pub place: &'static str,
    /// From 1.
    pub run: u32,
    /// The rate of writing.
    pub write_bytes_per_s: Option<f64>,
    /// From the page cache, or from the RAM disk, which is one.
    pub read_bytes_per_s: Option<f64>,
}

/// One size.
#[derive(Debug, Serialize)]
pub struct Written {
    /// What was written.
    pub content: PageContent,
    /// As the original calls it: 4 for 4 GB.
    pub units: u64,
    /// The bytes that were written.
    pub bytes: u64,
    /// The time of all writes, as new memory.
    pub ns: u64,
    /// Why; of zeros, which are written once, nothing is said.
    pub judged: Option<RamDiskVerdict>,
    /// The figures.
    pub seen: RamDiskObservation,
}

/// Carries out the plan; each size is recorded if the outcome is kept. `progress` is given each
/// step's name.
///
/// # Errors
/// When nothing could be measured, Ctrl-C included, or a recording fails.
pub fn run(
    host: &Host,
    experiment: &Experiment,
    plan: &RamDiskPuzzlePlan,
    progress: &mut dyn FnMut(&str),
) -> Result<RamDiskPuzzleOutcome> {
    let root = &Root::system();
    let mut outcome = RamDiskPuzzleOutcome {
        experiment: experiment.name.clone(),
        unit_bytes: plan.options.unit.0,
        original: original(experiment),
        notes: plan.notes.clone(),
        ..RamDiskPuzzleOutcome::default()
    };
    for place in &plan.places {
        beside(root, plan, place, &mut outcome, progress);
    }
    for content in [PageContent::Random, PageContent::Zero] {
        for size in &plan.sizes {
            if sys::interrupt::requested() {
                break;
            }
            progress(&format!("{} of {}", Bytes(size.plan.bytes), name(content)));
            let written = write(host, root, plan, size, content)?;
            let cut = written.bytes < size.plan.bytes;
            outcome.written.push(written);
            if cut {
                outcome.notes.push(format!(
                    "{}: ended early, larger sizes were not tried",
                    Bytes(size.plan.bytes)
                ));
                break;
            }
        }
    }
    if outcome.written.is_empty() && outcome.requests.is_empty() {
        let text = "stopped before anything was measured";
        return Err(Error::failed(text));
    }
    outcome.today = course::course(&steps(&outcome.written));
    Ok(outcome)
}

/// What the recordings and the notes call it.
pub fn name(content: PageContent) -> &'static str {
    match content {
        PageContent::Zero => "zeros",
        PageContent::Random | PageContent::Text => "random",
    }
}

fn steps(written: &[Written]) -> Vec<TimedWrite> {
    let whole = written
        .iter()
        .filter(|one| one.content == PageContent::Random && one.bytes == one.seen.asked_bytes);
    whole.map(|one| TimedWrite { bytes: one.bytes, ns: one.ns }).collect()
}

/// The published sizes and times.
fn original(experiment: &Experiment) -> Course {
    let sizes = experiment.items("sizes").iter();
    let steps = sizes.filter_map(|size| {
        let figure = experiment.figure(size.original.as_deref()?)?;
        Some(TimedWrite { bytes: size.own.as_u64()? * GB, ns: (figure.value * 1e9) as u64 })
    });
    course::course(&steps.collect::<Vec<_>>())
}

/// Requests, and two units again and again, at one place. What fails is noted: the sizes can do
/// without it.
fn beside(
    root: &Root,
    plan: &RamDiskPuzzlePlan,
    place: &TimedPlace,
    outcome: &mut RamDiskPuzzleOutcome,
    progress: &mut dyn FnMut(&str),
) {
    progress(&format!("requests on the {}", place.name));
    let requests = IolatPlan {
        count: Some(REQUESTS),
        interval: Duration::ZERO,
        // No more than what was found to be there.
        region: Some(plan.repeated().min(DEFAULT_REGION)),
        ..IolatPlan::default()
    };
    let budget = Budget::of(plan.options.limit);
    match storage::iolat(&place.directory, &requests, &budget, root) {
        Ok(report) => outcome.requests.push(Requests {
            place: place.name,
            min_ns: report.requests.latency.min_ns,
            mean_ns: report.requests.latency.mean_ns,
            max_ns: report.requests.latency.max_ns,
        }),
        Err(error) => outcome.notes.push(format!("{}: {error}", place.name)),
    }
    for run in 1..=REPEATS {
        if sys::interrupt::requested() {
            return;
        }
        progress(&format!("two units on the {}, run {run}", place.name));
        match repeat(root, plan, place, run) {
            Ok(repeat) => outcome.repeats.push(repeat),
            Err(error) => return outcome.notes.push(format!("{}: {error}", place.name)),
        }
    }
}

fn repeat(
    root: &Root,
    plan: &RamDiskPuzzlePlan,
    place: &TimedPlace,
    run: u32,
) -> measure::Result<Repeat> {
    let two = SeqPlan { size: plan.repeated(), ..SeqPlan::default() };
    let report = storage::seqio(&place.directory, &two, &Budget::of(plan.options.limit), root)?;
    let rate = |name: PhaseName| {
        let is_it = |phase: &&SeqPhase| phase.name == name && phase.complete;
        report.phases.iter().find(is_it)?.bytes_per_s
    };
    Ok(Repeat {
        place: place.name,
        run,
        write_bytes_per_s: rate(PhaseName::Write),
        read_bytes_per_s: rate(PhaseName::CachedRead),
    })
}

/// One size of one content, recorded where results are kept.
fn write(
    host: &Host,
    root: &Root,
    plan: &RamDiskPuzzlePlan,
    size: &Size,
    content: PageContent,
) -> Result<Written> {
    let rounds = match content {
        PageContent::Random => vec![Round::First, Round::Again, Round::Rewrite],
        PageContent::Zero | PageContent::Text => vec![Round::First],
    };
    let judges = rounds.len() > 1;
    let writing = ramdisk::RamDiskPlan { content, rounds, repeats: 0, ..size.plan.clone() };
    let file_name = format!("{}-{}.trec", name(content), size.units);
    let file = plan.options.out.as_deref().map(|out| out.join(file_name));
    let background = host.record(file.as_deref())?;
    let measured = ramdisk::measure(root, &writing, &mut |what| {
        if let Some(background) = &background {
            background.mark(what);
        }
    });
    background.map_or(Ok(()), BackgroundRecording::finish)?;
    let seen = measured?;
    let first = seen.pass(Round::First);
    Ok(Written {
        content,
        units: size.units,
        bytes: first.map_or(0, |pass| pass.bytes),
        ns: first.map_or(0, |pass| pass.touch_ns),
        judged: judges.then(|| explain::ramdisk::judge(&seen)),
        seen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_figures_have_their_knee_after_two_gigabytes() {
        let course = original(&crate::description::named("ramdisk-puzzle").unwrap());
        assert_eq!(course.marginals.len(), 4);
        assert_eq!(course.knee.unwrap().beyond_bytes, 2 * GB);
    }
}
