//! Copies real files over a real ring: sizes around every border, a stop, a file that became
//! shorter, and a write that is refused.

use super::*;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use testkit::TempDir;

const BUFFER: usize = 64 << 10;

/// Copies files of a directory, by name.
struct Names {
    directory: PathBuf,
    names: Vec<(String, u64)>,
    stop_after_bytes: u64,
    written: u64,
    read: BTreeMap<String, u64>,
    ends: Vec<(String, FileEnd)>,
    /// Wanted as a sync every so many bytes, and what became durable so.
    sync_every: u64,
    durable: Vec<u64>,
    heads: Heads,
    /// Whether reads and writes were in flight at the same time.
    is_mixed: bool,
    most_reads: usize,
}

impl Names {
    fn new(directory: &TempDir) -> Self {
        Self {
            directory: directory.path().to_owned(),
            names: Vec::new(),
            stop_after_bytes: u64::MAX,
            written: 0,
            read: BTreeMap::new(),
            ends: Vec::new(),
            sync_every: u64::MAX,
            durable: Vec::new(),
            heads: Heads::None,
            is_mixed: false,
            most_reads: 0,
        }
    }

    /// Makes a source of `bytes` bytes; it is said to have `said` bytes.
    fn add(&mut self, name: &str, bytes: usize, said: usize) {
        std::fs::write(self.directory.join(name), pattern(name, bytes)).unwrap();
        self.names.insert(0, (name.to_owned(), said as u64));
    }

    fn is_equal(&self, name: &str) -> bool {
        let source = std::fs::read(self.directory.join(name)).unwrap();
        source == std::fs::read(self.directory.join(format!("{name}.copy"))).unwrap()
    }
}

fn pattern(name: &str, bytes: usize) -> Vec<u8> {
    let seed = name.bytes().map(usize::from).sum::<usize>();
    (0..bytes).map(|at| ((at / 7 + seed) % 251) as u8).collect()
}

impl FileCopier for Names {
    type Tag = String;

    fn control(&mut self) -> Control {
        Control::stop_if(self.written >= self.stop_after_bytes)
    }

    fn next_file(&mut self) -> Option<FileCopy<String>> {
        let (name, bytes) = self.names.pop()?;
        let source = File::open(self.directory.join(&name)).unwrap();
        let copy = self.directory.join(format!("{name}.copy"));
        let target = OpenOptions::new().write(true).create(true).truncate(true).open(copy).unwrap();
        Some(FileCopy {
            source,
            target,
            bytes,
            read_alignment: 4096,
            write_alignment: 4096,
            extents: Box::new([Ok(Extent::at(0..bytes))].into_iter()),
            tag: name,
        })
    }

    fn heads(&self) -> Heads {
        self.heads
    }

    fn in_flight(&mut self, now: &InFlight) {
        self.is_mixed |= now.reads > 0 && now.writes > 0;
        self.most_reads = self.most_reads.max(now.reads);
    }

    fn read(&mut self, tag: &mut String, data: &[u8], _offset: u64) {
        *self.read.entry(tag.clone()).or_default() += data.len() as u64;
    }

    fn written(&mut self, _tag: &mut String, bytes: u64) {
        self.written += bytes;
    }

    fn wants_sync(&mut self, _tag: &mut String, whole_bytes: u64) -> bool {
        let before = self.durable.last().copied().unwrap_or(0);
        whole_bytes.saturating_sub(before) >= self.sync_every
    }

    fn durable_to(&mut self, tag: &mut String, whole_bytes: u64) {
        // What is said to be durable is there.
        let whole = usize::try_from(whole_bytes).unwrap();
        let source = std::fs::read(self.directory.join(&*tag)).unwrap();
        let copy = std::fs::read(self.directory.join(format!("{tag}.copy"))).unwrap();
        assert!(source[..whole] == copy[..whole], "{whole_bytes}");
        self.durable.push(whole_bytes);
    }

    fn ended(&mut self, file: FileCopy<String>, end: FileEnd) {
        self.ends.push((file.tag, end));
    }
}

fn queue() -> Option<Queue> {
    Queue::new(4, BUFFER).map_err(|error| testkit::skip(format!("io_uring ({error})"))).ok()
}

