//! `--eject`: the file system of the target is unmounted when the copy is durable.
//!
//! 1. Refused before anything is copied where it makes no sense: a system directory, a source on
//!    it, swap on it, a mount of it elsewhere.
//! 2. Root unmounts itself, others by `udisksctl`. While the file system is busy it is tried again
//!    for two seconds: the descriptors of a ring are closed late, and file managers look at what
//!    was written.
//! 3. What still holds it is named (`holders`); it stays mounted then, and the copy is there.
//! 4. With `--verify` the copy is read back then, by a new mount (`mounted_check`).
//! 5. "Safe to unplug" is said only after the unmount and a flush, if nothing else of the disk is
//!    in use. A file system that another mount namespace has is in use.

mod holders;

pub(crate) use holders::find as find_holders;
pub use holders::{EjectHolder, HolderUse};

use super::mounted_check::{self, MountedCheck, Unverified};
use super::plan::CopyPlan;
use crate::{Error, ErrorKind, Result};
use machine::mounts::{self, Mount};
use machine::{Root, block, swap};
use model::progress::Control;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use sys::file_stat::{self, FileStat};

/// Directories that a running system needs, and those below which it has others.
const SYSTEM: [&str; 10] =
    ["/", "/home", "/opt", "/root", "/run", "/srv", "/tmp", "/dev", "/dev/shm", "/efi"];
const SYSTEM_BELOW: [&str; 6] = ["/boot", "/etc", "/nix", "/proc", "/sys", "/usr"];
const VARIABLE: &str = "/var";
/// So long a busy file system is tried again.
const PATIENCE: Duration = Duration::from_secs(2);
const TRY_EVERY: Duration = Duration::from_millis(20);
const UDISKS: &str = "udisksctl";
/// Its keys belong to the mount (fscrypt): after a new one no file is found by its name.
const ENCRYPTED: &str = "it is encrypted, and a new mount has no key; without --eject --verify \
                         reads past the cache";

/// What will be unmounted, and how.
#[derive(Clone, Debug)]
pub struct EjectPlan {
    mount: Mount,
    by: EjectMethod,
    /// The directory that gets the copies, by its path in the file system.
    into: PathBuf,
}

/// Who unmounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EjectMethod {
    /// The call, by root.
    Umount,
    /// The program of the service that mounts sticks for ordinary users.
    Udisksctl,
}

/// What became of the target's file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EjectReport {
    /// Where it was mounted.
    pub mount_point: PathBuf,
    /// What was mounted, as `/dev/sdb1`.
    pub device: String,
    /// Who unmounts.
    pub by: EjectMethod,
    /// Whether it is unmounted, everywhere.
    pub is_unmounted: bool,
    /// Whether the disk was flushed after that. Only root may; all data was flushed before it.
    pub is_flushed: bool,
    /// Why it is not unmounted.
    pub reason: Option<String>,
    /// What reading the copy back showed, with `--verify`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<MountedCheck>,
    /// What holds it.
    pub holders: Vec<EjectHolder>,
    /// What else of the disk is in use, in words.
    pub still_used: Vec<String>,
}

impl EjectReport {
    /// Whether the disk can be taken out.
    #[must_use]
    pub fn is_safe_to_unplug(&self) -> bool {
        self.is_unmounted && self.still_used.is_empty()
    }
}

