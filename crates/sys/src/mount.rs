//! `fsopen`, `fsconfig`, `fsmount`, `move_mount`, `fspick`, `umount2`: file systems are mounted
//! without a place in the tree, filled there, and get their place by one call.
//!
//! A detached mount goes with its descriptor: a process that is killed before
//! [`DetachedMount::attach`] leaves none, so nothing has to be undone. Places are held descriptors:
//! another user who renames a directory cannot redirect a mount. What is in use stays mounted.

use crate::directory::{Directory, single};
use crate::error::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, Mode, OFlags, StatVfsMountFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, FsPickFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, fsconfig_create, fsconfig_reconfigure, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen, fspick, mount_change, move_mount, open_tree,
};
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `STATX_MNT_ID_UNIQUE` (Linux 6.8).
const MNT_ID_UNIQUE: u32 = 0x4000;
/// The longest complaint of the kernel about an option that is read.
const COMPLAINT_BYTES: usize = 512;
const MOUNT: &str = "mount";

/// The options of a file system that is to be mounted, or whose options are to be changed.
#[derive(Debug)]
pub struct FileSystemOptions {
    context: OwnedFd,
}

/// A mounted file system that has no place in the tree. It goes with the last descriptor.
#[derive(Debug)]
pub struct DetachedMount {
    mount: File,
}

/// What a mount forbids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountRestrictions {
    /// Programs do not get the rights of their file's owner (`nosuid`).
    pub no_set_user_id: bool,
    /// Device files do not work (`nodev`).
    pub no_devices: bool,
    /// Nothing is executed (`noexec`).
    pub no_execution: bool,
    /// Nothing is written (`ro`).
    pub read_only: bool,
}

/// Which mount it is, among all that this mount namespace ever had or has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountIdentity {
    /// The kernel's number.
    pub id: u64,
    /// Whether the number is never given again (Linux 6.8). Else a later mount may have it.
    pub is_unique: bool,
}

impl FileSystemOptions {
    /// The options of a new file system of a type, as `tmpfs`.
    ///
    /// # Errors
    /// `Denied` without `CAP_SYS_ADMIN`, `NotFound` for a type that the kernel does not have,
    /// `Unsupported` before Linux 5.2.
    pub fn new(file_system_type: &str) -> Result<Self> {
        let context = fsopen(file_system_type, FsOpenFlags::FSOPEN_CLOEXEC);
        context.map(|context| Self { context }).map_err(|errno| Error::new(MOUNT, errno.into()))
    }

    /// The options of the mounted file system whose top directory is `top`, to change some of them
    /// by [`FileSystemOptions::change`].
    ///
    /// # Errors
    /// As [`FileSystemOptions::new`]; `Invalid` for another directory than the top of a mount.
    pub fn of_mounted(top: &Directory) -> Result<Self> {
        let flags = FsPickFlags::FSPICK_CLOEXEC | FsPickFlags::FSPICK_EMPTY_PATH;
        let context = fspick(top.file(), "", flags);
        context
            .map(|context| Self { context })
            .map_err(|errno| Error::new("change the mount", errno.into()).at(top.path()))
    }

    /// Sets an option that has a value.
    ///
    /// # Errors
    /// With the kernel's own words: `Unsupported` for an option that it does not know, `Invalid`
    /// for a value that it refuses.
    pub fn set(&self, key: &str, value: &str) -> Result<()> {
        fsconfig_set_string(&self.context, key, value).map_err(|errno| self.complaint(errno))
    }

    /// Sets an option that has no value.
    ///
    /// # Errors
    /// As [`FileSystemOptions::set`].
    pub fn set_flag(&self, key: &str) -> Result<()> {
        fsconfig_set_flag(&self.context, key).map_err(|errno| self.complaint(errno))
    }

    /// Makes the file system, mounted nowhere.
    ///
    /// # Errors
    /// As [`FileSystemOptions::set`].
    pub fn mount(self, restrictions: MountRestrictions) -> Result<DetachedMount> {
        fsconfig_create(&self.context).map_err(|errno| self.complaint(errno))?;
        let flags = restrictions.flags();
        let mount = fsmount(&self.context, FsMountFlags::FSMOUNT_CLOEXEC, flags)
            .map_err(|errno| self.complaint(errno))?;
        Ok(DetachedMount { mount: mount.into() })
    }

