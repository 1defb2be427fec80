//! The limits and counters of single groups, for both versions' files.
//!
//! Where a version lacks a file the field is `None`; which group is meant is `place`'s part.

use super::place::{self, CgroupVersion, Controller, Group, GroupPlace};
use crate::parse::value_of;
use crate::root::Root;
use model::Bytes;
use serde::Serialize;

/// Version 1 has no word for "no limit": it shows the largest multiple of a page. No machine
/// has half of that.
const V1_UNLIMITED: u64 = 1 << 62;

/// The memory limit of one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryLimit {
    /// The group's path within its hierarchy.
    pub path: String,
    /// More than this and something in the group is killed; `None` if there is no limit.
    pub limit: Option<Bytes>,
    /// More than this and the group is slowed down; version 2 only.
    pub high: Option<Bytes>,
    /// What the group uses, page cache included.
    pub usage: Option<Bytes>,
    /// Of this, file pages not used lately, which the kernel drops first.
    pub inactive_file: Option<Bytes>,
}

impl MemoryLimit {
    /// What the group can still take without being slowed down or killed: the bound minus the
    /// usage, plus the file pages that are easily dropped. `None` if there is no limit; 0 if the
    /// usage is absent.
    #[must_use]
    pub fn room(&self) -> Option<Bytes> {
        let bound = [self.limit, self.high].into_iter().flatten().min()?;
        let held = match self.usage {
            Some(usage) => usage.0.saturating_sub(self.inactive_file.map_or(0, |bytes| bytes.0)),
            None => bound.0,
        };
        Some(Bytes(bound.0.saturating_sub(held)))
    }
}

/// The CPU time limit of one group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuLimit {
    /// The group's path within its hierarchy.
    pub path: String,
    /// CPU time per time, as a number of cores; `None` if there is no limit.
    pub quota_cores: Option<f64>,
    /// Periods in which the group ran.
    pub periods: Option<u64>,
    /// Of these, in which it was stopped because its quota was used up.
    pub throttled_periods: Option<u64>,
    /// For how long its threads were stopped, summed over CPUs.
    pub throttled_ns: Option<u64>,
}

/// The memory limits of the own group and its parents, the own first; empty without groups.
#[must_use]
pub fn memory_limits(root: &Root) -> Vec<MemoryLimit> {
    let place = place::own_group(root, Controller::Memory);
    place.map(|place| memory_limits_at(root, &place)).unwrap_or_default()
}

/// The memory limits of the group at `place`, as [`super::locate`] finds it for any process,
/// and its parents, the group itself first.
#[must_use]
pub fn memory_limits_at(root: &Root, place: &GroupPlace) -> Vec<MemoryLimit> {
    let read = |group| memory_limit(root, group, place.version);
    place.groups().into_iter().filter_map(read).collect()
}

/// What the groups of this process can still take of memory and swap together, by their
/// paths, the own first; groups without a limit are left out. `available` and `swap_free` are
/// the machine's.
#[must_use]
pub fn memory_and_swap_rooms(
    root: &Root,
    available: Bytes,
    swap_free: Bytes,
) -> Vec<(String, Bytes)> {
    let Some(place) = place::own_group(root, Controller::Memory) else {
        return Vec::new();
    };
    let room = |group: Group| {
        let left = |limit: &str, usage: &str| {
            let limit: u64 = root.number(group.directory.join(limit))?;
            let usage: u64 = root.number(group.directory.join(usage)).unwrap_or(limit);
            (limit < V1_UNLIMITED).then(|| limit.saturating_sub(usage))
        };
        let both = left("memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes");
        let swap = left("memory.swap.max", "memory.swap.current");
        let path = group.path.clone();
        let memory = memory_limit(root, group, place.version)?;
        let inactive_file = memory.inactive_file.map_or(0, |bytes| bytes.0);
        let memory_room = memory.room().map(|room| room.0);
        let by_memory = (memory_room.is_some() || swap.is_some()).then(|| {
            let usable_swap = swap.map_or(swap_free.0, |swap| swap.min(swap_free.0));
            memory_room.unwrap_or(available.0).saturating_add(usable_swap)
        });
        let by_both = both.map(|both| both.saturating_add(inactive_file));
        let room = [by_memory, by_both].into_iter().flatten().min()?;
        Some((path, Bytes(room)))
    };
    place.groups().into_iter().filter_map(room).collect()
}

/// The smallest CPU quota among the own group and its parents; without one, the own group.
/// `None` where there are no groups.
#[must_use]
pub fn tightest_cpu_limit(root: &Root) -> Option<CpuLimit> {
    let place = place::own_group(root, Controller::Cpu)?;
    let groups = place.groups().into_iter();
    groups.filter_map(|group| cpu_limit(root, group, place.version)).min_by_key(|limit| {
        // Thousandths of a core order as the quota does and are comparable.
        limit.quota_cores.map_or(u64::MAX, |cores| (cores * 1000.0) as u64)
    })
}

/// `None` if the group has no file of the controller at all.
fn memory_limit(root: &Root, group: Group, version: CgroupVersion) -> Option<MemoryLimit> {
    let number = |name: &str| root.number::<u64>(group.directory.join(name)).map(Bytes);
    let stat = root.read(group.directory.join("memory.stat")).ok();
    let stat_of = |key| Some(Bytes(value_of(stat.as_deref()?, key)?));
    let (limit, high, usage, inactive_file) = match version {
        CgroupVersion::V1 => (
            number("memory.limit_in_bytes").filter(|bytes| bytes.0 < V1_UNLIMITED),
            None,
            number("memory.usage_in_bytes"),
            stat_of("total_inactive_file"),
        ),
        // "max" is no number, and so no limit.
        CgroupVersion::V2 => (
            number("memory.max"),
            number("memory.high"),
            number("memory.current"),
            stat_of("inactive_file"),
        ),
    };
    let known = stat.is_some() || limit.is_some() || usage.is_some();
    known.then_some(MemoryLimit { path: group.path, limit, high, usage, inactive_file })
}

/// `None` if the group has no file of the controller at all.
fn cpu_limit(root: &Root, group: Group, version: CgroupVersion) -> Option<CpuLimit> {
    let stat = root.read(group.directory.join("cpu.stat")).ok();
    let stat_of = |key| value_of(stat.as_deref()?, key);
    let (quota_cores, throttled_ns) = match version {
        CgroupVersion::V1 => {
            let number = |name: &str| root.number::<i64>(group.directory.join(name));
            let quota = number("cpu.cfs_quota_us");
            (cores(quota, number("cpu.cfs_period_us")), stat_of("throttled_time"))
        }
        CgroupVersion::V2 => {
            let text = root.word(group.directory.join("cpu.max")).unwrap_or_default();
            let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
            let quota = numbers.next().flatten();
            let ns = stat_of("throttled_usec").map(|us| us.saturating_mul(1000));
            (cores(quota, numbers.next().flatten()), ns)
        }
    };
    let known = stat.is_some() || quota_cores.is_some();
    known.then_some(CpuLimit {
        path: group.path,
        quota_cores,
        periods: stat_of("nr_periods"),
        throttled_periods: stat_of("nr_throttled"),
        throttled_ns,
    })
}

/// Quota over period; -1 and "max" mean none.
fn cores(quota_us: Option<i64>, period_us: Option<i64>) -> Option<f64> {
    let (quota, period) = (quota_us?, period_us?);
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}
