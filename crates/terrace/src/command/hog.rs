//! `terrace hog`: makes the plan, runs the hogs, reports what they evicted; and the helper process
//! that is one hog.

use super::deliver::Delivery;
use super::helper;
use crate::args::When;
use crate::args::hog::HogArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::hog::HogResult;
use machine::Root;
use measure::pressure::{self, HogPlan};
use sys::helper::HiddenCommand;

/// The hidden command of a hog.
pub const HELPER: &str = "hog-process";

/// Runs the hogs and reports what they did.
///
/// # Errors
/// If the plan is refused, or the run fails before there is a result.
pub fn hog(args: &HogArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let plan = plan(args);
    plan.check(&root).map_err(|error| with_hint(error, args))?;
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        let report = pressure::hog(&root, &plan, &mut |step| activity.begin(step))?;
        Ok::<_, measure::Error>(HogResult { plan, report })
    })
}

/// Runs one hog as a helper process.
///
/// # Errors
/// Why it failed; the caller reports it.
pub fn process() -> Result<Exit> {
    pressure::run_hog(&Root::system(), &mut helper::caller()?)?;
    Ok(Exit::Done)
}

fn plan(args: &HogArgs) -> HogPlan {
    HogPlan {
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
    }
}

/// Adds a hint if there is not enough memory.
fn with_hint(error: measure::Error, args: &HogArgs) -> Error {
    let error = Error::from(error);
    match error.exit {
        Exit::Impossible if args.until_psi.is_none() => {
            error.hint("a smaller --size or --count; --force starts them all the same")
        }
        _ => error,
    }
}
