//! What the processors did, from samples of their kernel stacks: by where the processor was, by the
//! class of the innermost function that has one, and by system call.

mod functions;

use super::Family;
use super::columns::{ColumnId, SOURCE, counter, set};
use super::reducer::{Reducer, TraceSums};
use crate::registry::{Registry, Row};
use functions::ProcessorFunctions;
pub use functions::Seen;
use model::recording::{CallPurpose, CallShare, SampledPart, SeriesKind};
use std::collections::{BTreeMap, BTreeSet};

/// The most system calls that have series of their own; the first ones that were met.
const CALLS_MAX: usize = 64;

/// What stands for the name of a call where a page fault on a file is divided.
const FILE_FAULT: &str = "fault_file";

/// The origins and the classes have series of their own.
const PARTS: usize = SampledPart::ORIGINS + SampledPart::CLASSES;

/// Samples a second of one processor, most first: in step with nothing that people choose.
const RATES: [u64; 4] = [397, 199, 97, 49];
/// The most samples a second of all processors of a command. Picked: a tenth of a second on a
/// processor has 40. Seen: 4.5 us each with the stack, so at most 0.36 % of a core.
const OF_COMMAND: u64 = 800;
/// The same of a whole machine, which may be recorded for days: at most 0.09 %.
const OF_MACHINE: u64 = 200;

/// The time that one sample stands for: where processors are few, each is looked at more often.
pub fn sample_period_ns(is_machine: bool, processors: usize) -> u64 {
    let most = if is_machine { OF_MACHINE } else { OF_COMMAND };
    let each = most / u64::try_from(processors.max(1)).unwrap_or(u64::MAX);
    let [.., least] = RATES;
    let rate = RATES.into_iter().find(|rate| *rate <= each).unwrap_or(least);
    1_000_000_000 / rate
}

/// Reads the functions of the kernel, which takes a while.
pub fn prepare() {
    ProcessorFunctions::of_kernel();
}

/// What a sample says: the kernel's frames from the innermost outwards, none in user code.
pub fn judge(is_kernel_thread: bool, frames: impl Iterator<Item = u64>) -> Seen {
    // Without [`prepare`] a command that is short is spared it.
    ProcessorFunctions::of_kernel().judge(is_kernel_thread, frames)
}

/// Samples so far.
#[derive(Debug, Default)]
pub struct CpuSums {
    period_ns: u64,
    samples: u64,
    parts: [u64; PARTS],
    calls: BTreeMap<&'static str, u64>,
    /// Of calls to read and to write, and of page faults on files.
    shares: BTreeMap<(&'static str, &'static str), u64>,
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

    /// Takes a sample. Returns what it counts in.
    pub fn take(&mut self, seen: Seen) -> SampleParts {
        self.samples += 1;
        if let Some(call) = seen.call
            && (self.calls.len() < CALLS_MAX || self.calls.contains_key(call))
        {
            *self.calls.entry(call).or_default() += 1;
        }
        let purpose = seen.call.and_then(CallPurpose::of);
        let is_transfer = matches!(purpose, Some(CallPurpose::Read | CallPurpose::Write));
        let share = seen.share.filter(|_| is_transfer);
        if let Some(share) = seen.fault_share {
            *self.shares.entry((FILE_FAULT, CallShare::ALL[share as usize].1)).or_default() += 1;
        }
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

#[cfg(test)]
mod tests {
    use super::sample_period_ns;

    #[test]
    fn few_processors_are_looked_at_more_often() {
        let rate =
            |is_machine, processors| 1_000_000_000 / sample_period_ns(is_machine, processors);
        let of_command = [1, 2, 4, 8, 64].map(|processors| rate(false, processors));
        assert_eq!(of_command, [397, 397, 199, 97, 49]);
        assert_eq!([1, 2, 4, 64].map(|processors| rate(true, processors)), [199, 97, 49, 49]);
        assert_eq!(rate(true, 0), 199, "a machine whose processors are not listed has one");
    }
}