/// Finds what is to be unmounted, and refuses where that makes no sense. `kept` are files that stay
/// open meanwhile: results and recordings. `verifies` if the copy is to be read back after that.
///
/// # Errors
/// `Usage` where it makes no sense; `Impossible` for an ordinary user without `udisksctl` or with
/// `verifies`, and where what the kernel mounts again could not be read.
pub fn plan_eject(
    root: &Root,
    plan: &CopyPlan,
    kept: &[PathBuf],
    verifies: bool,
) -> Result<EjectPlan> {
    let path = plan.into.path();
    let real = path.canonicalize().map_err(|error| usage(sys::plain_reason(&error), path))?;
    let all = mounts::read(root);
    let mount = mounts::behind(&all, &real)
        .ok_or_else(|| usage("its mount is not in the mount table".to_owned(), path))?;
    let point = &mount.mount_point;
    let refuse = |why: String| Err(usage(why, point));
    if is_of_system(point) {
        return refuse("the running system needs it".to_owned());
    }
    if mount.network || !mount.source.starts_with("/dev/") {
        return refuse(format!("it is on no disk that can be taken out: {}", mount.fs_type));
    }
    let is_same = |other: &&Mount| other.id != mount.id && is_one_file_system(other, mount);
    if let Some(other) = all.iter().find(is_same) {
        return refuse(format!("it is also mounted at {}", other.mount_point.display()));
    }
    if let Some(below) = all.iter().find(|other| other.parent == mount.id && other.id != mount.id) {
        return refuse(format!("{} is mounted below it", below.mount_point.display()));
    }
    let device = FileStat::of(plan.into.file())?.device;
    if let Some(source) = plan.items.iter().find(|item| item.stat.device == device) {
        return refuse(format!("the source {} is on it", source.path.display()));
    }
    let is_on_it = |path: &Path| device_of(path) == Some(device);
    if let Some(file) = kept.iter().find(|path| is_on_it(path)) {
        return refuse(format!("{} is to be written there", file.display()));
    }
    let of_area = |area: &swap::Area| area.kind == "file" && is_on_it(&area.path);
    if let Some(area) = swap::areas(root).into_iter().find(of_area) {
        return refuse(format!("{} on it is used as swap", area.path.display()));
    }
    let by = method(point)?;
    if verifies {
        may_verify(mount, by)?;
        if file_stat::is_encrypted(plan.into.file()) {
            return Err(unverifiable(ENCRYPTED, path));
        }
    }
    // A bind mount and a subvolume begin below the top of their file system.
    let below = real.strip_prefix(point).unwrap_or(Path::new(""));
    let into = mount.root.strip_prefix("/").unwrap_or(&mount.root).join(below);
    Ok(EjectPlan { mount: mount.clone(), by, into })
}

/// Whether what is unmounted can be mounted again where only this process sees it.
fn may_verify(mount: &Mount, by: EjectMethod) -> Result<()> {
    if by == EjectMethod::Umount {
        return mounted_check::may_mount_again(mount);
    }
    let why = "only root can mount it again unseen; without --eject --verify reads past the cache";
    Err(unverifiable(why, &mount.mount_point))
}

fn unverifiable(why: &str, path: &Path) -> Error {
    Error::new(ErrorKind::Impossible, "verify after a new mount", why.to_owned()).at(path)
}

fn method(point: &Path) -> Result<EjectMethod> {
    if sys::process::has_capability(sys::process::Capability::SysAdmin) {
        return Ok(EjectMethod::Umount);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|directory| directory.join(UDISKS).is_file()) {
        return Ok(EjectMethod::Udisksctl);
    }
    let why = format!("only root may, and {UDISKS} is not there");
    Err(Error::new(ErrorKind::Impossible, "eject", why).at(point))
}

/// Unmounts, flushes, reads back what is unverified, and looks at what is left. The caller has
/// nothing open there any more.
pub fn eject(
    root: &Root,
    plan: &EjectPlan,
    unverified: Option<&Unverified>,
    ask: &mut dyn FnMut() -> Control,
) -> EjectReport {
    let mount = &plan.mount;
    let mut report = EjectReport {
        mount_point: mount.mount_point.clone(),
        device: mount.source.clone(),
        by: plan.by,
        is_unmounted: false,
        is_flushed: false,
        reason: None,
        verified: None,
        holders: Vec::new(),
        still_used: Vec::new(),
    };
    leave_directory(mount);
    unmount_patiently(root, plan, ask, &mut report);
    if !report.is_unmounted {
        report.verified = unverified.map(|copy| copy.check_in_place(ask));
        return report;
    }
    report.is_flushed = flush(Path::new(&mount.source));
    report.verified = unverified.map(|copy| copy.check_by_mount(mount, &plan.into, ask));
    report.still_used = still_used(root, mount);
    report
}