    /// Gives the mounted file system the options that were set; the others stay. All of them
    /// change, or none.
    ///
    /// # Errors
    /// As [`FileSystemOptions::set`].
    pub fn change(self) -> Result<()> {
        fsconfig_reconfigure(&self.context).map_err(|errno| self.complaint(errno))
    }

    /// An error with what the kernel has to say about it.
    fn complaint(&self, errno: Errno) -> Error {
        let plain = Error::new(MOUNT, errno.into());
        let mut text = [0; COMPLAINT_BYTES];
        let length = rustix::io::read(&self.context, &mut text).unwrap_or(0);
        // "e tmpfs: Unknown parameter 'x'": `e` is an error.
        let words = String::from_utf8_lossy(&text[..length]);
        let Some(words) = words.trim_end().strip_prefix("e ") else {
            return plain;
        };
        let is_unknown = words.contains("Unknown parameter") || words.contains("Unsupported");
        let kind = if is_unknown { ErrorKind::Unsupported } else { plain.kind };
        Error { kind, ..Error::new(MOUNT, io::Error::other(words.to_owned())) }
    }
}

impl DetachedMount {
    /// Its top directory; `path` is for messages.
    ///
    /// # Errors
    /// As for opening it.
    pub fn top(&self, path: &Path) -> Result<Directory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.mount, ".", flags, Mode::empty())
            .map_err(|errno| Error::new("open", errno.into()).at(path))?;
        Ok(Directory::of_open(opened.into(), path.to_owned()))
    }

    /// Which mount it is; it stays so when it gets its place.
    ///
    /// # Errors
    /// As [`MountIdentity::of`].
    pub fn identity(&self) -> Result<Option<MountIdentity>> {
        MountIdentity::of(&self.mount)
    }

    /// Another mount of what is at and below a directory on its file system.
    ///
    /// # Errors
    /// `Denied` without `CAP_SYS_ADMIN`, `Unsupported` before Linux 5.2.
    pub fn of_directory(directory: &Directory) -> Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH;
        let mount = open_tree(directory.file(), "", flags)
            .map_err(|errno| Error::new(MOUNT, errno.into()).at(directory.path()))?;
        Ok(Self { mount: mount.into() })
    }

    /// Gives the mount its place over `directory`, at once and with all that is in it. It stays
    /// when this process ends.
    ///
    /// # Errors
    /// `NotFound` for a directory that was removed, `Denied` without `CAP_SYS_ADMIN`. The mount has
    /// no place then, and is gone.
    pub fn attach(self, directory: &Directory) -> Result<()> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(&self.mount, "", directory.file(), "", flags)
            .map_err(|errno| Error::new(MOUNT, errno.into()).at(directory.path()))
    }

    /// Gives the mount its place over the file or directory `point`, which is not a link. For
    /// places that no other user can exchange; else [`Self::attach`].
    ///
    /// # Errors
    /// As [`Self::attach`]; `Invalid` for a file system whose top is not of the kind of `point`.
    pub fn attach_at(self, point: &Path) -> Result<()> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&self.mount, "", rustix::fs::CWD, point, flags)
            .map_err(|errno| Error::new(MOUNT, errno.into()).at(point))
    }
}

impl MountRestrictions {
    /// What the mount that a file is on forbids.
    ///
    /// # Errors
    /// The kernel's word.
    pub fn of(file: &File) -> Result<Self> {
        let stat = rustix::fs::fstatvfs(file)
            .map_err(|errno| Error::new("examine the mount", errno.into()))?;
        let has = |flag| stat.f_flag.contains(flag);
        Ok(Self {
            no_set_user_id: has(StatVfsMountFlags::NOSUID),
            no_devices: has(StatVfsMountFlags::NODEV),
            no_execution: has(StatVfsMountFlags::NOEXEC),
            read_only: has(StatVfsMountFlags::RDONLY),
        })
    }

