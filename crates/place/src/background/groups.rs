//! What control groups may still take of memory: the tightest limit of the group itself and of all
//! groups above it. Groups without a limit are not read again.

use machine::Root;
use machine::cgroup::{self, Controller, Place};
use machine::mounts;
use model::Bytes;

/// A group with less room than this counts as full: the kernel charges in portions of 64 pages for
/// each processor.
pub const GROUP_MARGIN: Bytes = Bytes(2 << 20);

/// How a control group is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupName {
    /// The group of the process with this number.
    OfProcess(u32),
    /// Its path below the mount point of the memory controller: `/app`.
    Path(String),
}

impl GroupName {
    /// What /proc/PID/cgroup says of a member; `None` if the process is gone.
    fn membership(&self, root: &Root) -> Option<String> {
        match self {
            Self::OfProcess(pid) => root.read(format!("/proc/{pid}/cgroup")).ok(),
            Self::Path(path) => Some(format!("1:memory:{path}\n0::{path}\n")),
        }
    }
}

/// Those of some groups that are limited.
#[derive(Debug, Default)]
pub(super) struct GroupLimits {
    limited: Vec<LimitedGroup>,
    /// For each name the index of its group, if that or one above has a limit.
    by_name: Vec<Option<usize>>,
}

#[derive(Debug)]
struct LimitedGroup {
    place: Place,
    room: Bytes,
}

impl GroupLimits {
    /// Finds the groups with these names.
    pub(super) fn find(root: &Root, names: impl IntoIterator<Item = GroupName>) -> Self {
        let mounts = mounts::read(root);
        let mut groups = Self::default();
        let mut known: Vec<(Place, Option<usize>)> = Vec::new();
        for name in names {
            let membership = name.membership(root);
            let place =
                membership.and_then(|text| cgroup::locate(&mounts, &text, Controller::Memory));
            let Some(place) = place else {
                groups.by_name.push(None);
                continue;
            };
            let same = known.iter().find(|(other, _)| *other == place);
            let index = same.map_or_else(|| groups.add(root, &place), |(_, index)| *index);
            groups.by_name.push(index);
            known.push((place, index));
        }
        groups
    }

    /// The index of a group that is new; `None` if nothing limits it.
    fn add(&mut self, root: &Root, place: &Place) -> Option<usize> {
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

    /// What may be charged to the group with the name at this index; `None` if nothing limits it.
    pub(super) fn room(&self, name: u32) -> Option<Bytes> {
        let index = (*self.by_name.get(name as usize)?)?;
        Some(self.limited[index].room)
    }
}

fn read_room(root: &Root, place: &Place) -> Option<Bytes> {
    cgroup::memory_limits_at(root, place)
        .iter()
        .filter_map(cgroup::MemoryLimit::room)
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    #[test]
    fn a_group_is_found_by_its_path_and_by_a_process_in_it() {
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
        let path = |path: &str| GroupName::Path(path.to_owned());
        let process = GroupName::OfProcess;
        let names = [path("/app"), process(7), process(8), process(9), path("/x")];
        let groups = GroupLimits::find(&root, names);
        let rooms: Vec<_> = (0..6).map(|name| groups.room(name)).collect();
        let limited = Some(Bytes(600));
        assert_eq!(rooms, [limited, limited, None, None, None, None]);
    }
}
