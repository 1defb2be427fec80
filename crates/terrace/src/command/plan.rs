//! The plans of the probes from their options, with defaults filled in. Nothing is measured here;
//! `pin` sets the processor of --cpu.

use crate::args::compute::ComputeArgs;
use crate::args::faults::FaultsArgs;
use crate::args::iolat::IolatArgs;
use crate::args::memcpy::MemcpyArgs;
use crate::args::memlat::MemlatArgs;
use crate::args::probe::ProbeArgs;
use crate::args::seqio::SeqioArgs;
use crate::error::Result;
use measure::compute::ComputePlan;
use measure::faults::FaultPlan;
use measure::memory::copy::CopyPlan;
use measure::memory::latency::LatencyPlan;
use measure::storage::{Access, IolatPlan, SeqPlan, TransferMode};
use model::Bytes;
use std::time::Duration;

/// The budget of a storage probe by default.
const STORAGE_BUDGET: Duration = Duration::from_secs(10);

/// The time between the starts of two requests by default: ten seconds give enough for a p99.
const PAUSE: Duration = Duration::from_millis(10);

/// The plan of `measure memcpy`.
pub fn copy(args: &MemcpyArgs) -> CopyPlan {
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

/// The plan of `measure memlat`.
pub fn latency(args: &MemlatArgs) -> LatencyPlan {
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

/// The plan of `measure faults`.
pub fn faults(args: &FaultsArgs) -> FaultPlan {
    FaultPlan {
        limit: args.limit.0,
        wait: args.wait,
        ways: unique(&args.ways),
        budget: args.probe.budget.unwrap_or(FaultPlan::default().budget),
        cpu: args.probe.cpu,
    }
}

/// The plan of `measure compute`.
pub fn compute(args: &ComputeArgs) -> ComputePlan {
    let default = ComputePlan::default();
    ComputePlan {
        iterations: args.iterations.unwrap_or(default.iterations),
        budget: args.probe.budget.unwrap_or(default.budget),
        cpu: args.probe.cpu,
    }
}

/// The plan of `measure iolat`.
pub fn request_latency(args: &IolatArgs) -> IolatPlan {
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

/// The plan of `measure seqio`.
pub fn sequential(args: &SeqioArgs) -> SeqPlan {
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
pub fn storage_budget(args: &ProbeArgs) -> Duration {
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
