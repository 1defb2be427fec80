//! Memory of a real process that is pushed out and found again: shared memory that pagemap does
//! not show, brought back from swap and whole; a process and files evicted on purpose.
//!
//! The process is a Python program in a memory group of its own, because Python can map a memfd,
//! anonymous shared memory and a file on tmpfs; it verifies every byte itself.

#![allow(clippy::unwrap_used, reason = "a test program")]

use machine::Root;
use machine::maps;
use machine::pagemap::{Page, Pagemap};
use model::Control;
use place::ErrorKind;
use place::workingset::evict::{self, EvictTarget};
use place::workingset::shared::{self, SharedObject};
use place::workingset::targets::{self, Selection};
use place::{cached, ranges};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use testkit::{Cgroup, SwapArea, TempDir};

const MIB: u64 = 1 << 20;
const OBJECT_BYTES: u64 = 16 * MIB;

/// Maps an object of each kind, fills it with bytes of a generator, and verifies it on request.
const PROGRAM: &str = r#"
import mmap, os, random, sys
size = int(sys.argv[1])
memory = os.memfd_create("terrace-test")
os.ftruncate(memory, size)
file = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(file, size)
maps = [mmap.mmap(memory, size), mmap.mmap(-1, size), mmap.mmap(file, size)]
maps.append(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
maps.append(mmap.mmap(memory, size))
content = [random.Random(number).randbytes(size) for number in range(4)]
for one, bytes in zip(maps, content):
    one[:] = bytes
del bytes
sums = [hash(one) for one in content]
del content
print("ready", flush=True)
for line in sys.stdin:
    same = [hash(bytes(one[:])) for one in maps[:4]] == sums
    print("same" if same else "changed", flush=True)
"#;

/// Only one test at a time has its swap on: two would push each other's pages out.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Stage {
    child: Child,
    output: BufReader<ChildStdout>,
    group: Cgroup,
    _directory: TempDir,
    _swap: SwapArea,
    _turn: MutexGuard<'static, ()>,
}

