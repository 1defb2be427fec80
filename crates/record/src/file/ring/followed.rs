//! A ring that is still being written: its segments put together, the newest one as far as it is
//! whole. When the recorder begins another segment, the one before is read to its end first.
//!
//! What the recorder removes meanwhile stays in what was read: a page goes on from what it knows.

use super::joined::{Joined, newest, nothing_in, opened};
use super::place::segments;
use crate::Result;
use crate::file::follow::Tail;
use crate::file::reader::MAX_BYTES;
use model::recording::Recording;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use sys::directory::Directory;

/// A ring that may grow.
#[derive(Debug)]
pub struct RingFollower {
    directory: Directory,
    /// The newest segment, and its name.
    tail: Tail,
    name: OsString,
    joined: Joined,
}

impl RingFollower {
    /// Reads the ring in `directory`, as far as it goes before its newest segment.
    ///
    /// # Errors
    /// As [`read_ring`](super::read_ring).
    pub fn open(path: &Path) -> Result<Self> {
        let directory = opened(path)?;
        let all = segments(&directory)?;
        let Some((last, before)) = all.split_last() else {
            return Err(nothing_in(path, None));
        };
        let tail = tail(&directory, &last.name)?;
        let mut joined = Joined::new(MAX_BYTES / 2);
        let (parts, damage) = newest(&directory, before);
        for part in parts {
            joined.add(&part);
        }
        joined.next();
        // The last words of a run before are not those of the one that is followed.
        joined.recording.outcome = None;
        joined.recording.damage = damage;
        Ok(Self {
            name: last.name.clone(),
            directory,
            tail,
            joined,
        })
    }

    /// Reads what was appended; whether there was anything.
    pub fn advance(&mut self) -> bool {
        let before = self.joined.recording.ticks.len();
        while !self.is_over() {
            // Asked for first: a segment is at its end when another one is there.
            let next = self.next_segment();
            self.tail.advance();
            self.joined.advance(self.tail.recording());
            let Some((name, tail)) = next else {
                break;
            };
            let damage = self.tail.recording().damage.iter().cloned();
            self.joined.recording.damage.extend(damage);
            self.joined.next();
            (self.name, self.tail) = (name, tail);
        }
        self.joined.recording.ticks.len() > before || self.is_over()
    }

    /// What was read so far.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.joined.recording
    }

    /// Whether nothing more will be read: the recorder wrote its last words, or it is more than a
    /// reader takes.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let recording = &self.joined.recording;
        recording.outcome.is_some() || self.joined.is_full()
    }

    /// The segment after the one that is read, where its header is there already.
    fn next_segment(&self) -> Option<(OsString, Tail)> {
        // A directory that cannot be read any more has no next one.
        let all = segments(&self.directory).ok()?;
        let next = all.into_iter().find(|segment| segment.name > self.name)?;
        let tail = tail(&self.directory, &next.name).ok()?;
        Some((next.name, tail))
    }
}

fn tail(directory: &Directory, name: &OsStr) -> Result<Tail> {
    let path = directory.path().join(name);
    Tail::of(directory.open_regular(name)?, &path, MAX_BYTES / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Follower, Ring, read_ring};
    use crate::{Registry, Row};
    use model::recording::{Facts, Kind, Outcome, Span, Tick};
    use testkit::TempDir;

    /// Segments of a second, none of which is removed.
    const KEEP_NS: u64 = 24_000_000_000;

    /// When the first of two runs began, and the second.
    const FIRST_NS: u64 = 3_600_000_000_000;
    const SECOND_NS: u64 = FIRST_NS + 9_000_000_000;

    fn facts(started_unix_ns: u64) -> Facts {
        Facts {
            started_unix_ns,
            ..Facts::default()
        }
    }

    /// What there is at a sample: one from the beginning on, one that comes, one that goes, and one
    /// of the first run only.
    fn there(started_unix_ns: u64, number: u64) -> Vec<&'static str> {
        let all = [
            ("a", true),
            ("b", number > 13),
            ("c", number < 25),
            ("d", started_unix_ns == FIRST_NS),
        ];
        all.into_iter()
            .filter_map(|(name, is)| is.then_some(name))
            .collect()
    }

    /// Records `samples` at 10 Hz, and asks after each of them.
    fn run(directory: &Path, started_unix_ns: u64, samples: u64, mut each: impl FnMut(&mut Ring)) {
        let facts = facts(started_unix_ns);
        let mut registry = Registry::new();
        let mut ring = Ring::open(directory, KEEP_NS, 1 << 20, &facts).unwrap();
        for number in 0..samples {
            let mut row = Row::default();
            for name in there(started_unix_ns, number) {
                let id = registry.id(name, "count", Kind::Gauge, "x").unwrap();
                row.count(id, number / 3);
            }
            let at_ns = number * 100_000_000;
            let (due_ns, text) = (at_ns, format!("mark {number}"));
            let tick = Tick { due_ns, at_ns };
            ring.sample(tick, registry.schemas(), &row).unwrap();
            let span = Span {
                kind: "mark".to_owned(),
                text,
                start_ns: at_ns,
                end_ns: at_ns,
            };
            ring.span(&span).unwrap();
            each(&mut ring);
        }
        let (ended, _) = ring.finish(&facts, &Outcome::default());
        ended.unwrap();
    }

    #[test]
    fn a_ring_is_followed_over_its_segments_and_only_grows() {
        let directory = TempDir::new();
        // A run before, whose last words end nothing.
        run(directory.path(), FIRST_NS, 15, |_| {});
        let mut follower = None;
        let mut seen = 0;
        run(directory.path(), SECOND_NS, 57, |ring| {
            if seen % 5 != 3 {
                ring.flush().unwrap();
            }
            let follower = follower.get_or_insert_with(|| {
                let follower = Follower::open(directory.path()).unwrap();
                assert_eq!(follower.recording().ticks.len(), 15);
                follower
            });
            follower.advance();
            assert!(!follower.is_over());
            let now = follower.recording().ticks.len();
            assert!(now >= seen + 15 && now <= 15 + 57, "{now} after {seen}");
            seen = now - 15;
        });
        let mut follower = follower.unwrap();
        assert!(follower.advance() && follower.is_over());
        assert_eq!(*follower.recording(), read_ring(directory.path()).unwrap());
        for sample in 0..15 + 57u32 {
            let (started, number) = match sample.checked_sub(15) {
                None => (FIRST_NS, sample),
                Some(number) => (SECOND_NS, number),
            };
            let there = there(started, u64::from(number));
            for series in &follower.recording().series {
                let is_there = there.contains(&&*series.schema.name);
                let expected = is_there.then_some(i64::from(number / 3));
                assert_eq!(
                    series.at(sample),
                    expected,
                    "{} {sample}",
                    series.schema.name
                );
            }
        }
        let spans = &follower.recording().spans;
        assert_eq!(spans.iter().filter(|span| span.kind == "gap").count(), 1);
    }

    #[test]
    fn who_follows_a_ring_is_told_each_second() {
        let directory = TempDir::new();
        let mut follower = None;
        run(directory.path(), 1, 8, |_| ());
        run(directory.path(), 5_000_000_000, 40, |_| {
            follower
                .get_or_insert_with(|| RingFollower::open(directory.path()).unwrap())
                .advance();
        });
        // Nothing was flushed by the recorder itself but at the ends of segments.
        assert!(follower.unwrap().recording().ticks.len() >= 8 + 25);
    }
}
