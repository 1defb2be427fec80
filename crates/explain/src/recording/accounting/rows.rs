//! The rows of delay accounting, added up: what the kernel charged to every thread.
//!
//! Values that cannot be are repaired row by row before they are added: a wait that is
//! longer than the life of its thread was counted from a start stamp of 0, so such waits,
//! of which the kernel also tells the longest, are left out. What is too long without such
//! a wait is cut, and no longer measured. Every repair is told.

use super::bar::tolerance_ns;
use crate::wording::long_time;
use model::duration::show_ns;
use model::explanation::Repair;
use model::recording::{Delay, Task};

/// Repairs of one kind that are listed one by one; the others are listed as one sum.
const REPAIRS_MAX: usize = 4;

/// A category of delay, added up over rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Charged {
    /// How many waits.
    pub count: u64,
    /// Their sum, repaired.
    pub ns: u64,
    /// Whether its length is a bound: the most where it was cut to what had room, the least
    /// where several impossible waits were left out.
    pub cut: bool,
}

/// All rows together. A category that no row has is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub threads: u64,
    pub alive_ns: u64,
    pub run_ns: u64,
    pub user_ns: u64,
    pub system_ns: u64,
    pub queue: Charged,
    pub block_io: Option<Charged>,
    pub swap_in: Option<Charged>,
    pub reclaim: Option<Charged>,
    pub thrash: Option<Charged>,
    pub compact: Option<Charged>,
    pub copy_on_write: Option<Charged>,
    pub interrupts: Option<Charged>,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub repairs: Vec<Repair>,
}

impl Rows {
    /// Adds the rows up; no thread can have been in the queue for longer than `contended_ns`.
    pub(super) fn of(tasks: &[Task], contended_ns: u64) -> Self {
        let mut rows = Rows::default();
        let mut repairs = Repairs::default();
        for task in tasks {
            rows.add(task, contended_ns, &mut repairs);
        }
        rows.repairs = repairs.into_list();
        rows
    }

    fn add(&mut self, task: &Task, contended_ns: u64, repairs: &mut Repairs) {
        let alive = task.alive_ns;
        let plain = Delay { total_ns: task.run_ns, ..Delay::default() };
        let run = repairs.fit(task, "time on a processor", &plain, alive).ns;
        let queue = repairs.queue(task, contended_ns, alive - run);
        let room = alive - run - queue.ns;
        grow(&mut self.threads, task.threads);
        grow(&mut self.alive_ns, alive);
        grow(&mut self.run_ns, run);
        grow(&mut self.user_ns, task.user_ns);
        grow(&mut self.system_ns, task.system_ns);
        grow(&mut self.queue.count, queue.count);
        grow(&mut self.queue.ns, queue.ns);
        self.queue.cut |= queue.cut;
        grow(&mut self.minor_faults, task.minor_faults);
        grow(&mut self.major_faults, task.major_faults);
        grow(&mut self.read_bytes, task.read_bytes);
        grow(&mut self.write_bytes, task.write_bytes);
        // Block I/O shares the life with run and queue; the other categories overlap with
        // all three, so only the life itself bounds them.
        let block_io = ("block I/O delay", &task.block_io, &mut self.block_io, room);
        for (what, delay, sum, room) in [
            block_io,
            ("swap-in delay", &task.swap_in, &mut self.swap_in, alive),
            ("reclaim delay", &task.reclaim, &mut self.reclaim, alive),
            ("thrashing delay", &task.thrash, &mut self.thrash, alive),
            ("compaction delay", &task.compact, &mut self.compact, alive),
            ("write-protect copy delay", &task.copy_on_write, &mut self.copy_on_write, alive),
            ("interrupt delay", &task.interrupts, &mut self.interrupts, alive),
        ] {
            if let Some(delay) = delay {
                let sound = repairs.fit(task, what, delay, room);
                let sum = sum.get_or_insert_default();
                grow(&mut sum.count, sound.count);
                grow(&mut sum.ns, sound.ns);
                sum.cut |= sound.cut;
            }
        }
    }
}

