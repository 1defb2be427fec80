//! Who did it, as counters: of each figure the first ten processes have a track, below a track for
//! the figure.
//!
//! Rows are growths, the counters are their sums: a counter stands still between two rows and then
//! grows evenly through each of them, as far as the trace viewer draws that.

use super::{COUNTED, COUNTER_VALUE, Message, at, described, event};
use model::recording::{Process, ProcessFigure, ProcessRow, Who};
use std::collections::HashMap;
use std::io;

/// Tracks of figures and of processes: behind those of all series and groups.
const FIRST_FIGURE: u64 = 1 << 32;
const FIRST_PROCESS: u64 = 1 << 33;

/// Tracks of each figure.
const FIRST: usize = 10;

/// One figure of one process.
struct Counter {
    figure: ProcessFigure,
    track: u64,
    sum: u64,
    /// Where the last row ended.
    to_ns: Option<u64>,
}

/// Writes the descriptions of all tracks, and then their values.
pub(super) fn write(who: &Who, mut put: impl FnMut(Message) -> io::Result<()>) -> io::Result<()> {
    let mut counters: HashMap<u32, Vec<Counter>> = HashMap::new();
    let mut next = FIRST_PROCESS;
    for (track, figure) in (FIRST_FIGURE..).zip(ProcessFigure::ALL) {
        let first = first_of(who, figure);
        if first.is_empty() {
            continue;
        }
        put(described(track, &format!("processes.{}", figure.id()), None, None))?;
        for process in first {
            let name = named(process);
            put(described(next, &name, Some(track), Some(figure.unit())))?;
            let counter = Counter { figure, track: next, sum: 0, to_ns: None };
            counters.entry(process.id).or_default().push(counter);
            next += 1;
        }
    }
    for row in &who.rows {
        for counter in counters.get_mut(&row.process).into_iter().flatten() {
            counter.add(row, &mut put)?;
        }
    }
    Ok(())
}

impl Counter {
    fn add(
        &mut self,
        row: &ProcessRow,
        mut put: impl FnMut(Message) -> io::Result<()>,
    ) -> io::Result<()> {
        let growth = row.get(self.figure);
        if growth == 0 {
            return Ok(());
        }
        if self.to_ns != Some(row.from_ns) {
            put(self.value(row.from_ns))?;
        }
        self.sum = self.sum.saturating_add(growth);
        self.to_ns = Some(row.to_ns);
        put(self.value(row.to_ns))
    }

    fn value(&self, at_ns: u64) -> Message {
        let mut event = event(COUNTED, self.track);
        event.number(COUNTER_VALUE, self.sum.min(i64::MAX as u64));
        at(at_ns, &event)
    }
}

/// The processes with the most of a figure, the one with most first.
fn first_of(who: &Who, figure: ProcessFigure) -> Vec<&Process> {
    let mut sums = vec![0_u64; who.processes.len()];
    for row in &who.rows {
        if let Some(sum) = sums.get_mut(row.process as usize) {
            *sum = sum.saturating_add(row.get(figure));
        }
    }
    let mut used: Vec<_> = who.processes.iter().zip(sums).filter(|(_, sum)| *sum > 0).collect();
    used.sort_by_key(|(process, sum)| (std::cmp::Reverse(*sum), process.id));
    used.into_iter().take(FIRST).map(|(process, _)| process).collect()
}

fn named(process: &Process) -> String {
    match process.pid {
        0 => process.name.clone(),
        pid => format!("{} ({pid})", process.name),
    }
}
