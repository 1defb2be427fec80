//! A process with memory of its own that it fills, touches and checks on request: this test
//! program again, by one of its tests that does nothing unless it is asked to.
//!
//! It lives in a group whose memory is pushed to a swap area of the test's own.
#![allow(dead_code, unused_macros, reason = "each test program uses a part of it")]

use machine::Root;
use model::Bytes;
use place::background::Limits;
use place::workingset::restore::RestoreRequest;
use place::workingset::targets::Selection;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use sys::file::MappedFile;
use sys::memory::{Mapping, Pages};
use testkit::{Cgroup, Random, SwapArea};

/// A value, or the test is skipped.
macro_rules! or_skip {
    ($made:expr) => {
        match $made {
            Ok(made) => made,
            Err(need) => return testkit::skip(need),
        }
    };
}

/// The set of most tests: 48 MiB are enough for many batches.
pub const SET_BYTES: u64 = 48 << 20;
/// Marks the lines that are not the test harness's.
const MARK: &str = "@";
const BYTES_VARIABLE: &str = "TERRACE_TEST_TOUCHER_BYTES";
const HUGE_VARIABLE: &str = "TERRACE_TEST_TOUCHER_HUGE";
const FILE_VARIABLE: &str = "TERRACE_TEST_TOUCHER_FILE";
const SEED: u64 = 2012;

/// Tests that use swap run one after another: an area belongs to the whole machine.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a second touch of everything showed.
#[derive(Debug)]
pub struct Touched {
    /// Pages whose content was wrong.
    pub wrong_pages: u64,
    /// Major faults that the touching took.
    pub major_faults: u64,
}

/// What a toucher touches.
#[derive(Clone, Copy)]
pub enum Holding<'a> {
    /// Memory of its own, of base pages or of huge ones.
    Own(Pages),
    /// A file that it has mapped, written by [`write_file`].
    File(&'a Path),
}

/// A process that holds memory, in a group, with swap. Dropped in this order.
pub struct Toucher {
    child: Child,
    pid: u32,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub group: Cgroup,
    pub swap: Option<SwapArea>,
}

impl Toucher {
    /// Starts one by the test `name` of this program, and pushes all that it has to swap.
    ///
    /// # Errors
    /// The words for [`testkit::skip`].
    pub fn swapped_out(name: &str, bytes: u64, before: &[&str]) -> Result<Self, String> {
        let swap = SwapArea::on(4 * bytes)?;
        let mut toucher = Self::start(name, bytes, before, Holding::Own(Pages::Base))?;
        toucher.swap = Some(swap);
        toucher.push_out_as_touched();
        Ok(toucher)
    }

