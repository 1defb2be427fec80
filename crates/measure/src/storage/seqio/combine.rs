//! The phases of several runs as one report. The first write through the cache is apart: its pages
//! may be in memory that is new to the machine, which later runs get again. Pure.

use super::{PhaseName, SeqPhase, SeqReport};
use crate::runs::{Repeatable, Runs};
use crate::storage::served::Served;
use crate::storage::stream::{RateAt, TransferMode};
use model::Estimate;
use model::estimate::Better;

/// The phases of a combined report, in order.
const ORDER: [PhaseName; 6] = [
    PhaseName::FirstWrite,
    PhaseName::Write,
    PhaseName::Sync,
    PhaseName::ColdRead,
    PhaseName::CachedRead,
    PhaseName::Read,
];

/// A first write that takes this many times as long as the others is said to. Picked: later writes
/// differ by less.
const COLD: f64 = 1.5;

impl Repeatable for SeqReport {
    fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    fn combine(mut reports: Vec<Self>, runs: Runs) -> Self {
        let is_apart = reports.len() > 1
            && reports.first().is_some_and(|report| report.mode == TransferMode::Buffered);
        if is_apart {
            let first = reports.iter_mut().take(1).flat_map(|report| &mut report.phases);
            first.filter(|phase| phase.name == PhaseName::Write).for_each(set_apart);
        }
        let phases: Vec<SeqPhase> =
            ORDER.iter().filter_map(|name| combined_phase(&reports, *name, &runs)).collect();
        let durable_of = |skipped: usize| {
            let rates = reports.iter().skip(skipped);
            let durable = rates.filter_map(|report| report.durable_rate.as_ref());
            Estimate::between_runs(durable, Better::Higher, runs.span_s)
        };
        // Where the budget cut all later runs, the first one is what there is.
        let durable_rate = durable_of(usize::from(is_apart)).or_else(|| durable_of(0));
        let mut notes: Vec<String> = cold(&phases).into_iter().collect();
        for note in reports.iter_mut().flat_map(|report| std::mem::take(&mut report.notes)) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let written_bytes = reports.iter().map(|report| report.written_bytes).sum();
        let interrupted = reports.iter().any(|report| report.interrupted);
        let failure = reports.iter_mut().find_map(|report| report.failure.take());
        let first = reports.swap_remove(0);
        Self {
            phases,
            durable_bytes_per_s: durable_rate.as_ref().map(|rate| rate.median),
            durable_rate,
            written_bytes,
            interrupted,
            notes,
            failure,
            runs,
            ..first
        }
    }
}

fn set_apart(write: &mut SeqPhase) {
    write.name = PhaseName::FirstWrite;
}

/// The phase `name` of all runs; of those that a budget cut only if there is no other.
fn combined_phase(reports: &[SeqReport], name: PhaseName, runs: &Runs) -> Option<SeqPhase> {
    let all = || reports.iter().flat_map(|report| &report.phases).filter(|p| p.name == name);
    let is_any_complete = all().any(|phase| phase.complete);
    let same: Vec<&SeqPhase> = all().filter(|phase| phase.complete == is_any_complete).collect();
    let first = *same.first()?;
    let rates = same.iter().filter_map(|phase| phase.rate.as_ref());
    let rate = Estimate::between_runs(rates, Better::Higher, runs.span_s);
    Some(SeqPhase {
        bytes: same.iter().map(|phase| phase.bytes).sum(),
        wall_s: same.iter().map(|phase| phase.wall_s).sum(),
        bytes_per_s: rate.as_ref().map(|rate| rate.median),
        rate,
        series: one_after_the_other(&same),
        served: Served::of_runs(same.iter().map(|phase| &phase.served))?,
        cpu_s: same.iter().map(|phase| phase.cpu_s).sum(),
        verified_bytes: same.iter().map(|phase| phase.verified_bytes).sum(),
        ..first.clone()
    })
}

fn one_after_the_other(phases: &[&SeqPhase]) -> Vec<RateAt> {
    let mut start_s = 0.0;
    let mut all = Vec::new();
    for phase in phases {
        let moved = |at: &RateAt| RateAt { t_s: at.t_s + start_s, ..*at };
        all.extend(phase.series.iter().map(moved));
        start_s += phase.wall_s;
    }
    all
}

