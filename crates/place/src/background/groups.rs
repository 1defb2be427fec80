//! What control groups may still take of memory: the tightest limit of the group itself and of all
//! groups above it. Groups without a limit are not read again.

use machine::Root;
use machine::cgroup::{self, GroupPlace};
use machine::mounts;
use model::Bytes;
use std::path::PathBuf;

/// A group with less room than this counts as full: the kernel charges in portions of 64 pages for
/// each processor.
pub const GROUP_MARGIN: Bytes = Bytes(2 << 20);

/// A control group whose memory limit counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchedGroup {
    /// That of the process with this number.
    OfProcess(u32),
    /// The one with this directory, as `/sys/fs/cgroup/app`.
    Directory(PathBuf),
}

/// Some memory groups, as far as they are limited.
#[derive(Debug, Default)]
pub(super) struct GroupLimits {
    limited: Vec<LimitedGroup>,
    /// For each watched group its index in `limited`, if it or one above has a limit.
    watched: Vec<Option<usize>>,
}

#[derive(Debug)]
struct LimitedGroup {
    place: GroupPlace,
    room: Bytes,
}

impl GroupLimits {
    /// Finds these groups.
    pub(super) fn find(root: &Root, groups: impl IntoIterator<Item = WatchedGroup>) -> Self {
        let mounts = mounts::read(root);
        let mut limits = Self::default();
        let mut known: Vec<(GroupPlace, Option<usize>)> = Vec::new();
        for group in groups {
            let place = match group {
                WatchedGroup::OfProcess(pid) => cgroup::memory_group_of(root, &mounts, pid),
                WatchedGroup::Directory(directory) => cgroup::memory_group_at(&mounts, &directory),
            };
            let Some(place) = place else {
                limits.watched.push(None);
                continue;
            };
            let same = known.iter().find(|(other, _)| *other == place);
            let index = same.map_or_else(|| limits.add(root, &place), |(_, index)| *index);
            limits.watched.push(index);
            known.push((place, index));
        }
        limits
    }

    /// The index of a group that is new; `None` if nothing limits it.
    fn add(&mut self, root: &Root, place: &GroupPlace) -> Option<usize> {
        let room = read_room(root, place)?;
        let place = place.clone();
        self.limited.push(LimitedGroup { place, room });
        Some(self.limited.len() - 1)
    }

    /// Reads their limits and usage again.
    pub(super) fn read(&mut self, root: &Root) {
        for group in &mut self.limited {
            // A group that is gone, or has no limit any more, does not limit.
            group.room = read_room(root, &group.place).unwrap_or(Bytes(u64::MAX));
        }
    }

    /// What may be charged to the watched group with this index; `None` if nothing limits it.
    pub(super) fn room(&self, group: u32) -> Option<Bytes> {
        let index = (*self.watched.get(group as usize)?)?;
        Some(self.limited[index].room)
    }
}

fn read_room(root: &Root, place: &GroupPlace) -> Option<Bytes> {
    cgroup::memory_limits_at(root, place).iter().filter_map(cgroup::MemoryLimit::room).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    #[test]
    fn a_group_is_named_by_a_member_or_by_its_directory() {
        let mount = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let tree = FakeRoot::bare()
            .file("/proc/self/mountinfo", mount)
            .file("/proc/7/cgroup", "0::/app/part\n")
            .file("/proc/8/cgroup", "0::/other\n")
            .file("/sys/fs/cgroup/app/memory.max", "1000\n")
            .file("/sys/fs/cgroup/app/memory.current", "400\n")
            .file("/sys/fs/cgroup/app/memory.stat", "")
            .file("/sys/fs/cgroup/other/memory.max", "max\n");
        let root = Root::at(tree.path());
        let members = [7, 8, 9, 7].map(WatchedGroup::OfProcess);
        let paths = ["/sys/fs/cgroup/app/part", "/sys/fs/cgroup/other", "/nowhere"];
        let directories = paths.map(|path| WatchedGroup::Directory(path.into()));
        let groups = GroupLimits::find(&root, members.into_iter().chain(directories));
        let rooms: Vec<_> = (0..8).map(|group| groups.room(group)).collect();
        let limited = Some(Bytes(600));
        assert_eq!(rooms, [limited, None, None, limited, limited, None, None, None]);
    }
}
