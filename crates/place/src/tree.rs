//! A walk over a directory tree by descriptors: follows no link, opens nothing by path, and takes a
//! bounded share of memory and descriptors, however deep and wide the tree is.
//!
//! The idea: inodes are on the disk in the order of their numbers, and names are not, so each
//! directory is listed first, in batches, and a batch is examined sorted by inode. Its directories
//! are entered next, in the same order. [`TreeWalk::next`] returns one event after the other;
//! `walk` is the walk of the movers: on one file system, and a mount that may hang is not asked
//! even what it is.
//!
//! Names of directories that are still to be entered are the only thing that grows. Beyond
//! [`MOST_PENDING_BYTES`] those of the highest levels are forgotten but for 8 bytes each, and
//! listed again when the walk comes back.

mod level;
mod remove;
#[cfg(test)]
mod tests;

pub(crate) use remove::remove_below;

use crate::{Error, ErrorKind, Result};
use level::{BATCH_BYTES, WalkLevel};
use machine::Root;
use machine::reach::Reach;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use sys::directory::{Directory, DirectoryStack};
use sys::file_stat::{FileStat, InodeKind};

/// How many directories a walk holds open: far below the 64 descriptors of the smallest limits.
pub const MOST_OPEN_DIRECTORIES: usize = 12;
/// Bytes of names of directories that are still to be entered: a quarter of what a copy may take.
pub const MOST_PENDING_BYTES: usize = 16 << 20;

/// What a walk is not to do.
#[derive(Debug, Default)]
pub struct WalkLimits {
    /// Enters no other file system.
    pub one_file_system: bool,
    /// Leaves out mounts that may hang.
    pub reach: Option<Reach>,
}

/// An entry of a directory, in its directory.
#[derive(Clone, Copy, Debug)]
pub struct TreeEntry<'a> {
    /// The open directory.
    pub directory: &'a Directory,
    /// Its name there.
    pub name: &'a OsStr,
    /// What it is.
    pub stat: &'a FileStat,
}

impl TreeEntry<'_> {
    /// Its path, for messages: it may lead elsewhere by now.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.path().join(self.name)
    }
}

/// A directory of a tree, open.
#[derive(Clone, Copy, Debug)]
pub struct TreeDirectory<'a> {
    /// The directory; `None` if it was moved or replaced while the walk was below it.
    pub directory: Option<&'a Directory>,
    /// What it was when it was opened.
    pub stat: &'a FileStat,
    /// How many directories below the top it is.
    pub depth: usize,
}

