//! The host ran something else while this guest wanted to run.
//!
//! Stolen time is counted for the machine; the subject is taken to have lost its share of
//! it, by how much of the processors' work was its own.

use super::run_view::{part_of, ratio};
use super::{RunVerdict, RunView};
use crate::recording::accounting::PROCESSORS_RUN;
use crate::verdict::{NoFinding, clear};
use crate::wording::{long_time, percent};
use model::explanation::{Cause, TimePart};
use model::{Evidence, Finding, Grade};

/// The least share of the processors' time. Picked: 2 % were seen on a guest that
/// was not crowded.
const LEAST_STOLEN: f64 = 0.05;

/// The counter of the time that the host took.
const STEAL: &str = "stat.cpu.steal_ns";

pub(super) fn check(run: &RunView) -> RunVerdict {
    let stolen = run.growth(STEAL).ok_or(NoFinding::Nothing)?;
    let whole = run.wall_ns().saturating_mul(run.processors());
    if whole == 0 {
        return Err(NoFinding::Nothing);
    }
    let share = ratio(stolen as f64, whole as f64).min(1.0);
    let measured = Evidence::new("steal", share, "ratio", "/proc/stat").seen_in([STEAL]);
    let ran = run.growth_of_all(&PROCESSORS_RUN).unwrap_or(0);
    let wanted = ran.saturating_add(stolen);
    let of_wanted = ratio(stolen as f64, wanted as f64);
    let lost_ns = part_of(run.run_ns(), of_wanted);
    let ns = run.part_ns(TimePart::Steal).unwrap_or(lost_ns).min(stolen);
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
    let finding = Finding::new(Grade::Inferred, claim, evidence)
        .remedy(
            "Processors of one's own, or another host. Risk: it may cost money, and the next \
             host may be as full.",
        )
        .confirm("terrace measure compute");
    Ok(Cause::new(Some(ns), finding))
}
