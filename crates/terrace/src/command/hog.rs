//! `terrace hog`: the plan from what was typed, the hogs, and what they pushed out; and the
//! process that is one of them.

use super::deliver::Delivery;
use super::helper;
use crate::args::When;
use crate::args::hog::HogArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::hog::HogResult;
use machine::Root;
use measure::pressure::{self, Plan};
use sys::helper::HiddenCommand;

/// What this program is called with to be a hog.
pub const HELPER: &str = "hog-process";

/// Runs the hogs and tells what they did.
///
/// # Errors
/// What the plan was refused for, or what went wrong before there was a result.
pub fn hog(args: &HogArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let plan = plan(args)?;
    plan.check(&root).map_err(|error| hinted(error, args))?;
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        let report = pressure::hog(&root, &plan, &mut |step| activity.begin(step))?;
        Ok::<_, measure::Error>(HogResult { plan, report })
    })
}

/// The whole life of a hog's process.
///
/// # Errors
/// What its starter tells of it.
pub fn process() -> Result<Exit> {
    pressure::run_hog(&Root::system(), &mut helper::caller()?)?;
    Ok(Exit::Done)
}

fn plan(args: &HogArgs) -> Result<Plan> {
    Ok(Plan {
        size: args.size,
        count: args.count,
        repeat: args.repeat,
        hold: args.hold,
        content: args.content,
        touch: args.touch,
        group_limit: args.in_cgroup,
        until_pressure_percent: args.until_psi,
        force: args.force,
        helper: HiddenCommand::new([HELPER]),
    })
}

/// What to try where there is not enough memory.
fn hinted(error: measure::Error, args: &HogArgs) -> Error {
    let error = Error::from(error);
    match error.exit {
        Exit::Impossible if args.until_psi.is_none() => {
            error.hint("a smaller --size or --count; --force starts them all the same")
        }
        _ => error,
    }
}
