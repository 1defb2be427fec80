//! The page of a comparison: the verdict, what made the difference, the figures. For people
//! as text, to paste as Markdown; both are laid out from the same grids.
//!
//! Pure: a [`Comparison`] becomes text. The page adds no figure that the JSON lacks.

mod grid;

use super::Page;
use super::clean::spaced;
use super::figure;
use super::markdown::{self, code};
use super::prose::{painted_lines, value};
use super::style::Tone;
use super::table::{length, wrap};
use grid::Grid;
use model::Evidence;
use model::compared::{
    Basis, ComparedFigure, Comparison, ComparisonSubject, DifferencePart, Side, TimeDifference,
    WorkAlignment,
};
use model::comparison::DifferenceVerdict;
use model::explanation::short_words;

/// A heading, what stands below it, and what must be known to read it.
struct Section {
    title: String,
    grid: Grid,
    note: &'static str,
}

/// The page with what matters: of recordings the parts that made the difference.
pub fn page(comparison: &Comparison, page: Page) -> String {
    rendered(comparison, sections(comparison, false), page)
}

pub fn details(comparison: &Comparison, page: Page) -> String {
    rendered(comparison, sections(comparison, true), page)
}

/// The comparison as Markdown, to be pasted.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (title, side) in [("First", &comparison.first), ("Second", &comparison.second)] {
        let (name, runs) = (code(&side.name), runs(side));
        text.push_str(&format!("- {title}: {name}, {runs}\n"));
    }
    text.push_str(&format!("\n**{}**\n", markdown::text(&comparison.sentence)));
    for section in sections(comparison, false) {
        text.push_str(&format!(
            "\n{}\n\n{}",
            markdown::text(&section.title),
            section.grid.markdown()
        ));
        if !section.note.is_empty() {
            text.push_str(&format!("\n{}\n", markdown::text(section.note)));
        }
    }
    for note in &comparison.notes {
        text.push_str(&format!("\n> {}\n", markdown::text(note)));
    }
    text
}

fn rendered(comparison: &Comparison, sections: Vec<Section>, page: Page) -> String {
    let mut text = header(comparison, page);
    text.push_str(&paragraph(&comparison.sentence, Tone::Strong, page));
    for section in sections {
        text.push_str(&format!("\n{}", paragraph(&section.title, Tone::Plain, page)));
        text.push_str(&section.grid.text(page));
        text.push_str(&paragraph(section.note, Tone::Dim, page));
    }
    if !comparison.notes.is_empty() {
        text.push('\n');
    }
    let notes = comparison.notes.iter();
    text.extend(notes.map(|note| paragraph(note, Tone::Warn, page)));
    text
}

/// The rule, and who is compared.
fn header(comparison: &Comparison, page: Page) -> String {
    let start = "-- terrace compare ";
    let rule = page.width.saturating_sub(1 + length(start));
    let line = format!("{start}{}", "-".repeat(rule));
    let mut text = format!("{}\n", page.style.paint(Tone::Strong, &line));
    for (title, side) in [("first ", &comparison.first), ("second", &comparison.second)] {
        let files = match &side.files[..] {
            [] => String::new(),
            [only] => format!(" {only}"),
            [first, rest @ ..] => format!(" {first} and {} more", rest.len()),
        };
        let line = format!("{title}  {}, {}{files}", spaced(&side.name), runs(side));
        text.push_str(&hanging(&line, Tone::Dim, 8, page));
    }
    text
}

fn runs(side: &Side) -> String {
    match side.runs {
        1 => "1 run".to_owned(),
        many => format!("{many} runs"),
    }
}

fn sections(comparison: &Comparison, all: bool) -> Vec<Section> {
    let mut sections = Vec::new();
    if let Some(split) = &comparison.split {
        sections.push(Section {
            title: "Where the difference is:".to_owned(),
            grid: of_split(split, all),
            note: "Means over the middle half of the runs; the parts add up. What is indented lies inside of the part \
                   above it, in thread time, and overlaps.",
        });
    }
    let worth_a_row = |item: &&ComparedFigure| match comparison.what {
        ComparisonSubject::Surveys => item.first.or(item.second).is_some(),
        ComparisonSubject::Recordings => all || item.of == "wall" || is_proven_finding(item),
    };
    let items: Vec<&ComparedFigure> = comparison.items.iter().filter(worth_a_row).collect();
    if !items.is_empty() {
        sections.push(Section {
            title: "Medians:".to_owned(),
            grid: of_items(&items, comparison.what),
            note: "",
        });
    }
    sections.extend(comparison.aligned.as_ref().map(of_progress));
    sections
}

fn is_proven_finding(item: &ComparedFigure) -> bool {
    item.of == "finding" && item.verdict != DifferenceVerdict::Unproven
}

/// A part that is less than this share of either whole is left out of a brief page.
const WORTH_A_ROW: f64 = 0.005;

