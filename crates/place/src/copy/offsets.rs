//! How far the copy of a large file is durable, so that the same command goes on there after an
//! interruption.
//!
//! 1. While a file from [`GOES_ON_FROM_BYTES`] is copied, it is synced now and then: at most every
//!    two seconds, five on a disk that rotates, and only after 64 MiB more. Then the offset is
//!    recorded.
//! 2. A record lies in the staging directory, named after the source's inode, in two places that
//!    are written in turn: a torn one leaves the other.
//! 3. It counts only for a source whose length, times and inode are the same, and for the file at
//!    the same path of the copy. A copy that begins anew removes it first, durably.
//!
//! The record itself is not synced: one that is lost costs time, and never is one wrong.

use crate::copy::tree::link_name;
use model::frame::{Head, Layout};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};
use sys::directory::Directory;
use sys::file;
use sys::file_stat::FileStat;

/// The directory of the records in the staging directory.
pub(super) const DIRECTORY: &str = "offsets";
/// Shorter files are copied again.
pub(super) const GOES_ON_FROM_BYTES: u64 = 256 << 20;
/// What may be copied again at least, in bytes and time: a sync makes the device write its cache.
const LEAST_STEP_BYTES: u64 = 64 << 20;
const LEAST_STEP: Duration = Duration::from_secs(2);
/// The same where a head goes to the journal, to the record, and back each time: 60 ms were seen.
const LEAST_HEAD_STEP: Duration = Duration::from_secs(5);
/// Offsets are whole pieces of a copy.
const PIECE_BYTES: u64 = super::large::BUFFER_BYTES as u64;
/// Only the owner reads it.
const MODE: u32 = 0o600;

const FIELDS: usize = 10;
const LAYOUT: Layout = Layout::new(FIELDS * 8, 0);
const KIND: u8 = 1;
const VERSION: u16 = 1;
const PLACES: u64 = 2;
/// A sector of any disk, so that one place is written without the other.
const PLACE_BYTES: u64 = 4096;

/// The records of a copy.
#[derive(Debug)]
pub(super) struct OffsetRecords {
    directory: Directory,
    /// Whether the target's inodes keep their numbers; those of FAT do not.
    has_inodes: bool,
    least_step: Duration,
}

/// How far one file is durable.
#[derive(Debug)]
pub(super) struct DurableOffset {
    name: OsString,
    identity: [u64; FIELDS - 1],
    file: Option<File>,
    offset: u64,
    noted_at: Instant,
    least_step: Duration,
    writes: u64,
}

impl OffsetRecords {
    /// The records in `directory`.
    pub(super) fn new(directory: Directory, has_inodes: bool) -> Self {
        Self { directory, has_inodes, least_step: LEAST_STEP }
    }

    /// Syncs more rarely if the target is on a disk that rotates.
    pub(super) fn for_head(mut self, target_rotates: bool) -> Self {
        if target_rotates {
            self.least_step = LEAST_HEAD_STEP;
        }
        self
    }

    /// The bytes of `target`, at `path` of the copy, that an earlier run made durable.
    pub(super) fn find(&self, source: &FileStat, target: &FileStat, path: &Path) -> Option<u64> {
        if source.bytes < GOES_ON_FROM_BYTES || target.bytes > source.bytes {
            return None;
        }
        let file = self.directory.open_own(&link_name(source)).ok()?;
        let identity = self.identity(source, target, path);
        let offsets = (0..PLACES).filter_map(|place| {
            let mut bytes = vec![0; LAYOUT.header_bytes()];
            let got = file::read_at(&file, &mut bytes, place * PLACE_BYTES).ok()?;
            let fields = parse(bytes.get(..got)?)?;
            let (offset, known) = fields.split_last()?;
            (known == identity).then_some(*offset)
        });
        // Others are of no copy of this program, and a direct write could not begin there.
        let is_possible = |offset: &u64| {
            (1..=target.bytes).contains(offset) && offset.is_multiple_of(PIECE_BYTES)
        };
        offsets.filter(is_possible).max()
    }

    /// Begins to record how far `target` is durable, from `offset` on; `None` for a short file.
    pub(super) fn begin(
        &self,
        source: &FileStat,
        target: &FileStat,
        path: &Path,
        offset: u64,
    ) -> Option<DurableOffset> {
        (source.bytes >= GOES_ON_FROM_BYTES).then(|| DurableOffset {
            name: link_name(source),
            identity: self.identity(source, target, path),
            file: None,
            offset,
            noted_at: Instant::now(),
            least_step: self.least_step,
            writes: 0,
        })
    }

    /// Removes the record of a file that begins anew, before anything is written.
    pub(super) fn forget(&self, source: &FileStat) -> sys::Result<()> {
        let name = link_name(source);
        if source.bytes < GOES_ON_FROM_BYTES || self.directory.stat(&name).is_err() {
            return Ok(());
        }
        self.directory.remove(&name)?;
        self.directory.sync().map(drop)
    }

