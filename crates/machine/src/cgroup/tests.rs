//! Limits of version 1, version 2 and mixed hosts, from the kernel's own text forms.
//!
//! Whole trees are tested in `tests/fake_machines.rs`; these cases are hard
//! to see: groups outside of the namespace, bind mounts, missing files.

use super::place::{CgroupVersion, Controller, locate};
use super::*;
use crate::mounts;
use crate::root::Root;
use model::Bytes;
use proptest::prelude::*;
use testkit::FakeRoot;

const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

/// The directories of a controller's groups, own first.
fn directories(mounts: &str, membership: &str, controller: Controller) -> Option<Vec<String>> {
    let place = locate(&mounts::parse(mounts), membership, controller)?;
    Some(place.groups().iter().map(|group| group.directory.display().to_string()).collect())
}

#[test]
fn the_own_group_and_its_parents_are_found() {
    let found = directories(V1, "4:memory:/a/b\n", Controller::Memory).unwrap();
    let base = "/sys/fs/cgroup/memory";
    assert_eq!(found, [format!("{base}/a/b"), format!("{base}/a"), format!("{base}/")]);
}

#[test]
fn a_mixed_host_has_each_controller_once() {
    let both = format!("{V1}{V2}");
    let membership = "4:memory:/old\n0::/new\n";
    let place = |controller| locate(&mounts::parse(&both), membership, controller).unwrap();
    assert_eq!(place(Controller::Memory).version, CgroupVersion::V1);
    assert_eq!(place(Controller::Cpu).version, CgroupVersion::V2);
    assert_eq!(place(Controller::Cpu).groups()[0].path, "/new");
}

#[test]
fn a_group_seen_through_a_bind_mount_is_cut_by_its_root() {
    let mount = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    let found = directories(mount, "4:memory:/docker/abc/x\n", Controller::Memory).unwrap();
    assert_eq!(found, ["/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory/"]);
    // Elsewhere in the hierarchy: what is mounted is the best that can be seen.
    let found = directories(mount, "4:memory:/other\n", Controller::Memory).unwrap();
    assert_eq!(found, ["/sys/fs/cgroup/memory/"]);
}

#[test]
fn a_group_outside_of_the_namespace_is_not_followed() {
    let found = directories(V2, "0::/../../other\n", Controller::Memory).unwrap();
    assert_eq!(found, ["/sys/fs/cgroup/"]);
}

/// As `unshare --cgroup` leaves it: the root of the mount is a group of others, whose limits are
/// not those of this process, and version 2 has not the controller either.
#[test]
fn a_mount_from_above_the_namespace_does_not_show_the_own_group() {
    let mount = "52 48 0:32 /../.. /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    let both = format!("{mount}{V2}");
    for mounts in [mount, &both] {
        assert_eq!(directories(mounts, "4:memory:/\n0::/\n", Controller::Memory), None);
    }
    let whole = V1.replace("/memory rw", "/own rw");
    let found = directories(&format!("{mount}{whole}"), "4:memory:/\n", Controller::Memory);
    assert_eq!(found.unwrap(), ["/sys/fs/cgroup/own/"]);
}

#[test]
fn no_groups_is_none() {
    assert_eq!(directories("", "4:memory:/a\n", Controller::Memory), None);
    assert_eq!(directories(V1, "", Controller::Memory), None);
    assert_eq!(directories(V1, "3:cpu:/a\n", Controller::Io), None);
    let bare = Root::at(FakeRoot::bare().path());
    assert_eq!((memory_limits(&bare), tightest_cpu_limit(&bare)), (Vec::new(), None));
}

#[test]
fn room_is_what_is_left_below_the_nearer_bound() {
    let limit = |limit, high, usage, file| MemoryLimit {
        path: String::new(),
        limit: Option::map(limit, Bytes),
        high: Option::map(high, Bytes),
        usage: Option::map(usage, Bytes),
        inactive_file: Option::map(file, Bytes),
    };
    assert_eq!(limit(Some(100), None, Some(60), Some(10)).room(), Some(Bytes(50)));
    assert_eq!(limit(Some(100), Some(80), Some(60), None).room(), Some(Bytes(20)));
    assert_eq!(limit(Some(100), None, Some(160), None).room(), Some(Bytes(0)));
    assert_eq!(limit(Some(100), None, Some(10), Some(60)).room(), Some(Bytes(100)));
    assert_eq!(limit(Some(100), None, None, None).room(), Some(Bytes(0)), "unknown is not free");
    assert_eq!(limit(None, None, Some(60), None).room(), None);
}

#[test]
fn a_limit_of_a_parent_counts() {
    let directory = "/sys/fs/cgroup/memory";
    let group = |limit: &str, usage: &str| {
        [
            ("memory.limit_in_bytes", limit.to_owned()),
            ("memory.usage_in_bytes", usage.to_owned()),
            ("memory.stat", "inactive_file 9999\ntotal_inactive_file 24\n".to_owned()),
        ]
    };
    let mut tree = FakeRoot::bare()
        .file("/proc/self/mountinfo", V1)
        .file("/proc/self/cgroup", "4:memory:/a/b\n");
    for (path, limit, usage) in
        [("/a/b", "9223372036854771712\n", "500\n"), ("/a", "1000\n", "524\n")]
    {
        for (name, text) in group(limit, usage) {
            tree = tree.file(&format!("{directory}{path}/{name}"), text);
        }
    }
    let memory = &memory_limits(&Root::at(tree.path()))[1];
    assert_eq!((memory.path.as_str(), memory.limit), ("/a", Some(Bytes(1000))));
    assert_eq!(memory.room(), Some(Bytes(500)));
}

