//! Caches of block devices that exist already, by their own counters: bcache and ZFS' L2ARC from
//! files, dm-cache from the lines of `dmsetup`, which the caller runs.
//!
//! A counter that is not there is `None`. How long reads take is counted by the block layer, for
//! the disk and for the cache's device, since these appeared.

use crate::root::Root;
use crate::{block, diskstats};
use model::cache_receipt::{CacheCounters, CacheKind, DeviceReads};
use std::path::{Path, PathBuf};

const ARCSTATS: &str = "/proc/spl/kstat/zfs/arcstats";

/// All bcache devices.
#[must_use]
pub fn bcache(root: &Root) -> Vec<CacheCounters> {
    let names = root.names("/sys/block").into_iter().filter(|name| name.starts_with("bcache"));
    names.filter_map(|name| bcache_device(root, &name)).collect()
}

fn bcache_device(root: &Root, name: &str) -> Option<CacheCounters> {
    // The directory is that of the disk behind it.
    let backing = root.resolve(format!("/sys/block/{name}/bcache"))?;
    let total = |counter: &str| root.number(backing.join("stats_total").join(counter));
    let set = root.resolve(backing.join("cache"));
    let cache = set.and_then(|set| root.resolve(set.join("cache0")));
    let bytes = |path: PathBuf| human_bytes(&root.word(path)?);
    let of_cache = |counter: &str| bytes(cache.as_ref()?.join(counter));
    // `written` is what it keeps of the disk, without its index and journal.
    let written = of_cache("written").zip(of_cache("metadata_written"));
    // `writethrough [writeback] writearound none`
    let modes = root.read(backing.join("cache_mode")).ok();
    Some(CacheCounters {
        kind: CacheKind::Bcache,
        name: name.to_owned(),
        is_write_back: modes.map(|modes| modes.contains("[writeback]")),
        hits: total("cache_hits"),
        misses: total("cache_misses"),
        dirty_bytes: bytes(backing.join("dirty_data")),
        written_bytes: written.map(|(kept, index)| kept.saturating_add(index)),
        disk: backing.parent().and_then(|disk| reads_in(root, disk)),
        cache: cache.as_deref().and_then(Path::parent).and_then(|disk| reads_in(root, disk)),
    })
}

/// ZFS' second level, of all pools together; `None` without ZFS, or if no pool has one.
#[must_use]
pub fn l2arc(root: &Root) -> Option<CacheCounters> {
    let text = root.read(ARCSTATS).ok()?;
    let counter = |name: &str| -> Option<u64> {
        let mut lines = text.lines().map(str::split_whitespace);
        let mut fields = lines.find_map(|mut fields| (fields.next()? == name).then_some(fields))?;
        // The type stands between.
        fields.nth(1)?.parse().ok()
    };
    let written_bytes = counter("l2_write_bytes");
    let is_used = written_bytes.unwrap_or(0) > 0 || counter("l2_size").unwrap_or(0) > 0;
    is_used.then(|| CacheCounters {
        kind: CacheKind::L2arc,
        name: "arcstats".to_owned(),
        is_write_back: Some(false),
        hits: counter("l2_hits"),
        misses: counter("l2_misses"),
        // It keeps nothing that is not on the pool.
        dirty_bytes: Some(0),
        written_bytes,
        // Which disks a pool is on is not in these files.
        disk: None,
        cache: None,
    })
}

/// All caches of the device mapper, from the lines of `dmsetup status --target cache` and
/// `dmsetup table --target cache`. Other lines are left out.
#[must_use]
pub fn dm_cache(root: &Root, status: &str, table: &str) -> Vec<CacheCounters> {
    status.lines().filter_map(|line| dm_cache_device(root, line, table)).collect()
}