/// Says that the first write was slow.
fn cold(phases: &[SeqPhase]) -> Option<String> {
    let rate = |name| phases.iter().find(|phase| phase.name == name)?.bytes_per_s;
    let times = rate(PhaseName::Write)? / rate(PhaseName::FirstWrite)?;
    (times > COLD).then(|| {
        format!(
            "the first write took {times:.1} times as long as the others: its pages went into \
             memory that this machine had not used yet (terrace measure faults shows its price)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::of_one_run;
    use crate::storage::served::ServedBy;

    fn phase(name: PhaseName, bytes_per_s: f64) -> SeqPhase {
        SeqPhase {
            name,
            bytes: 1000,
            wall_s: 1000.0 / bytes_per_s,
            bytes_per_s: Some(bytes_per_s),
            rate: of_one_run(bytes_per_s, Better::Higher),
            series: Vec::new(),
            served: Served { by: ServedBy::Device, reason: "r".to_owned(), evidence: Vec::new() },
            cpu_s: Some(0.1),
            complete: true,
            cached_before_bytes: None,
            verified_bytes: None,
        }
    }

    fn report(mode: TransferMode, write: f64) -> SeqReport {
        let target = crate::storage::target::TargetFacts {
            path: "/x".into(),
            kind: crate::storage::TargetKind::Directory,
            file_system: None,
            in_ram: false,
            disk: None,
            bytes: 1000,
        };
        SeqReport {
            target,
            mode,
            block_bytes: 10,
            depth: 1,
            size_bytes: 1000,
            phases: vec![phase(PhaseName::Write, write), phase(PhaseName::Sync, 50.0)],
            durable_bytes_per_s: None,
            durable_rate: None,
            written_bytes: 1000,
            runs: Runs::default(),
            interrupted: false,
            notes: Vec::new(),
            failure: None,
        }
    }

    /// Seen: 0.43 GB/s, then 5.63 and 3.63.
    #[test]
    fn the_first_write_through_the_cache_is_apart() {
        let of = |mode| {
            let runs = [0.43, 5.63, 3.63, 5.0, 5.1, 5.2, 5.3].map(|write| report(mode, write));
            SeqReport::combine(runs.into_iter().collect(), Runs::default())
        };
        let buffered = of(TransferMode::Buffered);
        let names: Vec<PhaseName> = buffered.phases.iter().map(|phase| phase.name).collect();
        assert_eq!(names, [PhaseName::FirstWrite, PhaseName::Write, PhaseName::Sync]);
        let write = buffered.phases[1].rate.as_ref().unwrap();
        // The slow first one is not in it: the interval reaches farther than the others do.
        assert!(write.low > Some(1.5) && write.low < Some(3.63), "{write:?}");
        assert!(write.high > Some(5.63) && write.runs == 6, "{write:?}");
        assert_eq!(buffered.phases[2].rate.as_ref().unwrap().runs, 7);
        assert_eq!(buffered.written_bytes, 7000);
        assert!(buffered.notes[0].contains("12.0 times as long"), "{:?}", buffered.notes);
        // Past the cache no page is new.
        let direct = of(TransferMode::Direct);
        assert!(direct.phases[0].rate.as_ref().unwrap().low < Some(0.43));
        assert!(direct.notes.is_empty());
    }

    /// Seen on a loop device that was still written: all runs but the first were cut.
    #[test]
    fn a_first_write_that_alone_became_durable_is_the_rate() {
        let of = |durable: [Option<f64>; 3]| {
            let runs = durable.map(|rate| SeqReport {
                durable_rate: rate.and_then(|rate| of_one_run(rate, Better::Higher)),
                ..report(TransferMode::Buffered, 5.0)
            });
            SeqReport::combine(runs.into_iter().collect(), Runs::default()).durable_bytes_per_s
        };
        assert_eq!(of([Some(4.0), Some(2.0), None]), Some(2.0));
        assert_eq!(of([Some(4.0), None, None]), Some(4.0));
        assert_eq!(of([None, None, None]), None);
    }
}
