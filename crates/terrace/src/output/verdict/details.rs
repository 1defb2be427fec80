//! What only the detailed verdict has: both bars with their numbers, what lies inside of
//! them, everybody who is not to blame, what could not be seen, and the repairs.

use super::bar;
use super::{idle, inferred, of_processors, paragraph};
use crate::output::Page;
use crate::output::figure;
use crate::output::prose::{commands_tied, count, grouped, indented, long_time, shown};
use crate::output::style::Tone;
use crate::output::table::{Cell, Table, tied};
use model::Evidence;
use model::doctor::POINTER;
use model::explanation::{EventSource, Explanation, OverlappingPart, Slice, Unseen, short_words};

/// Both bars, each with a line for every part, and what lies inside of them.
pub fn bars(explanation: &Explanation, page: Page) -> String {
    let clock = format!("Wall time: {}", long_time(explanation.wall_ns));
    let whole = long_time(explanation.thread_ns);
    let threads = if of_processors(&explanation.bars.thread) {
        format!("Processor time: {whole}, that of all processors summed")
    } else {
        format!("Thread time: {whole}, the lives of all threads summed")
    };
    let mut text = idle(explanation).map_or_else(String::new, |line| title(&line, false, page));
    let wall = one(&clock, &explanation.bars.wall, page);
    let thread = one(&threads, &explanation.bars.thread, page);
    let is_machine = of_processors(&explanation.bars.thread);
    let [first, second] = if is_machine { [thread, wall] } else { [wall, thread] };
    text.push_str(&first);
    text.push_str(&second);
    text.push_str(&inside(&explanation.of_which, page));
    text
}

/// Suspects, blind spots and repairs.
pub fn rest(explanation: &Explanation, page: Page) -> String {
    let mut text = title("Not to blame", explanation.cleared.is_empty(), page);
    for suspect in &explanation.cleared {
        let evidence = &suspect.evidence;
        let cost = suspect.cost_ns.map(|ns| format!(" in {}", long_time(ns)));
        let number = format!("{}{}", shown(evidence), cost.unwrap_or_default());
        let line = format!("{}: {number} ({})", suspect.name, evidence.source);
        text.push_str(&indented(&line, Tone::Plain, 3, 5, page));
    }
    let is_all_seen = explanation.unseen.is_empty();
    text.push_str(&title(&format!("Could not be seen ({POINTER})"), is_all_seen, page));
    // Those of one reason and remedy together.
    let reason = |it: &'_ Unseen| (it.why.clone(), it.remedy.clone());
    let unseen = explanation.unseen.iter().map(|it| (reason(it), it.what.replace('_', " ")));
    for ((why, remedy), names) in grouped(unseen) {
        let see = |remedy: String| format!("; to see it: {}", commands_tied(&remedy));
        let line = format!("{}: {why}{}", names.join(", "), remedy.map(see).unwrap_or_default());
        text.push_str(&indented(&line, Tone::Plain, 3, 5, page));
    }
    text.push_str(&events(explanation, page));
    text.push_str(&contradictions(explanation, page));
    text.push_str(&title(
        "Usual doubts, which change nothing",
        explanation.usual_doubts.is_empty(),
        page,
    ));
    for doubt in &explanation.usual_doubts {
        text.push_str(&indented(doubt, Tone::Plain, 3, 5, page));
    }
    text.push_str(&title("Repaired", explanation.repairs.is_empty(), page));
    for repair in &explanation.repairs {
        let (before, after) = (long_time(repair.before_ns), long_time(repair.after_ns));
        let line = format!("{} ({before} -> {after})", repair.text);
        text.push_str(&indented(&line, Tone::Plain, 3, 5, page));
    }
    text
}