/// Adds, and stops at the largest number: rows may come from a hostile file.
fn grow(sum: &mut u64, by: u64) {
    *sum = sum.saturating_add(by);
}

/// The repairs, in the order of the rows.
#[derive(Debug, Default)]
struct Repairs {
    made: Vec<(&'static str, Repair)>,
}

impl Repairs {
    /// The run queue delay, as [`Repairs::fit`] has it; left out where it is longer than
    /// processors were at work, because nobody tells how much of it was real.
    fn queue(&mut self, task: &Task, contended_ns: u64, room_ns: u64) -> Charged {
        const WHAT: &str = "run queue delay";
        let charged = task.queue.total_ns;
        let most = contended_ns.saturating_mul(task.threads.max(1));
        // More than a life is another error.
        if charged > task.alive_ns || charged <= most.saturating_add(tolerance_ns(task.alive_ns)) {
            return self.fit(task, WHAT, &task.queue, room_ns);
        }
        let text = format!(
            "{WHAT} of {} (pid {}): {} in which processors were idle; left out",
            task.comm,
            task.pid,
            show_ns(charged as f64)
        );
        let repair = Repair { text, before_ns: charged, after_ns: 0 };
        self.made.push((WHAT, repair));
        Charged { cut: true, ..Charged::default() }
    }

    /// `delay` as it can be true for `task`: without the waits that are longer than its life,
    /// and no more than `room_ns`.
    fn fit(&mut self, task: &Task, what: &'static str, delay: &Delay, room_ns: u64) -> Charged {
        let alive = task.alive_ns;
        let before = delay.total_ns;
        let impossible = delay.max_ns.filter(|max| *max > alive);
        // As many such waits as must go so that the rest fits. Each is as long as the machine
        // was up, the longest one the last, so of several only the least rest is known.
        let gone = impossible
            .map_or(0, |max| before.saturating_sub(room_ns).div_ceil(max))
            .max(u64::from(impossible.is_some()))
            .min(delay.count.max(1));
        let rest = impossible.map_or(before, |max| before.saturating_sub(max.saturating_mul(gone)));
        let after = rest.min(room_ns);
        if before - after > tolerance_ns(alive) {
            let whose = format!("{what} of {} (pid {})", task.comm, task.pid);
            let life = show_ns(alive as f64);
            let text = match impossible {
                Some(max) => format!(
                    "{whose}: {gone} of {} waits took up to {} in a life of {life}, counted \
                     from a start stamp of 0; without them {}",
                    delay.count,
                    long_time(max as f64),
                    show_ns(after as f64)
                ),
                None => format!(
                    "{whose}: {} do not fit in a life of {life}; cut to the {} that are \
                     left of it",
                    long_time(before as f64),
                    show_ns(after as f64)
                ),
            };
            let repair = Repair { text, before_ns: before, after_ns: after };
            self.made.push((what, repair));
        }
        Charged {
            count: delay.count.saturating_sub(if impossible.is_some() { gone } else { 0 }),
            ns: after,
            cut: gone > 1 || rest - after > tolerance_ns(alive),
        }
    }

