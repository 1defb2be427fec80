//! All control groups of the machine, hierarchy by hierarchy, and which of them have a limit of
//! their own.
//!
//! Walking is the caller's: this file has its single steps, each bounded by one directory.

use super::place::CgroupVersion;
use crate::mounts::Mount;
use crate::root::Root;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Version 1 has no word for "no limit" of memory: it shows the largest multiple of a page.
const V1_UNLIMITED: u64 = 1 << 62;

/// What a group's limit is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LimitKind {
    /// Memory: at it pages are reclaimed, or processes killed.
    Memory,
    /// Processor time in each period.
    Cpu,
    /// Bytes or requests of a block device each second.
    Io,
    /// The number of threads and processes.
    Pids,
}

impl LimitKind {
    /// The controller that enforces it, as version 1 names it.
    #[must_use]
    pub fn controller(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Io => "blkio",
            Self::Pids => "pids",
        }
    }
}

/// A tree of control groups that can be limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Whose files its groups have.
    pub version: CgroupVersion,
    /// Where it, or the part of it that can be seen, is mounted.
    pub mount_point: PathBuf,
    /// Which group is mounted there: `/`, but in some containers.
    pub root: PathBuf,
    /// What its groups can limit.
    pub kinds: Vec<LimitKind>,
}

/// The hierarchies among the mounts, each once; those whose groups limit nothing are left out.
#[must_use]
pub fn hierarchies(mounts: &[Mount]) -> Vec<Hierarchy> {
    const ALL: [LimitKind; 4] = [LimitKind::Memory, LimitKind::Cpu, LimitKind::Io, LimitKind::Pids];
    let mut found: Vec<Hierarchy> = Vec::new();
    for mount in mounts {
        let has = |kind: &LimitKind| {
            mount.super_options.split(',').any(|option| option == kind.controller())
        };
        let (version, kinds) = match mount.fs_type.as_str() {
            "cgroup2" => (CgroupVersion::V2, ALL.to_vec()),
            "cgroup" => (CgroupVersion::V1, ALL.into_iter().filter(has).collect()),
            _ => continue,
        };
        let is_known = found.iter().any(|one| one.version == version && one.kinds == kinds);
        if !kinds.is_empty() && !is_known {
            let (mount_point, root) = (mount.mount_point.clone(), mount.root.clone());
            found.push(Hierarchy { version, mount_point, root, kinds });
        }
    }
    found
}

impl Hierarchy {
    /// Of what the group with this directory has a limit of its own. The root of a hierarchy has
    /// none.
    #[must_use]
    pub fn limits(&self, root: &Root, directory: &Path) -> Vec<LimitKind> {
        let has = |kind: &LimitKind| has_limit(root, directory, self.version, *kind);
        self.kinds.iter().copied().filter(has).collect()
    }

    /// The path of the group with this directory, as /proc/PID/cgroup has it; `None` for one
    /// outside.
    #[must_use]
    pub fn path_of(&self, directory: &Path) -> Option<String> {
        let below = directory.strip_prefix(&self.mount_point).ok()?;
        Some(self.root.join(below).display().to_string())
    }
}

