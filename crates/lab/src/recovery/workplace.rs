//! The lab's own directory with its own swap area, and the one on the flash. A process of its own
//! makes them, keeps them, and removes them with all that is attached and mounted there when its
//! input ends, so that they go also when the lab is killed.

use super::plan::{RecoveryPlan, whole};
use crate::held_directory::{complaint, start_keeper};
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
    /// A directory on the plan's disk with its swap, which fills before all other, and one on its
    /// flash.
    ///
    /// # Errors
    /// `Impossible` where there is no room, or the file system holds no swap.
    pub fn make(host: &Host, plan: &RecoveryPlan) -> Result<Self> {
        let system = sys::file::file_system_of(&plan.disk)?;
        if system.in_ram || system.network {
            let place = plan.disk.display();
            let text = format!("{place} is no disk of this machine: no swap can be put there");
            return Err(Error::impossible(text));
        }
        check_room(&plan.disk, Bytes(plan.swap_bytes().0 + plan.file_bytes().0))?;
        // Absolute: the applications start in directories of their own.
        let disk = whole(&plan.disk)?;
        check(&disk, "--disk")?;
        let directory = disk.join(format!("terrace-lab-{}", std::process::id()));
        let size = plan.swap_bytes().0.to_string();
        let mut words = vec!["workplace".into(), directory.clone().into(), size.into()];
        if let Some(flash) = &plan.flash {
            check_room(&flash.directory, flash.cache_bytes)?;
            check(&flash.directory, "--flash")?;
            words.extend(["--flash".into(), flash.directory.clone().into()]);
        }
        let (keeper, answer) = start_keeper(host, words)?;
        // From here on `Drop` ends it.
        let made = Self { keeper, directory };
        answer.map(|()| made).map_err(|why| refused(&why))
    }

    /// Waits until all of it is gone.
    ///
    /// # Errors
    /// What is still in use.
    pub fn end(mut self) -> Result<()> {
        drop(self.keeper.stdin.take());
        match self.keeper.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => {
                let (place, why) = (self.directory.display(), complaint(&mut self.keeper));
                Err(Error::failed(format!("{place} could not be removed: {why}")))
            }
        }
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

fn check_room(place: &Path, needed: Bytes) -> Result<()> {
    let free = Bytes(sys::file::file_system_of(place)?.free_bytes);
    if needed.0 as f64 <= free.0 as f64 * MOST_OF_FREE {
        return Ok(());
    }
    let text = format!("{} has {free} free, and {needed} are needed", place.display());
    Err(Error::impossible(text))
}

/// Refuses a place that another user can exchange: swap is switched on by its path.
fn check(place: &Path, option: &str) -> Result<()> {
    let opened = Directory::open(place)?;
    let Some(exposure) = opened.exposure() else {
        return Ok(());
    };
    let why = format!("{}: {}", exposure.path.display(), exposure.why);
    let hint = format!("{option} takes a directory that no other user can move, as /var/tmp");
    Err(refused(&why).hint(hint))
}

fn refused(why: &str) -> Error {
    Error::impossible(format!("cannot have a directory of the lab's own: {why}"))
}