#[test]
fn a_file_is_synced_on_the_way_where_that_is_wanted() {
    let Some(mut queue) = queue() else { return };
    let directory = TempDir::new();
    let mut names = Names::new(&directory);
    names.sync_every = 2 * BUFFER as u64;
    names.add("large", 20 * BUFFER + 5, 20 * BUFFER + 5);
    names.add("short", BUFFER, BUFFER);
    copy_files(&mut queue, &mut Pace::new(None), &mut names);
    assert!(names.ends.iter().all(|(_, end)| matches!(end, FileEnd::Durable)), "{:?}", names.ends);
    assert!(names.is_equal("large") && names.is_equal("short"));
    // The next one begins when the one before has ended: how many there are depends on the disk.
    assert!(!names.durable.is_empty());
    assert!(names.durable.is_sorted_by(|one, next| one + names.sync_every <= *next));
}

#[test]
fn many_files_of_all_sizes_are_equal_and_durable() {
    let Some(mut queue) = queue() else { return };
    let directory = TempDir::new();
    let mut names = Names::new(&directory);
    let around = [0, 1, 4095, 4096, 4097, BUFFER - 1, BUFFER, BUFFER + 1, 5 * BUFFER + 77];
    let sizes: Vec<usize> = around.into_iter().cycle().take(40).collect();
    for (at, size) in sizes.iter().enumerate() {
        names.add(&format!("file{at}"), *size, *size);
    }
    let summary = copy_files(&mut queue, &mut Pace::new(None), &mut names);
    assert_eq!(summary.bytes, sizes.iter().sum::<usize>() as u64);
    assert!(!summary.is_stopped && !summary.is_broken);
    assert_eq!(names.ends.len(), sizes.len());
    for (name, end) in &names.ends {
        assert!(matches!(end, FileEnd::Durable), "{name}: {end:?}");
        assert!(names.is_equal(name), "{name}");
    }
    assert_eq!(names.read.values().sum::<u64>(), summary.bytes);
    // The ring is as it was: the same again.
    names.add("again", 3 * BUFFER, 3 * BUFFER);
    names.ends.clear();
    copy_files(&mut queue, &mut Pace::new(None), &mut names);
    assert!(names.is_equal("again"));
}

#[test]
fn a_file_that_became_shorter_ends_alone() {
    let Some(mut queue) = queue() else { return };
    let directory = TempDir::new();
    let mut names = Names::new(&directory);
    names.add("before", 100_000, 100_000);
    names.add("short", 100_000, 300_000);
    names.add("after", 100_000, 100_000);
    copy_files(&mut queue, &mut Pace::new(None), &mut names);
    for (name, end) in &names.ends {
        let is_right = match name.as_str() {
            "short" => matches!(end, FileEnd::Shorter),
            _ => matches!(end, FileEnd::Durable) && names.is_equal(name),
        };
        assert!(is_right, "{name}: {end:?}");
    }
    assert_eq!(names.ends.len(), 3);
}

#[test]
fn a_refused_write_fails_its_file_with_the_offset() {
    let Some(mut queue) = queue() else { return };
    struct ReadOnly(Names);
    impl FileCopier for ReadOnly {
        type Tag = String;
        fn control(&mut self) -> Control {
            Control::Continue
        }
        fn next_file(&mut self) -> Option<FileCopy<String>> {
            let mut file = self.0.next_file()?;
            if file.tag == "bad" {
                file.target = File::open(self.0.directory.join("bad")).unwrap();
            }
            Some(file)
        }
        fn ended(&mut self, file: FileCopy<String>, end: FileEnd) {
            self.0.ended(file, end);
        }
    }
    let directory = TempDir::new();
    let mut names = Names::new(&directory);
    names.add("good", 200_000, 200_000);
    names.add("bad", 200_000, 200_000);
    let mut copier = ReadOnly(names);
    copy_files(&mut queue, &mut Pace::new(None), &mut copier);
    let names = copier.0;
    assert_eq!(names.ends.len(), 2);
    for (name, end) in &names.ends {
        match (name.as_str(), end) {
            ("good", FileEnd::Durable) => assert!(names.is_equal(name)),
            ("bad", FileEnd::Failed(failure)) => {
                assert_eq!(failure.error.operation, "write");
                assert!(failure.error.offset.is_some());
            }
            _ => panic!("{name}: {end:?}"),
        }
    }
}

