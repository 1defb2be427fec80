//! The slow disk against its own model: rates, order, contents, swap within a group, and
//! what is left when its process is killed.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use testkit::disk_model::{DiskModel, DiskRequest, RequestKind};
use testkit::{Beyond, Cgroup, Random, SlowDisk, TrueSize};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// Swap is the whole machine's: one test must not push its pages to a disk that another kills.
static SWAP: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    SWAP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A page of memory where direct I/O takes it.
struct Aligned {
    room: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(bytes: usize) -> Self {
        let room = vec![0; bytes + PAGE as usize];
        let start = room.as_ptr().align_offset(PAGE as usize);
        Self { room, start }
    }

    fn slice(&mut self, bytes: usize) -> &mut [u8] {
        &mut self.room[self.start..self.start + bytes]
    }
}

/// A disk; if it cannot be made, the reason is printed.
fn disk(bytes: u64) -> Option<SlowDisk> {
    SlowDisk::hdd(bytes).map_err(testkit::skip).ok()
}

/// A stick of 64 MiB, of which all or only a part is there, as [`disk`].
fn stick(timing: &str, true_size: Option<TrueSize>) -> Option<SlowDisk> {
    let stick = match true_size {
        Some(size) => SlowDisk::fake(timing, 64 * MIB, size),
        None => SlowDisk::modelled(timing, 64 * MIB),
    };
    stick.map_err(testkit::skip).ok()
}

fn direct(disk: &SlowDisk) -> File {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(testkit::O_DIRECT);
    options.open(disk.path()).unwrap()
}

#[test]
fn random_reads_take_the_time_of_the_model_and_sequential_ones_do_not() {
    let _alone = alone();
    let Some(disk) = disk(64 * MIB) else { return };
    let file = direct(&disk);
    let mut page = Aligned::new(MIB as usize);
    let mut random = Random(5);
    let mut model = DiskModel::hdd(64 * MIB);
    let (count, mut expected_ns) = (60, 0);
    let before = disk.statistics();
    let start = Instant::now();
    for _ in 0..count {
        let offset = random.below(64 * MIB / PAGE) * PAGE;
        file.read_exact_at(page.slice(PAGE as usize), offset).unwrap();
        let (kind, len) = (RequestKind::Read, PAGE);
        expected_ns += model.service_ns(DiskRequest { kind, offset, len });
    }
    let took_ns = start.elapsed().as_nanos() as f64;
    let served = disk.statistics();
    assert_eq!(served.reads - before.reads, count);
    assert_eq!(served.read_bytes - before.read_bytes, count * PAGE);
    assert!(served.seeks - before.seeks >= count - 3, "{served:?}");
    let ratio = took_ns / expected_ns as f64;
    assert!((0.7..3.0).contains(&ratio), "{ratio} times the model");

    let start = Instant::now();
    for block in 0..32 {
        file.read_exact_at(page.slice(MIB as usize), block * MIB).unwrap();
    }
    let sequential = 32.0 * MIB as f64 / start.elapsed().as_secs_f64();
    let at_random = count as f64 * PAGE as f64 / (took_ns / 1e9);
    println!(
        "{:.0} reads/s, {ratio:.2} times the model; in order {:.0} MB/s",
        at_random / PAGE as f64,
        sequential / 1e6
    );
    assert!(sequential > 10.0 * at_random, "{sequential} {at_random}");
}

#[test]
fn what_was_written_is_read_back() {
    let _alone = alone();
    let Some(disk) = disk(8 * MIB) else { return };
    let mut random = Random(7);
    let text: Vec<u8> = (0..3 * MIB).map(|_| random.below(256) as u8).collect();
    let mut file = File::options().write(true).open(disk.path()).unwrap();
    file.write_all(&text).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let mut read = Aligned::new(text.len());
    let room = read.slice(text.len());
    direct(&disk).read_exact_at(room, 0).unwrap();
    assert!(room == &text[..]);
    assert!(disk.statistics().written_bytes >= 3 * MIB);
}

