//! `terrace ramdisk why`: the plan from what was typed, the passes over memory, the verdict; and
//! the process that writes.

use super::cost::Meter;
use super::deliver::Delivery;
use super::{helper, watching};
use crate::args::When;
use crate::args::ramdisk::{Ramdisk, WhyArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::progress::Progress;
use crate::output::{self, ramdisk::Answer};
use ::record::capture::Background;
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
    const NAME: &str = "ramdisk why";
    let root = Root::system();
    let helper = HiddenCommand::new([HELPER]);
    let plan = Plan::new(&root, args.mount.as_deref(), args.size, args.budget, helper)?;
    let delivery = Delivery::of(&args.form, color)?;
    output::announce(NAME, &plan.stated());
    let meter = Meter::start();
    let progress = Progress::new();
    let background = watching::beside(NAME, args.form.record.as_deref())?;
    let mut step = |what: &str| {
        progress.step(&format!("terrace {NAME}: {what}"));
        if let Some(background) = &background {
            background.mark(what);
        }
    };
    let seen = ramdisk::measure(&root, &plan, &mut step);
    drop(progress);
    let recorded = background.map_or(Ok(()), Background::finish);
    let seen = seen?;
    recorded?;
    let answer = Answer {
        judged: explain::ramdisk::judge(&seen),
        seen,
        interrupted: sys::interrupt::requested(),
    };
    delivery.ramdisk(&answer, meter, &root)
}

/// The whole life of the process that writes.
///
/// # Errors
/// What its starter tells of it.
pub fn process() -> Result<Exit> {
    ramdisk::run_writer(&Root::system(), &mut helper::caller()?)?;
    Ok(Exit::Done)
}
