//! What single processes used in a part of a recording, a second: the rows of the table of
//! processes, before they are sorted and worded.
//!
//! A row that lies only partly in that part is shared out by time. The last row of a process may
//! end before the part does: it is taken to go on, unless the process has ended.

use model::recording::{Process, ProcessFigure, ProcessRow, Who};
use std::collections::BTreeMap;

/// Rows that end so long before the part are still looked at, for the memory that a process had
/// when it began. Everyone who used anything has a row a second.
const BEFORE_NS: u64 = 2_000_000_000;

/// What one process used.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessRates<'a> {
    /// Which; `None` for all that are not shown.
    pub process: Option<&'a Process>,
    /// How many processes these are.
    pub count: u64,
    /// By [`ProcessFigure::ALL`], a second.
    pub per_s: [f64; ProcessFigure::COUNT],
    /// Its resident memory at the end, bytes; `None` where it has ended or is several.
    pub memory_bytes: Option<f64>,
    /// By how much that grew, bytes a second; `None` where only one level is known.
    pub growth_bytes_per_s: Option<f64>,
}

impl ProcessRates<'_> {
    /// One figure, a second.
    pub fn get(&self, figure: ProcessFigure) -> f64 {
        self.per_s[figure as usize]
    }

    /// All of these as one.
    pub fn sum(all: &[Self]) -> ProcessRates<'static> {
        let mut sum = ProcessRates {
            process: None,
            count: 0,
            per_s: [0.0; ProcessFigure::COUNT],
            memory_bytes: None,
            growth_bytes_per_s: None,
        };
        for one in all {
            sum.count += one.count;
            for (sum, value) in sum.per_s.iter_mut().zip(one.per_s) {
                *sum += value;
            }
        }
        sum
    }
}

/// What of a process is known so far.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    figures: [f64; ProcessFigure::COUNT],
    is_inside: bool,
    has_ended: bool,
    count: u64,
    to_ns: u64,
    /// The first and the last level of memory: when, and bytes.
    memory: Option<[(u64, u64); 2]>,
}

/// What each process used between two instants, by id; those without a row there are left out.
pub fn rates(who: &Who, from_ns: u64, to_ns: u64) -> Vec<ProcessRates<'_>> {
    let earliest_ns = from_ns.saturating_sub(BEFORE_NS);
    let first = who.rows.partition_point(|row| row.to_ns <= earliest_ns);
    let mut sums: BTreeMap<u32, Sums> = BTreeMap::new();
    for row in who.rows[first..].iter().filter(|row| row.from_ns < to_ns) {
        add(sums.entry(row.process).or_default(), row, from_ns, to_ns);
    }
    let known = sums.into_iter().filter(|(_, sums)| sums.is_inside);
    known
        .filter_map(|(id, sums)| Some(of(who.processes.get(id as usize)?, &sums, from_ns, to_ns)))
        .collect()
}

fn add(sums: &mut Sums, row: &ProcessRow, from_ns: u64, to_ns: u64) {
    let begin_ns = row.from_ns.min(row.to_ns.saturating_sub(1));
    let inside_ns = row.to_ns.min(to_ns).saturating_sub(begin_ns.max(from_ns));
    if inside_ns > 0 {
        let part = inside_ns as f64 / (row.to_ns - begin_ns) as f64;
        for (sum, value) in sums.figures.iter_mut().zip(row.figures) {
            *sum += value as f64 * part;
        }
        sums.is_inside = true;
        sums.to_ns = sums.to_ns.max(row.to_ns);
        sums.count = sums.count.saturating_add(row.processes.max(1));
    }
    sums.has_ended |= row.has_ended;
    if row.to_ns <= to_ns && !row.has_ended {
        let level = (row.to_ns, row.memory_bytes);
        let first = sums.memory.map_or(level, |[first, _]| first);
        // The first one is the last before the part begins, where there is one.
        sums.memory = Some([if row.to_ns <= from_ns { level } else { first }, level]);
    }
}