    /// Starts one by the test `name` of this program, through the words `before`. Nothing is
    /// pushed out, and what swap there is, is the caller's.
    ///
    /// # Errors
    /// The words for [`testkit::skip`].
    pub fn start(
        name: &str,
        bytes: u64,
        before: &[&str],
        holding: Holding<'_>,
    ) -> Result<Self, String> {
        let group = Cgroup::v1_memory(4 * bytes)?;
        let program = std::env::current_exe().unwrap();
        let mut words: Vec<&str> = before.to_vec();
        words.push(program.to_str().unwrap());
        let mut command = group.command(words[0]);
        match holding {
            Holding::Own(Pages::Base) => {}
            Holding::Own(_) => drop(command.env(HUGE_VARIABLE, "1")),
            Holding::File(path) => drop(command.env(FILE_VARIABLE, path)),
        }
        let mut child = command
            .args(&words[1..])
            .args(["--exact", name, "--nocapture"])
            .env(BYTES_VARIABLE, bytes.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut toucher = Self { pid: child.id(), child, input, output, group, swap: None };
        assert_eq!(toucher.answer(), "ready");
        toucher.pid = toucher.own_program();
        Ok(toucher)
    }

    /// The member of the group that runs this program: what was to start it may have forked.
    fn own_program(&self) -> u32 {
        let program = std::env::current_exe().unwrap();
        let text = std::fs::read_to_string(self.group.path().join("cgroup.procs")).unwrap();
        let runs_it = |pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == program)
        };
        let mut members = text.lines().filter_map(|line| line.parse().ok());
        members.find(runs_it).unwrap()
    }

    /// As this process sees it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Pushes out in the order in which the pages were touched, which is not that of their
    /// addresses.
    pub fn push_out_as_touched(&self) {
        let _ = std::fs::write(self.group.path().join("memory.force_empty"), "0");
        self.push_out();
    }

    /// Pushes all anonymous memory that it has to swap, a few pages excepted that are on
    /// their way.
    pub fn push_out(&self) {
        use sys::process_memory::{MemoryAdvice, advise};
        let root = machine::Root::system();
        let descriptor = sys::pidfd::open(self.pid()).unwrap();
        let mappings = machine::maps::read(&root, self.pid()).unwrap();
        let own = mappings.iter().filter(|mapping| {
            mapping.kind == machine::maps::MappingKind::Anonymous && mapping.readable
        });
        let ranges: Vec<_> = own.map(|mapping| mapping.range.clone()).collect();
        // What is still being written goes the next time.
        for _ in 0..5 {
            for range in &ranges {
                let _ =
                    advise(descriptor.as_fd(), std::slice::from_ref(range), MemoryAdvice::PageOut);
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Has every page touched in a random order, and its content checked.
    pub fn touch(&mut self) -> Touched {
        self.tell("touch");
        let answer = self.answer();
        let (wrong, faults) = answer.split_once(' ').unwrap();
        Touched { wrong_pages: wrong.parse().unwrap(), major_faults: faults.parse().unwrap() }
    }

    /// Has it become another program, and waits for that.
    pub fn exec(&mut self) {
        self.tell("exec");
        let comm = format!("/proc/{}/comm", self.pid());
        while std::fs::read_to_string(&comm).unwrap() != "sleep\n" {
            std::thread::yield_now();
        }
    }

    /// Ends it and waits for that.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.input.as_mut().unwrap(), "{word}").unwrap();
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
        self.kill();
    }
}

/// What the process does: the body of the test that the toucher is started by. Returns at
/// once where it was started as a test.
pub fn serve() {
    let Ok(bytes) = std::env::var(BYTES_VARIABLE) else {
        return;
    };
    let bytes: usize = bytes.parse().unwrap();
    let page_bytes = sys::process::page_bytes();
    let pages = bytes / page_bytes;
    let held = Held::new(bytes);
    say("ready");
    for line in std::io::stdin().lines() {
        if line.unwrap() == "exec" {
            panic!("{}", Command::new("sleep").arg("1000").exec());
        }
        let before = major_faults();
        let mut expected = vec![0; page_bytes];
        let mut wrong = 0;
        for page in scattered(pages, SEED + 1) {
            Random(page as u64).fill(&mut expected);
            wrong += u64::from(!held.has(page * page_bytes, &expected));
        }
        say(&format!("{wrong} {}", major_faults() - before));
    }
}

/// What a toucher holds.
enum Held {
    Own(Mapping),
    File(MappedFile),
}

impl Held {
    fn new(bytes: usize) -> Self {
        if let Some(path) = std::env::var_os(FILE_VARIABLE) {
            return Self::File(MappedFile::random(&File::open(path).unwrap()).unwrap());
        }
        let pages = match std::env::var_os(HUGE_VARIABLE) {
            Some(_) => Pages::Transparent,
            None => Pages::Base,
        };
        let mut memory = Mapping::anonymous(bytes, pages).unwrap();
        let page_bytes = sys::process::page_bytes();
        // Scattered, so that slots do not follow addresses.
        for page in scattered(bytes / page_bytes, SEED) {
            let content = &mut memory.as_mut_slice()[page * page_bytes..][..page_bytes];
            Random(page as u64).fill(content);
        }
        Self::Own(memory)
    }

    fn has(&self, start: usize, expected: &[u8]) -> bool {
        match self {
            Self::Own(memory) => &memory.as_slice()[start..][..expected.len()] == expected,
            Self::File(mapped) => {
                (start..).zip(expected).all(|(at, byte)| mapped.byte(at) == Some(*byte))
            }
        }
    }
}

/// Writes the content that a toucher expects, to the disk.
pub fn write_file(path: &Path, bytes: u64) {
    let mut content = vec![0; bytes as usize];
    for (page, content) in (0..).zip(content.chunks_mut(sys::process::page_bytes())) {
        Random(page).fill(content);
    }
    let mut file = File::create(path).unwrap();
    file.write_all(&content).unwrap();
    file.sync_all().unwrap();
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{MARK}{text}").unwrap();
    out.flush().unwrap();
}

/// The numbers below `count` in a random order.
fn scattered(count: usize, seed: u64) -> Vec<usize> {
    let mut random = Random(seed);
    let mut all: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        all.swap(last, random.below(last as u64 + 1) as usize);
    }
    all
}

/// Faults of this process that needed a device: the 12th field of /proc/self/stat.
fn major_faults() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = text.rsplit_once(") ").unwrap();
    rest.split(' ').nth(9).unwrap().parse().unwrap()
}

/// All anonymous memory of a process, with limits that nothing here meets.
pub fn request(pid: u32) -> RestoreRequest {
    // Other tests' groups may wait for memory meanwhile.
    let limits =
        Limits { floor: Bytes(0), pressure_permille: 1000, ..Limits::usual(&Root::system()) };
    RestoreRequest {
        shared: false,
        files: false,
        estimate: true,
        yield_percent: 10,
        ..RestoreRequest::new(Selection::Processes(vec![pid]), limits)
    }
}

/// A number that a group's file holds.
pub fn number(group: &Path, file: &str) -> u64 {
    let text = std::fs::read_to_string(group.join(file)).unwrap();
    text.trim().parse().unwrap()
}
