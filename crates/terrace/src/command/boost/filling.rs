//! Fills the cache of a served volume ahead, in a thread of its own: one client at a time.
//!
//! 1. The client asks `Question::Fill` and gets a [`FillOpening`].
//! 2. It sends batches, a line of offsets and lengths each; each is answered by a [`FillStep`].
//! 3. A step with an end is the last. A client that closes its side ends the batch.
//!
//! The service holds one batch; the client has the rest. One piece is read at a time, so that other
//! reads of the disk wait for no more than that, and nothing is read that would not be cached but
//! short gaps ([`super::gap_reader`]).

use super::control::{self, FilledBefore, LINE_BYTES};
use super::engine::SharedCache;
use super::gap_reader::GapReader;
use crate::output::boost_fill::FillEnd;
use cache::{Counters, FillRoom};
use serde::{Deserialize, Serialize};
use serve::driver::Driver;
use serve::volume::Volume;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::device::FileDevice;

/// Frames that are read at once, as many as the engine takes.
const PIECE_FRAMES: u64 = 8;
/// How long the cache may be busy: it may have to look through its medium first.
const BUSY_MAX: Duration = Duration::from_secs(60);
/// How often a busy cache is looked at.
const BUSY_TURN: Duration = Duration::from_millis(5);
/// Reads of one piece that bring nothing: its region is being written, or the disk fails.
const TRIES: u32 = 5;
/// A client that asks for nothing for so long is given up.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// How often it is looked whether the service ends.
const TURN: Duration = Duration::from_millis(100);
/// How long a client may take to read an answer.
const WRITE_WAIT: Duration = Duration::from_secs(5);

/// Whether a fill may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FillOpening {
    /// Why not.
    pub(super) refused: Option<String>,
    /// Bytes of a frame.
    pub(super) frame_bytes: u32,
    /// Bytes of the flash that a fill may take in all.
    pub(super) room_bytes: u64,
    /// Bytes that may be written to the flash now.
    pub(super) budget_bytes: u64,
    /// Gaps up to so many bytes are read, since that is quicker than to jump over them.
    pub(super) gap_bytes_max: u64,
}

/// What became of a batch. Bytes are of whole frames of the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FillStep {
    /// Cached now.
    pub(super) filled_bytes: u64,
    /// In the cache before.
    pub(super) known_bytes: u64,
    /// Not to be cached: they were being written, or could not be read.
    pub(super) failed_bytes: u64,
    /// What the flash took since the connection began.
    pub(super) stored_bytes: u64,
    /// Why it is the last.
    pub(super) end: Option<FillEnd>,
}

/// The fill that is under way, if one is.
#[derive(Default)]
pub(super) struct Filling {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Filling {
    /// Begins a fill for a client, or says why not.
    pub(super) fn begin(
        &mut self,
        client: UnixStream,
        driver: &Arc<Driver>,
        cache: &SharedCache,
        backing: &Arc<FileDevice>,
        before: FilledBefore,
    ) {
        if self.stop.load(Ordering::Relaxed) {
            return refuse(&client, "the cache is being detached");
        }
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return refuse(&client, "another fill is under way");
        }
        let Ok(answering) = client.try_clone() else { return };
        let filler = Filler {
            client,
            driver: Arc::clone(driver),
            cache: cache.clone(),
            stop: Arc::clone(&self.stop),
            before,
            counted: cache.lock().counters(),
        };
        let backing = Arc::clone(backing);
        let started =
            std::thread::Builder::new().name("fill".to_owned()).spawn(move || filler.run(backing));
        match started {
            Ok(thread) => self.thread = Some(thread),
            Err(_) => refuse(&answering, "a thread cannot be started"),
        }
    }

    /// Ends the fill that is under way, and begins no more.
    pub(super) fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Says to a client why no fill begins.
pub(super) fn refuse(client: &UnixStream, why: &str) {
    let refused = Some(why.to_owned());
    let opening =
        FillOpening { refused, frame_bytes: 0, room_bytes: 0, budget_bytes: 0, gap_bytes_max: 0 };
    control::answer(client, &opening);
}

/// One fill.
struct Filler {
    client: UnixStream,
    driver: Arc<Driver>,
    cache: SharedCache,
    stop: Arc<AtomicBool>,
    /// What other services brought of this fill.
    before: FilledBefore,
    /// The engine's counters when this began.
    counted: Counters,
}

impl Filler {
    fn run(self, backing: Arc<FileDevice>) {
        let is_set = self.client.set_read_timeout(Some(TURN)).is_ok()
            && self.client.set_write_timeout(Some(WRITE_WAIT)).is_ok();
        let Some(reading) = self.client.try_clone().ok().filter(|_| is_set) else { return };
        let mut gaps = GapReader::of(backing, self.driver.bytes());
        let opening = {
            let cache = self.cache.lock();
            FillOpening {
                refused: None,
                frame_bytes: cache.frame_bytes(),
                room_bytes: cache.fill_bytes_max(),
                budget_bytes: cache.budget_bytes(),
                gap_bytes_max: gaps.gap_bytes_max(),
            }
        };
        control::answer(&self.client, &opening);
        let mut lines = BufReader::new(reading);
        while let Some(batch) = self.next_batch(&mut lines) {
            let mut step = FillStep::default();
            step.end = batch.iter().find_map(|(offset, len)| {
                self.fill_part(*offset..offset.saturating_add(*len), &mut gaps, &mut step)
            });
            step.stored_bytes = self.stored();
            control::answer(&self.client, &step);
            if step.end.is_some() {
                return;
            }
        }
    }

