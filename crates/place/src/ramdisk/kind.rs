//! What a RAM disk is made of: a tmpfs, or btrfs on a zram device of its own, of which a save can
//! take a snapshot. All that differs between both is here and in [`super::snapshot`].
//!
//! The device has a size as a disk has: what its files take before compression, and what the file
//! system needs besides. Memory is taken as it fills, by what is left after compression. The files
//! are in one subvolume; beside it, where no path leads, saves make their snapshots.

use super::create::{ContentNeed, MAKE, RamdiskCreate, page_bytes};
use super::devices::ZramNote;
use super::record::{RamdiskOptions, RamdiskRecords};
use crate::{Error, ErrorKind, Result};
use machine::{Root, memory, mounts};
use model::Bytes;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use sys::attributes;
use sys::directory::Directory;
use sys::mount::{DetachedMount, FileSystemOptions, MountRestrictions};
use sys::subvolume;
use undo::zram::ZramDevice;

/// The subvolume of the files.
const SUBVOLUME: &str = "disk";
/// What `mkfs.btrfs` needs to make anything that is usable; 3 MiB of it are left for files.
const SMALLEST: Bytes = Bytes(24 << 20);
/// Below it data and metadata share their room: apart, each would have too little. Seen: 22 MiB of
/// 48 for files, 33 of 64, 115 of 128, 243 of 256; shared 41, 57, 121 and 249.
const MIXED_BELOW: Bytes = Bytes(256 << 20);
/// What of the size is left to the file system itself, before anything is restored.
const OWN_ROOM: u64 = 8 << 20;
/// Where the program is if the search path of a service has no directories of the administrator.
const MKFS: [&str; 2] = ["mkfs.btrfs", "/usr/sbin/mkfs.btrfs"];

/// Directories of programs and what they need.
const OF_PROGRAMS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix", "/gnu"];

/// What a RAM disk is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RamdiskKind {
    /// A tmpfs.
    #[default]
    Tmpfs,
    /// A subvolume of btrfs on this device.
    Atomic(ZramDevice),
}

/// A RAM disk that is mounted nowhere yet. It goes with this, unless it gets its place.
#[derive(Debug)]
pub(super) struct MadeRamdisk {
    pub(super) mount: DetachedMount,
    pub(super) kind: RamdiskKind,
    /// Behind the mount: a device that is mounted cannot be removed.
    pub(super) note: Option<ZramNote>,
}

impl RamdiskKind {
    /// Its zram device.
    #[must_use]
    pub fn device(&self) -> Option<ZramDevice> {
        match self {
            Self::Tmpfs => None,
            Self::Atomic(device) => Some(*device),
        }
    }

    /// What became of its content when another program unmounted it, as the end of a sentence.
    #[must_use]
    pub fn after_unmount(&self) -> String {
        match self {
            Self::Tmpfs => "what was in it is gone".to_owned(),
            Self::Atomic(device) if device.is_there() => format!(
                "what was in it is still on its device: `mount -o subvol={SUBVOLUME} {} DIR` shows it",
                device.path().display()
            ),
            Self::Atomic(_) => "its device was removed with what was in it".to_owned(),
        }
    }

    /// Whether an unmounted one still has its content, and its memory.
    pub(super) fn outlives_mount(&self) -> bool {
        self.device().is_some_and(|device| device.is_there())
    }

    /// Refuses another size if it cannot change.
    pub(super) fn refuse_other_size(&self) -> Result<()> {
        match self {
            Self::Tmpfs => Ok(()),
            Self::Atomic(_) => {
                let why = "the size of a zram device cannot change; save it, `remove` it, and \
                           `create` it anew with another --size from its store";
                Err(Error::new(ErrorKind::Impossible, "change the size of", why))
            }
        }
    }

    /// The memory that it takes now; `None` if that is what is in use.
    pub(super) fn memory(&self, root: &Root) -> Option<Bytes> {
        let name = self.device()?.name();
        let all = machine::zram::devices(root);
        all.into_iter().find(|zram| zram.name == name)?.used_bytes.map(Bytes)
    }
}

