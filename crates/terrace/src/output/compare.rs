//! The page of a comparison: the verdict, what made the difference, the figures. For people
//! as text, to paste as Markdown; both are laid out from the same tables.
//!
//! Pure: a [`Comparison`] becomes text. The page adds no figure that the JSON lacks.

use super::Page;
use super::clean::spaced;
use super::figure;
use super::markdown::{self, code};
use super::prose::{indented, value};
use super::style::Tone;
use super::table::{Table, length};
use super::verdict::factor;
use model::Evidence;
use model::compared::{
    Basis, ComparedFigure, Comparison, ComparisonSubject, DifferencePart, Side, TimeDifference,
    TriedChange, WorkAlignment,
};
use model::comparison::DifferenceVerdict;
use model::explanation::{ExpectedGain, short_words};

/// A heading, what stands below it, and what must be known to read it.
struct Section {
    title: String,
    table: Table<usize>,
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
            section.table.markdown()
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
        text.push_str(&section.table.render(page, 1));
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
        text.push_str(&indented(&line, Tone::Dim, 1, 9, page));
    }
    text
}

/// What was tried, what was expected of it, and what became of it.
pub fn tried(tried: &TriedChange, expected: Option<&ExpectedGain>, page: Page) -> String {
    let gain = expected.map_or_else(String::new, |gain| format!("; expected: {}", factor(gain)));
    let first = format!("Tried: {}{gain}.", spaced(&tried.words));
    let TriedChange { path, before, after, .. } = tried;
    let path = spaced(path);
    let last = if !path.starts_with('/') {
        format!(
            "Restored: {after} (`{path}`). It stays, so the sides did not take turns: a part of it \
             may have come back by itself."
        )
    } else if tried.kept {
        format!("Kept: {path} is {after}. To put it back: echo {before} | sudo tee {path}")
    } else {
        format!("Put back: {path} is {before}.")
    };
    let lines = [first, last];
    lines.iter().map(|line| paragraph(line, Tone::Plain, page)).collect()
}

fn runs(side: &Side) -> String {
    match side.runs {
        1 => "1 run".to_owned(),
        many => format!("{many} runs"),
    }
}

/// The heading of the parts of a difference in time, and what must be known to read them.
const A_DIFFERENCE: (&str, &str) = (
    "Where the difference is:",
    "Means over the middle half of the runs; the parts add up. What is indented lies inside of the \
     part above it, in thread time, and overlaps.",
);

/// The same of recordings of what runs on.
const A_SECOND: (&str, &str) = (
    "Where a second goes:",
    "Shares of the wall time of each recording, which has the length that it was given.",
);

fn sections(comparison: &Comparison, all: bool) -> Vec<Section> {
    let mut sections = Vec::new();
    let is_steady = comparison.items.iter().any(|item| item.of == "rate");
    if let Some(split) = &comparison.split {
        let (title, note) = if is_steady { A_SECOND } else { A_DIFFERENCE };
        sections.push(Section { title: title.to_owned(), table: of_split(split, all), note });
    }
    let worth_a_row = |item: &&ComparedFigure| match comparison.what {
        ComparisonSubject::Surveys => item.first.or(item.second).is_some(),
        ComparisonSubject::Recordings => all || is_said(item),
    };
    let items: Vec<&ComparedFigure> = comparison.items.iter().filter(worth_a_row).collect();
    if !items.is_empty() {
        sections.push(Section {
            title: if is_steady { "In a second, and for each unit of work:" } else { "Medians:" }
                .to_owned(),
            table: of_items(&items, comparison.what),
            note: "",
        });
    }
    sections.extend(comparison.aligned.as_ref().map(of_progress));
    sections
}

/// Whether a brief page of recordings has the figure.
fn is_said(item: &ComparedFigure) -> bool {
    let is_some = || item.first.unwrap_or(0.0).max(item.second.unwrap_or(0.0)) > 0.0;
    match item.of.as_str() {
        "wall" => true,
        "rate" | "per_work" => is_some(),
        of => of == "finding" && item.verdict != DifferenceVerdict::Unproven,
    }
}

