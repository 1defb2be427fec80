//! The page of `ramdisk-puzzle`: what the original's figures can say, size by size beside today's,
//! and what was slow here and why. Pure.

use crate::output::figure::{self, Digits, or_absent, precise_rate, precise_time};
use crate::output::prose::PageText;
use crate::output::report::interrupted;
use crate::output::table::Table;
use explain::ramdisk::course::{Course, Standing};
use lab::description::{Experiment, Figure, Item};
use lab::ramdisk_puzzle::{RamDiskPuzzleOutcome, Requests, Written};
use measure::pressure::PageContent;
use model::Bytes;
use std::path::Path;

impl super::OutcomePage for RamDiskPuzzleOutcome {
    fn write_page(&self, experiment: &Experiment, directory: Option<&Path>, out: &mut PageText) {
        out.heading(&format!("{}: {}", experiment.name, experiment.title));
        out.heading("What the original's own figures say");
        out.sentences(original(&self.original));
        out.heading("Writing, then and now");
        out.table(&sizes(experiment, self), 1);
        out.sentences(today(self));
        if !self.requests.is_empty() {
            out.heading("Requests of 4 KiB, and two units three times");
            let rows = places(experiment, self);
            let mut table = Table::of(&rows).words("where", 0, |(place, _)| place.as_str());
            for (index, title) in PLACE_TITLES.iter().enumerate() {
                table = table.numbers(title, 0, |(_, figures)| figures[index].as_str());
            }
            out.table(&table, 1);
        }
        out.sentences(self.notes.iter().map(|note| format!("{note}.")));
        out.sentences(directory.map(|directory| {
            format!("Kept in {}: result.json and the recordings.", directory.display())
        }));
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

fn sizes<'e>(experiment: &'e Experiment, outcome: &RamDiskPuzzleOutcome) -> Table<&'e Item> {
    let of = |size: &Item, content: PageContent| {
        let is_it = |one: &&Written| one.content == content && one.units.to_string() == size.id;
        outcome.written.iter().find(is_it)
    };
    let zeros = |size| of(size, PageContent::Zero);
    let random = |size| of(size, PageContent::Random);
    let published = |size: &Item| experiment.figure(size.original.as_deref()?);
    let asked = |one: &Written| Bytes(one.seen.asked_bytes).to_string();
    let judged = |size| random(size).and_then(|one| one.judged.as_ref());
    Table::of(experiment.items("sizes"))
        .numbers("then", 0, |size| format!("{} GB", size.id))
        .numbers("zeros then", 0, |size| or_absent(published(size), Figure::to_string))
        .numbers("now", 0, |size| or_absent(random(size).or(zeros(size)), asked))
        .numbers("zeros now", 0, |size| or_absent(zeros(size), time))
        .numbers("random now", 0, |size| or_absent(random(size), time))
        .words("its cause", 0, |size| {
            or_absent(judged(size), |judged| judged.verdict.words().to_owned())
        })
}

/// Its time, and for how much of it where it was cut short.
fn time(one: &Written) -> String {
    let time = precise_time(one.ns as f64);
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

const PLACE_TITLES: [&str; 5] = ["min", "mean", "max", "written, slowest", "read back, slowest"];

/// Today's figures, and below each place the published ones.
fn places(experiment: &Experiment, outcome: &RamDiskPuzzleOutcome) -> Vec<(String, [String; 5])> {
    let rows = |one: &Requests| {
        let runs = || outcome.repeats.iter().filter(|run| run.place == one.place);
        let slowest =
            |rates: &mut dyn Iterator<Item = f64>| precise_rate(rates.min_by(f64::total_cmp));
        let now = [
            precise_time(one.min_ns),
            precise_time(one.mean_ns),
            precise_time(one.max_ns),
            slowest(&mut runs().filter_map(|run| run.write_bytes_per_s)),
            slowest(&mut runs().filter_map(|run| run.read_bytes_per_s)),
        ];
        let then = ["min", "mean", "max", "written", "read back"].map(|what| {
            let figure = experiment.figure(&format!("{}, {what}", one.place));
            or_absent(figure, Figure::to_string)
        });
        [(one.place.to_owned(), now), (format!("{}, then", one.place), then)]
    };
    outcome.requests.iter().flat_map(rows).collect()
}