/// `name: start length cache <metadata block> <used/all> <cache block> <used/all> <read hits> <read
/// misses> <write hits> <write misses> <demotions> <promotions> <dirty> ...`
fn dm_cache_device(root: &Root, line: &str, table: &str) -> Option<CacheCounters> {
    let (name, rest) = line.split_once(": ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.get(2) != Some(&"cache") {
        return None;
    }
    let number = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
    let block_bytes = number(5).map(|sectors| sectors.saturating_mul(diskstats::SECTOR_BYTES));
    let blocks = |index: usize| number(index)?.checked_mul(block_bytes?);
    let rows = table.lines().filter_map(|row| row.split_once(": "));
    let row = rows.filter(|(of, _)| *of == name).map(|(_, row)| row).next();
    // `start length cache <metadata> <cache> <origin> ...`, each device as major:minor.
    let device = |index: usize| {
        let number = row?.split_whitespace().nth(index)?;
        reads_in(root, &root.resolve(format!("/sys/dev/block/{number}"))?)
    };
    let device_written = |index: usize| {
        let number = row?.split_whitespace().nth(index)?;
        let (major, minor) = number.split_once(':')?;
        let stats = diskstats::of(root, major.parse().ok()?, minor.parse().ok()?)?;
        stats.sectors_written.checked_mul(diskstats::SECTOR_BYTES)
    };
    // `<dirty> <number of features> <feature>* ...`
    let count = number(14).and_then(|count| usize::try_from(count).ok());
    let features = count.and_then(|count| fields.get(15..15_usize.checked_add(count)?));
    Some(CacheCounters {
        kind: CacheKind::DmCache,
        name: name.to_owned(),
        is_write_back: features.map(|features| features.contains(&"writeback")),
        hits: number(7),
        misses: number(8),
        dirty_bytes: blocks(13),
        // The metadata are usually on the same stick.
        written_bytes: device_written(3)
            .zip(device_written(4))
            .map(|(index, kept)| index.saturating_add(kept)),
        disk: device(5),
        cache: device(4),
    })
}

/// The reads of the device in this directory of /sys; those of a partition are its own.
fn reads_in(root: &Root, directory: &Path) -> Option<DeviceReads> {
    let directory: PathBuf = root.resolve(directory)?;
    let text = root.read(directory.join("stat")).ok()?;
    let fields: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let name = directory.file_name()?.to_string_lossy().into_owned();
    let device = block::name_of(root, &name).unwrap_or(name);
    Some(DeviceReads { device, reads: *fields.first()?, read_ms: *fields.get(3)? })
}

