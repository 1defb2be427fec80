//! The limits that control groups put on this process: memory, CPU time and CPUs.
//!
//! The own group and all its parents count, the tightest decides. Controllers are looked
//! for one by one, so version 1, version 2 and mixed hosts work alike; `place` finds the
//! directories. Nothing here changes a group.

mod limits;
mod place;
#[cfg(test)]
mod tests;

pub use limits::{
    CpuLimit, MemoryLimit, cpu_limits, memory_and_swap_rooms, memory_limits, memory_limits_at,
};
pub use place::{
    CgroupVersion, Controller, Group, GroupPlace, locate, memory_group_of, own_memory_group,
};

use crate::parse::cpu_list;
use crate::root::Root;
use serde::Serialize;

/// What binds this process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cgroups {
    /// The memory group with the least room; the own group if none is limited.
    pub memory: Option<MemoryLimit>,
    /// The CPU group with the smallest quota; the own group if none has one.
    pub cpu: Option<CpuLimit>,
    /// The CPUs that the own group may use; `None` if there is no such controller.
    pub cpuset: Option<Vec<usize>>,
}

/// The tightest limits on this process; all `None` where there are no groups.
#[must_use]
pub fn read(root: &Root) -> Cgroups {
    Cgroups {
        memory: tightest(memory_limits(root), |limit| limit.room().map(|room| room.0)),
        cpu: tightest(cpu_limits(root), |limit| {
            // Thousandths of a core order as the quota does and are comparable.
            limit.quota_cores.map(|cores| (cores * 1000.0) as u64)
        }),
        cpuset: read_cpuset(root),
    }
}

/// The entry with the smallest bound, else the first: the own group.
fn tightest<T>(limits: Vec<T>, bound: impl Fn(&T) -> Option<u64>) -> Option<T> {
    limits.into_iter().min_by_key(|limit| bound(limit).unwrap_or(u64::MAX))
}

fn read_cpuset(root: &Root) -> Option<Vec<usize>> {
    let place = place::find(root, Controller::Cpuset)?;
    // What is in effect, under its name in each version; then the setting itself.
    place.groups().into_iter().next().and_then(|group| {
        ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"]
            .into_iter()
            .filter_map(|name| root.word(group.directory.join(name)))
            .map(|text| cpu_list(&text))
            .find(|cpus| !cpus.is_empty())
    })
}
