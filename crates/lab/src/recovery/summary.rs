//! What all runs of a way say together, and whether they differ from doing nothing: pure. It takes
//! no shape of the values for granted, only their order.

use serde::Serialize;

/// With so many runs of each, one way below the other in every pair is luck in 1 of 35 cases
/// (2 of the 70 orders of 8 values).
const RUNS_FOR_PROOF: usize = 4;

/// The runs of one way together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Which application.
    pub application: String,
    /// Which way.
    pub way: String,
    /// How many runs.
    pub runs: usize,
    /// How many of them came back to normal before the limit.
    pub recovered: usize,
    /// The median, ns; a run that did not come back counts as longer than all others.
    pub median_ns: Option<u64>,
    /// The shortest, ns.
    pub shortest_ns: Option<u64>,
    /// The longest, ns.
    pub longest_ns: Option<u64>,
    /// The median until the disk was as the original demanded, ns.
    pub normal_disk_ns: Option<u64>,
    /// How many times faster than doing nothing, by the medians.
    pub times_faster: Option<f64>,
    /// Whether that is more than chance; `None` beside itself.
    pub proven: Option<bool>,
}

/// Two clocks of a run: until the application, and until the disk was back to normal, ns.
pub type Clocks = (Option<u64>, Option<u64>);

/// What `runs` of a way say beside those of doing nothing.
pub fn of(application: &str, way: &str, runs: &[Clocks], nothing: Option<&[Clocks]>) -> Summary {
    let own = sorted(runs.iter().map(|run| run.0));
    let median_ns = median(&own);
    let theirs = nothing.map(|nothing| sorted(nothing.iter().map(|run| run.0)));
    let times_faster =
        theirs.as_ref().and_then(|theirs| Some(median(theirs)? as f64 / median_ns?.max(1) as f64));
    Summary {
        application: application.to_owned(),
        way: way.to_owned(),
        runs: runs.len(),
        recovered: own.iter().filter(|ns| **ns != u64::MAX).count(),
        median_ns,
        shortest_ns: own.first().copied().and_then(reached),
        longest_ns: own.last().copied().and_then(reached),
        normal_disk_ns: median(&sorted(runs.iter().map(|run| run.1))),
        times_faster,
        proven: theirs.map(|theirs| apart(&own, &theirs)),
    }
}

/// Whether every value of one is below every value of the other, of enough values.
fn apart(one: &[u64], other: &[u64]) -> bool {
    let below = |low: &[u64], high: &[u64]| low.last() < high.first();
    one.len().min(other.len()) >= RUNS_FOR_PROOF && (below(one, other) || below(other, one))
}

/// In order; what was never reached is the longest.
fn sorted(clocks: impl Iterator<Item = Option<u64>>) -> Vec<u64> {
    let mut all: Vec<u64> = clocks.map(|clock| clock.unwrap_or(u64::MAX)).collect();
    all.sort_unstable();
    all
}

/// The upper median, so that it is a value that was measured.
fn median(sorted: &[u64]) -> Option<u64> {
    sorted.get(sorted.len() / 2).copied().and_then(reached)
}

fn reached(ns: u64) -> Option<u64> {
    Some(ns).filter(|ns| *ns != u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(values: &[u64]) -> Vec<Clocks> {
        values.iter().map(|value| (Some(*value), None)).collect()
    }

    #[test]
    fn a_difference_needs_four_runs_that_do_not_overlap() {
        let of = |own: &[u64], nothing: &[u64]| of("a", "w", &runs(own), Some(&runs(nothing)));
        let apart = of(&[1, 2, 3, 4], &[10, 20, 30, 40]);
        assert_eq!((apart.times_faster, apart.proven), (Some(10.0), Some(true)));
        assert_eq!(of(&[1, 2, 3], &[10, 20, 30]).proven, Some(false));
        assert_eq!(of(&[1, 2, 3, 10], &[10, 20, 30, 40]).proven, Some(false));
        assert_eq!(of(&[50, 60, 70, 80], &[10, 20, 30, 40]).proven, Some(true), "slower");
    }

    #[test]
    fn a_run_that_never_came_back_is_the_longest() {
        let summary = of("a", "w", &[(None, None), (Some(2), Some(1)), (None, None)], None);
        assert_eq!((summary.recovered, summary.runs), (1, 3));
        assert_eq!((summary.median_ns, summary.shortest_ns), (None, Some(2)));
        assert_eq!((summary.longest_ns, summary.proven), (None, None));
    }
}
