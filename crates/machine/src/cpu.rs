//! The processor: its name, the CPUs online, and what three sources claim of its caches.
//!
//! sysfs, CPUID and the C library often disagree, most of all in virtual machines, and a
//! copy routine that believes the wrong one is slow: so all three are kept side by side.
//! CPUID and the C library are asked only when the root is the machine itself.

use crate::arm_parts;
use crate::parse::{cpu_list, size_bytes};
use crate::root::Root;
use model::Bytes;
use serde::Serialize;

/// The processor, as far as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// The model's name.
    pub model: Option<String>,
    /// The maker, as `GenuineIntel`, `AuthenticAMD` or `Arm`.
    pub vendor: Option<String>,
    /// The numbers of the CPUs online.
    pub online: Vec<usize>,
    /// Data and unified caches of the first CPU online, first level first.
    pub caches: Vec<CacheClaims>,
    /// The hypervisor by name, as `KVM`; `None` on bare metal as far as can be seen.
    pub hypervisor: Option<String>,
}

/// One data or unified cache, by source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheClaims {
    /// 1 is the closest.
    pub level: u8,
    /// Its size by sysfs.
    pub sysfs: Option<Bytes>,
    /// Its size by CPUID.
    pub cpuid: Option<Bytes>,
    /// Its size by the C library.
    pub libc: Option<Bytes>,
    /// The size of a line.
    pub line_bytes: Option<u32>,
    /// How many CPUs share it, by sysfs, else at most that many, by CPUID.
    pub shared_by: Option<u32>,
}

/// All that is known; unknown fields are `None` or empty.
#[must_use]
pub fn read(root: &Root) -> Cpu {
    let info = root.read("/proc/cpuinfo").unwrap_or_default();
    let online = online(root, &info);
    let mut caches = sysfs_caches(root, online.first().copied().unwrap_or(0));
    if root.is_system() {
        for claim in cpuid::caches() {
            merge(&mut caches, claim);
        }
        for claim in sys::libc_facts::cache_claims() {
            let libc = Some(Bytes(claim.bytes));
            merge(&mut caches, CacheClaims { level: claim.level, libc, ..Default::default() });
        }
    }
    caches.sort_by_key(|cache| cache.level);
    Cpu {
        model: model(&info),
        vendor: info_field(&info, &["vendor_id"]).or_else(|| arm_maker(&info)),
        online,
        caches,
        hypervisor: hypervisor_by(root, &info),
    }
}

/// The name that /proc/cpuinfo has, else what its numbers of an Arm processor mean.
fn model(info: &str) -> Option<String> {
    info_field(info, &["model name", "cpu model"]).or_else(|| {
        let implementer = info_field(info, &["CPU implementer"])?;
        Some(arm_parts::model(&implementer, &info_field(info, &["CPU part"])?))
    })
}

fn arm_maker(info: &str) -> Option<String> {
    let implementer = info_field(info, &["CPU implementer"])?;
    Some(arm_parts::maker(&implementer).map_or(implementer, str::to_owned))
}

/// How many CPUs are online; 0 if unknown.
#[must_use]
pub fn online_count(root: &Root) -> usize {
    online(root, &root.read("/proc/cpuinfo").unwrap_or_default()).len()
}

/// The numbers of the CPUs online: sysfs, else the ones that /proc/cpuinfo lists.
fn online(root: &Root, info: &str) -> Vec<usize> {
    match root.word("/sys/devices/system/cpu/online") {
        Some(text) => cpu_list(&text),
        None => info
            .lines()
            .filter_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == "processor").then(|| value.trim().parse().ok())?
            })
            .collect(),
    }
}

/// The first line "key : value" with one of the keys.
fn info_field(info: &str, keys: &[&str]) -> Option<String> {
    info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let value = value.trim();
        (keys.contains(&key.trim()) && !value.is_empty()).then(|| value.to_owned())
    })
}

fn sysfs_caches(root: &Root, cpu: usize) -> Vec<CacheClaims> {
    let directory = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let read = |name: String| {
        let file = |field: &str| root.word(format!("{directory}/{name}/{field}"));
        // Instruction caches hold no data of a probe.
        file("type").filter(|kind| kind == "Data" || kind == "Unified")?;
        Some(CacheClaims {
            level: file("level")?.parse().ok()?,
            sysfs: file("size").and_then(|text| size_bytes(&text)).map(Bytes),
            line_bytes: file("coherency_line_size").and_then(|text| text.parse().ok()),
            shared_by: file("shared_cpu_list")
                .map(|text| cpu_list(&text).len() as u32)
                .filter(|cpus| *cpus > 0),
            ..Default::default()
        })
    };
    root.names(&directory)
        .into_iter()
        .filter(|name| name.starts_with("index"))
        .filter_map(read)
        .collect()
}