/// The names of the groups in a group; `None` if it is gone or cannot be listed.
#[must_use]
pub fn subgroups(root: &Root, directory: &Path) -> Option<Vec<String>> {
    let entries = std::fs::read_dir(root.path(directory)).ok()?.flatten();
    let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Some(groups.filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// Whether a group can have groups in it, by the count of links to its directory: each directory
/// in it links to it once. True where the file system counts no such links.
#[must_use]
pub fn can_have_subgroups(root: &Root, directory: &Path) -> bool {
    std::fs::metadata(root.path(directory)).is_ok_and(|metadata| metadata.nlink() != 2)
}

fn has_limit(root: &Root, directory: &Path, version: CgroupVersion, kind: LimitKind) -> bool {
    let word = |name: &str| root.word(directory.join(name));
    let is_number = |name: &str| {
        word(name).and_then(|word| word.parse::<u64>().ok()).is_some_and(|n| n < V1_UNLIMITED)
    };
    match (version, kind) {
        (CgroupVersion::V1, LimitKind::Memory) => is_number("memory.limit_in_bytes"),
        (CgroupVersion::V1, LimitKind::Cpu) => is_number("cpu.cfs_quota_us"),
        (CgroupVersion::V1, LimitKind::Io) => V1_IO_LIMITS.iter().any(|name| {
            let limits = word(&format!("blkio.throttle.{name}"));
            limits.is_some()
        }),
        (CgroupVersion::V2, LimitKind::Memory) => {
            is_number("memory.max") || is_number("memory.high")
        }
        (CgroupVersion::V2, LimitKind::Cpu) => {
            word("cpu.max").is_some_and(|quota| !quota.starts_with("max"))
        }
        (CgroupVersion::V2, LimitKind::Io) => word("io.max").is_some(),
        (_, LimitKind::Pids) => is_number("pids.max"),
    }
}

/// The files of version 1 with limits of block I/O, behind `blkio.throttle.`.
const V1_IO_LIMITS: [&str; 4] =
    ["read_bps_device", "write_bps_device", "read_iops_device", "write_iops_device"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts;
    use testkit::FakeRoot;

    const MOUNTS: &str = "35 31 0:32 / /c/memory rw - cgroup cgroup rw,memory\n\
                          36 31 0:33 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                          37 31 0:34 / /c/systemd rw - cgroup cgroup rw,name=systemd\n\
                          38 31 0:33 / /again rw - cgroup cgroup rw,cpu,cpuacct\n\
                          41 31 0:38 /box /c/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn each_hierarchy_that_limits_is_found_once() {
        let found = hierarchies(&mounts::parse(MOUNTS));
        let points: Vec<_> = found.iter().map(|one| one.mount_point.to_str().unwrap()).collect();
        assert_eq!(points, ["/c/memory", "/c/cpu", "/c/unified"]);
        assert_eq!(found[1].kinds, [LimitKind::Cpu]);
        assert_eq!(found[1].path_of(Path::new("/c/cpu/a/b")).as_deref(), Some("/a/b"));
        assert_eq!(found[2].path_of(Path::new("/c/unified/x")).as_deref(), Some("/box/x"));
        assert_eq!(found[2].path_of(Path::new("/elsewhere")), None);
    }

    #[test]
    fn limits_and_their_absence_are_read_in_both_versions() {
        let tree = FakeRoot::bare()
            .file("/c/memory/a/memory.limit_in_bytes", "1048576\n")
            .file("/c/memory/b/memory.limit_in_bytes", "9223372036854771712\n")
            .file("/c/cpu/a/cpu.cfs_quota_us", "20000\n")
            .file("/c/cpu/b/cpu.cfs_quota_us", "-1\n")
            .file("/c/unified/a/memory.max", "max\n")
            .file("/c/unified/a/memory.high", "1048576\n")
            .file("/c/unified/a/cpu.max", "max 100000\n")
            .file("/c/unified/a/io.max", "\n")
            .file("/c/unified/a/pids.max", "77\n")
            .file("/c/unified/b/cpu.max", "20000 100000\n")
            .file("/c/unified/b/io.max", "7:0 rbps=1048576 wbps=max\n");
        let root = Root::at(tree.path());
        let found = hierarchies(&mounts::parse(MOUNTS));
        let limits = |hierarchy: usize, path: &str| {
            found[hierarchy].limits(&root, &found[hierarchy].mount_point.join(path))
        };
        assert_eq!(limits(0, "a"), [LimitKind::Memory]);
        assert_eq!(limits(1, "a"), [LimitKind::Cpu]);
        assert_eq!(limits(2, "a"), [LimitKind::Memory, LimitKind::Pids]);
        assert_eq!(limits(2, "b"), [LimitKind::Cpu, LimitKind::Io]);
        for (hierarchy, path) in [(0, "b"), (1, "b"), (0, ""), (2, "gone")] {
            assert_eq!(limits(hierarchy, path), [], "{path}");
        }
    }

    #[test]
    fn groups_are_listed_one_level_at_a_time() {
        let tree = FakeRoot::bare().file("/c/a/b/cpu.stat", "").file("/c/cpu.stat", "");
        let root = Root::at(tree.path());
        assert_eq!(subgroups(&root, Path::new("/c")), Some(vec!["a".to_owned()]));
        assert_eq!(subgroups(&root, Path::new("/c/gone")), None);
        assert!(can_have_subgroups(&root, Path::new("/c/a")));
    }
}
