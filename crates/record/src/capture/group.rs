//! A control group for the command alone, so that its CPU time, pressure and I/O are counted apart
//! from those of its neighbours.
//!
//! Without a service manager root makes a child of the own group in the tree of version 2, and
//! removes it at the end. Processes that are still in it then go back to the parent. A service
//! manager is asked for a transient scope instead: its tree is never changed. Limits are never set.

use machine::cgroup::{Controller, locate};
use machine::{Root, mounts};
use model::recording::SourceState;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Groups of this program are named so, with the recorder's number after it.
const PREFIX: &str = "terrace-";
/// How often removal is tried again while members are being moved out: a member may have a
/// child at that moment.
const REMOVAL_TRIES: u32 = 50;
/// Between two tries.
const REMOVAL_PAUSE: Duration = Duration::from_millis(2);
/// How often the service manager is looked after: it moves the process when it gets to it.
const SCOPE_TRIES: u32 = 100;
/// Between two looks.
const SCOPE_PAUSE: Duration = Duration::from_millis(5);
/// There where systemd manages the machine (`sd_booted(3)`).
const SERVICE_MANAGER: &str = "/run/systemd/system";

/// The group of a command; on drop it is removed, if it was made here.
#[derive(Debug)]
pub(super) struct OwnGroup {
    /// `None` for a scope, which goes away by itself with its last member.
    _made: Option<Made>,
}

#[derive(Debug)]
struct Made {
    parent: PathBuf,
    directory: PathBuf,
}

/// Gives the process `pid`, a child of ours that waits, a group of its own. The sight says why
/// it has none.
pub(super) fn make(pid: u32) -> (Option<OwnGroup>, SourceState) {
    let root = Root::system();
    if sys::process::effective_uid() != 0 {
        let why = "only root may make a control group for the command";
        return (None, SourceState::closed(why, Some("sudo")));
    }
    let made = if Path::new(SERVICE_MANAGER).is_dir() {
        scope(&root, pid)
    } else {
        child_of_own(&root, pid)
    };
    match made {
        Ok(group) => (Some(group), SourceState::Open),
        Err(why) => (None, SourceState::closed(why, None)),
    }
}

/// Whether [`make`] would find a place for a group: an empty one is made and removed. Where a
/// service manager would be asked for a scope, its tree is left alone.
///
/// # Errors
/// Why not, and the error number if the kernel gave one.
pub(super) fn examine() -> Result<(), (String, Option<i32>)> {
    if sys::process::effective_uid() != 0 {
        return Err(("only root may make a control group for the command".to_owned(), None));
    }
    if Path::new(SERVICE_MANAGER).is_dir() {
        return Ok(());
    }
    let parent = own_directory(&Root::system());
    let parent = parent.ok_or(("no cgroup2 tree shows the own group".to_owned(), None))?;
    let directory = group_directory(&parent, 0);
    let refused = |error: std::io::Error| {
        let why = format!("no control group can be made: {}", sys::plain_reason(&error));
        (why, error.raw_os_error())
    };
    fs::create_dir(&directory).map_err(refused)?;
    fs::remove_dir(&directory).map_err(refused)
}

/// The group of the recorder's command `pid`.
fn group_directory(parent: &Path, pid: u32) -> PathBuf {
    parent.join(format!("{PREFIX}{}-{pid}", std::process::id()))
}

/// A child group next to our own processes, in the tree of version 2.
fn child_of_own(root: &Root, pid: u32) -> Result<OwnGroup, String> {
    let parent = &own_directory(root).ok_or("no cgroup2 tree shows the own group")?;
    remove_leftovers(parent);
    let directory = group_directory(parent, pid);
    let words = |error| format!("no control group can be made: {}", sys::plain_reason(&error));
    fs::create_dir(&directory).map_err(words)?;
    // From here on `Drop` removes it.
    let group =
        OwnGroup { _made: Some(Made { parent: parent.clone(), directory: directory.clone() }) };
    fs::write(directory.join("cgroup.procs"), pid.to_string()).map_err(words)?;
    Ok(group)
}