/// All contradictions, with what was believed and what rests on them.
fn contradictions(explanation: &Explanation, page: Page) -> String {
    let mut text = title("Contradictions", explanation.contradictions.is_empty(), page);
    for one in &explanation.contradictions {
        let believed = one.believed.as_ref().map(|which| format!("; believed: {which}"));
        let rests = match one.lowered.as_slice() {
            [] => String::new(),
            ids => format!("; so inferred: {}", ids.join(", ").replace('_', " ")),
        };
        let remedy = one.remedy.as_ref().map(|see| format!("; to decide it: {}", tied(see)));
        let [believed, remedy] = [believed, remedy].map(Option::unwrap_or_default);
        let line = format!("{}{believed}{rests}{remedy}", one.text);
        text.push_str(&indented(&line, Tone::Plain, 3, 5, page));
    }
    text
}

/// How the kernel's events were had.
fn events(explanation: &Explanation, page: Page) -> String {
    let line = match explanation.watching.events {
        Some(EventSource::InKernel) => "Events were summed by programs inside the kernel.",
        Some(EventSource::Ring) => "Events came through rings of samples, which can lose some.",
        None => return String::new(),
    };
    format!("\n{}", paragraph(line, Tone::Dim, page))
}

fn title(words: &str, empty: bool, page: Page) -> String {
    if empty { String::new() } else { format!("\n{}", paragraph(words, Tone::Strong, page)) }
}

fn one(words: &str, slices: &[Slice], page: Page) -> String {
    if slices.iter().all(|slice| slice.ns == 0) {
        return String::new();
    }
    let how = if inferred(slices) { ", in part inferred" } else { "" };
    let mut text = title(&format!("{words}{how}"), false, page);
    text.push_str(&bar::render(slices, page));
    let lengths: Vec<u64> = slices.iter().map(|slice| slice.ns).collect();
    let shares = bar::percentages(&lengths);
    let table = Table::of(slices.iter().zip(shares))
        .words("", 0, |(slice, _)| short_words(&slice.name))
        .numbers("", 0, |(slice, _)| long_time(slice.ns))
        .numbers("", 0, |(_, share)| format!("{share} %"))
        .words("", 1, |(slice, _)| Cell::toned(slice.grade.to_string(), Tone::Dim))
        .words("", 2, |(slice, _)| Cell::toned(seen(&slice.evidence), Tone::Dim));
    let named = slices.iter().map(|slice| (short_words(&slice.name), &slice.evidence[..]));
    text.push_str(&with_counters(&table, named, page));
    text
}

/// `table` indented; where its last column had to go, the counters stand below it.
fn with_counters<'a, R: Copy>(
    table: &Table<R>,
    counters: impl Iterator<Item = (String, &'a [Evidence])>,
    page: Page,
) -> String {
    let inner = Page { width: page.width.saturating_sub(1), ..page };
    let mut text = table.render(inner, 3);
    if !table.fits(inner, 3) {
        for (name, evidence) in counters.filter(|(_, evidence)| !evidence.is_empty()) {
            let line = format!("{name}: {}", seen(evidence));
            text.push_str(&indented(&line, Tone::Dim, 3, 5, page));
        }
    }
    text
}

/// The parts that overlap, each with the slice that holds it.
fn inside(parts: &[OverlappingPart], page: Page) -> String {
    if parts.is_empty() {
        return String::new();
    }
    let mut text = title("Of which (these overlap, and never add up)", false, page);
    let time = |part: &OverlappingPart| match part.ns {
        // A part that was only counted has no length that anybody knows.
        0 if part.count.is_some() => figure::ABSENT.to_owned(),
        ns => long_time(ns),
    };
    let table = Table::of(parts)
        .words("", 0, |part| short_words(&part.name))
        .numbers("", 0, time)
        .numbers("times", 1, |part| part.count.map(count).unwrap_or_default())
        .words("in", 1, |part| short_words(&part.within))
        .words("", 2, |part| Cell::toned(part.grade.to_string(), Tone::Dim))
        .words("", 3, |part| Cell::toned(seen(&part.evidence), Tone::Dim));
    let named = parts.iter().map(|part| (short_words(&part.name), &part.evidence[..]));
    text.push_str(&with_counters(&table, named, page));
    text
}

fn seen(pieces: &[Evidence]) -> String {
    let pieces: Vec<String> = pieces.iter().map(shown).collect();
    pieces.join("; ")
}
