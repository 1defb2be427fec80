//! The page of `ramdisk-puzzle`: what the original's figures can say, size by size beside today's,
//! and what was slow here and why. Pure.

use crate::output::Page;
use crate::output::figure::{self, Digits, or_absent};
use crate::output::prose::{heading, sentence};
use crate::output::report::interrupted;
use crate::output::table::{Cell, Column, Table};
use explain::ramdisk::course::{Course, Standing};
use lab::description::{Experiment, Figure};
use lab::ramdisk_puzzle::{RamDiskPuzzleOutcome, Written};
use measure::pressure::PageContent;
use model::Bytes;
use std::path::Path;

impl super::OutcomePage for RamDiskPuzzleOutcome {
    fn page(&self, experiment: &Experiment, out: Option<&Path>, page: Page) -> String {
        let title = format!("{}: {}", experiment.name, experiment.title);
        let mut text = heading(page, &title);
        let lines = |lines: Vec<String>| -> String {
            lines.iter().map(|line| sentence(page, line)).collect()
        };
        text.push_str(&heading(page, "What the original's own figures say"));
        text.push_str(&lines(original(&self.original)));
        text.push_str(&heading(page, "Writing, then and now"));
        text.push_str(&sizes(experiment, self).render(page, 1));
        text.push_str(&lines(today(self)));
        if !self.requests.is_empty() {
            text.push_str(&heading(page, "Requests of 4 KiB, and two units three times"));
            text.push_str(&places(experiment, self).render(page, 1));
        }
        text.push_str(&lines(self.notes.iter().map(|note| format!("{note}.")).collect()));
        let kept =
            out.map(|out| format!("Kept in {}: result.json and the recordings.", out.display()));
        text.push_str(&lines(kept.into_iter().collect()));
        text
    }

    fn shortfall(&self) -> Option<String> {
        interrupted(sys::interrupt::requested())
    }
}

/// The knee in a sentence; `None` for a series without one.
fn knee(course: &Course) -> Option<String> {
    let knee = course.knee?;
    Some(format!(
        "From {} to {} each further byte costs {} times as much as before; the slowest part is written at {}.",
        figure::decimal_size(knee.beyond_bytes as f64, Digits::Two),
        figure::decimal_size(knee.before_bytes as f64, Digits::Two),
        figure::number(knee.times, Digits::Two),
        figure::rate(knee.bytes_per_s, Digits::Two),
    ))
}

/// Which reasons fit, which are not excluded, which are.
fn original(course: &Course) -> Vec<String> {
    let mut lines: Vec<String> = knee(course).into_iter().collect();
    for (standing, title) in [
        (Standing::Fits, "Fits"),
        (Standing::NotExcluded, "Not excluded"),
        (Standing::Excluded, "Excluded"),
    ] {
        let these = course.candidates.iter().filter(|one| one.standing == standing);
        lines.extend(these.map(|one| format!("{title}: {}: {}.", one.reason.words(), one.why)));
    }
    lines.push(
        "No counter was logged, so which of those it was cannot be settled; one run of terrace ramdisk why would have."
            .to_owned(),
    );
    lines
}

fn sizes(experiment: &Experiment, outcome: &RamDiskPuzzleOutcome) -> Table {
    let mut table = Table::new(vec![
        Column::numbers("then"),
        Column::numbers("zeros then"),
        Column::numbers("now"),
        Column::numbers("zeros now"),
        Column::numbers("random now"),
        Column::words("its cause"),
    ]);
    for size in experiment.items("sizes") {
        let of = |content: PageContent| {
            let is_it = |one: &&Written| one.content == content && one.units.to_string() == size.id;
            outcome.written.iter().find(is_it)
        };
        let (zeros, random) = (of(PageContent::Zero), of(PageContent::Random));
        let published = size.original.as_deref().and_then(|what| experiment.figure(what));
        let time = |one: Option<&Written>| or_absent(one, time);
        let judged = random.and_then(|one| one.judged.as_ref());
        table.row(vec![
            Cell::from(format!("{} GB", size.id)),
            Cell::from(or_absent(published, Figure::to_string)),
            Cell::from(or_absent(random.or(zeros), |one| Bytes(one.seen.asked_bytes).to_string())),
            Cell::from(time(zeros)),
            Cell::from(time(random)),
            Cell::from(or_absent(judged, |judged| judged.verdict.words().to_owned())),
        ]);
    }
    table
}

/// Its time, and for how much of it where it was cut short.
fn time(one: &Written) -> String {
    let time = figure::time(one.ns as f64, Digits::Three);
    if one.bytes < one.seen.asked_bytes { format!("{time} for {}", Bytes(one.bytes)) } else { time }
}

/// The knee of today, and the claim about the largest size.
fn today(outcome: &RamDiskPuzzleOutcome) -> Vec<String> {
    let none = || "No knee here: a further byte costs about what the first did.".to_owned();
    let mut lines = vec![knee(&outcome.today).unwrap_or_else(none)];
    let largest = outcome.written.iter().rev().find_map(|one| Some((one, one.judged.as_ref()?)));
    if let Some((one, judged)) = largest {
        let claims = judged.findings.iter();
        lines.extend(
            claims.map(|finding| {
                format!("{}: {} ({})", Bytes(one.bytes), finding.claim, finding.grade)
            }),
        );
    }
    lines
}

/// Today's figures, and below each place the published ones.
fn places(experiment: &Experiment, outcome: &RamDiskPuzzleOutcome) -> Table {
    let mut table = Table::new(vec![
        Column::words("where"),
        Column::numbers("min"),
        Column::numbers("mean"),
        Column::numbers("max"),
        Column::numbers("written, slowest"),
        Column::numbers("read back, slowest"),
    ]);
    let time = |ns: Option<f64>| or_absent(ns, |ns| figure::time(ns, Digits::Three));
    for one in &outcome.requests {
        let runs = || outcome.repeats.iter().filter(|run| run.place == one.place);
        let slowest = |rates: &mut dyn Iterator<Item = f64>| {
            let slowest = rates.min_by(f64::total_cmp);
            or_absent(slowest, |rate| figure::rate(rate, Digits::Three))
        };
        table.row(vec![
            Cell::from(one.place),
            Cell::from(time(one.min_ns)),
            Cell::from(time(one.mean_ns)),
            Cell::from(time(one.max_ns)),
            Cell::from(slowest(&mut runs().filter_map(|run| run.write_bytes_per_s))),
            Cell::from(slowest(&mut runs().filter_map(|run| run.read_bytes_per_s))),
        ]);
        let then = ["min", "mean", "max", "written", "read back"].map(|what| {
            let figure = experiment.figure(&format!("{}, {what}", one.place));
            Cell::from(or_absent(figure, Figure::to_string))
        });
        let name = Cell::from(format!("{}, then", one.place));
        table.row([name].into_iter().chain(then).collect());
    }
    table
}
