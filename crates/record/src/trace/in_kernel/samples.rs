//! Samples of processors by process: those of the first processes of each second have a row, the
//! rest are among the others.

use super::objects::Sampled;
use super::who::Processes;
use crate::trace::cpu::SampleParts;
use model::recording::{SampleRow, SampledPart, Who};
use std::collections::HashMap;

/// The first so many of a second have rows: with few processors no more are met often.
const FIRST: usize = 16;
/// The most processes that are kept apart within a second.
const PROCESSES_MAX: usize = 4096;

/// Samples since the last rows.
#[derive(Debug, Default)]
pub struct Samples {
    by_process: HashMap<u32, Met>,
    /// Of processes without room.
    others: [u64; SampledPart::COUNT],
    from_ns: u64,
}

/// What one process was met at.
#[derive(Debug)]
struct Met {
    of: Sampled,
    samples: [u64; SampledPart::COUNT],
}

impl Met {
    fn all(&self) -> u64 {
        self.samples[..SampledPart::ORIGINS].iter().sum()
    }
}

impl Samples {
    /// Takes one sample.
    pub fn take(&mut self, of: Sampled, parts: SampleParts) {
        let has_room = self.by_process.len() < PROCESSES_MAX;
        let samples = if has_room || self.by_process.contains_key(&of.process) {
            let met = self
                .by_process
                .entry(of.process)
                .or_insert_with(|| Met { of: of.clone(), samples: [0; SampledPart::COUNT] });
            // The name of a process changes when it executes a program.
            met.of = of;
            &mut met.samples
        } else {
            &mut self.others
        };
        for number in parts.numbers() {
            samples[number] += 1;
        }
    }

    /// Writes the rows of this second.
    pub fn write(&mut self, processes: &mut Processes, caller_ns: u64, who: &mut Who) {
        let to_ns = caller_ns / 1000 * 1000;
        let from_ns = std::mem::replace(&mut self.from_ns, to_ns).min(to_ns);
        let mut met: Vec<Met> = self.by_process.drain().map(|(_, met)| met).collect();
        met.sort_unstable_by_key(|met| (std::cmp::Reverse(met.all()), met.of.process));
        let mut rows: Vec<SampleRow> = Vec::new();
        let mut add = |process: u32, samples: &[u64; SampledPart::COUNT]| {
            // Several short-lived processes are one entry.
            let known = rows.iter().position(|row| row.process == process);
            let at = known.unwrap_or_else(|| {
                rows.push(SampleRow { process, from_ns, to_ns, ..SampleRow::default() });
                rows.len() - 1
            });
            for (sum, more) in rows[at].samples.iter_mut().zip(samples) {
                *sum += more;
            }
        };
        let mut others = std::mem::replace(&mut self.others, [0; SampledPart::COUNT]);
        for (number, met) in met.iter().enumerate() {
            if number < FIRST {
                add(processes.id_of_sampled(&met.of, who), &met.samples);
                continue;
            }
            for (sum, more) in others.iter_mut().zip(&met.samples) {
                *sum += more;
            }
        }
        if others.iter().any(|sum| *sum > 0) {
            add(processes.id_of(0, who), &others);
        }
        who.samples.append(&mut rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::cpu::{CpuSums, judge};
    use crate::trace::in_kernel::objects::ThreadRecord;

    fn sampled(process: u32) -> Sampled {
        Sampled { process, parent: 1, name: "x".to_owned(), is_kernel_thread: false }
    }

    #[test]
    fn the_first_have_rows_and_the_rest_are_others() {
        let mut samples = Samples::default();
        let mut cpu = CpuSums::new(1);
        for process in 1..=20 {
            for _ in 0..process {
                let seen = judge(false, std::iter::empty());
                samples.take(sampled(process), cpu.take(seen));
            }
        }
        let (mut processes, mut who) = (Processes::default(), Who::default());
        // Of the 20 one is not known, and four have fewer than the first.
        for process in 1..20 {
            processes.take(&ThreadRecord { process, ..ThreadRecord::default() }, 0);
        }
        samples.write(&mut processes, 1_000_000_000, &mut who);
        let pid = |row: &SampleRow| who.processes[row.process as usize].pid;
        let mut rows: Vec<(u32, u64)> =
            who.samples.iter().map(|row| (pid(row), row.all())).collect();
        rows.sort_unstable();
        let others = 20 + 1 + 2 + 3 + 4;
        let named = (5..20).map(|process| (process, u64::from(process)));
        assert_eq!(rows, [(0, others)].into_iter().chain(named).collect::<Vec<_>>());
        samples.write(&mut processes, 2_000_000_000, &mut who);
        assert_eq!(who.samples.len(), rows.len(), "what was written is gone");
    }
}