impl Stage {
    fn set() -> Result<Self, String> {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let group = Cgroup::v1_memory(1024 * MIB)?;
        let swap = SwapArea::on(256 * MIB)?;
        // On tmpfs, with a guard that removes it.
        let directory = TempDir::in_dir("/dev/shm".as_ref());
        let mut child = group
            .command("python3")
            .args(["-c", PROGRAM, &OBJECT_BYTES.to_string()])
            .arg(directory.join("object"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("python3 ({error})"))?;
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut stage =
            Self { child, output, group, _directory: directory, _swap: swap, _turn: turn };
        match stage.line().as_str() {
            "ready" => Ok(stage),
            _ => Err("python3 with memfd_create".to_owned()),
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Whether the process finds its content as it was.
    fn is_same(&mut self) -> bool {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(b"verify\n").unwrap();
        self.line() == "same"
    }

    /// Makes the group short of memory for a moment, until most of its objects is written: until
    /// then a page counts as in memory. At most for 5 s.
    fn push_out(&self) {
        let limit = self.group.path().join("memory.limit_in_bytes");
        for _ in 0..100 {
            // Refused where less cannot be reached; what went is gone nonetheless.
            let _ = std::fs::write(&limit, (16 * MIB).to_string());
            std::fs::write(&limit, (1024 * MIB).to_string()).unwrap();
            if swapped_bytes(&self.objects()) > 2 * OBJECT_BYTES {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn objects(&self) -> Vec<SharedObject> {
        let selection = Selection::Processes(vec![self.child.id()]);
        let targets = targets::find(&Root::system(), &selection).unwrap();
        let mut objects = shared::find(&Root::system(), &targets).unwrap();
        // Python and its library may have small ones of their own.
        objects.retain(|one| one.file.metadata().unwrap().len() == OBJECT_BYTES);
        objects
    }

    /// Pages of shared memory that pagemap shows, present or in swap.
    fn shown_pages(&self) -> u64 {
        let pid = self.child.id();
        let mut pagemap = Pagemap::open(&Root::system(), pid).unwrap();
        let mut shown = 0;
        for mapping in maps::read(&Root::system(), pid).unwrap() {
            if mapping.shared && mapping.range.end - mapping.range.start == OBJECT_BYTES {
                pagemap
                    .read(mapping.range, |_, page| {
                        shown += u64::from(page != Page::Absent);
                    })
                    .unwrap();
            }
        }
        shown
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn swapped_bytes(objects: &[SharedObject]) -> u64 {
    objects.iter().map(|one| ranges::total(&one.swapped)).sum()
}

#[test]
fn shared_memory_in_swap_is_found_and_comes_back_whole() {
    let mut stage = match Stage::set() {
        Ok(stage) => stage,
        Err(need) => return testkit::skip(need),
    };
    let all = 3 * OBJECT_BYTES;
    let before = stage.objects();
    assert_eq!(before.len(), 3, "the memfd is mapped twice and is one: {before:?}");
    assert_eq!(swapped_bytes(&before), 0);
    assert_eq!(before.iter().map(|one| one.present_bytes).sum::<u64>(), all);
    stage.push_out();
    let found = stage.objects();
    let swapped = swapped_bytes(&found);
    assert!(swapped > all / 2, "{swapped} of {all} bytes were pushed out");
    let present: u64 = found.iter().map(|one| one.present_bytes).sum();
    assert_eq!(swapped + present, all);
    // What pagemap shows of it: nothing of what is in swap.
    assert!(stage.shown_pages() * 4096 <= 2 * present);
    assert!(found.iter().any(|one| one.name.starts_with("/memfd:terrace-test")));
    for object in &found {
        let mut reported = 0;
        let (asked, present) = shared::restore(object, &mut |progress| {
            assert!(progress.done > reported);
            reported = progress.done;
            Control::Continue
        });
        assert_eq!(asked, ranges::total(&object.swapped));
        assert_eq!((present, reported), (asked, asked));
    }
    // Others of its pages may have left meanwhile: their way to swap ends when they are written.
    for object in stage.objects() {
        let same = found.iter().find(|one| one.identity == object.identity);
        let was = &same.unwrap().swapped;
        let still = ranges::total(was) - ranges::total(&ranges::without(was, &object.swapped));
        assert_eq!(still, 0, "{object:?}");
    }
    assert!(stage.is_same(), "0 wrong bytes");
}

#[test]
fn restoring_shared_memory_stops_on_request() {
    let stage = match Stage::set() {
        Ok(stage) => stage,
        Err(need) => return testkit::skip(need),
    };
    stage.push_out();
    let mut found = stage.objects();
    found.sort_by_key(|one| ranges::total(&one.swapped));
    let largest = found.last().unwrap();
    let swapped = ranges::total(&largest.swapped);
    let (asked, _) = shared::restore(largest, &mut |_| Control::Stop);
    assert!(asked > 0 && asked < swapped, "{asked} of {swapped}");
}

#[test]
fn a_process_is_pushed_out_and_finds_its_content() {
    let mut stage = match Stage::set() {
        Ok(stage) => stage,
        Err(need) => return testkit::skip(need),
    };
    let victim = EvictTarget::Process(stage.child.id());
    let evicted = evict::evict(&Root::system(), &victim).unwrap();
    assert!(evicted.before_bytes > 4 * OBJECT_BYTES);
    // Its own memory and what only it has mapped went; a library that others use stays.
    let gone = evicted.before_bytes - evicted.after_bytes;
    assert!(gone > OBJECT_BYTES, "{evicted:?}");
    assert!(!evicted.kept.is_empty());
    let status = std::fs::read_to_string(format!("/proc/{}/status", stage.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSwap:"));
    let kib: u64 = line.unwrap().trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib * 1024 > OBJECT_BYTES / 2, "{kib} KiB in swap");
    assert!(stage.is_same(), "0 wrong bytes");
}

#[test]
fn files_leave_the_page_cache_and_keep_what_was_written() {
    let directory = TempDir::new();
    std::fs::create_dir(directory.join("below")).unwrap();
    let (first, second) = (directory.join("first"), directory.join("below/second"));
    // Not synced: these pages are dirty.
    let pages_bytes = 2 * sys::process::page_bytes();
    std::fs::write(&first, vec![1; pages_bytes]).unwrap();
    std::fs::write(&second, vec![2; 3 * MIB as usize]).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", directory.join("link")).unwrap();
    let victim = EvictTarget::Path(directory.path().to_owned());
    let evicted = evict::evict(&Root::system(), &victim).unwrap();
    let file = File::open(&second).unwrap();
    if cached::bytes_of(&file, &(0..3 * MIB)) == Some(3 * MIB) {
        return testkit::skip("a temporary directory on a disk");
    }
    assert_eq!(evicted.before_bytes, 3 * MIB + pages_bytes as u64, "the link was not followed");
    assert_eq!((evicted.after_bytes, evicted.kept), (0, Vec::new()));
    assert_eq!(std::fs::read(&first).unwrap(), vec![1; pages_bytes]);
    assert_eq!(std::fs::read(&second).unwrap(), vec![2; 3 * MIB as usize]);
}

#[test]
fn a_file_in_use_stays_and_says_so() {
    let directory = TempDir::new();
    let path = directory.join("mapped");
    std::fs::write(&path, vec![1; 2 * MIB as usize]).unwrap();
    let file = File::open(&path).unwrap();
    file.sync_all().unwrap();
    let mapped = sys::file::MappedFile::random(&file).unwrap();
    let touched = (0..mapped.len()).step_by(4096);
    assert!(touched.map(|at| mapped.byte(at)).all(|byte| byte == Some(1)));
    let evicted = evict::evict(&Root::system(), &EvictTarget::Path(path)).unwrap();
    assert_eq!(evicted.after_bytes, evicted.before_bytes);
    assert_eq!(evicted.kept.len(), 1);
    assert!(evicted.kept[0].starts_with("1 file: "), "{:?}", evicted.kept);
}

#[test]
fn what_is_not_there_is_a_line() {
    let absent = EvictTarget::Process(u32::MAX - 1);
    let error = evict::evict(&Root::system(), &absent).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    let nowhere = EvictTarget::Path("/no/such/place".into());
    let error = evict::evict(&Root::system(), &nowhere).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert_eq!(error.to_string(), "cannot look below /no/such/place: no such file or directory");
}
