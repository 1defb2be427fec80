//! A directory opened once, component by component, and then used through its descriptor.
//!
//! This is the only way in which a process that may be root makes, replaces or removes files by
//! name. Another user who renames a directory or plants a link while Terrace works cannot
//! redirect it: names are single components below the held descriptor, never followed if they
//! are links (`openat2` with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`). `walk` says which links on
//! the way to the directory are followed, and which users can change that way.

mod entries;
mod found;
mod listing;
mod stack;
#[cfg(test)]
mod tests;
mod walk;

pub use entries::SpecialFile;
pub use listing::ListedEntry;
pub use stack::DirectoryStack;

use crate::error::{Error, Result};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use walk::{End, Last, Make, walk};

/// Write permission of the group and of all others.
const OTHERS_WRITE: u32 = 0o022;

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    file: File,
    path: PathBuf,
    exposure: Option<Exposure>,
}

/// Where a regular file is or can be made: what `-o FILE` names, with trusted links resolved.
#[derive(Debug)]
pub struct FilePlace {
    /// The directory of the file.
    pub directory: Directory,
    /// The name of the file in it.
    pub name: OsString,
    /// Whether the last component that was asked for is a symbolic link.
    pub is_link: bool,
}

/// Why another user can exchange what a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// The first directory of the path that another user can change.
    pub path: PathBuf,
    /// Why, as the end of a sentence that begins with the directory.
    pub why: &'static str,
}

impl Directory {
    /// Opens `path`, which may belong to any user. As root, a link that another user made or could
    /// have placed is not followed.
    ///
    /// # Errors
    /// `NotFound`, `Denied` as for opening it, and `Denied` for such a link.
    pub fn open(path: &Path) -> Result<Self> {
        Self::from_end(walk(path, Last::Directory, Make::Nothing)?)
    }

    /// As [`Directory::open`]; makes the directories that do not exist, with `mode`.
    ///
    /// # Errors
    /// As [`Directory::open`], and as for making a directory.
    pub fn create(path: &Path, mode: u32) -> Result<Self> {
        Self::from_end(walk(path, Last::Directory, Make::Missing(mode))?)
    }

    /// Opens `path`, which only this user can change and no other user can exchange: each
    /// component belongs to root or to this user, the last one to this user alone.
    ///
    /// # Errors
    /// As [`Directory::open`]; `Denied` with the component at fault.
    pub fn open_private(path: &Path) -> Result<Self> {
        Self::private(walk(path, Last::Directory, Make::Nothing)?)
    }

    /// As [`Directory::open_private`]; makes the directories that do not exist, mode 0700.
    ///
    /// # Errors
    /// As [`Directory::open_private`]. Nothing is made below a directory that others can change.
    pub fn create_private(path: &Path) -> Result<Self> {
        Self::private(walk(path, Last::Directory, Make::MissingIfPrivate)?)
    }