/// A part that is less than this share of either whole is left out of a brief page.
const WORTH_A_ROW: f64 = 0.005;

fn of_split(split: &TimeDifference, all: bool) -> Table<usize> {
    let least = WORTH_A_ROW * split.first_ns.max(split.second_ns);
    let is_worth = |part: &&DifferencePart| all || part.first_ns.max(part.second_ns) >= least;
    let whole = DifferencePart {
        name: "all".to_owned(),
        within: None,
        first_ns: split.first_ns,
        second_ns: split.second_ns,
        difference_ns: split.difference_ns,
        low_ns: split.low_ns,
        high_ns: split.high_ns,
        verdict: DifferenceVerdict::Unproven,
    };
    let rows: Vec<&DifferencePart> = split.parts.iter().filter(is_worth).chain([&whole]).collect();
    let last = rows.len() - 1;
    let name = |row: usize| match (&rows[row].within, row == last) {
        (_, true) => rows[row].name.clone(),
        (None, _) => short_words(&rows[row].name),
        (Some(_), _) => format!("  {}", short_words(&rows[row].name)),
    };
    Table::of(0..rows.len())
        .words("part", 0, name)
        .numbers("first", 1, |row| time(rows[row].first_ns))
        .numbers("second", 1, |row| time(rows[row].second_ns))
        .numbers("difference", 0, |row| signed(rows[row].difference_ns, "ns"))
        .numbers("95 % interval", 2, |row| interval(rows[row].low_ns.zip(rows[row].high_ns), "ns"))
        // The whole is judged by the sentence above.
        .words("verdict", 0, |row| if row == last { "" } else { verdict(rows[row].verdict) })
}

fn of_items(items: &[&ComparedFigure], what: ComparisonSubject) -> Table<usize> {
    let of = if what == ComparisonSubject::Surveys { "tier" } else { "of" };
    let shown = |row: usize, number: fn(&ComparedFigure) -> Option<f64>| {
        figure::or_absent(number(items[row]), |it| amount(it, &items[row].unit))
    };
    let range = |row: usize| {
        let item = items[row];
        interval(item.low.zip(item.high), &item.unit)
    };
    Table::of(0..items.len())
        .words(of, 0, |row| items[row].of.replace('_', " "))
        .words("figure", 0, |row| short_words(&items[row].name))
        .numbers("first", 1, |row| shown(row, |item| item.first))
        .numbers("second", 1, |row| shown(row, |item| item.second))
        .numbers("change", 0, |row| figure::or_absent(items[row].change(), signed_percent))
        .numbers("95 % interval", 4, range)
        .numbers("p", 3, |row| figure::or_absent(items[row].p, probability))
        .numbers("needs", 2, |row| figure::or_absent(items[row].provable, figure::percent))
        .words("verdict", 0, |row| said(items[row]))
}

fn of_progress(aligned: &WorkAlignment) -> Section {
    let sections = &aligned.sections;
    let difference = |row: usize| sections[row].second_ns - sections[row].first_ns;
    let most = |row: usize| sections[row].most.as_deref().map_or_else(String::new, short_words);
    let table = Table::of(0..sections.len())
        .numbers("work", 0, |row| format!("to {}", amount(sections[row].to, &aligned.unit)))
        .numbers("first", 1, |row| time(sections[row].first_ns))
        .numbers("second", 1, |row| time(sections[row].second_ns))
        .numbers("difference", 0, |row| signed(difference(row), "ns"))
        .words("differs most in", 0, most);
    let whole = |total: f64| amount(total, &aligned.unit);
    Section {
        title: format!(
            "By the work done, {} ({} and {} in all):",
            aligned.series,
            whole(aligned.first_total),
            whole(aligned.second_total)
        ),
        table,
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
    indented(text, tone, 1, 1, page)
}

#[cfg(test)]
mod tests;
