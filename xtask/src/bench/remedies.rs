//! The suite `remedies`: the first remedy of each case of the verdict suite that can be changed
//! here and put back, applied for real by `terrace run --try`.
//!
//! The verdict suite makes the stages and prints a line of JSON for each trial; here the lines
//! become rows: how many times as fast the command is with the change. A trial improves if its wall
//! time is proven shorter, and worsens if it is proven longer.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::Session;
use super::record::{Comparison, Series, Target};
use crate::error::Error;
use crate::process;

/// What the lines of the verdict suite begin with.
const LINE: &str = "remedy ";

/// What the line of a case ends with whose remedies are no settings.
const UNTRIED: &str = ": no remedy that can be tried";

/// A suite that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(1800);

/// The words that run it.
const SUITE: [&str; 7] = ["test", "-q", "-p", "terrace", "--test", "verdicts", "--"];

/// The cases of each `--part`, which takes at most a minute here: those in groups with limits,
/// those that read, those that use new memory, those that write, those that use or wait for
/// processors, those of many small files, and the scenes of several programs.
const PARTS: [(&str, &[&str]); 7] = [
    ("limits", &["limit_refaults", "swap_random", "swap_zeros", "cpu_quota"]),
    ("reads", &["cold_read", "cold_mmap", "copy_evicts", "git_status_cold", "browser_starts"]),
    ("memory", &["first_touch", "mappings"]),
    (
        "writes",
        &["write_small_group", "dirty_throttle", "write_limit", "misaligned", "fsync_storm"],
    ),
    (
        "processors",
        &["hog_beside", "lock_contention", "sleep", "pipe_wait", "make_j2", "short_children"],
    ),
    ("files", &["untar", "install_packages"]),
    (
        "scenes",
        &[
            "fork_storm",
            "backup_evicts",
            "leak_swaps",
            "analytics_touches",
            "quota_turns",
            "compile_jobs",
            "cron_among_idle",
        ],
    ),
];

/// The names of the parts; the scenes have no command that could be run again.
pub(super) const NAMES: &[&str] = &["limits", "reads", "memory", "writes", "processors", "files"];

/// Runs the suite and adds its rows.
///
/// # Errors
/// When the suite fails, or prints what cannot be read.
pub(super) fn run(session: &mut Session) -> Result<(), Error> {
    let mut command = Command::new("cargo");
    let part = session.request.part.as_deref();
    let of_part = PARTS.iter().find(|(name, _)| part == Some(*name));
    let chosen = of_part.map_or(&[][..], |(_, cases)| cases);
    command.args(SUITE).arg("--remedies").args(chosen).current_dir(&session.root);
    let text = process::run(command, LIMIT)?.success()?.stdout;
    let names = chosen.iter().map(|name| format!(" {name}")).collect::<String>();
    session.record.command(format!("cargo {} --remedies{names}", SUITE.join(" ")));
    session.record.note(
        "the program and the stages are of the dev profile; what is cached is dropped before each \
         run"
        .to_owned(),
    );
    let trials = trials(&text)?;
    let untried = text.lines().filter_map(|line| line.strip_suffix(UNTRIED)).collect::<Vec<_>>();
    if !untried.is_empty() {
        let names = untried.join(", ");
        session.record.note(format!("no remedy is a setting that could be tried: {names}"));
    }
    if trials.is_empty() {
        return Ok(());
    }
    let share = |verdict: &str| {
        let of_it = trials.iter().filter(|trial| trial.verdict == verdict).count();
        of_it as f64 / trials.len() as f64
    };
    let mut rows = trials.iter().map(Trial::row).collect::<Result<Vec<_>, _>>()?;
    for (what, value, target) in [
        ("first remedies that improve", share("smaller"), Target::AtLeast(0.9)),
        ("first remedies that worsen", share("larger"), Target::AtMost(0.0)),
    ] {
        let series = Series::new("terrace", &[value]);
        rows.push(Comparison::alone(what, "", series, Some(target))?);
    }
    session.record.comparisons.extend(rows);
    Ok(())
}

/// One remedy that was tried.
#[derive(Debug, PartialEq)]
struct Trial {
    case: String,
    tried: String,
    verdict: String,
    /// How many times as fast: by the medians, and at the ends of the interval.
    factors: Vec<f64>,
}

impl Trial {
    fn row(&self) -> Result<Comparison, Error> {
        let what = format!("{}: {}", self.case, self.tried);
        Comparison::alone(&what, "times as fast", Series::new("with it", &self.factors), None)
    }
}

/// The trials in the output of the suite.
fn trials(text: &str) -> Result<Vec<Trial>, Error> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(LINE));
    let trials = lines.map(trial).collect::<Result<Vec<_>, _>>()?;
    if trials.is_empty() && !text.lines().any(|line| line.ends_with(UNTRIED)) {
        return Err(Error::Failed("no remedy could be tried here".to_owned()));
    }
    Ok(trials)
}

fn trial(line: &str) -> Result<Trial, Error> {
    let malformed =
        || Error::Malformed { what: "a line of the verdict suite", why: line.to_owned() };
    let value: Value = serde_json::from_str(line).map_err(|_| malformed())?;
    let text = |name: &str| value[name].as_str().map(str::to_owned).ok_or_else(malformed);
    let number = |name: &str| value[name].as_f64();
    let (first, second) = number("first_ns").zip(number("second_ns")).ok_or_else(malformed)?;
    let ends = [number("high_ns"), number("low_ns")].into_iter().flatten();
    // A side that may have taken no time at all bounds no factor.
    let factor = |difference: f64| {
        let with_it = first + difference;
        (with_it > 0.0).then(|| first / with_it)
    };
    Ok(Trial {
        case: text("case")?,
        tried: text("tried")?,
        verdict: text("verdict")?,
        factors: std::iter::once(first / second.max(1.0)).chain(ends.filter_map(factor)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_of_the_suite_is_in_one_part() {
        let suite = include_str!("../../../crates/terrace/tests/verdicts/cases.rs");
        let names = suite.lines().filter_map(|line| line.trim().strip_prefix("name: \""));
        let mut of_suite: Vec<&str> = names.filter_map(|rest| rest.split('"').next()).collect();
        let mut of_parts: Vec<&str> = PARTS.iter().flat_map(|(_, cases)| *cases).copied().collect();
        of_suite.sort_unstable();
        of_parts.sort_unstable();
        assert_eq!(of_suite, of_parts);
        let [parts @ .., _scenes] = PARTS.map(|(name, _)| name);
        assert_eq!(parts, *NAMES);
    }

    #[test]
    fn lines_of_the_suite_become_factors_and_others_are_left_out() {
        let line = r#"{"case":"cpu_quota","tried":"no CPU limit","finding":"cpu_limit","first_ns":4e9,"second_ns":1e9,"low_ns":-3.2e9,"high_ns":-2e9,"verdict":"smaller"}"#;
        let found =
            trials(&format!("skipped: needs swap\n{LINE}{line}\ncold_read: none\n")).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].factors, [4.0, 2.0, 5.0]);
        let unbounded = trial(&line.replace("-3.2e9", "-4.1e9")).unwrap();
        assert_eq!(unbounded.factors, [4.0, 2.0]);
        assert_eq!((found[0].case.as_str(), found[0].verdict.as_str()), ("cpu_quota", "smaller"));
        assert!(trials("nothing\n").is_err());
        assert_eq!(trials("sleep: no remedy that can be tried\n").unwrap(), []);
        assert!(trials(&format!("{LINE}{{}}\n")).is_err());
    }
}
