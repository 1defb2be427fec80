//! The processes whose memory is meant, by number, control group or name. Each has a descriptor, so
//! that a later process with the same number is not taken for it.

use crate::{Error, ErrorKind, Result};
use machine::Root;
use machine::mounts::{self, Mount};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// `PF_KTHREAD` of linux/sched.h: the kernel's own threads have no memory of their own.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// The most groups that are looked into, itself included: more than any service manager makes.
const MAX_GROUPS: usize = 1 << 16;

/// A choice of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// These, by number.
    Processes(Vec<u32>),
    /// All in a control group and below: a path as in /proc/PID/cgroup, or a directory of
    /// the control group file system.
    Group(PathBuf),
    /// All whose executable's file name, `comm` or systemd unit is this name.
    Application(String),
    /// All that this user may look into.
    All,
}

/// A process with a descriptor.
#[derive(Debug)]
pub struct TargetProcess {
    /// Its number.
    pub pid: u32,
    /// Its `comm`.
    pub name: String,
    /// When it started, in ticks since boot: with the number it names a process for ever.
    pub start_ticks: u64,
    /// Readable once the process has ended.
    pub descriptor: OwnedFd,
}

impl TargetProcess {
    /// Whether the process still lives.
    #[must_use]
    pub fn lives(&self) -> bool {
        sys::poll::readable([Some(self.descriptor.as_fd())], Some(0)) == [false]
    }
}

/// Opens the processes of `selection` in the order of their numbers, except kernel threads and this
/// process.
///
/// # Errors
/// `Usage` for a process, group or name that is not there; `Impossible` for one that this
/// user may not look into.
pub fn find(root: &Root, selection: &Selection) -> Result<Vec<TargetProcess>> {
    let opened = match selection {
        Selection::Processes(pids) => {
            let mut pids = pids.clone();
            pids.sort_unstable();
            pids.dedup();
            return pids.into_iter().map(|pid| open_named(root, pid)).collect();
        }
        Selection::Group(group) => open_permitted(root, members(root, group)?)?,
        Selection::Application(name) => {
            let mut pids = processes(root)?;
            pids.retain(|pid| is_called(root, *pid, name));
            if pids.is_empty() {
                return Err(absent(format!("no process is called {name}")));
            }
            open_permitted(root, pids)?
        }
        Selection::All => return Ok(open_permitted(root, processes(root)?)?.targets),
    };
    // Some of a group may be closed to this user, but not all of it.
    match opened.refused {
        Some(error) if opened.targets.is_empty() => Err(error),
        _ => Ok(opened.targets),
    }
}

/// The targets that could be opened, and the first refusal.
struct OpenedTargets {
    targets: Vec<TargetProcess>,
    refused: Option<Error>,
}

fn open_permitted(root: &Root, mut pids: Vec<u32>) -> Result<OpenedTargets> {
    pids.sort_unstable();
    pids.dedup();
    pids.retain(|pid| *pid != std::process::id());
    let (mut targets, mut refused) = (Vec::new(), None);
    for pid in pids {
        match open_target(root, pid) {
            Ok(target) => targets.extend(target),
            Err(error) if error.kind == ErrorKind::Impossible => refused = refused.or(Some(error)),
            // It ended since it was listed.
            Err(error) if error.kind == ErrorKind::Usage => {}
            // Too many to be held at once, or the like.
            Err(error) => return Err(error),
        }
    }
    Ok(OpenedTargets { targets, refused })
}

/// Opens a process that the user named by its number.
fn open_named(root: &Root, pid: u32) -> Result<TargetProcess> {
    if pid == std::process::id() {
        return Err(absent(format!("{pid} is this very process")));
    }
    open_target(root, pid)?.ok_or_else(|| absent(format!("{pid} is a thread of the kernel")))
}

