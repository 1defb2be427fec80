//! What runs already and is to be watched: found, named, and how its end is noticed.
//!
//! A group may be given by its directory or by its path below a hierarchy; version 2 is
//! looked at first, then the hierarchies of version 1 whose controllers say most. A unit is
//! its group: looked for where service managers put it, else the manager is asked.

use super::Target;
use super::sampler::Watched;
use crate::collect::Scope;
use crate::tasks::TaskScope;
use crate::{Error, ErrorKind, Result};
use machine::mounts::Mount;
use machine::{Root, cgroup, mounts};
use model::recording::Subject;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The controllers of version 1 in whose hierarchies groups are looked for, in this order.
const CONTROLLERS: [&str; 4] = ["memory", "cpu", "blkio", "name=systemd"];
/// Where service managers put system units.
const SYSTEM_SLICE: &str = "system.slice";

/// Is there where systemd is the service manager (sd_booted).
const MANAGER_RUNS: &str = "/run/systemd/system";
/// The most groups below one group that are searched for members.
const MAX_GROUPS: usize = 10_000;

/// How often a program that is being loaded is looked at again, and after how long: loading
/// takes a millisecond, on a crowded machine many. Some programs have no words for ever.
const LOADING_LOOKS: u32 = 20;
const LOADING_PAUSE: Duration = Duration::from_millis(5);

/// A target that was found.
#[derive(Debug)]
pub(super) struct FoundTarget {
    pub subject: Subject,
    pub watched: Watched,
    pub end: TargetEnd,
}

/// How the end of a target is noticed.
#[derive(Debug)]
pub(super) enum TargetEnd {
    /// It has none.
    Never,
    /// The process ends.
    Process(OwnedFd),
    /// The directory of the group is removed.
    Group(PathBuf),
}

/// Finds a target.
///
/// # Errors
/// [`ErrorKind::Usage`] where it is not there.
pub(super) fn find(target: &Target) -> Result<FoundTarget> {
    let root = Root::system();
    match target {
        Target::Machine => Ok(FoundTarget {
            subject: Subject::Machine,
            watched: Watched {
                scope: Scope { limited_groups: true, ..Scope::default() },
                tree: Some(TaskScope::default()),
                traced: None,
            },
            end: TargetEnd::Never,
        }),
        Target::Process(pid) => process(&root, *pid),
        Target::Group(path) => {
            let (name, directory) = group(&root, path).ok_or_else(|| {
                Error::new(ErrorKind::Usage, "watch the group", "there is no such group").at(path)
            })?;
            Ok(group_found(name, None, directory))
        }
        Target::Unit(name) => {
            let (path, directory) = unit(&root, name).ok_or_else(|| {
                let why = if Path::new(MANAGER_RUNS).exists() {
                    "no such unit runs here"
                } else {
                    "systemd does not run here; --cgroup and --pid need none"
                };
                Error::new(ErrorKind::Usage, format!("watch the unit {name}"), why)
            })?;
            Ok(group_found(path, Some(name.clone()), directory))
        }
    }
}

fn process(root: &Root, pid: u32) -> Result<FoundTarget> {
    let end = sys::pidfd::open(pid).map_err(|error| {
        let why = sys::plain_reason(&error.source);
        Error::new(ErrorKind::Usage, format!("watch the process {pid}"), why)
    })?;
    let argv = command_line(root, pid);
    Ok(FoundTarget {
        subject: Subject::Process { pid, argv },
        watched: Watched {
            scope: Scope { processes: vec![pid], ..Scope::default() },
            tree: Some(TaskScope { processes: Some(vec![pid]), reaper: None }),
            traced: Some(vec![pid]),
        },
        end: TargetEnd::Process(end),
    })
}

/// The words that a process was started with; its name where it has none, as threads of the
/// kernel and ended processes.
fn command_line(root: &Root, pid: u32) -> Vec<String> {
    let words = || -> Vec<String> {
        let bytes = root.read_bytes(format!("/proc/{pid}/cmdline"));
        bytes
            .unwrap_or_default()
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty())
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    };
    // A program that is being loaded has neither its words yet nor its name.
    let is_program = || root.path(format!("/proc/{pid}/exe")).read_link().is_ok();
    for _ in 0..LOADING_LOOKS {
        let argv = words();
        if !argv.is_empty() {
            return argv;
        }
        if !is_program() {
            break;
        }
        std::thread::sleep(LOADING_PAUSE);
    }
    let name = root.read(format!("/proc/{pid}/comm")).unwrap_or_default();
    vec![name.trim().to_owned()]
}

