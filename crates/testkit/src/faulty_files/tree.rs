//! The real directory behind a [`crate::FaultyFiles`]: each request of FUSE as a call on its files.
//!
//! A node of FUSE is a path below the root, with a number that is never given to another. The
//! kernel caches neither names nor attributes: it asks for them each time.

use super::Caching;
use crate::fault_plan::FaultPlan;
use serve::fuse::protocol::{
    HEADER_IN, OPEN_DIRECT, WRITE_DATA, errno, number32, number64, opcode, words,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Metadata, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The node of the root.
const ROOT: u64 = 1;

/// An error number.
type Errno = i32;

/// Which attributes a `SETATTR` sets, by their bits.
mod set {
    pub(super) const MODE: u32 = 1;
    pub(super) const OWNER: u32 = 2;
    pub(super) const GROUP: u32 = 4;
    pub(super) const SIZE: u32 = 8;
    pub(super) const ACCESSED: u32 = 16;
    pub(super) const MODIFIED: u32 = 32;
    pub(super) const ACCESSED_NOW: u32 = 128;
    pub(super) const MODIFIED_NOW: u32 = 256;
}

/// The nodes and the open files.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    caching: Caching,
    paths: HashMap<u64, PathBuf>,
    ids: HashMap<PathBuf, u64>,
    /// By the number of its opening, with the node.
    files: HashMap<u64, (u64, File)>,
    next: u64,
}

impl Tree {
    pub(super) fn new(root: &Path, caching: Caching) -> Self {
        let mut tree = Self {
            root: root.to_owned(),
            caching,
            paths: HashMap::new(),
            ids: HashMap::new(),
            files: HashMap::new(),
            next: ROOT,
        };
        tree.id_of(Path::new(""));
        tree
    }

    /// Whether this is the file of a disk, whose driver takes a write that was cut short for whole.
    pub(super) fn is_disk(&self) -> bool {
        self.caching == Caching::Never
    }

    /// The path below the root of the node that a request is about; empty if it is gone.
    pub(super) fn path_of(&self, request: &[u8]) -> &Path {
        self.paths.get(&node(request)).map_or(Path::new(""), PathBuf::as_path)
    }

    /// Does a request that is neither a read, a write nor an fsync.
    pub(super) fn perform(&mut self, kind: u32, request: &[u8]) -> Result<Vec<u8>, Errno> {
        match kind {
            opcode::LOOKUP => self.entry(&self.below(request, HEADER_IN)?),
            opcode::GETATTR => Ok(attributes(&self.metadata(request)?, node(request))),
            opcode::SETATTR => self.set_attributes(request),
            opcode::MKDIR => {
                let path = self.below(request, HEADER_IN + 8)?;
                fs::create_dir(self.root.join(&path)).map_err(number)?;
                self.set_mode(&path, number32(request, HEADER_IN))?;
                self.entry(&path)
            }
            opcode::READLINK => {
                let target = fs::read_link(self.real(request)?).map_err(number)?;
                Ok(target.into_os_string().into_vec())
            }
            // The answer of FAT.
            opcode::SYMLINK | opcode::MKNOD | opcode::LINK => Err(errno::EPERM),
            opcode::UNLINK => self.remove(request, |path| fs::remove_file(path)),
            opcode::RMDIR => self.remove(request, |path| fs::remove_dir(path)),
            opcode::RENAME => self.rename(request, HEADER_IN + 8, 0),
            opcode::RENAME2 => {
                self.rename(request, HEADER_IN + 16, number32(request, HEADER_IN + 8))
            }
            opcode::OPEN => self.open(request),
            opcode::CREATE => self.create(request),
            opcode::RELEASE => {
                self.files.remove(&number64(request, HEADER_IN));
                Ok(Vec::new())
            }
            opcode::OPENDIR => Ok(opened(0, 0)),
            opcode::READDIR => self.names(request),
            opcode::RELEASEDIR | opcode::FSYNCDIR | opcode::FLUSH => Ok(Vec::new()),
            opcode::STATFS => Ok(statistics()),
            _ => Err(errno::ENOSYS),
        }
    }

