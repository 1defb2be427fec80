//! What the processors did, from samples of their kernel stacks: by where the processor was, by the
//! class of the innermost function that has one, and by system call.

mod functions;

use super::Family;
use super::columns::{ColumnId, SOURCE, counter, set};
use super::reducer::{Reducer, TraceSums};
use crate::registry::{Registry, Row};
use functions::{KernelWork, Place, ProcessorFunctions};
use model::recording::{CallPurpose, CallShare, SampledPart, SeriesKind};
use std::collections::{BTreeMap, BTreeSet};

/// The most system calls that have series of their own; the first ones that were met.
const CALLS_MAX: usize = 64;

/// Samples so far.
#[derive(Debug, Default)]
pub struct CpuSums {
    period_ns: u64,
    samples: u64,
    places: [u64; Place::ALL.len()],
    work: [u64; KernelWork::ALL.len()],
    calls: BTreeMap<&'static str, u64>,
    /// Of calls to read and to write.
    shares: BTreeMap<(&'static str, &'static str), u64>,
    functions: Option<&'static ProcessorFunctions>,
}

/// The parts that one sample counts in.
#[derive(Clone, Copy, Debug)]
pub struct SampleParts {
    origin: Place,
    class: Option<KernelWork>,
    purpose: Option<CallPurpose>,
}

impl SampleParts {
    /// Their places in [`SampledPart::ALL`].
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        let class = self.class.map(|class| SampledPart::ORIGINS + class as usize);
        let purpose = self.purpose.map(|purpose| purpose.part() as usize);
        [Some(self.origin as usize), class, purpose].into_iter().flatten()
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
        self.places[seen.place as usize] += 1;
        if seen.place != Place::User {
            self.work[seen.work as usize] += 1;
        }
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
        SampleParts {
            origin: seen.place,
            class: (seen.place != Place::User).then_some(seen.work),
            purpose: purpose.filter(|_| share.is_none()),
        }
    }
}

/// The series of these samples.
#[derive(Debug, Default)]
pub struct CpuSeries(Option<CpuColumns>);

#[derive(Debug)]
struct CpuColumns {
    samples: ColumnId,
    period: ColumnId,
    places: [ColumnId; Place::ALL.len()],
    work: [ColumnId; KernelWork::ALL.len()],
    calls: BTreeMap<&'static str, ColumnId>,
    shares: BTreeMap<(&'static str, &'static str), ColumnId>,
}

impl Reducer for CpuSeries {
    fn open(&mut self, families: &BTreeSet<Family>, registry: &mut Registry) {
        self.0 = families.contains(&Family::Cpu).then(|| {
            let mut column = |name: &str| counter(registry, &format!("trace.cpu.{name}"), "count");
            let samples = column("samples");
            let places = Place::ALL.map(|(_, name)| column(&format!("in.{name}")));
            let work = KernelWork::ALL.map(|(_, name)| column(&format!("kernel.{name}")));
            let period = registry.id("trace.cpu.period_ns", "ns", SeriesKind::Gauge, SOURCE);
            let (calls, shares) = Default::default();
            CpuColumns { samples, period, places, work, calls, shares }
        });
    }

    fn fill(&mut self, sums: &TraceSums<'_>, registry: &mut Registry, row: &mut Row) {
        let (Some(columns), cpu) = (&mut self.0, sums.cpu) else {
            return;
        };
        set(row, columns.samples, cpu.samples);
        set(row, columns.period, cpu.period_ns);
        for (column, count) in columns.places.iter().zip(cpu.places) {
            set(row, *column, count);
        }
        for (column, count) in columns.work.iter().zip(cpu.work) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_called_as_their_series() {
        let origins = Place::ALL.iter().map(|(_, name)| format!("in.{name}"));
        let classes = KernelWork::ALL.iter().map(|(_, name)| format!("kernel.{name}"));
        let named = SampledPart::ALL.iter().map(|(_, name)| (*name).to_owned());
        let of_series = SampledPart::ORIGINS + SampledPart::CLASSES;
        assert!(origins.chain(classes).eq(named.take(of_series)));
    }
}
