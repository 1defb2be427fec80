//! The page of `recovery-2012`: today's times beside those of 2012, what they prove, and where the
//! time went. Pure.

use crate::output::Page;
use crate::output::figure::{self, Digits, or_absent};
use crate::output::prose::{heading, long_time, sentence, shell_word};
use crate::output::style::Tone;
use crate::output::survey::Detail;
use crate::output::table::{Cell, Column, Table};
use crate::output::verdict::{self, Setting};
use lab::description::{Experiment, Figure, Item};
use lab::recovery::summary::Summary;
use lab::recovery::{RecoveryOutcome, Trial};
use model::Bytes;
use std::collections::BTreeSet;
use std::path::Path;

impl super::OutcomePage for RecoveryOutcome {
    fn page(&self, experiment: &Experiment, out: Option<&Path>, page: Page) -> String {
        whole(experiment, self, out.unwrap_or(Path::new("")), page)
    }

    fn shortfall(&self) -> Option<String> {
        let wrong: u64 = self.trials.iter().map(|trial| trial.wrong).sum();
        if wrong > 0 {
            return Some(format!(
                "{wrong} answers were not what was written: do not trust this memory or disk"
            ));
        }
        if let Some(why) = self.failed.first() {
            return Some(why.clone());
        }
        sys::interrupt::requested()
            .then(|| "interrupted: this is what was done until then".to_owned())
    }
}

/// The figures, and where the time went.
fn whole(experiment: &Experiment, outcome: &RecoveryOutcome, out: &Path, page: Page) -> String {
    let mut text = heading(page, &title(outcome));
    for application in applications(outcome) {
        text.push_str(&heading(page, application));
        text.push_str(&figures(experiment, outcome, application).render(page, 1));
        text.extend(judgements(outcome, application).iter().map(|line| sentence(page, line)));
    }
    for summary in &outcome.summaries {
        text.extend(middle(outcome, summary).map(|trial| bar(trial, out, page)));
    }
    let mut notes =
        outcome.skipped.iter().map(|why| format!("Left out: {why}.")).collect::<Vec<_>>();
    let of_trials: BTreeSet<&String> = outcome.trials.iter().flat_map(|it| &it.notes).collect();
    notes.extend(of_trials.into_iter().cloned());
    let wrong: u64 = outcome.trials.iter().map(|trial| trial.wrong).sum();
    notes.push(match wrong {
        0 => "Every answer and all content were what was written.".to_owned(),
        _ => format!("{wrong} answers were NOT what was written."),
    });
    notes.push(format!("Kept in {}: result.json and the recordings.", out.display()));
    text.extend(notes.iter().map(|line| sentence(page, line)));
    text
}

fn title(outcome: &RecoveryOutcome) -> String {
    let bytes = |bytes| Bytes(bytes).to_string();
    let within = if outcome.whole_machine {
        format!("the whole machine, {}", bytes(outcome.memory_bytes))
    } else {
        format!("a group of {}", bytes(outcome.memory_bytes))
    };
    let disk = or_absent(outcome.disk.as_deref(), str::to_owned);
    format!(
        "terrace lab {}: in {within}, working set {}, two hogs of {}, {} times, disk {disk}",
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

/// One line for each way, those of the original that are missing here after them.
fn figures(experiment: &Experiment, outcome: &RecoveryOutcome, application: &str) -> Table {
    let mut table = Table::new(vec![
        Column::words("way"),
        Column::numbers("2012"),
        Column::numbers("as fast as before"),
        Column::numbers("shortest").rank(2),
        Column::numbers("longest").rank(2),
        Column::numbers("disk quiet"),
        Column::numbers("pushed out").rank(1),
        Column::numbers("runs").rank(3),
    ]);
    let then = |figure: Option<&Figure>| or_absent(figure, Figure::to_string);
    let ways = experiment.items("ways");
    let time = |ns: Option<u64>| or_absent(ns, long_time);
    let own = outcome.summaries.iter().filter(|one| one.application == application);
    for summary in own {
        let way = ways.iter().find(|way| way.id == summary.way);
        let original = way.and_then(|way| way.original.as_deref());
        let lost = middle(outcome, summary).map(|trial| trial.pushed_out_bytes);
        table.row(vec![
            summary.way.as_str().into(),
            then(original.and_then(|name| experiment.figure(name))).into(),
            time(summary.median_ns).into(),
            time(summary.shortest_ns).into(),
            time(summary.longest_ns).into(),
            time(summary.normal_disk_ns).into(),
            or_absent(lost, |bytes| Bytes(bytes).to_string()).into(),
            format!("{} of {}", summary.recovered, summary.runs).into(),
        ]);
    }
    let repeats = |figure: &Figure| {
        let own = |way: &Item| way.original.as_ref() == Some(&figure.what);
        ways.iter().any(own)
    };
    let figures = experiment.original.figures.iter();
    for missing in figures.filter(|figure| !repeats(figure)) {
        let what = Cell::toned(missing.what.as_str(), Tone::Dim);
        table.row(vec![what, then(Some(missing)).into(), figure::ABSENT.into()]);
    }
    table
}

/// What the runs prove.
fn judgements(outcome: &RecoveryOutcome, application: &str) -> Vec<String> {
    let own = outcome.summaries.iter().filter(|one| one.application == application);
    own.filter_map(|summary| {
        let (proven, way) = (summary.proven?, &summary.way);
        let times = summary.times_faster.map(|times| {
            if times >= 1.0 {
                format!("{} times faster", figure::number(times, Digits::Three))
            } else {
                format!("{} times slower", figure::number(1.0 / times, Digits::Three))
            }
        });
        let times =
            times.unwrap_or_else(|| "not comparable (a median is beyond the limit)".to_owned());
        let doubt = match (proven, summary.runs < 4) {
            (true, _) => "",
            (false, true) => "; unproven: a difference takes 4 runs of each",
            (false, false) => "; unproven: the runs overlap",
        };
        Some(format!("{way} beside nothing: {times}{doubt}."))
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

fn bar(trial: &Trial, out: &Path, page: Page) -> String {
    let file = shell_word(&out.join(&trial.recording).display().to_string());
    let setting = Setting {
        title: format!("{}, {}", trial.application, trial.way),
        root: true,
        redacted: false,
        details: format!("terrace explain {file} --details"),
    };
    verdict::page(&trial.explanation, &setting, Detail::Brief, page)
}
