//! What control groups may still take of memory: the tightest limit of the group itself and of all
//! groups above it. Groups without a limit are not read again.

use machine::Root;
use machine::cgroup::{self, GroupPlace};
use machine::mounts;
use model::Bytes;

/// A group with less room than this counts as full: the kernel charges in portions of 64 pages for
/// each processor.
pub const GROUP_MARGIN: Bytes = Bytes(2 << 20);

/// The memory groups of some processes, as far as they are limited.
#[derive(Debug, Default)]
pub(super) struct GroupLimits {
    limited: Vec<LimitedGroup>,
    /// For each process the index of its group, if that or one above has a limit.
    by_process: Vec<Option<usize>>,
}

#[derive(Debug)]
struct LimitedGroup {
    place: GroupPlace,
    room: Bytes,
}

impl GroupLimits {
    /// Finds the groups of these processes.
    pub(super) fn find(root: &Root, pids: impl IntoIterator<Item = u32>) -> Self {
        let mounts = mounts::read(root);
        let mut groups = Self::default();
        let mut known: Vec<(GroupPlace, Option<usize>)> = Vec::new();
        for pid in pids {
            let Some(place) = cgroup::memory_group_of(root, &mounts, pid) else {
                groups.by_process.push(None);
                continue;
            };
            let same = known.iter().find(|(other, _)| *other == place);
            let index = same.map_or_else(|| groups.add(root, &place), |(_, index)| *index);
            groups.by_process.push(index);
            known.push((place, index));
        }
        groups
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

    /// What may be charged to the group of the process at this index; `None` if nothing limits it.
    pub(super) fn room(&self, process: u32) -> Option<Bytes> {
        let index = (*self.by_process.get(process as usize)?)?;
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
    fn the_room_of_a_process_is_that_of_its_group() {
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
        let groups = GroupLimits::find(&root, [7, 8, 9, 7]);
        let rooms: Vec<_> = (0..5).map(|process| groups.room(process)).collect();
        let limited = Some(Bytes(600));
        assert_eq!(rooms, [limited, None, None, limited, None]);
    }
}