/// Bytes as bcache prints them: `512`, `0.0k`, `1.3G`, in powers of 1024.
fn human_bytes(text: &str) -> Option<u64> {
    let unit = text.chars().last()?;
    let power = match unit {
        '0'..='9' => return text.parse().ok(),
        'k' => 1,
        'M' => 2,
        'G' => 3,
        'T' => 4,
        'P' => 5,
        _ => return None,
    };
    let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
    let bytes = number * 1024_f64.powi(power);
    (bytes.is_finite() && bytes >= 0.0).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    /// Reads, merged, sectors, milliseconds, and writes.
    fn stat(reads: u64, read_ms: u64) -> String {
        format!("{reads} 0 {} {read_ms} 10 0 4096 7 0 0 0\n", reads * 8)
    }

    fn root() -> FakeRoot {
        let hdd = "/sys/devices/pci/ata1/block/sda";
        let ssd = "/sys/devices/pci/nvme/block/nvme0n1";
        FakeRoot::new()
            .file(&format!("{hdd}/stat"), stat(2000, 16_000))
            .file(&format!("{ssd}/stat"), stat(10_000, 1000))
            .files(
                &format!("{hdd}/bcache"),
                &[
                    ("stats_total/cache_hits", "9000\n"),
                    ("stats_total/cache_misses", "1000\n"),
                    ("dirty_data", "1.5M\n"),
                    ("cache_mode", "writethrough [writeback] writearound none\n"),
                ],
            )
            .files(
                &format!("{ssd}/bcache"),
                &[("written", "2.0G\n"), ("metadata_written", "512.0M\n")],
            )
            .link("/sys/block/sda", "../devices/pci/ata1/block/sda")
            .link("/sys/block/bcache0", "../devices/virtual/block/bcache0")
            .link("/sys/devices/virtual/block/bcache0/bcache", "../../../pci/ata1/block/sda/bcache")
            .dir("/sys/fs/bcache/uuid")
            .link(&format!("{hdd}/bcache/cache"), "../../../../../../fs/bcache/uuid")
            .link("/sys/fs/bcache/uuid/cache0", "../../../devices/pci/nvme/block/nvme0n1/bcache")
            .link("/sys/dev/block/8:0", "../../devices/pci/ata1/block/sda")
            .file("/sys/devices/pci/ata2/block/sdb/stat", stat(1, 1))
            .link("/sys/dev/block/8:16", "../../devices/pci/ata2/block/sdb")
            .link("/sys/dev/block/259:0", "../../devices/pci/nvme/block/nvme0n1")
    }

    #[test]
    fn bcache_is_read_through_its_links() {
        let fake = root();
        let found = bcache(&Root::at(fake.path()));
        let expected = CacheCounters {
            kind: CacheKind::Bcache,
            name: "bcache0".to_owned(),
            is_write_back: Some(true),
            hits: Some(9000),
            misses: Some(1000),
            dirty_bytes: Some(3 << 19),
            written_bytes: Some(5 << 29),
            disk: Some(DeviceReads { device: "sda".to_owned(), reads: 2000, read_ms: 16_000 }),
            cache: Some(DeviceReads { device: "nvme0n1".to_owned(), reads: 10_000, read_ms: 1000 }),
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn dm_cache_is_read_from_the_lines_of_dmsetup() {
        let fake = root();
        let status = "vg-data: 0 2097152 cache 8 27/4096 128 5/512 700 300 10 20 0 40 3 1 writeback 2 \
                      migration_threshold 2048 smq 0 rw -\nother: 0 8 linear\n";
        let table = "vg-data: 0 2097152 cache 8:16 259:0 8:0 128 1 writeback smq 0\n";
        let found = dm_cache(&Root::at(fake.path()), status, table);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].hits, found[0].misses), (Some(700), Some(300)));
        assert_eq!(found[0].is_write_back, Some(true));
        assert_eq!(found[0].dirty_bytes, Some(3 * 128 * 512));
        assert_eq!(found[0].written_bytes, Some(2 * 4096 * 512));
        assert_eq!(found[0].disk.as_ref().unwrap().device, "sda");
        assert_eq!(found[0].cache.as_ref().unwrap().reads, 10_000);
        let cut = dm_cache(&Root::at(fake.path()), "a: 0 1 cache 8\n", "");
        assert_eq!((cut[0].hits, cut[0].dirty_bytes, &cut[0].disk), (None, None, &None));
        assert_eq!(cut[0].is_write_back, None);
    }

    #[test]
    fn l2arc_counts_for_all_pools() {
        let text = "13 1 0x01 123 33456 1 2\nname type data\nhits 4 9\nl2_hits 4 500\n\
                    l2_misses 4 100\nl2_write_bytes 4 1048576\nl2_size 4 4096\n";
        let fake = FakeRoot::new().file(ARCSTATS, text);
        let found = l2arc(&Root::at(fake.path())).unwrap();
        assert_eq!(
            (found.hits, found.misses, found.written_bytes),
            (Some(500), Some(100), Some(1 << 20))
        );
        assert_eq!(found.disk, None);
        let unused = FakeRoot::new().file(ARCSTATS, "l2_hits 4 0\nl2_size 4 0\n");
        assert!(l2arc(&Root::at(unused.path())).is_none());
        assert!(l2arc(&Root::at(FakeRoot::new().path())).is_none());
    }

    #[test]
    fn bytes_are_as_bcache_prints_them() {
        let cases =
            [("0", Some(0)), ("0.0k", Some(0)), ("1.5k", Some(1536)), ("3.0T", Some(3 << 40))];
        for (text, bytes) in cases {
            assert_eq!(human_bytes(text), bytes, "{text}");
        }
        for text in ["", "k", "x", "1.2.3k", "-1.0k", "infk"] {
            assert_eq!(human_bytes(text), None, "{text}");
        }
    }
}
