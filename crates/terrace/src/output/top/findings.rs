//! The findings as lines: each its claim, the chosen one also what it rests on and what would help.
//! Where not all fit, those around the chosen one are shown.

use crate::output::prose::{commands_tied, first_sentence, shown};
use crate::output::style::{Tone, Toned};
use crate::output::table::{length, tied, wrap};
use crate::output::verdict::{claim_words, cleared_words, nothing, shortened};
use model::explanation::{Cause, Explanation};

/// The columns before a claim: the mark, its number, a space.
const INDENT: usize = 4;

/// The columns of `  measured`.
const GRADE: usize = 10;

/// Below this width there is no room for grades.
const WIDTH_FOR_GRADES: usize = 60;

/// The lines of the findings, at most `room`.
pub fn lines(explanation: &Explanation, chosen: usize, width: usize, room: usize) -> Vec<Toned> {
    let findings = &explanation.findings;
    if findings.is_empty() {
        return vec![vec![(Tone::Strong, format!(" {}", nothing(explanation)))]];
    }
    let blocks: Vec<Vec<Toned>> = (findings.iter().enumerate())
        .map(|(index, cause)| block(cause, index, index == chosen, width))
        .collect();
    // From the first block on that leaves room for the chosen one.
    let fits = |first: &usize| blocks[*first..=chosen].iter().map(Vec::len).sum::<usize>() <= room;
    let first = (0..chosen).find(fits).unwrap_or(chosen);
    let mut lines: Vec<Toned> = blocks[first..].iter().flatten().cloned().collect();
    lines.truncate(room);
    lines
}

fn block(cause: &Cause, index: usize, is_chosen: bool, width: usize) -> Vec<Toned> {
    let finding = &cause.finding;
    let has_grade = width >= WIDTH_FOR_GRADES;
    let room = width.saturating_sub(INDENT + 1 + if has_grade { GRADE } else { 0 });
    let words = wrap(&claim_words(cause), room, 0);
    let mark = if is_chosen { '>' } else { ' ' };
    let tone = if is_chosen { Tone::Strong } else { Tone::Plain };
    let mut lines = Vec::new();
    for (number, words) in words.lines().enumerate() {
        let mut line = match number {
            0 => vec![(Tone::Warn, format!("{mark}{:>2} ", index + 1))],
            _ => vec![(Tone::Plain, " ".repeat(INDENT))],
        };
        line.push((tone, words.to_owned()));
        if number == 0 && has_grade {
            let fill = room.saturating_sub(length(words)) + 1;
            let grade = finding.grade.to_string();
            line.push((Tone::Dim, format!("{}{grade:>9}", " ".repeat(fill))));
        }
        lines.push(line);
    }
    if is_chosen {
        lines.extend(below(cause, width));
    }
    lines
}

/// Who had a part in the chosen finding, what it rests on, and what would help.
fn below(cause: &Cause, width: usize) -> Vec<Toned> {
    let evidence = cause.finding.evidence.iter();
    let pieces: Vec<String> = evidence.map(|piece| tied(&shown(piece))).collect();
    let remedy = cause.finding.remedy.as_deref().map(|remedy| {
        let first = first_sentence(remedy).trim_end_matches('.');
        format!("Do: {}", commands_tied(first))
    });
    let room = width.saturating_sub(INDENT + 3);
    let margin = " ".repeat(INDENT + 2);
    let mut lines = Vec::new();
    let who = cause.who.iter().map(|sentence| (Tone::Plain, sentence.clone()));
    let rest = [(Tone::Dim, pieces.join("; ")), (Tone::Plain, remedy.unwrap_or_default())];
    for (tone, text) in who.chain(rest) {
        let wrapped = wrap(&text, room, 2);
        lines.extend(
            wrapped.lines().map(|line| vec![(tone, format!("{margin}{}", shortened(line, room)))]),
        );
    }
    lines
}

/// `text` on lines of at most `width` columns, the further ones four spaces behind the first.
pub fn hanging(tone: Tone, text: &str, width: usize) -> impl Iterator<Item = Toned> {
    let wrapped = wrap(text, width.saturating_sub(2), 4);
    let lines: Vec<Toned> = wrapped.lines().map(|line| vec![(tone, format!(" {line}"))]).collect();
    lines.into_iter()
}

/// `Not to blame: swap 0, steal 0.2 %`: as many as fit in so many lines.
pub fn cleared(explanation: &Explanation, width: usize, room: usize) -> Vec<Toned> {
    let lines = |shown: usize| -> Vec<Toned> {
        hanging(Tone::Dim, &cleared_words(&explanation.cleared, shown), width).collect()
    };
    let counts = (1..=explanation.cleared.len()).rev();
    let fitting = counts.map(lines).find(|lines| lines.len() <= room);
    fitting.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::explanation::ClearedCause;
    use model::{Evidence, Finding, Grade};

    fn explanation(count: usize) -> Explanation {
        let cause = |number: usize| {
            let claim = format!("Claim {number} of some length that a narrow screen has to break.");
            let reads = Evidence::new("reads", 6_480.0, "count", "x");
            let finding = Finding::new(Grade::Measured, claim, [reads]);
            Cause::new(Some(1), finding.remedy("Do less of it. Risk: none."))
        };
        let cleared = |name: &str| ClearedCause {
            id: name.to_owned(),
            name: name.to_owned(),
            evidence: Evidence::new("x", 0.0, "count", "x"),
            cost_ns: None,
        };
        Explanation {
            findings: (0..count).map(cause).collect(),
            cleared: ["swap", "steal", "CPU limit"].map(cleared).to_vec(),
            ..Explanation::default()
        }
    }

    fn text(lines: &[Toned]) -> Vec<String> {
        let joined = |line: &Toned| line.iter().map(|(_, text)| text.as_str()).collect();
        lines.iter().map(joined).collect()
    }

    #[test]
    fn the_chosen_finding_shows_what_it_rests_on() {
        let lines = text(&lines(&explanation(2), 1, 80, 20));
        assert_eq!(
            lines,
            [
                "  1 Claim 0 of some length that a narrow screen has to break           measured",
                "> 2 Claim 1 of some length that a narrow screen has to break           measured",
                "      reads 6,480",
                "      Do: Do less of it",
            ]
        );
    }

    #[test]
    fn the_chosen_one_is_seen_whatever_the_room() {
        let explanation = explanation(9);
        for width in [40, 60, 80, 200] {
            for room in 3..12 {
                for chosen in 0..9 {
                    let lines = text(&lines(&explanation, chosen, width, room));
                    assert!(lines.len() <= room);
                    let mark = format!(">{:>2} Claim {chosen}", chosen + 1);
                    assert!(lines.iter().any(|line| line.starts_with(&mark)), "{lines:?}");
                    assert!(lines.iter().all(|line| length(line) <= width), "{lines:?}");
                }
            }
        }
    }

    #[test]
    fn cleared_suspects_are_named_as_far_as_there_is_room() {
        let explanation = explanation(1);
        let all = text(&cleared(&explanation, 80, 1));
        assert_eq!(all, [" Not to blame: swap 0, steal 0, CPU limit 0"]);
        let few = text(&cleared(&explanation, 40, 1));
        assert_eq!(few, [" Not to blame: swap 0, steal 0, 1 more"]);
        assert_eq!(cleared(&explanation, 40, 0), Vec::<Toned>::new());
    }
}
