//! One process: its files, its threads, and their last values.
//!
//! `stat` and `io` cover the whole process. `schedstat` and the block I/O waits in `stat` cover one
//! thread, so they are summed over the threads, and threads that ended keep their last values. If a
//! thread did not run since the last sample, only `schedstat` is read.

use super::text::{self, FILE_BYTES, IO_FIGURES, Stat};
use crate::process_tree::numbers;
use model::duration::CLOCK_TICK_NS;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Sums that come from threads: run, queue, slices, block I/O.
const OF_THREADS: usize = 4;
/// All sums of a process, in the order of [`super::SUMS`].
pub(super) const FIGURES: usize = OF_THREADS + 4 + IO_FIGURES;
/// Where the figures of `io` begin: they also hold those of children that were waited for.
pub(super) const IO_FIRST: usize = FIGURES - IO_FIGURES;
/// Threads of one process that are looked at.
const MAX_THREADS: usize = 4_096;

/// How a round of reading is done.
#[derive(Debug)]
pub(super) struct Round {
    /// What one file is read into.
    pub buffer: [u8; FILE_BYTES],
    /// Whether files are kept open until the next round.
    pub hold: bool,
    /// Whether everything is read, also of what has not run.
    pub full: bool,
    /// Whether the kernel counts block I/O waits.
    pub delays: bool,
}

/// A file that is held open, or opened for each reading.
#[derive(Debug)]
struct Handle {
    path: PathBuf,
    file: Option<File>,
}

impl Handle {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    fn read<'a>(&mut self, round: &'a mut Round) -> std::io::Result<&'a [u8]> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path)?,
        };
        let bytes = file.read_at(&mut round.buffer, 0)?;
        self.file = round.hold.then_some(file);
        Ok(&round.buffer[..bytes])
    }
}

#[derive(Debug)]
struct ThreadFigures {
    number: u32,
    schedstat: Handle,
    /// `None` for the main thread, whose waits are in the `stat` of the process.
    stat: Option<Handle>,
    figures: [u64; OF_THREADS],
}

/// A process that belongs to the subject.
#[derive(Debug)]
pub(super) struct Process {
    pub number: u32,
    /// The last values of `stat`.
    pub stat: Stat,
    /// The last values of `io`; `None` if it may not be read.
    pub io: Option<[u64; IO_FIGURES]>,
    /// Whether the last round did not find it.
    pub gone: bool,
    directory: PathBuf,
    stat_file: Handle,
    io_file: Handle,
    started_ticks: Option<u64>,
    threads: Vec<ThreadFigures>,
    ended_threads: [u64; OF_THREADS],
    /// What it had done before it belonged to the subject.
    base: [u64; FIGURES],
    /// The values of `io` one sample earlier, and what ended children have added to them since.
    io_before: [u64; IO_FIGURES],
}

impl Process {
    /// The process with this number, whose directory is `directory`; `None` if it has gone.
    pub fn open(directory: PathBuf, number: u32, round: &mut Round) -> Option<Self> {
        let mut process = Self {
            number,
            stat: Stat::default(),
            io: None,
            gone: false,
            stat_file: Handle::new(directory.join("stat")),
            io_file: Handle::new(directory.join("io")),
            directory,
            started_ticks: None,
            threads: Vec::new(),
            ended_threads: [0; OF_THREADS],
            base: [0; FIGURES],
            io_before: [0; IO_FIGURES],
        };
        process.read_stat(round)?;
        process.list_threads();
        let full = std::mem::replace(&mut round.full, true);
        let alive = process.read(round);
        round.full = full;
        alive.then_some(process)
    }

    /// Leaves out what it did until now.
    pub fn forget_past(&mut self) {
        self.base = self.figures();
    }

    /// Begins a round for [`Process::inherit`].
    pub fn mark_io(&mut self) {
        self.io_before = self.io.unwrap_or_default();
    }

    /// Whether an ended child's I/O is in what this process's grew by in this round; if so
    /// it is taken off, and not there for the next child.
    pub fn inherit(&mut self, child: &[u64; IO_FIGURES]) -> bool {
        let Some(now) = self.io else {
            return false;
        };
        let left = now.iter().zip(self.io_before);
        let holds =
            left.zip(child).all(|((now, before), figure)| now.saturating_sub(before) >= *figure);
        if holds {
            for (before, figure) in self.io_before.iter_mut().zip(child) {
                *before += figure;
            }
        }
        holds
    }

    /// Reads what may have changed; false if the process has gone.
    pub fn read(&mut self, round: &mut Round) -> bool {
        let many = self.threads.len() > 1 && !round.hold;
        if many && !round.full {
            // Without open files the whole process's time is the cheaper sign of life.
            let before = self.stat;
            if self.read_stat(round).is_none() {
                return false;
            }
            if before == self.stat {
                return true;
            }
        }
        let lost = self.read_threads(round);
        let Some(moved) = lost else {
            return self.read_whole(round, true);
        };
        !(moved || round.full) || self.read_whole(round, false)
    }

