//! Whether processor time is divided as `perf record -e cpu-clock -g` divides it: both look at one
//! program at the same time, and the shares of its parts are compared.
//!
//! The program is this one again: two threads that calculate, read a cached file, ask for the facts
//! of a file, touch new memory, and store into pages that were only read, in slices of a few
//! milliseconds whose order and length look like chance. What perf's stacks mean is decided here by
//! a few names, and not by the recorder's rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::crowd::end_with_parent;
use super::desktop::Chance;
use super::{LIMIT, exported, running};
use crate::bench::Session;
use crate::bench::peer::{Peer, Version};
use crate::bench::record::{Series, Target};
use crate::error::Error;
use crate::process;

const WINDOW_S: &str = "40";
const SETTLE: Duration = Duration::from_secs(1);
/// More often than ours, so that the error is mostly ours, and in step with neither it nor ticks.
const PERF_HZ: &str = "397";
const GRACE: Duration = Duration::from_secs(10);
/// Parts that are compared, and by how much they may differ.
const PART_MIN: f64 = 10.0;
const DIFFERENCE_MAX: f64 = 3.0;

const THREADS: u64 = 2;
const FILE_BYTES: usize = 8 << 20;
const READ_BYTES: usize = 16 << 10;
const PAGE: usize = 4096;
/// More than the C library ever takes from memory that it holds already.
const TOUCHED_BYTES: usize = 64 << 20;

/// Parts of processor time, in percent of all samples.
#[derive(Debug, Default, PartialEq)]
struct Split {
    samples: f64,
    shares: BTreeMap<String, f64>,
}

impl Split {
    fn of_counts(samples: f64, counts: BTreeMap<String, f64>) -> Self {
        let percent = |(part, count)| (part, count / samples * 100.0);
        Self { samples, shares: counts.into_iter().map(percent).collect() }
    }

    fn share(&self, part: &str) -> f64 {
        self.shares.get(part).copied().unwrap_or_default()
    }
}

/// Measures both divisions of one program.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let perf = Peer::find_if_any(&session.request, "perf", Version::Option("--version"))?;
    let Some(perf) = perf else {
        session.record.note("perf is not here: processor time is not compared".to_owned());
        return Ok(());
    };
    session.record.program(perf.clone());
    let mut splits = Vec::new();
    for round in 0..session.request.alternations {
        eprintln!("split: {} of {}", round + 1, session.request.alternations);
        let (ours, theirs) = split(session, &perf)?;
        let samples = format!("{} samples of ours, {} of perf", ours.samples, theirs.samples);
        session.record.note(samples);
        splits.push((ours, theirs));
    }
    let record = &mut session.record;
    record.command(format!("terrace record --trace cpu --for {WINDOW_S}s --pid PID -o split.trec"));
    record.command(format!("perf record -e cpu-clock -F {PERF_HZ} -g -p PID -- sleep {WINDOW_S}"));
    let largest: Vec<f64> = splits.iter().map(|(ours, theirs)| difference(ours, theirs)).collect();
    let what = "largest difference of a share from perf's, of parts over 10 %";
    let target = Some(Target::AtMost(DIFFERENCE_MAX));
    record.add_alone(what, "points", Series::new("terrace", &largest), target)?;
    for part in
        splits.iter().flat_map(|(ours, theirs)| parts(ours, theirs)).collect::<BTreeSet<_>>()
    {
        let shares =
            |of: &dyn Fn(&(Split, Split)) -> f64| splits.iter().map(of).collect::<Vec<_>>();
        let ours = Series::new("terrace", &shares(&|(ours, _)| ours.share(part)));
        let theirs = Series::new("perf", &shares(&|(_, theirs)| theirs.share(part)));
        record.add_against(&format!("share of {part}"), "%", (ours, theirs), None)?;
    }
    Ok(())
}

/// Parts with a large share in either.
fn parts<'a>(ours: &'a Split, theirs: &'a Split) -> BTreeSet<&'a str> {
    let names = ours.shares.keys().chain(theirs.shares.keys()).map(String::as_str);
    names.filter(|part| ours.share(part).max(theirs.share(part)) > PART_MIN).collect()
}

/// By how many points the share of such a part differs at most.
fn difference(ours: &Split, theirs: &Split) -> f64 {
    let differences =
        parts(ours, theirs).into_iter().map(|part| ours.share(part) - theirs.share(part));
    differences.map(f64::abs).fold(0.0, f64::max)
}

