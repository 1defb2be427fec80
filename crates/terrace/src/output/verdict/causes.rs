//! What hurt, which suspects are cleared, and what would help: the numbered part of a verdict.
//! A brief page has the worst of each and one line of evidence; a detailed one has all.

use super::{continued, nothing, paragraph, remedies, usage};
use crate::output::Page;
use crate::output::prose::{commands_tied, counted_value, indented, long_time, shown};
use crate::output::style::Tone;
use crate::output::table::{length, tied, wrap};
use model::explanation::{AccountedTime, Cause, ClearedCause, Explanation, short_words};
use model::{Evidence, Grade};

/// Findings on a brief page: with bar, suspects and cost they make about ten lines.
const MOST_FINDINGS: usize = 3;

/// Lines of suspects on a brief page.
const MOST_CLEARED_LINES: usize = 2;

/// The columns before what belongs to a numbered claim.
const INDENT: usize = 3;

/// Below this width the grade follows the claim instead of standing at the margin.
const MARGIN_FOR_GRADES: usize = 60;

/// Findings, suspects and remedy of a brief page.
pub fn brief(explanation: &Explanation, page: Page) -> String {
    let findings = &explanation.findings;
    let mut text = String::new();
    if findings.is_empty() {
        text.push_str(&paragraph(nothing(explanation), Tone::Strong, page));
    }
    for (number, cause) in (1..).zip(findings.iter().take(MOST_FINDINGS)) {
        text.push_str(&claim(number, cause, page));
        text.push_str(&seen_in_one_line(&cause.finding.evidence, page));
        text.push_str(&who(cause, number == 1, page));
    }
    let more = findings.len().saturating_sub(MOST_FINDINGS);
    if more > 0 {
        text.push_str(&paragraph(&and_smaller(more), Tone::Dim, page));
    }
    text.push_str(&usage::brief(explanation, page));
    text.push_str(&cleared_in_short(&explanation.cleared, page));
    text.push_str(&remedies::disk(explanation, page));
    text.push_str(&remedies::brief(explanation, page));
    text
}

/// Findings with all that they rest on, what to do and how to confirm it.
pub fn full(explanation: &Explanation, page: Page) -> String {
    let title = if explanation.findings.is_empty() { nothing(explanation) } else { "What hurt" };
    let mut text = format!("\n{}", paragraph(title, Tone::Strong, page));
    for (number, cause) in (1..).zip(&explanation.findings) {
        text.push_str(&claim(number, cause, page));
        text.push_str(&who(cause, true, page));
        for piece in &cause.finding.evidence {
            let line = format!("{} ({})", shown(piece), piece.source);
            text.push_str(&below(&line, Tone::Dim, page));
        }
        if let Some(line) = accounted(cause) {
            text.push_str(&below(&line, Tone::Dim, page));
        }
        if let Some(remedy) = &cause.finding.remedy {
            let line = format!("Do: {}", commands_tied(remedy));
            text.push_str(&below(&line, Tone::Plain, page));
        }
        for line in remedies::of_cause(explanation, cause) {
            text.push_str(&below(&line, Tone::Plain, page));
        }
        if let Some(confirm) = &cause.finding.confirm {
            let line = format!("Confirm: {}", tied(confirm));
            text.push_str(&below(&line, Tone::Plain, page));
        }
    }
    text.push_str(&remedies::disk(explanation, page));
    text
}

/// `swap 31,483 pages in 12 ms`, `reads 6.1 ms`, `small page cache 0`: a number stands beside an
/// innocent only if it says why it is innocent.
fn suspect(cleared: &ClearedCause) -> String {
    let ClearedCause { name, evidence, cost_ns, .. } = cleared;
    let counted = counted_value(evidence);
    let says_why =
        evidence.unit == "ns" || evidence.unit == "ratio" || evidence.unit.ends_with("looked at");
    match cost_ns {
        _ if evidence.value == 0.0 && evidence.unit != "ratio" => format!("{name} 0"),
        Some(ns) => format!("{name} {counted} in {}", long_time(*ns)),
        None if says_why => format!("{name} {counted}"),
        None => name.clone(),
    }
}

