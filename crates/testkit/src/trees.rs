//! Ready-made machines, in the kernel's own formats: a small virtual machine with control
//! groups of version 1, a desktop with version 2, and one that reports nothing.

use crate::fake_root::FakeRoot;

impl FakeRoot {
    /// Two cores, 24 GiB, no swap, version 1 groups without a limit, one virtio disk `vda`
    /// (254:0) with the partition `vda1` (254:1).
    #[must_use]
    pub fn small_vm() -> Self {
        let disk = "/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda";
        let caches = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "1024K")];
        Self::new()
            .file("/proc/cpuinfo", cpuinfo(2, "AuthenticAMD", "AMD EPYC", "fpu hypervisor"))
            .file("/proc/meminfo", meminfo(24_684_092, 24_301_568, 24_362_004, 0))
            .file("/proc/swaps", SWAPS)
            .file("/proc/self/mountinfo", VM_MOUNTS)
            .file("/proc/stat", "cpu  9 0 9 99 0 0 0 5 0 0\ncpu0 4 0 4 49 0 0 0 3 0 0\n")
            .kernel("6.1.0-vm", "db-3", "0.25")
            .cpus(2, &caches)
            .vm_groups()
            .disk("vda", "254:0", disk, DiskShape { sectors: "528482304", rotational: "1" })
            .files(&format!("{disk}/vda1"), &[("dev", "254:1\n"), ("partition", "1\n")])
            .link("/sys/dev/block/254:1", &format!("../../..{disk}/vda1"))
            .link("/sys/class/block/vda1", &format!("../../..{disk}/vda1"))
    }

    /// Eight cores, 32 GiB, zram swap, version 2 groups with a limit of 8 GiB on the user's
    /// slice, an NVMe disk `nvme0n1` (259:0), a SATA disk `sda` (8:0), and `dm-0` (253:0,
    /// named `home`) over both.
    #[must_use]
    pub fn desktop_v2() -> Self {
        let swaps = format!("{SWAPS}/dev/zram0 partition\t8388604\t1024\t100\n");
        let caches = [("1", "Data", "32K"), ("2", "Unified", "512K"), ("3", "Unified", "16M")];
        Self::new()
            .file("/proc/cpuinfo", cpuinfo(8, "GenuineIntel", "Example CPU @ 3.00GHz", "fpu"))
            .file("/proc/meminfo", meminfo(32_768_000, 2_000_000, 20_480_000, 8_388_604))
            .file("/proc/swaps", swaps)
            .file("/proc/self/mountinfo", DESKTOP_MOUNTS)
            .kernel("6.12.9-desktop", "desk", "1.50")
            .cpus(8, &caches)
            .desktop_groups()
            .desktop_disks()
    }

    /// A machine without /proc and /sys.
    #[must_use]
    pub fn bare() -> Self {
        Self::new()
    }

    fn kernel(self, release: &str, host: &str, load: &str) -> Self {
        self.file("/proc/sys/kernel/osrelease", format!("{release}\n"))
            .file("/proc/sys/kernel/hostname", format!("{host}\n"))
            .file("/proc/loadavg", format!("{load} 0.10 0.05 1/100 4242\n"))
    }

    fn vm_groups(self) -> Self {
        self.file("/proc/self/cgroup", "4:memory:/app\n3:cpuset:/\n1:cpu,cpuacct:/\n0::/\n")
            .files(
                "/sys/fs/cgroup/memory/app",
                &[
                    ("memory.limit_in_bytes", "9223372036854771712\n"),
                    ("memory.usage_in_bytes", "4096000\n"),
                    ("memory.stat", "cache 8192\ntotal_inactive_file 4096\n"),
                ],
            )
            .files("/sys/fs/cgroup/memory", &[("memory.stat", "total_inactive_file 0\n")])
            .files(
                "/sys/fs/cgroup/cpu,cpuacct",
                &[
                    ("cpu.cfs_quota_us", "-1\n"),
                    ("cpu.cfs_period_us", "100000\n"),
                    ("cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"),
                ],
            )
            .file("/sys/fs/cgroup/cpuset/cpuset.cpus", "0-1\n")
    }

    fn desktop_disks(self) -> Self {
        let nvme = "/sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1";
        let sata = "/sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda";
        let mapped = "/sys/devices/virtual/block/dm-0";
        let zram = "/sys/devices/virtual/block/zram0";
        let counters = [
            ("disksize", "8589934592\n"),
            ("comp_algorithm", "lzo-rle lzo lz4 [zstd]\n"),
            ("mm_stat", "1048576 262144 300000 0 300000 5 0 0 0\n"),
        ];
        self.disk("nvme0n1", "259:0", nvme, DiskShape { sectors: "1953525168", rotational: "0" })
            .file(&format!("{nvme}/device/model"), "Example SSD 1TB                  \n")
            .disk("sda", "8:0", sata, DiskShape { sectors: "3907029168", rotational: "1" })
            .files(
                &format!("{sata}/device"),
                &[
                    ("queue_depth", "32\n"),
                    ("model", "Example HDD\n"),
                    ("power/runtime_status", "suspended\n"),
                ],
            )
            .disk("dm-0", "253:0", mapped, DiskShape { sectors: "4096", rotational: "1" })
            .file(&format!("{mapped}/dm/name"), "home\n")
            .link(&format!("{mapped}/slaves/nvme0n1"), &format!("../../../../../..{nvme}"))
            .link(&format!("{mapped}/slaves/sda"), &format!("../../../../../..{sata}"))
            .disk("zram0", "252:0", zram, DiskShape { sectors: "16777216", rotational: "0" })
            .files(zram, &counters)
    }

    fn desktop_groups(self) -> Self {
        let slice = "/sys/fs/cgroup/user.slice";
        let user = format!("{slice}/user-1000.slice");
        self.file("/proc/self/cgroup", "0::/user.slice/user-1000.slice/app.scope\n")
            .files(
                &format!("{user}/app.scope"),
                &[
                    ("memory.max", "max\n"),
                    ("memory.high", "max\n"),
                    ("memory.current", "1073741824\n"),
                    ("memory.stat", "anon 1\ninactive_file 536870912\n"),
                    ("cpu.max", "max 100000\n"),
                    ("cpu.stat", "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"),
                    ("cpuset.cpus.effective", "0-3\n"),
                ],
            )
            .files(
                &user,
                &[
                    ("memory.max", "8589934592\n"),
                    ("memory.high", "max\n"),
                    ("memory.current", "2147483648\n"),
                    ("memory.stat", "inactive_file 1073741824\n"),
                    ("cpu.max", "150000 100000\n"),
                    (
                        "cpu.stat",
                        "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 2000\n",
                    ),
                ],
            )
            .files(slice, &[("memory.max", "max\n"), ("memory.current", "3221225472\n")])
    }

    fn cpus(mut self, count: usize, caches: &[(&str, &str, &str)]) -> Self {
        let all = format!("0-{}\n", count - 1);
        self = self.file("/sys/devices/system/cpu/online", &all);
        for (index, (level, kind, size)) in caches.iter().enumerate() {
            self = self.files(
                &format!("/sys/devices/system/cpu/cpu0/cache/index{index}"),
                &[
                    ("level", level),
                    ("type", kind),
                    ("size", size),
                    ("coherency_line_size", "64\n"),
                    ("shared_cpu_list", if *level == "3" { &all } else { "0\n" }),
                ],
            );
        }
        self
    }

    pub(crate) fn disk(self, name: &str, numbers: &str, place: &str, shape: DiskShape) -> Self {
        self.files(
            place,
            &[
                ("dev", numbers),
                ("size", shape.sectors),
                ("removable", "0\n"),
                ("stat", "10 0 80 5 20 0 160 9 0 12 14 0 0 0 0 3 1\n"),
                ("queue/rotational", shape.rotational),
                ("queue/scheduler", "none [mq-deadline] kyber\n"),
                ("queue/read_ahead_kb", "128\n"),
                ("queue/nr_requests", "256\n"),
                ("queue/logical_block_size", "512\n"),
                ("queue/physical_block_size", "4096\n"),
                ("queue/write_cache", "write back\n"),
            ],
        )
        .link(&format!("/sys/dev/block/{numbers}"), &format!("../../..{place}"))
        .link(&format!("/sys/class/block/{name}"), &format!("../../..{place}"))
        .link(&format!("/sys/block/{name}"), &format!("../..{place}"))
    }
}