/// What a walk meets.
#[derive(Debug)]
pub enum WalkEvent<'a> {
    /// An entry of the current directory. A directory is entered later, after the other entries of
    /// its batch, unless [`TreeWalk::skip`] is called now.
    Entry(TreeEntry<'a>),
    /// An entry that is on another file system, and is not entered for that.
    OtherFileSystem(TreeEntry<'a>),
    /// A directory was opened and is the current one. The top is the first.
    Enter(TreeDirectory<'a>),
    /// All entries of the current directory were met. The one above is the current one next.
    Leave(TreeDirectory<'a>),
    /// An entry that could not be examined, or a directory that could not be opened or listed.
    Refused(PathBuf, sys::Error),
}

/// A walk under way.
#[derive(Debug)]
pub struct TreeWalk {
    stack: DirectoryStack,
    levels: Vec<WalkLevel>,
    device: u64,
    mount: Option<u64>,
    limits: WalkLimits,
    batch_bytes: usize,
    most_pending_bytes: usize,
    /// What waits above the current level.
    pending_bytes: usize,
    /// What the last event was about.
    name: OsString,
    stat: FileStat,
    state: WalkState,
}

/// What the walk does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WalkState {
    Start,
    /// The current directory was entered, or one of its entries was met.
    Below,
    /// The last event was a directory as an entry.
    MetDirectory,
    /// The last event was [`WalkEvent::Leave`].
    Left,
}

/// An event without what it borrows.
enum WalkStep {
    Entry,
    OtherFileSystem,
    Enter,
    Leave,
    Refused(PathBuf, sys::Error),
}

impl TreeWalk {
    /// A walk over everything below `top`.
    ///
    /// # Errors
    /// Where `top` cannot be examined.
    pub fn below(top: Directory, limits: WalkLimits) -> sys::Result<Self> {
        let stat = FileStat::of(top.file())?;
        Ok(Self {
            device: stat.device,
            mount: stat.mount,
            stack: DirectoryStack::new(top, MOST_OPEN_DIRECTORIES),
            levels: Vec::new(),
            limits,
            batch_bytes: BATCH_BYTES,
            most_pending_bytes: MOST_PENDING_BYTES,
            pending_bytes: 0,
            name: OsString::new(),
            stat,
            state: WalkState::Start,
        })
    }

    /// The next event; `None` when the top was left.
    #[allow(clippy::should_implement_trait, reason = "an event borrows the walk")]
    pub fn next(&mut self) -> Option<WalkEvent<'_>> {
        let step = self.step()?;
        if let WalkStep::Refused(path, error) = step {
            return Some(WalkEvent::Refused(path, error));
        }
        let directory = self.stack.current().ok();
        let depth = self.stack.depth();
        let stat = self.levels.last().map_or(&self.stat, |level| &level.stat);
        let current = TreeDirectory { directory, stat, depth };
        let entry =
            directory.map(|directory| TreeEntry { directory, name: &self.name, stat: &self.stat });
        Some(match (step, entry) {
            (WalkStep::Entry, Some(entry)) => WalkEvent::Entry(entry),
            (WalkStep::OtherFileSystem, Some(entry)) => WalkEvent::OtherFileSystem(entry),
            (WalkStep::Enter, _) => WalkEvent::Enter(current),
            _ => WalkEvent::Leave(current),
        })
    }

    /// After [`WalkEvent::Entry`] of a directory: does not enter it. After [`WalkEvent::Enter`]:
    /// leaves it next.
    pub fn skip(&mut self) {
        match (self.state, self.levels.last_mut()) {
            (WalkState::MetDirectory, Some(level)) => level.forget_last(),
            (WalkState::Below, Some(level)) => level.end(),
            _ => {}
        }
    }

    fn step(&mut self) -> Option<WalkStep> {
        match self.state {
            WalkState::Start => {
                self.levels.push(WalkLevel::new(self.stat));
                self.state = WalkState::Below;
                return Some(WalkStep::Enter);
            }
            WalkState::Left => {
                self.levels.pop();
                let level = self.levels.last_mut()?;
                self.pending_bytes -= level.waiting_bytes();
                self.state = WalkState::Below;
                if let Err(error) = self.stack.leave() {
                    level.end();
                    let path = error.path.clone().unwrap_or_default();
                    return Some(WalkStep::Refused(path, error));
                }
            }
            WalkState::Below | WalkState::MetDirectory => self.state = WalkState::Below,
        }
        loop {
            let level = self.levels.last_mut()?;
            if let Some(entry) = level.entries.pop() {
                if let Some(step) = self.examine(entry.name) {
                    return Some(step);
                }
            } else if let Some(step) = self.enter_next() {
                return Some(step);
            } else if self.levels.last().is_none_or(WalkLevel::is_listed) {
                self.state = WalkState::Left;
                return Some(WalkStep::Leave);
            } else if let Err(refused) = self.list_next() {
                return Some(refused);
            }
        }
    }

    /// Examines an entry of the current directory; `None` if it is left out.
    fn examine(&mut self, name: OsString) -> Option<WalkStep> {
        if !self.is_safe(&name) {
            return None;
        }
        let stat = match self.stack.current().and_then(|directory| directory.stat(&name)) {
            Ok(stat) => stat,
            Err(error) => return Some(self.refused(&name, error)),
        };
        self.stat = stat;
        self.name.clone_from(&name);
        if self.limits.one_file_system && self.is_elsewhere(&stat) {
            return Some(WalkStep::OtherFileSystem);
        }
        if stat.kind == InodeKind::Directory {
            self.levels.last_mut()?.wait(name);
            self.state = WalkState::MetDirectory;
        }
        Some(WalkStep::Entry)
    }

    /// Whether an entry is on another file system than the top.
    fn is_elsewhere(&self, stat: &FileStat) -> bool {
        // Of a file on an overlay its layer's device is reported: only its mount says more then.
        let is_on_mount = stat.mount.is_some() && stat.mount == self.mount;
        stat.device != self.device && (stat.kind == InodeKind::Directory || !is_on_mount)
    }

    /// Enters the next directory that waits in the current one; `None` if none does.
    fn enter_next(&mut self) -> Option<WalkStep> {
        let (one_file_system, device) = (self.limits.one_file_system, self.device);
        if self.levels.last()?.is_forgotten()
            && let Err(error) = self.list_forgotten()
        {
            self.levels.last_mut()?.end();
            return Some(self.refused(OsStr::new(""), error));
        }
        let name = self.levels.last_mut()?.next_waiting()?;
        let opened = self.stack.enter(&name).and_then(|below| FileStat::of(below.file()));
        let stat = match opened {
            Ok(stat) => stat,
            Err(error) => return Some(self.refused(&name, error)),
        };
        self.pending_bytes += self.levels.last()?.waiting_bytes();
        self.levels.push(WalkLevel::new(stat));
        if one_file_system && stat.device != device {
            // Mounted since it was examined: it is left at once.
            self.levels.last_mut()?.end();
        }
        self.forget_beyond_limit();
        Some(WalkStep::Enter)
    }

    /// Lists the next batch of the current directory.
    fn list_next(&mut self) -> std::result::Result<(), WalkStep> {
        let batch_bytes = self.batch_bytes;
        let listed = match (self.stack.current(), self.levels.last_mut()) {
            (Ok(directory), Some(level)) => level.list(directory, batch_bytes),
            (Err(error), _) => Err(error),
            (Ok(_), None) => Ok(()),
        };
        listed.map_err(|error| {
            if let Some(level) = self.levels.last_mut() {
                level.end();
            }
            self.refused(OsStr::new(""), error)
        })
    }

    /// Lists the directories again that the current level forgot.
    fn list_forgotten(&mut self) -> sys::Result<()> {
        match (self.stack.current(), self.levels.last_mut()) {
            (Ok(directory), Some(level)) => level.list_again(directory),
            (Err(error), _) => Err(error),
            (Ok(_), None) => Ok(()),
        }
    }

    /// Forgets the directories that wait in the highest levels, where the names of all that wait
    /// above the current level take too much.
    fn forget_beyond_limit(&mut self) {
        if self.pending_bytes <= self.most_pending_bytes {
            return;
        }
        for level in &mut self.levels {
            if self.pending_bytes <= self.most_pending_bytes / 2 {
                break;
            }
            self.pending_bytes -= level.forget();
        }
    }

    fn refused(&self, name: &OsStr, error: sys::Error) -> WalkStep {
        let path = self.stack.current().map(|directory| directory.path().join(name));
        WalkStep::Refused(path.unwrap_or_else(|_| name.into()), error)
    }

    /// Whether `name` is not where a mount that may hang begins.
    fn is_safe(&mut self, name: &OsStr) -> bool {
        let Some(reach) = self.limits.reach.as_mut() else {
            return true;
        };
        self.stack.current().is_ok_and(|directory| reach.is_safe(&directory.path().join(name)))
    }
}

/// Ends a walk after an interrupt.
pub(crate) fn unless_interrupted() -> ControlFlow<()> {
    if sys::interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// `top` as an absolute path whose directories are no links; the last name is as it is.
///
/// # Errors
/// `Usage` where it is not there.
pub(crate) fn real(top: &Path) -> Result<PathBuf> {
    let absent = |error| absent(top, &error);
    match (top.parent(), top.file_name()) {
        (Some(parent), Some(name)) => {
            // `.` if the path is one name.
            Ok(Path::new(".").join(parent).canonicalize().map_err(absent)?.join(name))
        }
        _ => top.canonicalize().map_err(absent),
    }
}

fn absent(top: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Usage, "look below", sys::plain_reason(error)).at(top)
}

/// Calls `visit` with `top` and everything below it on its file system, until it breaks. Entries on
/// other file systems are left out, without an event.
///
/// # Errors
/// `Usage` where `top` is not there.
pub(crate) fn walk(
    root: &Root,
    top: &Path,
    visit: &mut dyn FnMut(WalkEvent<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let real = real(top)?;
    let mut mounts = Reach::new(root);
    // The mount of `top` itself is the caller's choice.
    let reach = mounts.is_safe(&real).then_some(mounts);
    let failed = |error: sys::Error| absent(top, &error.source);
    let directory = match (real.parent(), real.file_name()) {
        (Some(parent), Some(name)) => {
            let parent = Directory::open(parent).map_err(failed)?;
            let stat = parent.stat(name).map_err(failed)?;
            let entry = TreeEntry { directory: &parent, name, stat: &stat };
            if visit(WalkEvent::Entry(entry)).is_break() || stat.kind != InodeKind::Directory {
                return Ok(());
            }
            match parent.subdirectory(name) {
                Ok(directory) => directory,
                Err(error) => {
                    // How it broke off is the visitor's own business.
                    let _ = visit(WalkEvent::Refused(real, error));
                    return Ok(());
                }
            }
        }
        _ => {
            let directory = Directory::open(&real).map_err(failed)?;
            let stat = FileStat::of(directory.file()).map_err(failed)?;
            let entry = TreeEntry { directory: &directory, name: OsStr::new(""), stat: &stat };
            if visit(WalkEvent::Entry(entry)).is_break() {
                return Ok(());
            }
            directory
        }
    };
    let limits = WalkLimits { one_file_system: true, reach };
    let mut walk = TreeWalk::below(directory, limits).map_err(failed)?;
    while let Some(event) = walk.next() {
        if !matches!(event, WalkEvent::OtherFileSystem(_)) && visit(event).is_break() {
            break;
        }
    }
    Ok(())
}