#[test]
fn after_a_stop_everything_before_the_gap_is_written() {
    let Some(mut queue) = queue() else { return };
    let directory = TempDir::new();
    let mut names = Names::new(&directory);
    names.add("long", 100 * BUFFER, 100 * BUFFER);
    names.stop_after_bytes = 10 * BUFFER as u64;
    let summary = copy_files(&mut queue, &mut Pace::new(None), &mut names);
    assert!(summary.is_stopped);
    let [(_, FileEnd::Stopped { whole_bytes })] = names.ends.as_slice() else {
        panic!("{:?}", names.ends)
    };
    let whole = *whole_bytes as usize;
    assert!((10 * BUFFER..100 * BUFFER).contains(&whole), "{whole}");
    let copy = File::open(directory.join("long.copy")).unwrap();
    let mut seen = vec![0; whole];
    copy.read_exact_at(&mut seen, 0).unwrap();
    assert_eq!(seen, pattern("long", 100 * BUFFER)[..whole]);
}

#[test]
fn the_time_in_which_one_side_waited_is_counted() {
    let Some(mut queue) = queue() else { return };
    let directory = TempDir::new();
    let mut names = Names::new(&directory);
    names.add("file", 64 * BUFFER, 64 * BUFFER);
    let start = now_ns();
    let summary = copy_files(&mut queue, &mut Pace::new(None), &mut names);
    let all = now_ns() - start;
    assert!(summary.reader_waited_ns + summary.writer_waited_ns <= all);
}

#[test]
fn reads_and_writes_take_turns_on_one_disk_with_a_head() {
    copy_with(Heads::Shared, |names| assert!(!names.is_mixed, "a read beside a write"));
}

#[test]
fn two_disks_with_a_head_have_few_requests_each() {
    copy_with(Heads::Apart, |names| assert!(names.most_reads <= 8, "{}", names.most_reads));
}

fn copy_with(heads: Heads, check: fn(&Names)) {
    let Ok(mut queue) = Queue::new(32, BUFFER) else { return testkit::skip("io_uring") };
    let directory = TempDir::new();
    let mut names = Names::new(&directory);
    names.heads = heads;
    let sizes = [1, BUFFER, 70 * BUFFER + 5, 3 * BUFFER, 33 * BUFFER];
    for (at, size) in sizes.iter().enumerate() {
        names.add(&format!("file{at}"), *size, *size);
    }
    copy_files(&mut queue, &mut Pace::new(None), &mut names);
    assert_eq!(names.ends.len(), sizes.len());
    for (name, end) in &names.ends {
        assert!(matches!(end, FileEnd::Durable), "{name}: {end:?}");
        assert!(names.is_equal(name), "{name}");
    }
    check(&names);
    assert!(names.most_reads > 1, "{}", names.most_reads);
    // A stop in the middle of a turn: what was read and not written is not counted.
    names.add("long", 100 * BUFFER, 100 * BUFFER);
    names.ends.clear();
    names.stop_after_bytes = names.written + 10 * BUFFER as u64;
    let before = names.written;
    assert!(copy_files(&mut queue, &mut Pace::new(None), &mut names).is_stopped);
    let [(_, FileEnd::Stopped { whole_bytes })] = names.ends.as_slice() else {
        panic!("{:?}", names.ends)
    };
    assert!(*whole_bytes <= names.written - before, "{whole_bytes}");
    let copy = std::fs::read(directory.join("long.copy")).unwrap();
    let whole = *whole_bytes as usize;
    assert_eq!(copy[..whole], pattern("long", 100 * BUFFER)[..whole]);
    // The ring and the pace are as they were.
    names.add("again", 3 * BUFFER, 3 * BUFFER);
    names.stop_after_bytes = u64::MAX;
    copy_files(&mut queue, &mut Pace::new(None), &mut names);
    assert!(names.is_equal("again"));
}
