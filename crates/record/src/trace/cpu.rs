//! What the processors did, from samples of their kernel stacks: by where the processor was, by the
//! class of the innermost function that has one, and by system call.

mod functions;

use super::Family;
use super::columns::{ColumnId, SOURCE, counter, set};
use super::reducer::{Reducer, TraceSums};
use crate::registry::{Registry, Row};
use functions::ProcessorFunctions;
use model::recording::{CallPurpose, CallShare, SampledPart, SeriesKind};
use std::collections::{BTreeMap, BTreeSet};

/// The most system calls that have series of their own; the first ones that were met.
const CALLS_MAX: usize = 64;

/// The origins and the classes have series of their own.
const PARTS: usize = SampledPart::ORIGINS + SampledPart::CLASSES;

/// Samples so far.
#[derive(Debug, Default)]
pub struct CpuSums {
    period_ns: u64,
    samples: u64,
    parts: [u64; PARTS],
    calls: BTreeMap<&'static str, u64>,
    /// Of calls to read and to write.
    shares: BTreeMap<(&'static str, &'static str), u64>,
    functions: Option<&'static ProcessorFunctions>,
}

/// The parts that one sample counts in.
#[derive(Clone, Copy, Debug)]
pub struct SampleParts {
    origin: SampledPart,
    class: Option<SampledPart>,
    purpose: Option<CallPurpose>,
}

impl SampleParts {
    /// Their places in [`SampledPart::ALL`].
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        let parts = [Some(self.origin), self.class, self.purpose.map(CallPurpose::part)];
        parts.into_iter().flatten().map(|part| part as usize)
    }
}

impl CpuSums {
    /// None yet; each stands for `period_ns`.
    pub fn new(period_ns: u64) -> Self {
        Self { period_ns, ..Self::default() }
    }

    /// Takes a sample: the kernel's frames from the innermost outwards, none in user code. Returns
    /// what it counts in.
    pub fn take(
        &mut self,
        is_kernel_thread: bool,
        frames: impl Iterator<Item = u64>,
    ) -> SampleParts {
        // Reading them takes a while, so a command that is short is spared it.
        let functions = self.functions.get_or_insert_with(ProcessorFunctions::of_kernel);
        let seen = functions.judge(is_kernel_thread, frames);
        self.samples += 1;
        if let Some(call) = seen.call
            && (self.calls.len() < CALLS_MAX || self.calls.contains_key(call))
        {
            *self.calls.entry(call).or_default() += 1;
        }
        let purpose = seen.call.and_then(CallPurpose::of);
        let is_transfer = matches!(purpose, Some(CallPurpose::Read | CallPurpose::Write));
        let share = seen.share.filter(|_| is_transfer);
        if let (Some(call), Some(share)) = (seen.call, share) {
            *self.shares.entry((call, CallShare::ALL[share as usize].1)).or_default() += 1;
        }
        let parts = SampleParts {
            origin: seen.place,
            class: (seen.place != SampledPart::User).then_some(seen.work),
            purpose: purpose.filter(|_| share.is_none()),
        };
        for number in parts.numbers() {
            if let Some(count) = self.parts.get_mut(number) {
                *count += 1;
            }
        }
        parts
    }
}

/// The series of these samples.
#[derive(Debug, Default)]
pub struct CpuSeries(Option<CpuColumns>);

#[derive(Debug)]
struct CpuColumns {
    samples: ColumnId,
    period: ColumnId,
    parts: Vec<ColumnId>,
    calls: BTreeMap<&'static str, ColumnId>,
    shares: BTreeMap<(&'static str, &'static str), ColumnId>,
}

impl Reducer for CpuSeries {
    fn open(&mut self, families: &BTreeSet<Family>, registry: &mut Registry) {
        self.0 = families.contains(&Family::Cpu).then(|| {
            let mut column = |name: &str| counter(registry, &format!("trace.cpu.{name}"), "count");
            let samples = column("samples");
            let parts = SampledPart::ALL.iter().take(PARTS).map(|(_, name)| column(name)).collect();
            let period = registry.id("trace.cpu.period_ns", "ns", SeriesKind::Gauge, SOURCE);
            let (calls, shares) = Default::default();
            CpuColumns { samples, period, parts, calls, shares }
        });
    }

    fn fill(&mut self, sums: &TraceSums<'_>, registry: &mut Registry, row: &mut Row) {
        let (Some(columns), cpu) = (&mut self.0, sums.cpu) else {
            return;
        };
        set(row, columns.samples, cpu.samples);
        set(row, columns.period, cpu.period_ns);
        for (column, count) in columns.parts.iter().zip(cpu.parts) {
            set(row, *column, count);
        }
        for (call, count) in &cpu.calls {
            let column = columns
                .calls
                .entry(call)
                .or_insert_with(|| counter(registry, &format!("trace.cpu.call.{call}"), "count"));
            set(row, *column, *count);
        }
        for ((call, share), count) in &cpu.shares {
            let name = || format!("trace.cpu.within.{call}.{share}");
            let column = columns
                .shares
                .entry((call, share))
                .or_insert_with(|| counter(registry, &name(), "count"));
            set(row, *column, *count);
        }
    }
}
