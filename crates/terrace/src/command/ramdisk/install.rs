//! `terrace ramdisk install` and `uninstall`: units of systemd that mount, restore and keep a RAM
//! disk from the next boot on.
//!
//! A unit that this program did not make is neither replaced nor removed; all are looked at before
//! the first one is written. Nothing is started: `install` says how.

use super::known::{self, Known};
use super::units::{self, CreatedRamdisk, MARK, UnitPlan};
use crate::args::ramdisk::{InstallArgs, UninstallArgs};
use crate::command::systemd::{self, UNITS, UnitDirectory, refuse_unwritable};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output;
use machine::{Root, mounts};
use place::ramdisk::record::RamdiskRecord;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of a mount that are not its file system's.
const KEPT_FLAGS: &[&str] = &["nosuid", "nodev", "noexec", "noatime", "nodiratime"];
/// Options of tmpfs that were given when it was mounted.
const KEPT_OPTIONS: &[&str] =
    &["size", "nr_blocks", "nr_inodes", "mode", "uid", "gid", "huge", "mpol", "noswap"];

/// Writes the units, or only shows them.
///
/// # Errors
/// `Usage` for what is no RAM disk, `Impossible` for a unit of someone else.
pub(super) fn install(args: &InstallArgs) -> Result<Exit> {
    let root = Root::system();
    let Known { point, persist, ramdisk } =
        known::find(&root, &args.mount, args.persist.as_deref(), &args.schedule)?;
    let point = real(&point)?;
    let store =
        std::path::absolute(&persist.store).map_err(|error| refused(&persist.store, &error))?;
    if store.starts_with(&point) {
        return Err(Error::usage("the store is on the RAM disk, and would be lost with it"));
    }
    let all = mounts::read(&root);
    let mount = mounts::behind(&all, &point).filter(|mount| mount.mount_point == point);
    let created = ramdisk.as_ref().and_then(created);
    let is_atomic = created.as_ref().is_some_and(|created| created.is_atomic);
    let Some(mount) = mount.filter(|mount| is_atomic || mount.fs_type == "tmpfs") else {
        let text = format!("{} is not where a tmpfs is mounted now", point.display());
        return Err(Error::usage(text).hint("mount it first, with the options that it is to have"));
    };
    [&point, &store].into_iter().try_for_each(|path| refuse_unwritable(path))?;
    let program = std::env::current_exe().map_err(|error| refused(Path::new("terrace"), &error))?;
    let freeze = args.freeze.commands();
    let options = options(&mount.options, &mount.super_options);
    let plan = UnitPlan {
        program: &program,
        point: &point,
        options: &options,
        is_in_fstab: is_in_fstab(&root, &point),
        store: &store,
        every: Duration::from_secs(persist.every_seconds),
        keep: persist.keep,
        created,
        freeze: freeze.as_ref().map(|both| (both.freeze.as_str(), both.thaw.as_str())),
        users: &args.before,
    };
    let units = units::units(&plan);
    let place = args.to.clone().unwrap_or_else(|| PathBuf::from(UNITS));
    if args.dry_run {
        let mut text = systemd::shown(&place, &units);
        if plan.created.is_none() {
            let line = units::fstab_line(&plan);
            let what = "In place of the first unit, a line of /etc/fstab";
            text.push_str(&format!("\n# {what}:\n# {line}\n"));
        }
        return Ok(output::show(&text));
    }
    let directory = UnitDirectory::create(&place, MARK)?;
    let names = units::names(&point);
    let before = directory.own(&names)?;
    for unit in &units {
        directory.write(unit)?;
    }
    // What mounted it before, if that is another unit now.
    for name in before.iter().filter(|name| units.iter().all(|unit| unit.name != **name)) {
        directory.remove(name)?;
    }
    let service = &names[1];
    systemd::reload(&place)?;
    Ok(output::show(&format!(
        "{} is mounted, restored and kept by {service} from the next boot on.\n\
         Start it now: systemctl start '{service}'\n",
        point.display(),
    )))
}

/// What `create` makes it with at each boot; `None` for one that a unit of a mount makes.
fn created(ramdisk: &RamdiskRecord) -> Option<CreatedRamdisk> {
    let (is_adopted, is_atomic) = (ramdisk.adopted, ramdisk.kind.device().is_some());
    let options = ramdisk.options.clone();
    (is_adopted || is_atomic).then_some(CreatedRamdisk { options, is_adopted, is_atomic })
}

/// Removes the units, after a last save.
///
/// # Errors
/// `Impossible` for a unit of someone else, or a service that cannot be stopped.
pub(super) fn uninstall(args: &UninstallArgs) -> Result<Exit> {
    // What is unmounted by now, and whose directory is gone, has units all the same.
    let whole = || std::path::absolute(&args.mount).map_err(|error| refused(&args.mount, &error));
    let place = args.to.clone().unwrap_or_else(|| PathBuf::from(UNITS));
    let directory = UnitDirectory::open(&place, MARK)?;
    // A path that has units goes before a name that is known.
    let typed = real(&args.mount).or_else(|_| whole())?;
    let has_units =
        |point: &Path| units::names(point).iter().any(|name| directory.has(name).unwrap_or(true));
    let known = (!has_units(&typed)).then(|| known::point(&Root::system(), &args.mount)).flatten();
    let point = known.unwrap_or(typed);
    let there = directory.own(&units::names(&point))?;
    if there.is_empty() {
        let text = format!("{} has no units in {}", point.display(), place.display());
        return Err(Error::usage(text));
    }
    let links = directory.links(&there)?;
    if args.dry_run {
        return Ok(output::show(&systemd::shown_removal(&place, &there, &links)));
    }
    if systemd::is_live(&place) {
        systemd::systemctl(&["stop", &units::names(&point)[1]])?;
    }
    directory.remove_links(&links)?;
    there.iter().try_for_each(|name| directory.remove(name))?;
    systemd::reload(&place)?;
    let text = format!("{} stays mounted, and is not kept any more.\n", point.display());
    Ok(output::show(&text))
}

fn is_in_fstab(root: &Root, point: &Path) -> bool {
    let text = root.read("/etc/fstab").unwrap_or_default();
    systemd::fstab_lines(&text).iter().any(|line| line.point == point)
}

/// The path without links.
fn real(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &std::io::Error) -> Error {
    Error::usage(format!("cannot use {}: {}", path.display(), sys::plain_reason(error)))
}

/// The options that mount a RAM disk as it is.
fn options(flags: &str, options: &str) -> String {
    let name = |option: &&str| option.split('=').next().unwrap_or_default().to_owned();
    let flags = flags.split(',').filter(|flag| KEPT_FLAGS.contains(flag));
    let options = options.split(',').filter(|one| KEPT_OPTIONS.contains(&name(one).as_str()));
    let all: Vec<&str> = flags.chain(options).collect();
    if all.is_empty() { "defaults".to_owned() } else { all.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ram_disk_is_mounted_again_as_it_is() {
        let flags = "rw,nosuid,relatime";
        let kept = options(flags, "rw,size=16384k,mode=755,uid=7,huge=within_size,noswap,inode64");
        assert_eq!(kept, "nosuid,size=16384k,mode=755,uid=7,huge=within_size,noswap");
        assert_eq!(options("rw", "rw,inode64"), "defaults");
    }
}
