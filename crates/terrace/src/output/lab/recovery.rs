//! The page of `recovery-2012`: today's times beside those of 2012, what they prove, and where the
//! time went. Pure.

use crate::output::Page;
use crate::output::figure::{self, ABSENT, Digits, or_absent};
use crate::output::prose::{PageText, long_time, shell_word};
use crate::output::report::interrupted_after;
use crate::output::style::Tone;
use crate::output::survey::Detail;
use crate::output::table::{Cell, Table};
use crate::output::verdict::{self, VerdictSetting};
use lab::description::{Experiment, Figure, Item};
use lab::recovery::summary::Summary;
use lab::recovery::{RecoveryOutcome, Trial};
use model::Bytes;
use std::collections::BTreeSet;
use std::path::Path;

impl super::OutcomePage for RecoveryOutcome {
    fn write_page(&self, experiment: &Experiment, directory: Option<&Path>, out: &mut PageText) {
        let directory = directory.unwrap_or(Path::new(""));
        out.heading(&title(self));
        for application in applications(self) {
            out.heading(application);
            out.table(&figures(experiment, self, application), 1);
            out.sentences(judgements(self, application));
            out.sentences(from_flash(self, application));
        }
        for trial in self.summaries.iter().filter_map(|summary| middle(self, summary)) {
            out.lines(|page| bar(trial, directory, page));
        }
        out.sentences(self.skipped.iter().map(|why| format!("Left out: {why}.")));
        let of_trials: BTreeSet<&String> = self.trials.iter().flat_map(|it| &it.notes).collect();
        out.sentences(of_trials);
        match wrong_answers(self) {
            0 => out.sentence("Every answer and all content were what was written."),
            wrong => out.sentence(&format!("{wrong} answers were NOT what was written.")),
        }
        let directory = directory.display();
        out.sentence(&format!("Kept in {directory}: result.json and the recordings."));
    }

    fn shortfall(&self) -> Option<String> {
        let wrong = wrong_answers(self);
        if wrong > 0 {
            return Some(format!(
                "{wrong} answers were not what was written: do not trust this memory or disk"
            ));
        }
        let failed = self.failed.first().cloned();
        failed.or_else(|| interrupted_after("done", sys::interrupt::requested()))
    }
}

fn wrong_answers(outcome: &RecoveryOutcome) -> u64 {
    outcome.trials.iter().map(|trial| trial.wrong).sum()
}

fn title(outcome: &RecoveryOutcome) -> String {
    let bytes = |bytes| Bytes(bytes).to_string();
    let within = if outcome.whole_machine {
        format!("the whole machine, {}", bytes(outcome.memory_bytes))
    } else {
        format!("a group of {}", bytes(outcome.memory_bytes))
    };
    let disk = or_absent(outcome.disk.as_deref(), str::to_owned);
    let flash = outcome.flash.as_ref().map_or_else(String::new, |name| format!(", flash {name}"));
    format!(
        "terrace lab {}: in {within}, working set {}, two hogs of {}, {} times, disk {disk}{flash}",
        outcome.experiment,
        bytes(outcome.working_set_bytes),
        bytes(outcome.hog_bytes),
        outcome.rounds,
    )
}

fn applications(outcome: &RecoveryOutcome) -> Vec<&str> {
    let mut all: Vec<&str> = outcome.summaries.iter().map(|one| one.application.as_str()).collect();
    all.dedup();
    all
}

