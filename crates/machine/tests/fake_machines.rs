//! Whole machines, read from fake trees: a small virtual machine with control groups of
//! version 1, a desktop with version 2, and one that says nothing at all.
#![allow(clippy::unwrap_used, reason = "a test program")]

use machine::{Root, block, cgroup, cpu, diskstats, kernel, memory, mounts, swap, vmstat, zram};
use model::Bytes;
use std::path::Path;
use testkit::FakeRoot;

const GIB: u64 = 1 << 30;

#[test]
fn a_small_virtual_machine() {
    let tree = FakeRoot::small_vm();
    let root = Root::at(tree.path());
    let cpu = cpu::read(&root);
    assert_eq!((cpu.model.as_deref(), cpu.online.as_slice()), (Some("AMD EPYC"), &[0, 1][..]));
    assert_eq!(cpu.hypervisor.as_deref(), Some("unnamed"));
    let sizes: Vec<_> = cpu.caches.iter().map(|cache| (cache.level, cache.sysfs)).collect();
    assert_eq!(sizes, [(1, Some(Bytes(48 << 10))), (2, Some(Bytes(1 << 20)))], "no instructions");
    assert!(cpu.caches.iter().all(|cache| cache.cpuid.is_none() && cache.libc.is_none()));

    let memory = memory::read(&root);
    assert_eq!(memory.total, Some(Bytes(24_684_092 * 1024)));
    assert_eq!((memory.swap_total, memory.huge_pages.total), (Some(Bytes(0)), Some(0)));
    assert_eq!(memory.thp, memory::ThpSettings::default());
    let usable = memory::usable(&root).unwrap();
    assert_eq!((usable.bytes, usable.bound_by.as_str()), (Bytes(24_362_004 * 1024), "machine"));

    let own = &cgroup::memory_limits(&root)[0];
    assert_eq!((own.path.as_str(), own.limit, own.usage), ("/app", None, Some(Bytes(4_096_000))));
    assert_eq!(cgroup::tightest_cpu_limit(&root).unwrap().quota_cores, None);

    assert!(swap::areas(&root).is_empty() && zram::devices(&root).is_empty());
    assert_eq!(kernel::release(&root).as_deref(), Some("6.1.0-vm"));
    assert_eq!(kernel::host_name(&root).as_deref(), Some("db-3"));
    assert_eq!(kernel::load_average(&root), Some(0.25));
    assert_eq!(kernel::virtualization(&root).as_deref(), Some("guest of an unnamed hypervisor"));
}

