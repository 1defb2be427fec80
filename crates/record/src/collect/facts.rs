//! What the sources know and does not change: devices, mounts, swap areas, settings, and
//! whether the I/O of other users' processes can be seen.
//!
//! Read once at the start. What this machine does not have is left out.

use machine::{Root, block, memory, mounts, swap};
use model::recording::{DeviceFacts, DeviceKind, Facts, MountFacts, SourceState};

/// Devices and mounts that are described; a host with more has containers by the hundred.
const MAX_DEVICES: usize = 1_024;
const MAX_MOUNTS: usize = 512;

/// Settings by name, and the file of each; those of huge pages are chosen words.
const SETTINGS: [(&str, &str); 24] = [
    ("vm.dirty_ratio", "/proc/sys/vm/dirty_ratio"),
    ("vm.dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio"),
    ("vm.dirty_bytes", "/proc/sys/vm/dirty_bytes"),
    ("vm.dirty_background_bytes", "/proc/sys/vm/dirty_background_bytes"),
    ("vm.dirty_expire_centisecs", "/proc/sys/vm/dirty_expire_centisecs"),
    ("vm.dirty_writeback_centisecs", "/proc/sys/vm/dirty_writeback_centisecs"),
    ("vm.swappiness", "/proc/sys/vm/swappiness"),
    ("vm.page-cluster", "/proc/sys/vm/page-cluster"),
    ("vm.min_free_kbytes", "/proc/sys/vm/min_free_kbytes"),
    ("vm.watermark_scale_factor", "/proc/sys/vm/watermark_scale_factor"),
    ("vm.overcommit_memory", "/proc/sys/vm/overcommit_memory"),
    ("vm.vfs_cache_pressure", "/proc/sys/vm/vfs_cache_pressure"),
    ("vm.zone_reclaim_mode", "/proc/sys/vm/zone_reclaim_mode"),
    ("vm.stat_interval", "/proc/sys/vm/stat_interval"),
    ("vm.compaction_proactiveness", "/proc/sys/vm/compaction_proactiveness"),
    ("kernel.task_delayacct", "/proc/sys/kernel/task_delayacct"),
    ("kernel.numa_balancing", "/proc/sys/kernel/numa_balancing"),
    ("zswap.enabled", "/sys/module/zswap/parameters/enabled"),
    ("zswap.compressor", "/sys/module/zswap/parameters/compressor"),
    ("zswap.max_pool_percent", "/sys/module/zswap/parameters/max_pool_percent"),
    ("lru_gen.enabled", "/sys/kernel/mm/lru_gen/enabled"),
    ("lru_gen.min_ttl_ms", "/sys/kernel/mm/lru_gen/min_ttl_ms"),
    ("cpu.governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("cpu.smt", "/sys/devices/system/cpu/smt/control"),
];

/// File systems without a device that data is kept in all the same.
const KEPT_TYPES: [&str; 7] = ["tmpfs", "ramfs", "overlay", "btrfs", "zfs", "9p", "virtiofs"];

/// Fills in all of it.
pub(super) fn fill(root: &Root, facts: &mut Facts) {
    facts.devices =
        block_names(root).iter().filter_map(|name| device(root, name)).take(MAX_DEVICES).collect();
    facts.mounts = mounts(root);
    facts.swaps = swap::areas(root).iter().map(|area| area_words(root, area)).collect();
    settings(root, facts);
    facts.sights.insert("other_users".to_owned(), other_users(root));
}

/// The names of all block devices without partitions, sorted.
pub(super) fn block_names(root: &Root) -> Vec<String> {
    let entries = std::fs::read_dir(root.path("/sys/block")).into_iter().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

fn device(root: &Root, name: &str) -> Option<DeviceFacts> {
    // Unused loop and zram devices exist by the dozen, with a size of 0.
    word(root, &format!("/sys/block/{name}/size")).filter(|size| size != "0")?;
    let disk = block::by_name(root, name)?;
    disk.size.filter(|size| size.0 > 0)?;
    let max_kib: Option<u64> = word(root, &format!("/sys/block/{name}/queue/max_sectors_kb"))
        .and_then(|text| text.parse().ok());
    Some(DeviceFacts {
        kind: kind(&disk),
        number: format!("{}:{}", disk.major, disk.minor),
        size_bytes: disk.size.map(|size| size.0),
        rotational: disk.rotational,
        read_ahead_bytes: disk.read_ahead_bytes,
        scheduler: disk.scheduler,
        logical_block_bytes: disk.logical_block_bytes.map(u64::from),
        physical_block_bytes: disk.physical_block_bytes.map(u64::from),
        max_request_bytes: max_kib.and_then(|kib| kib.checked_mul(1024)),
        write_back: disk.write_cache.map(|cache| cache == "write back"),
        backing_file: disk.backing_file,
        name: disk.name,
    })
}

fn kind(disk: &block::Disk) -> DeviceKind {
    match disk.transport.as_deref() {
        Some("loop") => DeviceKind::Loop,
        Some("zram") => DeviceKind::Zram,
        Some("brd") => DeviceKind::RamDisk,
        Some("dm" | "md") => DeviceKind::Stacked,
        _ if !disk.members.is_empty() => DeviceKind::Stacked,
        _ => DeviceKind::Disk,
    }
}

fn mounts(root: &Root) -> Vec<MountFacts> {
    let describe = |mount: mounts::Mount| {
        let by_number = block::name_of_device(root, mount.major, mount.minor);
        // A file system of several devices has a number of its own; its source names one.
        let disk = by_number.or_else(|| block::name_of(root, mount.source.strip_prefix("/dev/")?));
        let kept = mount.network
            || KEPT_TYPES.contains(&mount.fs_type.as_str())
            || mount.fs_type.starts_with("fuse");
        (disk.is_some() || kept).then(|| MountFacts {
            point: mount.mount_point.display().to_string(),
            fs_type: mount.fs_type.clone(),
            device: disk,
        })
    };
    let all = mounts::read(root).into_iter();
    all.filter_map(describe).take(MAX_MOUNTS).collect()
}

/// The name of the area at this path, as /proc/swaps prints it: its device, or the last part of a
/// swap file's path, so that no directory's name gets into a recording.
pub(super) fn area_name(path: &str) -> &str {
    let name = path.strip_prefix("/dev/").or_else(|| path.rsplit('/').next());
    name.filter(|name| !name.is_empty()).unwrap_or(path)
}

/// The area's name as in its series, then the name of the device behind it, if it is known.
fn area_words(root: &Root, area: &swap::Area) -> String {
    let path = area.path.to_string_lossy();
    let name = area_name(&path);
    let disk = area.device.and_then(|(major, minor)| block::name_of_device(root, major, minor));
    match disk {
        Some(disk) => format!("{name} {disk}"),
        None => name.to_owned(),
    }
}

fn settings(root: &Root, facts: &mut Facts) {
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.settings.insert(name.to_owned(), value);
        }
    };
    for (name, path) in SETTINGS {
        put(name, word(root, path));
    }
    let thp = memory::read(root).thp;
    put("thp.enabled", thp.enabled);
    put("thp.defrag", thp.defrag);
    put("thp.shmem_enabled", thp.shmem_enabled);
    let reported = memory::is_free_memory_reported(root);
    put("balloon.free_page_reporting", reported.map(|is_on| u8::from(is_on).to_string()));
}

/// Asked of process 1. Root in a container may lack the capability for it too.
fn other_users(root: &Root) -> SourceState {
    match root.read("/proc/1/io") {
        Ok(_) => SourceState::Open,
        Err(error) if error.kind == machine::ErrorKind::Denied => SourceState::closed(
            "the I/O of other users' processes needs CAP_SYS_PTRACE",
            (sys::process::effective_uid() != 0).then_some("sudo"),
        ),
        Err(_) => SourceState::closed("this kernel does not count I/O by process", None),
    }
}

fn word(root: &Root, path: &str) -> Option<String> {
    let text = root.read(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
