//! `terrace boost install` and `uninstall`: units of systemd that serve a cache, and mount what is
//! read through it, from the next boot on.
//!
//! The disk is named by a path that leads to the same disk after each boot. A unit that this
//! program did not make is neither replaced nor removed. Nothing is started: `install` says how.

use super::units::{self, CacheUnitPlan, MARK};
use super::{control, serve};
use crate::args::boost::{CacheInstallArgs, CacheParts, CacheUninstallArgs};
use crate::command::systemd::{
    self, FstabLine, UNITS, UnitDirectory, fstab_lines, refuse_unwritable,
};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output;
use machine::{Root, mounts};
use std::path::{Path, PathBuf};

/// Where links to disks are by names that stay, the best first. Not by UUID and label of the
/// content: the device of the cache has these too.
const LASTING: &[&str] = &["/dev/disk/by-id", "/dev/disk/by-partuuid", "/dev/disk/by-path"];
/// Names of the content.
const OF_CONTENT: &[&str] = &["/dev/disk/by-uuid", "/dev/disk/by-label"];

/// Writes the units, or only shows them.
///
/// # Errors
/// `Usage` for what is no disk or no cache yet, `Impossible` for a unit of someone else and a disk
/// that /etc/fstab mounts.
pub(super) fn install(args: &CacheInstallArgs) -> Result<Exit> {
    let root = Root::system();
    let disk = real(&args.parts.backing)?;
    let backing = lasting(&args.parts.backing, &disk)?;
    let cache = whole(&args.parts.cache)?;
    let state = whole(&args.parts.state)?;
    let point = args.mount.as_deref().map(real).transpose()?;
    if !cache.is_file() {
        let text = format!("{} is not there: attach the cache once before", cache.display());
        return Err(Error::usage(text).hint("terrace boost attach makes it"));
    }
    if let Some(point) = point.as_ref().filter(|point| !point.is_dir()) {
        return Err(Error::usage(format!("{} is not a directory", point.display())));
    }
    let mut paths = [&backing, &cache, &state].into_iter().chain(&point);
    paths.try_for_each(|path| refuse_unwritable(path))?;
    let fstab = fstab_lines(&root.read("/etc/fstab").unwrap_or_default());
    refuse_mounted_twice(&fstab, &disk, point.as_deref())?;
    let all = mounts::read(&root);
    let flash = mounts::behind(&all, &real(&cache)?).map(|mount| mount.mount_point.clone());
    let program = std::env::current_exe().map_err(|error| refused(Path::new("terrace"), &error))?;
    let parts = CacheParts {
        backing: backing.clone(),
        cache: cache.clone(),
        state: state.clone(),
        ..args.parts.clone()
    };
    // Its first word is the name.
    let words = serve::words(&parts).into_iter().skip(1).chain(["--file-optional".into()]);
    let options: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let plan = CacheUnitPlan {
        program: &program,
        name: &args.parts.name,
        options: &options,
        backing: &backing,
        flash_point: &flash.unwrap_or_else(|| PathBuf::from("/")),
        state: &state,
        point: point.as_deref(),
    };
    put(args, &plan)
}

fn put(args: &CacheInstallArgs, plan: &CacheUnitPlan<'_>) -> Result<Exit> {
    let place = args.to.clone().unwrap_or_else(|| PathBuf::from(UNITS));
    let all = units::units(plan);
    let by_hand = plan.point.is_none().then(|| {
        let line = units::fstab_line(plan.name);
        format!("\n# A line of /etc/fstab that mounts it at DIR:\n# {line}\n")
    });
    if args.dry_run {
        let text = systemd::shown(&place, &all) + &by_hand.unwrap_or_default();
        return Ok(output::show(&text));
    }
    let directory = UnitDirectory::create(&place, MARK)?;
    let names: Vec<String> = all.iter().map(|unit| unit.name.clone()).collect();
    directory.own(&names)?;
    // It may have been mounted elsewhere before.
    let mut old = directory.with_line(&units::bound_line(plan.name))?;
    old.retain(|name| !names.contains(name));
    directory.remove_links(&directory.links(&old)?)?;
    old.iter().try_for_each(|name| directory.remove(name))?;
    all.iter().try_for_each(|unit| directory.write(unit))?;
    systemd::reload(&place)?;
    let (name, last) = (plan.name, &names[names.len() - 1]);
    let where_to = plan
        .point
        .map_or_else(String::new, |point| format!(", and mounted at {}", point.display()));
    let first = match control::status_now(name) {
        Some(_) => format!("It is attached now: unmount it, and `terrace boost detach {name}`.\n"),
        None => String::new(),
    };
    Ok(output::show(&format!(
        "{name} is served by {} from the next boot on{where_to}.\n{first}\
         Start it now: systemctl start '{last}'\n{}",
        names[0],
        by_hand.unwrap_or_default()
    )))
}