/// Adds what a source says to the cache of the same level; what is known already stays.
fn merge(caches: &mut Vec<CacheClaims>, claim: CacheClaims) {
    match caches.iter_mut().find(|cache| cache.level == claim.level) {
        Some(cache) => {
            cache.sysfs = cache.sysfs.or(claim.sysfs);
            cache.cpuid = cache.cpuid.or(claim.cpuid);
            cache.libc = cache.libc.or(claim.libc);
            cache.line_bytes = cache.line_bytes.or(claim.line_bytes);
            cache.shared_by = cache.shared_by.or(claim.shared_by);
        }
        None => caches.push(claim),
    }
}

/// [`Cpu::hypervisor`] alone, for a fraction of the price.
#[must_use]
pub fn hypervisor(root: &Root) -> Option<String> {
    hypervisor_by(root, &root.read("/proc/cpuinfo").unwrap_or_default())
}

/// The processor itself, then files that some hypervisors fill, then a bare "there is one".
fn hypervisor_by(root: &Root, info: &str) -> Option<String> {
    let by_cpuid = || root.is_system().then(cpuid::hypervisor).flatten();
    let by_type = || match root.word("/sys/hypervisor/type")?.as_str() {
        "xen" => Some("Xen".to_owned()),
        other => Some(other.to_owned()),
    };
    let by_flag = || {
        let flags = info_field(info, &["flags", "Features"])?;
        flags.split_whitespace().any(|flag| flag == "hypervisor").then(|| "unnamed".to_owned())
    };
    let by_tree = || by_device_tree(root);
    by_cpuid().or_else(by_type).or_else(|| by_board(root)).or_else(by_flag).or_else(by_tree)
}

/// What the device tree of a guest names: a hypervisor, or a board that only exists as a guest.
fn by_device_tree(root: &Root) -> Option<String> {
    const TREE: &str = "/sys/firmware/devicetree/base";
    // Strings that each end with a byte 0.
    let is = |file: &str, name: &str| {
        let text = root.read(format!("{TREE}/{file}")).unwrap_or_default();
        text.split('\0').any(|word| word == name)
    };
    if is("hypervisor/compatible", "linux,kvm") {
        return Some("KVM".to_owned());
    }
    if is("hypervisor/compatible", "xen,xen") {
        return Some("Xen".to_owned());
    }
    is("compatible", "linux,dummy-virt").then(|| "QEMU".to_owned())
}

/// The maker that the firmware names, where it only makes virtual machines.
fn by_board(root: &Root) -> Option<String> {
    const MAKERS: [(&str, &str); 6] = [
        ("QEMU", "QEMU"),
        ("KVM", "KVM"),
        ("VMware", "VMware"),
        ("innotek", "VirtualBox"),
        ("Parallels", "Parallels"),
        ("Xen", "Xen"),
    ];
    let maker = root.word("/sys/class/dmi/id/sys_vendor")?;
    // Its machines without a hypervisor are called so.
    let product = root.word("/sys/class/dmi/id/product_name").unwrap_or_default();
    if maker == "Amazon EC2" {
        return (!product.ends_with(".metal")).then(|| "Nitro".to_owned());
    }
    MAKERS.iter().find(|(start, _)| maker.starts_with(start)).map(|(_, name)| (*name).to_owned())
}

/// What the processor says of itself, where there is such an instruction.
#[cfg(target_arch = "x86_64")]
mod cpuid {
    use super::CacheClaims;
    use model::Bytes;
    use raw_cpuid::{CacheType, CpuId, Hypervisor};

    /// Leaf 4, on AMD leaf 0x8000_001D.
    pub(super) fn caches() -> Vec<CacheClaims> {
        let caches = CpuId::new().get_cache_parameters();
        caches
            .into_iter()
            .flatten()
            .filter(|cache| matches!(cache.cache_type(), CacheType::Data | CacheType::Unified))
            .map(|cache| CacheClaims {
                level: cache.level(),
                cpuid: Some(Bytes(
                    (cache.associativity() as u64)
                        * (cache.physical_line_partitions() as u64)
                        * (cache.coherency_line_size() as u64)
                        * (cache.sets() as u64),
                )),
                line_bytes: Some(cache.coherency_line_size() as u32),
                shared_by: Some(cache.max_cores_for_cache() as u32),
                ..Default::default()
            })
            .collect()
    }

    /// The name in the leaf that is reserved for hypervisors.
    pub(super) fn hypervisor() -> Option<String> {
        let name = match CpuId::new().get_hypervisor_info()?.identify() {
            Hypervisor::Xen => "Xen",
            Hypervisor::VMware => "VMware",
            Hypervisor::HyperV => "Hyper-V",
            Hypervisor::KVM => "KVM",
            Hypervisor::QEMU => "QEMU",
            Hypervisor::Bhyve => "bhyve",
            Hypervisor::QNX => "QNX",
            Hypervisor::ACRN => "ACRN",
            Hypervisor::Unknown(..) => "unnamed",
        };
        Some(name.to_owned())
    }
}

/// Other processors have no such instruction for programs.
#[cfg(not(target_arch = "x86_64"))]
mod cpuid {
    use super::CacheClaims;

    pub(super) fn caches() -> Vec<CacheClaims> {
        Vec::new()
    }

    pub(super) fn hypervisor() -> Option<String> {
        None
    }
}
