//! The lab's own directory with its own swap area. A process of its own makes both, keeps them
//! and removes them when its input ends, so that they go also when the lab is killed.

use crate::{Error, Host, Result};
use model::Bytes;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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
        let mut words = host.programs.lab.command_line();
        words.push("workplace".into());
        words.extend([directory.clone().into(), bytes.0.to_string().into()]);
        let keeper = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is the lab's to hear.
            .process_group(0)
            .spawn()
            .map_err(|error| refused(&sys::plain_reason(&error)))?;
        // From here on `Drop` ends it.
        let mut made = Self { keeper, directory };
        let mut line = String::new();
        if let Some(output) = made.keeper.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        match line.as_str() {
            "ready\n" => Ok(made),
            _ => Err(refused(&made.complaint())),
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

    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(errors) = self.keeper.stderr.take() {
            let _ = errors.take(4096).read_to_string(&mut text);
        }
        let line = text.lines().next().unwrap_or("it ended without a word");
        line.trim_start_matches("terrace: lab-process: ").to_owned()
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
