//! The workloads: each does one thing whose cost is known, for about two seconds on a
//! usual machine, and is bounded by work, not by time, where time is what is asked about.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testkit::Random;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

/// Runs the workload that `words` name.
pub fn run(words: &[String]) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["read", path] => read_all(Path::new(path), 1),
        ["mmap", path, touches] => touch_file(Path::new(path), number(touches)),
        ["touch", mib] => touch_memory(number(mib)),
        ["touch_as_given", mib] => touch_as_given(number(mib)),
        ["passes", kind, mib, times] => passes(kind, number(mib), number(times)),
        ["write", path, mib] => write_all(Path::new(path), number(mib)),
        ["spin", millions] => spin(number(millions) as u64),
        ["locks", threads, rounds] => locks(number(threads), number(rounds)),
        ["fsync", path, times] => fsync(Path::new(path), number(times)),
        ["evict", hot, source, target] => {
            evict(Path::new(hot), Path::new(source), Path::new(target))
        }
        ["hog"] => hog(),
        ["back_up", path] => back_up(Path::new(path)),
        ["serve_file", path] => serve_file(Path::new(path)),
        ["serve_memory", mib] => serve_memory(number(mib)),
        ["leak", mib] => leak(number(mib)),
        ["analyse", mib, rounds] => (0..number(rounds)).for_each(|_| touch_memory(number(mib))),
        ["answer"] => answer(),
        ["bursts", delay_ms, times, millions, pause_ms] => {
            bursts(number(delay_ms), number(times), number(millions), number(pause_ms));
        }
        ["service", pause_ms, thousands] => service(number(pause_ms), number(thousands)),
        ["report", directory, threads, millions] => {
            report(Path::new(directory), number(threads), number(millions));
        }
        ["files", tree, count, bytes] => files(Path::new(tree), number(count), number(bytes)),
        ["install", tree, count] => install(Path::new(tree), number(count)),
        ["mappings", threads, rounds] => mappings(number(threads), number(rounds)),
        _ => {
            println!("no workload {words:?}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn number(word: &str) -> usize {
    word.parse().unwrap()
}

/// Reads a file from its start to its end, as often as asked.
fn read_all(path: &Path, times: usize) {
    let mut buffer = vec![0; MIB];
    for _ in 0..times {
        let mut file = File::open(path).unwrap();
        while file.read(&mut buffer).unwrap() > 0 {}
    }
}

/// Touches pages of a mapped file in random order.
fn touch_file(path: &Path, touches: usize) {
    let file = File::open(path).unwrap();
    let mapped = sys::file::MappedFile::random(&file).unwrap();
    let pages = (mapped.len() / PAGE) as u64;
    let mut random = Random(7);
    let mut sum = 0u64;
    for _ in 0..touches {
        let offset = random.below(pages) as usize * PAGE;
        sum += u64::from(mapped.byte(offset).unwrap());
    }
    std::hint::black_box(sum);
}

/// Writes one byte to each page of fresh memory, as most programs take it: huge pages are neither
/// asked for nor refused.
fn touch_as_given(mib: usize) {
    let mut memory = vec![0u8; mib * MIB];
    memory.chunks_mut(PAGE).for_each(|page| page[0] = 1);
    std::hint::black_box(memory[0]);
}

/// The same of memory that refuses huge pages.
fn touch_memory(mib: usize) {
    let mut memory = sys::memory::Mapping::anonymous(mib * MIB, sys::memory::Pages::Base).unwrap();
    for page in memory.as_mut_slice().chunks_mut(PAGE) {
        page[0] = 1;
    }
    std::hint::black_box(memory.as_slice()[0]);
}

/// Fills memory with zeros or with what does not compress, then goes over it again.
fn passes(kind: &str, mib: usize, times: usize) {
    let mut memory = sys::memory::Mapping::anonymous(mib * MIB, sys::memory::Pages::Base).unwrap();
    let mut random = Random(11);
    for page in memory.as_mut_slice().chunks_mut(PAGE) {
        match kind {
            "random" => random.fill(page),
            // A written page that holds zeros: the kernel swaps it without I/O.
            _ => page.fill(0),
        }
    }
    for _ in 0..times {
        let sum: u64 = memory.as_slice().chunks(PAGE).map(|page| u64::from(page[0])).sum();
        std::hint::black_box(sum);
    }
}

/// Writes a file through the cache.
fn write_all(path: &Path, mib: usize) {
    let mut file = File::create(path).unwrap();
    let mut buffer = vec![0; MIB];
    Random(13).fill(&mut buffer);
    for _ in 0..mib {
        file.write_all(&buffer).unwrap();
    }
}

/// Counts, on one processor.
fn spin(millions: u64) {
    let mut state = 1u64;
    for step in 0..millions * 1_000_000 {
        state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005) ^ step);
    }
    std::hint::black_box(state);
}