/// Removes the units, after the end of the cache.
///
/// # Errors
/// `Impossible` for a unit of someone else, and a service that cannot be stopped.
pub(super) fn uninstall(args: &CacheUninstallArgs) -> Result<Exit> {
    let place = args.to.clone().unwrap_or_else(|| PathBuf::from(UNITS));
    let directory = UnitDirectory::open(&place, MARK)?;
    let name = &args.name;
    let mut there = directory.with_line(&units::bound_line(name))?;
    there.extend(directory.own(&[units::service_name(name)])?);
    if there.is_empty() {
        return Err(Error::usage(format!("{name} has no units in {}", place.display())));
    }
    let links = directory.links(&there)?;
    if args.dry_run {
        return Ok(output::show(&systemd::shown_removal(&place, &there, &links)));
    }
    if systemd::is_live(&place) {
        let words: Vec<&str> =
            std::iter::once("stop").chain(there.iter().map(String::as_str)).collect();
        systemd::systemctl(&words)?;
    }
    directory.remove_links(&links)?;
    there.iter().try_for_each(|name| directory.remove(name))?;
    systemd::reload(&place)?;
    Ok(output::show(&format!("{name} is not served any more; its file and its key stay.\n")))
}

/// A path that leads to this disk after the next boot too; as typed where none is known.
fn lasting(typed: &Path, disk: &Path) -> Result<PathBuf> {
    let typed = whole(typed)?;
    if OF_CONTENT.iter().any(|place| typed.starts_with(place)) {
        let text = format!(
            "{} may lead to the device of the cache, which has the same content",
            typed.display()
        );
        return Err(Error::usage(text).hint("name the disk by /dev/disk/by-id or by-partuuid"));
    }
    if typed != disk {
        return Ok(typed);
    }
    let leads_there = |link: &PathBuf| link.canonicalize().is_ok_and(|to| to == disk);
    let found = LASTING.iter().find_map(|place| {
        let entries = std::fs::read_dir(place).ok()?;
        let links = entries.flatten().map(|entry| entry.path());
        links.filter(leads_there).min()
    });
    Ok(found.unwrap_or(typed))
}

/// Refuses a disk that is mounted without the cache at each boot, and a directory where something
/// else is.
fn refuse_mounted_twice(fstab: &[FstabLine], disk: &Path, point: Option<&Path>) -> Result<()> {
    let leads_there = |source: &str| {
        let path = match source.split_once('=') {
            Some((kind, value)) => {
                let value = value.trim_matches('"');
                PathBuf::from(format!("/dev/disk/by-{}/{value}", kind.to_ascii_lowercase()))
            }
            None => PathBuf::from(source),
        };
        path.canonicalize().is_ok_and(|path| path == disk)
    };
    for line in fstab.iter().filter(|line| !line.is_manual) {
        let what = if leads_there(&line.source) {
            "without the cache"
        } else if Some(line.point.as_path()) == point {
            "there"
        } else {
            continue;
        };
        let (source, point) = (&line.source, line.point.display());
        let text = format!("/etc/fstab mounts {source} at {point} {what}: remove that line first");
        return Err(Error::new(Exit::Impossible, text));
    }
    Ok(())
}

/// The path without links.
fn real(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|error| refused(path, &error))
}

fn whole(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &std::io::Error) -> Error {
    Error::usage(format!("cannot use {}: {}", path.display(), sys::plain_reason(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_fstab_mounts_is_refused() {
        let disk = Path::new("/dev/null");
        let refusal = |text: &str| {
            let point = Some(Path::new("/srv"));
            let refused = refuse_mounted_twice(&fstab_lines(text), disk, point);
            refused.err().map(|error| error.to_string())
        };
        let twice = refusal("/dev/null /mnt ext4 defaults 0 2").unwrap();
        assert!(twice.contains("at /mnt without the cache: remove"), "{twice}");
        let there = refusal("UUID=none /srv ext4 defaults 0 2").unwrap();
        assert!(there.contains("at /srv there: remove"), "{there}");
        assert_eq!(refusal("/dev/null /mnt ext4 noauto 0 2\n/dev/zero /x ext4"), None);
    }

    #[test]
    fn names_of_the_content_are_refused() {
        let uuid = Path::new("/dev/disk/by-uuid/7");
        assert!(lasting(uuid, Path::new("/dev/sdb1")).is_err());
        let link = Path::new("/dev/mapper/own");
        assert_eq!(lasting(link, Path::new("/dev/dm-7")).unwrap(), link);
        let unknown = Path::new("/dev/no-such-disk");
        assert_eq!(lasting(unknown, unknown).unwrap(), unknown);
    }
}