/// Opens a process; `None` for a kernel thread.
fn open_target(root: &Root, pid: u32) -> Result<Option<TargetProcess>> {
    let gone = |_| absent(format!("there is no process {pid}"));
    let descriptor = sys::pidfd::open(pid).map_err(|error| {
        if root.path(format!("/proc/{pid}/stat")).exists() { Error::from(error) } else { gone(()) }
    })?;
    let stat = root.read(format!("/proc/{pid}/stat")).map_err(|_| gone(()))?;
    let (name, flags, start_ticks) = parse_stat(&stat).ok_or_else(|| gone(()))?;
    if flags & KERNEL_THREAD != 0 {
        return Ok(None);
    }
    let target = TargetProcess { pid, name: name.to_owned(), start_ticks, descriptor };
    // What was read is that of the process behind the descriptor only if it lives still.
    if !target.lives() {
        return Err(gone(()));
    }
    let maps = root.path(format!("/proc/{pid}/maps"));
    match File::open(&maps) {
        Ok(_) => Ok(Some(target)),
        Err(source) => {
            let operation = format!("look into process {pid} ({name})");
            let reason = sys::plain_reason(&source);
            Err(Error::new(ErrorKind::Impossible, operation, reason))
        }
    }
}

/// `comm`, flags and start of /proc/PID/stat; `comm` may hold any character, also ")".
fn parse_stat(text: &str) -> Option<(&str, u64, u64)> {
    let (_, rest) = text.split_once('(')?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    // Counted from 1 in proc(5): the state is the 3rd, flags the 9th, the start the 22nd.
    let flags = fields.nth(6)?.parse().ok()?;
    let start_ticks = fields.nth(12)?.parse().ok()?;
    Some((name, flags, start_ticks))
}

