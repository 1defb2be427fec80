//! The way from a directory down to one below it, of any depth, by few descriptors.
//!
//! Only the deepest directories of the way are held open. One that is come back to is opened as the
//! `..` of the directory that is left, and must be the inode that it was: a directory that another
//! user moved meanwhile leads nowhere else. If it is not, the way is walked again from the top.
//! No path is ever used, so the depth is not bounded by the length of a path.

use super::{Directory, refused};
use crate::error::{Error, Result};
use rustix::fs::{Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::MetadataExt;

const OPERATION: &str = "open the directory again";

/// A directory and the way down to one below it.
#[derive(Debug)]
pub struct DirectoryStack {
    top: Directory,
    levels: Vec<StackLevel>,
    /// How many levels may be open; the top is open besides.
    most_open: usize,
    /// How many of the deepest levels are open.
    open: usize,
}

#[derive(Debug)]
struct StackLevel {
    name: OsString,
    device: u64,
    inode: u64,
    /// Open for the deepest levels only.
    directory: Option<Directory>,
}

impl DirectoryStack {
    /// Begins at `top`. Besides it at most `most_open` directories are open, and at least one.
    #[must_use]
    pub fn new(top: Directory, most_open: usize) -> Self {
        Self { top, levels: Vec::new(), most_open: most_open.max(1), open: 0 }
    }

    /// How many directories below the top the current one is.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The current directory.
    ///
    /// # Errors
    /// After a [`DirectoryStack::leave`] that failed.
    pub fn current(&self) -> Result<&Directory> {
        match self.levels.last() {
            None => Ok(&self.top),
            Some(level) => level.directory.as_ref().ok_or_else(|| moved().at(&level.name)),
        }
    }

    /// Goes down into `name`, a directory and not a link.
    ///
    /// # Errors
    /// As [`Directory::subdirectory`]; the current directory is the same then.
    pub fn enter(&mut self, name: &OsStr) -> Result<&Directory> {
        let directory = loop {
            match self.current()?.subdirectory(name) {
                // Others may have taken the descriptors that were counted on.
                Err(error) if error.number() == Some(libc::EMFILE) && self.open > 1 => {
                    self.close_one();
                }
                opened => break opened?,
            }
        };
        let about = directory.metadata_of_itself()?;
        let (device, inode) = (about.dev(), about.ino());
        self.levels.push(StackLevel { name: name.to_owned(), device, inode, directory: None });
        self.hold(directory);
        self.current()
    }

    /// Goes up to the directory above, unless the current one is the top.
    ///
    /// # Errors
    /// Where the directory above cannot be found again. It is the current one all the same: it
    /// cannot be used, but left.
    pub fn leave(&mut self) -> Result<()> {
        let Some(left) = self.levels.pop() else {
            return Ok(());
        };
        self.open = self.open.saturating_sub(usize::from(left.directory.is_some()));
        let Some(level) = self.levels.last().filter(|level| level.directory.is_none()) else {
            return Ok(());
        };
        let child = left.directory;
        let above = child.and_then(|child| level.above(&child)).map_or_else(|| self.again(), Ok)?;
        self.hold(above);
        Ok(())
    }

    /// Keeps `directory` as the deepest level's, and closes the highest one if it is one too many.
    fn hold(&mut self, directory: Directory) {
        if let Some(level) = self.levels.last_mut() {
            level.directory = Some(directory);
            self.open += 1;
        }
        if self.open > self.most_open {
            self.close_one();
        }
    }

    fn close_one(&mut self) {
        let highest = self.levels.len() - self.open;
        if let Some(level) = self.levels.get_mut(highest) {
            level.directory = None;
            self.open -= 1;
        }
    }

    /// The deepest level, walked to from the top.
    fn again(&self) -> Result<Directory> {
        let mut found: Option<Directory> = None;
        for level in &self.levels {
            let next = found.as_ref().unwrap_or(&self.top).subdirectory(&level.name)?;
            if !level.is(&next)? {
                return Err(moved().at(next.path));
            }
            found = Some(next);
        }
        found.ok_or_else(moved)
    }
}

impl StackLevel {
    /// This level as the directory above `child`, if it is.
    fn above(&self, child: &Directory) -> Option<Directory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&child.file, "..", flags, Mode::empty());
        let file: File = opened.ok()?.into();
        let mut path = child.path.clone();
        path.pop();
        // The way to the child was exposed at the child itself, or further up.
        let exposure = child.exposure.clone().filter(|exposure| exposure.path != child.path);
        let directory = Directory { file, path, exposure };
        self.is(&directory).is_ok_and(|is| is).then_some(directory)
    }

    fn is(&self, directory: &Directory) -> Result<bool> {
        let about = directory.metadata_of_itself()?;
        Ok((self.device, self.inode) == (about.dev(), about.ino()))
    }
}

