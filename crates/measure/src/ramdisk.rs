//! Why writing to a RAM disk is slow: the same amount of memory is written as new, as new again
//! right after it was freed, over itself, and in huge pages; every touch is timed, and the
//! counters of the machine and of the groups are read around each pass.
//!
//! A process of its own writes, since a memory limit may get it killed: that is a result. It
//! writes to a file without a name, so that all memory is freed however it ends.

mod counters;
mod plan;
mod worker;

pub use plan::{RamDiskPlan, WritePlace};
pub use worker::run_writer;

use crate::helper::failed;
use crate::{Budget, Error, ErrorKind, Result};
use counters::PassCounters;
use machine::Root;
use model::ramdisk::{Pass, PassEnd, RamDiskObservation, Round};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use sys::helper::{Helper, Received};
use worker::{WriteOrder, WriterReport};

const OPERATION: &str = "write to memory";
/// Between two checks for Ctrl-C.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The share of its pages that may leave memory before the pass of huge pages is left out: it
/// would only swap once more.
const MOST_LEFT_SHARE: f64 = 0.01;
/// What a repeat writes at most: beyond the caches, and short.
const REPEAT_BYTES: u64 = 256 << 20;

/// Writes as planned. If Ctrl-C ends it or the kernel kills the process that writes, returns what
/// was measured until then.
///
/// # Errors
/// `Failed` where no process can be started or it fails for another reason than memory.
pub fn measure(
    root: &Root,
    plan: &RamDiskPlan,
    progress: &mut dyn FnMut(&str),
) -> Result<RamDiskObservation> {
    let mut writer = WriterProcess::start(plan)?;
    let mut seen = plan.nothing_seen(root);
    let budget = Budget::of(plan.budget);
    for &round in &plan.rounds {
        if seen.killed || sys::interrupt::requested() || !is_worth(round, &seen) {
            break;
        }
        progress(describe_round(round));
        let bytes = seen.passes.first().map_or(plan.bytes, |first| first.bytes);
        let time = plan.budget / plan.rounds.len() as u32;
        let swap = counters::swap_used(root);
        match writer.counted(root, &plan.order(round, bytes, time))? {
            OrderResult::Pass(pass) => {
                seen.killed = writer.was_killed();
                if round == Round::First {
                    seen.swap_areas = counters::swap_grown(root, &swap);
                }
                seen.passes.push(pass);
            }
            OrderResult::Nothing(why) => seen.notes.push(why),
        }
    }
    repeat_remedies(root, plan, &mut writer, &mut seen, &budget, progress)?;
    Ok(seen)
}

/// Writes touched memory and huge pages by turns, as often as the plan says and the time permits.
fn repeat_remedies(
    root: &Root,
    plan: &RamDiskPlan,
    writer: &mut WriterProcess,
    seen: &mut RamDiskObservation,
    budget: &Budget,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    let Some(again) = seen.pass(Round::Again) else {
        return Ok(());
    };
    let bytes = again.bytes.min(REPEAT_BYTES);
    let mut rounds = vec![Round::Again];
    rounds.extend(seen.pass(Round::Huge).map(|huge| huge.round));
    let turns = plan.repeats as usize * rounds.len();
    // Where memory is short each repeat would only swap once more.
    if seen.killed || turns == 0 || !is_worth(Round::Huge, seen) {
        return Ok(());
    }
    progress("the remedies by turns");
    for round in rounds.into_iter().cycle().take(turns) {
        if budget.over() || writer.has_ended {
            break;
        }
        if let OrderResult::Pass(pass) =
            writer.counted(root, &plan.order(round, bytes, budget.left()))?
        {
            seen.repeats.push(pass);
        }
    }
    Ok(())
}

/// What a pass does, as the progress line shows it.
fn describe_round(round: Round) -> &'static str {
    match round {
        Round::First => "new memory",
        Round::Again => "new memory again, right after giving it back",
        Round::Rewrite => "the same pages written over",
        Round::Huge => "new memory in huge pages",
    }
}

