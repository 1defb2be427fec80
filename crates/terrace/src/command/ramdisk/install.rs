//! `terrace ramdisk install` and `uninstall`: units of systemd that mount, restore and keep a RAM
//! disk from the next boot on.
//!
//! A unit that this program did not make is neither replaced nor removed; all are looked at before
//! the first one is written. Nothing is started: `install` says how.

use super::known::{self, Known};
use super::units::{self, CreatedRamdisk, MARK, Unit, UnitPlan};
use crate::args::ramdisk::{InstallArgs, UninstallArgs};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output;
use machine::{Root, mounts};
use place::ramdisk::record::RamdiskRecord;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use sys::directory::Directory;
use sys::file::{self, Durability, FileMode};

/// Where an administrator's units are.
const UNITS: &str = "/etc/systemd/system";
/// There if systemd is process 1.
const RUNNING: &str = "/run/systemd/system";
/// A longer file is not ours.
const MOST_BYTES: u64 = 1 << 20;
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
        is_in_fstab: is_in_fstab(&root.read("/etc/fstab").unwrap_or_default(), &point),
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
        let fstab = plan.created.is_none().then(|| units::fstab_line(&plan));
        return Ok(output::show(&shown(&place, &units, fstab.as_deref())));
    }
    let directory = Directory::create(&place, 0o755)?;
    let names = units::names(&point);
    for name in &names {
        refuse_of_others(&directory, name)?;
    }
    for unit in &units {
        write(&directory, unit)?;
    }
    // What mounted it before, if that is another unit now.
    for name in names.iter().filter(|name| units.iter().all(|unit| unit.name != **name)) {
        if is_there(&directory, name)? {
            directory.remove(OsStr::new(name))?;
        }
    }
    let service = &names[1];
    Ok(output::show(&format!(
        "{} is mounted, restored and kept by {service} from the next boot on.\n{}",
        point.display(),
        reloaded(&place, &format!("Start it now: systemctl start '{service}'"))?
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
    let directory = Directory::open(&place)?;
    // A path that has units goes before a name that is known.
    let typed = real(&args.mount).or_else(|_| whole())?;
    let has_units = |point: &Path| {
        units::names(point).iter().any(|name| is_there(&directory, name).unwrap_or(true))
    };
    let known = (!has_units(&typed)).then(|| known::point(&Root::system(), &args.mount)).flatten();
    let point = known.unwrap_or(typed);
    let mut there = Vec::new();
    for name in units::names(&point) {
        if is_there(&directory, &name)? {
            refuse_of_others(&directory, &name)?;
            there.push(name);
        }
    }
    if there.is_empty() {
        let text = format!("{} has no units in {}", point.display(), place.display());
        return Err(Error::usage(text));
    }
    let links = links(&directory, &there)?;
    if args.dry_run {
        let all =
            there.iter().map(PathBuf::from).chain(links.iter().map(|(at, name)| at.join(name)));
        let lines = all.map(|path| format!("would remove {}\n", place.join(path).display()));
        return Ok(output::show(&lines.collect::<String>()));
    }
    if is_live(&place) {
        systemctl(&["stop", &units::names(&point)[1]])?;
    }
    for (at, name) in &links {
        let inside = directory.subdirectory(at.as_os_str())?;
        inside.remove(OsStr::new(name))?;
        // One that others use is not empty.
        let _ = directory.remove_directory(at.as_os_str());
    }
    for name in &there {
        directory.remove(OsStr::new(name))?;
    }
    let text = format!("{} stays mounted, and is not kept any more.", point.display());
    Ok(output::show(&reloaded(&place, &text)?))
}

/// Refuses a path that a unit cannot name: systemd reads lines of text, and takes a last backslash
/// and spaces at the ends for its own.
fn refuse_unwritable(path: &Path) -> Result<()> {
    let text = path.to_str().unwrap_or("\\");
    let is_odd = text.chars().any(char::is_control) || text.ends_with([' ', '\\']);
    if is_odd {
        let text = format!("no unit can name {}: rename it", path.display());
        return Err(Error::usage(text));
    }
    Ok(())
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

fn is_in_fstab(text: &str, point: &Path) -> bool {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut points = lines.filter_map(|line| line.split_whitespace().nth(1));
    points.any(|field| Path::new(&field.replace("\\040", " ")) == point)
}

fn shown(place: &Path, units: &[Unit], fstab: Option<&str>) -> String {
    let mut text = String::new();
    for unit in units {
        text.push_str(&format!("# {}\n{}\n", place.join(&unit.name).display(), unit.text));
    }
    for (at, name) in units.iter().flat_map(|unit| unit.wanted_in.iter().map(|at| (at, &unit.name)))
    {
        text.push_str(&format!("# {} -> ../{name}\n", place.join(at).join(name).display()));
    }
    if let Some(fstab) = fstab {
        text.push_str(&format!(
            "\n# In place of the first unit, a line of /etc/fstab:\n# {fstab}\n"
        ));
    }
    text
}

fn is_there(directory: &Directory, name: impl AsRef<OsStr>) -> Result<bool> {
    match directory.metadata(name.as_ref()) {
        Ok(_) => Ok(true),
        Err(error) if error.kind == sys::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a unit that this program did not make.
fn refuse_of_others(directory: &Directory, name: &str) -> Result<()> {
    if !is_there(directory, name)? {
        return Ok(());
    }
    let mut text = String::new();
    let read = directory
        .open_regular(OsStr::new(name))
        .ok()
        .and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text).ok());
    if read.is_some() && text.lines().next() == Some(MARK) {
        return Ok(());
    }
    let path = directory.path().join(name);
    let text = format!("{} was not made by this program, and is left alone", path.display());
    Err(Error::new(Exit::Impossible, text))
}

fn write(directory: &Directory, unit: &Unit) -> Result<()> {
    let (mode, durability) = (FileMode::AsBefore { new: 0o644 }, Durability::Synced);
    file::replace(directory, OsStr::new(&unit.name), unit.text.as_bytes(), mode, durability)?;
    for at in &unit.wanted_in {
        let at = OsStr::new(at);
        let inside = if is_there(directory, at)? {
            directory.subdirectory(at)?
        } else {
            directory.create_subdirectory(at, 0o755)?
        };
        if !is_there(&inside, &unit.name)? {
            inside.create_link(OsStr::new(&unit.name), OsStr::new(&format!("../{}", unit.name)))?;
        }
        inside.sync()?;
    }
    Ok(())
}

/// The links to units in directories of other units: of which directory, and their name.
fn links(directory: &Directory, units: &[String]) -> Result<Vec<(PathBuf, String)>> {
    let mut links = Vec::new();
    for name in directory.names()? {
        let text = name.to_string_lossy();
        if !(text.ends_with(".wants") || text.ends_with(".requires")) {
            continue;
        }
        let Ok(inside) = directory.subdirectory(&name) else { continue };
        for unit in units {
            if inside.read_link(OsStr::new(unit)).is_ok_and(|to| to == *format!("../{unit}")) {
                links.push((PathBuf::from(&name), unit.clone()));
            }
        }
    }
    Ok(links)
}

fn is_live(place: &Path) -> bool {
    place == Path::new(UNITS) && Path::new(RUNNING).exists()
}

/// Makes systemd read its units again, if it runs and they are its; what is to be said then.
fn reloaded(place: &Path, text: &str) -> Result<String> {
    if is_live(place) {
        systemctl(&["daemon-reload"])?;
    }
    Ok(format!("{text}\n"))
}

fn systemctl(words: &[&str]) -> Result<()> {
    let failed = |why: &str| {
        let text = format!("systemctl {} failed: {why}", words.join(" "));
        Error::new(Exit::Impossible, text)
    };
    let ran = Command::new("systemctl").args(words).stdin(Stdio::null()).output();
    let output = ran.map_err(|error| failed(&sys::plain_reason(&error)))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(failed(said.lines().next().unwrap_or("it gave no reason")))
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

    #[test]
    fn fstab_is_read_without_comments() {
        let text = "# tmpfs /a tmpfs\ntmpfs /b\\040c tmpfs size=1g 0 0\n";
        assert!(is_in_fstab(text, Path::new("/b c")));
        assert!(!is_in_fstab(text, Path::new("/a")));
    }
}
