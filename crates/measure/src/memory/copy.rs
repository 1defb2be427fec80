//! `measure memcpy`: how fast memory is copied, read and written, by every method.
//!
//! For each size all methods are interleaved, each first verified on poisoned
//! memory. Copied bytes count once; the bus traffic that they cost is a second
//! figure. What libc leaves on the table is the best method's rate over memcpy's.
//!
//! The buffers are one arena: its first half is the target, its second the
//! source, for the largest size; smaller sizes use their beginnings.

mod combine;
mod judge;
mod worker;

use self::worker::Worker;
use super::SkippedMethod;
use super::arena::{self, Arena, PageKind, PagesGranted};
use super::technique::{self, Technique};
use crate::calibrate::{self, Overhead};
use crate::compute;
use crate::disturbance::{Bracket, Tally};
use crate::runs::{RunOrder, Runs};
use crate::team;
use crate::trial::Schedule;
use crate::{Budget, Error, ErrorKind, Result};
use machine::Root;
use memops::{Operation, Width};
use model::Estimate;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The largest size that is accepted: 64 GiB, above which a single pass of the
/// slowest loop takes longer than any budget of patience.
pub const LARGEST: u64 = 64 << 30;

/// The largest offset: beyond every aliasing distance of interest.
pub const LARGEST_OFFSET: usize = 1 << 20;

/// More threads than this are refused; picked well above any machine seen.
pub const MOST_THREADS: usize = 1024;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct CopyPlan {
    /// Names of methods; empty means all that this machine can run.
    pub methods: Vec<String>,
    /// Operations of interest when `methods` is empty.
    pub operations: Vec<Operation>,
    /// Buffer sizes in bytes.
    pub sizes: Vec<u64>,
    /// Work in blocks of this many bytes; `None` is the whole size at once.
    pub block_bytes: Option<u64>,
    /// Matrix column walk: the step in elements; 0 is sequential. Only the
    /// element loops of 2001 can walk.
    pub stride: usize,
    /// Bytes by which the target and the source are pushed off their alignment.
    pub offset: (usize, usize),
    /// Threads, each with buffers of its own.
    pub threads: usize,
    /// The kind of page.
    pub pages: PageKind,
    /// How trials are cut.
    pub schedule: Schedule,
    /// Time for everything.
    pub budget: Duration,
    /// Pin the first thread to this processor; `None` takes the first allowed.
    pub cpu: Option<usize>,
}

impl Default for CopyPlan {
    fn default() -> Self {
        Self {
            methods: Vec::new(),
            operations: vec![Operation::Copy],
            sizes: vec![16 << 10, 256 << 10, 4 << 20, 16 << 20, 256 << 20],
            block_bytes: None,
            stride: 0,
            offset: (0, 0),
            threads: 1,
            pages: PageKind::Transparent,
            schedule: Schedule::default(),
            budget: Duration::from_secs(20),
            cpu: None,
        }
    }
}

/// One method at one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CopyRow {
    /// The method's name.
    pub method: String,
    /// `copy`, `read` or `write`.
    pub operation: String,
    /// Size of the buffer that was worked through, bytes (of each thread).
    pub size_bytes: u64,
    /// Bytes worked on a second by all threads, each counted once; `None` when
    /// the budget ended before the method's first trial.
    pub bytes_per_s: Option<Estimate>,
    /// Bus traffic that this costs beyond the caches; `None` inside them or where it is not known.
    pub bus_bytes_per_s: Option<f64>,
    /// Whether the result was compared byte for byte (reads: summed).
    pub verified: bool,
    /// Why the figure is not to be leant on, if so.
    pub noisy: Option<String>,
}

/// The best method at one size, and what libc leaves on the table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Winner {
    /// The size.
    pub size_bytes: u64,
    /// `copy`, `read` or `write`.
    pub operation: String,
    /// The best method by median.
    pub method: String,
    /// Its median rate.
    pub bytes_per_s: f64,
    /// Its median over the C library's own (memcpy, memset); `None` without it.
    pub over_libc: Option<f64>,
    /// Whether the two intervals do not overlap.
    pub proven: bool,
}