#[test]
fn a_stick_bursts_copies_blocks_and_shows_where_they_end() {
    let _alone = alone();
    let timing = "usb,read_ms=1,cross_read_ms=6,write_bps=8e6,burst_bytes=4M,burst_bps=80e6,\
                  erase_bytes=512K";
    let Some(stick) = stick(timing, None) else { return };
    let file = direct(&stick);
    let mut buffer = Aligned::new(MIB as usize);
    let ms = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    };
    let write = |at: u64, bytes: u64, buffer: &mut Aligned| {
        file.write_all_at(buffer.slice(bytes as usize), at).unwrap();
    };
    let in_burst = ms(&mut || (0..4).for_each(|at| write(at * MIB, MIB, &mut buffer)));
    let sustained = ms(&mut || (4..6).for_each(|at| write(at * MIB, MIB, &mut buffer)));
    // 13 and 131 ms a MiB.
    assert!(sustained / 2.0 > 3.0 * in_burst / 4.0, "{in_burst} ms, {sustained} ms");
    std::thread::sleep(Duration::from_millis(300));
    let again = ms(&mut || write(6 * MIB, MIB, &mut buffer));
    assert!(again < sustained / 4.0, "{again} ms, {sustained} ms");
    // Two blocks are copied, 86 ms each.
    let jump = ms(&mut || write(9 * MIB - PAGE, PAGE, &mut buffer));
    let goes_on = (0..4).map(|page| ms(&mut || write(9 * MIB + page * PAGE, PAGE, &mut buffer)));
    let on = goes_on.fold(f64::MAX, f64::min);
    assert!(jump > 40.0 && jump > 5.0 * on, "{jump} ms, {on} ms");

    let mut least_ms = |first: u64| {
        let starts = (2..12).map(|block| block * 512 * 1024 + first - PAGE);
        let mut read =
            |at| ms(&mut || file.read_exact_at(buffer.slice(2 * PAGE as usize), at).unwrap());
        starts.map(&mut read).fold(f64::MAX, f64::min)
    };
    let (within, across) = (least_ms(4 * PAGE), least_ms(0));
    assert!(across > within + 4.0, "{within} ms, {across} ms");
}

#[test]
fn a_fake_stick_forgets_or_wraps_without_an_error() {
    let _alone = alone();
    for (beyond, at_start, at_end) in [(Beyond::Dropped, 1, 0), (Beyond::Wraps, 9, 9)] {
        let size = TrueSize { bytes: 4 * MIB, beyond };
        let Some(stick) = stick("usb,write_ms=0,read_ms=0,jump_write_ms=0", Some(size)) else {
            return;
        };
        let file = direct(&stick);
        let mut page = Aligned::new(PAGE as usize);
        for (at, byte) in [(0, 1), (4 * MIB - PAGE, 2), (60 * MIB, 9)] {
            page.slice(PAGE as usize).fill(byte);
            file.write_all_at(page.slice(PAGE as usize), at).unwrap();
        }
        file.sync_all().unwrap();
        for (at, byte) in [(0, at_start), (4 * MIB - PAGE, 2), (60 * MIB, at_end)] {
            file.read_exact_at(page.slice(PAGE as usize), at).unwrap();
            assert!(page.slice(PAGE as usize).iter().all(|&read| read == byte), "{beyond:?} {at}");
        }
    }
}

/// The number of seconds is printed when the toucher has read all back, and `good` if each
/// page holds what was put there.
const TOUCHER: &str = r#"
import sys, time
pages = 4096
memory = bytearray(pages * 4096)
for page in range(pages):
    memory[page * 4096:page * 4096 + 8] = (page * 2654435761 % 2**61 + 1).to_bytes(8, "little")
    memory[page * 4096 + 4000] = 1
