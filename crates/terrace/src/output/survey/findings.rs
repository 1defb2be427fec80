//! The findings of the survey's page: numbered claims, each with what to do about it; in
//! detail also with what it rests on, what the remedy risks and how to confirm it.

use super::{Detail, painted_lines};
use crate::output::Page;
use crate::output::figure::{self, Digits};
use crate::output::style::Tone;
use crate::output::table::{length, tied, wrap};
use model::survey::Survey;
use model::{Evidence, Finding, Grade};

/// The space before what belongs to a numbered claim.
const INDENT: usize = 4;

/// The count of odd things and the findings themselves.
pub fn render(survey: &Survey, detail: Detail, page: Page) -> String {
    let line = wrap(&count(survey, detail), page.width - 1, 1);
    let mut text = format!(" {}\n", painted_lines(page, Tone::Strong, &line));
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

/// `text` up to the end of its first sentence; a full stop in parentheses ends none.
fn first_sentence(text: &str) -> &str {
    let mut open = 0_usize;
    for (index, letter) in text.char_indices() {
        match letter {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            '.' if open == 0 && text[index + 1..].starts_with(' ') => return &text[..=index],
            _ => {}
        }
    }
    text
}

/// The programs that remedies tell a person to run.
const PROGRAMS: [&str; 3] = ["echo ", "sudo ", "terrace "];

/// `text` with each command after a colon held together on one line, so that it can be
/// copied from the page: `until the next boot: echo 1 | sudo tee FILE, and measure`.
fn commands_tied(text: &str) -> String {
    let mut pieces = text.split(": ");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(": ");
        if !PROGRAMS.iter().any(|program| piece.starts_with(program)) {
            out.push_str(piece);
            continue;
        }
        let ends = [" (", ", ", ". "].iter().filter_map(|end| piece.find(end));
        let (command, rest) = piece.split_at(ends.min().unwrap_or(piece.len()));
        out.push_str(&tied(command));
        out.push_str(rest);
    }
    out
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

fn value(piece: &Evidence) -> String {
    match piece.unit.as_str() {
        "ns" => figure::time(piece.value, Digits::Three),
        "bytes_per_s" => figure::rate(piece.value, Digits::Three),
        "bytes" if piece.value >= 0.0 => figure::binary_size(piece.value as u64, Digits::Three),
        "s" => figure::time(piece.value * 1e9, Digits::Three),
        "ratio" | "count" => figure::number(piece.value, Digits::Three),
        other => format!("{} {other}", figure::number(piece.value, Digits::Three)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_at_a_stop_before_a_space_outside_of_parentheses() {
        let first = "Add some (zram, e.g. half of RAM. Or a file), by glibc.cpu.x=1.";
        assert_eq!(first_sentence(&format!("{first} Risk: none.")), first);
        assert_eq!(first_sentence("No stop"), "No stop");
        assert_eq!(first_sentence(""), "");
        assert_eq!(first_sentence("Stray ) here. Then"), "Stray ) here.");
    }

    #[test]
    fn a_command_in_a_remedy_is_never_broken() {
        let remedy = "Correct it until the next boot: echo 0 | sudo tee /sys/block/vdb/queue/rotational \
                      (a udev rule makes it last).";
        let command = "echo 0 | sudo tee /sys/block/vdb/queue/rotational";
        for width in 20..100 {
            let lines = wrap(&commands_tied(remedy), width, 0);
            assert!(lines.lines().any(|line| line.contains(command)), "{lines}");
        }
        assert_eq!(commands_tied("Risk: none."), "Risk: none.");
        assert_eq!(
            commands_tied("Type: sudo x, y"),
            format!("Type: {}, y", tied("sudo x"))
        );
    }
}