    fn flags(self) -> MountAttrFlags {
        let all = [
            (self.no_set_user_id, MountAttrFlags::MOUNT_ATTR_NOSUID),
            (self.no_devices, MountAttrFlags::MOUNT_ATTR_NODEV),
            (self.no_execution, MountAttrFlags::MOUNT_ATTR_NOEXEC),
            (self.read_only, MountAttrFlags::MOUNT_ATTR_RDONLY),
        ];
        all.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect()
    }
}

impl MountIdentity {
    /// Which mount an open file is on; `None` if the kernel does not say (before Linux 5.8).
    ///
    /// # Errors
    /// Only where a filter forbids `statx`.
    pub fn of(file: &File) -> Result<Option<Self>> {
        let asked = |wanted: StatxFlags| {
            let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, wanted)
                .map_err(|errno| Error::new("examine", errno.into()))?;
            Ok::<_, Error>((stat.stx_mask & wanted.bits() != 0).then_some(stat.stx_mnt_id))
        };
        let unique = asked(StatxFlags::from_bits_retain(MNT_ID_UNIQUE))?;
        if let Some(id) = unique {
            return Ok(Some(Self { id, is_unique: true }));
        }
        Ok(asked(StatxFlags::MNT_ID)?.map(|id| Self { id, is_unique: false }))
    }
}

/// Gives the calling thread, its later threads and its later children mounts of their own: what
/// they mount from now on no other process sees, and it goes with the last of them.
///
/// # Errors
/// `Denied` without `CAP_SYS_ADMIN`.
pub fn separate_mounts() -> Result<()> {
    const OPERATION: &str = "separate the mounts";
    // SAFETY: the call takes no pointer. It also separates this thread's working directory from
    // that of older threads, which use none.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(Error::last(OPERATION));
    }
    // Else what is mounted here would appear in the namespace that this one is a copy of.
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", flags).map_err(|errno| Error::new(OPERATION, errno.into()))
}

/// Takes away what is mounted last at `point`, also while it is used: it goes with its last user.
/// Only for mounts that were made for this process alone.
///
/// # Errors
/// As [`unmount`], but never `EBUSY`.
pub fn detach(point: &Path) -> Result<()> {
    unmount_with(point, libc::UMOUNT_NOFOLLOW | libc::MNT_DETACH)
}

/// Unmounts what is mounted last at `point`, which must not be a link. What is not written yet is
/// written first, so it may take long.
///
/// # Errors
/// `Other` with `EBUSY` while it is used, `Invalid` where nothing is mounted, `Denied` without
/// `CAP_SYS_ADMIN`.
pub fn unmount(point: &Path) -> Result<()> {
    unmount_with(point, libc::UMOUNT_NOFOLLOW)
}

/// Ends the connection of a file system in user space that is mounted last at `point`, whose server
/// may be dead, and unmounts it if nothing uses it. What waits for the server gets an error.
///
/// # Errors
/// As [`unmount`]; also if it fails the connection is ended.
pub fn force(point: &Path) -> Result<()> {
    unmount_with(point, libc::UMOUNT_NOFOLLOW | libc::MNT_FORCE)
}

/// [`force`] and [`detach`] in one: also while it is used.
///
/// # Errors
/// As [`detach`].
pub fn abandon(point: &Path) -> Result<()> {
    unmount_with(point, libc::UMOUNT_NOFOLLOW | libc::MNT_FORCE | libc::MNT_DETACH)
}

fn unmount_with(point: &Path, flags: libc::c_int) -> Result<()> {
    const OPERATION: &str = "unmount";
    let text = CString::new(point.as_os_str().as_bytes())
        .map_err(|error| Error::new(OPERATION, error.into()).at(point))?;
    // SAFETY: `text` is a string that ends with a zero, and lives as long as the call.
    let answer = unsafe { libc::umount2(text.as_ptr(), flags) };
    if answer == 0 { Ok(()) } else { Err(Error::last(OPERATION).at(point)) }
}

/// Unmounts what is mounted last at the entry `name` of a held directory: no other user can
/// exchange the way to it.
///
/// # Errors
/// As [`unmount`].
pub fn unmount_entry(holder: &Directory, name: &OsStr) -> Result<()> {
    let name = single("unmount", name)?;
    let held = format!("/proc/self/fd/{}", holder.file().as_raw_fd());
    unmount(&PathBuf::from(held).join(name)).map_err(|error| error.at(holder.path().join(name)))
}

