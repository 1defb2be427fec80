//! Direct I/O that did not reach a medium: answered by memory below this system.
//!
//! Direct I/O bypasses the own page cache, and is often used to measure a disk. A median far
//! below what a medium takes shows a cache below.

use super::device::{Direction, busiest};
use super::run_view::needs_events;
use super::{RunVerdict, RunView};
use crate::verdict::{NoFinding, clear};
use crate::wording::{long_time, survey_path};
use model::duration::show_ns;
use model::explanation::{Cause, TimePart};
use model::recording::DeviceKind;
use model::{Finding, Grade};

/// No medium answers faster: NAND needs 40 us and more, the fastest persistent media sold
/// as disks about 10 us.
const MEDIUM_NS: f64 = 40e3;

pub(super) fn check(run: &RunView) -> RunVerdict {
    let ns = run.part_ns(TimePart::DirectIo).ok_or(NoFinding::Nothing)?;
    if ns == 0 {
        return Err(NoFinding::Nothing);
    }
    let Some(traffic) = busiest(run, Direction::Read).filter(|_| run.hurts(ns)) else {
        return clear(run.part_evidence(TimePart::DirectIo));
    };
    let kind = traffic.facts.map_or(DeviceKind::Disk, |facts| facts.kind);
    let Some(p50) = traffic.p50_ns else {
        return needs_events(run, "the latency of direct I/O was not recorded");
    };
    if p50 >= MEDIUM_NS && kind != DeviceKind::Loop {
        return clear(run.part_evidence(TimePart::DirectIo));
    }
    let below = if kind == DeviceKind::Loop {
        "the file behind it may be cached by this system"
    } else {
        "memory below this system answered, not a medium"
    };
    let claim = format!(
        "Direct I/O on {} took {} at p50 {}: {below}",
        traffic.place(),
        long_time(ns as f64),
        show_ns(p50),
    );
    let mut evidence = traffic.evidence.clone();
    evidence.extend(run.part_evidence(TimePart::DirectIo));
    let confirm = traffic.mount.map(survey_path);
    let finding = Finding { confirm, ..Finding::new(Grade::Inferred, claim, evidence) };
    Ok(Cause::new(Some(ns), finding))
}
