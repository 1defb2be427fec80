//! `measure memcpy --classic`: the program of 2001, from its own arguments.
//!
//! The same seven methods over the same block, pass for pass as it did them, and then
//! its control: the fractal that needs no memory.

use super::deliver::Delivery;
use super::measure::pin;
use crate::args::When;
use crate::args::classic::{self as typed, Classic};
use crate::args::measure::ProbeArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::report::ClassicResult;
use machine::Root;
use measure::Budget;
use measure::compute::{self, ComputePlan, ComputeReport};
use measure::memory::classic::METHODS;
use measure::memory::classic::{self, ClassicPlan};
use std::time::Duration;

/// The budget by default; the largest buffers of the article take seconds.
const BUDGET: Duration = Duration::from_secs(60);

/// The budget of the control: hundreds of trials of a step that varies by a percent.
const CONTROL_BUDGET: Duration = Duration::from_millis(500);

/// Runs the old program's command line.
///
/// # Errors
/// If the old program would have refused it; `Impossible` if the blocks do not fit or cannot be
/// locked.
pub fn run(line: &str, args: &ProbeArgs, color: When, root: &Root) -> Result<Exit> {
    let asked = typed::parse(line).map_err(|why| Error::usage(format!("--classic: {why}")))?;
    if asked.csv && args.form.json {
        return Err(Error::usage("--classic: `-csv` and --json exclude each other"));
    }
    let form = ProbeArgs { csv: args.csv || asked.csv, ..args.clone() };
    let delivery = Delivery::of_probe(&form, color)?;
    pin(args)?;
    delivery.carry_out(root, |activity| {
        activity.display("the program of 2001, Ctrl-C stops and prints what there is");
        let plan = plan_of(&asked, args);
        let report = classic::measure(&plan, root, &Budget::of(plan.budget))?;
        Ok::<_, measure::Error>(ClassicResult {
            averages_only: asked.averages_only,
            methods: asked.methods,
            allocate_each_pass: plan.allocate_each_pass,
            locked: plan.locked,
            prepare: plan.prepare,
            report,
            control: measure_control(args, root),
        })
    })
}

/// The control; `None` if Ctrl-C was pressed before.
fn measure_control(args: &ProbeArgs, root: &Root) -> Option<ComputeReport> {
    let plan = ComputePlan { budget: CONTROL_BUDGET, cpu: args.cpu, ..ComputePlan::default() };
    compute::measure(&plan, root, &Budget::of(CONTROL_BUDGET)).ok()
}

fn plan_of(asked: &Classic, args: &ProbeArgs) -> ClassicPlan {
    let name = |&number: &usize| METHODS[number].to_owned();
    ClassicPlan {
        allocate_each_pass: asked.allocate_each_pass,
        locked: asked.locked,
        prepare: asked.prepare,
        size_bytes: asked.size.0,
        passes: asked.passes,
        methods: asked.methods.iter().map(name).collect(),
        budget: args.budget.unwrap_or(BUDGET),
    }
}