/// The directory of our own group in the tree of version 2; `None` where it cannot be seen: a
/// command is never moved to another branch.
fn own_directory(root: &Root) -> Option<PathBuf> {
    let membership = root.read("/proc/self/cgroup").ok()?;
    let place = locate(&mounts::read(root), &membership, Controller::Unified)?;
    let own = place.groups().into_iter().next()?;
    let mut lines = membership.lines();
    let path = lines.find_map(|line| line.strip_prefix("0::"))?;
    Path::new(path).ends_with(own.path.trim_start_matches('/')).then_some(own.directory)
}

/// Removes the empty groups of recorders that were killed. One in use cannot be removed: the
/// kernel refuses it.
fn remove_leftovers(parent: &Path) {
    for directory in groups_of_the_dead(parent) {
        let _ = fs::remove_dir(directory);
    }
}

/// The groups next to the own one whose recorders are gone; with `remove`, those that could be
/// removed.
pub(super) fn of_the_dead(remove: bool) -> Vec<PathBuf> {
    if sys::process::effective_uid() != 0 || Path::new(SERVICE_MANAGER).is_dir() {
        return Vec::new();
    }
    let Some(parent) = own_directory(&Root::system()) else {
        return Vec::new();
    };
    let mut found = groups_of_the_dead(&parent);
    found.retain(|directory| !remove || fs::remove_dir(directory).is_ok());
    found
}

fn groups_of_the_dead(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let is_left = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let recorder = name.to_str().and_then(recorder_of);
        recorder.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
    };
    entries.filter(is_left).map(|entry| entry.path()).collect()
}

/// The recorder that made the group of this name.
fn recorder_of(name: &str) -> Option<u32> {
    let (recorder, command) = name.strip_prefix(PREFIX)?.split_once('-')?;
    command.parse::<u32>().ok()?;
    recorder.parse().ok()
}

impl Drop for Made {
    fn drop(&mut self) {
        for _ in 0..REMOVAL_TRIES {
            let members = fs::read_to_string(self.directory.join("cgroup.procs"));
            for pid in members.unwrap_or_default().lines() {
                // It may have ended just now.
                let _ = fs::write(self.parent.join("cgroup.procs"), pid);
            }
            if fs::remove_dir(&self.directory).is_ok() || !self.directory.exists() {
                return;
            }
            std::thread::sleep(REMOVAL_PAUSE);
        }
        // The command made groups below it, which stay. The next recorder removes this group once
        // they are gone.
    }
}

/// A transient scope of the service manager, which puts the process into it.
fn scope(root: &Root, pid: u32) -> Result<OwnGroup, String> {
    let name = format!("{PREFIX}{}-{pid}.scope", std::process::id());
    let output = Command::new("busctl")
        .args(["--quiet", "call", "org.freedesktop.systemd1"])
        .args(["/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"])
        .args(["StartTransientUnit", "ssa(sv)a(sa(sv))", &name, "fail"])
        // Two properties: whom it holds, and that a failure does not keep it.
        .args(["2", "PIDs", "au", "1", &pid.to_string()])
        .args(["CollectMode", "s", "inactive-or-failed", "0"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("busctl cannot run: {}", sys::plain_reason(&error)))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let line = text.lines().next().unwrap_or("no reason given");
        return Err(format!("the service manager gives no scope: {line}"));
    }
    for _ in 0..SCOPE_TRIES {
        let membership = root.read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        if membership.lines().any(|line| line.ends_with(&name)) {
            return Ok(OwnGroup { _made: None });
        }
        std::thread::sleep(SCOPE_PAUSE);
    }
    Err("the service manager did not move the command into its scope in time".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_program_are_its_groups() {
        assert_eq!(recorder_of("terrace-12-34"), Some(12));
        for name in ["terrace-12", "terrace-a-3", "terrace-12-x", "system.slice", "terrace-"] {
            assert_eq!(recorder_of(name), None, "{name}");
        }
    }
}
