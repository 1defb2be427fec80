//! What both scenes need: a program whose set is in swap, the restore, and what the kernel
//! counts. Whatever is started here ends with its handle.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use testkit::WorkingSet;

use crate::bench::peer::Peer;
use crate::error::Error;
use crate::process::Running;

/// A set is written to a slow disk within this.
const EVICT_LIMIT: Duration = Duration::from_secs(300);

/// The programs, and how many processors there are.
pub(super) struct Host {
    pub(super) terrace: Peer,
    pub(super) processors: usize,
}

impl Host {
    /// Starts a program with a set of `mib`, written in a scattered order.
    pub(super) fn owner(&self, mib: u64) -> Result<WorkingSet, Error> {
        WorkingSet::start(&self.terrace.program, mib, "scattered").map_err(failed)
    }

    /// Evicts the set of `owner`.
    pub(super) fn evict(&self, owner: &WorkingSet) -> Result<(), Error> {
        let pid = owner.pid().to_string();
        self.terrace.run(&["warm", "evict", &pid], EVICT_LIMIT).map(drop)
    }

    /// Starts a restore of the set of `owner`.
    pub(super) fn restore(&self, owner: &WorkingSet, options: &[&str]) -> Result<Restore, Error> {
        let pid = owner.pid().to_string();
        let words = ["warm", "restore", "--pid", &pid, "--only", "anonymous"];
        let mut command = Command::new(&self.terrace.program);
        command.args(words).args(options).arg("--json");
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        Running::start(command)
            .map(Restore)
            .map_err(|error| failed(format!("cannot start the restore: {error}")))
    }
}

/// Bytes of a process that are in swap.
pub(super) fn swapped_bytes(pid: u32) -> Result<u64, Error> {
    bytes_in(Path::new(&format!("/proc/{pid}/status")), "VmSwap:")
}

/// How many pages of `owner` are not what was written.
pub(super) fn wrong_pages(owner: &mut WorkingSet) -> Result<f64, Error> {
    owner.wrong_pages().map(|pages| pages as f64).map_err(failed)
}

/// A restore that runs; ended on drop.
pub(super) struct Restore(Running);

impl Restore {
    pub(super) fn runs(&mut self) -> bool {
        self.0.is_alive()
    }

    /// Waits for its end; why it stopped, as its report says.
    pub(super) fn stop_reason(&mut self) -> Result<String, Error> {
        // Its time is measured: to the end of its output, not to the next look at it.
        let mut text = String::new();
        if let Some(mut output) = self.0.child.stdout.take() {
            output.read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
        }
        self.0.child.wait().map_err(|error| failed(error.to_string()))?;
        let report: Value = serde_json::from_str(&text).unwrap_or_default();
        let stop = report["result"]["done"]["stop"].as_str();
        stop.map(str::to_owned).ok_or_else(|| failed("the restore gave no report".to_owned()))
    }
}

/// What `/proc/meminfo` says of `name`, which ends in a colon, in bytes.
pub(super) fn meminfo_bytes(name: &str) -> Result<u64, Error> {
    bytes_in(Path::new("/proc/meminfo"), name)
}

/// How many processes the kernel has killed for memory since the machine's start.
pub(super) fn oom_kills() -> Result<u64, Error> {
    number_in(Path::new("/proc/vmstat"), "oom_kill ")
}

/// The value of the line that begins with `name`, which is in KiB, in bytes.
fn bytes_in(path: &Path, name: &str) -> Result<u64, Error> {
    Ok(number_in(path, name)? * 1024)
}

fn number_in(path: &Path, name: &str) -> Result<u64, Error> {
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| Error::Malformed {
        what: "a file of the kernel",
        why: format!("no {name} in {}", path.display()),
    })
}

fn failed(what: String) -> Error {
    Error::Program { program: "bench warm beside".to_owned(), what }
}