/// The numbers of all processes.
fn processes(root: &Root) -> Result<Vec<u32>> {
    let directory = root.path("/proc");
    let failed = |source: std::io::Error| {
        let reason = sys::plain_reason(&source);
        Error::new(ErrorKind::Impossible, "list the processes in", reason).at(&directory)
    };
    let entries = std::fs::read_dir(&directory).map_err(failed)?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// Whether the process is called `name` by its executable, its `comm` or its systemd unit.
fn is_called(root: &Root, pid: u32, name: &str) -> bool {
    let file = |file: &str| root.read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let executable = std::fs::read_link(root.path(format!("/proc/{pid}/exe")));
    let file_name = executable.as_ref().ok().and_then(|path| path.file_name());
    file_name.is_some_and(|file_name| file_name == name)
        || file("comm").trim_end_matches('\n') == name
        || file("cgroup").lines().any(|line| in_unit(line, name))
}

/// Whether a line of /proc/PID/cgroup is in the unit `name`, or `name.service`.
fn in_unit(line: &str, name: &str) -> bool {
    let Some(path) = line.splitn(3, ':').nth(2) else {
        return false;
    };
    path.split('/').any(|part| {
        let unit = part.strip_suffix(".service").or(part.strip_suffix(".scope"));
        unit.is_some_and(|unit| part == name || unit == name)
    })
}

/// The processes in a group and below.
fn members(root: &Root, group: &Path) -> Result<Vec<u32>> {
    let mounts = mounts::read(root);
    let found = directories(&mounts, group)
        .into_iter()
        .find(|directory| root.path(directory).join("cgroup.procs").is_file());
    let Some(directory) = found else {
        let text = format!("there is no control group {}", group.display());
        return Err(absent(text));
    };
    Ok(machine::cgroup::members(&root.path(directory), MAX_GROUPS))
}

/// Where the group may be: it is a directory of a group file system itself, or a path below
/// one; that of the memory controller first.
fn directories(mounts: &[Mount], group: &Path) -> Vec<PathBuf> {
    let is_tree = |mount: &&Mount| mount.fs_type == "cgroup" || mount.fs_type == "cgroup2";
    let has_memory = |mount: &&Mount| {
        let mut options = mount.super_options.split(',');
        options.any(|option| option == "memory")
    };
    let as_written = mounts::behind(mounts, group).filter(is_tree);
    let relative = group.strip_prefix("/").unwrap_or(group);
    let (memory, others): (Vec<_>, Vec<_>) = mounts.iter().filter(is_tree).partition(has_memory);
    let below = |mount: &Mount| mount.mount_point.join(relative);
    let as_path = memory.into_iter().chain(others).map(below);
    as_written.map(|_| group.to_owned()).into_iter().chain(as_path).collect()
}

fn absent(text: String) -> Error {
    Error::new(ErrorKind::Usage, "find whose memory is meant", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_in_stat_may_hold_anything() {
        let rest = "S 1 2 3 4 5 4194304 6 7 8 9 10 11 12 13 14 15 16 17 4321 18";
        let text = format!("77 (a) b (c) {rest}");
        assert_eq!(parse_stat(&text), Some(("a) b (c", 4_194_304, 4321)));
        assert_eq!(parse_stat("77 (x) S 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn a_unit_is_known_with_and_without_its_kind() {
        let line = "1:name=systemd:/system.slice/postgresql@16.service/sub";
        assert!(in_unit(line, "postgresql@16"));
        assert!(in_unit(line, "postgresql@16.service"));
        assert!(!in_unit(line, "postgresql"));
        assert!(!in_unit(line, "system"));
        assert!(!in_unit("", "x"));
    }

    #[test]
    fn a_child_is_held_until_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let root = Root::system();
        let selection = Selection::Processes(vec![child.id(), child.id()]);
        let targets = find(&root, &selection).unwrap();
        assert_eq!(targets.len(), 1);
        assert!(targets[0].lives());
        let all = find(&root, &Selection::All).unwrap();
        let again = all.iter().find(|target| target.pid == child.id()).unwrap();
        assert_eq!(again.start_ticks, targets[0].start_ticks);
        assert!(all.iter().all(|target| target.pid != std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!targets[0].lives());
        let error = find(&root, &selection).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
    }

    #[test]
    fn a_program_is_found_by_the_name_of_its_file() {
        let folder = testkit::TempDir::new();
        let program = folder.join("unusual-name-of-a-program");
        std::fs::copy("/bin/sleep", &program).unwrap();
        let start = || std::process::Command::new(&program).arg("1000").spawn();
        let mut child = loop {
            match start() {
                // A child that a test beside this one starts may hold the copy open until its exec.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
                started => break started.unwrap(),
            }
        };
        let comm = || std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
        while !comm().starts_with("unusual-name-of") {
            std::thread::yield_now();
        }
        let root = Root::system();
        let by_name = |name: &str| find(&root, &Selection::Application(name.to_owned()));
        let found = by_name("unusual-name-of-a-program");
        // The kernel keeps 15 bytes of the name as `comm`.
        let by_comm = by_name("unusual-name-of");
        let absent = by_name("unusual-name");
        child.kill().unwrap();
        child.wait().unwrap();
        for targets in [found.unwrap(), by_comm.unwrap()] {
            let pids: Vec<u32> = targets.iter().map(|target| target.pid).collect();
            assert_eq!(pids, [child.id()]);
        }
        assert_eq!(absent.unwrap_err().kind, ErrorKind::Usage);
    }

    #[test]
    fn a_group_is_found_by_directory_and_by_path() {
        let group = match testkit::Cgroup::v1_memory(64 << 20) {
            Ok(group) => group,
            Err(need) => return testkit::skip(need),
        };
        let mut child = group.spawn(group.command("sleep").arg("1000")).unwrap();
        let root = Root::system();
        let text = std::fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap();
        let line = text.lines().find(|line| line.contains(":memory:")).unwrap();
        let path = PathBuf::from(line.splitn(3, ':').nth(2).unwrap());
        assert_eq!(path.file_name(), group.path().file_name());
        let found = [path, group.path().to_owned()]
            .map(|path| find(&root, &Selection::Group(path)).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        for targets in found {
            assert_eq!(targets.len(), 1);
            assert_eq!(targets[0].pid, child.id());
        }
        let absent = find(&root, &Selection::Group("/no/such/group".into()));
        assert_eq!(absent.unwrap_err().kind, ErrorKind::Usage);
    }
}
