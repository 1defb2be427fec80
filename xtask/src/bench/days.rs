//! The suite `days`: what three newcomers do, as the tests of `terrace` repeat it, and the figures
//! that these tests print.
//!
//! A test prints a line of JSON for each value; here the values of one name become a row. A row
//! that must hold each time is judged by its worst value. Steps that fail are counted, and end
//! nothing: the record then says what was missed.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::Session;
use super::record::{Comparison, Series, Target};
use crate::error::Error;
use crate::process;

/// What the lines of figures begin with; the harness may have begun the line.
const LINE: &str = "figure {";

/// A part that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(1800);

/// The most memory that a command may take, as `cargo xtask attack` judges it.
const MOST_BYTES: f64 = (1_u64 << 30) as f64;

/// What of the values of a row is judged.
#[derive(Clone, Copy)]
enum Judged {
    /// Their median.
    Median,
    /// Their sum.
    Sum,
    /// The worst of them.
    Worst,
}

/// A row of the table: its name in the lines, what it says, its unit, its target.
struct Row {
    name: &'static str,
    what: &'static str,
    unit: &'static str,
    judged: Judged,
    target: Option<Target>,
}

const fn row(
    name: &'static str,
    what: &'static str,
    unit: &'static str,
    judged: Judged,
    target: Option<Target>,
) -> Row {
    Row { name, what, unit, judged, target }
}

use Judged::{Median, Sum, Worst};
use Target::{AtLeast, AtMost};

/// A part of the suite: the tests, and the rows that they fill.
struct Part {
    name: &'static str,
    words: &'static [&'static str],
    rows: &'static [Row],
}

/// The names of the parts.
pub(super) const PARTS: &[&str] = &["users", "engineer", "cleared", "full"];

const ALL: [Part; 4] = [
    Part {
        name: "users",
        words: &["--test", "users", "--", "client", "dba", "flight", "sre"],
        rows: &[
            row("dba_wrong", "DBA: wrong verdicts of 4", "", Sum, Some(AtMost(0.0))),
            row("dba_first_answer_s", "DBA: first right answer", "s", Worst, Some(AtMost(30.0))),
            row("sre_found", "SRE: real incidents found, of 3", "", Worst, Some(AtLeast(3.0))),
            row("sre_false", "SRE: moments that are none of them", "", Worst, Some(AtMost(2.0))),
            row("sre_cleared", "SRE: guilty that were cleared", "", Sum, Some(AtMost(0.0))),
            row("sre_first_answer_s", "SRE: first right answer", "s", Worst, Some(AtMost(30.0))),
            row("made_found", "made day: incidents found, of 3", "", Worst, Some(AtLeast(3.0))),
            row("made_false", "made day: other moments", "", Worst, Some(AtMost(2.0))),
        ],
    },
    // Her steps have no figures: they hold or they do not.
    Part { name: "engineer", words: &["--test", "users", "--", "engineer"], rows: &[] },
    Part {
        name: "cleared",
        words: &["--test", "cleared", "--"],
        rows: &[
            row("cleared_series", "series that were taken away or cut", "", Sum, None),
            row("cleared_blindly", "suspects cleared blindly", "", Sum, Some(AtMost(0.0))),
        ],
    },
    Part {
        name: "full",
        words: &["--test", "users", "--", "--ignored", "full_day"],
        rows: &[
            row("full_day_bytes", "a day of 10 samples a second: its ring", "B", Median, None),
            row("full_day_s", "to explain it", "s", Median, Some(AtMost(30.0))),
            row("full_day_peak_bytes", "the most memory", "B", Worst, Some(AtMost(MOST_BYTES))),
            row("full_day_found", "incidents found, of 3", "", Worst, Some(AtLeast(3.0))),
            row("full_day_false", "other moments", "", Worst, Some(AtMost(2.0))),
        ],
    },
];

