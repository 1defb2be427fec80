//! Why writing to a RAM disk is slow: the same amount of memory is written as new, as new again
//! right after it was given back, over itself, and in huge pages; every touch is timed, and the
//! counters of the machine and of the groups are read around each pass.
//!
//! A process of its own writes, since a memory limit may get it killed: that is a result. It
//! holds a file without a name, so that all is given back however it ends.

mod counters;
mod plan;
mod worker;

pub use plan::{Place, Plan};
pub use worker::be_toucher;

use crate::helper::Helper;
use crate::{Error, ErrorKind, Result};
use counters::Counters;
use machine::Root;
use model::ramdisk::{End, Pass, Round, Seen};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use worker::{Line, Order};

const OPERATION: &str = "write to memory";
/// Between two looks for Ctrl-C.
const LOOK_NS: u64 = 50_000_000;
/// The share of its pages that may leave memory before the pass of huge pages is left out: it
/// would only swap once more.
const MOST_LEFT_SHARE: f64 = 0.01;

/// Writes as planned. Ctrl-C ends it, and what was seen until then is told; so is what was seen
/// until the kernel killed the process that writes.
///
/// # Errors
/// `Failed` where no process can be started or it fails for another reason than memory.
pub fn measure(root: &Root, plan: &Plan, progress: &mut dyn FnMut(&str)) -> Result<Seen> {
    let mut toucher = Toucher::start(plan)?;
    let mut seen = plan.nothing_seen(root);
    for &round in &plan.rounds {
        if seen.killed || sys::interrupt::requested() || !is_worth(round, &seen) {
            break;
        }
        progress(words(round));
        let order = Order {
            round,
            place: plan.place.clone(),
            content: plan.content,
            bytes: seen.passes.first().map_or(plan.bytes, |first| first.bytes),
            floor_bytes: plan.floor_bytes,
            budget: plan.budget / plan.rounds.len() as u32,
        };
        let (swap, before) = (counters::swap_used(root), Counters::read(root));
        match toucher.make(&order)? {
            Made::Pass(mut pass) => {
                seen.killed = toucher.has_ended() && !sys::interrupt::requested();
                pass.grew = Counters::read(root).since(&before);
                if round == Round::First {
                    seen.swap_areas = counters::swap_grown(root, &swap);
                }
                seen.passes.push(pass);
            }
            Made::Nothing(why) => seen.notes.push(why),
        }
    }
    Ok(seen)
}

/// What a pass does, for a person who waits.
fn words(round: Round) -> &'static str {
    match round {
        Round::First => "new memory",
        Round::Again => "new memory again, right after giving it back",
        Round::Rewrite => "the same pages written over",
        Round::Huge => "new memory in huge pages",
    }
}

/// Whether a pass can tell anything after those before it.
fn is_worth(round: Round, seen: &Seen) -> bool {
    let Some(first) = seen.passes.first() else {
        return round == Round::First;
    };
    let left = first.left_memory_bytes.unwrap_or(0) as f64;
    let stayed = left <= first.bytes as f64 * MOST_LEFT_SHARE;
    first.bytes > 0 && (round != Round::Huge || stayed && first.end == Some(End::Whole))
}

/// What came of an order.
enum Made {
    Pass(Pass),
    /// It cannot be made here, and why.
    Nothing(String),
}

/// The process that writes.
struct Toucher {
    helper: Helper,
    /// What it said and is not a whole line yet.
    said: Vec<u8>,
    ended: bool,
}

impl Toucher {
    fn start(plan: &Plan) -> Result<Self> {
        Ok(Self {
            helper: Helper::start(&plan.helper, OPERATION)?,
            said: Vec::new(),
            ended: false,
        })
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    /// Gives an order and waits until it is done, the process has ended, or Ctrl-C, which ends it.
    fn make(&mut self, order: &Order) -> Result<Made> {
        let failed = |error| Error::caused(ErrorKind::Failed, OPERATION, error);
        let mut words = serde_json::to_vec(order).map_err(failed)?;
        words.push(b'\n');
        if let Some(input) = &mut self.helper.0.stdin {
            // One that cannot hear it has ended, which shows below.
            let _ = input.write_all(&words);
        }
        let mut latest = Pass::begun(order.round);
        while let Some(line) = self.line()? {
            match serde_json::from_str(&line).map_err(failed)? {
                Line::Nothing(why) => return Ok(Made::Nothing(why)),
                Line::Pass(pass) if pass.end.is_some() => return Ok(Made::Pass(pass)),
                Line::Pass(pass) => latest = pass,
            }
        }
        self.end()?;
        Ok(Made::Pass(latest))
    }

    /// Its next line; `None` once it has ended or somebody asked for the end.
    fn line(&mut self) -> Result<Option<String>> {
        let failed = |error| Error::caused(ErrorKind::Failed, OPERATION, error);
        loop {
            if let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.said.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            let output = self.helper.0.stdout.as_mut();
            let Some(output) = output.filter(|_| !sys::interrupt::requested()) else {
                return Ok(None);
            };
            if sys::poll::readable([Some(output.as_fd())], Some(LOOK_NS)) == [true] {
                let mut bytes = [0; 8192];
                let read = output.read(&mut bytes).map_err(failed)?;
                if read == 0 {
                    return Ok(None);
                }
                self.said.extend_from_slice(&bytes[..read]);
            }
        }
    }

    /// Ends the process. That the kernel killed it is no error.
    fn end(&mut self) -> Result<()> {
        let failed = |error| Error::caused(ErrorKind::Failed, OPERATION, error);
        self.ended = true;
        if sys::interrupt::requested() {
            // It may have ended by itself a moment ago.
            let _ = self.helper.0.kill();
        }
        let status = self.helper.0.wait().map_err(failed)?;
        if status.signal().is_some() {
            return Ok(());
        }
        let mut why = String::new();
        if let Some(source) = self.helper.0.stderr.take() {
            source
                .take(MOST_WORDS)
                .read_to_string(&mut why)
                .map_err(failed)?;
        }
        let why = why.lines().next_back().unwrap_or("it ended early");
        let why = why.strip_prefix("terrace: ").unwrap_or(why);
        Err(Error::new(ErrorKind::Failed, OPERATION, why))
    }
}

/// What is read of the last words of a process that failed.
const MOST_WORDS: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(first: Option<Pass>) -> Seen {
        Seen {
            place: "shared memory".to_owned(),
            asked_bytes: 1 << 20,
            page_bytes: 4096,
            passes: first.into_iter().collect(),
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
        assert!(worth(Round::Huge, 0, End::Whole));
        assert!(!worth(Round::Huge, 1 << 19, End::Whole));
        assert!(!worth(Round::Huge, 0, End::Floor));
        assert!(worth(Round::Rewrite, 1 << 19, End::Floor));
        assert!(is_worth(Round::First, &seen(None)) && !is_worth(Round::Again, &seen(None)));
    }
}
