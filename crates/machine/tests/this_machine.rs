//! The readers against the machine that the tests run on, compared with what other
//! interfaces say.
#![allow(clippy::unwrap_used, reason = "a test program")]

use machine::{Root, block, cgroup, cpu, diskstats, kernel, memory, mounts, pressure};
use model::Bytes;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use testkit::Cgroup;

/// Set for the copy of this program that runs under a limit.
const UNDER_LIMIT: &str = "TERRACE_TEST_UNDER_LIMIT";

#[test]
fn the_processor() {
    let root = Root::system();
    let cpu = cpu::read(&root);
    let allowed = sys::affinity::allowed().unwrap();
    assert!(allowed.iter().all(|number| cpu.online.contains(number)));
    assert!(cpu.caches.is_sorted_by_key(|cache| cache.level));
    for claim in sys::libc_facts::cache_claims() {
        let cache = cpu.caches.iter().find(|cache| cache.level == claim.level).unwrap();
        assert_eq!(cache.libc, Some(Bytes(claim.bytes)));
    }
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    if text.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor ")) {
        assert!(cpu.hypervisor.is_some());
        assert!(kernel::virtualization(&root).unwrap().contains("guest"));
    }
}

#[test]
fn sysfs_and_the_processor_agree_on_the_first_cache() {
    let caches = cpu::read(&Root::system()).caches;
    let first = caches.iter().find(|cache| cache.level == 1);
    match first.and_then(|cache| Some((cache.sysfs?, cache.cpuid?))) {
        // Larger caches may differ, and that is a finding of its own.
        Some((sysfs, cpuid)) => assert_eq!(sysfs, cpuid),
        None => testkit::skip("sysfs and CPUID that describe caches"),
    }
}

#[test]
fn memory_adds_up() {
    let root = Root::system();
    let memory = memory::read(&root);
    let total = memory.total.unwrap();
    assert!(memory.free.unwrap() <= total && memory.available.unwrap() <= total);
    let usable = memory::usable(&root).unwrap();
    assert!(usable.bytes <= total);
}

#[test]
fn the_disk_below_the_program() {
    let root = Root::system();
    let device = std::fs::metadata(std::env::current_exe().unwrap()).unwrap().dev();
    let (major, minor) = sys::block::device_numbers(device);
    let Some(disk) = block::of_device(&root, major, minor) else {
        return testkit::skip("a temporary build directory on a disk of its own number");
    };
    assert!(disk.size.unwrap().0 > 0);
    assert_eq!(block::by_name(&root, &disk.name).unwrap().name, disk.name);
    let at_once = block::read_ahead_limit(&root, major, minor);
    assert!(at_once.is_some() && at_once >= disk.read_ahead_bytes);
    assert_eq!(block::read_ahead_limit(&root, 0, 0), None);
    let own = diskstats::of(&root, disk.major, disk.minor).unwrap();
    let text = std::fs::read_to_string("/proc/diskstats").unwrap();
    let listed = diskstats::parse(&text, disk.major, disk.minor).unwrap();
    assert!(listed.reads >= own.reads && listed.sectors_written >= own.sectors_written);
}

#[test]
fn every_mount_lies_on_itself_or_is_covered() {
    let mounts = mounts::read(&Root::system());
    for mount in &mounts {
        let found = mounts::behind(&mounts, &mount.mount_point).unwrap();
        assert!(mount.mount_point.starts_with(&found.mount_point));
    }
}

#[test]
fn pressure_only_grows() {
    let root = Root::system();
    let Some(before) = pressure::read(&root, "cpu") else {
        return testkit::skip("pressure accounting");
    };
    assert!(pressure::read(&root, "cpu").unwrap().some_us >= before.some_us);
    assert_eq!(pressure::read(&root, "absent"), None);
}

#[test]
fn a_real_memory_limit_is_seen_from_inside() {
    const LIMIT: u64 = 96 << 20;
    let root = Root::system();
    if std::env::var(UNDER_LIMIT).is_ok() {
        let limit = cgroup::memory_limits(&root).swap_remove(0);
        assert_eq!(limit.limit, Some(Bytes(LIMIT)));
        let usable = memory::usable(&root).unwrap();
        assert!(usable.bytes.0 <= LIMIT && usable.bytes.0 > LIMIT / 4, "{usable:?}");
        assert_eq!(usable.bound_by, limit.path);
        return;
    }
    match Cgroup::v1_memory(LIMIT) {
        Ok(group) => again_inside(&group, "a_real_memory_limit_is_seen_from_inside"),
        Err(need) => testkit::skip(need),
    }
}

#[test]
fn a_real_quota_is_seen_from_inside() {
    if std::env::var(UNDER_LIMIT).is_ok() {
        let cpu = cgroup::tightest_cpu_limit(&Root::system()).unwrap();
        assert_eq!(cpu.quota_cores, Some(0.5));
        // A host that takes the processor away for long leaves less than the quota to use up.
        let spent = std::time::Instant::now();
        let mut after = cpu.clone();
        while after.throttled_ns == cpu.throttled_ns && spent.elapsed().as_secs() < 20 {
            (0..1_000_000).for_each(|_| std::hint::spin_loop());
            after = cgroup::tightest_cpu_limit(&Root::system()).unwrap();
        }
        assert!(after.throttled_periods > cpu.throttled_periods, "{after:?}");
        assert!(after.throttled_ns > cpu.throttled_ns);
        return;
    }
    match Cgroup::v1_cpu(50_000, 100_000) {
        Ok(group) => again_inside(&group, "a_real_quota_is_seen_from_inside"),
        Err(need) => testkit::skip(need),
    }
}

/// Runs one test of this program inside a group.
fn again_inside(group: &Cgroup, test: &str) {
    let mut command: Command = group.command(std::env::current_exe().unwrap());
    let output = command.args(["--exact", test]).env(UNDER_LIMIT, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_disk_has_the_same_name_for_every_caller() {
    let root = machine::Root::system();
    for mount in machine::mounts::read(&root) {
        let disk = machine::block::of_device(&root, mount.major, mount.minor);
        let name = machine::block::name_of_device(&root, mount.major, mount.minor);
        assert_eq!(name, disk.map(|disk| disk.name));
    }
}
