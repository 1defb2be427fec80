//! RAM, swap and huge pages as the kernel counts them, and how much of it may be used.
//!
//! "May be used" is the smallest room among the machine's own and that of every memory
//! cgroup above the process, so that a probe that stays inside is not killed.

use crate::cgroup;
use crate::parse::{kib_of, selected, value_of};
use crate::root::Root;
use model::Bytes;
use serde::Serialize;

/// Main memory and what surrounds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// All that the kernel manages.
    pub total: Option<Bytes>,
    /// What programs can still take without swapping, as the kernel estimates.
    pub available: Option<Bytes>,
    /// Used for nothing at all.
    pub free: Option<Bytes>,
    /// In the page cache, shared memory included.
    pub cached: Option<Bytes>,
    /// All swap areas together; 0 bytes if there is no swap.
    pub swap_total: Option<Bytes>,
    /// Unused swap.
    pub swap_free: Option<Bytes>,
    /// The reserved pool of huge pages.
    pub huge_pages: HugePages,
    /// Transparent huge pages.
    pub thp: ThpSettings,
}

/// The reserved pool of huge pages of the default size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HugePages {
    /// Pages in the pool.
    pub total: Option<u64>,
    /// Of these, not in use.
    pub free: Option<u64>,
    /// The size of one.
    pub size: Option<Bytes>,
}

/// Settings of transparent huge pages: the selected words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThpSettings {
    /// For private memory: `always`, `madvise`, `never`.
    pub enabled: Option<String>,
    /// How hard a fault works to get one.
    pub defrag: Option<String>,
    /// For tmpfs and shared memory.
    pub shmem_enabled: Option<String>,
}

/// The memory that this process may still take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Usable {
    /// How much.
    pub bytes: Bytes,
    /// What bounds it: "machine", or the path of the cgroup.
    pub bound_by: String,
}

/// The memory that work of ours may take so that others do not feel it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Takeable {
    /// How much.
    pub bytes: Bytes,
    /// What bounds it: "machine", or the path of the cgroup.
    pub bound_by: String,
    /// What programs can take on this machine without swapping.
    pub available: Bytes,
    /// How much of that is left to others.
    pub floor: Bytes,
}

/// A 16th of all memory is left to others: programs allocate meanwhile, and part of what the kernel
/// calls available must be reclaimed first.
const FLOOR_PART: u64 = 16;
/// The least that is left to others.
const SMALLEST_FLOOR: Bytes = Bytes(64 << 20);

/// What work of ours leaves to others of `total` memory.
#[must_use]
pub fn left_to_others(total: Option<Bytes>) -> Bytes {
    total.map_or(SMALLEST_FLOOR, |total| Bytes(total.0 / FLOOR_PART).max(SMALLEST_FLOOR))
}

/// How much memory may be taken: what is available less the floor that is left to others, and no
/// more than the own control group and those above have left; `None` if the kernel does not say.
#[must_use]
pub fn takeable(root: &Root) -> Option<Takeable> {
    let memory = read(root);
    let (available, floor) = (memory.available?, left_to_others(memory.total));
    let of_machine = Bytes(available.0.saturating_sub(floor.0));
    let machine = Usable { bytes: of_machine, bound_by: "machine".to_owned() };
    let Usable { bytes, bound_by } =
        std::iter::once(machine).chain(group_rooms(root)).min_by_key(|usable| usable.bytes)?;
    Some(Takeable { bytes, bound_by, available, floor })
}

/// What /proc/meminfo and the settings of huge pages say.
#[must_use]
pub fn read(root: &Root) -> Memory {
    let text = root.read("/proc/meminfo").unwrap_or_default();
    Memory { thp: read_thp(root), ..parse_meminfo(&text) }
}

/// All that the kernel manages; `None` if it does not say.
#[must_use]
pub fn total(root: &Root) -> Option<Bytes> {
    kib_of(&root.read("/proc/meminfo").ok()?, "MemTotal")
}

/// What programs can still take without swapping, from a meminfo text that the caller re-reads
/// often.
#[must_use]
pub fn parse_available(text: &str) -> Option<Bytes> {
    kib_of(text, "MemAvailable")
}

/// What has a place in swap and is in RAM all the same, from a meminfo text: in the swap cache, or
/// compressed in zswap. What the kernel does not count is 0.
#[must_use]
pub fn parse_swapped_in_ram(text: &str) -> Bytes {
    let counted = ["SwapCached", "Zswapped"].into_iter().filter_map(|name| kib_of(text, name));
    Bytes(counted.map(|bytes| bytes.0).fold(0, u64::saturating_add))
}

