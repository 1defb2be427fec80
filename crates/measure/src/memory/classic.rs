//! The program of 2001, pass for pass: one method after the other, each for a
//! count of passes over one block, every pass timed.
//!
//! This repeats an old experiment, so it does what the old program did and not
//! what the other probes do: methods are not interleaved and nothing is thrown
//! away. What disturbed the passes is counted beside them.

use super::technique::Technique;
use super::{PageKind, arena};
use crate::disturbance::{Bracket, Disturbance, Tally};
use crate::{Budget, Error, ErrorKind, Result, team};
use machine::Root;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use sys::memory::{Mapping, Pages};

/// The methods of the old program, by its numbers.
pub const METHODS: [&str; 7] = ["memcpy", "char", "short", "int", "long", "int64", "double"];

/// What the old program's arguments ask for.
#[derive(Clone, Debug)]
pub struct ClassicPlan {
    /// `-f`: allocate and free for each pass.
    pub allocate_each_pass: bool,
    /// `-w`: lock the buffers in memory.
    pub locked: bool,
    /// `-p`: touch the buffers before the timed passes.
    pub prepare: bool,
    /// Bytes of one block.
    pub size_bytes: u64,
    /// Passes of each method.
    pub passes: u64,
    /// Methods by name, in order.
    pub methods: Vec<String>,
    /// Time for everything.
    pub budget: Duration,
}

/// The passes of one method.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClassicRow {
    /// The method's name.
    pub method: String,
    /// Copied bytes a second in each pass, each byte counted once.
    pub bytes_per_s: Vec<f64>,
    /// All bytes over all time, as the old program averaged.
    pub average_bytes_per_s: f64,
    /// Whether the last pass's target equals its source; `None` without `-p`, because
    /// blocks that nobody wrote are equal before.
    pub verified: Option<bool>,
}

/// The result of [`measure`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClassicReport {
    /// One row for each method that had a pass.
    pub rows: Vec<ClassicRow>,
    /// Bytes of one block.
    pub size_bytes: u64,
    /// Passes asked for.
    pub passes: u64,
    /// Passes that were disturbed, among all; none is left out.
    pub tally: Tally,
    /// Whether the budget or Ctrl-C cut it short.
    pub interrupted: bool,
}

/// Does what the program of 2001 did.
pub fn measure(plan: &ClassicPlan, root: &Root, stop: &Budget) -> Result<ClassicReport> {
    if plan.size_bytes == 0 || plan.passes == 0 {
        let reason = "give a size and a count of at least 1";
        return Err(Error::new(ErrorKind::Usage, "copy nothing", reason));
    }
    arena::check_fits(root, 2 * plan.size_bytes)?;
    let budget = stop.part(plan.budget);
    let mut techniques =
        plan.methods.iter().map(|name| Technique::prepare(name)).collect::<Result<Vec<_>>>()?;
    team::alone(None, root, |bracket| {
        let mut report = ClassicReport {
            size_bytes: plan.size_bytes,
            passes: plan.passes,
            ..ClassicReport::default()
        };
        for (name, technique) in plan.methods.iter().zip(&mut techniques) {
            let row = passes(plan, name, technique, &budget, bracket, &mut report.tally)?;
            report.rows.extend(row);
        }
        report.interrupted = budget.over();
        Ok(report)
    })
}

/// Two blocks, as one pass uses them.
struct Blocks {
    target: Mapping,
    source: Mapping,
}

impl Blocks {
    fn new(plan: &ClassicPlan) -> Result<Self> {
        let map = || {
            // The pages of 2001 were small, and nobody asked for others.
            let mut mapping = Mapping::anonymous(plan.size_bytes as usize, Pages::Base)?;
            if plan.locked {
                mapping.lock()?;
            }
            Ok(mapping)
        };
        let cannot = |source: sys::Error| {
            let operation = format!("get two blocks of {} pages", PageKind::Base);
            Error::caused(ErrorKind::Impossible, operation, source)
        };
        let mut blocks = Self { target: map().map_err(cannot)?, source: map().map_err(cannot)? };
        if plan.prepare {
            blocks.target.as_mut_slice().fill(1);
            blocks.source.as_mut_slice().fill(2);
        }
        Ok(blocks)
    }
}

fn passes(
    plan: &ClassicPlan,
    name: &str,
    technique: &mut Technique,
    budget: &Budget,
    bracket: &mut Bracket,
    tally: &mut Tally,
) -> Result<Option<ClassicRow>> {
    let mut blocks = Some(Blocks::new(plan)?);
    let mut times_ns = Vec::new();
    for _ in 0..plan.passes {
        if budget.over() {
            break;
        }
        let before = bracket.read();
        let start = sys::clock::now_ns();
        if plan.allocate_each_pass {
            // Freed first: two pairs at once would be twice the memory that was checked.
            blocks = None;
        }
        let pair = match &mut blocks {
            Some(pair) => pair,
            None => blocks.insert(Blocks::new(plan)?),
        };
        technique.apply(pair.target.as_mut_slice(), pair.source.as_slice()).map_err(|source| {
            Error::caused(ErrorKind::Failed, format!("copy by {name}"), source)
        })?;
        let elapsed_ns = (sys::clock::now_ns() - start).max(1);
        let mut disturbance = Disturbance::between(&before, &bracket.read());
        if plan.allocate_each_pass || !plan.prepare {
            // Faults are part of what such a pass measures.
            disturbance.minor_faults = None;
        }
        tally.add(elapsed_ns as f64, &disturbance, false);
        times_ns.push(elapsed_ns as f64);
    }
    if times_ns.is_empty() {
        return Ok(None);
    }
    let rate = |bytes: f64, ns: f64| bytes * 1e9 / ns;
    let size = plan.size_bytes as f64;
    Ok(Some(ClassicRow {
        method: name.to_owned(),
        average_bytes_per_s: rate(size * times_ns.len() as f64, times_ns.iter().sum()),
        bytes_per_s: times_ns.iter().map(|&ns| rate(size, ns)).collect(),
        verified: blocks
            .filter(|_| plan.prepare)
            .map(|pair| pair.target.as_slice() == pair.source.as_slice()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seven_methods_of_the_article() {
        let names = ["memcpy", "char", "short", "int", "long", "int64", "double"];
        let plan = ClassicPlan {
            allocate_each_pass: false,
            locked: false,
            prepare: true,
            size_bytes: 1 << 20,
            passes: 8,
            methods: names.map(str::to_owned).to_vec(),
            budget: Duration::from_secs(20),
        };
        let root = Root::system();
        let stop = Budget::of(Duration::from_secs(60));
        let report = measure(&plan, &root, &stop).unwrap();
        assert_eq!(report.rows.len(), 7);
        for row in &report.rows {
            assert_eq!(row.bytes_per_s.len(), 8);
            assert_eq!(row.verified, Some(true), "{}", row.method);
            let best = row.bytes_per_s.iter().copied().fold(0.0, f64::max);
            assert!(row.average_bytes_per_s <= best * 1.000_001);
        }
        let fresh_plan = ClassicPlan { allocate_each_pass: true, ..plan };
        let fresh = measure(&fresh_plan, &root, &stop).unwrap();
        // Fresh pages fault in every pass: the worst case of the old program.
        let memcpy = |report: &ClassicReport| {
            let passes = report.rows[0].bytes_per_s.iter();
            passes.copied().fold(0.0, f64::max)
        };
        assert!(memcpy(&fresh) < memcpy(&report));
    }
}