    fn from_end(end: End) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&end.directory, ".", flags, Mode::empty()) {
            // It may be entered and written to, but not listed.
            Err(Errno::ACCESS) => end.directory,
            answer => answer.map_err(|errno| failed("open the directory", errno).at(&end.path))?,
        };
        Ok(Self { file: file.into(), path: end.path, exposure: end.exposure })
    }

    /// A directory that another process opened by [`Directory::open_private`] and passed on: the
    /// way to it is not walked again, so it is the same one whatever its path leads to by now.
    /// `path` is for messages.
    ///
    /// # Errors
    /// `Invalid` for what is not a directory, `Denied` if it is not this user's alone any more.
    pub fn of_held(file: File, path: &Path) -> Result<Self> {
        const OPERATION: &str = "use the directory";
        let about = file.metadata().map_err(|source| Error::new(OPERATION, source).at(path))?;
        if !about.is_dir() {
            return Err(Error::invalid(OPERATION, "it is not a directory").at(path));
        }
        let directory = Self::of_open(file, path.to_owned());
        match directory.fault_of_itself()? {
            None => Ok(directory),
            Some(Exposure { path, why }) => Err(refused(OPERATION, why).at(path)),
        }
    }

    /// A directory that was opened otherwise; `path` is for messages.
    pub(crate) fn of_open(file: File, path: PathBuf) -> Self {
        Self { file, path, exposure: None }
    }

    fn private(end: End) -> Result<Self> {
        let directory = Self::from_end(end)?;
        match directory.fault()? {
            None => Ok(directory),
            Some(Exposure { path, why }) => Err(refused("use the directory", why).at(path)),
        }
    }

    /// What keeps the directory, or the way to it, from being this user's alone; `None` if nothing
    /// does.
    ///
    /// # Errors
    /// Where it cannot be examined.
    pub fn fault(&self) -> Result<Option<Exposure>> {
        match &self.exposure {
            Some(exposure) => Ok(Some(exposure.clone())),
            None => self.fault_of_itself(),
        }
    }

    /// What keeps the directory itself from being this user's alone, whatever is above it.
    ///
    /// # Errors
    /// Where it cannot be examined.
    pub fn fault_of_itself(&self) -> Result<Option<Exposure>> {
        let about = self.metadata_of_itself()?;
        let why = if about.uid() != crate::process::effective_uid() {
            "it belongs to another user"
        } else if about.mode() & OTHERS_WRITE != 0 {
            "others may write to it"
        } else {
            return Ok(None);
        };
        let path = self.path.clone();
        Ok(Some(Exposure { path, why }))
    }

    /// Why another user can exchange what its path leads to; `None` if none can.
    #[must_use]
    pub fn exposure(&self) -> Option<&Exposure> {
        self.exposure.as_ref()
    }

    /// Its owner's number.
    ///
    /// # Errors
    /// Where it cannot be examined.
    pub fn owner(&self) -> Result<u32> {
        self.metadata_of_itself().map(|about| about.uid())
    }

    fn metadata_of_itself(&self) -> Result<Metadata> {
        let failed = |source| Error::new("examine the directory", source).at(&self.path);
        self.file.metadata().map_err(failed)
    }

    /// The path that led here, for messages: it may lead elsewhere by now.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same open directory under another path, which is for messages alone.
    #[must_use]
    pub fn shown_as(self, path: &Path) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    /// The open directory itself, for instance to lock it.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Makes a regular file that did not exist, readable and writable.
    ///
    /// # Errors
    /// `Other` with `EEXIST` if the name is taken, by a link too; as for making a file.
    pub fn create_new(&self, name: &OsStr, mode: u32) -> Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        self.open_beneath("create", name, flags, mode)
    }

    /// Makes a regular file that never has a name (`O_TMPFILE`), readable and writable.
    ///
    /// # Errors
    /// Various numbers on file systems that cannot; as for making a file.
    pub(crate) fn create_nameless(&self, mode: u32) -> Result<File> {
        // EXCL here means that the file can never be given a name later.
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::openat(&self.file, ".", flags, Mode::from_raw_mode(mode))
            .map(File::from)
            .map_err(|errno| failed("create", errno).at(&self.path))
    }

    /// Opens a regular file for reading; any user's.
    ///
    /// # Errors
    /// `Invalid` for anything that is not a regular file, which is not opened; `NotFound`.
    pub fn open_regular(&self, name: &OsStr) -> Result<File> {
        self.open_checked(name, OFlags::RDONLY, |_| None)
    }

    /// Opens a regular file of this user for reading and writing. It has this one name: a second
    /// one could be a link that another user made to a file of root's elsewhere.
    ///
    /// # Errors
    /// As [`Directory::open_regular`]; `Denied` for a file of another user or with two names.
    pub fn open_own(&self, name: &OsStr) -> Result<File> {
        self.open_checked(name, OFlags::RDWR, |about| {
            if about.uid() != crate::process::effective_uid() {
                Some("it belongs to another user")
            } else if about.nlink() > 1 {
                Some("it has more than one name")
            } else {
                None
            }
        })
    }

    /// [`Directory::open_own`], or makes the file with `mode` if it does not exist.
    ///
    /// # Errors
    /// As both.
    pub fn open_or_create(&self, name: &OsStr, mode: u32) -> Result<File> {
        loop {
            match self.create_new(name, mode) {
                Err(error) if error.number() == Some(libc::EEXIST) => {}
                made => return made,
            }
            match self.open_own(name) {
                // Removed in between by its owner, another process of this user.
                Err(error) if error.number() == Some(libc::ENOENT) => {}
                opened => return opened,
            }
        }
    }

    /// Opens a block device for this program alone, for reading and writing past the page cache:
    /// until it is closed, nothing else can mount it, use it as swap or claim it, nor its
    /// partitions or the disk that it is a partition of.
    ///
    /// # Errors
    /// `Invalid` for anything that is not a block device, which is not opened; `Other` with `EBUSY`
    /// if something has it, in whatever namespace.
    pub fn claim_block_device(&self, name: &OsStr) -> Result<File> {
        const OPERATION: &str = "claim";
        let number = |file: &File| {
            let about = file.metadata().map_err(|source| Error::new(OPERATION, source))?;
            let is_one = about.file_type().is_block_device();
            is_one
                .then(|| about.rdev())
                .ok_or_else(|| Error::invalid(OPERATION, "it is not a block device"))
        };
        let at = |error: Error| error.at(self.path.join(name));
        // Before: merely opening a tape, a terminal or a pipe has effects.
        let found = number(&self.open_beneath(OPERATION, name, OFlags::PATH, 0)?).map_err(at)?;
        // Of a block device EXCL means: fail if it is claimed.
        let flags = OFlags::RDWR | OFlags::EXCL | OFlags::DIRECT | OFlags::NONBLOCK;
        let file = self.open_beneath(OPERATION, name, flags, 0)?;
        // After: the name may have been exchanged in between.
        if number(&file).map_err(at)? != found {
            return Err(at(Error::invalid(OPERATION, "it was exchanged meanwhile")));
        }
        crate::file::clear_nonblocking(&file).map_err(at)?;
        Ok(file)
    }

    /// What `name` is; a link is described itself.
    ///
    /// # Errors
    /// `NotFound`, and as for examining it.
    pub fn metadata(&self, name: &OsStr) -> Result<Metadata> {
        let file = self.open_beneath("examine", name, OFlags::PATH, 0)?;
        file.metadata().map_err(|source| Error::new("examine", source).at(self.path.join(name)))
    }

    /// The names in it, sorted, without `.` and `..`.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn names(&self) -> Result<Vec<OsString>> {
        use std::os::unix::ffi::OsStrExt;
        let failed = |errno| failed("read the directory", errno).at(&self.path);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.file).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens a directory in it, which is not a link.
    ///
    /// # Errors
    /// `NotFound` also for what is not a directory.
    pub fn subdirectory(&self, name: &OsStr) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let file = self.open_beneath("open the directory", name, flags, 0)?;
        let path = self.path.join(name);
        let about = file
            .metadata()
            .map_err(|source| Error::new("examine the directory", source).at(&path))?;
        let exposure = self.exposure.clone();
        Ok(Self { exposure: exposure.or_else(|| walk::exposure(&about, &path)), file, path })
    }

    /// Makes a directory in it and opens it.
    ///
    /// # Errors
    /// `Other` with `EEXIST` if the name is taken; as for making a directory.
    pub fn create_subdirectory(&self, name: &OsStr, mode: u32) -> Result<Self> {
        let name = single("make the directory", name)?;
        rustix::fs::mkdirat(&self.file, name, Mode::from_raw_mode(mode))
            .map_err(|errno| failed("make the directory", errno).at(self.path.join(name)))?;
        self.subdirectory(name)
    }

    /// Removes a name that is not a directory; a link itself, not what it leads to.
    ///
    /// # Errors
    /// `NotFound`, and as for removing it.
    pub fn remove(&self, name: &OsStr) -> Result<()> {
        self.unlink(name, AtFlags::empty())
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `Other` with `ENOTEMPTY`.
    pub fn remove_directory(&self, name: &OsStr) -> Result<()> {
        self.unlink(name, AtFlags::REMOVEDIR)
    }

    fn unlink(&self, name: &OsStr, flags: AtFlags) -> Result<()> {
        let name = single("remove", name)?;
        rustix::fs::unlinkat(&self.file, name, flags)
            .map_err(|errno| failed("remove", errno).at(self.path.join(name)))
    }

    /// Gives a file in it another name in it, and replaces what has that name.
    ///
    /// # Errors
    /// `NotFound`, and as for renaming it.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> Result<()> {
        let (from, to) = (single("rename", from)?, single("rename", to)?);
        rustix::fs::renameat(&self.file, from, &self.file, to)
            .map_err(|errno| failed("rename", errno).at(self.path.join(from)))
    }

    /// Waits until names that were made, replaced or removed in it are on the device; whether it
    /// could. Some file systems cannot sync a directory, nor can a user who may not list it.
    ///
    /// # Errors
    /// `Device` if writing failed.
    pub fn sync(&self) -> Result<bool> {
        match rustix::fs::fsync(&self.file) {
            Ok(()) => Ok(true),
            Err(Errno::INVAL | Errno::ROFS | Errno::BADF) => Ok(false),
            Err(errno) => Err(failed("sync the directory", errno).at(&self.path)),
        }
    }

    /// Opens what `accept` has no objection to, examined before and after it is opened.
    fn open_checked(
        &self,
        name: &OsStr,
        flags: OFlags,
        object: impl Fn(&Metadata) -> Option<&'static str>,
    ) -> Result<File> {
        let check = |about: &Metadata| {
            if !about.is_file() {
                return Err(Error::invalid("open", "it is not a regular file"));
            }
            object(about).map_or(Ok(()), |why| Err(refused("open", why)))
        };
        let path = self.path.join(name);
        // Before: merely opening a tape, a terminal or a pipe has effects.
        check(&self.metadata(name)?).map_err(|error| error.at(&path))?;
        let file = self.open_beneath("open", name, flags | OFlags::NONBLOCK | OFlags::NOCTTY, 0)?;
        // After: the name may have been exchanged in between, and NONBLOCK kept that harmless.
        let about = file.metadata().map_err(|source| Error::new("examine", source).at(&path))?;
        check(&about).map_err(|error| error.at(&path))?;
        // io_uring answers EAGAIN on a non-blocking file; nothing here waits on a peer any more.
        crate::file::clear_nonblocking(&file).map_err(|error| error.at(&path))?;
        Ok(file)
    }

    fn open_beneath(
        &self,
        operation: &'static str,
        name: &OsStr,
        flags: OFlags,
        mode: u32,
    ) -> Result<File> {
        let name = single(operation, name)?;
        beneath(self.file.as_fd(), name, flags, Mode::from_raw_mode(mode))
            .map(File::from)
            .map_err(|errno| match errno {
                // What the kernel says of a link that it must not follow.
                Errno::LOOP => refused(operation, "it is a symbolic link"),
                errno => failed(operation, errno),
            })
            .map_err(|error| error.at(self.path.join(name)))
    }
}

