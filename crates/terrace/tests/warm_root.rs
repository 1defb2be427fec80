//! `terrace warm` on memory that really lies in swap and on files that really left the page
//! cache: shown, planned, brought back, with the owner's own word for it. Needs root, room for
//! swap on the disk, and memory groups of version 1.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use place::workingset::cached;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use support::{Ran, terrace, warm_json};
use testkit::{Cgroup, Random, SwapArea, TempDir};

/// The set of the test process.
const SET_BYTES: usize = 32 << 20;
const PAGE_BYTES: usize = 4096;
const PAGES: u64 = (SET_BYTES / PAGE_BYTES) as u64;
/// Tests that use swap run one after another: an area belongs to the whole machine.
static SWAP: Mutex<()> = Mutex::new(());
/// A toucher that was started as one, and not as a test.
const ASKED: &str = "TERRACE_TEST_TOUCHER";
/// Marks the lines that are not the test harness's.
const MARK: &str = "@";
/// A restore that met a short wait for memory of the tests beside it is made again.
const ATTEMPTS: u32 = 10;

/// The process whose memory is moved: fills its set, and when told touches every page in a
/// scattered order and says how many were wrong and how many faults needed a device.
#[test]
fn the_toucher() {
    if std::env::var_os(ASKED).is_none() {
        return;
    }
    let mut memory = vec![0_u8; SET_BYTES];
    for (page, content) in memory.chunks_mut(PAGE_BYTES).enumerate() {
        Random(page as u64).fill(content);
    }
    println!("{MARK}ready");
    for _ in std::io::stdin().lines() {
        let before = major_faults();
        let mut expected = vec![0; PAGE_BYTES];
        let mut wrong = 0;
        for step in 0..PAGES as usize {
            // An odd factor meets each page of a power of two once.
            let page = step.wrapping_mul(2_654_435_761) % PAGES as usize;
            Random(page as u64).fill(&mut expected);
            wrong += u32::from(memory[page * PAGE_BYTES..][..PAGE_BYTES] != expected);
        }
        println!("{MARK}{wrong} {}", major_faults() - before);
    }
}

/// The 12th field of /proc/self/stat.
fn major_faults() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = text.rsplit_once(") ").unwrap();
    rest.split(' ').nth(9).unwrap().parse().unwrap()
}

/// A toucher with swap, in a group of its own; dropped in this order.
struct Toucher {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _group: Cgroup,
    swap: SwapArea,
    _alone: MutexGuard<'static, ()>,
}

impl Toucher {
    fn start() -> Result<Self, String> {
        let alone = SWAP.lock().unwrap_or_else(PoisonError::into_inner);
        let swap = SwapArea::on(4 * SET_BYTES as u64)?;
        let group = Cgroup::v1_memory(8 * SET_BYTES as u64)?;
        let mut child = group
            .command(std::env::current_exe().unwrap())
            .args(["--exact", "the_toucher", "--nocapture"])
            .env(ASKED, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut toucher = Self {
            child,
            input,
            output,
            _group: group,
            swap,
            _alone: alone,
        };
        assert_eq!(toucher.answer(), "ready");
        Ok(toucher)
    }

    /// Pushes it out by `warm evict`, until nearly all of its set lies in swap.
    fn push_out(&self) {
        let pid = self.child.id();
        for _ in 0..ATTEMPTS {
            let text = terrace(&format!("warm evict {pid}")).done();
            assert!(text.starts_with(&format!("{pid}: ")), "{text}");
            if self.swapped_bytes() >= (SET_BYTES / 100 * 95) as u64 {
                return;
            }
        }
        panic!("only {} bytes went to swap", self.swapped_bytes());
    }

    /// The kernel's own word.
    fn swapped_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmSwap:"));
        let kib: u64 = line
            .unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap();
        kib * 1024
    }

    /// Wrong pages and major faults of touching all.
    fn touch(&mut self) -> (u64, u64) {
        writeln!(self.input).unwrap();
        let answer = self.answer();
        let (wrong, faults) = answer.split_once(' ').unwrap();
        (wrong.parse().unwrap(), faults.parse().unwrap())
    }

    fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended");
            // The harness writes before the mark on the same line.
            if let Some((_, answer)) = line.split_once(MARK) {
                return answer.trim_end().to_owned();
            }
        }
    }
}

impl Drop for Toucher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a restore until no neighbour of this test made it give way.
fn restored(line: &str) -> Value {
    for _ in 0..ATTEMPTS {
        let ran = terrace(line);
        if ran.code == Some(0) {
            return warm_json("restore", ran);
        }
        assert!(ran.err.contains("others began to wait"), "{ran:?}");
    }
    panic!("others waited for memory {ATTEMPTS} times");
}

