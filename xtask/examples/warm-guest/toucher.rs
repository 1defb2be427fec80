//! A program with a working set of a known size, layout and content, and the handle to it.
//!
//! Pages are first touched in the order of their addresses or in a scattered one; the kernel pushes
//! them out, oldest first, into slots that follow that order. The content of a page is told by its
//! number, so a wrong byte is seen. It takes commands line by line and answers each with numbers.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use model::random::{INCREMENT, Random, mix};

use crate::Outcome;
use crate::system::{failed, own_program};

const PAGE: usize = 4096;

/// The whole life of a toucher.
pub(crate) fn be(mib: &str, layout: &str) -> Outcome<()> {
    let pages = mib.parse::<usize>().map_err(failed(mib))? << 20 >> 12;
    let mut memory = vec![0_u8; pages * PAGE];
    let content = |pages| Content::new(pages, layout == "half");
    let order = match layout {
        "contiguous" | "half" => (0..pages).collect(),
        "scattered" => scattered(pages, 1),
        _ => return Err(format!("no layout {layout:?}")),
    };
    let wanted = content(pages);
    for page in order {
        wanted.fill(&mut memory[page * PAGE..][..PAGE], page);
    }
    drop(wanted);
    println!("0");
    for line in std::io::stdin().lines() {
        match line.map_err(failed("stdin"))?.as_str() {
            "touch" => touch(&memory),
            "compare" => compare(&memory, &content(pages)),
            // The process stays, and with the program goes its memory.
            "exec" => return Err(Command::new("sleep").arg("infinity").exec().to_string()),
            other => return Err(format!("no command {other:?}")),
        }
    }
    Ok(())
}

/// Reads one word of every page in a random order: nanoseconds, wrong pages, major faults.
fn touch(memory: &[u8]) {
    let (faults, started) = (major_faults(), Instant::now());
    let wrong = scattered(memory.len() / PAGE, 2)
        .into_iter()
        .filter(|page| memory[page * PAGE..][..8] != word(*page).to_le_bytes())
        .count();
    let elapsed = started.elapsed().as_nanos();
    println!("{elapsed} {wrong} {}", major_faults() - faults);
}

/// Compares every byte: wrong pages.
fn compare(memory: &[u8], content: &Content) {
    let mut wanted = vec![0; PAGE];
    let wrong = memory.chunks(PAGE).enumerate().filter(|(page, found)| {
        content.fill(&mut wanted, *page);
        found != &wanted.as_slice()
    });
    println!("{}", wrong.count());
}

/// What the pages hold: page n the words n to n + 511 of a row that no memory compressor makes
/// smaller, so that no two pages have the same word at the same place. A page is then copied and
/// not computed, which counts where the guest is emulated.
struct Content {
    row: Vec<u8>,
    /// Whether every other page can be compressed to a tenth.
    half: bool,
}

impl Content {
    fn new(pages: usize, half: bool) -> Self {
        let words = 0..pages + PAGE / 8;
        let row = words.flat_map(|at| word(at).to_le_bytes()).collect();
        Self { row, half }
    }

    fn fill(&self, bytes: &mut [u8], page: usize) {
        let own = &self.row[page * 8..][..PAGE];
        if self.half && page.is_multiple_of(2) {
            let repeated = bytes.chunks_mut(64);
            repeated.for_each(|chunk| chunk.copy_from_slice(&own[..64]));
        } else {
            bytes.copy_from_slice(own);
        }
    }
}

/// One of a row of words without a pattern.
fn word(at: usize) -> u64 {
    mix((at as u64 + 1).wrapping_mul(INCREMENT))
}

/// All numbers below `pages`, shuffled; the same for the same seed.
pub(crate) fn scattered(pages: usize, seed: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pages).collect();
    Random(seed as u64).shuffle(&mut order);
    order
}

/// Major faults of this process: field 12 of its `stat`.
fn major_faults() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let field = behind_name.split(' ').nth(9);
    field.and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// A toucher that runs; ended on drop.
pub(crate) struct Toucher {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Toucher {
    /// Starts one and waits until it has touched everything once.
    pub(crate) fn start(mib: &str, layout: &str) -> Outcome<Self> {
        let mut command = Command::new(own_program()?);
        command.args(["toucher", mib, layout]);
        Self::of(command)
    }

    /// Starts a program that answers in lines of numbers, beginning with one when it is ready.
    pub(crate) fn of(mut command: Command) -> Outcome<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed("start a toucher"))?;
        let (commands, answers) = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .ok_or("no pipes")?;
        let answers = BufReader::new(answers);
        let mut toucher = Self {
            child,
            commands,
            answers,
        };
        toucher.answer()?;
        Ok(toucher)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command and waits for its numbers.
    pub(crate) fn ask(&mut self, command: &str) -> Outcome<Vec<u64>> {
        self.order(command)?;
        self.answer()
    }

    /// Sends a command that is never answered.
    pub(crate) fn order(&mut self, command: &str) -> Outcome<()> {
        writeln!(self.commands, "{command}").map_err(failed(command))
    }

    pub(crate) fn kill(&mut self) -> Outcome<()> {
        self.child.kill().map_err(failed("kill a toucher"))
    }

    fn answer(&mut self) -> Outcome<Vec<u64>> {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .map_err(failed("read an answer"))?;
        if line.is_empty() {
            return Err("a toucher has ended".to_owned());
        }
        let numbers = line.split_whitespace().map(str::parse);
        numbers.collect::<Result<_, _>>().map_err(failed(&line))
    }
}

impl Drop for Toucher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
