//! `terrace measure ...`: each probe's plan is made of its options, with defaults filled in, and
//! checked; the plan is done, once or in several processes, and its report delivered.

mod repeated;

use super::deliver::Delivery;
use super::{classic, list, random};
use crate::args::measure::{
    ComputeArgs, FaultsArgs, IolatArgs, MemcpyArgs, MemlatArgs, ProbeArgs, SeqioArgs,
};
use crate::args::{self, Cli, Command, Parsed, Probe, When};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::report::{IolatResult, RandomResult, Report};
use machine::Root;
use measure::compute::ComputePlan;
use measure::faults::FaultPlan;
use measure::memory::copy::CopyPlan;
use measure::memory::latency::LatencyPlan;
use measure::runs::{self, DEFAULT_RUNS, Repeatable, Repeats, RunOrder, Runs};
use measure::storage::{Access, IolatPlan, SeqPlan, TransferMode};
use measure::{faults, memory};
use model::Bytes;
use repeated::{Iolat, ProbePlan, Random, Seqio};
use std::ffi::OsString;
use std::time::Duration;
use sys::helper::HiddenCommand;

/// The hidden command of one run.
const HELPER: &str = "measure-process";

/// The time between the starts of two requests by default, beside none: a second of one run gives
/// a median, and all runs together a p99.
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
            // Steps up to 1 GiB take most of the time for one run.
            let usual = if args.sizes.is_empty() { 1 } else { DEFAULT_RUNS };
            deliver(&args.probe, color, &root, &plan, usual, as_it_is)
        }
        Probe::Faults(args) => {
            let plan = fault_plan(args);
            faults::check(&plan, &root)?;
            deliver(&args.probe, color, &root, &plan, DEFAULT_RUNS, as_it_is)
        }
        Probe::Compute(args) => {
            deliver(&args.probe, color, &root, &compute_plan(args), DEFAULT_RUNS, as_it_is)
        }
        Probe::Iolat(args) => iolat(args, color, &root),
        Probe::Seqio(args) => {
            let plan = sequential(args);
            plan.plan.check()?;
            pin(&args.probe)?;
            deliver(&args.probe, color, &root, &plan, DEFAULT_RUNS, as_it_is)
        }
    }
}

/// Runs a probe once as a helper process: `words` are those of the command line that started it.
///
/// # Errors
/// Why it failed; what the probe itself fails with is sent to the caller.
pub fn process(words: &[OsString]) -> Result<Exit> {
    let line = std::iter::once(OsString::from("terrace")).chain(words.iter().cloned());
    let Parsed::Run(cli) = args::parse(line)? else {
        return Err(Error::usage("measure-process runs a probe of measure"));
    };
    let Cli { command: Command::Measure { probe }, .. } = *cli else {
        return Err(Error::usage("measure-process runs a probe of measure"));
    };
    let root = Root::system();
    match probe.as_ref() {
        Probe::Memcpy(args) => serve(&copy_plan(args), &root),
        Probe::Memlat(args) => serve(&latency_plan(args), &root),
        Probe::Faults(args) => serve(&fault_plan(args), &root),
        Probe::Compute(args) => serve(&compute_plan(args), &root),
        Probe::Iolat(args) => {
            pin(&args.probe)?;
            match random::depth(args)? {
                Some(depth) => serve(&Random { args, depth }, &root),
                None => serve(&requests(args), &root),
            }
        }
        Probe::Seqio(args) => {
            pin(&args.probe)?;
            serve(&sequential(args), &root)
        }
    }
}

fn serve<P: ProbePlan>(plan: &P, root: &Root) -> Result<Exit> {
    runs::serve(&mut super::helper::caller()?, |order| plan.measure(order, root))?;
    Ok(Exit::Done)
}

fn memcpy(args: &MemcpyArgs, color: When, root: &Root) -> Result<Exit> {
    if args.list {
        return list::methods(&args.probe, color);
    }
    if let Some(name) = &args.disassemble {
        return list::disassemble(name, &args.probe, color);
    }
    if let Some(line) = &args.classic {
        if args.probe.quick || args.probe.runs.is_some() || args.probe.over.is_some() {
            let text = "--classic makes as many passes as its own arguments say: --runs, --over \
                        and --quick cannot go with it";
            return Err(Error::usage(text));
        }
        return classic::run(line, &args.probe, color, root);
    }
    let plan = copy_plan(args);
    list::known(&plan.methods)?;
    memory::copy::check(&plan, root)?;
    deliver(&args.probe, color, root, &plan, DEFAULT_RUNS, as_it_is)
}

fn iolat(args: &IolatArgs, color: When, root: &Root) -> Result<Exit> {
    let quiet = args.quiet;
    let budget = args.deadline.or(args.probe.budget);
    let probe = ProbeArgs { budget, ..args.probe.clone() };
    // As many requests as were asked for are not made nine times.
    let usual = if args.count.is_some() { 1 } else { DEFAULT_RUNS };
    if let Some(depth) = random::depth(args)? {
        pin(&args.probe)?;
        let as_asked = |result| RandomResult { quiet, ..result };
        return deliver(&probe, color, root, &Random { args, depth }, usual, as_asked);
    }
    let plan = requests(args);
    plan.plan.check()?;
    pin(&args.probe)?;
    deliver(&probe, color, root, &plan, usual, |report| IolatResult { quiet, report })
}

/// A report that needs nothing more to be shown.
fn as_it_is<R>(report: R) -> R {
    report
}

/// Measures, in as many runs as were asked for or are `usual`, and delivers what `shown` makes of
/// the report; where the result goes is checked before.
fn deliver<P: ProbePlan, R: Report>(
    args: &ProbeArgs,
    color: When,
    root: &Root,
    plan: &P,
    usual: u32,
    shown: impl FnOnce(P::Report) -> R,
) -> Result<Exit> {
    let count = args.runs(usual);
    Delivery::of_probe(args, color)?.carry_out(root, |activity| {
        let budget = plan.budget();
        if count == 1 {
            activity.display("measuring, Ctrl-C stops and prints what there is");
            let order = RunOrder { run: 0, runs: 1, budget };
            let report = plan.measure(&order, root)?;
            return Ok(shown(P::Report::combine(vec![report], Runs::default())));
        }
        let first_extra = plan.first_extra().min(budget);
        let over = args.over(args.budget.is_some());
        activity.display(&format!(
            "measuring {count} times over {} s, Ctrl-C stops and prints what there is",
            over.as_secs().max(budget.as_secs())
        ));
        let repeats = Repeats { runs: count, budget: budget - first_extra, over, first_extra };
        let words = [OsString::from(HELPER), OsString::from("--")].into_iter();
        let command = HiddenCommand::new(words.chain(std::env::args_os().skip(1)));
        runs::repeat(&repeats, &command).map(shown)
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
        budget: args.probe.budget.unwrap_or(repeated::COPY_BUDGET),
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

fn requests(args: &IolatArgs) -> Iolat<'_> {
    let later = if args.interval.is_some() { Vec::new() } else { vec![PAUSE] };
    let budget = args.deadline.or(args.probe.budget);
    Iolat { path: &args.path, plan: request_plan(args), later, budget }
}

fn request_plan(args: &IolatArgs) -> IolatPlan {
    let default = IolatPlan::default();
    IolatPlan {
        count: args.count,
        interval: args.interval.unwrap_or(Duration::ZERO),
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

fn sequential(args: &SeqioArgs) -> Seqio<'_> {
    Seqio { path: &args.path, plan: sequential_plan(args), budget: args.probe.budget }
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