/// One run, watched by both.
fn split(session: &Session, perf: &Peer) -> Result<(Split, Split), Error> {
    let Session { terrace, directory, .. } = session;
    let [file, data] = ["split.trec", "perf.data"].map(|name| directory.file(name));
    let read = directory.write("read", vec![1_u8; FILE_BYTES])?;
    let own = std::env::current_exe().map_err(|error| Error::Failed(error.to_string()))?;
    let mut command = Command::new(own);
    command.arg("split-work").arg(&read);
    let work = running::start("split-work", command)?;
    std::thread::sleep(SETTLE);
    let pid = work.pid().to_string();
    let mut command = Command::new(&terrace.program);
    let window = format!("{WINDOW_S}s");
    command.args(["record", "--trace", "cpu", "--for", &window, "--pid", &pid, "--force", "-o"]);
    let mut recorder = running::start("terrace", {
        command.arg(&file);
        command
    })?;
    let mut command = Command::new(&perf.program);
    command.args(["record", "-q", "-e", "cpu-clock", "-F", PERF_HZ, "-g", "-p", &pid, "-o", &data]);
    command.args(["--", "sleep", WINDOW_S]);
    process::run(command, LIMIT)?.success()?;
    let limits = process::Limits { time: GRACE + LIMIT, memory_bytes: None };
    recorder.finish(limits).map_err(|error| Error::Failed(error.to_string()))?;
    drop(work);
    let stacks = perf.run(&["script", "-i", &data, "-F", "tid,ip,sym"], LIMIT)?.stdout;
    // Hundreds of megabytes would be the next round's.
    fs::remove_file(&data).map_err(Error::io("remove", Path::new(&data)))?;
    let ours = of_recording(&exported::read(terrace, &file)?)?;
    Ok((ours, of_stacks(&stacks).ok_or_else(|| malformed(&stacks))?))
}

fn malformed(stacks: &str) -> Error {
    let start: String = stacks.chars().take(200).collect();
    Error::Malformed { what: "the stacks of perf", why: start }
}

/// Our division: the origins, and the calls by name.
fn of_recording(recording: &serde_json::Value) -> Result<Split, Error> {
    let grown = exported::growth(recording, "trace.cpu.samples");
    let none = || exported::malformed("has no samples of processors".to_owned());
    let samples = grown.filter(|samples| *samples > 0.0).ok_or_else(none)?;
    let part = |name: &str| {
        let part = name.strip_prefix("trace.cpu.")?;
        let is_compared = part.starts_with("in.") || part.starts_with("call.");
        let count = is_compared.then(|| exported::last(recording, name)).flatten()?;
        Some((part.to_owned(), count))
    };
    Ok(Split::of_counts(samples, exported::names(recording).filter_map(part).collect()))
}

/// The division of perf's samples: a line with the thread, then frames from the innermost outwards,
/// then an empty line.
fn of_stacks(text: &str) -> Option<Split> {
    let mut counts = BTreeMap::<String, f64>::new();
    let mut samples = 0.0;
    for sample in text.split("\n\n") {
        let frames = sample.lines().filter_map(|line| line.strip_prefix('\t'));
        let words = frames.filter_map(|line| line.trim().split_once(' '));
        let frames: Vec<(u64, &str)> = words
            .filter_map(|(address, name)| Some((u64::from_str_radix(address, 16).ok()?, name)))
            .collect();
        let Some((innermost, _)) = frames.first() else {
            continue;
        };
        samples += 1.0;
        // The kernel has the upper half of the addresses.
        let is_kernel = |address: u64| address >> 63 == 1;
        let kernel = frames.iter().filter(|(address, _)| is_kernel(*address));
        let names: Vec<&str> = kernel.map(|(_, name)| *name).collect();
        let place = if is_kernel(*innermost) { place(&names) } else { "user" };
        *counts.entry(format!("in.{place}")).or_default() += 1.0;
        if let Some(call) = names.iter().rev().find_map(|name| call(name)) {
            *counts.entry(format!("call.{call}")).or_default() += 1.0;
        }
    }
    (samples > 0.0).then(|| Split::of_counts(samples, counts))
}

fn call(name: &str) -> Option<&str> {
    name.strip_prefix("__x64_sys_").or_else(|| name.strip_prefix("__arm64_sys_"))
}

/// Where the kernel was, by the names of a stack.
fn place(names: &[&str]) -> &'static str {
    let has =
        |starts: &[&str]| names.iter().any(|name| starts.iter().any(|it| name.starts_with(it)));
    if has(&["asm_sysvec_", "asm_common_interrupt", "el1_interrupt", "el0_interrupt"]) {
        "interrupt"
    } else if has(&["asm_exc_page_fault", "do_mem_abort"]) {
        if has(&["do_wp_page", "wp_page_copy", "do_cow_fault"]) {
            "fault_copy_on_write"
        } else if has(&["do_anonymous_page", "do_huge_pmd_anonymous_page"]) {
            "fault_first_touch"
        } else if has(&["do_fault", "do_read_fault", "do_shared_fault"]) {
            "fault_file"
        } else {
            "fault_other"
        }
    } else if has(&["do_syscall_64", "entry_SYSCALL_64", "el0_svc"]) {
        "call"
    } else {
        "other"
    }
}