#[test]
fn memory_is_shown_planned_and_brought_back_whole() {
    let mut toucher = match Toucher::start() {
        Ok(toucher) => toucher,
        Err(need) => return testkit::skip(need),
    };
    let pid = toucher.child.id();
    toucher.push_out();

    let shown = warm_json("show", terrace(&format!("warm show --pid {pid} --json")));
    let process = &shown["processes"][0];
    assert_eq!(process["pid"], pid);
    let in_swap = process["swapped_bytes"].as_u64().unwrap();
    assert!(in_swap >= (SET_BYTES / 100 * 95) as u64, "{process}");
    let swap = toucher.swap.path().display().to_string();
    let part = &shown["parts"][0];
    assert_eq!(
        (&part["kind"], &part["source"]),
        (&"anonymous".into(), &swap.into())
    );

    let line = format!("warm restore --pid {pid} --only anonymous --floor 1m --json");
    let planned = warm_json("restore", terrace(&format!("{line} --dry-run")));
    assert!(planned["done"].is_null());
    assert_eq!(planned["planned"][0]["bytes"], part["bytes"]);
    assert!(toucher.swapped_bytes() >= in_swap / 100 * 95);

    let receipt = restored(&line);
    assert_eq!(receipt["done"]["stop"], "done");
    let (wrong, faults) = toucher.touch();
    assert_eq!(wrong, 0);
    assert!(faults < PAGES / 64, "{faults} faults after the restore");
    // What would have been without: the test of the test.
    toucher.push_out();
    let (wrong, by_demand) = toucher.touch();
    assert_eq!(wrong, 0);
    assert!(by_demand > PAGES / 64, "{by_demand} faults without one");
}

#[test]
fn limits_of_bytes_and_an_end_that_was_not_asked_for_are_told_apart() {
    let toucher = match Toucher::start() {
        Ok(toucher) => toucher,
        Err(need) => return testkit::skip(need),
    };
    toucher.push_out();
    let line = format!("warm restore --pid {} --only anonymous", toucher.child.id());
    let asked = restored(&format!("{line} --floor 1m --max-bytes 4m --json"));
    assert_eq!(asked["done"]["stop"], "budget");
    let read = asked["done"]["parts"][0]["bytes"].as_u64().unwrap();
    assert!((4 << 20..SET_BYTES as u64).contains(&read), "{read} bytes");

    let Ran { code, out, err } = terrace(&format!("{line} --floor 1000t"));
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(
        out.contains("Ended: free memory came down to the floor."),
        "{out}"
    );
    assert_eq!(
        err,
        "terrace: warm restore: not all of it is back: free memory came down to the floor\n"
    );
}

/// Bytes of all files in the page cache.
fn cached_bytes(files: &[PathBuf]) -> u64 {
    let bytes = |path: &Path| {
        let file = File::open(path).unwrap();
        let length = file.metadata().unwrap().len();
        cached::bytes_of(&file, &(0..length)).unwrap()
    };
    files.iter().map(|path| bytes(path)).sum()
}

#[test]
fn files_of_a_snapshot_come_back_and_a_changed_one_does_not() {
    const FILE_BYTES: usize = 2 << 20;
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    let directory = TempDir::new();
    let tree = directory.join("tree");
    std::fs::create_dir(&tree).unwrap();
    let mut random = Random(2018);
    let files: Vec<PathBuf> = (0..6)
        .map(|index| tree.join(format!("file {index}")))
        .collect();
    let write = |path: &Path, random: &mut Random| {
        let mut content = vec![0; FILE_BYTES];
        random.fill(&mut content);
        let mut file = File::create(path).unwrap();
        file.write_all(&content).unwrap();
        file.sync_all().unwrap();
    };
    files.iter().for_each(|path| write(path, &mut random));
    let (whole, own) = (6 * FILE_BYTES as u64, std::process::id());
    if cached_bytes(&files) != whole {
        return testkit::skip("a temporary directory on a disk, with a page cache");
    }
    let (snapshot, tree) = (directory.join("x.snapshot"), tree.display());
    let line = format!(
        "warm snapshot {} --pid {own} --tree {tree}",
        snapshot.display()
    );
    let text = terrace(&line).done();
    assert!(
        text.contains("1 process with") && text.contains("unseen"),
        "{text}"
    );

    write(&files[5], &mut random);
    let text = terrace(&format!("warm evict {tree}")).done();
    if cached_bytes(&files) != 0 {
        return testkit::skip(format!("a file system whose files can be evicted ({text})"));
    }
    let receipt = restored(&format!(
        "warm restore {} --floor 1m --json",
        snapshot.display()
    ));
    assert_eq!(receipt["done"]["stop"], "done");
    let notes = receipt["notes"].to_string();
    assert!(notes.contains("changed or gone since"), "{notes}");
    assert_eq!(cached_bytes(&files[..5]), 5 * FILE_BYTES as u64);
    assert_eq!(cached_bytes(&files[5..]), 0, "a changed file was read");

    // What is there already is no work.
    let again = restored(&format!(
        "warm restore {} --only files --floor 1m --json",
        snapshot.display()
    ));
    let read = again["planned"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["bytes"].as_u64().unwrap());
    assert!(read.sum::<u64>() < FILE_BYTES as u64, "{again}");
}
