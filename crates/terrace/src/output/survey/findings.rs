//! The findings of the survey's page: numbered claims, each with what to do about it; in
//! detail also with what it rests on, what the remedy risks and how to confirm it.

use super::Detail;
use crate::output::Page;
use crate::output::prose::{commands_tied, first_sentence, painted_lines, sentence, value};
use crate::output::style::Tone;
use crate::output::table::{length, tied, wrap};
use model::survey::Survey;
use model::{Evidence, Finding, Grade};

/// The space before what belongs to a numbered claim.
const INDENT: usize = 4;

/// The count of odd things and the findings themselves.
pub fn render(survey: &Survey, detail: Detail, page: Page) -> String {
    let mut text = sentence(page, Tone::Strong, &count(survey, detail), 1);
    for (number, finding) in (1..).zip(&survey.findings) {
        text.push_str(&one(number, finding, detail, page));
    }
    text
}

/// `2 odd things, 39 checks fine`.
fn count(survey: &Survey, detail: Detail) -> String {
    let odd = match survey.findings.len() {
        0 => "Nothing odd".to_owned(),
        1 => "1 odd thing".to_owned(),
        many => format!("{many} odd things"),
    };
    let checks = |number: usize| if number == 1 { "check" } else { "checks" };
    let fine = survey.fine.len();
    let mut line = format!("{odd}, {fine} {} fine", checks(fine));
    if !survey.unchecked.is_empty() {
        line.push_str(&format!(", {} not possible here", survey.unchecked.len()));
        if detail == Detail::Brief {
            line.push_str(" (--details says why)");
        }
    }
    line
}

fn one(number: u32, finding: &Finding, detail: Detail, page: Page) -> String {
    let claim = match finding.grade {
        Grade::Inferred if !finding.claim.contains("inferred") => {
            format!("{} (inferred).", finding.claim.trim_end_matches('.'))
        }
        _ => finding.claim.clone(),
    };
    let width = page.width.saturating_sub(INDENT);
    let number = page.style.paint(Tone::Warn, &format!("{number:>2}"));
    let mut text = format!(" {number} {}\n", hanging(&claim, width));
    let mut below = |tone: Tone, line: String| {
        let line = painted_lines(page, tone, &hanging(&line, width));
        text.push_str(&format!("{}{line}\n", " ".repeat(INDENT)));
    };
    if detail == Detail::Full {
        below(Tone::Dim, tied(&evidence(&finding.evidence, width)));
    }
    if let Some(remedy) = &finding.remedy {
        let shown = match detail {
            Detail::Brief => first_sentence(remedy),
            Detail::Full => remedy,
        };
        below(Tone::Plain, format!("Do: {}", commands_tied(shown)));
    }
    if let Some(confirm) = finding.confirm.as_ref().filter(|_| detail == Detail::Full) {
        below(Tone::Plain, format!("Confirm: {}", tied(confirm)));
    }
    text
}

/// `text` in lines that start below each other behind the number.
fn hanging(text: &str, width: usize) -> String {
    wrap(text, width, 0).replace('\n', &format!("\n{}", " ".repeat(INDENT)))
}

/// `Seen: ` and as many pieces of evidence as fit on one line, at least one; the JSON has
/// all of them.
fn evidence(pieces: &[Evidence], width: usize) -> String {
    let mut line = "Seen: ".to_owned();
    for (index, piece) in pieces.iter().enumerate() {
        let separator = if index == 0 { "" } else { "; " };
        let next = format!("{separator}{}: {}", piece.name, value(piece));
        let left = pieces.len() - index;
        let rest = format!("; {left} more in --json");
        // The last piece needs no room for the words that others are missing.
        let reserve = if left == 1 { 0 } else { length(&rest) };
        if index > 0 && length(&line) + length(&next) + reserve > width {
            return line + &rest;
        }
        line.push_str(&next);
    }
    line
}
