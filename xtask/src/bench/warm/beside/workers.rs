//! Workers that keep processors busy in memory of their own, and time each round of their work.
//!
//! All on one clock: a round is its time of start and of end. Rounds are short
//! beside a restore, so that many are wholly within one.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Instant;

/// What a worker works in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::bench) enum Within {
    /// 256 KiB, which a processor's own cache holds: it loses what the restore takes of its
    /// processor.
    Cache,
    /// 64 MiB, more than a last-level cache leaves to one: it also loses what the restore takes of
    /// that cache and of the memory, and on a shared host what strangers take, which is more and
    /// varies.
    Memory,
}

impl Within {
    /// In words of 8 bytes.
    fn words(self) -> usize {
        match self {
            Self::Cache => 32 << 10,
            Self::Memory => 8 << 20,
        }
    }
}

/// Words touched in a round, each at random and with some arithmetic: 1 to 5 ms as cargo builds
/// this crate, without optimisation.
const STEPS: usize = 50_000;

/// Start and end of something, in seconds on the scene's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::bench) struct Span {
    pub(in crate::bench) start_s: f64,
    pub(in crate::bench) end_s: f64,
}

impl Span {
    fn holds(self, inner: Self) -> bool {
        self.start_s <= inner.start_s && inner.end_s <= self.end_s
    }
}

/// The workers of a scene, each on a thread.
pub(in crate::bench) struct Workers<'scope> {
    threads: Vec<ScopedJoinHandle<'scope, Vec<Span>>>,
    over: &'scope AtomicBool,
}

impl<'scope> Workers<'scope> {
    /// Starts `count` of them, which work until `over` or [`Workers::rounds`], a round at least;
    /// times count from `clock`.
    pub(in crate::bench) fn start(
        (count, within): (usize, Within),
        scope: &'scope Scope<'scope, '_>,
        over: &'scope AtomicBool,
        clock: Instant,
    ) -> Self {
        let threads = (0..count).map(|_| scope.spawn(move || work(within, over, clock)));
        Self { threads: threads.collect(), over }
    }

    /// Ends them; every round of all of them.
    pub(in crate::bench) fn rounds(mut self) -> Vec<Span> {
        self.over.store(true, Ordering::Relaxed);
        let threads = std::mem::take(&mut self.threads).into_iter();
        threads.flat_map(|thread| thread.join().unwrap_or_default()).collect()
    }
}

impl Drop for Workers<'_> {
    /// Also when the scene failed: its scope waits for them.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn work(within: Within, over: &AtomicBool, clock: Instant) -> Vec<Span> {
    let words = within.words();
    let mut memory: Vec<u64> = (0..words as u64).collect();
    let (mut rounds, mut state) = (Vec::new(), 1_u64);
    loop {
        let start_s = clock.elapsed().as_secs_f64();
        for _ in 0..STEPS {
            // Knuth's generator of MMIX: its upper bits are random enough to miss the caches.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let word = &mut memory[(state >> 33) as usize % words];
            *word = word.wrapping_add(state).rotate_left(7);
        }
        let end_s = clock.elapsed().as_secs_f64();
        rounds.push(Span { start_s, end_s });
        if over.load(Ordering::Relaxed) {
            black_box(&memory);
            return rounds;
        }
    }
}

/// The mean length of the rounds wholly within one of `windows`, in seconds; `None`
/// without any.
pub(in crate::bench) fn mean_round_s(rounds: &[Span], windows: &[Span]) -> Option<f64> {
    let within = rounds.iter().filter(|round| windows.iter().any(|window| window.holds(**round)));
    let lengths: Vec<f64> = within.map(|round| round.end_s - round.start_s).collect();
    (!lengths.is_empty()).then(|| lengths.iter().sum::<f64>() / lengths.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    fn span(start_s: f64, end_s: f64) -> Span {
        Span { start_s, end_s }
    }

    #[test]
    fn only_rounds_wholly_within_count() {
        let rounds = [span(0.5, 1.5), span(1.5, 2.0), span(2.0, 3.0), span(3.0, 4.5)];
        let mean = |windows: &[Span]| mean_round_s(&rounds, windows);
        assert_eq!(mean(&[span(1.0, 3.0)]), Some(0.75));
        assert_eq!(mean(&[span(0.0, 1.5), span(2.5, 4.5)]), Some(1.25));
        assert_eq!(mean(&[span(1.0, 1.9)]), None);
    }

    #[test]
    fn they_work_until_they_are_asked_and_their_rounds_follow_each_other() {
        let over = AtomicBool::new(false);
        let rounds = thread::scope(|scope| {
            let workers = Workers::start((1, Within::Cache), scope, &over, Instant::now());
            thread::sleep(Duration::from_millis(100));
            workers.rounds()
        });
        assert!(!rounds.is_empty() && over.into_inner());
        assert!(rounds.iter().all(|round| round.start_s < round.end_s));
        assert!(rounds.is_sorted_by(|before, after| before.end_s <= after.start_s));
    }
}