    /// Reads the figures that children hand over when they were waited for.
    pub fn read_io(&mut self, round: &mut Round) {
        match self.io_file.read(round) {
            Ok(bytes) => self.io = text::io(bytes).or(self.io),
            // It stays with what was seen: an ended process's last figures are not 0.
            Err(_) => self.io_file.file = None,
        }
    }

    /// All sums since it belongs to the subject.
    pub fn figures(&self) -> [u64; FIGURES] {
        let mut sums = [0; FIGURES];
        sums[..OF_THREADS].copy_from_slice(&self.ended_threads);
        for thread in &self.threads {
            for (sum, figure) in sums.iter_mut().zip(thread.figures) {
                *sum += figure;
            }
        }
        sums[4] = self.stat.user_ticks.saturating_mul(CLOCK_TICK_NS);
        sums[5] = self.stat.system_ticks.saturating_mul(CLOCK_TICK_NS);
        sums[6] = self.stat.minor_faults;
        sums[7] = self.stat.major_faults;
        sums[IO_FIRST..].copy_from_slice(&self.io.unwrap_or_default());
        for (sum, base) in sums.iter_mut().zip(self.base) {
            *sum = sum.saturating_sub(base);
        }
        sums
    }

    /// Whether it only waits to be waited for.
    pub fn is_over(&self) -> bool {
        matches!(self.stat.state, b'Z' | b'X')
    }

    /// How many threads are looked at.
    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    fn read_whole(&mut self, round: &mut Round, relist: bool) -> bool {
        if self.read_stat(round).is_none() {
            return false;
        }
        if relist || self.stat.threads != self.threads.len() as u64 {
            self.list_threads();
            // A thread that is lost now is found lost again in the next round.
            let _ = self.read_threads(round);
        }
        self.read_io(round);
        true
    }

    fn read_stat(&mut self, round: &mut Round) -> Option<()> {
        let now = text::stat(self.stat_file.read(round).ok()?)?;
        // Another process with a number that was given out again is not this one.
        let started = self.started_ticks.replace(now.start_ticks);
        if started.is_some_and(|started| started != now.start_ticks) {
            self.started_ticks = started;
            return None;
        }
        self.stat = now;
        let delays = round.delays;
        if let Some(main) = self.threads.first_mut().filter(|_| delays) {
            main.figures[3] = self.stat.block_ticks.saturating_mul(CLOCK_TICK_NS);
        }
        Some(())
    }

    /// Whether any thread ran; `None` if one has ended.
    fn read_threads(&mut self, round: &mut Round) -> Option<bool> {
        let mut moved = self.threads.is_empty();
        let mut lost = false;
        for thread in &mut self.threads {
            match thread.read(round) {
                Some(ran) => moved |= ran,
                None => lost = true,
            }
        }
        (!lost).then_some(moved)
    }

    /// Finds new threads, and adds up those that ended.
    fn list_threads(&mut self) {
        let listed = numbers(&self.directory.join("task"));
        let mut numbers: Vec<u32> = listed.take(MAX_THREADS).collect();
        // The main thread is always there, also where the threads cannot be listed.
        numbers.push(self.number);
        numbers.sort_unstable_by_key(|number| (*number != self.number, *number));
        numbers.dedup();
        let ended = &mut self.ended_threads;
        self.threads.retain(|thread| {
            let stays = numbers.contains(&thread.number);
            if !stays {
                for (sum, figure) in ended.iter_mut().zip(thread.figures) {
                    *sum += figure;
                }
            }
            stays
        });
        for number in numbers {
            if !self.threads.iter().any(|thread| thread.number == number) {
                self.threads.push(self.thread(number));
            }
        }
    }

    fn thread(&self, number: u32) -> ThreadFigures {
        let main = number == self.number;
        let directory = if main {
            self.directory.clone()
        } else {
            self.directory.join(format!("task/{number}"))
        };
        ThreadFigures {
            number,
            schedstat: Handle::new(directory.join("schedstat")),
            stat: (!main).then(|| Handle::new(directory.join("stat"))),
            figures: [0; OF_THREADS],
        }
    }
}

impl ThreadFigures {
    /// Whether it ran since the last look; `None` if it has ended.
    fn read(&mut self, round: &mut Round) -> Option<bool> {
        let times = match self.schedstat.read(round) {
            Ok(bytes) => text::schedstat(bytes),
            // A kernel without the file: then its process must be read each time.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return self.is_main().then_some(true);
            }
            Err(_) => return None,
        };
        let Some(times) = times else {
            return Some(true);
        };
        let ran = times != self.figures[..3];
        self.figures[..3].copy_from_slice(&times);
        if let Some(file) = self.stat.as_mut().filter(|_| round.delays && ran)
            && let Some(stat) = file.read(round).ok().and_then(text::stat)
        {
            self.figures[3] = stat.block_ticks.saturating_mul(CLOCK_TICK_NS);
        }
        Some(ran)
    }

    fn is_main(&self) -> bool {
        self.stat.is_none()
    }
}
