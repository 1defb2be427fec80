//! What `terrace top` shows: a recording, its explanation and what is looked at become the lines of
//! a screen, from the top down: what is looked at, the bars, the findings, the processes, the
//! lanes, the keys.
//!
//! [`picture`] is pure and is tested as text; [`screen`] puts its lines on a terminal. What does
//! not fit is left out in this order: lanes, the second bar, cleared suspects, grades.

mod axis;
mod cursor;
mod findings;
mod glyphs;
mod lanes;
mod processes;
pub mod screen;
mod state;
mod usage;
mod values;

pub use cursor::{Cursor, KeyAction, Panes, TimeExtent};
pub use glyphs::Glyphs;

use super::style::{Tone, Toned};
use super::verdict::{bar_lines, inferred, of_processors, one_at_a_time};
use lanes::{Space, Widths};
use model::explanation::{Explanation, Slice, StandingOut};
use model::recording::Recording;
use values::TimeColumns;
use viewer::questions::Question;

/// From this height on there is room for the words above a bar.
const HEIGHT_FOR_WORDS: usize = 18;
/// From this height on there is room for both bars.
const HEIGHT_FOR_BOTH_BARS: usize = 36;
/// From this height on cleared suspects are named, and above the next one in more lines.
const HEIGHT_FOR_CLEARED: usize = 20;
const HEIGHT_FOR_MORE_CLEARED: usize = 34;

/// The findings get this part of the screen, and at least so many lines.
const PART_OF_FINDINGS: usize = 3;
const LEAST_OF_FINDINGS: usize = 3;

/// The processes get half of what the findings leave, and at least so many lines: headings, three
/// of them, and all others.
const LEAST_OF_PROCESSES: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenSize {
    pub width: usize,
    pub height: usize,
}

impl ScreenSize {
    /// How many columns of time a lane has.
    pub fn columns(self) -> usize {
        Widths::of(self.width).cells
    }
}

/// All that a picture is made of.
#[derive(Debug)]
pub struct Scene<'a> {
    pub recording: &'a Recording,
    /// The explanation of what is looked at; absent before there are two samples.
    pub explanation: Option<&'a Explanation>,
    pub cursor: &'a Cursor,
    pub extent: TimeExtent,
    /// What stood out in a recording that has ended, in order of time.
    pub moments: &'a [StandingOut],
    /// The file; absent for what goes on here.
    pub file: Option<&'a str>,
    /// The questions that the lanes answer.
    pub questions: &'a [Question],
    pub glyphs: Glyphs,
    pub size: ScreenSize,
}

/// The lines of the screen, from the top, at most as many as it has.
pub fn picture(scene: &Scene<'_>) -> Vec<Toned> {
    let height = scene.size.height;
    let mut lines = vec![state::title(scene), state::state(scene)];
    if scene.cursor.help {
        lines.extend(state::help(scene));
    } else {
        if height >= HEIGHT_FOR_WORDS {
            lines.extend(state::moments(scene));
        }
        match scene.explanation {
            Some(explanation) => lines.extend(judged(scene, explanation)),
            None => lines.push(vec![(Tone::Dim, " The first two samples are taken.".to_owned())]),
        }
        let room = height.saturating_sub(lines.len() + 1);
        lines.extend(processes::lines(scene, room_for_processes(scene.cursor.panes, room)));
        if scene.cursor.panes != Panes::Processes {
            lines.extend(lanes(scene, height.saturating_sub(lines.len() + 1)));
        }
    }
    lines.truncate(height.saturating_sub(1));
    lines.resize(height.saturating_sub(1), Toned::new());
    lines.push(state::keys(scene));
    lines
}

pub fn names(explanation: &Explanation) -> Vec<String> {
    let findings = explanation.findings.iter();
    findings.map(|cause| cause.finding.id.clone()).collect()
}

/// The bars, the findings, the cleared suspects, and what cannot be seen.
fn judged(scene: &Scene<'_>, explanation: &Explanation) -> Vec<Toned> {
    let ScreenSize { width, height } = scene.size;
    let mut lines = bars(explanation, scene.size);
    let room = (height / PART_OF_FINDINGS).max(LEAST_OF_FINDINGS);
    let chosen = scene.cursor.chosen(&names(explanation));
    lines.extend(findings::lines(explanation, chosen, width, room));
    let room = match height {
        ..HEIGHT_FOR_CLEARED => 0,
        HEIGHT_FOR_CLEARED..HEIGHT_FOR_MORE_CLEARED => 1,
        _ => 3,
    };
    lines.extend(findings::cleared(explanation, width, room));
    if !scene.recording.facts.root && height >= HEIGHT_FOR_WORDS {
        lines.extend(state::unseen(explanation, width));
    }
    lines
}

/// The bar that a verdict shows, on tall screens also the other one.
fn bars(explanation: &Explanation, size: ScreenSize) -> Vec<Toned> {
    let clock = ("Wall time", &explanation.bars.wall);
    let all = if of_processors(&explanation.bars.thread) {
        ("All processors together", &explanation.bars.thread)
    } else {
        ("All threads together", &explanation.bars.thread)
    };
    let (first, second) = if one_at_a_time(explanation) { (clock, all) } else { (all, clock) };
    let mut lines = bar(first, size);
    if size.height >= HEIGHT_FOR_BOTH_BARS {
        lines.extend(bar(second, size));
    }
    lines
}

fn bar((words, slices): (&str, &Vec<Slice>), size: ScreenSize) -> Vec<Toned> {
    let lines = bar_lines(slices, size.width);
    let how = if inferred(slices) { ", inferred" } else { "" };
    let has_words = size.height >= HEIGHT_FOR_WORDS && !lines.is_empty();
    let words = has_words.then(|| vec![(Tone::Dim, format!(" {words}{how}:"))]);
    words.into_iter().chain(lines).collect()
}

/// How many of the lines below the findings are for processes.
fn room_for_processes(panes: Panes, room: usize) -> usize {
    match panes {
        Panes::Both => (room / 2).max(LEAST_OF_PROCESSES).min(room),
        Panes::Processes => room,
        Panes::Lanes => 0,
    }
}

/// The lanes below their axis, in at most `room` lines.
fn lanes(scene: &Scene<'_>, room: usize) -> Vec<Toned> {
    let Some(room) = room.checked_sub(1).filter(|room| *room > 0) else {
        return Vec::new();
    };
    let widths = Widths::of(scene.size.width);
    let axis = axis::Axis::of(scene, widths);
    let columns = TimeColumns::new(scene.recording, axis.column_ns, axis.edge_ns, widths.cells);
    let evidence = scene.explanation.map(|explanation| rested_on(explanation, scene.cursor));
    let space = Space {
        recording: scene.recording,
        columns: &columns,
        cursor_column: axis.cursor_column,
        evidence: &evidence.unwrap_or_default(),
        glyphs: scene.glyphs,
        widths,
    };
    let questions = match scene.cursor.question {
        Some(question) => scene.questions.get(question..=question).unwrap_or_default(),
        None => scene.questions,
    };
    let mut lines = vec![axis.line(scene.glyphs, widths)];
    lines.extend(lanes::rows(questions, &space, room));
    lines
}

/// The series that the chosen finding rests on.
fn rested_on(explanation: &Explanation, cursor: &Cursor) -> Vec<String> {
    let chosen = cursor.chosen(&names(explanation));
    let pieces = explanation.findings.get(chosen).map(|cause| &cause.finding.evidence);
    let series = pieces.into_iter().flatten().flat_map(|piece| &piece.series);
    series.cloned().collect()
}

#[cfg(test)]
mod tests;
