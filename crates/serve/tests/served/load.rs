//! A load that checks what it reads: threads that write blocks of files of their own, past the page
//! cache, and read them back.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use sys::memory::AlignedBuffer;
use testkit::Random;

const BLOCK: usize = 4096;
const BLOCKS: u64 = 200;

/// What a load has met.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) wrong: AtomicU64,
    pub(crate) longest_ms: AtomicU64,
}

/// Makes the file that [`run`] works on.
pub(crate) fn prepare(path: &Path) {
    std::fs::write(path, vec![0; BLOCK * BLOCKS as usize]).unwrap();
    File::open(path).unwrap().sync_all().unwrap();
}

/// Loads all `files` while `disturb` runs; `give_up` ends what hangs where that fails.
pub(crate) fn during(
    files: &[PathBuf],
    disturb: impl FnOnce(&Tally),
    give_up: impl FnOnce(),
) -> Tally {
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    files.iter().for_each(|file| prepare(file));
    std::thread::scope(|scope| {
        for (seed, file) in files.iter().enumerate() {
            let (tally, stop) = (&tally, &stop);
            scope.spawn(move || run(file, seed as u64, tally, stop));
        }
        let disturbed = catch_unwind(AssertUnwindSafe(|| disturb(&tally)));
        stop.store(true, Ordering::Relaxed);
        if disturbed.is_err() {
            give_up();
        }
        disturbed.unwrap();
    });
    tally
}

/// Works on a file until `stop`.
pub(crate) fn run(path: &Path, seed: u64, tally: &Tally, stop: &AtomicBool) {
    let file =
        File::options().read(true).write(true).custom_flags(testkit::O_DIRECT).open(path).unwrap();
    let mut buffer = AlignedBuffer::new(BLOCK).unwrap();
    let mut random = Random(seed);
    // What a block surely holds; of one whose write failed nothing is known.
    let mut known = vec![Some(0u8); BLOCKS as usize];
    while !stop.load(Ordering::Relaxed) {
        let block = random.below(BLOCKS);
        let started = Instant::now();
        let done = step(&file, &mut buffer, &mut random, block, &mut known[block as usize], tally);
        let took: Duration = started.elapsed();
        tally.longest_ms.fetch_max(took.as_millis() as u64, Ordering::Relaxed);
        tally.requests.fetch_add(1, Ordering::Relaxed);
        if done.is_err() {
            tally.errors.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn step(
    file: &File,
    buffer: &mut AlignedBuffer,
    random: &mut Random,
    block: u64,
    known: &mut Option<u8>,
    tally: &Tally,
) -> io::Result<()> {
    let offset = block * BLOCK as u64;
    match random.below(10) {
        0..4 => {
            let byte = random.below(256) as u8;
            buffer.fill(byte);
            *known = None;
            file.write_all_at(buffer, offset)?;
            *known = Some(byte);
        }
        4 => file.sync_data()?,
        _ => {
            file.read_exact_at(buffer, offset)?;
            let is_right = known.is_none_or(|byte| buffer.iter().all(|it| *it == byte));
            tally.wrong.fetch_add(u64::from(!is_right), Ordering::Relaxed);
        }
    }
    Ok(())
}