    /// What the client sends next; `None` at the end of it, or of the service.
    fn next_batch(&self, lines: &mut BufReader<UnixStream>) -> Option<Vec<(u64, u64)>> {
        let (mut line, since) = (Vec::new(), Instant::now());
        loop {
            let room = LINE_BYTES.saturating_sub(line.len() as u64);
            match lines.by_ref().take(room).read_until(b'\n', &mut line) {
                Ok(_) => return serde_json::from_slice(&line).ok(),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return None,
            }
            if self.stop.load(Ordering::Relaxed) || since.elapsed() > IDLE_MAX {
                return None;
            }
        }
    }

    /// Bytes of the flash that this fill took here.
    fn stored(&self) -> u64 {
        self.cache.lock().counters().prefetched_bytes - self.counted.prefetched_bytes
    }

    /// Fills a part of the volume, in pieces of whole frames.
    fn fill_part(
        &self,
        part: Range<u64>,
        gaps: &mut GapReader,
        step: &mut FillStep,
    ) -> Option<FillEnd> {
        let frame = u64::from(self.cache.lock().frame_bytes());
        let end = part.end.min(self.driver.bytes());
        let mut start = part.start / frame * frame;
        while start < end {
            let next = (start + PIECE_FRAMES * frame).min(self.driver.bytes());
            let upto = end.next_multiple_of(frame).min(next);
            if let Some(end) = self.fill_piece(start..upto, gaps, step) {
                return Some(end);
            }
            start = next;
        }
        None
    }

    fn fill_piece(
        &self,
        piece: Range<u64>,
        gaps: &mut GapReader,
        step: &mut FillStep,
    ) -> Option<FillEnd> {
        let len = piece.end - piece.start;
        let covered = || self.cache.lock().coverage(piece.start, len).cached_bytes;
        let mut cached = covered();
        step.known_bytes += cached;
        let (mut since, mut tries) = (Instant::now(), 0);
        while cached < len {
            if let Some(end) = self.end_asked_for() {
                return Some(end);
            }
            match self.room() {
                Ok(FillRoom::Ready) => {}
                Ok(FillRoom::Busy) if since.elapsed() < BUSY_MAX => {
                    std::thread::sleep(BUSY_TURN);
                    continue;
                }
                Ok(FillRoom::Busy | FillRoom::Off) => return Some(FillEnd::Off),
                Ok(FillRoom::BudgetUsed) => return Some(FillEnd::Budget),
                Err(full) => return Some(full),
            }
            let missing = self.first_missing(&piece);
            gaps.reach(&(missing..piece.end));
            let _ = self.driver.prefetch(missing, piece.end - missing);
            let now = covered();
            if now > cached {
                step.filled_bytes += now - cached;
                (cached, since, tries) = (now, Instant::now(), 0);
                continue;
            }
            tries += 1;
            if tries == TRIES {
                step.failed_bytes += len - cached;
                return None;
            }
            std::thread::sleep(BUSY_TURN);
        }
        None
    }

    /// Whether a frame would be cached now.
    fn room(&self) -> Result<FillRoom, FillEnd> {
        let cache = self.cache.lock();
        let Counters { prefetched, prefetched_bytes, .. } = cache.counters();
        let stored = prefetched_bytes - self.counted.prefetched_bytes;
        let frames_before = self.before.filled_bytes / u64::from(cache.frame_bytes());
        let frames = frames_before.saturating_add(prefetched - self.counted.prefetched);
        if self.before.stored_bytes.saturating_add(stored) >= cache.fill_bytes_max()
            || frames >= cache.fill_frames_max()
        {
            return Err(FillEnd::Full);
        }
        Ok(cache.fill_room())
    }

    fn first_missing(&self, piece: &Range<u64>) -> u64 {
        let cache = self.cache.lock();
        let mut offsets = (piece.start..piece.end).step_by(cache::BLOCK_BYTES as usize);
        offsets.find(|offset| !cache.is_cached(*offset)).unwrap_or(piece.start)
    }

    /// Why the fill is to end now: the service ends, or the client has closed its side.
    fn end_asked_for(&self) -> Option<FillEnd> {
        if self.stop.load(Ordering::Relaxed) {
            return Some(FillEnd::Detaching);
        }
        // A client that waits for an answer sends nothing: what can be read is its end.
        self.client.set_nonblocking(true).ok()?;
        let read = (&self.client).read(&mut [0]);
        self.client.set_nonblocking(false).ok()?;
        matches!(read, Ok(0)).then_some(FillEnd::Cancelled)
    }
}