/// The result of [`measure`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CopyReport {
    /// Methods by sizes, sizes ascending.
    pub rows: Vec<CopyRow>,
    /// The best of each size and operation.
    pub winners: Vec<Winner>,
    /// Methods this machine lacks and sizes that did not fit.
    pub left_out: Vec<SkippedMethod>,
    /// The C library whose memcpy and memset were measured.
    pub libc: Option<String>,
    /// Page sizes asked for and granted, of the first thread's buffers.
    pub pages: Vec<PagesGranted>,
    /// Threads.
    pub threads: usize,
    /// Block size, if not the whole.
    pub block_bytes: Option<u64>,
    /// Step in elements, 0 is sequential.
    pub stride: usize,
    /// Offsets of target and source.
    pub offset: (usize, usize),
    /// Trials kept and thrown away.
    pub tally: Tally,
    /// Counters that cannot be read here, so that a disturbance may pass unseen.
    pub blind_to: Vec<String>,
    /// The processor alone, measured in the same run: one step of the fractal control, nanoseconds.
    pub control_step_ns: Option<Estimate>,
    /// The harness's own cost.
    pub overhead: Overhead,
    /// Whether it was stopped before its plan was done.
    pub interrupted: bool,
    /// How many runs of the probe are in it.
    pub runs: Runs,
}

impl CopyPlan {
    /// The plan of one run of several: fewer trials, and other methods first, so that those that a
    /// short share does not reach are not the same in each.
    #[must_use]
    pub fn of_run(self, order: &RunOrder) -> Self {
        let rounds = order.rounds(self.schedule.rounds);
        let first_share = f64::from(order.run) / f64::from(order.runs.max(1));
        let schedule = Schedule { rounds, first_share, ..self.schedule };
        Self { schedule, budget: order.budget, ..self }
    }
}

/// Checks a plan without touching memory; the first fault found is the error.
pub fn check(plan: &CopyPlan, root: &Root) -> Result<()> {
    let usage = |what: &str, why: &str| Err(Error::new(ErrorKind::Usage, what, why));
    for name in &plan.methods {
        if !technique::names().contains(&name.as_str()) {
            Technique::prepare(name).map(drop)?;
        }
        if plan.stride > 1 && width_of(name).is_none() {
            return usage(
                &format!("walk columns by `{name}`"),
                "a stride needs an element loop: char, short, int, long, int64 or double",
            );
        }
    }
    if plan.sizes.is_empty() || plan.sizes.contains(&0) {
        return usage("copy 0 bytes", "give a size of at least 1");
    }
    if plan.sizes.iter().any(|&size| size > LARGEST) {
        return usage("copy so much", "the largest size is 64 GiB");
    }
    if plan.threads == 0 || plan.threads > MOST_THREADS {
        return usage("use that many threads", "give 1 to 1024");
    }
    if plan.block_bytes == Some(0) {
        return usage("copy in blocks of 0 bytes", "give a block of at least 1");
    }
    if plan.offset.0.max(plan.offset.1) > LARGEST_OFFSET {
        return usage("shift the buffers so far", "offsets go up to 1 MiB");
    }
    let smallest = plan.sizes.iter().min().copied().unwrap_or(0);
    arena::check_fits(root, arena_bytes(plan, smallest) * plan.threads as u64)
}

