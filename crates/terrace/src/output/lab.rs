//! The pages of `lab`: the list, what an experiment is, and today's figures beside the
//! original's. Pure.

use super::Page;
use super::figure::{self, Digits, or_absent};
use super::prose::long_time;
use super::style::Tone;
use super::survey::Detail;
use super::table::{Cell, Column, Table, wrap};
use super::verdict::{self, Setting};
use crate::command::lab::description::Experiment;
use crate::command::lab::recovery::summary::Summary;
use crate::command::lab::recovery::{Outcome, Trial};
use model::Bytes;
use std::path::Path;

/// The experiments, one a line.
pub fn list(all: &[Experiment], page: Page) -> String {
    let mut table = Table::new(vec![
        Column::words("experiment"),
        Column::words("its question"),
    ]);
    for one in all {
        table.row(vec![one.name.as_str().into(), one.title.as_str().into()]);
    }
    table.render(page, 0)
}

/// All about one.
pub fn describe(experiment: &Experiment, page: Page) -> String {
    let mut text = heading(&format!("{}: {}", experiment.name, experiment.title), page);
    let original = &experiment.original;
    let mut part = |title: &str, lines: &[String]| {
        text.push_str(&heading(title, page));
        text.extend(lines.iter().map(|line| item(line, page)));
    };
    let figures = original.figures.iter();
    let figures = figures.map(|figure| format!("{}: {} s", figure.way, figure.seconds));
    let published: Vec<String> = [original.machine.clone(), original.what.clone()]
        .into_iter()
        .chain(figures)
        .collect();
    part("The original", &published);
    part("What it claims", &experiment.claims);
    part("What is done", &experiment.steps);
    let named = |id: &str, about: &str| format!("{id}: {about}");
    let ways = experiment.ways.iter().map(|way| named(&way.id, &way.about));
    part("The ways", &ways.collect::<Vec<_>>());
    let applications = experiment.applications.iter();
    let applications = applications.map(|one| named(&one.id, &one.about));
    part("The applications", &applications.collect::<Vec<_>>());
    part("What cannot be repeated", &experiment.cannot);
    part(
        "What it does to this machine",
        std::slice::from_ref(&experiment.takes),
    );
    text
}

/// The figures, and where the time went.
pub fn page(experiment: &Experiment, outcome: &Outcome, out: &Path, page: Page) -> String {
    let mut text = heading(&title(outcome), page);
    for application in applications(outcome) {
        text.push_str(&heading(application, page));
        text.push_str(&figures(experiment, outcome, application).render(page, 1));
        text.extend(
            judgements(outcome, application)
                .iter()
                .map(|line| item(line, page)),
        );
    }
    for summary in &outcome.summaries {
        text.extend(middle(outcome, summary).map(|trial| bar(trial, out, page)));
    }
    let mut notes = outcome
        .skipped
        .iter()
        .map(|why| format!("Left out: {why}."))
        .collect::<Vec<_>>();
    let mut told: Vec<&String> = outcome
        .trials
        .iter()
        .flat_map(|trial| &trial.notes)
        .collect();
    told.sort();
    told.dedup();
    notes.extend(told.into_iter().cloned());
    let wrong: u64 = outcome.trials.iter().map(|trial| trial.wrong).sum();
    notes.push(match wrong {
        0 => "Every answer and all content were what was written.".to_owned(),
        _ => format!("{wrong} answers were NOT what was written."),
    });
    notes.push(format!(
        "Kept in {}: result.json and the recordings.",
        out.display()
    ));
    text.extend(notes.iter().map(|line| item(line, page)));
    text
}

fn title(outcome: &Outcome) -> String {
    let bytes = |bytes| Bytes(bytes).to_string();
    let within = match outcome.whole_machine {
        true => format!("the whole machine, {}", bytes(outcome.memory_bytes)),
        false => format!("a group of {}", bytes(outcome.memory_bytes)),
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

fn applications(outcome: &Outcome) -> Vec<&str> {
    let mut all: Vec<&str> = outcome
        .summaries
        .iter()
        .map(|one| one.application.as_str())
        .collect();
    all.dedup();
    all
}

/// One line for each way, those of the original that are missing here after them.
fn figures(experiment: &Experiment, outcome: &Outcome, application: &str) -> Table {
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
    let seconds = |s: Option<f64>| or_absent(s, |s| format!("{s} s"));
    let time = |ns: Option<u64>| or_absent(ns, long_time);
    let own = outcome
        .summaries
        .iter()
        .filter(|one| one.application == application);
    for summary in own {
        let way = experiment.ways.iter().find(|way| way.id == summary.way);
        let lost = middle(outcome, summary).map(|trial| trial.pushed_out_bytes);
        table.row(vec![
            summary.way.as_str().into(),
            seconds(way.and_then(|way| way.original_s)).into(),
            time(summary.median_ns).into(),
            time(summary.shortest_ns).into(),
            time(summary.longest_ns).into(),
            time(summary.normal_disk_ns).into(),
            or_absent(lost, |bytes| Bytes(bytes).to_string()).into(),
            format!("{} of {}", summary.recovered, summary.runs).into(),
        ]);
    }
    for missing in &experiment.missing_ways {
        let about = Cell::toned(missing.about.as_str(), Tone::Dim);
        table.row(vec![
            about,
            seconds(Some(missing.original_s)).into(),
            figure::ABSENT.into(),
        ]);
    }
    table
}

/// What the runs prove.
fn judgements(outcome: &Outcome, application: &str) -> Vec<String> {
    let own = outcome
        .summaries
        .iter()
        .filter(|one| one.application == application);
    own.filter_map(|summary| {
        let (proven, way) = (summary.proven?, &summary.way);
        let times = summary.times_faster.map(|times| match times >= 1.0 {
            true => format!("{} times faster", figure::number(times, Digits::Three)),
            false => format!(
                "{} times slower",
                figure::number(1.0 / times, Digits::Three)
            ),
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
fn middle<'o>(outcome: &'o Outcome, summary: &Summary) -> Option<&'o Trial> {
    let is_own =
        |trial: &&Trial| trial.application == summary.application && trial.way == summary.way;
    let mut own: Vec<&Trial> = outcome.trials.iter().filter(is_own).collect();
    own.sort_by_key(|trial| trial.recovered_ns.unwrap_or(u64::MAX));
    own.get(own.len() / 2).copied()
}

fn bar(trial: &Trial, out: &Path, page: Page) -> String {
    let file = super::prose::shell_word(&out.join(&trial.recording).display().to_string());
    let setting = Setting {
        title: format!("{}, {}", trial.application, trial.way),
        root: true,
        redacted: false,
        details: format!("terrace explain {file} --details"),
    };
    verdict::page(&trial.explanation, &setting, Detail::Brief, page)
}

fn heading(text: &str, page: Page) -> String {
    let lines = wrap(text, page.width, 3);
    super::prose::painted_lines(page, Tone::Strong, &lines) + "\n"
}

fn item(text: &str, page: Page) -> String {
    format!(" {}\n", wrap(text, page.width.saturating_sub(1), 3))
}
