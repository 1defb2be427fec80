//! `record --accesses`: what a recording keeps of single accesses is what the kernel counted, by
//! place; it stays within its bytes, and says what it left out.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use record::file::AccessReader;
use record::{AccessBatch, DeviceRequest, PageEvent, PageEventKind, RequestKind};
use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use support::{command, terrace};
use sys::file::CacheAdvice;
use sys::memory::AlignedBuffer;
use testkit::{LoopDevice, Random, TempDir};

const PAGE: u64 = 4096;
const SECTORS: u64 = PAGE / 512;

/// The bytes of the chunks of accesses in a recording, with their headers.
fn bytes_of_accesses(file: &Path) -> u64 {
    const FILE_HEADER: usize = 16;
    const HEADER: usize = 32;
    const ACCESSES: u8 = 10;
    let whole = std::fs::read(file).unwrap();
    let (mut at, mut bytes) = (FILE_HEADER, 0);
    while at + HEADER <= whole.len() {
        let payload = u32::from_le_bytes(whole[at + 4..at + 8].try_into().unwrap());
        let length = HEADER + payload as usize;
        bytes += if whole[at] == ACCESSES { length as u64 } else { 0 };
        at += length;
    }
    bytes
}

/// A recorder in the background, the only one: it sees what all programs of the machine do, and
/// what comes too fast is sampled.
struct Recorder(Child, #[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Recorder {
    fn start(file: &Path, option: &str) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut command = command(&format!("record {option} -o {}", file.display()));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut recorder = Self(command.spawn().unwrap(), alone);
        // Programs are loaded before the file is made.
        while std::fs::metadata(file).map_or(0, |about| about.len()) == 0 {
            if recorder.0.try_wait().unwrap().is_some() {
                let mut said = String::new();
                recorder.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                panic!("the recorder ended: {said}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(500));
        recorder
    }

    /// Ends it; what it said.
    fn end(mut self) -> String {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.0.wait().unwrap().success(), "{said}");
        said
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn batches(file: &Path) -> Vec<AccessBatch> {
    AccessReader::open(file).unwrap().map(Result::unwrap).collect()
}

fn needs() -> Option<&'static str> {
    if !testkit::is_root() {
        return Some("root");
    }
    let listed =
        std::fs::read_to_string("/sys/kernel/tracing/available_events").unwrap_or_default();
    let has_btf = Path::new("/sys/kernel/btf/vmlinux").exists();
    (!has_btf || !listed.contains("mm_filemap_add_to_page_cache")).then_some("kernel events")
}

/// Reads and writes that the kernel counted: `/proc/diskstats`.
fn counted(device: &Path) -> (u64, u64) {
    let name = device.file_name().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string("/proc/diskstats").unwrap();
    let line = text.lines().find(|line| line.split_whitespace().nth(2) == Some(&name)).unwrap();
    let field = |index: usize| line.split_whitespace().nth(index).unwrap().parse().unwrap();
    (field(3), field(7))
}

#[test]
fn requests_to_a_device_are_kept_with_their_sectors() {
    if let Some(need) = needs() {
        return testkit::skip(need);
    }
    let directory = TempDir::new();
    let image = directory.join("image");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let device = match LoopDevice::over(&image) {
        Ok(device) => device,
        Err(need) => return testkit::skip(need),
    };
    let file = directory.join("a.trec");
    let direct = File::options().read(true).write(true).open(device.path()).unwrap();
    sys::file::set_direct(&direct, true).unwrap();
    let number = std::fs::metadata(device.path()).unwrap().rdev();
    let recorder = Recorder::start(&file, "--accesses");
    let before = counted(device.path());
    let mut random = Random(5);
    let places: Vec<u64> = (0..500).map(|_| random.below((64 << 20) / PAGE)).collect();
    let mut block = AlignedBuffer::new(PAGE as usize).unwrap();
    for (turn, place) in places.iter().enumerate() {
        if turn % 5 == 0 {
            direct.write_all_at(&block, place * PAGE).unwrap();
        } else {
            direct.read_exact_at(&mut block, place * PAGE).unwrap();
        }
    }
    let after = counted(device.path());
    std::thread::sleep(Duration::from_millis(300));
    let said = recorder.end();
    assert!(said.contains("accesses were kept and 0 lost; of requests all"), "{said}");
    let of_device = |request: &DeviceRequest| {
        u64::from(request.device.0) == (number >> 8 & 0xfff)
            && u64::from(request.device.1) == (number & 0xff)
    };
    let whole = batches(&file);
    let kept: Vec<DeviceRequest> =
        whole.iter().flat_map(|batch| batch.requests.clone()).filter(of_device).collect();
    let of_kind = |kind| kept.iter().filter(|request| request.kind == kind).collect::<Vec<_>>();
    let (reads, writes) = (of_kind(RequestKind::Read), of_kind(RequestKind::Write));
    let counted = ((after.0 - before.0) as usize, (after.1 - before.1) as usize);
    assert_eq!((reads.len(), writes.len()), counted);
    assert_eq!((reads.len(), writes.len()), (400, 100));
    // One after the other, so in this order.
    let sectors: Vec<u64> = kept.iter().map(|request| request.sector).collect();
    assert_eq!(sectors, places.iter().map(|place| place * SECTORS).collect::<Vec<_>>());
    assert!(kept.iter().all(|request| u64::from(request.sectors) == SECTORS));
    assert!(kept.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
    assert!(kept.iter().all(|request| request.latency_ns < 5_000_000_000));
    assert!(whole.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns), "no time between them");
    let exported = directory.join("oracle");
    let line = format!("export {} --to oracle-general -o {}", file.display(), exported.display());
    terrace(&line).done();
    let records = std::fs::read(&exported).unwrap();
    assert!(records.len() >= 24 * 500 && records.len().is_multiple_of(24), "{}", records.len());
    // What was written is a trace that can be read, too.
    std::fs::rename(&exported, directory.join("again")).unwrap();
    let again = directory.join("again");
    let line = format!("export {} --to oracle-general -o {}", again.display(), exported.display());
    terrace(&line).done();
    assert_eq!(std::fs::read(&exported).unwrap().len(), records.len());
}

/// What happened to the pages of `inode`, and how many pages of each kind.
fn pages_of(whole: &[AccessBatch], inode: u64, kind: PageEventKind) -> (BTreeSet<u64>, u64) {
    let events = whole.iter().flat_map(|batch| &batch.pages);
    let of_file = events.filter(|event| event.inode == inode && event.kind == kind);
    let pages: Vec<u64> = of_file.flat_map(|event: &PageEvent| event.followed(0)).collect();
    (pages.iter().copied().collect(), pages.len() as u64)
}

#[test]
fn pages_that_come_go_and_are_read_are_kept() {
    if let Some(need) = needs() {
        return testkit::skip(need);
    }
    const PAGES: u64 = 1000;
    let directory = TempDir::new();
    let set = directory.join("set");
    std::fs::write(&set, vec![7; (PAGES * PAGE) as usize]).unwrap();
    let opened = File::open(&set).unwrap();
    sys::file::sync_data(&opened).unwrap();
    let file = directory.join("a.trec");
    let recorder = Recorder::start(&file, "--accesses");
    // Dropped, read again in one go, and asked for page by page; then removed for good.
    sys::file::advise(&opened, 0, 0, CacheAdvice::DontNeed).unwrap();
    let mut whole = vec![0; (PAGES * PAGE) as usize];
    opened.read_exact_at(&mut whole, 0).unwrap();
    for page in 0..PAGES {
        opened.read_exact_at(&mut whole[..512], page * PAGE).unwrap();
    }
    let inode = opened.metadata().unwrap().ino();
    drop(opened);
    std::fs::remove_file(&set).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    recorder.end();
    let whole = batches(&file);
    let all: BTreeSet<u64> = (0..PAGES).collect();
    assert_eq!(pages_of(&whole, inode, PageEventKind::Added), (all.clone(), PAGES));
    assert_eq!(pages_of(&whole, inode, PageEventKind::Removed), (all, 2 * PAGES));
    assert_eq!(pages_of(&whole, inode, PageEventKind::Evicted).1, 0, "no lack of memory");
    let shift = whole[0].shifts.touched;
    let touches = whole.iter().flat_map(|batch| &batch.pages);
    let of_file =
        touches.filter(|event| event.inode == inode && event.kind == PageEventKind::Touched);
    let followed = of_file.flat_map(|event| event.followed(shift)).count() as u64;
    let listed = std::fs::read_to_string("/sys/kernel/tracing/available_events").unwrap();
    if listed.contains("mm_filemap_get_pages") {
        // Each page is asked for twice.
        let expected = (2 * PAGES) >> shift;
        assert!(followed.abs_diff(expected) <= expected / 10 + 1, "{followed} of {expected}");
    } else {
        assert_eq!(followed, 0);
    }
}

#[test]
fn a_read_beyond_the_end_of_a_file_asks_for_no_more_than_its_pages() {
    if let Some(need) = needs() {
        return testkit::skip(need);
    }
    let listed = std::fs::read_to_string("/sys/kernel/tracing/available_events").unwrap();
    if !listed.contains("mm_filemap_get_pages") {
        return testkit::skip("the kernel's event of reads");
    }
    // A share of the pages is followed, so of many files some.
    const FILES: usize = 400;
    const BYTES: usize = 5000;
    let directory = TempDir::new();
    let name = |number: usize| directory.join(format!("small{number}"));
    (0..FILES).for_each(|number| std::fs::write(name(number), [7; BYTES]).unwrap());
    let file = directory.join("a.trec");
    let recorder = Recorder::start(&file, "--accesses");
    let mut buffer = vec![0; 1 << 20];
    let mut inodes = BTreeSet::new();
    for number in 0..FILES {
        let small = File::open(name(number)).unwrap();
        assert_eq!(small.read_at(&mut buffer, 0).unwrap(), BYTES);
        inodes.insert(small.metadata().unwrap().ino());
    }
    std::thread::sleep(Duration::from_millis(300));
    recorder.end();
    let whole = batches(&file);
    let of_files = whole
        .iter()
        .flat_map(|batch| &batch.pages)
        .filter(|event| event.kind == PageEventKind::Touched && inodes.contains(&event.inode));
    let asked: Vec<(u64, u32)> = of_files.map(|event| (event.index, event.pages)).collect();
    let shares: Vec<u32> = whole.iter().map(|batch| batch.shifts.touched.into()).collect();
    assert!(!asked.is_empty(), "one page in two to the power of {shares:?} is followed");
    assert!(asked.iter().all(|pages| *pages == (0, 2)), "{asked:?}");
}

#[test]
fn of_pages_that_are_read_in_strides_the_share_is_kept() {
    if let Some(need) = needs() {
        return testkit::skip(need);
    }
    let listed = std::fs::read_to_string("/sys/kernel/tracing/available_events").unwrap();
    if !listed.contains("mm_filemap_get_pages") {
        return testkit::skip("the kernel's event of reads");
    }
    const READS: u64 = 32_768;
    let directory = TempDir::new();
    let file = directory.join("a.trec");
    let recorder = Recorder::start(&file, "--accesses");
    let mut buffer = vec![0; 2 * PAGE as usize];
    let mut read_every = |stride: u64, pages: u64| {
        let set = directory.join(format!("every-{stride}"));
        let holes = File::options().read(true).write(true).create_new(true).open(set).unwrap();
        holes.set_len(READS * stride * PAGE).unwrap();
        sys::file::advise(&holes, 0, 0, CacheAdvice::Random).unwrap();
        for read in 0..READS {
            let piece = &mut buffer[..(pages * PAGE) as usize];
            holes.read_exact_at(piece, read * stride * PAGE).unwrap();
        }
        (holes.metadata().unwrap().ino(), stride, READS * pages)
    };
    let read = [(2, 1), (4, 2), (16, 1)].map(|(stride, pages)| read_every(stride, pages));
    std::thread::sleep(Duration::from_millis(300));
    recorder.end();
    let whole = batches(&file);
    for (inode, stride, expected) in read {
        let shift = whole.iter().map(|batch| batch.shifts.touched).max().unwrap();
        let of_batch = |batch: &AccessBatch| -> u64 {
            let shift = batch.shifts.touched;
            let is_own =
                |event: &&PageEvent| event.inode == inode && event.kind == PageEventKind::Touched;
            let own = batch.pages.iter().filter(is_own);
            own.map(|event| event.followed(shift).count() as u64).sum::<u64>() << shift
        };
        let seen: u64 = whole.iter().map(of_batch).sum();
        // Five times what chance gives, of pages in pairs, at the smallest share that was kept.
        let limit = 5.0 * (((2 * expected) << shift) as f64).sqrt();
        let off = seen.abs_diff(expected) as f64;
        assert!(off < limit, "{stride}: {seen} of {expected}, one in {}", 1 << shift);
        assert!(limit < expected as f64, "sampled too much to see a stride");
    }
}

#[test]
fn a_recorder_without_the_rights_says_that_no_accesses_were_kept() {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    let directory = TempDir::new();
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let mut ordinary = Command::new("setpriv");
    ordinary.args(["--reuid=65534", "--regid=65534", "--clear-groups", support::TERRACE]);
    let may_run = ordinary.arg("--version").output().is_ok_and(|output| output.status.success());
    if !may_run {
        return testkit::skip("setpriv, and a binary that everyone may run");
    }
    let mut ordinary = Command::new("setpriv");
    ordinary.args(["--reuid=65534", "--regid=65534", "--clear-groups", support::TERRACE]);
    ordinary.args(["record", "--accesses", "--for", "300ms", "-o"]).arg(directory.join("a.trec"));
    let output = ordinary.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("no accesses were kept").count(), 1, "{said}");
}

#[test]
fn a_recording_stays_within_its_bytes_and_says_what_it_left_out() {
    if let Some(need) = needs() {
        return testkit::skip(need);
    }
    const BYTES: u64 = 256 << 10;
    let directory = TempDir::new();
    let set = directory.join("set");
    std::fs::write(&set, vec![7; 32 << 20]).unwrap();
    let opened = File::open(&set).unwrap();
    sys::file::sync_data(&opened).unwrap();
    let pages = (32 << 20) / PAGE;
    let file = directory.join("a.trec");
    let recorder = Recorder::start(&file, "--accesses=256k");
    let mut random = Random(9);
    let mut page = [0; 4096];
    // A page at a time, in no order, so that the events are many and do not compress; with pauses,
    // so that bytes end before the recorder does not keep up.
    sys::file::advise(&opened, 0, 0, CacheAdvice::Random).unwrap();
    let mut rounds_left = 60;
    while rounds_left > 0 {
        rounds_left -= 1;
        // Half of the bytes are used then; what comes after is sampled.
        let has_enough = std::fs::metadata(&file).unwrap().len() > BYTES * 7 / 10;
        rounds_left = if has_enough { rounds_left.min(4) } else { rounds_left };
        sys::file::advise(&opened, 0, 0, CacheAdvice::DontNeed).unwrap();
        for read in 0..pages {
            opened.read_exact_at(&mut page, random.below(pages) * PAGE).unwrap();
            if read % 32 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    let said = recorder.end();
    let whole = batches(&file);
    let (first, last) = (whole[0].shifts, whole[whole.len() - 1].shifts);
    assert!(last.moves > first.moves, "{first:?} {last:?} {said}");
    assert!(whole.windows(2).all(|pair| pair[0].shifts.moves <= pair[1].shifts.moves));
    let share = format!("come and go one in {}", 1 << last.moves);
    assert!(said.contains(&share), "{said}");
    let text = terrace(&format!("export {} --to json --no-redact", file.display())).done();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let spans = value["spans"].as_array().unwrap().iter();
    // What did not fit was left out by its place before it was many.
    let lost: u64 = whole.iter().map(|batch| batch.lost.moves + batch.lost.touched).sum();
    let kept: u64 =
        whole.iter().map(|batch| (batch.pages.len() as u64) << batch.shifts.moves).sum();
    assert!(lost < kept / 2, "{said}");
    let sampled = spans.filter(|span| span["text"].as_str().unwrap().contains("sampled")).count();
    assert!(sampled > 0, "{value}");
    let bytes = bytes_of_accesses(&file);
    assert!((BYTES / 4..=BYTES).contains(&bytes), "{bytes}");
    assert!(whole.iter().all(|batch| {
        let shifts = batch.shifts;
        let moves = batch.pages.iter().filter(|event| event.kind != PageEventKind::Touched);
        moves.clone().all(|event| event.followed(shifts.moves).next().is_some())
    }));
}

#[test]
fn bad_options_are_refused_before_anything_is_done() {
    let directory = TempDir::new();
    let kept = directory.join("ring");
    let refused = terrace(&format!("record --accesses --keep 1h -o {}", kept.display()));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let file = directory.join("a.trec");
    let refused = terrace(&format!("record --accesses=1k --for 1s -o {}", file.display()));
    refused.refused(2, "at least 256 KiB");
    assert!(!file.exists() && !kept.exists());
    let trace = directory.join("trace.csv");
    std::fs::write(&trace, "9,hm,0,Read,0,512,1\n8,hm,0,Read,0,512,1\n").unwrap();
    let line = format!("export {} --to oracle-general", trace.display());
    terrace(&line).refused(3, "record 2: its time is");
    std::fs::write(&trace, "a text\n").unwrap();
    terrace(&line).refused(3, "no trace of a known form");
}
