//! Whether the kernel killed a command because memory ran out, and at which limit.
//!
//! Compares the kills that the command's groups counted before and after. Version 2 counts a hit
//! limit in the group that has it and in those above, so the limit is that of the lowest group
//! whose count grew. Version 1 counts a kill only in the victim's group; the limit is that of the
//! lowest group whose failures grew. For a group that the command joined after its start, the
//! series give the counts.

use crate::registry::{ABSENT, Row};
use machine::cgroup::{CgroupVersion, Group, memory_group_of};
use machine::{Root, mounts};
use model::recording::{GroupFacts, Schema};
use std::path::Path;

/// Version 1's word for "no limit" is the largest multiple of a page; no machine has half.
const V1_UNLIMITED_BYTES: u64 = 1 << 62;

/// What kills at no group's limit.
const OF_MACHINE: &str = "the memory of the machine";

/// Counters of one group before the command ran.
#[derive(Clone, Debug)]
struct Before {
    group: Group,
    kills: u64,
    hits: u64,
}

/// What was counted before the command ran.
#[derive(Debug)]
pub(super) struct KillCheck {
    root: Root,
    v2: bool,
    groups: Vec<Before>,
    machine_kills: u64,
}

impl KillCheck {
    /// Notes the counters for the process `pid`.
    pub fn new(root: Root, pid: u32) -> Self {
        let place = memory_group_of(&root, &mounts::read(&root), pid);
        let v2 = place.as_ref().is_some_and(|place| place.version == CgroupVersion::V2);
        let groups = place.map(|place| place.groups()).unwrap_or_default();
        let before = |group: Group| Before {
            kills: kills(&root, &group.directory, v2),
            hits: hits(&root, &group.directory, v2),
            group,
        };
        Self {
            groups: groups.into_iter().map(before).collect(),
            machine_kills: machine_kills(&root),
            v2,
            root,
        }
    }

    /// Which limit was hit if the kernel has killed since; `None` if it has not.
    pub fn limit_that_killed(&self) -> Option<String> {
        let grown = |past: &&Before| hits(&self.root, &past.group.directory, self.v2) > past.hits;
        let killed = self
            .groups
            .iter()
            .any(|group| kills(&self.root, &group.group.directory, self.v2) > group.kills);
        if !killed {
            let anywhere = machine_kills(&self.root) > self.machine_kills;
            return anywhere.then(|| OF_MACHINE.to_owned());
        }
        let Some(group) = self.groups.iter().find(grown) else {
            return Some(OF_MACHINE.to_owned());
        };
        let name = if self.v2 { "memory.max" } else { "memory.limit_in_bytes" };
        let limit = number(&self.root, &group.group.directory.join(name));
        Some(limit_of(&group.group.path, limit))
    }
}

/// A limit in words.
fn limit_of(path: &str, limit: Option<u64>) -> String {
    match limit.filter(|bytes| *bytes < V1_UNLIMITED_BYTES) {
        Some(bytes) => format!("the limit of {} of the group {path}", model::Bytes(bytes)),
        None => format!("the limit of the group {path}"),
    }
}

/// The cause that a [`KillCheck`] found, or a more exact one: `groups` are those that the command
/// joined after its start, which the check did not know. Their series began at 0 then.
pub(super) fn in_later_groups(
    cause: Option<String>,
    groups: &[GroupFacts],
    (schemas, row): (&[Schema], &Row),
) -> Option<String> {
    let value_of = |level: u32, name: &str| -> Option<u64> {
        let name = format!("group{level}.memory.{name}");
        let id = schemas.iter().position(|schema| schema.name == name)?;
        let value = row.values().get(id).filter(|value| **value != ABSENT)?;
        u64::try_from(*value).ok()
    };
    let grew = |level, name| value_of(level, name).is_some_and(|count| count > 0);
    if cause.as_deref() != Some(OF_MACHINE) || !grew(0, "events.oom_kill") {
        return cause;
    }
    let mut levels = groups.iter();
    let limiting =
        levels.find(|group| grew(group.level, "failcnt") || grew(group.level, "events.oom"));
    let path = limiting.and_then(|group| {
        let named = ["memory", "unified"].iter();
        named.filter_map(|name| group.paths.get(*name)).next()
    });
    match limiting.zip(path) {
        Some((group, path)) => Some(limit_of(path, value_of(group.level, "limit_bytes"))),
        None => cause,
    }
}

/// Processes of the group that the kernel killed.
fn kills(root: &Root, directory: &Path, v2: bool) -> u64 {
    let name = if v2 { "memory.events" } else { "memory.oom_control" };
    value(root, &directory.join(name), "oom_kill")
}

/// How often the group's limit could not be kept.
fn hits(root: &Root, directory: &Path, v2: bool) -> u64 {
    if v2 {
        value(root, &directory.join("memory.events"), "oom")
    } else {
        number(root, &directory.join("memory.failcnt")).unwrap_or(0)
    }
}

