//! The host ran something else while this guest wanted to run.
//!
//! Stolen time is counted for the machine; the subject is taken to have lost its share of
//! it, by how much of the processors' work was its own.

use super::cause::CauseBuilder;
use super::run_view::{clear, part_of, ratio};
use super::{Rank, Rule, RunView, Verdict};
use crate::wording::{long_time, percent};
use model::explanation::TimePart;
use model::{Evidence, Grade};

/// The rule.
pub(super) const RULE: Rule =
    Rule { id: "processor_stolen", suspect: "steal", within: &[], rank: Rank::Timed, check };

/// The least share of the processors' time. Picked: 2 % were seen on a guest that
/// was not crowded.
const LEAST_STOLEN: f64 = 0.05;

/// The counter of the time that the host took.
const STEAL: &str = "stat.cpu.steal_ns";

/// The counters of time that processors were wanted for.
const WANTED: [&str; 6] = [
    "stat.cpu.user_ns",
    "stat.cpu.nice_ns",
    "stat.cpu.system_ns",
    "stat.cpu.irq_ns",
    "stat.cpu.softirq_ns",
    STEAL,
];

fn check(run: &RunView) -> Verdict {
    let Some(stolen) = run.grew(STEAL) else {
        return Verdict::Silent;
    };
    let whole = run.view.wall_ns().saturating_mul(run.processors());
    if whole == 0 {
        return Verdict::Silent;
    }
    let share = ratio(stolen as f64, whole as f64).min(1.0);
    let measured = Evidence::new("steal", share, "ratio", "/proc/stat").seen_in([STEAL]);
    let wanted = run.grew_all(&WANTED).unwrap_or(stolen);
    let of_wanted = ratio(stolen as f64, wanted as f64);
    let ns = part_of(run.run_ns(), of_wanted);
    let ns = run.part_ns(TimePart::Steal).unwrap_or(ns).min(stolen);
    if share < LEAST_STOLEN || !run.hurts(ns) {
        return clear(Some(measured));
    }
    let claim = format!(
        "The host took {} of the processors' time; this run lost about {}",
        percent(share),
        long_time(ns as f64),
    );
    let mut evidence = vec![measured];
    evidence.extend(run.grown(STEAL));
    CauseBuilder::new(RULE.id, Some(ns), Grade::Inferred, claim, evidence)
        .remedy(
            "Processors of one's own, or another host. Risk: it may cost money, and the next \
             host may be as full.",
        )
        .confirm("terrace measure compute")
        .found()
}
