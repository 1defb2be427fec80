//! What a flash cache counts while it serves: the series `boost.<name>.*` of a recording.
//!
//! The process that serves writes them to a file, a line `NAME VALUE` each, which recorders read.
//! Counters go on where those of a process before ended.

use crate::recording::SeriesKind::{self, Counter, Gauge as Level};

/// How many there are.
pub const COUNT: usize = 13;

/// Name, unit and kind of each, in the order of [`BoostCounters`].
pub const SERIES: [(&str, &str, SeriesKind); COUNT] = [
    ("cached_bytes", "bytes", Level),
    ("reads", "count", Counter),
    ("read_bytes", "bytes", Counter),
    ("hits", "count", Counter),
    ("hit_bytes", "bytes", Counter),
    ("bailed_out", "count", Counter),
    ("writes", "count", Counter),
    ("write_bytes", "bytes", Counter),
    ("filled_frames", "count", Counter),
    ("prefetched_frames", "count", Counter),
    ("medium_bytes", "bytes", Counter),
    ("medium_errors", "count", Counter),
    ("medium_wrong", "count", Counter),
];

/// The values, in the order of [`SERIES`]; `None` for one that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoostCounters(pub [Option<u64>; COUNT]);

impl BoostCounters {
    /// These with `earlier` ones before them: counters are added up, levels are as they are.
    #[must_use]
    pub fn after(mut self, earlier: &Self) -> Self {
        for ((value, earlier), (_, _, kind)) in self.0.iter_mut().zip(earlier.0).zip(SERIES) {
            if kind == Counter {
                *value = value.map(|value| value.saturating_add(earlier.unwrap_or(0)));
            }
        }
        self
    }

    /// A line for each that is known.
    #[must_use]
    pub fn to_text(&self) -> String {
        let known = |(value, (name, _, _)): (&Option<u64>, &(&str, &str, SeriesKind))| {
            Some(format!("{name} {}\n", (*value)?))
        };
        self.0.iter().zip(&SERIES).filter_map(known).collect()
    }

    /// What such lines say; lines of other names are of other versions.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let mut counters = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once(' ')) {
            if let Some(at) = SERIES.iter().position(|(known, _, _)| *known == name) {
                counters.0[at] = value.parse().ok();
            }
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gives_back_what_was_known() {
        let mut counters = BoostCounters::default();
        counters.0[0] = Some(5);
        counters.0[2] = Some(u64::MAX);
        assert_eq!(counters.to_text(), "cached_bytes 5\nread_bytes 18446744073709551615\n");
        assert_eq!(BoostCounters::from_text(&counters.to_text()), counters);
        let hostile = "reads\nreads -1\nhits 1 2\nnew 3\n\u{0}\nread_bytes 18446744073709551616\n";
        assert_eq!(BoostCounters::from_text(hostile), BoostCounters::default());
    }

    #[test]
    fn counters_go_on_and_levels_do_not() {
        let earlier = BoostCounters([Some(7); COUNT]);
        let now = BoostCounters([Some(1); COUNT]).after(&earlier);
        assert_eq!((now.0[0], now.0[1], now.0[12]), (Some(1), Some(8), Some(8)));
        assert_eq!(BoostCounters::default().after(&earlier), BoostCounters::default());
    }
}