/// ` 1 Waited 25.2 s for reads from /data                                  measured`
fn claim(number: usize, cause: &Cause, page: Page) -> String {
    let finding = &cause.finding;
    let text = claim_words(cause);
    let label = page.style.paint(Tone::Warn, &format!("{number:>2}"));
    let grade = finding.grade.to_string();
    let at_margin = page.width >= MARGIN_FOR_GRADES;
    let reserved = if at_margin { length("measured") + 2 } else { 0 };
    let room = page.width.saturating_sub(1 + INDENT + reserved);
    let claim = match finding.grade {
        Grade::Measured => text,
        _ if at_margin || text.contains(&grade) => text,
        _ => format!("{text} ({grade})"),
    };
    let wrapped = wrap(&claim, room, 0);
    let mut lines = wrapped.lines();
    let first = lines.next().unwrap_or_default();
    let mut block = format!("{label} {first}");
    if at_margin {
        let gap = (room + 2).saturating_sub(length(first));
        let before_grade = length("measured").saturating_sub(length(&grade));
        block.push_str(&" ".repeat(gap + before_grade));
        block.push_str(&page.style.paint(Tone::Dim, &grade));
    }
    block.push('\n');
    block.extend(lines.map(|line| format!("{}{line}\n", " ".repeat(INDENT))));
    block
}

/// The claim as a line has it: without a full stop, `of which` before one that lies in another.
pub fn claim_words(cause: &Cause) -> String {
    let words = if cause.within_previous {
        of_which(&cause.finding.claim)
    } else {
        cause.finding.claim.clone()
    };
    words.trim_end_matches('.').to_owned()
}

/// The claim of a finding that lies inside of the one before it.
fn of_which(claim: &str) -> String {
    if claim.to_lowercase().starts_with("of which") {
        return claim.to_owned();
    }
    format!("of which: {}", continued(claim))
}

/// `accounts for 552 ms block read, 221 ms faults on files`; `None` where it is of user code.
fn accounted(cause: &Cause) -> Option<String> {
    let parts = cause.accounts_for.iter();
    let words = |part: &AccountedTime| {
        format!("{} {}", tied(&long_time(part.ns)), tied(&short_words(&part.part)))
    };
    let each: Vec<String> = parts.map(words).collect();
    (!each.is_empty()).then(|| format!("accounts for {}", each.join(", ")))
}

/// Who it was, and which files if they are wanted.
fn who(cause: &Cause, with_files: bool, page: Page) -> String {
    let shown = if with_files { cause.who.len() } else { 1 };
    let sentences = cause.who.iter().take(shown);
    sentences.map(|sentence| below(sentence, Tone::Plain, page)).collect()
}

/// As many pieces as fit on one line, at least one.
fn seen_in_one_line(pieces: &[Evidence], page: Page) -> String {
    let room = page.width.saturating_sub(1 + INDENT + 2);
    let mut line = String::new();
    for piece in pieces {
        let next = shown(piece);
        if line.is_empty() {
            line = next;
        } else if length(&line) + 2 + length(&next) <= room {
            line = format!("{line}; {next}");
        }
    }
    below(&line, Tone::Dim, page)
}

fn below(text: &str, tone: Tone, page: Page) -> String {
    indented(text, tone, INDENT + 2, INDENT + 4, page)
}

/// `Not to blame: swap 0, steal 0.2 %`, as many as fit in two lines.
fn cleared_in_short(cleared: &[ClearedCause], page: Page) -> String {
    if cleared.is_empty() {
        return String::new();
    }
    let lines = |shown: usize| paragraph(&cleared_words(cleared, shown), Tone::Plain, page);
    let fits = |shown: &usize| lines(*shown).lines().count() <= MOST_CLEARED_LINES;
    lines((1..=cleared.len()).rev().find(fits).unwrap_or(1))
}

/// The first `shown` of the cleared suspects, and how many more there are.
pub fn cleared_words(cleared: &[ClearedCause], shown: usize) -> String {
    let names: Vec<String> = cleared[..shown].iter().map(|one| tied(&suspect(one))).collect();
    let more = match cleared.len() - shown {
        0 => String::new(),
        left => format!(", {left}\u{a0}more"),
    };
    format!("Not to blame: {}{more}", names.join(", "))
}

fn and_smaller(more: usize) -> String {
    let noun = if more == 1 { "one" } else { "ones" };
    format!("and {more} smaller {noun}")
}
