//! The lab's own directory with its own swap area. A process of its own makes both, keeps them
//! and removes them when its input ends, so that they go also when the lab is killed.

use crate::held_directory::start_keeper;
use crate::{Error, Host, Result};
use model::Bytes;
use std::path::{Path, PathBuf};
use std::process::Child;
use sys::directory::Directory;

/// A tenth of the disk's free space at least is left to others.
const MOST_OF_FREE: f64 = 0.9;
/// The swap file's name in it.
pub const SWAP: &str = "swap";

/// The directory and its swap, which is switched off and removed with it on drop.
#[derive(Debug)]
pub struct Workplace {
    keeper: Child,
    directory: PathBuf,
}

impl Workplace {
    /// A directory below `disk` with `bytes` of swap, which fill before all others. The lab's other
    /// files will have `beside` bytes.
    ///
    /// # Errors
    /// `Impossible` where there is no room, or the file system holds no swap.
    pub fn make(host: &Host, disk: &Path, bytes: Bytes, beside: Bytes) -> Result<Self> {
        let system = sys::file::file_system_of(disk)?;
        let needed = bytes.0 + beside.0;
        let place = disk.display();
        if system.in_ram || system.network {
            let text = format!("{place} is no disk of this machine: no swap can be put there");
            return Err(Error::impossible(text));
        }
        if needed as f64 > system.free_bytes as f64 * MOST_OF_FREE {
            let (needed, free) = (Bytes(needed), Bytes(system.free_bytes));
            let text = format!("{place} has {free} free, and {needed} are needed");
            return Err(Error::impossible(text));
        }
        // Absolute: the applications start in directories of their own.
        let disk = disk.canonicalize().map_err(|error| refused(&sys::plain_reason(&error)))?;
        check(&disk)?;
        let directory = disk.join(format!("terrace-lab-{}", std::process::id()));
        let size = bytes.0.to_string();
        let words = ["workplace".into(), directory.clone().into(), size.into()];
        let (keeper, answer) = start_keeper(host, words)?;
        // From here on `Drop` ends it.
        let made = Self { keeper, directory };
        answer.map(|()| made).map_err(|why| refused(&why))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The swap file.
    pub fn swap(&self) -> PathBuf {
        self.directory.join(SWAP)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Refuses a place that another user can exchange: swap is switched on by its path.
fn check(disk: &Path) -> Result<()> {
    let opened = Directory::open(disk)?;
    let Some(exposure) = opened.exposure() else {
        return Ok(());
    };
    let why = format!("{}: {}", exposure.path.display(), exposure.why);
    Err(refused(&why).hint("--disk takes a directory that no other user can move, as /var/tmp"))
}

fn refused(why: &str) -> Error {
    Error::impossible(format!("cannot have swap of the lab's own: {why}"))
}
