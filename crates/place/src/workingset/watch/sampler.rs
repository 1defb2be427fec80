//! Reads what [`ShortageWatch`](super::ShortageWatch) decides by: four small files of /proc, which
//! are kept open, each once a sample. It decides nothing.

use super::MemorySample;
use crate::workingset::areas;
use crate::{Error, ErrorKind, Result};
use machine::swap::{self, Area};
use machine::{ProcFile, Root, memory, pressure, vmstat};
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

/// Where the swap of the machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapPlacement {
    /// No swap is in use.
    Absent,
    /// All of it is in RAM, compressed: a restore would gain nothing.
    InRam,
    /// Some of it is on a disk.
    OnDisk,
}

/// A swap area that was looked at.
#[derive(Clone, Debug)]
struct KnownArea {
    path: PathBuf,
    is_in_ram: bool,
}

/// The open files.
#[derive(Debug)]
pub struct MemorySampler {
    root: Root,
    vmstat: ProcFile,
    meminfo: ProcFile,
    swaps: ProcFile,
    /// `None` if the kernel does not account stalls.
    pressure: Option<ProcFile>,
    /// The areas in use at the last sample.
    areas: Vec<KnownArea>,
}

impl MemorySampler {
    /// Opens the files.
    ///
    /// # Errors
    /// `Impossible` if the kernel does not show them.
    pub fn open(root: &Root) -> Result<Self> {
        let open = |name: &str| {
            ProcFile::open(root, name).map_err(|error| {
                let reason = sys::plain_reason(&error.source);
                Error::new(ErrorKind::Impossible, "watch memory by", reason).at(name)
            })
        };
        Ok(Self {
            root: root.clone(),
            vmstat: open("/proc/vmstat")?,
            meminfo: open("/proc/meminfo")?,
            swaps: open("/proc/swaps")?,
            pressure: ProcFile::open(root, "/proc/pressure/memory").ok(),
            areas: Vec::new(),
        })
    }

    /// What is counted now, which is `time`; `None` if the kernel does not say.
    pub fn sample(&mut self, time: Duration) -> Option<MemorySample> {
        let used = self.used_on_disks()?;
        let text = self.vmstat.text()?;
        let written = vmstat::sum_of(text, "pswpout ")?;
        let compressed = vmstat::sum_of(text, "zswpout ").unwrap_or(0);
        let direct_reclaims = vmstat::sum_of(text, "allocstall")?;
        let scanned_pages = vmstat::sum_of(text, "pgscan_")?;
        let text = self.meminfo.text()?;
        let available = memory::parse_available(text)?;
        let in_ram = memory::parse_swapped_in_ram(text);
        Some(MemorySample {
            time,
            evicted_pages: written.saturating_add(compressed),
            direct_reclaims,
            scanned_pages,
            stalled_us: self.stalled_us(),
            available,
            in_swap: Bytes(used.saturating_sub(in_ram.0)),
        })
    }

    /// Where the swap was at the last sample.
    #[must_use]
    pub fn swap(&self) -> SwapPlacement {
        if self.areas.is_empty() {
            SwapPlacement::Absent
        } else if self.areas.iter().all(|area| area.is_in_ram) {
            SwapPlacement::InRam
        } else {
            SwapPlacement::OnDisk
        }
    }

    /// Bytes in use of the areas that are on disks. Which these are is found out again only when
    /// other areas are in use.
    fn used_on_disks(&mut self) -> Option<u64> {
        let listed = swap::parse(self.swaps.bytes()?);
        let is_known = listed.len() == self.areas.len()
            && listed.iter().zip(&self.areas).all(|(area, known)| area.path == known.path);
        if !is_known {
            self.areas = swap::areas(&self.root).iter().map(|area| self.known(area)).collect();
        }
        let is_on_disk = |area: &&Area| {
            let known = self.areas.iter().find(|known| known.path == area.path);
            known.is_some_and(|known| !known.is_in_ram)
        };
        Some(listed.iter().filter(is_on_disk).map(|area| area.used.0).sum())
    }

    fn known(&self, area: &Area) -> KnownArea {
        KnownArea { path: area.path.clone(), is_in_ram: areas::is_in_ram(&self.root, area) }
    }