fn moved() -> Error {
    refused(OPERATION, "it was moved or replaced meanwhile")
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    fn chain(depth: usize, most_open: usize) -> (TempDir, DirectoryStack) {
        let parent = TempDir::new();
        let mut held = Directory::open(parent.path()).unwrap();
        for _ in 0..depth {
            held = held.create_subdirectory(name("below"), 0o700).unwrap();
        }
        let stack = DirectoryStack::new(Directory::open(parent.path()).unwrap(), most_open);
        (parent, stack)
    }

    fn inode(stack: &DirectoryStack) -> u64 {
        stack.current().unwrap().metadata_of_itself().unwrap().ino()
    }

    #[test]
    fn it_comes_back_to_the_directories_that_it_left() {
        let (_parent, mut stack) = chain(20, 3);
        let mut inodes = vec![inode(&stack)];
        for depth in 1..=20 {
            stack.enter(name("below")).unwrap();
            assert_eq!(stack.depth(), depth);
            assert!(stack.levels.iter().filter(|level| level.directory.is_some()).count() <= 3);
            inodes.push(inode(&stack));
        }
        assert!(stack.enter(name("nothing")).is_err());
        while stack.depth() > 0 {
            assert_eq!(inodes.pop(), Some(inode(&stack)));
            let path = stack.current().unwrap().path().to_owned();
            assert_eq!(path.metadata().unwrap().ino(), inode(&stack), "{}", path.display());
            stack.leave().unwrap();
        }
        assert_eq!(inodes, [inode(&stack)]);
    }

    #[test]
    fn a_directory_that_is_moved_meanwhile_leads_nowhere_else() {
        let (parent, mut stack) = chain(6, 1);
        let below = |depth: usize| parent.path().join(["below"; 6][..depth].join("/"));
        let inode_at = |path: std::path::PathBuf| path.metadata().unwrap().ino();
        std::fs::create_dir(parent.join("elsewhere")).unwrap();
        for _ in 0..6 {
            stack.enter(name("below")).unwrap();
        }
        // The `..` of the sixth is another directory now: the fifth is found from the top.
        std::fs::rename(below(6), parent.join("elsewhere/sixth")).unwrap();
        stack.leave().unwrap();
        assert_eq!(inode(&stack), inode_at(below(5)));
        stack.leave().unwrap();
        assert_eq!(inode(&stack), inode_at(below(4)));
        // The fourth and the second are moved, and another one gets the second's name.
        std::fs::rename(below(4), parent.join("elsewhere/fourth")).unwrap();
        std::fs::rename(below(2), parent.join("elsewhere/second")).unwrap();
        std::fs::create_dir_all(below(4)).unwrap();
        for _ in 0..2 {
            assert!(stack.leave().is_err());
            assert!(stack.current().is_err() && stack.enter(name("below")).is_err());
        }
        stack.leave().unwrap();
        assert_eq!((stack.depth(), inode(&stack)), (1, inode_at(below(1))));
        stack.leave().unwrap();
        assert_eq!((stack.depth(), inode(&stack)), (0, inode_at(below(0))));
    }
}
