//! `terrace ramdisk`: saves a RAM disk to its store and restores it; says why writing to one is
//! slow, by a helper process that writes.

mod install;
mod keep;
mod known;
mod units;

use super::deliver::Delivery;
use super::helper;
use crate::args::When;
use crate::args::ramdisk::{
    AdoptArgs, CreateArgs, ExtractArgs, GrowArgs, ListArgs, Ramdisk, RamdiskRestoreArgs,
    ReleaseArgs, RemoveArgs, SaveArgs, StatusArgs, WhyArgs,
};
use crate::args::shared::FormArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::ramdisk::RamdiskAnswer;
use crate::output::ramdisk_adopt::{AdoptPage, ReleasePage};
use crate::output::ramdisk_mount::{CreatePage, GrowPage, RamdisksPage, RemovePage, StatusPage};
use crate::output::ramdisk_store::{GenerationPage, ListPage, RestorePage, SavePage};
use crate::output::{self, Report};
use machine::Root;
use measure::ramdisk::{self, RamDiskPlan};
use model::recording::date_and_time;
use place::ramdisk::record::RamdiskPersist;
use place::ramdisk::{
    Description, RamdiskCreate, RamdiskRemove, RamdiskRestore, SaveRequest, Store,
};
use std::path::{Path, PathBuf};
use sys::helper::HiddenCommand;
use sys::local_time::utc_offset_s;

/// The hidden command of the process that writes.
pub const HELPER: &str = "ramdisk-process";

/// Runs an action on RAM disks.
///
/// # Errors
/// If the plan is refused, or the measurement fails before there is a result.
pub fn run(action: &Ramdisk, color: When) -> Result<Exit> {
    match action {
        Ramdisk::Create(args) => create(args, color),
        Ramdisk::Status(args) => status(args, color),
        Ramdisk::Grow(args) => grow(args, color),
        Ramdisk::Remove(args) => remove(args, color),
        Ramdisk::Why(args) => why(args, color),
        Ramdisk::Save(args) => save(args, color),
        Ramdisk::Restore(args) => restore(args, color),
        Ramdisk::Extract(args) => extract(args, color),
        Ramdisk::List(ListArgs { persist: Some(store), form }) => generations(store, form, color),
        Ramdisk::List(ListArgs { persist: None, form }) => ramdisks(form, color),
        Ramdisk::Keep(args) => keep::keep(args),
        Ramdisk::Install(args) => install::install(args),
        Ramdisk::Uninstall(args) => install::uninstall(args),
        Ramdisk::Adopt(args) => adopt(args, color),
        Ramdisk::Release(args) => release(args, color),
        Ramdisk::Try(args) => super::run::in_memory(args, color),
    }
}

fn create(args: &CreateArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let persist = args.persist.as_ref().map(|store| RamdiskPersist {
        store: store.clone(),
        every_seconds: args.every.as_secs(),
        keep: args.keep,
    });
    let request = RamdiskCreate {
        mount_point: args.mount_point.clone(),
        size: args.size,
        huge: args.huge,
        noswap: args.noswap,
        mode: args.mode,
        owner: args.owner,
        prefault: args.prefault,
        atomic: args.atomic,
        persist,
        force: args.force,
        adopted: args.adopted,
    };
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        let made = place::ramdisk::create(&root, &request, &mut activity.until_interrupted())?;
        Ok::<_, place::Error>(CreatePage(made))
    })
}

fn adopt(args: &AdoptArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let request = RamdiskCreate {
        mount_point: args.path.clone(),
        size: args.size,
        huge: args.huge,
        noswap: args.noswap,
        mode: None,
        owner: None,
        prefault: false,
        atomic: args.atomic,
        persist: Some(RamdiskPersist {
            store: args.persist.clone(),
            every_seconds: args.schedule.every.as_secs(),
            keep: args.schedule.keep,
        }),
        force: args.force,
        adopted: true,
    };
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        let adopted = place::ramdisk::adopt(&root, &request, &mut activity.until_interrupted())?;
        Ok::<_, place::Error>(AdoptPage(adopted))
    })
}