fn of<'a>(process: &'a Process, sums: &Sums, from_ns: u64, to_ns: u64) -> ProcessRates<'a> {
    let is_over = sums.has_ended || process.is_many || process.pid == 0;
    let until_ns = if is_over { to_ns } else { sums.to_ns.min(to_ns) };
    let seconds = until_ns.saturating_sub(from_ns).max(1) as f64 / 1e9;
    let memory = sums.memory.filter(|_| !is_over);
    let growth = memory.and_then(|[first, last]| {
        let time_ns = last.0.checked_sub(first.0).filter(|ns| *ns > 0)?;
        Some((last.1 as f64 - first.1 as f64) / (time_ns as f64 / 1e9))
    });
    ProcessRates {
        process: Some(process),
        count: if process.is_many { sums.count } else { 1 },
        per_s: sums.figures.map(|value| value / seconds),
        memory_bytes: memory.map(|[_, last]| last.1 as f64),
        growth_bytes_per_s: growth,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn row(process: u32, from_ns: u64, to_ns: u64, cpu_ns: u64) -> ProcessRow {
        let mut row = ProcessRow { process, from_ns, to_ns, processes: 1, ..ProcessRow::default() };
        row.figures[ProcessFigure::Cpu as usize] = cpu_ns;
        row.memory_bytes = to_ns / 1_000_000;
        row
    }

    fn who(rows: Vec<ProcessRow>) -> Who {
        let process = |id| Process { id, pid: 10 + id, ..Process::default() };
        Who { processes: (0..3).map(process).collect(), rows, ..Who::default() }
    }

    fn cpu(who: &Who, from_ns: u64, to_ns: u64) -> Vec<f64> {
        rates(who, from_ns, to_ns).iter().map(|one| one.get(ProcessFigure::Cpu) / 1e9).collect()
    }

    #[test]
    fn a_row_across_an_edge_is_shared_out_by_time() {
        let who = who(vec![row(0, 0, 2 * SECOND_NS, SECOND_NS)]);
        assert_eq!(cpu(&who, SECOND_NS, 2 * SECOND_NS), [0.5]);
        assert_eq!(cpu(&who, SECOND_NS, 3 * SECOND_NS), [0.5]);
        assert_eq!(cpu(&who, 2 * SECOND_NS, 3 * SECOND_NS), [0.0; 0]);
    }

    #[test]
    fn one_that_has_ended_does_not_go_on() {
        let mut last = row(0, 0, SECOND_NS / 2, SECOND_NS / 2);
        last.has_ended = true;
        let who = who(vec![last]);
        assert_eq!(cpu(&who, 0, SECOND_NS), [0.5]);
        assert_eq!(rates(&who, 0, SECOND_NS)[0].memory_bytes, None);
    }

    #[test]
    fn memory_grows_from_the_level_before_the_part() {
        let rows = (0..4).map(|s| row(0, s * SECOND_NS, (s + 1) * SECOND_NS, 0)).collect();
        let who = who(rows);
        let one = &rates(&who, 2 * SECOND_NS, 4 * SECOND_NS)[0];
        assert_eq!((one.memory_bytes, one.growth_bytes_per_s), (Some(4000.0), Some(1000.0)));
        // With a single level nothing is known of growth.
        assert_eq!(rates(&who, 0, SECOND_NS)[0].growth_bytes_per_s, None);
    }

    #[test]
    fn damaged_rows_do_no_harm() {
        let mut backwards = row(1, 9, 3, 7);
        backwards.figures = [u64::MAX; ProcessFigure::COUNT];
        let who = who(vec![backwards, row(77, 0, SECOND_NS, 5), row(2, 5, 5, 5)]);
        let all = rates(&who, 0, u64::MAX);
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|one| one.per_s.iter().all(|value| value.is_finite())));
        assert_eq!(rates(&who, u64::MAX, 0), []);
    }
}