/// Measures what `plan` asks for.
///
/// Sizes that do not fit into memory are left out and named; the budget is
/// shared evenly among the sizes.
pub fn measure(plan: &CopyPlan, root: &Root, stop: &Budget) -> Result<CopyReport> {
    check(plan, root)?;
    let budget = stop.part(plan.budget);
    let mut left_out = Vec::new();
    let names = chosen(plan, &mut left_out)?;
    let bytes_of = |size| arena_bytes(plan, size) * plan.threads as u64;
    let sizes = arena::fitting(&plan.sizes, bytes_of, root, &mut left_out);
    let largest = sizes.last().copied().unwrap_or(0);
    let bytes = arena_bytes(plan, largest) as usize;
    let make = |_| {
        let arena = Arena::resident(bytes, plan.pages, root, &budget)?;
        Worker::new(arena, &names, plan)
    };
    let mut report = team::with(plan.threads, plan.cpu, root, make, |team| {
        let mut bracket = Bracket::for_this_thread(root, team.first_cpu());
        let mut report = CopyReport {
            left_out,
            libc: sys::libc_facts::version(),
            threads: plan.threads,
            block_bytes: plan.block_bytes,
            stride: plan.stride,
            offset: plan.offset,
            blind_to: bracket.blind_to().iter().map(|s| s.to_string()).collect(),
            overhead: calibrate::overhead(&mut bracket),
            control_step_ns: compute::control(&budget, &mut bracket),
            pages: vec![team.first(|worker| worker.arena.granted())],
            ..CopyReport::default()
        };
        for (i, &size) in sizes.iter().enumerate() {
            let share = budget
                .left()
                .mul_f64(weight(size) / sizes[i..].iter().copied().map(weight).sum::<f64>());
            let measured = worker::one_size(plan, size, team, &mut bracket, &budget.part(share));
            judge::add_rows(&mut report, plan, &names, size, measured);
        }
        Ok(report)
    })?;
    report.interrupted = stop.over();
    if report.rows.iter().all(|row| row.bytes_per_s.is_none()) {
        let reason = "the budget ended before the first trial";
        return Err(Error::new(ErrorKind::Impossible, "measure copies", reason));
    }
    Ok(report)
}

/// A size's part of the budget: one pass of 256 MiB by all methods takes a second,
/// of 16 KiB nothing.
fn weight(size: u64) -> f64 {
    match size {
        0..=8_388_608 => 1.0,
        8_388_609..=worker::CACHED_BYTES => 2.0,
        _ => 6.0,
    }
}

fn nature(name: &str) -> (Operation, Option<f64>) {
    match memops::find(name) {
        Some(method) => (method.operation(), Some(method.traffic_factor())),
        None => (Operation::Copy, None),
    }
}

/// The word for an operation in results.
pub fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Copy => "copy",
        Operation::Read => "read",
        Operation::Write => "write",
    }
}

/// The element type of a 2001 loop; `None` for every other method.
fn width_of(name: &str) -> Option<Width> {
    match name {
        "char" => Some(Width::Byte),
        "short" => Some(Width::Short),
        "int" => Some(Width::Int),
        "long" => Some(Width::Long),
        "int64" => Some(Width::Int64),
        "double" => Some(Width::Double),
        _ => None,
    }
}

/// The methods to run: the named ones, or all of the wanted operations that this
/// machine has. A named one that is absent is an error; an unnamed one is listed.
fn chosen(plan: &CopyPlan, left_out: &mut Vec<SkippedMethod>) -> Result<Vec<String>> {
    if !plan.methods.is_empty() {
        return Ok(plan.methods.clone());
    }
    let mut names = Vec::new();
    for name in technique::names() {
        if !plan.operations.contains(&nature(name).0)
            || (plan.stride > 1 && width_of(name).is_none())
        {
            continue;
        }
        match Technique::prepare(name) {
            Ok(_) => names.push(name.to_owned()),
            Err(error) => left_out.push(SkippedMethod {
                name: name.to_owned(),
                reason: error.reason.unwrap_or(error.operation),
            }),
        }
    }
    Ok(names)
}

/// Room for two buffers and their offsets. The tmpfs technique holds a third.
fn arena_bytes(plan: &CopyPlan, size: u64) -> u64 {
    let shift = plan.offset.0.max(plan.offset.1) as u64;
    let half = (size + shift).next_multiple_of(2 << 20);
    let third =
        plan.methods.is_empty() || plan.methods.iter().any(|m| technique::needs_third_buffer(m));
    2 * half + if third { size } else { 0 }
}