    pub(super) fn read(&self, request: &[u8], plan: &FaultPlan) -> Result<Vec<u8>, Errno> {
        let file = self.file(request)?;
        let offset = number64(request, HEADER_IN + 8);
        let wanted = u64::from(number32(request, HEADER_IN + 16));
        let length = file.metadata().map_err(number)?.len();
        let count = wanted.min(length.saturating_sub(offset));
        let mut data = vec![0; count as usize];
        let mut at = 0;
        for (place, bytes) in plan.pieces(offset, count) {
            let part = &mut data[at..at + bytes as usize];
            if let Some(place) = place {
                file.read_exact_at(part, place).map_err(number)?;
            }
            at += bytes as usize;
        }
        Ok(data)
    }

    /// Writes all, or `room` bytes; says how many.
    pub(super) fn write(
        &self,
        request: &[u8],
        plan: &FaultPlan,
        room: Option<u64>,
    ) -> Result<Vec<u8>, Errno> {
        let file = self.file(request)?;
        let offset = number64(request, HEADER_IN + 8);
        let data = &request[WRITE_DATA..];
        let count = room.map_or(data.len(), |room| data.len().min(room as usize));
        let mut rest = &data[..count];
        for (place, bytes) in plan.pieces(offset, count as u64) {
            let (part, behind) = rest.split_at(bytes as usize);
            if let Some(place) = place {
                file.write_all_at(part, place).map_err(number)?;
            }
            rest = behind;
        }
        Ok(words(count as u32, 0).to_vec())
    }

    pub(super) fn flush(&self, request: &[u8]) -> Result<Vec<u8>, Errno> {
        self.file(request).map(|_| Vec::new())
    }

    /// Cuts the file of a request.
    pub(super) fn shrink(&self, request: &[u8], bytes: u64) -> Result<(), Errno> {
        let file = File::options().write(true).open(self.real(request)?).map_err(number)?;
        file.set_len(bytes).map_err(number)
    }

    /// Changes the file of a request, as another program does that writes to it.
    pub(super) fn change(&self, request: &[u8]) -> Result<(), Errno> {
        let path = self.real(request)?;
        let file = File::options().read(true).write(true).open(path).map_err(number)?;
        let before = file.metadata().and_then(|facts| facts.modified()).map_err(number)?;
        let mut first = [0];
        file.read_exact_at(&mut first, 0).map_err(number)?;
        file.write_all_at(&[!first[0]], 0).map_err(number)?;
        file.set_modified(before + Duration::from_secs(1)).map_err(number)
    }

    fn open(&mut self, request: &[u8]) -> Result<Vec<u8>, Errno> {
        let is_written = number32(request, HEADER_IN) & 3 != 0;
        let mut options = File::options();
        let file = options.read(true).write(is_written).open(self.real(request)?);
        Ok(self.keep(node(request), file.map_err(number)?))
    }

