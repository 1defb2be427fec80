//! `terrace survey`: the ladder of this machine on one page, and what is odd about it.
//!
//! 1. `places` finds where to look; `plan` shares out the time.
//! 2. `run` measures, and keeps what the probes returned.
//! 3. `tiers` makes the page's tiers of it, `observe` its pictures' points and the input of the
//!    rules, which read the reports of the probes themselves (`model::probe`).
//! 4. `explain` judges; `output` renders.

mod observe;
mod page;
mod places;
pub mod plan;
mod run;
mod swap;
mod tiers;

use crate::args::survey::SurveyArgs;
use crate::error::Result;
use explain::Judgement;
use explain::observed::NoiseSeen;
use explain::rules::result_noisy;
use machine::Root;
use measure::{Budget, calibrate, disturbance::Bracket};
use model::Tier;
use model::progress::ProgressSink;
use model::survey::{Cost, SCHEMA, Survey};
pub use page::PageFile;
use plan::SurveyPlan;
use run::{SurveyResults, SurveyedMachine};
use std::time::{SystemTime, UNIX_EPOCH};

/// Surveys this machine; the caller renders what is returned.
pub fn survey(args: &SurveyArgs, root: &Root, progress: &mut ProgressSink<'_>) -> Result<Survey> {
    let started = SystemTime::now();
    let started_ns = sys::clock::now_ns();
    let cpu_before = sys::usage::process().ok();
    let machine = SurveyedMachine::read(root);
    let plan = SurveyPlan::new(args.quick, plan::ram_bytes(root, &machine.caches));
    // One budget from here to the end: whatever is slow takes from what comes after.
    let stop = Budget::of(plan.total);
    let places = places::find(&args.paths, root)?;
    let seen = run::run(&plan, places, &machine, root, &stop, progress);
    let mut tiers = tiers::tiers(&seen, &machine.memory);
    let observed = observe::observed(&seen, &tiers, &machine);
    let judged = explain::survey(&observed);
    mark_noisy(&mut tiers, &observed.noise);
    let Judgement { findings, fine, unchecked } = judged;
    let cost = cost(&seen, started_ns, cpu_before, root);
    Ok(Survey {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s: started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        interrupted: seen.interrupted,
        tiers,
        findings,
        fine,
        unchecked,
        curves: observe::curves(&seen),
        skipped: seen.skipped,
        control_step_ns: seen.compute.as_ref().map(|report| report.step_ns.clone()),
        machine: machine.facts,
        cost,
    })
}

/// A tier of which some quantity is noisy by the rule's own measure says so in its row.
fn mark_noisy(tiers: &mut [Tier], noise: &[NoiseSeen]) {
    for tier in tiers {
        tier.noisy =
            noise.iter().any(|seen| seen.tier == tier.name && result_noisy::is_noisy(seen));
    }
}

fn cost(
    seen: &SurveyResults,
    started_ns: u64,
    before: Option<model::recording::Usage>,
    root: &Root,
) -> Cost {
    let after = sys::usage::process().ok();
    let overhead = calibrate::overhead(&mut Bracket::for_this_thread(root, None));
    Cost {
        wall_s: (sys::clock::now_ns() - started_ns) as f64 / 1e9,
        cpu_s: match (&before, &after) {
            (Some(before), Some(after)) => (after.cpu_ns() - before.cpu_ns()) as f64 / 1e9,
            _ => 0.0,
        },
        max_resident_bytes: after.map_or(0, |usage| usage.max_rss_bytes),
        // To devices; what was written to RAM disks wears nothing.
        written_bytes: seen.devices.iter().map(|report| report.written_bytes).sum(),
        timer_ns: overhead.timer_ns,
        bracket_ns: overhead.bracket_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::shared::FormArgs;
    use model::progress;
    use testkit::FakeRoot;

    /// A machine that tells nothing about itself: no /proc, no /sys. Memory can be
    /// measured all the same, and what cannot be known is absent with its reason.
    #[test]
    fn a_machine_that_tells_nothing_is_surveyed() {
        let bare = FakeRoot::bare();
        let args = SurveyArgs {
            quick: true,
            paths: Vec::new(),
            no_keep: true,
            details: false,
            html: None,
            no_redact: false,
            form: FormArgs { json: true, output: None, host_name: false, record: None },
        };
        let survey = survey(&args, &Root::at(bare.path()), &mut progress::ignore).unwrap();
        let ram = survey.tiers.iter().find(|tier| tier.name == "RAM").unwrap();
        assert!(ram.latency_ns.is_some() && ram.copy_bytes_per_s.is_some());
        assert_eq!(ram.capacity_bytes, None);
        assert!(survey.tiers.iter().all(|tier| tier.kind != model::TierKind::Device));
        assert!(!survey.unchecked.is_empty());
        assert_eq!(survey.machine.thp, None);
    }
}