/// A cloud guest on Arm, without a name in /proc/cpuinfo, and boards of the device tree.
#[test]
fn an_arm_processor_is_named_by_its_numbers() {
    let info = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd atomics\n\
                CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n\
                CPU part\t: 0xd0c\nCPU revision\t: 1\n";
    let named = |files: &[(&str, &str)]| {
        let bare = FakeRoot::bare().file("/proc/cpuinfo", info);
        let tree = files.iter().fold(bare, |tree, (path, text)| tree.file(path, text));
        let cpu = cpu::read(&Root::at(tree.path()));
        assert_eq!(cpu.model.as_deref(), Some("Arm Neoverse N1"));
        assert_eq!(cpu.vendor.as_deref(), Some("Arm"));
        cpu.hypervisor
    };
    let vendor = ("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    let of = |product| named(&[vendor, ("/sys/class/dmi/id/product_name", product)]);
    assert_eq!((of("c6g.large\n").as_deref(), of("c6g.metal\n")), (Some("Nitro"), None));
    let tree = "/sys/firmware/devicetree/base";
    let board = format!("{tree}/compatible");
    assert_eq!(named(&[(&board, "linux,dummy-virt\0")]).as_deref(), Some("QEMU"));
    assert_eq!(named(&[(&board, "raspberrypi,4\0brcm,bcm2711\0")]), None);
    let hypervisor = format!("{tree}/hypervisor/compatible");
    assert_eq!(named(&[(&hypervisor, "linux,kvm\0")]).as_deref(), Some("KVM"));
}

#[test]
fn a_limit_below_the_machines_memory_bounds_it() {
    let tree =
        FakeRoot::small_vm().file("/sys/fs/cgroup/memory/app/memory.limit_in_bytes", "104857600\n");
    let usable = memory::usable(&Root::at(tree.path())).unwrap();
    assert_eq!((usable.bytes, usable.bound_by.as_str()), (Bytes(104_857_600 - 4_091_904), "/app"));
    let takeable = memory::takeable(&Root::at(tree.path())).unwrap();
    assert_eq!((takeable.bytes, takeable.bound_by), (usable.bytes, usable.bound_by));
}

/// One floor for all work: of a large machine a 16th is left to others, of any 64 MiB.
#[test]
fn what_may_be_taken_is_what_is_available_less_the_floor() {
    let tree = FakeRoot::small_vm();
    let takeable = memory::takeable(&Root::at(tree.path())).unwrap();
    assert_eq!(takeable.available, Bytes(24_362_004 * 1024));
    assert_eq!(takeable.floor, Bytes(24_684_092 * 1024 / 16));
    assert_eq!(takeable.bytes, Bytes(takeable.available.0 - takeable.floor.0));
    assert_eq!(takeable.bound_by, "machine");
    let small = FakeRoot::bare().file("/proc/meminfo", "MemTotal: 90000 kB\nMemAvailable: 9 kB\n");
    let none = memory::takeable(&Root::at(small.path())).unwrap();
    assert_eq!((none.bytes, none.floor), (Bytes(0), Bytes(64 << 20)));
    assert_eq!(memory::takeable(&Root::at(FakeRoot::bare().path())), None);
}

#[test]
fn a_partition_leads_to_its_disk() {
    let tree = FakeRoot::small_vm();
    let root = Root::at(tree.path());
    let mounts = mounts::read(&root);
    let mount = mounts::behind(&mounts, Path::new("/home/ann")).unwrap();
    let disk = block::of_device(&root, mount.major, mount.minor).unwrap();
    assert_eq!((disk.name.as_str(), disk.partition.as_deref()), ("vda", Some("vda1")));
    assert_eq!((disk.major, disk.minor), (254, 0));
    assert_eq!(disk.size, Some(Bytes(528_482_304 * 512)));
    assert_eq!((disk.rotational, disk.scheduler.as_deref()), (Some(true), Some("mq-deadline")));
    assert_eq!((disk.read_ahead_bytes, disk.queue_depth), (Some(128 << 10), Some(256)));
    assert_eq!(disk.transport.as_deref(), Some("virtio"));
    assert_eq!((disk.asleep, disk.model.as_deref()), (false, None));
    assert_eq!(block::by_name(&root, "/dev/vda1"), Some(disk));
    let stats = diskstats::of(&root, 254, 0).unwrap();
    assert_eq!((stats.reads, stats.sectors_read, stats.flushes), (10, 80, Some(3)));
}

#[test]
fn a_desktop() {
    let tree = FakeRoot::desktop_v2();
    let root = Root::at(tree.path());
    let usable = memory::usable(&root).unwrap();
    // 8 GiB less 2 GiB in use, of which 1 GiB is easily dropped.
    assert_eq!(usable.bytes, Bytes(7 * GIB));
    assert_eq!(usable.bound_by, "/user.slice/user-1000.slice");
    let cpu = cpu::read(&root);
    assert_eq!((cpu.online.len(), cpu.hypervisor), (8, None));
    assert_eq!(cpu.caches[2].shared_by, Some(8));
    assert_eq!(kernel::virtualization(&root), None);

    let areas = swap::areas(&root);
    assert_eq!((areas.len(), areas[0].device), (1, Some((252, 0))));
    let zram = zram::devices(&root).remove(0);
    assert_eq!((zram.algorithm.as_deref(), zram.original_bytes), (Some("zstd"), Some(1 << 20)));

    let mounts = mounts::read(&root);
    assert!(mounts::behind(&mounts, Path::new("/mnt/nas/x")).unwrap().network);
    let top = mounts::behind(&mounts, Path::new("/etc")).unwrap();
    assert_eq!(block::of_device(&root, top.major, top.minor), None, "btrfs has no disk's number");
    let disk = block::by_name(&root, &top.source).unwrap();
    assert_eq!((disk.name.as_str(), disk.transport.as_deref()), ("nvme0n1", Some("nvme")));
    assert_eq!(disk.model.as_deref(), Some("Example SSD 1TB"));
}

#[test]
fn a_stacked_device_leads_to_its_members() {
    let tree = FakeRoot::desktop_v2();
    let root = Root::at(tree.path());
    let disk = block::of_device(&root, 253, 0).unwrap();
    assert_eq!((disk.transport.as_deref(), disk.model.as_deref()), (Some("dm"), Some("home")));
    assert_eq!(disk.members, ["nvme0n1", "sda"]);
    assert_eq!(block::by_name(&root, "/dev/mapper/home").as_ref(), Some(&disk));
    let below = block::physical(&root, &disk);
    let names: Vec<_> = below.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(names, ["nvme0n1", "sda"]);
    assert!(below[1].asleep && !below[0].asleep);
    assert_eq!((below[1].queue_depth, below[1].transport.as_deref()), (Some(32), Some("sata")));
}

#[test]
fn a_stack_that_leads_back_to_itself_ends() {
    let place = "/sys/devices/virtual/block/dm-7";
    let tree = FakeRoot::bare()
        .file(&format!("{place}/dev"), "253:7\n")
        .link("/sys/class/block/dm-7", "../../devices/virtual/block/dm-7")
        .link(&format!("{place}/slaves/dm-7"), "..");
    let root = Root::at(tree.path());
    let disk = block::by_name(&root, "dm-7").unwrap();
    assert!(block::physical(&root, &disk).is_empty());
}

#[test]
fn names_do_not_leave_their_directory() {
    let tree = FakeRoot::small_vm();
    let root = Root::at(tree.path());
    for name in ["", "/dev/", "..", "../block/vda", "/dev/../vda", "mapper/", "absent"] {
        assert_eq!(block::by_name(&root, name), None, "{name:?}");
    }
}

#[test]
fn a_machine_that_tells_nothing() {
    let tree = FakeRoot::bare();
    let root = Root::at(tree.path());
    assert_eq!(cpu::read(&root), cpu::Cpu::default());
    assert_eq!(memory::read(&root), memory::Memory::default());
    assert_eq!(memory::usable(&root), None);
    assert_eq!(cgroup::memory_limits(&root), []);
    assert_eq!(cgroup::tightest_cpu_limit(&root), None);
    assert!(mounts::read(&root).is_empty() && swap::areas(&root).is_empty());
    assert!(zram::devices(&root).is_empty() && vmstat::read(&root).is_empty());
    assert_eq!(vmstat::counter(&root, "pgfault"), None);
    assert_eq!(block::of_device(&root, 8, 0), None);
    assert_eq!(block::by_name(&root, "sda"), None);
    assert_eq!(diskstats::of(&root, 8, 0), None);
    assert_eq!(kernel::release(&root), None);
    assert_eq!(kernel::host_name(&root), None);
    assert_eq!(kernel::load_average(&root), None);
    assert_eq!(kernel::virtualization(&root), None);
    assert_eq!(machine::smaps::of_range(&root, 4096, 4096), None);
    assert_eq!(machine::stat::steal_ticks(&root, None), None);
    assert!(machine::stat::StealReader::open(&root).is_err());
    assert!(machine::schedstat::RunDelayReader::open(&root).is_err());
    assert_eq!(machine::process_io::read(&root), None);
    assert_eq!(machine::pressure::read(&root, "memory"), None);
    assert_eq!(machine::memory::reported_to_host_bytes(&root), None);
    let error = root.read("/proc/meminfo").unwrap_err();
    assert_eq!(error.kind, machine::ErrorKind::NotFound);
    assert!(error.to_string().ends_with("proc/meminfo: no such file or directory"), "{error}");
}

#[test]
fn containers_are_recognized_by_what_their_engines_leave() {
    let seen = |path: &str, text: &str| {
        let tree = FakeRoot::bare().file(path, text);
        kernel::virtualization(&Root::at(tree.path()))
    };
    assert_eq!(seen("/.dockerenv", "").as_deref(), Some("docker container"));
    assert_eq!(seen("/run/.containerenv", "").as_deref(), Some("podman container"));
    assert_eq!(seen("/run/systemd/container", "lxc\n").as_deref(), Some("lxc container"));
    assert_eq!(
        seen("/proc/self/cgroup", "0::/kubepods/pod1\n").as_deref(),
        Some("kubernetes container")
    );
    assert_eq!(
        seen("/proc/sys/kernel/osrelease", "5.15.0-microsoft-standard-WSL2\n").as_deref(),
        Some("WSL guest")
    );
    assert_eq!(seen("/sys/class/dmi/id/sys_vendor", "QEMU\n").as_deref(), Some("QEMU guest"));
    assert_eq!(seen("/sys/hypervisor/type", "xen\n").as_deref(), Some("Xen guest"));
}

#[test]
fn counters_of_memory_given_to_the_host() {
    let path = "/sys/module/page_reporting/parameters/reported_kib";
    let tree = FakeRoot::bare().file(path, "2048\n");
    assert_eq!(machine::memory::reported_to_host_bytes(&Root::at(tree.path())), Some(2 << 20));
    let tree = FakeRoot::bare().file(path, "N\n");
    assert_eq!(machine::memory::reported_to_host_bytes(&Root::at(tree.path())), None);
}

#[test]
fn a_balloon_says_whether_the_host_takes_free_memory_back() {
    let reported = |device: &str, features: &str| {
        let tree = FakeRoot::bare()
            .file("/sys/bus/virtio/devices/virtio0/device", "0x0002\n")
            .file("/sys/bus/virtio/devices/virtio0/features", "111111\n")
            .file("/sys/bus/virtio/devices/virtio1/device", device)
            .file("/sys/bus/virtio/devices/virtio1/features", features);
        machine::memory::is_free_memory_reported(&Root::at(tree.path()))
    };
    assert_eq!(reported("0x0005\n", "0110010100\n"), Some(true));
    assert_eq!(reported("0x0005\n", "0110000100\n"), Some(false));
    assert_eq!(reported("0x0005\n", "011\n"), Some(false));
    assert_eq!(reported("0x0004\n", "0110010100\n"), None);
    assert_eq!(machine::memory::is_free_memory_reported(&Root::at(FakeRoot::bare().path())), None);
}
