//! The limits that control groups put on this process: memory and CPU time.
//!
//! The own group and all its parents count, the tightest decides. Controllers are looked
//! for one by one, so version 1, version 2 and mixed hosts work alike; `place` finds the
//! directories. `hierarchy` has the groups of all others. Nothing here changes a group.

mod hierarchy;
mod limits;
mod place;
#[cfg(test)]
mod tests;

pub use hierarchy::{Hierarchy, LimitKind, can_have_subgroups, hierarchies, subgroups};
pub use limits::{
    CpuLimit, MemoryLimit, memory_and_swap_rooms, memory_limits, memory_limits_at,
    tightest_cpu_limit,
};
pub use place::{
    CgroupVersion, Controller, Group, GroupPlace, locate, members, memory_group_at,
    memory_group_of, own_group,
};