    fn stalled_us(&mut self) -> Option<u64> {
        let text = self.pressure.as_mut()?.text()?;
        Some(pressure::parse(text)?.some_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    const VMSTAT: &str = "pswpin 9\npswpout 40\nallocstall_dma 1\nallocstall_normal 2\n\
                          pgscan_kswapd 5\npgscan_direct 6\nzswpout 2\n";
    const MEMINFO: &str = "MemTotal: 9000 kB\nMemAvailable: 500 kB\nSwapCached: 30 kB\n\
                           Zswapped: 20 kB\n";
    const HEAD: &str = "Filename Type Size Used Priority\n";
    const ZRAM: &str = "/dev/zram0 partition 1000 700 100\n";
    const DISK: &str = "/dev/sda2 partition 9000 150 -2\n";

    /// A machine with these lines of /proc/swaps; `zram0` is compressed RAM, `sda2` on a disk.
    fn machine(swaps: &str) -> FakeRoot {
        FakeRoot::bare()
            .file("/proc/vmstat", VMSTAT)
            .file("/proc/meminfo", MEMINFO)
            .file("/proc/swaps", format!("{HEAD}{swaps}"))
            .file("/sys/block/zram0/dev", "252:0\n")
            .file("/sys/block/sda/dev", "8:0\n")
            .file("/sys/block/sda/sda2/dev", "8:2\n")
            .link("/sys/dev/block/252:0", "../../block/zram0")
            .link("/sys/dev/block/8:2", "../../block/sda/sda2")
            .link("/sys/class/block/zram0", "../../block/zram0")
            .link("/sys/class/block/sda2", "../../block/sda/sda2")
    }

    fn sampled(tree: &FakeRoot) -> (MemorySample, SwapPlacement) {
        let mut sampler = MemorySampler::open(&Root::at(tree.path())).unwrap();
        let sample = sampler.sample(Duration::from_secs(7)).unwrap();
        (sample, sampler.swap())
    }

    #[test]
    fn counters_are_summed_and_swap_in_ram_is_left_out() {
        let (sample, swap) = sampled(&machine(&format!("{ZRAM}{DISK}")));
        let expected = MemorySample {
            time: Duration::from_secs(7),
            evicted_pages: 42,
            direct_reclaims: 3,
            scanned_pages: 11,
            stalled_us: None,
            available: Bytes(500 << 10),
            in_swap: Bytes((150 - 30 - 20) << 10),
        };
        assert_eq!((sample, swap), (expected, SwapPlacement::OnDisk));
        let (sample, swap) = sampled(&machine(ZRAM));
        assert_eq!((sample.in_swap, swap), (Bytes(0), SwapPlacement::InRam));
        let (sample, swap) = sampled(&machine(""));
        assert_eq!((sample.in_swap, swap), (Bytes(0), SwapPlacement::Absent));
    }

    #[test]
    fn an_area_that_comes_later_is_seen() {
        let tree = machine("");
        let mut sampler = MemorySampler::open(&Root::at(tree.path())).unwrap();
        assert!(sampler.sample(Duration::ZERO).is_some());
        assert_eq!(sampler.swap(), SwapPlacement::Absent);
        std::fs::write(tree.path().join("proc/swaps"), format!("{HEAD}{DISK}")).unwrap();
        let later = sampler.sample(Duration::from_secs(1)).unwrap();
        assert_eq!((later.in_swap, sampler.swap()), (Bytes(100 << 10), SwapPlacement::OnDisk));
    }

    #[test]
    fn a_kernel_without_swap_is_refused_or_has_no_sample() {
        let bare = FakeRoot::bare();
        let error = MemorySampler::open(&Root::at(bare.path())).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Impossible);
        let without = machine("").file("/proc/vmstat", "allocstall_dma 1\npgscan_kswapd 1\n");
        let mut sampler = MemorySampler::open(&Root::at(without.path())).unwrap();
        assert_eq!(sampler.sample(Duration::ZERO), None);
    }

    /// The machine that the test runs on.
    #[test]
    fn this_kernel_is_sampled() {
        let mut sampler = MemorySampler::open(&Root::system()).unwrap();
        let [first, second] = [0, 1].map(|s| sampler.sample(Duration::from_secs(s)).unwrap());
        assert!(first.available.0 > 0);
        assert!(second.evicted_pages >= first.evicted_pages);
        assert!(second.scanned_pages >= first.scanned_pages);
    }
}
