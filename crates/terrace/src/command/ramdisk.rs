//! `terrace ramdisk why`: the plan from what was typed, the passes over memory, the verdict; and
//! the process that writes.

use super::deliver::Delivery;
use super::helper;
use crate::args::When;
use crate::args::ramdisk::{Ramdisk, WhyArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::ramdisk::Answer;
use crate::output::{self, Report};
use machine::Root;
use measure::ramdisk::{self, Plan};
use sys::helper::HiddenCommand;

/// What this program is called with to write.
pub const HELPER: &str = "ramdisk-process";

/// Does what is asked of RAM disks.
///
/// # Errors
/// What the plan was refused for, or what went wrong before there was a result.
pub fn act(action: &Ramdisk, color: When) -> Result<Exit> {
    match action {
        Ramdisk::Why(args) => why(args, color),
    }
}

fn why(args: &WhyArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let helper = HiddenCommand::new([HELPER]);
    let plan = Plan::new(&root, args.mount.as_deref(), args.size, args.budget, helper)?;
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        output::announce(Answer::COMMAND, &plan.stated());
        let seen = ramdisk::measure(&root, &plan, &mut |step| activity.begin(step))?;
        Ok::<_, measure::Error>(Answer {
            judged: explain::ramdisk::judge(&seen),
            seen,
            interrupted: sys::interrupt::requested(),
        })
    })
}

/// The whole life of the process that writes.
///
/// # Errors
/// What its starter tells of it.
pub fn process() -> Result<Exit> {
    ramdisk::run_writer(&Root::system(), &mut helper::caller()?)?;
    Ok(Exit::Done)
}