fn release(args: &ReleaseArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        let released =
            place::ramdisk::release(&root, &args.name, &mut activity.until_interrupted())?;
        Ok::<_, place::Error>(ReleasePage(released))
    })
}

fn status(args: &StatusArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        let ramdisks =
            place::ramdisk::status(&root, args.name.as_deref(), &mut activity.until_interrupted())?;
        Ok::<_, place::Error>(StatusPage { ramdisks })
    })
}

fn grow(args: &GrowArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    Delivery::of(&args.form, color)?.carry_out(&root, |_| {
        let grown = place::ramdisk::grow(&root, &args.name, args.size, args.force)?;
        Ok::<_, place::Error>(GrowPage(grown))
    })
}

fn remove(args: &RemoveArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let request = RamdiskRemove { name: args.name.clone(), discard: args.discard };
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        let removed = place::ramdisk::remove(&root, &request, &mut activity.until_interrupted())?;
        Ok::<_, place::Error>(RemovePage(removed))
    })
}

fn ramdisks(form: &FormArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    Delivery::of(form, color)?.carry_out(&root, |_| {
        let ramdisks = place::ramdisk::list(&root)?;
        Ok::<_, place::Error>(RamdisksPage { ramdisks })
    })
}

fn save(args: &SaveArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    let (source, store, keep) =
        known::stored(&root, &args.source, args.persist.as_deref(), "save")?;
    let request = SaveRequest {
        source,
        store,
        keep: args.keep.or(keep).unwrap_or(known::USUAL_KEEP).into(),
        force: args.force,
        freeze: args.freeze.commands(),
        wait: args.wait,
    };
    Delivery::of(&args.form, color)?.carry_out(&root, |activity| {
        let saved = place::ramdisk::save(&root, &request, &mut activity.until_interrupted())?;
        Ok::<_, place::Error>(SavePage { source: request.source.clone(), saved })
    })
}

fn restore(args: &RamdiskRestoreArgs, color: When) -> Result<Exit> {
    let persist = args.persist.as_deref();
    let (target, store, _) = known::stored(&Root::system(), &args.target, persist, "restore")?;
    let request = RamdiskRestore {
        store,
        target,
        generation: args.generation,
        below: None,
        is_attached: true,
    };
    bring_back(&request, &args.form, color)
}

fn extract(args: &ExtractArgs, color: When) -> Result<Exit> {
    let (below, target): (Option<PathBuf>, PathBuf) = match args.paths.as_slice() {
        [below, target] => (Some(below.clone()), target.clone()),
        paths => (None, paths.iter().collect()),
    };
    let request = RamdiskRestore {
        store: args.persist.clone(),
        target,
        generation: Some(args.generation),
        below,
        is_attached: false,
    };
    bring_back(&request, &args.form, color)
}

fn bring_back(request: &RamdiskRestore, form: &FormArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    Delivery::of(form, color)?.carry_out(&root, |activity| {
        let restored = place::ramdisk::restore(&root, request, &mut activity.until_interrupted())?;
        let saved = date_and_time(restored.saved_at, utc_offset_s(restored.saved_at));
        Ok::<_, place::Error>(RestorePage { target: request.target.clone(), saved, restored })
    })
}

fn generations(store: &Path, form: &FormArgs, color: When) -> Result<Exit> {
    let root = Root::system();
    Delivery::of(form, color)?.carry_out(&root, |_| {
        let opened = Store::open(store)?;
        let described = opened.describe()?;
        let with_time = |one: Description| {
            let offset_s = utc_offset_s(one.saved_at);
            GenerationPage::of(one, offset_s)
        };
        let generations = described.into_iter().map(with_time).collect();
        Ok::<_, place::Error>(ListPage { store: store.to_owned(), generations })
    })
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
