//! What would help: the first remedy on a brief page, what each brings on a detailed one, and the
//! sentence that says whether it was the disk.

use super::{continued, paragraph};
use crate::output::Page;
use crate::output::prose::{commands_tied, first_sentence, long_time};
use crate::output::style::Tone;
use crate::output::table::tied;
use model::bytes::three_digits;
use model::explanation::{Cause, ExpectedGain, Explanation, Remedy};

/// From this factor on the low end of a gain is worth saying.
const WORTH_SAYING: f64 = 1.05;

/// The remedy that is expected to bring most; of an explanation that has none ranked, that of the
/// worst finding that has one.
pub fn brief(explanation: &Explanation, page: Page) -> String {
    let findings = &explanation.findings;
    let Some(first) = explanation.remedies.first() else {
        return of_findings(findings, page);
    };
    let (number, _) =
        (1..).zip(findings).find(|(_, cause)| cause.finding.id == first.finding).unzip();
    let verb = if first.is_to_be_tried { "To try" } else { "Would help" };
    let which = number.map_or(String::new(), |number| which(findings, number));
    let remedy = continued(&commands_tied(first_sentence(&first.text).trim_end_matches('.')));
    let gain =
        first.gain.as_ref().map(|gain| format!(" ({}; model: {})", factor(gain), gain.model));
    let line = format!("{verb}{which}: {remedy}{}", gain.unwrap_or_default());
    let command = first.try_command.as_deref().map(|command| format!("Try it: {}", tied(command)));
    let lines = [Some(line), command].into_iter().flatten();
    lines.map(|line| paragraph(&line, Tone::Plain, page)).collect()
}

/// What the remedy of a finding is expected to bring, and the command that tries it.
pub fn of_cause(explanation: &Explanation, cause: &Cause) -> Vec<String> {
    let of = |remedy: &&Remedy| remedy.finding == cause.finding.id;
    let Some(remedy) = explanation.remedies.iter().find(of) else {
        return Vec::new();
    };
    let gain =
        remedy.gain.as_ref().map(|gain| format!("Expect: {}; model: {}", factor(gain), gain.model));
    let command = remedy.try_command.as_deref().map(|command| format!("Try: {}", tied(command)));
    gain.into_iter().chain(command).collect()
}

/// Whether it was the disk.
pub fn disk(explanation: &Explanation, page: Page) -> String {
    let text = explanation.disk.as_ref().map_or("", |disk| disk.text.as_str());
    paragraph(text, Tone::Plain, page)
}

/// `1.2 to 1.6 times as fast`, `up to 1.6 times as fast`.
pub fn factor(gain: &ExpectedGain) -> String {
    let [low, high] = [gain.low, gain.high].map(three_digits);
    if gain.high < WORTH_SAYING {
        "hardly faster".to_owned()
    } else if gain.low < WORTH_SAYING {
        tied(&format!("up to {high} times as fast"))
    } else if low == high {
        tied(&format!("{low} times as fast"))
    } else {
        tied(&format!("{low} to {high} times as fast"))
    }
}

/// ` with 2`, where it is not the remedy of the worst finding or of what lies inside of that.
fn which(findings: &[Cause], number: usize) -> String {
    let mut inside = findings.iter().take(number).skip(1);
    let is_first = inside.all(|cause| cause.within_previous);
    if is_first { String::new() } else { format!(" with {number}") }
}

fn of_findings(findings: &[Cause], page: Page) -> String {
    let with_remedy = |cause: &Cause| cause.finding.remedy.is_some();
    let Some((number, cause)) = (1..).zip(findings).find(|(_, cause)| with_remedy(cause)) else {
        return String::new();
    };
    let text = cause.finding.remedy.as_deref().unwrap_or_default();
    let remedy = continued(&commands_tied(first_sentence(text).trim_end_matches('.')));
    let gain = cause.ns.map(|ns| tied(&format!("(at most {})", long_time(ns))));
    let which = which(findings, number);
    let line = format!("Would help{which}: {remedy} {}", gain.unwrap_or_default());
    paragraph(line.trim_end(), Tone::Plain, page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_a_range_and_what_cannot_be_noticed_is_not_promised() {
        let gain = |low, high| factor(&ExpectedGain { low, high, model: String::new() });
        let spoken = |text: String| text.replace('\u{a0}', " ");
        assert_eq!(spoken(gain(1.06, 3.2)), "1.06 to 3.2 times as fast");
        assert_eq!(spoken(gain(1.0, 3.2)), "up to 3.2 times as fast");
        assert_eq!(spoken(gain(2.0, 2.0)), "2 times as fast");
        assert_eq!(gain(1.0, 1.01), "hardly faster");
    }
}