/// What both watch; ends with its parent.
pub(crate) fn work(path: &Path) -> Result<(), Error> {
    end_with_parent()?;
    let failed = |error: std::io::Error| Error::Failed(format!("split-work: {error}"));
    let file = fs::File::open(path).map_err(failed)?;
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let file = &file;
            scope.spawn(move || loop_over_kinds(&mut Chance(number + 1), file, path));
        }
    });
    Ok(())
}

fn loop_over_kinds(chance: &mut Chance, file: &fs::File, path: &Path) -> ! {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let kind = chance.between(0, 4);
        let until = Instant::now() + Duration::from_micros(chance.between(500, 4_500));
        match kind {
            0 => calculate(until),
            1 => read(until, chance, file, &mut buffer),
            // What it says does not matter; that it is asked does.
            2 => repeat(until, || drop(black_box(fs::metadata(path)))),
            3 => touch(until, false),
            _ => touch(until, true),
        }
    }
}

fn repeat(until: Instant, mut work: impl FnMut()) {
    while Instant::now() < until {
        for _ in 0..16 {
            work();
        }
    }
}

fn calculate(until: Instant) {
    let mut sum = 1_u64;
    repeat(until, || (0..100).for_each(|n| sum = black_box(sum.wrapping_mul(31) + n)));
}

fn read(until: Instant, chance: &mut Chance, file: &fs::File, buffer: &mut [u8]) {
    let pieces = (FILE_BYTES / READ_BYTES) as u64 - 1;
    repeat(until, || {
        let at = chance.between(0, pieces) * READ_BYTES as u64;
        // As above.
        drop(black_box(file.read_at(buffer, at)));
    });
}

/// Takes new memory and stores into its pages; `reads` them first, so that each is copied.
fn touch(until: Instant, reads: bool) {
    let mut memory = vec![0_u8; TOUCHED_BYTES];
    for pages in memory.chunks_mut(16 * PAGE) {
        for page in pages.chunks_mut(PAGE) {
            if reads {
                black_box(page[0]);
            }
            page[0] = black_box(1);
        }
        if Instant::now() >= until {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACKS: &str = " 7730 \n\tffffffff821f3a6a clear_page_erms\n\tffffffff81798256 \
        do_anonymous_page\n\tffffffff81000130 asm_exc_page_fault\n\t           d0043 main\n\n \
        7730 \n\t           d0043 main\n\t               0 [unknown]\n\n \
        7731 \n\tffffffff821f3a6a wp_page_copy\n\tffffffff81000130 asm_exc_page_fault\n\t\
        ffffffff816d8096 __x64_sys_pread64\n\tffffffff821ecc51 do_syscall_64\n\n \
        7731 \n\tffffffff821f3a6a ext4_readdir\n\tffffffff816d8096 __x64_sys_getdents64\n\t\
        ffffffff821ecc51 do_syscall_64\n\t           d0043 __GI___getdents64\n\n";

    #[test]
    fn each_stack_is_in_one_place_and_in_its_call() {
        let split = of_stacks(STACKS).unwrap();
        assert_eq!(split.samples, 4.0);
        let is_quarter = |part: &&str| split.share(part) == 25.0;
        let parts = ["in.user", "in.fault_first_touch", "in.fault_copy_on_write", "in.call"];
        assert!(parts.iter().all(is_quarter), "{split:?}");
        assert!(["call.pread64", "call.getdents64"].iter().all(is_quarter), "{split:?}");
        assert!(of_stacks("").is_none());
    }

    #[test]
    fn only_large_parts_are_compared() {
        let split = |shares: [(&str, f64); 3]| Split {
            samples: 1000.0,
            shares: shares.map(|(part, share)| (part.to_owned(), share)).into(),
        };
        let ours = split([("in.user", 50.0), ("in.call", 11.0), ("call.read", 9.0)]);
        let theirs = split([("in.user", 48.5), ("in.call", 9.0), ("call.read", 1.0)]);
        assert_eq!(difference(&ours, &theirs), 2.0);
        assert_eq!(parts(&ours, &theirs), BTreeSet::from(["in.user", "in.call"]));
    }

    #[test]
    fn a_recording_without_samples_is_refused() {
        let json = r#"{"series": [{"name": "trace.cpu.samples", "steps": [[0, 0.0], [1, 40.0]]},
            {"name": "trace.cpu.in.user", "steps": [[0, 0.0], [1, 30.0]]},
            {"name": "trace.cpu.kernel.other", "steps": [[0, 0.0], [1, 10.0]]}]}"#;
        let split = of_recording(&serde_json::from_str(json).unwrap()).unwrap();
        assert_eq!((split.samples, split.share("in.user"), split.shares.len()), (40.0, 75.0, 1));
        let none = of_recording(&serde_json::from_str(r#"{"series": []}"#).unwrap());
        assert!(none.unwrap_err().to_string().contains("no samples"));
    }
}