    fn identity(&self, source: &FileStat, target: &FileStat, path: &Path) -> [u64; FIELDS - 1] {
        let path = path.as_os_str().as_bytes();
        let (modified, changed) = (source.modified, source.changed);
        [
            source.inode,
            source.bytes,
            modified.seconds.cast_unsigned(),
            modified.nanoseconds.cast_unsigned(),
            changed.seconds.cast_unsigned(),
            changed.nanoseconds.cast_unsigned(),
            if self.has_inodes { target.inode } else { 0 },
            path.len() as u64,
            u64::from(crc32c::crc32c(path)),
        ]
    }
}

impl DurableOffset {
    /// Whether it is time to sync the file, of which all before `whole_bytes` is written.
    pub(super) fn is_due(&self, whole_bytes: u64) -> bool {
        whole_bytes >= self.offset + LEAST_STEP_BYTES && self.noted_at.elapsed() >= self.least_step
    }

    /// Records that all before `whole_bytes` is durable. Where that cannot be recorded, the file
    /// is only copied again.
    pub(super) fn note(&mut self, records: &OffsetRecords, whole_bytes: u64) {
        let offset = whole_bytes / PIECE_BYTES * PIECE_BYTES;
        if offset <= self.offset {
            return;
        }
        if self.file.is_none() {
            self.file = records.directory.open_or_create(&self.name, MODE).ok();
        }
        self.noted_at = Instant::now();
        self.offset = offset;
        let Some(file) = &self.file else { return };
        let at = self.writes % PLACES * PLACE_BYTES;
        self.writes += 1;
        let frame = frame(&self.identity, offset);
        if file::write_at(file, &frame, at).is_ok() {
            // A power cut finds it then, without a wait for it.
            let _ = file::sync_range_start(file, at, frame.len() as u64);
        }
    }
}

/// The records in the bytes of such a file, one for each place that holds one, the offset last. For
/// the fuzzer: a copy reads them by `OffsetRecords::find`.
#[must_use]
pub fn stored_offsets(bytes: &[u8]) -> Vec<Vec<u64>> {
    bytes.chunks(PLACE_BYTES as usize).take(PLACES as usize).filter_map(parse).collect()
}

/// The bytes of such a file with one record; `None` for other than its number of fields.
#[must_use]
pub fn offset_record(fields: &[u64]) -> Option<Vec<u8>> {
    let (offset, identity) = fields.split_last()?;
    (fields.len() == FIELDS).then(|| frame(identity, *offset))
}

/// Makes the checksums of changed records right, so that a fuzzer gets past them.
pub fn reseal_offsets(bytes: &mut [u8]) {
    bytes.chunks_mut(PLACE_BYTES as usize).for_each(|place| LAYOUT.reseal(place));
}

fn frame(identity: &[u64], offset: u64) -> Vec<u8> {
    let mut frame = vec![0; LAYOUT.header_bytes()];
    let head = Head { kind: KIND, version: VERSION, ..Head::default() };
    let fill = |fields: &mut [u8]| {
        for (place, number) in fields.chunks_exact_mut(8).zip(identity.iter().chain([&offset])) {
            place.copy_from_slice(&number.to_le_bytes());
        }
    };
    // The lengths are those of the layout.
    let _ = LAYOUT.seal(head, fill, &mut frame);
    frame
}