/// A row of the figures: a way that was repeated, or what the original alone has.
#[derive(Clone, Copy)]
enum FigureRow<'a> {
    Repeated(&'a Summary),
    Missing(&'a Figure),
}

/// One line for each way, those of the original that are missing here after them.
fn figures<'a>(
    experiment: &'a Experiment,
    outcome: &'a RecoveryOutcome,
    application: &'a str,
) -> Table<FigureRow<'a>> {
    use FigureRow::{Missing, Repeated};
    let ways = experiment.items("ways");
    let own = outcome.summaries.iter().filter(|one| one.application == application);
    let is_missing = |figure: &&Figure| {
        let is_tried = |way: &Item| own.clone().any(|summary| summary.way == way.id);
        let mut repeating = ways.iter().filter(|way| way.original.as_ref() == Some(&figure.what));
        !repeating.any(is_tried)
    };
    let missing = experiment.original.figures.iter().filter(is_missing);
    let name = |row| match row {
        Repeated(summary) => Cell::from(summary.way.as_str()),
        Missing(figure) => Cell::toned(figure.what.as_str(), Tone::Dim),
    };
    let then = |row| {
        let figure = match row {
            Repeated(summary) => {
                let way = ways.iter().find(|way| way.id == summary.way);
                way.and_then(|way| experiment.figure(way.original.as_deref()?))
            }
            Missing(figure) => Some(figure),
        };
        or_absent(figure, Figure::to_string)
    };
    let now = |row, of: &dyn Fn(&Summary) -> String| match row {
        Repeated(summary) => of(summary),
        Missing(_) => String::new(),
    };
    let time = |row, of: fn(&Summary) -> Option<u64>| {
        now(row, &|summary| or_absent(of(summary), long_time))
    };
    let evicted = |summary: &Summary| {
        let trial = middle(outcome, summary);
        or_absent(trial, |trial| Bytes(trial.pushed_out_bytes).to_string())
    };
    let fast_again = |row| match row {
        Missing(_) => ABSENT.to_owned(),
        Repeated(summary) => or_absent(summary.median_ns, long_time),
    };
    Table::of(own.clone().map(Repeated).chain(missing.map(Missing)))
        .words("way", 0, name)
        .numbers("2012", 0, then)
        .numbers("as fast as before", 0, fast_again)
        .numbers("shortest", 2, |row| time(row, |summary| summary.shortest_ns))
        .numbers("longest", 2, |row| time(row, |summary| summary.longest_ns))
        .numbers("disk quiet", 0, |row| time(row, |summary| summary.normal_disk_ns))
        .numbers("pushed out", 1, |row| now(row, &evicted))
        .numbers("runs", 3, |row| {
            now(row, &|summary| format!("{} of {}", summary.recovered, summary.runs))
        })
}

/// What the runs prove.
fn judgements(outcome: &RecoveryOutcome, application: &str) -> Vec<String> {
    let own = outcome.summaries.iter().filter(|one| one.application == application);
    own.filter_map(|summary| {
        let (proven, way) = (summary.proven?, &summary.way);
        let number = |times| figure::number(times, Digits::Three);
        let times = match summary.times_faster {
            Some(times) if times >= 1.0 => format!("{} times faster", number(times)),
            Some(times) => format!("{} times slower", number(1.0 / times)),
            None => "not comparable (a median is beyond the limit)".to_owned(),
        };
        let doubt = match (proven, summary.runs < 4) {
            (true, _) => "",
            (false, true) => "; unproven: a difference takes 4 runs of each",
            (false, false) => "; unproven: the runs overlap",
        };
        Some(format!("{way} beside nothing: {times}{doubt}."))
    })
    .collect()
}

/// What a flash cache gave in the run in the middle.
fn from_flash(outcome: &RecoveryOutcome, application: &str) -> Vec<String> {
    let own = outcome.summaries.iter().filter(|one| one.application == application);
    own.filter_map(|summary| {
        let flash = middle(outcome, summary)?.flash.as_ref()?;
        let share = figure::percent(flash.hit_bytes as f64 / flash.read_bytes.max(1) as f64);
        Some(format!(
            "{}: the cache held {} when the hogs were closed, and answered {share} of the {} that \
             were read then.",
            summary.way,
            Bytes(flash.cached_bytes),
            Bytes(flash.read_bytes)
        ))
    })
    .collect()
}

/// The run in the middle of a way's, which stands for all of them.
fn middle<'o>(outcome: &'o RecoveryOutcome, summary: &Summary) -> Option<&'o Trial> {
    let is_own =
        |trial: &&Trial| trial.application == summary.application && trial.way == summary.way;
    let mut own: Vec<&Trial> = outcome.trials.iter().filter(is_own).collect();
    own.sort_by_key(|trial| trial.recovered_ns.unwrap_or(u64::MAX));
    own.get(own.len() / 2).copied()
}

fn bar(trial: &Trial, directory: &Path, page: Page) -> String {
    let file = shell_word(&directory.join(&trial.recording).display().to_string());
    let setting = VerdictSetting {
        file: String::new(),
        title: format!("{}, {}", trial.application, trial.way),
        root: true,
        redacted: false,
        details: format!("terrace explain {file} --details"),
    };
    verdict::page(&trial.explanation, &setting, Detail::Brief, page)
}
