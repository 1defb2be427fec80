//! The running totals of one disk or partition: requests, sectors, times.
//!
//! From the device's own `stat` file, which costs less than /proc/diskstats; that one is
//! the fallback. Fields that an older kernel lacks are `None`.

use crate::root::Root;
use serde::Serialize;

/// A sector in these files is always 512 bytes.
pub const SECTOR_BYTES: u64 = 512;

/// Totals since the device appeared; see the kernel's `Documentation/block/stat.rst`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiskStats {
    /// Reads completed.
    pub reads: u64,
    /// Reads that were merged into others before they were sent.
    pub reads_merged: u64,
    /// Sectors read, of 512 bytes.
    pub sectors_read: u64,
    /// Time that reads took, summed over requests.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Writes that were merged into others before they were sent.
    pub writes_merged: u64,
    /// Sectors written, of 512 bytes.
    pub sectors_written: u64,
    /// Time that writes took, summed over requests.
    pub write_ms: u64,
    /// Requests in flight now; the one gauge here.
    pub in_flight: u64,
    /// Time during which anything was in flight.
    pub busy_ms: u64,
    /// Requests in flight, summed over time.
    pub queue_ms: u64,
    /// Discards completed; Linux 4.18.
    pub discards: Option<u64>,
    /// Sectors discarded; Linux 4.18.
    pub sectors_discarded: Option<u64>,
    /// Flushes completed; Linux 5.5. Whole disks only.
    pub flushes: Option<u64>,
    /// Time that flushes took; Linux 5.5. Whole disks only.
    pub flush_ms: Option<u64>,
}

/// The totals of the device with this number; `None` if there is no such device.
#[must_use]
pub fn of(root: &Root, major: u32, minor: u32) -> Option<DiskStats> {
    let own = root.read(format!("/sys/dev/block/{major}:{minor}/stat")).ok();
    own.and_then(|text| parse_fields(text.split_whitespace()))
        .or_else(|| parse(&root.read("/proc/diskstats").ok()?, major, minor))
}

/// The totals in the text of /proc/diskstats.
#[must_use]
pub fn parse(text: &str, major: u32, minor: u32) -> Option<DiskStats> {
    text.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let is_it = fields.next()?.parse() == Ok(major) && fields.next()?.parse() == Ok(minor);
        let _name = fields.next()?;
        is_it.then(|| parse_fields(fields)).flatten()
    })
}

/// The numbers in the order of both files.
fn parse_fields<'a>(fields: impl Iterator<Item = &'a str>) -> Option<DiskStats> {
    let mut fields = fields.map(|field| field.parse::<u64>().ok());
    // Evaluated from top to bottom, as the fields come.
    let mut next = || fields.next().flatten();
    Some(DiskStats {
        reads: next()?,
        reads_merged: next()?,
        sectors_read: next()?,
        read_ms: next()?,
        writes: next()?,
        writes_merged: next()?,
        sectors_written: next()?,
        write_ms: next()?,
        in_flight: next()?,
        busy_ms: next()?,
        queue_ms: next()?,
        discards: next(),
        sectors_discarded: {
            let _merged = next();
            next()
        },
        flushes: {
            let _discard_ms = next();
            next()
        },
        flush_ms: next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
";

    #[test]
    fn fields_are_in_the_kernels_order() {
        let stats = parse(TEXT, 254, 0).unwrap();
        assert_eq!((stats.reads, stats.sectors_read, stats.read_ms), (1, 3, 4));
        assert_eq!((stats.writes, stats.sectors_written, stats.write_ms), (5, 7, 8));
        assert_eq!((stats.in_flight, stats.busy_ms, stats.queue_ms), (9, 10, 11));
        assert_eq!((stats.discards, stats.sectors_discarded), (Some(12), Some(14)));
        assert_eq!((stats.flushes, stats.flush_ms), (Some(16), Some(17)));
    }

    #[test]
    fn an_older_kernel_has_fewer() {
        let stats = parse(TEXT, 7, 0).unwrap();
        assert_eq!((stats.discards, stats.flushes), (None, None));
        assert_eq!(parse("8 0 sda 1 2 3", 8, 0), None);
        assert_eq!(parse(TEXT, 8, 0), None);
    }

    proptest! {
        #[test]
        fn any_text_parses(text in "\\PC{0,200}", rows in "(1 1 a( [0-9]{1,22}){0,18}\n){0,3}") {
            let _ = parse(&text, 1, 1);
            let _ = parse(&rows, 1, 1);
        }
    }
}