#[test]
fn swap_counts_as_far_as_the_group_may_use_it() {
    let rooms = |mount: &str, membership: &str, files: &[(&str, &str)]| {
        let tree = FakeRoot::bare()
            .file("/proc/self/mountinfo", mount)
            .file("/proc/self/cgroup", membership)
            .files("/g/a", files);
        memory_and_swap_rooms(&Root::at(tree.path()), Bytes(5000), Bytes(300))
    };
    let v1 = |files: &[(&str, &str)]| {
        let mount = "35 31 0:32 / /g rw - cgroup cgroup rw,memory\n";
        rooms(mount, "4:memory:/a\n", files)
    };
    let v2 = |files: &[(&str, &str)]| rooms("1 2 0:1 / /g rw - cgroup2 x rw\n", "0::/a\n", files);
    let a = |room| vec![("/a".to_owned(), Bytes(room))];
    let limit = ("memory.limit_in_bytes", "1000");
    let usage = ("memory.usage_in_bytes", "400");
    assert_eq!(v1(&[limit, usage]), a(900), "all swap of the machine");
    let both = ("memory.memsw.limit_in_bytes", "1200");
    let both_usage = ("memory.memsw.usage_in_bytes", "500");
    assert_eq!(v1(&[limit, usage, both, both_usage]), a(700));
    let unlimited = ("memory.limit_in_bytes", "9223372036854771712");
    assert_eq!(v1(&[unlimited, usage]), []);
    let (max, current) = (("memory.max", "1000"), ("memory.current", "400"));
    let swap_current = ("memory.swap.current", "20");
    assert_eq!(v2(&[max, current, ("memory.swap.max", "max")]), a(900));
    assert_eq!(v2(&[max, current, ("memory.swap.max", "120"), swap_current]), a(700));
    assert_eq!(
        v2(&[("memory.max", "max"), current, ("memory.swap.max", "0"), swap_current]),
        a(5000)
    );
}

#[test]
fn quotas_of_both_versions() {
    let v1 = FakeRoot::bare()
        .file("/proc/self/mountinfo", "1 2 0:1 / /cpu rw - cgroup cgroup rw,cpu,cpuacct\n")
        .file("/proc/self/cgroup", "1:cpu,cpuacct:/\n")
        .files(
            "/cpu",
            &[
                ("cpu.cfs_quota_us", "50000\n"),
                ("cpu.cfs_period_us", "100000\n"),
                ("cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 77\n"),
            ],
        );
    let cpu = tightest_cpu_limit(&Root::at(v1.path())).unwrap();
    assert_eq!(cpu.quota_cores, Some(0.5));
    assert_eq!((cpu.throttled_periods, cpu.throttled_ns), (Some(4), Some(77)));

    let v2 = Root::at(FakeRoot::desktop_v2().path());
    // The tree is gone by now: nothing is there, nothing panics.
    assert_eq!((memory_limits(&v2), tightest_cpu_limit(&v2)), (Vec::new(), None));
    let tree = FakeRoot::desktop_v2();
    let cpu = tightest_cpu_limit(&Root::at(tree.path())).unwrap();
    assert_eq!((cpu.path.as_str(), cpu.quota_cores), ("/user.slice/user-1000.slice", Some(1.5)));
    assert_eq!((cpu.throttled_periods, cpu.throttled_ns), (Some(3), Some(2_000_000)));
}

proptest! {
    #[test]
    fn any_text_is_a_place_or_none(
        mounts in "\\PC{0,120}",
        membership in "([0-9]:(memory|cpu|)?:[/.a-z]{0,8}\n){0,4}",
    ) {
        for mounts in [mounts.as_str(), V1, V2] {
            for controller in [Controller::Memory, Controller::Cpu, Controller::Unified] {
                for directory in directories(mounts, &membership, controller).into_iter().flatten() {
                    prop_assert!(!directory.split('/').any(|part| part == ".."), "{directory}");
                }
            }
        }
    }

    #[test]
    fn any_contents_of_a_group_are_read(text in "\\PC{0,40}", number in any::<i128>()) {
        let number = number.to_string();
        let tree = FakeRoot::bare()
            .file("/proc/self/mountinfo", "1 2 0:1 / /g rw - cgroup2 x rw\n")
            .file("/proc/self/cgroup", "0::/\n")
            .files("/g", &[
                ("memory.max", number.as_str()),
                ("memory.current", text.as_str()),
                ("memory.stat", text.as_str()),
                ("cpu.max", &format!("{number} {number}")),
                ("cpu.stat", text.as_str()),
            ]);
        let root = Root::at(tree.path());
        let _ = (memory_limits(&root), tightest_cpu_limit(&root));
    }
}