/// Makes an empty RAM disk. Its top has the mode and the owner of the options.
pub(super) fn make(
    root: &Root,
    request: &RamdiskCreate,
    options: &RamdiskOptions,
    restrictions: MountRestrictions,
    need: Option<ContentNeed>,
) -> Result<MadeRamdisk> {
    if request.atomic {
        return atomic(root, request, options, restrictions, need);
    }
    let mount = tmpfs(root, options, restrictions, need).map_err(refused(&request.mount_point))?;
    Ok(MadeRamdisk { mount, kind: RamdiskKind::Tmpfs, note: None })
}

fn refused(point: &Path) -> impl Fn(sys::Error) -> Error + '_ {
    move |error| {
        let kind = match error.kind {
            sys::ErrorKind::Denied
            | sys::ErrorKind::Unsupported
            | sys::ErrorKind::NotFound
            | sys::ErrorKind::Invalid => ErrorKind::Impossible,
            _ => ErrorKind::Failed,
        };
        Error::new(kind, MAKE, sys::plain_reason(&error.source)).at(point)
    }
}

fn tmpfs(
    root: &Root,
    options: &RamdiskOptions,
    restrictions: MountRestrictions,
    need: Option<ContentNeed>,
) -> sys::Result<DetachedMount> {
    let system = FileSystemOptions::new("tmpfs")?;
    system.set("source", "terrace")?;
    let numbers = [
        ("size", options.size.0.to_string()),
        ("mode", format!("{:o}", options.mode)),
        ("uid", options.user.to_string()),
        ("gid", options.group.to_string()),
    ];
    for (key, value) in &numbers {
        system.set(key, value)?;
    }
    if let Some(huge) = options.huge {
        system.set("huge", huge.word())?;
    }
    if options.noswap {
        system.set_flag("noswap")?;
    }
    // Without it the kernel allows half as many as the machine has pages.
    let usual = memory::total(root).map_or(0, |total| total.0 / page_bytes() / 2);
    if let Some(inodes) = need.map(|need| need.inodes).filter(|inodes| *inodes > usual / 2) {
        system.set("nr_inodes", &(2 * inodes).to_string())?;
    }
    system.mount(restrictions)
}

fn atomic(
    root: &Root,
    request: &RamdiskCreate,
    options: &RamdiskOptions,
    restrictions: MountRestrictions,
    need: Option<ContentNeed>,
) -> Result<MadeRamdisk> {
    let point = &request.mount_point;
    let usage = |why: String| Error::new(ErrorKind::Usage, MAKE, why).at(point);
    if request.prefault || options.noswap || options.huge.is_some() {
        let why = "--atomic has neither --huge nor --noswap (its memory is never swapped) nor \
                   --prefault (zeros take no memory there)";
        return Err(usage(why.to_owned()));
    }
    if options.size < SMALLEST {
        return Err(usage(format!("--atomic needs {SMALLEST} at least, for btrfs itself")));
    }
    if let Some(need) = need.filter(|need| need.bytes + OWN_ROOM > options.size.0) {
        let why = format!(
            "its store holds {}, and btrfs needs {} besides: more than the size of {}",
            Bytes(need.bytes),
            Bytes(OWN_ROOM),
            options.size
        );
        return Err(usage(why));
    }
    let note = RamdiskRecords::lock(root)?.add_device(options.size)?;
    let device = note.device();
    make_file_system(root, &device, options.size).map_err(|error| error.at(point))?;
    let fill = || {
        let whole = volume(&device)?;
        let top = whole.top(point)?;
        subvolume::create(&top, OsStr::new(SUBVOLUME))?;
        let mount = mounted(&device, "subvol", SUBVOLUME, restrictions)?;
        let files = mount.top(point)?;
        attributes::set_owner(files.file(), options.user, options.group)?;
        attributes::set_mode(files.file(), options.mode)?;
        Ok(mount)
    };
    let mount = fill().map_err(refused(point))?;
    Ok(MadeRamdisk { mount, kind: RamdiskKind::Atomic(device), note: Some(note) })
}

/// All of the file system on a device, mounted nowhere: the files are in it, and beside them the
/// snapshots.
pub(super) fn volume(device: &ZramDevice) -> sys::Result<DetachedMount> {
    // The top-level subvolume always has this number.
    mounted(device, "subvolid", "5", MountRestrictions::default())
}