/// Threads that want one lock all the time, and keep it for a while.
fn locks(threads: usize, rounds: usize) {
    let lock = Arc::new(Mutex::new(0u64));
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let lock = Arc::clone(&lock);
            std::thread::spawn(move || {
                for _ in 0..rounds {
                    let mut held = lock.lock().unwrap();
                    let until = Instant::now() + Duration::from_millis(1);
                    while Instant::now() < until {
                        *held += 1;
                    }
                    drop(held);
                    // Who gives the lock back must not win the race for it at once.
                    std::thread::yield_now();
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
}

/// Small writes, each made durable.
fn fsync(path: &Path, times: usize) {
    let mut file = File::create(path).unwrap();
    let record = [7; 512];
    for _ in 0..times {
        file.write_all(&record).unwrap();
        file.sync_data().unwrap();
    }
}

/// Reads single pages of a hot file while a large one is copied beside.
fn evict(hot: &Path, source: &Path, target: &Path) {
    /// Reads between two pieces of the copy.
    const READS: usize = 1000;
    let mut hot = File::open(hot).unwrap();
    let pages = hot.metadata().unwrap().len() / PAGE as u64;
    std::io::copy(&mut hot, &mut std::io::sink()).unwrap();
    let mut source = File::open(source).unwrap();
    let mut target = File::create(target).unwrap();
    let mut buffer = vec![0; 8 * MIB];
    let mut page = vec![0; PAGE];
    let mut random = Random(41);
    loop {
        let bytes = source.read(&mut buffer).unwrap();
        if bytes == 0 {
            break;
        }
        target.write_all(&buffer[..bytes]).unwrap();
        // In random order: where a disk is fast, reading ahead would make the copying the cause.
        for _ in 0..READS {
            hot.read_exact_at(&mut page, random.below(pages) * PAGE as u64).unwrap();
        }
    }
}

/// Takes a processor until it is killed, or its parent is gone.
fn hog() {
    let parent = std::os::unix::process::parent_id();
    while std::os::unix::process::parent_id() == parent {
        spin(20);
    }
}

/// Whether the process that started this one still waits for it.
fn is_wanted(parent: u32) -> bool {
    std::os::unix::process::parent_id() == parent
}

/// Says to the stage that the service is at work.
fn report_ready() {
    println!("ready");
}

/// Between two requests of a service.
const THINK_TIME: Duration = Duration::from_micros(500);

/// A service that answers each request with a piece of its file, which it has read once.
fn serve_file(path: &Path) {
    const PIECE: usize = 64 << 10;
    let parent = std::os::unix::process::parent_id();
    let file = File::open(path).unwrap();
    let pieces = file.metadata().unwrap().len() / PIECE as u64;
    let mut buffer = vec![0; PIECE];
    let mut read = |piece: u64| file.read_exact_at(&mut buffer, piece * PIECE as u64).unwrap();
    // Twice: the kernel then takes it for a working set.
    (0..2).for_each(|_| (0..pieces).for_each(&mut read));
    report_ready();
    let mut random = Random(29);
    while is_wanted(parent) {
        read(random.below(pieces));
        std::thread::sleep(THINK_TIME);
    }
}

/// Reads a file from its start to its end, and sends each piece over a network that takes a while.
fn back_up(path: &Path) {
    let mut buffer = vec![0; MIB];
    let mut file = File::open(path).unwrap();
    while file.read(&mut buffer).unwrap() > 0 {
        std::thread::sleep(Duration::from_millis(7));
    }
}

/// A service that looks something up in its memory for each request.
fn serve_memory(mib: usize) {
    const LOOKUPS: usize = 16;
    let parent = std::os::unix::process::parent_id();
    let mut memory = sys::memory::Mapping::anonymous(mib * MIB, sys::memory::Pages::Base).unwrap();
    let mut random = Random(31);
    memory.as_mut_slice().chunks_mut(PAGE).for_each(|page| random.fill(page));
    report_ready();
    let mut sum = 0u64;
    while is_wanted(parent) {
        for _ in 0..LOOKUPS {
            sum += u64::from(memory.as_slice()[random.below((mib * MIB) as u64) as usize]);
        }
        std::thread::sleep(THINK_TIME);
    }
    std::hint::black_box(sum);
}

/// Takes more and more memory and never looks at it again.
fn leak(mib: usize) {
    let mut random = Random(37);
    let mut kept = Vec::new();
    for _ in 0..mib {
        let mut chunk = vec![0; MIB];
        random.fill(&mut chunk);
        kept.push(chunk);
        std::thread::sleep(Duration::from_millis(10));
    }
    std::hint::black_box(kept);
}

/// A service that answers small requests as they come, with hardly any work for each.
fn answer() {
    let parent = std::os::unix::process::parent_id();
    report_ready();
    let mut state = 1u64;
    while is_wanted(parent) {
        (0..1_000).for_each(|step| state = std::hint::black_box(state ^ step));
        std::thread::sleep(THINK_TIME);
    }
}

/// Work in bursts, with pauses between them.
fn bursts(delay_ms: usize, times: usize, millions: usize, pause_ms: usize) {
    std::thread::sleep(Duration::from_millis(delay_ms as u64));
    for _ in 0..times {
        spin(millions as u64);
        std::thread::sleep(Duration::from_millis(pause_ms as u64));
    }
}

/// Answers requests: little work after each pause, until it is killed or its parent is gone.
fn service(pause_ms: usize, thousands: usize) {
    let parent = std::os::unix::process::parent_id();
    report_ready();
    while is_wanted(parent) {
        std::thread::sleep(Duration::from_millis(pause_ms as u64));
        let mut state = 1u64;
        for step in 0..thousands as u64 * 1_000 {
            state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005) ^ step);
        }
        std::hint::black_box(state);
    }
}

/// Threads that compute, and write down and read again what they computed.
fn report(directory: &Path, threads: usize, millions: usize) {
    std::fs::create_dir_all(directory).unwrap();
    let workers: Vec<_> = (0..threads)
        .map(|number| {
            let path = directory.join(format!("part{number}"));
            std::thread::spawn(move || {
                let mut page = vec![0; MIB];
                for _ in 0..4 {
                    spin(millions as u64 / 4);
                    Random(number as u64).fill(&mut page);
                    std::fs::write(&path, &page).unwrap();
                    assert_eq!(std::fs::read(&path).unwrap().len(), MIB);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
}

/// The directory of a file of a tree: a hundred files lie in each.
fn directory_of(tree: &Path, number: usize) -> PathBuf {
    tree.join(format!("part{}", number / 100))
}

/// A tree of small files.
fn files(tree: &Path, count: usize, bytes: usize) {
    let mut content = vec![0; bytes];
    Random(23).fill(&mut content);
    for number in 0..count {
        let directory = directory_of(tree, number);
        std::fs::create_dir_all(&directory).unwrap();
        // No two are alike, as an object store would notice.
        content[..8].copy_from_slice(&(number as u64).to_le_bytes());
        std::fs::write(directory.join(format!("file{number}")), &content).unwrap();
    }
}

/// Small files, each written under another name first and looked up later.
fn install(tree: &Path, count: usize) {
    for number in 0..count {
        let directory = directory_of(tree, number).join("package").join("lib");
        std::fs::create_dir_all(&directory).unwrap();
        let (partial, path) = (directory.join("partial"), directory.join(format!("{number}.js")));
        std::fs::write(&partial, b"module.exports = 1;\n").unwrap();
        std::fs::rename(&partial, &path).unwrap();
        for missing in ["package.json", "index.js", "index.json", "index.node"] {
            assert!(!directory.join(missing).exists());
        }
        assert!(std::fs::metadata(&path).unwrap().is_file());
    }
}

/// Threads that map, touch and unmap memory.
fn mappings(threads: usize, rounds: usize) {
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            std::thread::spawn(move || {
                for _ in 0..rounds {
                    let pages = sys::memory::Pages::Base;
                    let mut memory = sys::memory::Mapping::anonymous(4 * PAGE, pages).unwrap();
                    memory.as_mut_slice()[0] = 1;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
}
