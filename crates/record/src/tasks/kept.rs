//! The rows that are kept: each thread's while there are few, then sums by name.
//!
//! A command with 10,000 children does not make 10,000 rows. The longest lives keep a row
//! of their own, so that the main program is never summed up with its helpers.

use super::row::{counters, delays};
use model::recording::{Delay, Task, TaskSource};
use std::collections::BTreeMap;

/// Rows that a recording has of single threads; about 300 bytes each.
pub(super) const ROWS_MAX: usize = 2000;

/// Sums by name; beyond it the rest goes under one name.
const NAMES_MAX: usize = 500;

/// The name of that rest; a comm has at most 15 bytes, so no task has it.
const OTHERS: &str = "(all other names)";

/// Rows of one name are summed up if their block I/O is known for both or for none.
type Key = (String, TaskOrder, bool);

/// The source of a row, in an order.
type TaskOrder = u8;

/// The rows.
#[derive(Debug, Default)]
pub(super) struct Kept {
    rows: Vec<Task>,
    sums: BTreeMap<Key, Task>,
}

impl Kept {
    /// Takes one row.
    pub(super) fn add(&mut self, task: Task) {
        self.rows.push(task);
        // Twice the limit, so that sorting is rare.
        if self.rows.len() >= 2 * ROWS_MAX {
            self.fold();
        }
    }

    /// All rows, single threads first, the longest lives first.
    pub(super) fn finish(mut self) -> Vec<Task> {
        self.fold();
        self.rows.sort_by_key(|task| (std::cmp::Reverse(task.alive_ns), task.tid));
        self.rows.extend(self.sums.into_values());
        self.rows
    }

    /// Sums up the shortest lives beyond the limit.
    fn fold(&mut self) {
        if self.rows.len() <= ROWS_MAX {
            return;
        }
        self.rows.sort_by_key(|task| std::cmp::Reverse((task.alive_ns, task.run_ns)));
        for task in self.rows.split_off(ROWS_MAX) {
            let source = match task.source {
                TaskSource::Exit => 0,
                TaskSource::Asked => 1,
                TaskSource::Proc => 2,
            };
            let mut key = (task.comm.clone(), source, task.block_io.is_some());
            if !self.sums.contains_key(&key) && self.sums.len() >= NAMES_MAX {
                OTHERS.clone_into(&mut key.0);
            }
            match self.sums.get_mut(&key) {
                Some(sum) => add(sum, task),
                None => {
                    let (pid, tid, ppid) = (0, 0, 0);
                    let comm = key.0.clone();
                    let sum = Task { pid, tid, ppid, comm, ..task };
                    self.sums.insert(key, sum);
                }
            }
        }
    }
}

/// Adds a row to a sum.
fn add(sum: &mut Task, mut task: Task) {
    sum.threads += task.threads;
    for (total, value) in counters(sum).into_iter().zip(counters(&mut task)) {
        *total = total.saturating_add(*value);
    }
    sum.queue = sum_of(sum.queue, task.queue);
    for (total, value) in delays(sum).into_iter().zip(delays(&mut task)) {
        // What one of them does not know is not known of the sum.
        *total = total.zip(*value).map(|(total, value)| sum_of(total, value));
    }
}

fn sum_of(one: Delay, other: Delay) -> Delay {
    Delay {
        count: one.count.saturating_add(other.count),
        total_ns: one.total_ns.saturating_add(other.total_ns),
        max_ns: one.max_ns.zip(other.max_ns).map(|(one, other)| one.max(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tid: u32, comm: &str, alive_ns: u64) -> Task {
        Task {
            pid: tid,
            tid,
            comm: comm.to_owned(),
            threads: 1,
            alive_ns,
            run_ns: 1,
            block_io: Some(Delay { count: 1, total_ns: 2, max_ns: Some(u64::from(tid)) }),
            ..Task::default()
        }
    }

    #[test]
    fn ten_thousand_children_and_their_parent() {
        let mut kept = Kept::default();
        for child in 1..=10_000 {
            kept.add(task(child, "child", 10));
        }
        kept.add(task(20_000, "make", 1_000_000));
        let rows = kept.finish();
        assert_eq!(rows.len(), ROWS_MAX + 1);
        assert_eq!((rows[0].tid, rows[0].comm.as_str()), (20_000, "make"));
        assert_eq!(rows.iter().map(|row| row.threads).sum::<u64>(), 10_001);
        assert_eq!(rows.iter().map(|row| row.run_ns).sum::<u64>(), 10_001);
        let sum = rows.last().unwrap();
        assert_eq!((sum.tid, sum.threads), (0, 10_001 - ROWS_MAX as u64));
        assert_eq!(sum.block_io.unwrap().total_ns, 2 * sum.threads);
        assert!(sum.block_io.unwrap().max_ns.is_some());
    }

    #[test]
    fn what_is_not_known_is_not_added_as_zero() {
        let mut kept = Kept::default();
        for child in 0..2 * ROWS_MAX as u32 {
            let mut row = task(child, "child", 10);
            row.block_io = row.block_io.filter(|_| child % 2 == 0);
            kept.add(row);
        }
        let sums: Vec<Task> = kept.finish().split_off(ROWS_MAX);
        assert_eq!(sums.len(), 2);
        assert_eq!(sums.iter().filter(|sum| sum.block_io.is_none()).count(), 1);
    }

    #[test]
    fn names_without_end_become_one_row() {
        let mut kept = Kept::default();
        for child in 0..8000 {
            kept.add(task(child, &format!("name{child}"), 10));
        }
        let rows = kept.finish();
        assert!(rows.len() <= ROWS_MAX + NAMES_MAX + 1);
        assert_eq!(rows.iter().map(|row| row.threads).sum::<u64>(), 8000);
        assert!(rows.iter().any(|row| row.comm == OTHERS));
    }
}