/// What differs between disks.
pub(crate) struct DiskShape {
    pub(crate) sectors: &'static str,
    pub(crate) rotational: &'static str,
}

/// The heading that the kernel always prints.
const SWAPS: &str = "Filename\tType\tSize\tUsed\tPriority\n";

const VM_MOUNTS: &str = "\
22 27 0:21 / /proc rw - proc proc rw
23 27 0:22 / /sys rw - sysfs sysfs rw
27 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

const DESKTOP_MOUNTS: &str = "\
22 27 0:21 / /proc rw - proc proc rw
23 27 0:22 / /sys rw - sysfs sysfs rw
24 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
27 1 0:30 /@ / rw - btrfs /dev/nvme0n1 rw
28 27 253:0 / /home rw - ext4 /dev/mapper/home rw
29 27 0:40 / /mnt/nas rw - nfs4 nas:/export rw
30 27 0:41 / /tmp rw - tmpfs tmpfs rw
";

fn cpuinfo(count: usize, vendor: &str, model: &str, flags: &str) -> String {
    (0..count)
        .map(|number| {
            format!(
                "processor\t: {number}\nvendor_id\t: {vendor}\nmodel name\t: {model}\nflags\t\t: {flags}\n\n"
            )
        })
        .collect()
}

fn meminfo(total_kib: u64, free_kib: u64, available_kib: u64, swap_kib: u64) -> String {
    format!(
        "MemTotal: {total_kib} kB\nMemFree: {free_kib} kB\nMemAvailable: {available_kib} kB\n\
         Cached: 244200 kB\nSwapTotal: {swap_kib} kB\nSwapFree: {swap_kib} kB\n\
         HugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB\n"
    )
}
