//! `terrace ramdisk why`: makes the plan, measures the passes over memory, prints the verdict; and
//! the helper process that writes.

use super::deliver::Delivery;
use super::helper;
use crate::args::When;
use crate::args::ramdisk::{Ramdisk, WhyArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::ramdisk::RamdiskAnswer;
use crate::output::{self, Report};
use machine::Root;
use measure::ramdisk::{self, RamDiskPlan};
use sys::helper::HiddenCommand;

/// The hidden command of the process that writes.
pub const HELPER: &str = "ramdisk-process";

/// Runs an action on RAM disks.
///
/// # Errors
/// If the plan is refused, or the measurement fails before there is a result.
pub fn run(action: &Ramdisk, color: When) -> Result<Exit> {
    match action {
        Ramdisk::Why(args) => why(args, color),
    }
}

fn why(args: &WhyArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let helper = HiddenCommand::new([HELPER]);
    let plan = RamDiskPlan::new(&root, args.mount.as_deref(), args.size, args.budget, helper)?;
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        output::announce(RamdiskAnswer::COMMAND, &plan.stated());
        let seen = ramdisk::measure(&root, &plan, &mut |step| activity.begin(step))?;
        Ok::<_, measure::Error>(RamdiskAnswer {
            judged: explain::ramdisk::judge(&seen),
            seen,
            interrupted: sys::interrupt::requested(),
        })
    })
}

/// Runs the process that writes.
///
/// # Errors
/// Why it failed; the caller reports it.
pub fn process() -> Result<Exit> {
    ramdisk::run_writer(&Root::system(), &mut helper::caller()?)?;
    Ok(Exit::Done)
}