/// Opens the subvolume of the files in the whole file system.
pub(super) fn files_of(volume: &Directory) -> sys::Result<Directory> {
    volume.subdirectory(OsStr::new(SUBVOLUME))
}

/// What is removed is given back in the background (`discard=async`). Seen, of 300 MiB: 41 s later.
/// With `discard` after 31 s, but 4 KiB writes with `fsync` were 2.5 times as slow.
fn mounted(
    device: &ZramDevice,
    key: &str,
    value: &str,
    restrictions: MountRestrictions,
) -> sys::Result<DetachedMount> {
    let system = FileSystemOptions::new("btrfs")?;
    system.set("source", &device.path().to_string_lossy())?;
    system.set_flag("ssd")?;
    system.set("discard", "async")?;
    system.set(key, value)?;
    system.mount(restrictions)
}

/// One copy of everything: a second one in the same memory protects from nothing.
fn make_file_system(root: &Root, device: &ZramDevice, size: Bytes) -> Result<()> {
    let impossible = |why: &str| Error::new(ErrorKind::Impossible, MAKE, why.to_owned());
    let hidden = points_that_may_hang(root);
    for program in MKFS {
        let mut command = Command::new(program);
        command.args(["--quiet", "--nodiscard", "--label", "terrace"]);
        command.args(["--data", "single", "--metadata", "single"]);
        if size < MIXED_BELOW {
            command.arg("--mixed");
        }
        command.arg(device.path()).stdin(Stdio::null());
        match run_without_mounts(&hidden, &mut command) {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let line = said.lines().find(|line| line.starts_with("ERROR")).unwrap_or("failed");
                return Err(Error::new(ErrorKind::Failed, MAKE, format!("mkfs.btrfs: {line}")));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(impossible(&format!("mkfs.btrfs: {}", sys::plain_reason(&error))));
            }
        }
    }
    Err(impossible(&without_program(&hidden)))
}

/// What is said if the program was not found. The search path may lead to where it was not looked
/// for.
fn without_program(hidden: &[PathBuf]) -> String {
    let needed = "--atomic needs the program mkfs.btrfs, which is in the package btrfs-progs";
    match hidden.first() {
        Some(point) => format!(
            "{needed}; it was not looked for on file systems whose server may be gone, as that at \
             {}",
            point.display()
        ),
        None => needed.to_owned(),
    }
}

/// Where file systems are mounted that another program or machine serves, and no programs are; the
/// upper ones first, as the way to what is below one may lead through it.
fn points_that_may_hang(root: &Root) -> Vec<PathBuf> {
    let is_needed = |point: &Path| {
        let holds = |path: &&str| Path::new(path).starts_with(point) || point.starts_with(path);
        OF_PROGRAMS.iter().any(holds)
    };
    let mut points: Vec<PathBuf> = mounts::read(root)
        .into_iter()
        .filter(|mount| mount.may_hang() && !is_needed(&mount.mount_point))
        .map(|mount| mount.mount_point)
        .collect();
    points.sort();
    points
}

/// Runs a program that does not see what is mounted at `points`.
///
/// `mkfs.btrfs` asks for what each mount is made of, also for the file below a loop device. It
/// fails where such a server is gone, and waits for ever for one that does not answer. So it gets
/// mounts of its own, without those. Where they cannot be separated it runs as it is.
fn run_without_mounts(points: &[PathBuf], command: &mut Command) -> std::io::Result<Output> {
    if points.is_empty() {
        return command.output();
    }
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            if sys::mount::separate_mounts().is_ok() {
                points.iter().for_each(|point| drop(sys::mount::detach(point)));
            }
            command.output()
        });
        run.join().unwrap_or_else(|_| Err(std::io::Error::other("its thread panicked")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_not_looked_for_everywhere_says_so() {
        let text = "--atomic needs the program mkfs.btrfs, which is in the package btrfs-progs";
        assert_eq!(without_program(&[]), text);
        let hidden = [PathBuf::from("/net/a"), PathBuf::from("/net/b")];
        assert!(without_program(&hidden).ends_with("server may be gone, as that at /net/a"));
    }
}