    /// The first few of each kind, and the others of that kind as one.
    fn into_list(self) -> Vec<Repair> {
        let mut kinds: Vec<(&'static str, usize, Repair)> = Vec::new();
        let mut listed = Vec::new();
        for (what, repair) in self.made {
            let index = kinds.iter().position(|kind| kind.0 == what).unwrap_or_else(|| {
                let none = Repair { text: String::new(), before_ns: 0, after_ns: 0 };
                kinds.push((what, 0, none));
                kinds.len() - 1
            });
            let (_, seen, rest) = &mut kinds[index];
            *seen += 1;
            if *seen <= REPAIRS_MAX {
                listed.push(repair);
            } else {
                grow(&mut rest.before_ns, repair.before_ns);
                grow(&mut rest.after_ns, repair.after_ns);
            }
        }
        for (what, seen, mut rest) in kinds {
            if seen > REPAIRS_MAX {
                rest.text = format!(
                    "{what}: repaired in the same way for {} more threads",
                    seen - REPAIRS_MAX
                );
                listed.push(rest);
            }
        }
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn task(alive_ms: u64, run_ms: u64, block_io: Delay) -> Task {
        Task {
            comm: "cat".to_owned(),
            pid: 7,
            threads: 1,
            alive_ns: alive_ms * MS,
            run_ns: run_ms * MS,
            block_io: Some(block_io),
            ..Task::default()
        }
    }

    fn delay(count: u64, total_ms: u64, max_ms: Option<u64>) -> Delay {
        Delay { count, total_ns: total_ms * MS, max_ns: max_ms.map(|ms| ms * MS) }
    }

    #[test]
    fn a_wait_from_a_start_stamp_of_0_is_left_out() {
        let rows = Rows::of(&[task(919, 228, delay(40, 707_184, Some(706_898)))], u64::MAX);
        let waited = rows.block_io.expect("told");
        assert_eq!(waited.ns, 286 * MS);
        assert_eq!(waited.count, 39);
        assert!(!waited.cut, "what is left is what was measured");
        assert_eq!(rows.repairs.len(), 1);
        assert!(rows.repairs[0].text.contains("start stamp of 0"));
    }

    /// Seen: `cat` into a pipe, 12 waits of which ten had no start stamp; events had 12 ms.
    #[test]
    fn of_several_waits_from_a_start_stamp_of_0_none_is_kept() {
        let wrong = delay(12, 35_045_225, Some(3_506_709));
        let mut cat = task(4129, 250, wrong);
        cat.queue = delay(300, 2260, Some(40));
        let rows = Rows::of(&[cat], u64::MAX);
        let waited = rows.block_io.expect("told");
        assert_eq!((waited.ns, waited.count), (0, 2));
        assert!(waited.cut, "it is no more than a bound");
        assert!(rows.repairs[0].text.contains("10 of 12 waits"));
    }

    #[test]
    fn without_a_longest_wait_it_is_cut_to_what_is_left() {
        let rows = Rows::of(&[task(919, 228, delay(40, 707_184, None))], u64::MAX);
        assert_eq!(rows.block_io.expect("told").ns, (919 - 228) * MS);
        assert_eq!(rows.repairs[0].after_ns, (919 - 228) * MS);
        assert!(rows.block_io.expect("told").cut);
    }

    #[test]
    fn plausible_rows_are_left_alone() {
        let rows = Rows::of(&[task(919, 228, delay(40, 600, Some(50)))], u64::MAX);
        assert_eq!(rows.block_io.expect("told").ns, 600 * MS);
        assert!(rows.repairs.is_empty());
    }

    #[test]
    fn many_repairs_are_listed_as_few() {
        let wrong = task(919, 228, delay(40, 707_184, Some(706_898)));
        let rows = Rows::of(&vec![wrong; 100], u64::MAX);
        assert_eq!(rows.repairs.len(), REPAIRS_MAX + 1);
        let before: u64 = rows.repairs.iter().map(|repair| repair.before_ns).sum();
        assert_eq!(before, 100 * 707_184 * MS);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut hostile = task(0, 0, Delay::default());
        hostile.run_ns = u64::MAX;
        hostile.queue = Delay { count: 0, total_ns: u64::MAX, max_ns: Some(u64::MAX) };
        hostile.minor_faults = u64::MAX;
        let rows = Rows::of(&[hostile.clone(), hostile], u64::MAX);
        assert_eq!((rows.run_ns, rows.queue.ns), (0, 0));
        assert_eq!(rows.minor_faults, u64::MAX);
    }
}
