//! What was typed, as the plans of the probes: defaults filled in, words turned into the
//! library's types. Nothing is touched here but the processor that --cpu pins to.

use crate::args::compute::ComputeArgs;
use crate::args::faults::{self, FaultsArgs};
use crate::args::iolat::IolatArgs;
use crate::args::memcpy::{self, MemcpyArgs};
use crate::args::memlat::MemlatArgs;
use crate::args::probe::ProbeArgs;
use crate::args::seqio::SeqioArgs;
use crate::error::Result;
use measure::compute::ComputePlan;
use measure::faults::{FaultPlan, Way};
use measure::memory::PageKind;
use measure::memory::copy::CopyPlan;
use measure::memory::latency::LatencyPlan;
use measure::storage::{Access, IolatPlan, Mode, SeqPlan};
use memops::Operation;
use model::Bytes;
use std::time::Duration;

/// How long a storage probe runs unless told.
const STORAGE_BUDGET: Duration = Duration::from_secs(10);

/// The pause between the starts of two requests unless told: in ten seconds there are
/// enough of them for a p99.
const PAUSE: Duration = Duration::from_millis(10);

/// The plan of `measure memcpy`.
pub fn copy(args: &MemcpyArgs) -> CopyPlan {
    let operation = |operation: &memcpy::Operation| match operation {
        memcpy::Operation::Copy => Operation::Copy,
        memcpy::Operation::Read => Operation::Read,
        memcpy::Operation::Write => Operation::Write,
    };
    let usual = CopyPlan::default();
    CopyPlan {
        methods: args.named.iter().chain(&args.methods).cloned().collect(),
        operations: or_usual(
            args.operations.iter().map(operation).collect(),
            usual.operations,
        ),
        sizes: or_usual(plain(&args.sizes), usual.sizes),
        block_bytes: args.block.map(|block| block.0),
        stride: args.stride,
        offset: (args.offset.target as usize, args.offset.source as usize),
        threads: args.threads,
        pages: page_kind(args.pages),
        budget: args.probe.budget.unwrap_or(usual.budget),
        cpu: args.probe.cpu,
        schedule: usual.schedule,
    }
}

/// The plan of `measure memlat`.
pub fn latency(args: &MemlatArgs) -> LatencyPlan {
    let usual = LatencyPlan::default();
    LatencyPlan {
        sizes: or_usual(plain(&args.sizes), usual.sizes),
        pages: unique(args.pages.iter().copied().map(page_kind)),
        orders: unique(args.patterns.iter().copied()),
        budget: args.probe.budget.unwrap_or(usual.budget),
        cpu: args.probe.cpu,
        schedule: usual.schedule,
    }
}

/// The plan of `measure faults`.
pub fn faults(args: &FaultsArgs) -> FaultPlan {
    let way = |way: &faults::Way| match way {
        faults::Way::Base => Way::Base,
        faults::Way::Thp => Way::Transparent,
        faults::Way::Populate => Way::Populate,
    };
    FaultPlan {
        limit: args.limit.0,
        wait: args.wait,
        ways: unique(args.ways.iter().map(way)),
        budget: args.probe.budget.unwrap_or(FaultPlan::default().budget),
        cpu: args.probe.cpu,
    }
}

/// The plan of `measure compute`.
pub fn compute(args: &ComputeArgs) -> ComputePlan {
    let usual = ComputePlan::default();
    ComputePlan {
        iterations: args.iterations.unwrap_or(usual.iterations),
        budget: args.probe.budget.unwrap_or(usual.budget),
        cpu: args.probe.cpu,
    }
}

/// The plan of `measure iolat`.
pub fn request_latency(args: &IolatArgs) -> IolatPlan {
    let usual = IolatPlan::default();
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
        warmup: args.warmup.unwrap_or(usual.warmup),
        ..usual
    }
}

/// The plan of `measure seqio`.
pub fn sequential(args: &SeqioArgs) -> SeqPlan {
    let usual = SeqPlan::default();
    SeqPlan {
        size: args.size,
        block: args.bs,
        depth: args.iodepth.unwrap_or(usual.depth),
        mode: match (args.direct, args.uncached) {
            (true, _) => Mode::Direct,
            (_, true) => Mode::Uncached,
            _ => Mode::Buffered,
        },
    }
}

/// How long a storage probe runs.
pub fn storage_budget(args: &ProbeArgs) -> Duration {
    args.budget.unwrap_or(STORAGE_BUDGET)
}

/// Pins this thread where --cpu says; memory probes do so themselves.
///
/// # Errors
/// When this process may not run there.
pub fn pin(args: &ProbeArgs) -> Result<()> {
    match args.cpu {
        Some(cpu) => Ok(sys::affinity::pin(cpu)?),
        None => Ok(()),
    }
}

fn page_kind(pages: memcpy::Pages) -> PageKind {
    match pages {
        memcpy::Pages::Base => PageKind::Base,
        memcpy::Pages::Thp => PageKind::Transparent,
        memcpy::Pages::Hugetlb => PageKind::Huge,
    }
}

fn plain(sizes: &[Bytes]) -> Vec<u64> {
    sizes.iter().map(|size| size.0).collect()
}

fn or_usual<T>(asked: Vec<T>, usual: Vec<T>) -> Vec<T> {
    if asked.is_empty() { usual } else { asked }
}

/// Each once, in the order of their first mention.
fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for item in items {
        if !unique.contains(&item) {
            unique.push(item);
        }
    }
    unique
}