/// Whether an unmount failed because the file system is in use.
#[must_use]
pub fn is_busy(error: &Error) -> bool {
    error.number() == Some(libc::EBUSY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{TempDir, Tmpfs};

    fn tmpfs(options: &[(&str, &str)]) -> Result<DetachedMount> {
        let all = FileSystemOptions::new("tmpfs")?;
        for (key, value) in options {
            all.set(key, value)?;
        }
        all.mount(MountRestrictions { no_devices: true, ..MountRestrictions::default() })
    }

    fn is_mounted(point: &Path) -> bool {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        table.contains(&format!(" {} ", point.display()))
    }

    #[test]
    fn what_is_used_stays_and_what_is_not_goes() {
        let tmpfs = match Tmpfs::mount(1 << 20) {
            Ok(tmpfs) => tmpfs,
            Err(need) => return testkit::skip(need),
        };
        let held = std::fs::File::create(tmpfs.path().join("held")).unwrap();
        assert!(is_busy(&unmount(tmpfs.path()).unwrap_err()));
        drop(held);
        unmount(tmpfs.path()).unwrap();
        assert!(!tmpfs.path().join("held").exists());
        assert!(!is_busy(&unmount(tmpfs.path()).unwrap_err()));
    }

    #[test]
    fn a_mount_is_filled_before_it_has_a_place_and_is_the_same_afterwards() {
        if !testkit::is_root() {
            return testkit::skip("root");
        }
        let directory = TempDir::new();
        let point = directory.join("point");
        std::fs::create_dir(&point).unwrap();
        let mount = tmpfs(&[("size", "1m"), ("mode", "0711")]).unwrap();
        let file = mount.top(&point).unwrap().create_new(OsStr::new("inside"), 0o600).unwrap();
        drop(file);
        assert!(!is_mounted(&point) && !point.join("inside").exists());
        let identity = mount.identity().unwrap().unwrap();
        let held = Directory::open(&point).unwrap();
        mount.attach(&held).unwrap();
        let top = Directory::open(&point).unwrap();
        assert_eq!(top.names().unwrap(), ["inside"]);
        assert_eq!(MountIdentity::of(top.file()).unwrap(), Some(identity));
        assert_ne!(MountIdentity::of(held.file()).unwrap(), Some(identity));
        assert!(MountRestrictions::of(top.file()).unwrap().no_devices);
        let options = FileSystemOptions::of_mounted(&top).unwrap();
        options.set("size", "2m").unwrap();
        options.change().unwrap();
        let bytes = rustix::fs::fstatvfs(top.file()).unwrap();
        assert_eq!(bytes.f_blocks * bytes.f_frsize, 2 << 20);
        drop((top, held));
        let holder = Directory::open(directory.path()).unwrap();
        unmount_entry(&holder, OsStr::new("point")).unwrap();
        assert!(!is_mounted(&point));
        assert!(unmount_entry(&holder, OsStr::new("..")).is_err());
    }

    #[test]
    fn a_mount_without_a_place_goes_with_its_descriptor() {
        if !testkit::is_root() {
            return testkit::skip("root");
        }
        let directory = TempDir::new();
        let mount = tmpfs(&[("size", "1m")]).unwrap();
        let lasting = mount.top(directory.path()).unwrap();
        drop(mount);
        // A directory of it that is still open keeps nothing mounted.
        assert!(lasting.names().unwrap().is_empty());
        assert!(!is_mounted(directory.path()));
    }

    #[test]
    fn the_kernel_says_what_it_refuses() {
        if !testkit::is_root() {
            return testkit::skip("root");
        }
        let unknown = tmpfs(&[("no_such_option", "1")]).unwrap_err();
        assert_eq!(unknown.kind, ErrorKind::Unsupported);
        assert!(unknown.to_string().contains("no_such_option"), "{unknown}");
        let refused = tmpfs(&[("huge", "sometimes")]).unwrap_err();
        assert!(refused.to_string().contains("huge"), "{refused}");
        let absent = FileSystemOptions::new("no-such-type").unwrap_err();
        assert_eq!(absent.kind, ErrorKind::NotFound);
    }
}