/// Runs the tests that are asked for, and adds their rows.
///
/// # Errors
/// When the tests cannot be run, or print nothing that can be read.
pub(super) fn run(session: &mut Session) -> Result<(), Error> {
    let parts = ALL.iter().filter(|part| session.request.includes(part.name));
    let mut failed = 0.0;
    let mut passed = 0.0;
    for part in parts {
        let mut command = Command::new("cargo");
        command.args(["test", "-p", "terrace"]).args(part.words);
        command.args(["--nocapture", "--test-threads", "1"]).current_dir(&session.root);
        command.env("TERRACE_OF_BENCH", &session.terrace.program);
        let text = process::run(command, LIMIT)?.stdout;
        let words = part.words.join(" ");
        session.record.command(format!("cargo test -p terrace {words} --nocapture"));
        for skipped in text.lines().filter(|line| line.starts_with("skipped: ")) {
            session.record.note(format!("{}: {skipped}", part.name));
        }
        let (of_part, not) = counted(&text)?;
        passed += of_part;
        failed += not;
        for row in part.rows {
            match row.filled(&values(&text, row.name)) {
                Some(filled) => session.record.comparisons.push(filled?),
                None => session.record.note(format!("{}: no value", row.what)),
            }
        }
    }
    session.record.note("tests are of the dev profile; `full` explains with a release".to_owned());
    for (what, value, target) in
        [("steps that hold", passed, None), ("steps that do not", failed, Some(AtMost(0.0)))]
    {
        session.record.add_alone(what, "", Series::new("terrace", &[value]), target)?;
    }
    Ok(())
}

impl Row {
    /// The row with these values; `None` without one.
    fn filled(&self, values: &[f64]) -> Option<Result<Comparison, Error>> {
        let folded = |fold: fn(f64, f64) -> f64| values.iter().copied().reduce(fold);
        let judged = match (self.judged, self.target) {
            (Median, _) => values.to_vec(),
            (Sum, _) => vec![folded(|a, b| a + b)?],
            (Worst, Some(AtLeast(_))) => vec![folded(f64::min)?],
            (Worst, _) => vec![folded(f64::max)?],
        };
        let series = Series::new("terrace", &judged);
        (!judged.is_empty()).then(|| Comparison::alone(self.what, self.unit, series, self.target))
    }
}

/// The values of a row in what the tests printed.
fn values(text: &str, name: &str) -> Vec<f64> {
    let lines = text.lines().filter_map(|line| line.find(LINE).map(|at| &line[at + 7..]));
    let parsed = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let own = parsed.filter(|line| line["row"] == name);
    own.filter_map(|line| line["value"].as_f64()).collect()
}

/// How many tests passed and failed, by the summary of the harness.
fn counted(text: &str) -> Result<(f64, f64), Error> {
    let summary = text.lines().rfind(|line| line.starts_with("test result: "));
    let count = |what: &str| {
        let words: Vec<&str> = summary?.split_whitespace().collect();
        let at = words.iter().position(|word| word.trim_end_matches(';') == what)?;
        words.get(at.checked_sub(1)?)?.parse().ok()
    };
    let both = count("passed").zip(count("failed"));
    let why = || summary.unwrap_or("no summary").to_owned();
    both.ok_or_else(|| Error::Malformed { what: "the output of the tests", why: why() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "running 2 tests\n\
        test sre::a_day ... figure {\"row\":\"made_found\",\"value\":3.0}\n\
        figure {\"row\":\"made_found\",\"value\":2.0}\n\
        figure {\"row\":\"other\",\"value\":9.5}\n\
        ok\n\n\
        test result: FAILED. 7 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out\n";

    #[test]
    fn lines_of_tests_become_rows_that_the_worst_value_judges() {
        assert_eq!(values(PRINTED, "made_found"), [3.0, 2.0]);
        assert_eq!(counted(PRINTED).unwrap(), (7.0, 1.0));
        assert!(counted("nothing").is_err());
        let found = row("made_found", "found", "", Worst, Some(AtLeast(3.0)));
        let filled = found.filled(&values(PRINTED, found.name)).unwrap().unwrap();
        assert_eq!(filled.is_reached(), Some(false));
        let sum = row("made_found", "sum", "", Sum, Some(AtMost(5.0)));
        assert_eq!(sum.filled(&[3.0, 2.0]).unwrap().unwrap().is_reached(), Some(true));
        assert!(found.filled(&[]).is_none());
    }
}