/// Unmounts it, or finds out why that cannot be done.
fn unmount_patiently(
    root: &Root,
    plan: &EjectPlan,
    ask: &mut dyn FnMut() -> Control,
    report: &mut EjectReport,
) {
    let mount = &plan.mount;
    let started = Instant::now();
    loop {
        if !mounts::read(root).iter().any(|other| other == mount) {
            report.reason = Some("it was unmounted or changed meanwhile".to_owned());
            return;
        }
        let answer = unmount(plan);
        let Err((why, is_busy)) = answer else { break };
        if !is_busy || started.elapsed() >= PATIENCE || ask().is_stop() {
            report.holders = holders::find(root, &mount.mount_point);
            report.reason = Some(why);
            return;
        }
        std::thread::sleep(TRY_EVERY);
    }
    report.is_unmounted = true;
}

/// The error's words, and whether another try may succeed.
fn unmount(plan: &EjectPlan) -> std::result::Result<(), (String, bool)> {
    let mount = &plan.mount;
    match plan.by {
        EjectMethod::Umount => sys::mount::unmount(&mount.mount_point)
            .map_err(|error| (sys::plain_reason(&error.source), sys::mount::is_busy(&error))),
        EjectMethod::Udisksctl => {
            let mut command = Command::new(UDISKS);
            command.args(["unmount", "--no-user-interaction", "--block-device", &mount.source]);
            command.env("LC_ALL", "C").stdin(Stdio::null());
            let answer = command.output();
            let output = answer.map_err(|error| (format!("{UDISKS}: {error}"), false))?;
            if output.status.success() {
                return Ok(());
            }
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said.lines().next().unwrap_or("it failed").trim().to_owned();
            let is_busy = said.contains("busy");
            Err((format!("{UDISKS}: {line}"), is_busy))
        }
    }
}

/// A working directory of this process itself is not in the way.
fn leave_directory(mount: &Mount) {
    let here = std::env::current_dir();
    if here.is_ok_and(|here| here.starts_with(&mount.mount_point)) {
        // Where that fails, this process is named as a holder.
        let _ = std::env::set_current_dir("/");
    }
}

fn flush(device: &Path) -> bool {
    let opened = sys::file::open_read(device, false);
    opened.is_ok_and(|file: File| file.sync_all().is_ok())
}

/// What of the disk is in use after the unmount: its other partitions, swap, other namespaces.
fn still_used(root: &Root, gone: &Mount) -> Vec<String> {
    let Some(name) = block::name_of(root, &gone.source) else { return Vec::new() };
    let is_of_disk = |source: &str| {
        source.starts_with("/dev/") && block::name_of(root, source).as_deref() == Some(&name)
    };
    let mut found: Vec<String> = mounts::read(root)
        .iter()
        .filter(|mount| is_of_disk(&mount.source))
        .map(|mount| format!("{} is mounted at {}", mount.source, mount.mount_point.display()))
        .collect();
    let areas =
        swap::areas(root).into_iter().filter(|area| area.path.to_str().is_some_and(is_of_disk));
    found.extend(areas.map(|area| format!("{} is used as swap", area.path.display())));
    if found.is_empty() && sys::block::is_claimed(Path::new(&gone.source)) == Some(true) {
        found.push(format!("{} is in use outside of this mount namespace", gone.source));
    }
    found
}

fn is_of_system(point: &Path) -> bool {
    SYSTEM.iter().any(|path| point == Path::new(path))
        || SYSTEM_BELOW.iter().any(|path| point.starts_with(path))
        || point == Path::new(VARIABLE)
        || point.parent() == Some(Path::new(VARIABLE))
}

fn is_one_file_system(one: &Mount, other: &Mount) -> bool {
    (one.major, one.minor) == (other.major, other.minor) || one.source == other.source
}

/// The device of a file, or of the directory in which it will be made.
fn device_of(path: &Path) -> Option<u64> {
    let above = path.parent().filter(|above| *above != OsStr::new("")).unwrap_or(Path::new("."));
    let about = std::fs::metadata(path).or_else(|_| std::fs::metadata(above)).ok()?;
    Some(about.dev())
}

fn usage(why: String, path: &Path) -> Error {
    Error::new(ErrorKind::Usage, "eject", why).at(path)
}
