//! The moments of a long recording that stood out, each with the command that explains it, and the
//! marks that were set.

use super::{VerdictSetting, paragraph};
use crate::output::Page;
use crate::output::clean::spaced;
use crate::output::figure::{self, Digits};
use crate::output::prose::{commands_tied, indented, long_time};
use crate::output::style::Tone;
use crate::output::survey::Detail;
use crate::output::table::tied;
use model::explanation::{Explanation, ShownMark, StandingOut, UnusualFigure};

/// So many figures of a moment are on a brief page.
const MOST_FIGURES: usize = 2;

/// So many marks are on a brief page: the last ones.
const MOST_MARKS: usize = 5;

/// The columns before what belongs to a moment.
const INDENT: usize = 3;

/// Moments and marks; nothing where there are none.
pub fn lines(
    explanation: &Explanation,
    setting: &VerdictSetting,
    detail: Detail,
    page: Page,
) -> String {
    let mut text = String::new();
    let moments = &explanation.moments;
    if !moments.is_empty() {
        text.push_str(&paragraph(&title(explanation), Tone::Strong, page));
        for moment in moments {
            text.push_str(&of_moment(moment, setting, detail, page));
        }
    }
    text.push_str(&of_marks(&explanation.marks, detail, page));
    if !moments.is_empty() {
        text.push_str(&paragraph("All of it:", Tone::Strong, page));
    }
    text
}

fn title(explanation: &Explanation) -> String {
    let whole = long_time(explanation.wall_ns);
    match explanation.moments.len() {
        1 => format!("One moment stood out against the usual level of these {}:", tied(&whole)),
        many => {
            format!("{many} moments stood out against the usual level of these {}:", tied(&whole))
        }
    }
}

/// When, how long, what, who, and the command.
fn of_moment(moment: &StandingOut, setting: &VerdictSetting, detail: Detail, page: Page) -> String {
    let length = long_time(moment.to_ns.saturating_sub(moment.from_ns));
    let when = tied(&format!("{}, {length}:", moment.time));
    let most = if detail == Detail::Full { usize::MAX } else { MOST_FIGURES };
    let named: Vec<String> = moment.figures.iter().take(most).map(of_figure).collect();
    let figures = named.join("; ");
    let claim = moment.claim.trim_end_matches('.');
    let mut text = match claim {
        "" => indented(&format!("{when} {figures}"), Tone::Warn, 1, INDENT, page),
        _ => indented(&format!("{when} {claim}"), Tone::Warn, 1, INDENT, page),
    };
    text.push_str(&indented(&moment.who.join("; "), Tone::Plain, INDENT, INDENT + 2, page));
    if !claim.is_empty() {
        text.push_str(&indented(&figures, Tone::Dim, INDENT, INDENT + 2, page));
    }
    if !setting.file.is_empty() {
        let command = format!("terrace explain {} --at {}", setting.file, moment.at);
        let line = commands_tied(&format!("See: {command}"));
        text.push_str(&indented(&line, Tone::Dim, INDENT, INDENT + 2, page));
    }
    text
}

/// `processors busy 99 % (usually 2 %)`
fn of_figure(figure: &UnusualFigure) -> String {
    let (value, usual) = (value(figure, figure.value), value(figure, figure.usual));
    format!("{} {} (usually {})", figure.title, tied(&value), tied(&usual))
}

fn value(figure: &UnusualFigure, value: f64) -> String {
    match figure.unit.as_str() {
        "ratio" => figure::percent(value),
        "bytes/s" => figure::rate(value, Digits::Two),
        "ns" => figure::time(value, Digits::Two),
        "per second" => format!("{} a second", figure::number(value, Digits::Two)),
        _ => figure::number(value, Digits::Two),
    }
}

/// `Marks: 14:32:05 deploy v42; 15:00:00 rollback`
fn of_marks(marks: &[ShownMark], detail: Detail, page: Page) -> String {
    let most = if detail == Detail::Full { usize::MAX } else { MOST_MARKS };
    let last = &marks[marks.len().saturating_sub(most)..];
    let label = |mark: &ShownMark| format!("{} {}", mark.time, spaced(&mark.text));
    let named: Vec<String> = last.iter().map(label).collect();
    match (named.len(), marks.len() - last.len()) {
        (0, _) => String::new(),
        (_, 0) => paragraph(&format!("Marks: {}", named.join("; ")), Tone::Plain, page),
        (_, more) => {
            let line = format!("Marks: {more} earlier ones; {}", named.join("; "));
            paragraph(&line, Tone::Plain, page)
        }
    }
}