print("touched", flush=True)
sys.stdin.readline()
bad = 0
for page in range(pages):
    if memory[page * 4096:page * 4096 + 8] != (page * 2654435761 % 2**61 + 1).to_bytes(8, "little"):
        bad += 1
print("good" if bad == 0 else "bad", flush=True)
"#;

#[test]
fn memory_of_a_group_is_swapped_to_it_and_comes_back_intact() {
    let _alone = alone();
    let Some(disk) = disk(64 * MIB) else { return };
    let group = match Cgroup::v1_memory(64 * MIB) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let swap = disk.as_swap().unwrap();
    let mut toucher = match group
        .command("python3")
        .args(["-c", TOUCHER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
    {
        Ok(toucher) => toucher,
        Err(error) => return testkit::skip(format!("python3 ({error})")),
    };
    let mut words = std::io::BufReader::new(toucher.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut words, &mut line).unwrap();
    if line.is_empty() {
        return testkit::skip("python3");
    }
    let before = disk.statistics();
    // A limit below what is used makes the kernel push the rest out.
    // Refused while what leaves is not written yet; what went is gone nonetheless.
    for _ in 0..600 {
        if std::fs::write(group.path().join("memory.limit_in_bytes"), "6000000").is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let pushed = disk.statistics();
    std::fs::write(group.path().join("memory.limit_in_bytes"), "67108864").unwrap();
    let out_bytes = pushed.written_bytes - before.written_bytes;
    assert!(out_bytes > 8 * MIB, "{out_bytes} bytes pushed out");
    toucher.stdin.take().unwrap().write_all(b"\n").unwrap();
    line.clear();
    std::io::BufRead::read_line(&mut words, &mut line).unwrap();
    toucher.wait().unwrap();
    assert_eq!(line, "good\n");
    let back_bytes = disk.statistics().read_bytes - pushed.read_bytes;
    println!("{out_bytes} bytes out, {back_bytes} back");
    assert!(back_bytes > 8 * MIB, "{back_bytes} bytes came back");
    let area = swap.path().to_string_lossy().into_owned();
    let listed = || std::fs::read_to_string("/proc/swaps").unwrap().contains(&area);
    assert!(listed());
    drop(swap);
    assert!(!listed());
}

/// The disks that the next test kills together with their process.
#[test]
#[ignore = "is started by the test below"]
fn a_disk_that_is_never_given_back() {
    let Some(disk) = disk(8 * MIB) else { return };
    let _swap = disk.as_swap().unwrap();
    let other = SlowDisk::hdd(8 * MIB).unwrap();
    let mount = other.as_ext4().unwrap();
    std::fs::write(mount.path().join("file"), "here").unwrap();
    let (disk, mount) = (disk.path().display(), mount.path().display());
    println!("\ndisk {disk} {mount}");
    std::io::stdout().flush().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn what_a_killed_test_left_is_removed_by_the_next() {
    let _alone = alone();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "a_disk_that_is_never_given_back"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let words = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut lines = std::io::BufRead::lines(words).map_while(Result::ok);
    let left = lines.find_map(|line| line.strip_prefix("disk ").map(str::to_owned));
    child.kill().unwrap();
    child.wait().unwrap();
    let Some(left) = left else {
        return testkit::skip("root, /dev/fuse and free loop devices");
    };
    let (left, mount) = left.split_once(' ').unwrap();
    let swaps = || std::fs::read_to_string("/proc/swaps").unwrap();
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let source = format!("terrace-test-{} ", child.id());
    assert!(swaps().contains(left) && mounts().contains(&source) && mounts().contains(mount));
    let next = disk(8 * MIB).unwrap();
    assert!(!mounts().contains(&source), "{}", mounts());
    assert!(!mounts().contains(mount), "{}", mounts());
    assert!(!std::path::Path::new(mount).exists());
    // The next one may have got the same number.
    assert!(!swaps().contains(left), "{}", swaps());
    drop(next);
}