fn of_split(split: &TimeDifference, all: bool) -> Grid {
    let mut grid = Grid::new(&[
        ("part", false, 0),
        ("first", true, 1),
        ("second", true, 1),
        ("difference", true, 0),
        ("95 % interval", true, 2),
        ("verdict", false, 0),
    ]);
    let least = WORTH_A_ROW * split.first_ns.max(split.second_ns);
    let is_worth = |part: &&DifferencePart| all || part.first_ns.max(part.second_ns) >= least;
    for part in split.parts.iter().filter(is_worth) {
        let name = match part.within {
            None => short_words(&part.name),
            Some(_) => format!("  {}", short_words(&part.name)),
        };
        grid.row(vec![
            name,
            time(part.first_ns),
            time(part.second_ns),
            signed(part.difference_ns, "ns"),
            interval(part.low_ns.zip(part.high_ns), "ns"),
            verdict(part.verdict).to_owned(),
        ]);
    }
    grid.row(vec![
        "all".to_owned(),
        time(split.first_ns),
        time(split.second_ns),
        signed(split.difference_ns, "ns"),
        interval(split.low_ns.zip(split.high_ns), "ns"),
    ]);
    grid
}

fn of_items(items: &[&ComparedFigure], what: ComparisonSubject) -> Grid {
    let of = if what == ComparisonSubject::Surveys { "tier" } else { "of" };
    let mut grid = Grid::new(&[
        (of, false, 0),
        ("figure", false, 0),
        ("first", true, 1),
        ("second", true, 1),
        ("change", true, 0),
        ("95 % interval", true, 4),
        ("p", true, 3),
        ("needs", true, 2),
        ("verdict", false, 0),
    ]);
    for item in items {
        let shown = |number: Option<f64>| figure::or_absent(number, |it| amount(it, &item.unit));
        grid.row(vec![
            item.of.replace('_', " "),
            short_words(&item.name),
            shown(item.first),
            shown(item.second),
            figure::or_absent(item.change(), signed_percent),
            interval(item.low.zip(item.high), &item.unit),
            figure::or_absent(item.p, probability),
            figure::or_absent(item.provable, figure::percent),
            said(item),
        ]);
    }
    grid
}

fn of_progress(aligned: &WorkAlignment) -> Section {
    let mut grid = Grid::new(&[
        ("work", true, 0),
        ("first", true, 1),
        ("second", true, 1),
        ("difference", true, 0),
        ("differs most in", false, 0),
    ]);
    for section in &aligned.sections {
        let until = amount(section.to, &aligned.unit);
        grid.row(vec![
            format!("to {until}"),
            time(section.first_ns),
            time(section.second_ns),
            signed(section.second_ns - section.first_ns, "ns"),
            section.most.as_deref().map_or_else(String::new, short_words),
        ]);
    }
    let whole = |total: f64| amount(total, &aligned.unit);
    Section {
        title: format!(
            "By the work done, {} ({} and {} in all):",
            aligned.series,
            whole(aligned.first_total),
            whole(aligned.second_total)
        ),
        grid,
        note: "",
    }
}

/// `larger, worse`; of what was not judged, why.
fn said(item: &ComparedFigure) -> String {
    match (item.basis, item.verdict) {
        (Basis::Nothing, _) if item.difference.is_none() => "one side only".to_owned(),
        (Basis::Nothing, _) => "unproven: too few runs".to_owned(),
        (_, DifferenceVerdict::Unproven) => verdict(item.verdict).to_owned(),
        (_, proven) => match (item.better.is_some(), item.worse_by().is_some()) {
            (false, _) => verdict(proven).to_owned(),
            (true, true) => format!("{}, worse", verdict(proven)),
            (true, false) => format!("{}, better", verdict(proven)),
        },
    }
}

fn verdict(verdict: DifferenceVerdict) -> &'static str {
    match verdict {
        DifferenceVerdict::Larger => "larger",
        DifferenceVerdict::Smaller => "smaller",
        DifferenceVerdict::Unproven => "unproven",
    }
}

fn time(ns: f64) -> String {
    amount(ns, "ns")
}

/// A number of at least 0 with its unit.
fn amount(number: f64, unit: &str) -> String {
    value(&Evidence::new("", number, unit, ""))
}

/// A difference with its sign: `+3.1 s`.
fn signed(difference: f64, unit: &str) -> String {
    let sign = if difference < 0.0 { "-" } else { "+" };
    format!("{sign}{}", amount(difference.abs(), unit))
}

fn signed_percent(share: f64) -> String {
    let sign = if share < 0.0 { "-" } else { "+" };
    format!("{sign}{}", figure::percent(share.abs()))
}

fn interval(ends: Option<(f64, f64)>, unit: &str) -> String {
    figure::or_absent(ends, |(low, high)| {
        format!("{} to {}", signed(low, unit), signed(high, unit))
    })
}

fn probability(p: f64) -> String {
    match p {
        ..0.001 => "<0.001".to_owned(),
        _ => format!("{p:.3}"),
    }
}

fn paragraph(text: &str, tone: Tone, page: Page) -> String {
    hanging(text, tone, 0, page)
}

/// `text` in lines, all but the first behind `hang` spaces; nothing for nothing.
fn hanging(text: &str, tone: Tone, hang: usize, page: Page) -> String {
    if text.is_empty() {
        return String::new();
    }
    let lines = wrap(text, page.width.saturating_sub(2), hang).replace('\n', "\n ");
    format!(" {}\n", painted_lines(page, tone, &lines))
}

#[cfg(test)]
mod tests;
