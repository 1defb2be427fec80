//! `terrace measure ...`: each probe's plan is made of its options, with defaults filled in, and
//! checked; the plan is done, its report delivered.

use super::deliver::Delivery;
use super::{classic, list, random};
use crate::args::measure::{
    ComputeArgs, FaultsArgs, IolatArgs, MemcpyArgs, MemlatArgs, ProbeArgs, SeqioArgs,
};
use crate::args::{Probe, When};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::report::{IolatResult, Report};
use machine::Root;
use measure::compute::ComputePlan;
use measure::faults::FaultPlan;
use measure::memory::copy::CopyPlan;
use measure::memory::latency::LatencyPlan;
use measure::storage::{Access, IolatPlan, SeqPlan, TransferMode};
use measure::{Budget, compute, faults, memory, storage};
use model::Bytes;
use std::time::Duration;

/// A memory probe ends by its plan; only Ctrl-C is to end it earlier, so the outer
/// budget lies beyond.
const BEYOND_PLAN: Duration = Duration::from_secs(3600);

/// The budget of a storage probe by default.
const STORAGE_BUDGET: Duration = Duration::from_secs(10);

/// The time between the starts of two requests by default: ten seconds give enough for a p99.
const PAUSE: Duration = Duration::from_millis(10);

/// Measures by `probe` and delivers the result.
///
/// # Errors
/// Whatever ended the probe before it had a result.
pub fn probe(probe: &Probe, color: When) -> Result<Exit> {
    let root = Root::system();
    match probe {
        Probe::Memcpy(args) => memcpy(args, color, &root),
        Probe::Memlat(args) => {
            let plan = latency_plan(args);
            memory::latency::check(&plan, &root)?;
            let stop = Budget::of(plan.budget + BEYOND_PLAN);
            let measure = || memory::latency::measure(&plan, &root, &stop);
            deliver(&args.probe, color, &root, measure)
        }
        Probe::Faults(args) => {
            let plan = fault_plan(args);
            faults::check(&plan, &root)?;
            let stop = Budget::of(plan.budget + BEYOND_PLAN);
            let measure = || faults::measure(&plan, &root, &stop);
            deliver(&args.probe, color, &root, measure)
        }
        Probe::Compute(args) => {
            let plan = compute_plan(args);
            let stop = Budget::of(plan.budget + BEYOND_PLAN);
            let measure = || compute::measure(&plan, &root, &stop);
            deliver(&args.probe, color, &root, measure)
        }
        Probe::Iolat(args) => iolat(args, color, &root),
        Probe::Seqio(args) => {
            let plan = sequential_plan(args);
            plan.check()?;
            pin(&args.probe)?;
            let budget = Budget::of(storage_budget(&args.probe));
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
    let plan = copy_plan(args);
    list::known(&plan.methods)?;
    memory::copy::check(&plan, root)?;
    let stop = Budget::of(plan.budget + BEYOND_PLAN);
    let measure = || memory::copy::measure(&plan, root, &stop);
    deliver(&args.probe, color, root, measure)
}

fn iolat(args: &IolatArgs, color: When, root: &Root) -> Result<Exit> {
    let depth = random::depth(args)?;
    let plan = request_plan(args);
    plan.check()?;
    pin(&args.probe)?;
    let budget = Budget::of(args.deadline.unwrap_or(storage_budget(&args.probe)));
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

fn copy_plan(args: &MemcpyArgs) -> CopyPlan {
    let default = CopyPlan::default();
    CopyPlan {
        methods: args.named.iter().chain(&args.methods).cloned().collect(),
        operations: or_default(args.operations.clone(), default.operations),
        sizes: or_default(in_bytes(&args.sizes), default.sizes),
        block_bytes: args.block.map(|block| block.0),
        stride: args.stride,
        offset: (args.offset.target as usize, args.offset.source as usize),
        threads: args.threads,
        pages: args.pages,
        budget: args.probe.budget.unwrap_or(default.budget),
        cpu: args.probe.cpu,
        schedule: default.schedule,
    }
}

fn latency_plan(args: &MemlatArgs) -> LatencyPlan {
    let default = LatencyPlan::default();
    LatencyPlan {
        sizes: or_default(in_bytes(&args.sizes), default.sizes),
        pages: unique(&args.pages),
        orders: unique(&args.patterns),
        budget: args.probe.budget.unwrap_or(default.budget),
        cpu: args.probe.cpu,
        schedule: default.schedule,
    }
}

fn fault_plan(args: &FaultsArgs) -> FaultPlan {
    FaultPlan {
        limit: args.limit.0,
        wait: args.wait,
        ways: unique(&args.ways),
        budget: args.probe.budget.unwrap_or(FaultPlan::default().budget),
        cpu: args.probe.cpu,
    }
}

fn compute_plan(args: &ComputeArgs) -> ComputePlan {
    let default = ComputePlan::default();
    ComputePlan {
        iterations: args.iterations.unwrap_or(default.iterations),
        budget: args.probe.budget.unwrap_or(default.budget),
        cpu: args.probe.cpu,
    }
}

fn request_plan(args: &IolatArgs) -> IolatPlan {
    let default = IolatPlan::default();
    IolatPlan {
        count: args.count,
        interval: args.interval.unwrap_or(PAUSE),
        request: args.size,
        region: args.working_set,
        access: match (args.direct, args.cached) {
            (true, _) => Access::Direct,
            (_, true) => Access::Cached,
            _ => Access::Cold,
        },
        write: args.write,
        warmup: args.warmup.unwrap_or(default.warmup),
        ..default
    }
}

fn sequential_plan(args: &SeqioArgs) -> SeqPlan {
    let default = SeqPlan::default();
    SeqPlan {
        size: args.size,
        block: args.bs,
        depth: args.iodepth.unwrap_or(default.depth),
        mode: match (args.direct, args.uncached) {
            (true, _) => TransferMode::Direct,
            (_, true) => TransferMode::Uncached,
            _ => TransferMode::Buffered,
        },
    }
}

/// The budget of a storage probe.
fn storage_budget(args: &ProbeArgs) -> Duration {
    args.budget.unwrap_or(STORAGE_BUDGET)
}

/// Pins this thread to the processor of --cpu; memory probes do so themselves.
///
/// # Errors
/// If this process may not run there.
pub fn pin(args: &ProbeArgs) -> Result<()> {
    Ok(args.cpu.map_or(Ok(()), sys::affinity::pin)?)
}

fn in_bytes(sizes: &[Bytes]) -> Vec<u64> {
    sizes.iter().map(|size| size.0).collect()
}

fn or_default<T>(asked: Vec<T>, default: Vec<T>) -> Vec<T> {
    if asked.is_empty() { default } else { asked }
}

/// Each once, in the order of their first mention.
fn unique<T: PartialEq + Copy>(items: &[T]) -> Vec<T> {
    let mut unique = Vec::new();
    for &item in items {
        if !unique.contains(&item) {
            unique.push(item);
        }
    }
    unique
}