    fn create(&mut self, request: &[u8]) -> Result<Vec<u8>, Errno> {
        let path = self.below(request, HEADER_IN + 16)?;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.root.join(&path)).map_err(number)?;
        self.set_mode(&path, number32(request, HEADER_IN + 4))?;
        let mut body = self.entry(&path)?;
        let id = self.id_of(&path);
        body.extend(self.keep(id, file));
        Ok(body)
    }

    /// The answer to the opening of a file, which is kept until it is released.
    fn keep(&mut self, node: u64, file: File) -> Vec<u8> {
        self.next += 1;
        self.files.insert(self.next, (node, file));
        opened(self.next, if self.caching == Caching::Never { OPEN_DIRECT } else { 0 })
    }

    fn remove(
        &mut self,
        request: &[u8],
        remove: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Vec<u8>, Errno> {
        let path = self.below(request, HEADER_IN)?;
        remove(&self.root.join(&path)).map_err(number)?;
        self.forget(&path);
        Ok(Vec::new())
    }

    /// The two names are at `names`, one after the other.
    fn rename(&mut self, request: &[u8], names: usize, flags: u32) -> Result<Vec<u8>, Errno> {
        const NO_REPLACE: u32 = 1;
        let from = self.below(request, names)?;
        let second = names + name(request, names).len() + 1;
        let directory = self.paths.get(&number64(request, HEADER_IN)).ok_or(errno::ENOENT)?;
        let to = directory.join(name(request, second));
        let (source, target) = (self.root.join(&from), self.root.join(&to));
        match flags {
            0 => {}
            NO_REPLACE if target.symlink_metadata().is_ok() => return Err(errno::EEXIST),
            NO_REPLACE => {}
            _ => return Err(errno::EINVAL),
        }
        fs::rename(source, target).map_err(number)?;
        self.forget(&to);
        let moved: Vec<PathBuf> =
            self.ids.keys().filter(|path| path.starts_with(&from)).cloned().collect();
        for path in moved {
            let Some(id) = self.ids.remove(&path) else { continue };
            let rest = path.strip_prefix(&from).unwrap_or(Path::new(""));
            // To join an empty path would add a slash.
            let own = if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) };
            self.paths.insert(id, own.clone());
            self.ids.insert(own, id);
        }
        Ok(Vec::new())
    }

    fn set_attributes(&self, request: &[u8]) -> Result<Vec<u8>, Errno> {
        let body = &request[HEADER_IN..];
        let valid = number32(body, 0);
        let path = self.real(request)?;
        if valid & set::SIZE != 0 {
            let file = File::options().write(true).open(&path).map_err(number)?;
            file.set_len(number64(body, 16)).map_err(number)?;
        }
        if valid & (set::OWNER | set::GROUP) != 0 {
            let owner = (valid & set::OWNER != 0).then(|| number32(body, 76));
            let group = (valid & set::GROUP != 0).then(|| number32(body, 80));
            std::os::unix::fs::lchown(&path, owner, group).map_err(number)?;
        }
        if valid & set::MODE != 0 {
            self.set_mode(self.path_of(request), number32(body, 68))?;
        }
        let chosen = |bit, now, seconds, nanos| match valid {
            _ if valid & now != 0 => Some(SystemTime::now()),
            _ if valid & bit != 0 => {
                Some(SystemTime::UNIX_EPOCH + time(number64(body, seconds), number32(body, nanos)))
            }
            _ => None,
        };
        let accessed = chosen(set::ACCESSED, set::ACCESSED_NOW, 32, 56);
        let modified = chosen(set::MODIFIED, set::MODIFIED_NOW, 40, 60);
        let mut times = FileTimes::new();
        times = accessed.map_or(times, |time| times.set_accessed(time));
        times = modified.map_or(times, |time| times.set_modified(time));
        if accessed.or(modified).is_some() {
            File::open(&path).and_then(|file| file.set_times(times)).map_err(number)?;
        }
        Ok(attributes(&self.metadata(request)?, node(request)))
    }

    fn set_mode(&self, path: &Path, mode: u32) -> Result<(), Errno> {
        let permissions = Permissions::from_mode(mode & 0o7777);
        fs::set_permissions(self.root.join(path), permissions).map_err(number)
    }

    /// `struct fuse_dirent` of the names from the wanted one on, as many as fit.
    fn names(&mut self, request: &[u8]) -> Result<Vec<u8>, Errno> {
        let first = number64(request, HEADER_IN + 8);
        let room = number32(request, HEADER_IN + 16) as usize;
        let directory = self.path_of(request).to_owned();
        let entries = fs::read_dir(self.root.join(&directory)).map_err(number)?;
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        let mut body = Vec::new();
        for (index, name) in (1u64..).zip(&names).skip(first as usize) {
            let padded = 24 + name.len().next_multiple_of(8);
            if body.len() + padded > room {
                break;
            }
            let path = directory.join(name);
            let mode = self.root.join(&path).symlink_metadata().map_or(0, |facts| facts.mode());
            let end = body.len() + padded;
            body.extend(self.id_of(&path).to_ne_bytes());
            body.extend(index.to_ne_bytes());
            body.extend(words(name.len() as u32, mode >> 12));
            body.extend(name.as_bytes());
            body.resize(end, 0);
        }
        Ok(body)
    }

    /// `struct fuse_entry_out` of what is at `path`.
    fn entry(&mut self, path: &Path) -> Result<Vec<u8>, Errno> {
        let facts = self.root.join(path).symlink_metadata().map_err(number)?;
        let id = self.id_of(path);
        let mut body = vec![0; 40];
        body[..8].copy_from_slice(&id.to_ne_bytes());
        body.extend(&attributes(&facts, id)[16..]);
        Ok(body)
    }

    /// What the node of a request is.
    fn metadata(&self, request: &[u8]) -> Result<Metadata, Errno> {
        let path = self.real(request)?;
        let is_named = self.paths.contains_key(&node(request));
        let facts = if is_named { path.symlink_metadata() } else { path.metadata() };
        facts.map_err(number)
    }

    /// The open file that a read, write or flush names.
    fn file(&self, request: &[u8]) -> Result<&File, Errno> {
        let file = self.files.get(&number64(request, HEADER_IN));
        file.map(|(_, file)| file).ok_or(errno::EIO)
    }

    /// The real path of a request's node; of one that was removed, that of a file that is open.
    fn real(&self, request: &[u8]) -> Result<PathBuf, Errno> {
        let id = node(request);
        if let Some(path) = self.paths.get(&id) {
            return Ok(self.root.join(path));
        }
        let (_, file) = self.files.values().find(|(own, _)| *own == id).ok_or(errno::ENOENT)?;
        Ok(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
    }

    /// The path of the name at `at` in the directory that is the request's node.
    fn below(&self, request: &[u8], at: usize) -> Result<PathBuf, Errno> {
        let directory = self.paths.get(&node(request)).ok_or(errno::ENOENT)?;
        Ok(directory.join(name(request, at)))
    }

    fn id_of(&mut self, path: &Path) -> u64 {
        if let Some(id) = self.ids.get(path) {
            return *id;
        }
        let id = if path.as_os_str().is_empty() { ROOT } else { self.next + 1 };
        self.next = self.next.max(id);
        self.ids.insert(path.to_owned(), id);
        self.paths.insert(id, path.to_owned());
        id
    }

    fn forget(&mut self, path: &Path) {
        if let Some(id) = self.ids.remove(path) {
            self.paths.remove(&id);
        }
    }
}

