//! A group's block I/O and its limits: `io.stat` and `io.max`, or the `blkio.throttle` files.
//!
//! Both name devices by number; the series have their names. A device without traffic of
//! the group has no line, and so no series.

use super::group_files::GroupFiles;
use super::table::{Column, LineTable, Shape, word_at};
use machine::Root;
use machine::block;
use machine::cgroup::CgroupVersion;

/// Words of `io.stat`: "254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6".
const STAT: [(&str, &str); 4] =
    [("read_bytes", "bytes"), ("write_bytes", "bytes"), ("reads", "count"), ("writes", "count")];
/// Words of `io.max`: "254:0 rbps=max wbps=1048576 riops=max wiops=max".
const MAX: [(&str, &str); 4] = [
    ("max.rbps", "bytes/s"),
    ("max.wbps", "bytes/s"),
    ("max.riops", "count/s"),
    ("max.wiops", "count/s"),
];

/// What one file holds behind the device's number.
#[derive(Clone, Copy, Debug)]
enum IoFile {
    /// Counters in this order.
    Stat,
    /// Limits in this order.
    Max,
    /// "254:0 Read 5" in version 1: what reads and writes are called.
    Service { read: &'static str, write: &'static str, unit: &'static str },
    /// One limit of version 1.
    Limit(&'static str, &'static str),
}

/// One file whose lines start with a device's number.
#[derive(Debug)]
struct IoLines {
    root: Root,
    prefix: String,
    file: IoFile,
}

/// Opens what the version has.
pub(super) fn open(files: &mut GroupFiles<'_>, version: CgroupVersion) {
    let table = |files: &GroupFiles<'_>, name: &str, file| {
        let shape =
            IoLines { root: files.root.clone(), prefix: format!("{}.io", files.prefix), file };
        LineTable::open(files.root, files.path(name), shape)
    };
    if version == CgroupVersion::V2 {
        files.keep(table(files, "io.stat", IoFile::Stat));
        files.keep_slow(table(files, "io.max", IoFile::Max));
        return;
    }
    let service = |read, write, unit| IoFile::Service { read, write, unit };
    let totals = [
        ("io_service_bytes", service("read_bytes", "write_bytes", "bytes")),
        ("io_serviced", service("reads", "writes", "count")),
    ];
    for (name, file) in totals {
        // With its children, as version 2 counts; older kernels have the group alone.
        let whole = table(files, &format!("blkio.throttle.{name}_recursive"), file);
        let alone = || table(files, &format!("blkio.throttle.{name}"), file);
        let found = whole.or_else(alone);
        files.keep(found);
    }
    let limits = [
        ("read_bps_device", "max.rbps", "bytes/s"),
        ("write_bps_device", "max.wbps", "bytes/s"),
        ("read_iops_device", "max.riops", "count/s"),
        ("write_iops_device", "max.wiops", "count/s"),
    ];
    for (name, series, unit) in limits {
        let name = format!("blkio.throttle.{name}");
        files.keep_slow(table(files, &name, IoFile::Limit(series, unit)));
    }
}

impl Shape for IoLines {
    fn head<'a>(&self, line: &'a [u8]) -> Option<(&'a [u8], usize)> {
        let (number, end) = word_at(line, 0)?;
        match self.file {
            // The last line is a sum, "Total 5". It is not kept, and its number may change.
            IoFile::Service { .. } => match word_at(line, end) {
                Some((_, end)) => Some((&line[..end], end)),
                None => Some((number, end)),
            },
            _ => Some((number, end)),
        }
    }

    fn columns(&self, key: &str) -> Vec<Column> {
        let mut words = key.split_ascii_whitespace();
        let device = words.next().and_then(|number| device(&self.root, number));
        let Some(device) = device else {
            return Vec::new();
        };
        let name = |series: &str| format!("{}.{device}.{series}", self.prefix);
        match (self.file, words.next()) {
            (IoFile::Stat, _) => (0..)
                .zip(STAT)
                .map(|(word, (series, unit))| Column::counter(word, name(series), unit, 1))
                .collect(),
            (IoFile::Max, _) => (0..)
                .zip(MAX)
                .map(|(word, (series, unit))| Column::gauge(word, name(series), unit, 1))
                .collect(),
            (IoFile::Service { read, unit, .. }, Some("Read")) => {
                vec![Column::counter(0, name(read), unit, 1)]
            }
            (IoFile::Service { write, unit, .. }, Some("Write")) => {
                vec![Column::counter(0, name(write), unit, 1)]
            }
            (IoFile::Limit(series, unit), _) => vec![Column::gauge(0, name(series), unit, 1)],
            (IoFile::Service { .. }, _) => Vec::new(),
        }
    }
}

/// The name of the device with the number "254:0".
fn device(root: &Root, number: &str) -> Option<String> {
    let (major, minor) = number.trim_end_matches(':').split_once(':')?;
    block::name_of_device(root, major.parse().ok()?, minor.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_grows_makes_no_new_plan() {
        let file = IoFile::Service { read: "read_bytes", write: "write_bytes", unit: "bytes" };
        let shape = IoLines { root: Root::at("/nowhere"), prefix: "group0.io".to_owned(), file };
        // A line without a head is expected word by word: the sum's number must not be in it.
        let expected: Option<(&[u8], usize)> = Some((b"Total", 6));
        assert_eq!(shape.head(b"Total 5"), expected);
        assert_eq!(shape.head(b"Total 252508468224"), expected);
        assert!(shape.columns("Total").is_empty());
        let device: Option<(&[u8], usize)> = Some((b"254:0 Read ", 11));
        assert_eq!(shape.head(b"254:0 Read 5"), device);
    }
}