fn parse(bytes: &[u8]) -> Option<Vec<u64>> {
    let (frame, _) = LAYOUT.split(bytes).ok()??;
    let is_known = frame.head.kind == KIND && frame.head.version == VERSION;
    let number = |field: &[u8]| field.try_into().ok().map(u64::from_le_bytes);
    if is_known { frame.fields.chunks_exact(8).map(number).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use testkit::TempDir;

    fn sized(directory: &TempDir, name: &str, bytes: u64) -> FileStat {
        let file = File::create(directory.join(name)).unwrap();
        file.set_len(bytes).unwrap();
        FileStat::of(&file).unwrap()
    }

    #[test]
    fn an_offset_counts_only_for_the_same_source_and_the_same_copy() {
        let directory = TempDir::new();
        let length = GOES_ON_FROM_BYTES + 5;
        let source = sized(&directory, "source", length);
        let target = sized(&directory, "target", length);
        let records = OffsetRecords::new(Directory::open(directory.path()).unwrap(), true);
        let path = Path::new("tree/file");
        assert_eq!(records.find(&source, &target, path), None);
        let mut durable = records.begin(&source, &target, path, 0).unwrap();
        for whole in [70, 140, 100] {
            durable.note(&records, (whole << 20) + 17);
        }
        assert_eq!(records.find(&source, &target, path), Some(140 << 20));
        // A copy through the cache gets its length last; what is beyond its end is not its own.
        let of_length =
            |mib: u64| records.find(&source, &FileStat { bytes: mib << 20, ..target }, path);
        assert_eq!((of_length(140), of_length(139)), (Some(140 << 20), Some(70 << 20)));
        let (mut newer, mut longer) = (source, source);
        newer.changed.nanoseconds += 1;
        longer.bytes += 1;
        assert_eq!(records.find(&newer, &target, path), None);
        assert_eq!(records.find(&longer, &FileStat { bytes: longer.bytes, ..target }, path), None);
        assert_eq!(records.find(&source, &source, path), None, "another inode");
        assert_eq!(records.find(&source, &FileStat { bytes: 5, ..target }, path), None);
        assert_eq!(records.find(&source, &target, Path::new("tree/other")), None);
        // A torn record leaves the one before.
        let file = File::options().write(true).open(directory.join(link_name(&source))).unwrap();
        file.write_all_at(&[7; 40], PLACE_BYTES + 20).unwrap();
        assert_eq!(records.find(&source, &target, path), Some(70 << 20));
        records.forget(&source).unwrap();
        assert_eq!(records.find(&source, &target, path), None);
    }

    /// Changed bytes are no record, or one of another file: never an offset that the copy has not.
    #[test]
    fn hostile_bytes_give_no_offset_that_a_copy_cannot_have() {
        let directory = TempDir::new();
        let source = sized(&directory, "source", GOES_ON_FROM_BYTES);
        let target = sized(&directory, "target", GOES_ON_FROM_BYTES);
        let records = OffsetRecords::new(Directory::open(directory.path()).unwrap(), true);
        let path = Path::new("x");
        let identity = records.identity(&source, &target, path);
        let record = directory.join(link_name(&source));
        let found = |bytes: &[u8]| {
            std::fs::write(&record, bytes).unwrap();
            records.find(&source, &target, path)
        };
        let whole = frame(&identity, 70 << 20);
        assert_eq!(found(&whole), Some(70 << 20));
        assert_eq!(offset_record(&stored_offsets(&whole)[0]).unwrap(), whole);
        let beyond = GOES_ON_FROM_BYTES + PIECE_BYTES;
        for offset in [0, 1, PIECE_BYTES - 1, (70 << 20) + 512, beyond, u64::MAX] {
            assert_eq!(found(&frame(&identity, offset)), None, "{offset}");
        }
        // An impossible one does not hide the other.
        let mut both = frame(&identity, u64::MAX);
        both.resize(PLACE_BYTES as usize, 0);
        both.extend(&whole);
        assert_eq!(found(&both), Some(70 << 20));
        for cut in 0..whole.len() {
            assert_eq!(found(&whole[..cut]), None, "{cut} bytes");
            for change in [1, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[cut] ^= change;
                assert_eq!(found(&changed), None, "byte {cut}");
                reseal_offsets(&mut changed);
                let is_whole = |offset: u64| offset.is_multiple_of(PIECE_BYTES);
                assert!(found(&changed).is_none_or(is_whole), "byte {cut}");
            }
        }
        std::fs::remove_file(&record).unwrap();
        std::os::unix::fs::symlink("source", &record).unwrap();
        assert_eq!(records.find(&source, &target, path), None, "a link");
    }

    /// As the fuzz target does, from a seed: bytes are changed, and the checksums are right again.
    #[test]
    fn changed_records_with_a_right_checksum_are_refused_or_written_the_same() {
        let mut random = model::random::Random(1);
        let (mut read, mut refused) = (0, 0);
        for _ in 0..5_000 {
            let mut bytes = vec![0; (PLACES * PLACE_BYTES) as usize];
            for place in bytes.chunks_mut(PLACE_BYTES as usize) {
                let fields: Vec<u64> = (0..FIELDS).map(|_| random.next_u64()).collect();
                let record = offset_record(&fields).unwrap();
                place[..record.len()].copy_from_slice(&record);
                for _ in 0..random.below(4) {
                    place[random.below(record.len() as u64) as usize] = random.next_u64() as u8;
                }
            }
            bytes.truncate(bytes.len() - random.below(2) as usize * random.below(8192) as usize);
            let _ = stored_offsets(&bytes);
            reseal_offsets(&mut bytes);
            let found = stored_offsets(&bytes);
            if found.is_empty() {
                refused += 1;
            }
            for fields in found {
                assert_eq!(stored_offsets(&offset_record(&fields).unwrap()), [fields]);
                read += 1;
            }
        }
        assert!(read > 1_000 && refused > 10, "{read} read, {refused} refused");
    }

    #[test]
    fn short_files_have_no_record_and_a_step_is_neither_short_nor_early() {
        let directory = TempDir::new();
        let source = sized(&directory, "source", GOES_ON_FROM_BYTES);
        let records = OffsetRecords::new(Directory::open(directory.path()).unwrap(), true);
        let short = FileStat { bytes: GOES_ON_FROM_BYTES - 1, ..source };
        assert!(records.begin(&short, &short, Path::new("x"), 0).is_none());
        let mut durable = records.begin(&source, &source, Path::new("x"), 0).unwrap();
        assert!(!durable.is_due(GOES_ON_FROM_BYTES), "too early");
        let Some(earlier) = Instant::now().checked_sub(LEAST_STEP) else { return };
        durable.noted_at = earlier;
        assert!(durable.is_due(LEAST_STEP_BYTES));
        assert!(!durable.is_due(LEAST_STEP_BYTES - 1));
    }
}
