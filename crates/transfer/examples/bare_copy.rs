//! The barest copy of a directory's files over one ring: what a disk gives to any copier, for
//! `cargo xtask bench copy` to compare with.
//!
//! `bare_copy SOURCE TARGET DEPTH KIB [READS WRITES]` reads each file past the page cache in pieces
//! of KIB, writes each piece as soon as it is read, begins the next file when all pieces of the one
//! before are started, and syncs each file when it is written. It keeps no times and no owners,
//! walks no tree, bounds nothing and says nothing. TARGET `-` only reads.

use std::error::Error;
use std::fs::{self, File};
use std::os::unix::fs::DirEntryExt;
use std::path::Path;

use sys::file;
use sys::uring::{IoOperation, IoRequest, Queue};

/// Direct requests begin and end at multiples of this, in bytes.
const BLOCK_BYTES: u64 = 4096;

/// A file under way.
struct Pair {
    source: usize,
    /// `None` if it is only read.
    target: Option<(usize, File)>,
    bytes: u64,
    next: u64,
    in_flight: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [source, target, numbers @ ..] = words.as_slice() else {
        return Err("SOURCE TARGET DEPTH KIB [READS WRITES]".into());
    };
    let numbers: Vec<usize> = numbers.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
    let (depth, kib) = (numbers[0], numbers[1]);
    let most = [numbers.get(2), numbers.get(3)].map(|most| most.copied().unwrap_or(depth));
    let mut names = Vec::new();
    for entry in fs::read_dir(source)? {
        let found = entry?;
        names.push((found.ino(), found.file_name()));
    }
    names.sort();
    let directory = (target != "-").then_some(Path::new(target));
    if let Some(directory) = directory {
        fs::create_dir(directory)?;
    }
    let mut copy = BareCopy {
        queue: Queue::new(depth as u32, kib << 10)?,
        pairs: Vec::new(),
        idle: (0..depth).collect(),
        ready: Vec::new(),
        of_slot: vec![0; depth],
        reads: 0,
        writes: 0,
        most,
    };
    for (_, name) in names {
        copy.add(&Path::new(source).join(&name), directory.map(|at| at.join(&name)).as_deref())?;
        copy.drain(|copy| copy.pairs.last().is_none_or(|pair| pair.next >= pair.bytes))?;
    }
    copy.drain(|copy| copy.idle.len() == depth)?;
    if let Some(directory) = directory {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

struct BareCopy {
    queue: Queue,
    pairs: Vec<Pair>,
    idle: Vec<usize>,
    /// Slots with a piece that is read, not written.
    ready: Vec<(usize, IoRequest)>,
    of_slot: Vec<usize>,
    reads: usize,
    writes: usize,
    /// At a time: reads, writes.
    most: [usize; 2],
}

impl BareCopy {
    fn add(&mut self, source: &Path, target: Option<&Path>) -> Result<(), Box<dyn Error>> {
        let from = File::open(source)?;
        file::set_direct(&from, true)?;
        let bytes = from.metadata()?.len();
        let target = match target {
            Some(target) => {
                let to = File::create_new(target)?;
                file::set_direct(&to, true)?;
                // None can be allocated for an empty file.
                if bytes > 0 {
                    file::allocate(&to, bytes)?;
                }
                Some((self.queue.add_file(&to)?, to))
            }
            None => None,
        };
        let source = self.queue.add_file(&from)?;
        self.pairs.push(Pair { source, target, bytes, next: 0, in_flight: 0 });
        Ok(())
    }

    /// Starts pieces of the newest file and takes what ended, until `is_done`.
    fn drain(&mut self, is_done: impl Fn(&Self) -> bool) -> Result<(), Box<dyn Error>> {
        loop {
            self.start()?;
            if is_done(self) {
                return Ok(());
            }
            self.queue.enter(1)?;
            while let Some(ended) = self.queue.complete() {
                self.take(ended.slot, ended.request, ended.result?)?;
            }
        }
    }

    fn start(&mut self) -> Result<(), Box<dyn Error>> {
        while self.writes < self.most[1]
            && let Some((slot, request)) = self.ready.pop()
        {
            self.queue.submit(slot, request)?;
            self.writes += 1;
        }
        let Some(index) = self.pairs.len().checked_sub(1) else { return Ok(()) };
        while self.reads < self.most[0] && self.pairs[index].next < self.pairs[index].bytes {
            let Some(slot) = self.idle.pop() else { return Ok(()) };
            let pair = &mut self.pairs[index];
            let left = (pair.bytes - pair.next).next_multiple_of(BLOCK_BYTES);
            let bytes = left.min(self.queue.buffer_bytes() as u64);
            let request = IoRequest::read(pair.source, pair.next, bytes as usize);
            pair.next += bytes;
            pair.in_flight += 1;
            self.of_slot[slot] = index;
            self.queue.submit(slot, request)?;
            self.reads += 1;
        }
        Ok(())
    }

    fn take(&mut self, slot: usize, request: IoRequest, done: usize) -> Result<(), Box<dyn Error>> {
        let index = self.of_slot[slot];
        let pair = &mut self.pairs[index];
        if request.operation == IoOperation::Read {
            self.reads -= 1;
            let is_end = request.offset + done as u64 == pair.bytes;
            if done < request.bytes && !is_end {
                return Err("a short read".into());
            }
            if let Some((target, _)) = &pair.target {
                let write = IoRequest::write(*target, request.offset, request.bytes);
                self.ready.push((slot, write));
                return Ok(());
            }
        } else if request.operation == IoOperation::Write {
            self.writes -= 1;
            if done < request.bytes {
                return Err("a short write".into());
            }
        }
        self.idle.push(slot);
        pair.in_flight -= 1;
        if pair.in_flight == 0 && pair.next >= pair.bytes {
            self.end(index, request.operation)?;
        }
        Ok(())
    }

    /// Nothing of the file is in flight: it is synced, or done.
    fn end(&mut self, index: usize, last: IoOperation) -> Result<(), Box<dyn Error>> {
        let pair = &mut self.pairs[index];
        if last == IoOperation::Write
            && let Some((target, to)) = &pair.target
            && let Some(slot) = self.idle.pop()
        {
            to.set_len(pair.bytes)?;
            pair.in_flight += 1;
            self.of_slot[slot] = index;
            self.queue.submit(slot, IoRequest::sync(*target))?;
            return Ok(());
        }
        let source = pair.source;
        if let Some((target, _)) = pair.target.take() {
            self.queue.release_file(target)?;
        }
        Ok(self.queue.release_file(source)?)
    }
}