impl FilePlace {
    /// Where the file `path` is or can be made. A link at its end is followed as those before it.
    ///
    /// # Errors
    /// As [`Directory::open`] for its directory; `Invalid` for what cannot name a file.
    pub fn of(path: &Path) -> Result<Self> {
        let mut end = walk(path, Last::File, Make::Nothing)?;
        let name = end.name.take();
        let Some(name) = name.filter(|name| name != "..") else {
            return Err(Error::invalid("open", "it is not the name of a file").at(path));
        };
        let is_link = end.is_link;
        Ok(Self { directory: Directory::from_end(end)?, name, is_link })
    }

    /// The path, for messages.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.path.join(&self.name)
    }
}

/// One open below `directory`, never through a link; a name of one component only.
fn beneath(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // With O_PATH the link itself is opened, so that it can be read.
    if flags.contains(OFlags::PATH) {
        return rustix::fs::openat(directory, name, flags, mode);
    }
    match rustix::fs::openat2(directory, name, flags, mode, resolve) {
        // Before Linux 5.6, and under filters that do not know it: the same for one component.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(directory, name, flags, mode),
        answer => answer,
    }
}

/// `name`, if it is one component that names an entry.
pub(crate) fn single<'n>(operation: &'static str, name: &'n OsStr) -> Result<&'n OsStr> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(Error::invalid(operation, "it is not a single name").at(name)),
    }
}

fn refused(operation: &'static str, why: &'static str) -> Error {
    Error::new(operation, io::Error::new(io::ErrorKind::PermissionDenied, why))
}

fn failed(operation: &'static str, errno: Errno) -> Error {
    Error::new(operation, errno.into())
}

fn is_link(about: &Metadata) -> bool {
    FileType::from_raw_mode(about.mode()) == FileType::Symlink
}