/// Processes of the whole machine that the kernel killed since it started.
fn machine_kills(root: &Root) -> u64 {
    value(root, Path::new("/proc/vmstat"), "oom_kill")
}

/// The number after a word at the start of a line; 0 where it is absent: only growth is asked.
fn value(root: &Root, path: &Path, key: &str) -> u64 {
    let text = root.read(path).unwrap_or_default();
    let line = text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then_some(value)
    });
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

fn number(root: &Root, path: &Path) -> Option<u64> {
    root.read(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

    fn write(tree: &FakeRoot, path: &str, text: &str) {
        let path = tree.path().join(path.trim_start_matches('/'));
        std::fs::write(path, text).unwrap();
    }

    fn v1() -> FakeRoot {
        let mut tree = FakeRoot::bare()
            .file("/proc/self/mountinfo", V1)
            .file("/proc/7/cgroup", "4:memory:/a/b\n")
            .file("/proc/vmstat", "oom_kill 3\n");
        for (path, limit) in [("a/b", "9223372036854771712\n"), ("a", "67108864\n")] {
            let base = format!("/sys/fs/cgroup/memory/{path}");
            tree = tree
                .file(&format!("{base}/memory.oom_control"), "under_oom 0\noom_kill 1\n")
                .file(&format!("{base}/memory.failcnt"), "5\n")
                .file(&format!("{base}/memory.limit_in_bytes"), limit);
        }
        tree
    }

    #[test]
    fn version_1_names_the_parent_whose_limit_it_was() {
        let tree = v1();
        let kill_check = KillCheck::new(Root::at(tree.path()), 7);
        assert_eq!(kill_check.limit_that_killed(), None);
        let base = "/sys/fs/cgroup/memory/a";
        write(&tree, &format!("{base}/b/memory.oom_control"), "oom_kill 2\n");
        write(&tree, &format!("{base}/memory.failcnt"), "900\n");
        let words = kill_check.limit_that_killed().unwrap();
        assert!(words.contains("64 MiB") && words.ends_with("group /a"), "{words}");
    }

    #[test]
    fn a_kill_without_a_limit_is_the_machine_s() {
        let tree = v1();
        let kill_check = KillCheck::new(Root::at(tree.path()), 7);
        write(&tree, "/proc/vmstat", "oom_kill 4\n");
        assert_eq!(kill_check.limit_that_killed().unwrap(), "the memory of the machine");
    }

    #[test]
    fn version_2_names_the_lowest_group_that_hit_its_limit() {
        let mut tree =
            FakeRoot::bare().file("/proc/self/mountinfo", V2).file("/proc/7/cgroup", "0::/a/b\n");
        for path in ["a/b", "a"] {
            let base = format!("/sys/fs/cgroup/{path}");
            tree = tree
                .file(&format!("{base}/memory.events"), "oom 1\noom_kill 1\n")
                .file(&format!("{base}/memory.max"), "1048576\n");
        }
        let kill_check = KillCheck::new(Root::at(tree.path()), 7);
        write(&tree, "/sys/fs/cgroup/a/b/memory.events", "oom 1\noom_kill 2\n");
        write(&tree, "/sys/fs/cgroup/a/memory.events", "oom 2\noom_kill 2\n");
        let words = kill_check.limit_that_killed().unwrap();
        assert!(words.ends_with("group /a"), "{words}");
    }

    /// The series of a group that was joined late, each with the value that it had last.
    fn later(values: &[(&str, i64)]) -> Option<String> {
        let schema = |(id, (name, _)): (u32, &(&str, i64))| Schema {
            id,
            name: (*name).to_owned(),
            ..Schema::default()
        };
        let schemas: Vec<Schema> = (0..).zip(values).map(schema).collect();
        let mut row = Row::default();
        for (id, (_, value)) in (0..).zip(values) {
            row.set(id, *value);
        }
        let groups = [(0, "/late"), (1, "/")].map(|(level, path)| GroupFacts {
            level,
            paths: [("memory".to_owned(), path.to_owned())].into(),
            made: false,
        });
        in_later_groups(Some(OF_MACHINE.to_owned()), &groups, (&schemas, &row))
    }

    #[test]
    fn the_limit_of_a_group_that_was_joined_later_is_named() {
        let kill = ("group0.memory.events.oom_kill", 1);
        let limit = ("group0.memory.limit_bytes", 64 << 20);
        let words = later(&[kill, ("group0.memory.failcnt", 9), limit]).unwrap();
        assert_eq!(words, "the limit of 64 MiB of the group /late");
        let none = ("group0.memory.events.oom_kill", 0);
        let words = later(&[none, ("group0.memory.failcnt", 9), limit]).unwrap();
        assert_eq!(words, OF_MACHINE);
        assert_eq!(later(&[kill, limit]).unwrap(), OF_MACHINE);
    }
}