fn group_found(path: String, unit: Option<String>, directory: PathBuf) -> FoundTarget {
    let members = Some(cgroup::members(&directory, MAX_GROUPS));
    FoundTarget {
        subject: Subject::Group { path, unit },
        watched: Watched {
            scope: Scope { group: Some(directory.clone()), ..Scope::default() },
            tree: Some(TaskScope { processes: members.clone(), reaper: None }),
            traced: members,
        },
        end: TargetEnd::Group(directory),
    }
}

/// The group's path below its hierarchy, and its directory.
fn group(root: &Root, asked: &Path) -> Option<(String, PathBuf)> {
    let points = mount_points(&mounts::read(root));
    let name = |below: &Path| Path::new("/").join(below).display().to_string();
    if let Some(below) = points.iter().find_map(|point| asked.strip_prefix(point).ok()) {
        return is_group(asked).then(|| (name(below), asked.to_owned()));
    }
    let below = asked.strip_prefix("/").unwrap_or(asked);
    // Not out of the hierarchy by "..".
    let plain = |part| matches!(part, std::path::Component::Normal(_));
    if !below.components().all(plain) {
        return None;
    }
    let directories = points.iter().map(|point| point.join(below));
    let directory = directories.into_iter().find(|directory| is_group(directory))?;
    Some((name(below), directory))
}

/// Where hierarchies are mounted, the one that is asked first at the front.
fn mount_points(mounts: &[Mount]) -> Vec<PathBuf> {
    let shows = |mount: &&Mount, controller: &str| {
        let mut options = mount.super_options.split(',');
        mount.fs_type == "cgroup" && options.any(|option| option == controller)
    };
    let unified = mounts.iter().filter(|mount| mount.fs_type == "cgroup2");
    let old =
        CONTROLLERS.iter().flat_map(|name| mounts.iter().filter(move |mount| shows(mount, name)));
    let points = unified.chain(old).map(|mount| mount.mount_point.clone());
    points.collect()
}

fn is_group(directory: &Path) -> bool {
    directory.join("cgroup.procs").is_file()
}

fn unit(root: &Root, name: &str) -> Option<(String, PathBuf)> {
    let full = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
    if full.contains('/') {
        return None;
    }
    let usual = Path::new(SYSTEM_SLICE).join(&full);
    group(root, &usual).or_else(|| group(root, &asked_of_manager(&full)?))
}

/// The group that the service manager knows for a unit.
fn asked_of_manager(name: &str) -> Option<PathBuf> {
    let output = Command::new("systemctl")
        .args(["show", "--property", "ControlGroup", "--value", "--", name])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let path = text.trim();
    (output.status.success() && path.len() > 1).then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    #[test]
    fn a_group_is_found_by_its_path_in_the_first_hierarchy_that_has_it() {
        let tree = FakeRoot::bare();
        let base = tree.path().display().to_string();
        let at = |path: &str| PathBuf::from(format!("{base}{path}"));
        let mounts = format!(
            "35 31 0:32 / {base}/memory rw - cgroup cgroup rw,memory\n\
             41 31 0:38 / {base}/unified rw - cgroup2 cgroup2 rw\n"
        );
        let tree = tree
            .file("/proc/self/mountinfo", mounts)
            .file("/memory/app/cgroup.procs", "7\n")
            .file("/memory/app/below/cgroup.procs", "8\n0\n")
            .file("/unified/system.slice/db.service/cgroup.procs", "");
        let root = Root::at(tree.path());
        let expected = Some(("/app".to_owned(), at("/memory/app")));
        assert_eq!(group(&root, Path::new("/app")), expected);
        assert_eq!(group(&root, Path::new("app")), expected);
        assert_eq!(group(&root, &at("/memory/app")), expected);
        assert_eq!(group(&root, Path::new("/none")), None);
        assert_eq!(group(&root, Path::new("../memory/app")), None);
        let (path, _) = unit(&root, "db").unwrap();
        assert_eq!(path, "/system.slice/db.service");
        let members = cgroup::members(&at("/memory/app"), MAX_GROUPS);
        assert_eq!(members, [7, 8]);
    }

    #[test]
    fn an_empty_group_waits_for_members_and_is_not_every_process() {
        let tree = FakeRoot::bare().file("/g/cgroup.procs", "");
        let found = group_found("/g".to_owned(), None, tree.path().join("g"));
        assert_eq!(found.watched.traced, Some(Vec::new()));
        assert_eq!(found.watched.tree.unwrap().processes, Some(Vec::new()));
    }

    #[test]
    fn what_is_not_there_is_an_error_of_usage() {
        for target in [
            Target::Process(u32::MAX),
            Target::Group("/terrace-has-no-such-group".into()),
            Target::Unit("terrace-has-no-such-unit".into()),
        ] {
            assert_eq!(find(&target).unwrap_err().kind, ErrorKind::Usage, "{target:?}");
        }
    }
}
