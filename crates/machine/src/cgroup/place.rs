//! The paths of a controller's groups of this process: from /proc/self/cgroup, which names the
//! group, and the mount table, which says where its hierarchy is mounted.
//!
//! In a container the mount often shows only a part of the hierarchy; then the group's path
//! is cut by the mount's root, and groups above it cannot be seen.

use crate::mounts::{self, Mount};
use crate::root::Root;
use std::path::{Component, Path, PathBuf};

/// A controller whose groups can be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Memory and swap.
    Memory,
    /// CPU time: shares and quota.
    Cpu,
    /// CPU time as version 1 counts it, apart from `cpu`.
    CpuAccounting,
    /// Block I/O: `blkio` in version 1, `io` in version 2.
    Io,
    /// The number of processes and threads.
    Pids,
    /// None: the tree of version 2 as such, which has pressure and CPU time for each group
    /// even where every controller belongs to version 1.
    Unified,
}

impl Controller {
    /// Its name in the mount table and in /proc/PID/cgroup of version 1.
    fn name(self) -> Option<&'static str> {
        match self {
            Controller::Memory => Some("memory"),
            Controller::Cpu => Some("cpu"),
            Controller::CpuAccounting => Some("cpuacct"),
            Controller::Io => Some("blkio"),
            Controller::Pids => Some("pids"),
            Controller::Unified => None,
        }
    }
}

/// The files differ by version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupVersion {
    /// One hierarchy for each controller.
    V1,
    /// One hierarchy for all.
    V2,
}

/// The own group of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPlace {
    /// Whose files it has.
    pub version: CgroupVersion,
    /// Where the hierarchy, or the part of it that can be seen, is mounted.
    mount_point: PathBuf,
    /// The own group below the mount point.
    group: PathBuf,
}

/// One group: its name for people and its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its path below the mount point: `/app`.
    pub path: String,
    /// Where its files are.
    pub directory: PathBuf,
}

impl GroupPlace {
    /// The own group first, then its parents up to the mount point.
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        self.group
            .ancestors()
            .map(|group| Group {
                path: Path::new("/").join(group).display().to_string(),
                directory: self.mount_point.join(group),
            })
            .collect()
    }
}

/// This process's group of a controller; `None` if it has none that can be seen.
#[must_use]
pub fn own_group(root: &Root, controller: Controller) -> Option<GroupPlace> {
    locate(&mounts::read(root), &root.read("/proc/self/cgroup").ok()?, controller)
}

/// The memory group of a process, found in `mounts`; `None` if it has none that can be seen.
#[must_use]
pub fn memory_group_of(root: &Root, mounts: &[Mount], pid: u32) -> Option<GroupPlace> {
    let membership = root.read(format!("/proc/{pid}/cgroup")).ok()?;
    locate(mounts, &membership, Controller::Memory)
}

/// The memory group with this directory, found in `mounts`; `None` if it is not in a tree of the
/// memory controller.
#[must_use]
pub fn memory_group_at(mounts: &[Mount], directory: &Path) -> Option<GroupPlace> {
    let mount = mounts::behind(mounts, directory)?;
    let version = match mount.fs_type.as_str() {
        "cgroup2" => CgroupVersion::V2,
        "cgroup" if mount.super_options.split(',').any(|option| option == "memory") => {
            CgroupVersion::V1
        }
        _ => return None,
    };
    let mount_point = mount.mount_point.clone();
    let group = directory.strip_prefix(&mount_point).ok()?.to_owned();
    Some(GroupPlace { version, mount_point, group })
}

/// The processes in the group with this directory and in all below, of `most_groups` at most.
/// A process that another PID namespace hides is left out.
#[must_use]
pub fn members(directory: &Path, most_groups: usize) -> Vec<u32> {
    let mut pids = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    let mut seen = 0;
    while let Some(group) = waiting.pop().filter(|_| seen < most_groups) {
        let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        pids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
        let below = std::fs::read_dir(&group).into_iter().flatten().flatten();
        let groups = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        waiting.extend(groups.map(|entry| entry.path()));
        seen += 1;
    }
    // A hidden process shows as 0.
    pids.retain(|pid| *pid != 0);
    pids
}

/// The same from the texts: the mount table, and the /proc/PID/cgroup of any process.
#[must_use]
pub fn locate(mounts: &[Mount], membership: &str, controller: Controller) -> Option<GroupPlace> {
    // A controller lives in one hierarchy only; version 1 names its controllers, so it is asked
    // first.
    let v1 = || {
        let name = controller.name()?;
        let group = v1_group(membership, name)?;
        let has = |mount: &&Mount| {
            mount.fs_type == "cgroup" && mount.super_options.split(',').any(|option| option == name)
        };
        let hierarchy: Vec<&Mount> = mounts.iter().filter(has).collect();
        Some((hierarchy, Path::new(group))).filter(|(hierarchy, _)| !hierarchy.is_empty())
    };
    let v2 = || {
        let group = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
        let has = |mount: &&Mount| mount.fs_type == "cgroup2";
        place(mounts.iter().filter(has).collect(), Path::new(group), CgroupVersion::V2)
    };
    match v1() {
        Some((hierarchy, group)) => place(hierarchy, group, CgroupVersion::V1),
        None => v2(),
    }
}

/// The group in "4:memory:/a/b" or "1:cpu,cpuacct:/a:b".
fn v1_group<'a>(membership: &'a str, controller: &str) -> Option<&'a str> {
    membership.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(group)
    })
}

/// The group's place under the first mount that shows it, else at the root of the first mount. A
/// mount that begins above this control group namespace shows the group by a name that cannot be
/// known in here, and at its root a group of others.
fn place(mounts: Vec<&Mount>, group: &Path, version: CgroupVersion) -> Option<GroupPlace> {
    let is_above = |mount: &Mount| mount.root.starts_with("/..");
    let candidates: Vec<&Mount> = mounts.into_iter().filter(|mount| !is_above(mount)).collect();
    let below = |mount: &&Mount| {
        let group = group.strip_prefix(&mount.root).ok()?;
        // "/../other" is a group outside of this namespace: it cannot be seen.
        let seen = group.components().all(|part| matches!(part, Component::Normal(_)));
        seen.then(|| (mount.mount_point.clone(), group.to_owned()))
    };
    let (mount_point, group) = candidates
        .iter()
        .find_map(below)
        .or_else(|| Some((candidates.first()?.mount_point.clone(), PathBuf::new())))?;
    Some(GroupPlace { version, mount_point, group })
}