/// The pages of files that have a place on a disk; `None` if the kernel does not say. Shared
/// memory, which the kernel counts as cached as well, has none.
#[must_use]
pub fn page_cache(root: &Root) -> Option<Bytes> {
    let text = root.read("/proc/meminfo").ok()?;
    let (cached, shared) = (kib_of(&text, "Cached")?, kib_of(&text, "Shmem")?);
    Some(Bytes(cached.0.saturating_sub(shared.0)))
}

/// Bytes of free memory that this guest has handed back to its host since boot ("free page
/// reporting"), including those that were taken again; `None` if not counted. Such memory is slow
/// at its next touch, since the host must find it anew. Mainline kernels have no counter for it.
#[must_use]
pub fn reported_to_host_bytes(root: &Root) -> Option<u64> {
    /// Where counters have been seen.
    const COUNTERS: [&str; 2] = [
        "/sys/module/page_reporting/parameters/reported_kib",
        "/sys/module/virtio_balloon/parameters/reported_kib",
    ];
    COUNTERS.iter().find_map(|path| root.number::<u64>(path)).and_then(|kib| kib.checked_mul(1024))
}

/// Whether the host takes back what is free in this guest: "free page reporting" of a virtio
/// balloon, as it was agreed with the host. `None` if no such device is there.
#[must_use]
pub fn is_free_memory_reported(root: &Root) -> Option<bool> {
    /// The place of `VIRTIO_BALLOON_F_REPORTING` in the list of agreed features.
    const REPORTING: usize = 5;
    let devices = "/sys/bus/virtio/devices";
    let mut balloons = std::fs::read_dir(root.path(devices)).ok()?.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let file = |file: &str| root.read(format!("{devices}/{name}/{file}")).ok();
        (file("device")?.trim() == BALLOON).then(|| file("features")).flatten()
    });
    balloons.next().map(|features| features.as_bytes().get(REPORTING) == Some(&b'1'))
}

/// `VIRTIO_ID_BALLOON`, as it is printed.
const BALLOON: &str = "0x0005";

/// The memory that this process may still take; `None` if the kernel does not say.
#[must_use]
pub fn usable(root: &Root) -> Option<Usable> {
    let machine =
        read(root).available.map(|bytes| Usable { bytes, bound_by: "machine".to_owned() });
    // The machine first: of equal bounds the wider is named.
    machine.into_iter().chain(group_rooms(root)).min_by_key(|usable| usable.bytes)
}

/// What each limited group above this process has left.
fn group_rooms(root: &Root) -> impl Iterator<Item = Usable> {
    let limits = cgroup::memory_limits(root).into_iter();
    limits.filter_map(|limit| Some(Usable { bytes: limit.room()?, bound_by: limit.path }))
}

/// The memory and swap together that this process may still take; `None` if the kernel does
/// not say.
#[must_use]
pub fn obtainable(root: &Root) -> Option<Usable> {
    let memory = read(root);
    let available = memory.available?;
    let swap_free = memory.swap_free.unwrap_or(Bytes(0));
    let machine = Usable {
        bytes: Bytes(available.0.saturating_add(swap_free.0)),
        bound_by: "machine".to_owned(),
    };
    let groups = cgroup::memory_and_swap_rooms(root, available, swap_free)
        .into_iter()
        .map(|(bound_by, bytes)| Usable { bytes, bound_by });
    std::iter::once(machine).chain(groups).min_by_key(|usable| usable.bytes)
}

/// The fields of a meminfo text; those that are absent are `None`.
fn parse_meminfo(text: &str) -> Memory {
    Memory {
        total: kib_of(text, "MemTotal"),
        available: parse_available(text),
        free: kib_of(text, "MemFree"),
        cached: kib_of(text, "Cached"),
        swap_total: kib_of(text, "SwapTotal"),
        swap_free: kib_of(text, "SwapFree"),
        huge_pages: HugePages {
            total: value_of(text, "HugePages_Total"),
            free: value_of(text, "HugePages_Free"),
            size: kib_of(text, "Hugepagesize"),
        },
        thp: ThpSettings::default(),
    }
}

fn read_thp(root: &Root) -> ThpSettings {
    let setting = |name: &str| {
        let text = root.read(format!("/sys/kernel/mm/transparent_hugepage/{name}")).ok()?;
        selected(&text).map(str::to_owned)
    };
    ThpSettings {
        enabled: setting("enabled"),
        defrag: setting("defrag"),
        shmem_enabled: setting("shmem_enabled"),
    }
}
