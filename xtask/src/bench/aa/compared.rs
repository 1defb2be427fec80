//! Surveys in groups: what `terrace compare` itself calls different between two groups of one
//! machine, and whether it finds a slowdown of 15 % in one of them.
//!
//! The surveys that the bench made are drawn anew for each comparison, five for each side; the
//! slowdown is put into the figures of the second side.

use model::TierKind;
use model::survey::Survey;
use serde_json::Value;
use testkit::Random;

use super::judged::Pairs;
use super::{LIMIT, one};
use crate::bench::directory::WorkDirectory;
use crate::bench::peer::Peer;
use crate::bench::record::{Comparison, Target};
use crate::bench::report;
use crate::error::Error;

/// Surveys of each side.
pub(super) const SIDE: usize = 5;

/// Comparisons of a machine with itself, and as many with a slowdown.
const COMPARISONS: usize = 40;

/// How much longer an access of the slowed side takes.
const SLOWER: f64 = 1.15;

/// Compares groups of `surveys`; the rows of the record.
pub(super) fn measure(
    terrace: &Peer,
    surveys: &[Survey],
    directory: &WorkDirectory,
) -> Result<Vec<Comparison>, Error> {
    let (mut equal, mut found) = (Pairs::default(), Pairs::default());
    let mut random = Random(5);
    for number in 1..=COMPARISONS {
        eprintln!("comparison of surveys: {number} of {COMPARISONS}");
        let (first, second) = drawn(surveys.len(), &mut random);
        let side = |runs: &[usize], name: &str, factor: f64| -> Result<Vec<String>, Error> {
            let each = runs
                .iter()
                .map(|&run| written(&surveys[run], factor, directory, &format!("{name}-{run}")));
            each.collect()
        };
        let first = side(&first, "first", 1.0)?;
        let same = compare(terrace, &first, &side(&second, "second", 1.0)?)?;
        same.iter().for_each(|item| equal.add(item.is_called));
        let items = compare(terrace, &first, &side(&second, "slowed", SLOWER)?)?;
        let slowed = items.iter().filter(|item| is_slowed(item));
        slowed.for_each(|item| found.add(item.is_larger));
    }
    Ok(vec![
        one(
            "equal groups of surveys: figures that compare calls different",
            equal.share(),
            Some(Target::AtMost(0.05)),
        )?,
        one(
            "15 % slower memory in one group: figures that compare finds",
            found.share(),
            Some(Target::AtLeast(0.9)),
        )?,
    ])
}

/// One judged item of a comparison.
pub(super) struct Item {
    pub(super) of: String,
    pub(super) name: String,
    pub(super) is_called: bool,
    pub(super) is_larger: bool,
}

/// The items that a comparison could judge; those that are 0 on both sides are left out.
pub(super) fn items(comparison: &Value) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    for item in report::list(comparison, "/items")? {
        let verdict = report::text(item, "/verdict")?;
        let is_nothing = |side: &str| item[side].as_f64().is_none_or(|value| value == 0.0);
        if report::text(item, "/basis")? == "nothing" || is_nothing("first") && is_nothing("second")
        {
            continue;
        }
        items.push(Item {
            of: report::text(item, "/of")?.to_owned(),
            name: report::text(item, "/name")?.to_owned(),
            is_called: verdict != "unproven",
            is_larger: verdict == "larger",
        });
    }
    Ok(items)
}

fn compare(terrace: &Peer, first: &[String], second: &[String]) -> Result<Vec<Item>, Error> {
    let sides = [("--first", first), ("--second", second)];
    let mut args = vec!["compare"];
    for (option, files) in sides {
        args.push(option);
        args.extend(files.iter().map(String::as_str));
    }
    items(&report::run(terrace, &args, LIMIT)?)
}

/// Two groups of runs that have none in common.
fn drawn(runs: usize, random: &mut Random) -> (Vec<usize>, Vec<usize>) {
    let mut left: Vec<usize> = (0..runs).collect();
    let mut draw = || {
        let each = (0..SIDE).map(|_| left.swap_remove(random.below(left.len() as u64) as usize));
        each.collect::<Vec<_>>()
    };
    (draw(), draw())
}

fn is_memory(kind: TierKind) -> bool {
    matches!(kind, TierKind::CpuCache | TierKind::Ram)
}

/// Whether this is a figure into which the slowdown was put.
fn is_slowed(item: &Item) -> bool {
    item.name == "latency"
        && (item.of == "RAM" || item.of.ends_with("cache") && item.of.starts_with('L'))
}

/// The file of a survey whose memory takes `factor` times as long.
fn written(
    survey: &Survey,
    factor: f64,
    directory: &WorkDirectory,
    name: &str,
) -> Result<String, Error> {
    let mut survey = survey.clone();
    for tier in survey.tiers.iter_mut().filter(|tier| is_memory(tier.kind)) {
        if let Some(latency) = &mut tier.latency_ns {
            latency.median *= factor;
            latency.low = latency.low.map(|ns| ns * factor);
            latency.high = latency.high.map(|ns| ns * factor);
        }
    }
    let text = serde_json::to_string(&survey).map_err(|error| Error::Failed(error.to_string()))?;
    directory.write(&format!("{name}.json"), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_no_run_in_common() {
        let mut random = Random(1);
        for _ in 0..20 {
            let (first, second) = drawn(11, &mut random);
            assert_eq!((first.len(), second.len()), (SIDE, SIDE));
            assert!(first.iter().all(|run| !second.contains(run) && *run < 11));
        }
    }

    #[test]
    fn only_judged_items_count() {
        let text = r#"{"items": [
            {"of": "RAM", "name": "latency", "verdict": "larger", "basis": "ranks", "first": 1, "second": 2},
            {"of": "RAM", "name": "read", "verdict": "smaller", "basis": "ranks", "first": 2, "second": 1},
            {"of": "page cache", "name": "latency", "verdict": "unproven", "basis": "ranks", "first": 0, "second": 1},
            {"of": "slice", "name": "block_io", "verdict": "unproven", "basis": "ranks", "first": 0, "second": 0},
            {"of": "L2 cache", "name": "latency", "verdict": "unproven", "basis": "nothing", "first": 1, "second": 1}]}"#;
        let items = items(&report::parse(text).unwrap()).unwrap();
        assert_eq!(items.len(), 3);
        assert_eq!(items.iter().filter(|item| item.is_called).count(), 2);
        let slowed: Vec<&str> =
            items.iter().filter(|item| is_slowed(item)).map(|item| item.of.as_str()).collect();
        assert_eq!(slowed, ["RAM"]);
    }
}
