//! The way to a directory, one component at a time from a held descriptor.
//!
//! A component can be changed by another user if its directory belongs to a user who is neither
//! root nor this one, or if its group or all others may write to it without the sticky bit. From
//! the first such component on the way is exposed: the directory may still be used through its
//! descriptor, but is not private. As root, a link is followed only where another user can neither
//! have made it nor have put it there. For every user the rule of `fs.protected_symlinks` holds: in
//! a sticky directory that all may write to, a link is followed if this user or the owner of the
//! directory made it.

use super::{Exposure, beneath, failed, is_link, refused};
use crate::error::{Error, Result};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows in one path.
const LINKS_MAX: u32 = 40;
const GROUP_WRITES: u32 = 0o020;
const ALL_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// What the last component of a path has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// A directory.
    Directory,
    /// A file in a directory; it need not exist.
    File,
}

/// Which directories of the path are made if they do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    /// None.
    Nothing,
    /// Those below directories that another user cannot change, mode 0700; below others it is an
    /// error.
    MissingIfPrivate,
    /// All, with this mode.
    Missing(u32),
}

/// Where a walk ended.
#[derive(Debug)]
pub(super) struct End {
    pub(super) directory: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) exposure: Option<Exposure>,
    /// The owner of the directory, if it is sticky and all may write to it.
    shared_by: Option<u32>,
    /// The last component, for [`Last::File`].
    pub(super) name: Option<OsString>,
    /// Whether the last component as it was asked for is a link.
    pub(super) is_link: bool,
}

/// Walks `path`.
pub(super) fn walk(path: &Path, last: Last, make: Make) -> Result<End> {
    let mut pending = components(path);
    let first = if path.is_absolute() { "/" } else { "." };
    let mut end = start(Path::new(first))?;
    let mut links = 0;
    while let Some(name) = pending.pop() {
        let is_last = pending.is_empty();
        let Some((found, about)) = look(&end, &name, make)? else {
            if is_last && last == Last::File {
                end.name = Some(name);
                return Ok(end);
            }
            return Err(failed("open", Errno::NOENT).at(end.path.join(&name)));
        };
        if is_link(&about) {
            links += 1;
            let target = follow(&end, &name, &found, &about, links)?;
            // Only a link in the last place stands for the file itself.
            end.is_link |= is_last;
            if target.is_absolute() {
                end = End { is_link: end.is_link, ..rooted(end.exposure)? };
            }
            pending.extend(components(&target));
        } else if about.is_dir() && !(is_last && last == Last::File) {
            end.step(found, &name, &about);
        } else if is_last && last == Last::File {
            end.name = Some(name);
            return Ok(end);
        } else {
            return Err(failed("open", Errno::NOTDIR).at(end.path.join(&name)));
        }
    }
    Ok(end)
}

impl End {
    fn step(&mut self, directory: OwnedFd, name: &OsStr, about: &Metadata) {
        self.directory = directory;
        if name == ".." {
            self.path.push("..");
        } else {
            self.path.push(name);
        }
        self.shared_by = shared_by(about);
        let found = || exposure(about, &self.path);
        self.exposure = self.exposure.take().or_else(found);
    }
}

/// The components of `path`, the first one last: a stack of what is still to be walked.
fn components(path: &Path) -> Vec<OsString> {
    let name = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// The directory that a walk begins in: `/` or `.`.
fn start(path: &Path) -> Result<End> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|errno| failed("open the directory", errno).at(path))?;
    let (directory, about) = examined(opened, path)?;
    Ok(End {
        directory,
        path: path.to_owned(),
        exposure: exposure(&about, path),
        shared_by: shared_by(&about),
        name: None,
        is_link: false,
    })
}

/// The root directory, on a way that may have been exposed before.
fn rooted(before: Option<Exposure>) -> Result<End> {
    let mut end = start(Path::new("/"))?;
    end.exposure = before.or(end.exposure);
    Ok(end)
}

/// The entry `name` where `end` stands, not followed; `None` if it does not exist.
fn look(end: &End, name: &OsStr, make: Make) -> Result<Option<(OwnedFd, Metadata)>> {
    let path = end.path.join(name);
    let open = || beneath(end.directory.as_fd(), name, OFlags::PATH, Mode::empty());
    let opened = match open() {
        Err(Errno::NOENT) if make != Make::Nothing => {
            let exposure = end.exposure.clone();
            if let Some(exposure) = exposure.filter(|_| make == Make::MissingIfPrivate) {
                return Err(refused("make a directory in", exposure.why).at(exposure.path));
            }
            let mode = match make {
                Make::Missing(mode) => Mode::from_raw_mode(mode),
                Make::Nothing | Make::MissingIfPrivate => Mode::RWXU,
            };
            match rustix::fs::mkdirat(&end.directory, name, mode) {
                Ok(()) | Err(Errno::EXIST) => open(),
                Err(errno) => return Err(failed("make the directory", errno).at(path)),
            }
        }
        answer => answer,
    };
    match opened {
        Ok(found) => examined(found, &path).map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(failed("open", errno).at(path)),
    }
}

/// What is open there.
fn examined(opened: OwnedFd, path: &Path) -> Result<(OwnedFd, Metadata)> {
    let file = File::from(opened);
    let about = file.metadata().map_err(|source| Error::new("examine", source).at(path))?;
    Ok((file.into(), about))
}

/// The target of the link `name`, if this process may follow it.
fn follow(
    end: &End,
    name: &OsStr,
    link: &OwnedFd,
    about: &Metadata,
    links: u32,
) -> Result<PathBuf> {
    let path = end.path.join(name);
    if links > LINKS_MAX {
        return Err(failed("open", Errno::LOOP).at(path));
    }
    let user = crate::process::effective_uid();
    let in_safe_place = user != 0 || (is_trusted(about.uid()) && end.exposure.is_none());
    let by_owner = |owner| [owner, user].contains(&about.uid());
    if !in_safe_place || !end.shared_by.is_none_or(by_owner) {
        let why = "it is a symbolic link that another user can change";
        return Err(refused("follow", why).at(path));
    }
    let target = rustix::fs::readlinkat(link, "", Vec::new())
        .map_err(|errno| failed("read the link", errno).at(&path))?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

/// Why another user can change what is in the directory `about`; `None` if none can.
pub(super) fn exposure(about: &Metadata, path: &Path) -> Option<Exposure> {
    let is_sticky = about.mode() & STICKY != 0;
    let may_write = |bit| about.mode() & bit != 0 && !is_sticky;
    // Many systems give each user a group of the same number and let it write.
    let own_group = [0, crate::process::effective_gid()].contains(&about.gid());
    let why = if !is_trusted(about.uid()) {
        "it belongs to another user"
    } else if may_write(ALL_WRITE) {
        "others may write to it"
    } else if may_write(GROUP_WRITES) && !own_group {
        "its group may write to it"
    } else {
        return None;
    };
    let path = path.to_owned();
    Some(Exposure { path, why })
}

/// The owner of the directory `about`, if it is sticky and all may write to it.
fn shared_by(about: &Metadata) -> Option<u32> {
    let both = STICKY | ALL_WRITE;
    (about.mode() & both == both).then_some(about.uid())
}

/// Root, and the user of this process.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == crate::process::effective_uid()
}
