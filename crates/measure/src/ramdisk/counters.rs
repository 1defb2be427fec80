//! What the kernel counted around a pass: of the machine, and of the own memory group and its
//! parents, under the names that recordings give them (docs/counters.md).
//!
//! Only those that the verdict needs. An absent counter stays absent.

use machine::cgroup::{Controller, own_group};
use machine::{Root, pressure, swap, vmstat};
use std::collections::BTreeMap;

/// Of the machine.
#[rustfmt::skip]
const OF_MACHINE: [&str; 25] = [
    "compact_fail", "compact_stall",
    "numa_foreign", "numa_hit", "numa_miss", "numa_other",
    "oom_kill", "pgmajfault",
    "pgscan_anon", "pgscan_direct", "pgscan_file", "pgscan_kswapd",
    "pgsteal_anon", "pgsteal_direct", "pgsteal_file", "pgsteal_kswapd",
    "pswpin", "pswpout", "swpout_zero", "zswpin", "zswpout",
    "thp_file_alloc", "thp_file_fallback",
    "workingset_refault_anon", "workingset_refault_file",
];
/// Of a group: the names in `memory.events`, in `memory.oom_control` of version 1.
const OF_GROUP: [&str; 4] = ["high", "max", "oom", "oom_kill"];

/// All counters at one instant.
#[derive(Debug, Default)]
pub(super) struct PassCounters(BTreeMap<String, u64>);

impl PassCounters {
    /// Reads them.
    pub fn read(root: &Root) -> Self {
        let mut values = BTreeMap::new();
        let text = root.read("/proc/vmstat").unwrap_or_default();
        let machine = vmstat::parse(&text);
        for name in OF_MACHINE {
            let value = machine.get(name);
            values.extend(value.map(|value| (format!("vmstat.{name}"), *value)));
        }
        let stalls = vmstat::sum_of(&text, "allocstall");
        values.extend(stalls.map(|stalls| ("vmstat.allocstall".to_owned(), stalls)));
        for resource in ["cpu", "memory", "io"] {
            let waited_us = pressure::read(root, resource).map(|pressure| pressure.some_us);
            let name = format!("pressure.{resource}.some_ns");
            values.extend(waited_us.map(|us| (name, us.saturating_mul(1000))));
        }
        of_groups(root, &mut values);
        Self(values)
    }

    /// What grew since `before`.
    pub fn since(&self, before: &Self) -> BTreeMap<String, u64> {
        let grown = self.0.iter().filter_map(|(name, value)| {
            Some((name.clone(), value.saturating_sub(*before.0.get(name)?)))
        });
        grown.collect()
    }
}

fn of_groups(root: &Root, values: &mut BTreeMap<String, u64>) {
    let groups =
        own_group(root, Controller::Memory).map(|place| place.groups()).unwrap_or_default();
    for (level, group) in groups.iter().enumerate() {
        let file = |name: &str| group.directory.join(name);
        let refused =
            root.read(file("memory.failcnt")).ok().and_then(|text| text.trim().parse().ok());
        let name = format!("group{level}.memory.failcnt");
        values.extend(refused.map(|count| (name, count)));
        for events in ["memory.events", "memory.oom_control"] {
            let counted = vmstat::parse(&root.read(file(events)).unwrap_or_default());
            for name in OF_GROUP {
                let key = format!("group{level}.memory.events.{name}");
                values.extend(counted.get(name).map(|count| (key, *count)));
            }
        }
    }
}

/// What of each swap area is in use, bytes, by its path.
pub(super) fn swap_used(root: &Root) -> BTreeMap<String, u64> {
    let areas = swap::areas(root).into_iter();
    areas.map(|area| (area.path.display().to_string(), area.used.0)).collect()
}

/// The areas of which more is in use than `before`, with how much more.
pub(super) fn swap_grown(root: &Root, before: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let used = swap_used(root).into_iter();
    let grown = used.map(|(path, now)| {
        let more = now.saturating_sub(before.get(&path).copied().unwrap_or(0));
        (path, more)
    });
    grown.filter(|(_, more)| *more > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    #[test]
    fn machine_and_groups_are_read_and_what_is_absent_stays_absent() {
        let machine = |stalls: u64, refused: u64, killed: u64| {
            FakeRoot::bare()
                .file("/proc/vmstat", format!("pswpout 5\nallocstall_normal {stalls}\nnr_x 1\n"))
                .file("/proc/pressure/memory", "some avg10=0.00 total=7\n")
                .file("/proc/self/mountinfo", "1 2 0:1 / /m rw - cgroup cgroup rw,memory\n")
                .file("/proc/self/cgroup", "4:memory:/a\n")
                .file("/m/a/memory.failcnt", format!("{refused}\n"))
                .file("/m/a/memory.oom_control", format!("under_oom 0\noom_kill {killed}\n"))
        };
        let (before, after) = (machine(1, 10, 0), machine(4, 30, 1));
        let read = |tree: &FakeRoot| PassCounters::read(&Root::at(tree.path()));
        let grew = read(&after).since(&read(&before));
        let of = |name: &str| grew.get(name).copied();
        assert_eq!(of("vmstat.allocstall"), Some(3));
        assert_eq!(of("vmstat.pswpout"), Some(0));
        assert_eq!(of("vmstat.compact_stall"), None);
        assert_eq!(of("group0.memory.failcnt"), Some(20));
        assert_eq!(of("group0.memory.events.oom_kill"), Some(1));
        assert_eq!(of("pressure.memory.some_ns"), Some(0));
        assert_eq!(of("pressure.io.some_ns"), None);
    }

    #[test]
    fn swap_that_is_fuller_is_named() {
        let areas = |used: u64| {
            let text = format!("Filename Type Size Used Priority\n/swapfile file 1000 {used} -2\n");
            FakeRoot::bare().file("/proc/swaps", text)
        };
        let root = |tree: &FakeRoot| Root::at(tree.path());
        let (before, after) = (areas(10), areas(30));
        let used = swap_used(&root(&before));
        let grown = swap_grown(&root(&after), &used);
        assert_eq!(grown, [("/swapfile".to_owned(), 20 << 10)]);
        assert!(swap_grown(&root(&before), &used).is_empty());
    }
}