/// Whether a pass can show anything new after those before it.
fn is_worth(round: Round, seen: &RamDiskObservation) -> bool {
    let Some(first) = seen.passes.first() else {
        return round == Round::First;
    };
    let left = first.left_memory_bytes.unwrap_or(0) as f64;
    let stayed = left <= first.bytes as f64 * MOST_LEFT_SHARE;
    first.bytes > 0 && (round != Round::Huge || stayed && first.end == Some(PassEnd::Whole))
}

/// What came of an order.
enum OrderResult {
    Pass(Pass),
    /// It cannot be made here, and why.
    Nothing(String),
}

/// The process that writes.
struct WriterProcess {
    helper: Helper,
    has_ended: bool,
}

impl WriterProcess {
    fn start(plan: &RamDiskPlan) -> Result<Self> {
        Ok(Self {
            helper: Helper::start(&plan.helper).map_err(failed(OPERATION))?,
            has_ended: false,
        })
    }

    /// Whether it ended and Ctrl-C was not the reason.
    fn was_killed(&self) -> bool {
        self.has_ended && !sys::interrupt::requested()
    }

    /// Gives an order, and adds to the pass what the counters grew by.
    fn counted(&mut self, root: &Root, order: &WriteOrder) -> Result<OrderResult> {
        let before = PassCounters::read(root);
        let mut made = self.make(order)?;
        if let OrderResult::Pass(pass) = &mut made {
            pass.grew = PassCounters::read(root).since(&before);
        }
        Ok(made)
    }

    /// Gives an order and waits until it is done, the process has ended, or Ctrl-C, which ends it.
    fn make(&mut self, order: &WriteOrder) -> Result<OrderResult> {
        // A process that cannot receive it has ended, which shows below.
        let _ = self.helper.send(order);
        let mut latest = Pass::begun(order.round);
        while !sys::interrupt::requested() {
            match self.helper.receive(CHECK_INTERVAL).map_err(failed(OPERATION))? {
                Received::Message(WriterReport::Nothing(why)) => {
                    return Ok(OrderResult::Nothing(why));
                }
                Received::Message(WriterReport::Pass(pass)) if pass.end.is_some() => {
                    return Ok(OrderResult::Pass(pass));
                }
                Received::Message(WriterReport::Pass(pass)) => latest = pass,
                Received::Pending => {}
                Received::Ended => break,
            }
        }
        self.end()?;
        Ok(OrderResult::Pass(latest))
    }

    /// Ends the process. That the kernel killed it is no error.
    fn end(&mut self) -> Result<()> {
        self.has_ended = true;
        if sys::interrupt::requested() {
            self.helper.kill();
        }
        let ending = self.helper.wait().map_err(failed(OPERATION))?;
        if ending.status.signal().is_some() {
            return Ok(());
        }
        let why = ending.error_text.unwrap_or("it ended early".to_owned());
        Err(Error::new(ErrorKind::Failed, OPERATION, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(first: Option<Pass>) -> RamDiskObservation {
        RamDiskObservation {
            place: "shared memory".to_owned(),
            asked_bytes: 1 << 20,
            page_bytes: 4096,
            passes: first.into_iter().collect(),
            repeats: Vec::new(),
            limits: Vec::new(),
            killed: false,
            is_guest: None,
            swap_areas: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn huge_pages_are_not_tried_where_memory_was_short() {
        let first = |left, end| Pass {
            bytes: 1 << 20,
            left_memory_bytes: Some(left),
            end: Some(end),
            ..Pass::begun(Round::First)
        };
        let worth = |round, left, end| is_worth(round, &seen(Some(first(left, end))));
        assert!(worth(Round::Huge, 0, PassEnd::Whole));
        assert!(!worth(Round::Huge, 1 << 19, PassEnd::Whole));
        assert!(!worth(Round::Huge, 0, PassEnd::Floor));
        assert!(worth(Round::Rewrite, 1 << 19, PassEnd::Floor));
        assert!(is_worth(Round::First, &seen(None)) && !is_worth(Round::Again, &seen(None)));
    }
}