fn node(request: &[u8]) -> u64 {
    number64(request, 16)
}

/// The name that begins at `at` and ends with a zero byte.
fn name(request: &[u8], at: usize) -> &OsStr {
    let rest = request.get(at..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    OsStr::from_bytes(&rest[..end])
}

fn number(error: io::Error) -> Errno {
    error.raw_os_error().unwrap_or(errno::EIO)
}

fn time(seconds: u64, nanos: u32) -> Duration {
    Duration::new(seconds, nanos)
}

/// `struct fuse_open_out`.
fn opened(handle: u64, flags: u32) -> Vec<u8> {
    [handle.to_ne_bytes(), words(flags, 0)].concat()
}

/// `struct fuse_attr_out`; the kernel is to ask again each time.
fn attributes(facts: &Metadata, id: u64) -> Vec<u8> {
    let mut body = vec![0; 16];
    let times = [facts.atime(), facts.mtime(), facts.ctime()];
    for value in [id, facts.size(), facts.blocks()] {
        body.extend(value.to_ne_bytes());
    }
    for seconds in times {
        body.extend(seconds.to_ne_bytes());
    }
    for nanos in [facts.atime_nsec(), facts.mtime_nsec(), facts.ctime_nsec()] {
        body.extend((nanos as u32).to_ne_bytes());
    }
    for value in [facts.mode(), facts.nlink() as u32, facts.uid(), facts.gid(), 0, 4096, 0] {
        body.extend(value.to_ne_bytes());
    }
    body
}

/// `struct fuse_kstatfs` of 4 GiB, half of them free.
fn statistics() -> Vec<u8> {
    let mut body = Vec::new();
    for value in [1u64 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19] {
        body.extend(value.to_ne_bytes());
    }
    for value in [4096u32, 255, 4096] {
        body.extend(value.to_ne_bytes());
    }
    body.resize(80, 0);
    body
}
