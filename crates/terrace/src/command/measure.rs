//! `terrace measure ...`: each probe's plan is checked, the plan is done, its report
//! delivered.

use super::deliver::Delivery;
use super::{classic, list, plan, random};
use crate::args::iolat::IolatArgs;
use crate::args::memcpy::MemcpyArgs;
use crate::args::probe::ProbeArgs;
use crate::args::{Probe, When};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::report::{IolatResult, Report};
use machine::Root;
use measure::{Budget, compute, faults, memory, storage};
use std::time::Duration;

/// A memory probe ends by its plan; only Ctrl-C is to end it earlier, so the outer
/// budget lies beyond.
const BEYOND_PLAN: Duration = Duration::from_secs(3600);

/// Measures by `probe` and delivers the result.
///
/// # Errors
/// Whatever ended the probe before it had a result.
pub fn probe(probe: &Probe, color: When) -> Result<Exit> {
    let root = Root::system();
    match probe {
        Probe::Memcpy(args) => memcpy(args, color, &root),
        Probe::Memlat(args) => {
            let plan = plan::latency(args);
            memory::latency::check(&plan, &root)?;
            let stop = Budget::of(plan.budget + BEYOND_PLAN);
            let measure = || memory::latency::measure(&plan, &root, &stop);
            deliver(&args.probe, color, &root, measure)
        }
        Probe::Faults(args) => {
            let plan = plan::faults(args);
            faults::check(&plan, &root)?;
            let stop = Budget::of(plan.budget + BEYOND_PLAN);
            let measure = || faults::measure(&plan, &root, &stop);
            deliver(&args.probe, color, &root, measure)
        }
        Probe::Compute(args) => {
            let plan = plan::compute(args);
            let stop = Budget::of(plan.budget + BEYOND_PLAN);
            let measure = || compute::measure(&plan, &root, &stop);
            deliver(&args.probe, color, &root, measure)
        }
        Probe::Iolat(args) => iolat(args, color, &root),
        Probe::Seqio(args) => {
            let plan = plan::sequential(args);
            plan.check()?;
            plan::pin(&args.probe)?;
            let budget = Budget::of(plan::storage_budget(&args.probe));
            let measure = || storage::seqio(&args.path, &plan, &budget, &root);
            deliver(&args.probe, color, &root, measure)
        }
    }
}

fn memcpy(args: &MemcpyArgs, color: When, root: &Root) -> Result<Exit> {
    if args.list {
        return list::methods(&args.probe, color);
    }
    if let Some(name) = &args.disassemble {
        return list::disassemble(name, &args.probe, color);
    }
    if let Some(line) = &args.classic {
        return classic::run(line, &args.probe, color, root);
    }
    let plan = plan::copy(args);
    list::known(&plan.methods)?;
    memory::copy::check(&plan, root)?;
    let stop = Budget::of(plan.budget + BEYOND_PLAN);
    let measure = || memory::copy::measure(&plan, root, &stop);
    deliver(&args.probe, color, root, measure)
}

fn iolat(args: &IolatArgs, color: When, root: &Root) -> Result<Exit> {
    let depth = random::depth(args)?;
    let plan = plan::request_latency(args);
    plan.check()?;
    plan::pin(&args.probe)?;
    let budget = Budget::of(args.deadline.unwrap_or(plan::storage_budget(&args.probe)));
    if let Some(depth) = depth {
        let measure = || random::measure(args, depth, &budget, root);
        return deliver(&args.probe, color, root, measure);
    }
    let quiet = args.quiet;
    deliver(&args.probe, color, root, || {
        let report = storage::iolat(&args.path, &plan, &budget, root)?;
        Ok(IolatResult { quiet, report })
    })
}

/// Measures and delivers; where the result goes is checked before.
fn deliver<R: Report>(
    args: &ProbeArgs,
    color: When,
    root: &Root,
    measure: impl FnOnce() -> measure::Result<R>,
) -> Result<Exit> {
    Delivery::of_probe(args, color)?.carry_out(root, |activity| {
        activity.display("measuring, Ctrl-C stops and prints what there is");
        measure()
    })
}
