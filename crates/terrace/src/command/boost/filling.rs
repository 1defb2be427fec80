//! Fills the cache of a served volume ahead, in a thread of its own: one client at a time.
//!
//! 1. The client asks `Question::Fill` and gets a [`FillOpening`].
//! 2. It sends batches, a line of offsets and lengths each; each is answered by a [`FillStep`].
//! 3. A step with an end is the last. A client that closes its side ends the batch.
//!
//! Blocks of one frame are brought together, with what is between them: a frame that grows is
//! written anew. They are read in bursts, several at a time. Reads of others wait for the end of a
//! burst, as turns read by read would cost two jumps over the disk for each, and where there were
//! any, others then have the disk for longer. After the first batch most need it no more.

use super::control::{self, FilledBefore, LINE_BYTES};
use super::engine::SharedCache;
use super::jump_cost;
use super::shared_disk::{SharedDisk, as_fill};
use crate::output::boost_fill::FillEnd;
use cache::{Counters, FillRoom};
use serde::{Deserialize, Serialize};
use serve::driver::Driver;
use serve::volume::Volume;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Frames that are read at once, as many as the engine takes.
const PIECE_FRAMES: u64 = 8;
/// Reads that are under way at the same time.
const WORKERS: usize = 8;
/// A burst begins no read after so long; a jump of a hard disk and back takes a sixth of it.
const BURST: Duration = Duration::from_millis(100);
/// In the first batch, where a jump brings fewer bytes.
const FIRST_BURST: Duration = Duration::from_millis(250);
/// Others then have the disk for so many times as long as the burst took,
const GIVE_WAY_TIMES: u32 = 2;
/// but no longer than this: a burst may have had to wait for them itself.
const GIVE_WAY_MAX: Duration = Duration::from_millis(300);
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
    /// Bytes of the flash that a fill may take in all.
    pub(super) room_bytes: u64,
    /// Bytes that may be written to the flash now.
    pub(super) budget_bytes: u64,
    /// Gaps up to so many bytes are passed sooner than the disk jumps over them.
    pub(super) gap_bytes_max: u64,
}

/// What became of a batch. Bytes are of whole blocks of the volume.
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
    /// The frames that were cached for it.
    #[serde(default)]
    pub(super) frames: u64,
    /// Why it is the last.
    pub(super) end: Option<FillEnd>,
}

impl FillStep {
    fn add(&mut self, other: Self) {
        self.filled_bytes += other.filled_bytes;
        self.known_bytes += other.known_bytes;
        self.failed_bytes += other.failed_bytes;
        self.end = self.end.or(other.end);
    }
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
        disk: &Arc<SharedDisk>,
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
            disk: Arc::clone(disk),
            stop: Arc::clone(&self.stop),
            before,
            counted: cache.lock().counters(),
            reserved: AtomicU64::new(0),
        };
        let started =
            std::thread::Builder::new().name("fill".to_owned()).spawn(move || filler.run());
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
    let opening = FillOpening { refused, room_bytes: 0, budget_bytes: 0, gap_bytes_max: 0 };
    control::answer(client, &opening);
}

/// One fill.
struct Filler {
    client: UnixStream,
    driver: Arc<Driver>,
    cache: SharedCache,
    disk: Arc<SharedDisk>,
    stop: Arc<AtomicBool>,
    /// What other services brought of this fill.
    before: FilledBefore,
    /// The engine's counters when this began.
    counted: Counters,
    /// Bytes of the volume that are being read.
    reserved: AtomicU64,
}

impl Filler {
    fn run(self) {
        self.cache.pause_times(true);
        self.fill();
        self.cache.pause_times(false);
    }

    fn fill(&self) {
        let is_set = self.client.set_read_timeout(Some(TURN)).is_ok()
            && self.client.set_write_timeout(Some(WRITE_WAIT)).is_ok();
        let Some(reading) = self.client.try_clone().ok().filter(|_| is_set) else { return };
        let gap_bytes_max = jump_cost::gap_bytes_max(self.disk.as_ref(), self.driver.bytes());
        let opening = {
            let cache = self.cache.lock();
            FillOpening {
                refused: None,
                room_bytes: cache.fill_bytes_max(),
                budget_bytes: cache.budget_bytes(),
                gap_bytes_max,
            }
        };
        control::answer(&self.client, &opening);
        let mut lines = BufReader::new(reading);
        let mut is_first = true;
        while let Some(batch) = self.next_batch(&mut lines) {
            let parts = batch.iter().map(|(offset, len)| *offset..offset.saturating_add(*len));
            let frame_bytes = u64::from(self.cache.lock().frame_bytes());
            let pieces = pieces(parts, frame_bytes, self.driver.bytes());
            let mut left = pieces.iter();
            let mut step = FillStep::default();
            while step.end.is_none() && !left.as_slice().is_empty() {
                let (since, others) = (Instant::now(), self.others());
                self.burst(&mut left, if is_first { FIRST_BURST } else { BURST }, &mut step);
                if !is_first && self.others() != others {
                    self.give_way(GIVE_WAY_TIMES * since.elapsed());
                }
            }
            is_first = false;
            (step.stored_bytes, step.frames) = self.taken();
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

    /// Bytes of the flash that this fill took here, and frames.
    fn taken(&self) -> (u64, u64) {
        self.taken_of(&self.cache.lock().counters())
    }

    fn taken_of(&self, now: &Counters) -> (u64, u64) {
        (
            now.prefetched_bytes - self.counted.prefetched_bytes,
            now.prefetched - self.counted.prefetched,
        )
    }

    /// How often others needed the disk so far.
    fn others(&self) -> u64 {
        let counters = self.cache.lock().counters();
        counters.reads.saturating_sub(counters.hits) + counters.writes
    }

    /// Leaves the disk to others for so long.
    fn give_way(&self, time: Duration) {
        let end = Instant::now() + time.min(GIVE_WAY_MAX);
        while !self.stop.load(Ordering::Relaxed)
            && let Some(left) = end.checked_duration_since(Instant::now())
        {
            std::thread::sleep(left.min(TURN));
        }
    }

    /// Fills the next pieces, several at a time, for a moment.
    fn burst<'p>(
        &self,
        left: &mut std::slice::Iter<'p, Piece>,
        time: Duration,
        step: &mut FillStep,
    ) {
        let _alone = self.disk.reserve(time);
        let end = Instant::now() + time;
        let workers = WORKERS.min(left.len());
        let left = Mutex::new(left);
        let next = || -> Option<&'p Piece> {
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            if Instant::now() < end { left.next() } else { None }
        };
        let work = || {
            let mut own = FillStep::default();
            while own.end.is_none()
                && let Some(piece) = next()
            {
                own.end = self.fill_piece(piece, &mut own);
            }
            own
        };
        std::thread::scope(|scope| {
            let started: Vec<_> = (1..workers)
                .map_while(|_| {
                    std::thread::Builder::new().spawn_scoped(scope, || as_fill(work)).ok()
                })
                .collect();
            step.add(as_fill(work));
            // A worker that panics has brought what it brought; the next look at the cache knows.
            started.into_iter().filter_map(|it| it.join().ok()).for_each(|own| step.add(own));
        });
    }

    fn fill_piece(&self, piece: &Piece, step: &mut FillStep) -> Option<FillEnd> {
        let len: u64 = piece.wanted.iter().map(|part| part.end - part.start).sum();
        let mut cached = self.cached(piece);
        step.known_bytes += cached;
        let (mut since, mut tries) = (Instant::now(), 0);
        while cached < len {
            if let Some(end) = self.end_asked_for() {
                return Some(end);
            }
            let missing = self.first_missing(piece)..piece.end();
            let reserved = missing.end - missing.start;
            match self.reserve(reserved) {
                Ok(FillRoom::Ready) => {}
                Ok(FillRoom::Busy) if since.elapsed() < BUSY_MAX => {
                    std::thread::sleep(BUSY_TURN);
                    continue;
                }
                Ok(FillRoom::Busy | FillRoom::Off) => return Some(FillEnd::Off),
                Ok(FillRoom::BudgetUsed) => return Some(FillEnd::Budget),
                Err(full) => return Some(full),
            }
            let _ = self.driver.prefetch(missing.start, reserved);
            self.reserved.fetch_sub(reserved, Ordering::Relaxed);
            let now = self.cached(piece);
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

    /// Bytes that are wanted and cached.
    fn cached(&self, piece: &Piece) -> u64 {
        let cache = self.cache.lock();
        let of = |part: &Range<u64>| cache.coverage(part.start, part.end - part.start).cached_bytes;
        piece.wanted.iter().map(of).sum()
    }

    /// Whether so many bytes would be cached now; if so, room is kept for them. Near the end of the
    /// room one read after another gets some: how well they compress is not known before.
    fn reserve(&self, bytes: u64) -> Result<FillRoom, FillEnd> {
        let cache = self.cache.lock();
        let (stored, frames) = self.taken_of(&cache.counters());
        let stored = self.before.stored_bytes.saturating_add(stored);
        let frames = self.before.frames.saturating_add(frames);
        let (bytes_max, frames_max) = (cache.fill_bytes_max(), cache.fill_frames_max());
        if stored >= bytes_max || frames >= frames_max {
            return Err(FillEnd::Full);
        }
        let reserved = self.reserved.load(Ordering::Relaxed);
        let blocks = (reserved + bytes) / u64::from(cache::BLOCK_BYTES);
        let is_last = stored + reserved + bytes > bytes_max || frames + blocks > frames_max;
        if reserved > 0 && is_last {
            return Ok(FillRoom::Busy);
        }
        let room = cache.fill_room();
        if room == FillRoom::Ready {
            // Under the lock of the cache: no two take the same room.
            self.reserved.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(room)
    }

    fn first_missing(&self, piece: &Piece) -> u64 {
        let cache = self.cache.lock();
        let blocks = |part: &Range<u64>| part.clone().step_by(cache::BLOCK_BYTES as usize);
        let mut offsets = piece.wanted.iter().flat_map(blocks);
        offsets.find(|offset| !cache.is_cached(*offset)).unwrap_or(piece.start())
    }

    /// Why the fill is to end now: the service ends, or the client has closed its side.
    fn end_asked_for(&self) -> Option<FillEnd> {
        if self.stop.load(Ordering::Relaxed) {
            return Some(FillEnd::Detaching);
        }
        // A client that waits for an answer sends nothing: what can be read is its end.
        let [is_over] = sys::poll::readable([Some(self.client.as_fd())], Some(0));
        is_over.then_some(FillEnd::Cancelled)
    }
}

/// What is read at once: up to [`PIECE_FRAMES`] frames, or one with a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    /// What is wanted of it, in order; one at least.
    wanted: Vec<Range<u64>>,
}

impl Piece {
    fn start(&self) -> u64 {
        self.wanted.first().map_or(0, |part| part.start)
    }

    fn end(&self) -> u64 {
        self.wanted.last().map_or(0, |part| part.end)
    }
}

/// Parts, in order, as pieces of whole blocks of a volume.
fn pieces(
    parts: impl IntoIterator<Item = Range<u64>>,
    frame_bytes: u64,
    volume_bytes: u64,
) -> Vec<Piece> {
    let block = u64::from(cache::BLOCK_BYTES);
    let window = PIECE_FRAMES * frame_bytes;
    let mut pieces: Vec<Piece> = Vec::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        let mut start = part.start / block * block;
        let end = part.end.min(volume_bytes).next_multiple_of(block).min(volume_bytes);
        while start < end {
            let upto = end.min((start / window + 1) * window);
            let follows = |last: &&mut Piece| {
                let (last_end, is_behind) = (last.end(), last.end() <= start);
                is_behind && (last_end - 1) / frame_bytes == start / frame_bytes
            };
            match pieces.last_mut().filter(follows) {
                Some(last) => last.wanted.push(start..upto),
                None => {
                    let wanted = std::iter::once(start..upto).collect();
                    pieces.push(Piece { wanted });
                }
            }
            start = upto;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_frame_are_one_piece_and_long_parts_are_cut() {
        // In KiB, of a volume of 1000 in frames of 16.
        let of = |parts: &[(u64, u64)]| {
            let parts = parts.iter().map(|(start, end)| start << 10..end << 10);
            let pieces = pieces(parts, 16 << 10, 1000 << 10);
            let in_kib = |part: &Range<u64>| (part.start >> 10, part.end >> 10);
            let wanted = pieces.iter().map(|piece| piece.wanted.iter().map(in_kib).collect());
            wanted.collect::<Vec<Vec<_>>>()
        };
        let blocks = [(0, 4), (8, 12), (16, 20)];
        assert_eq!(of(&blocks), [blocks[..2].to_vec(), blocks[2..].to_vec()]);
        // Whole blocks of the volume, and no more than eight frames.
        assert_eq!(of(&[(1, 2), (999, 5000)]), [vec![(0, 4)], vec![(996, 1000)]]);
        let cut = [vec![(4, 128)], vec![(128, 256)], vec![(256, 300)]];
        assert_eq!(of(&[(4, 300)]), cut);
        // What comes in no order stays so.
        assert_eq!(of(&[(16, 20), (0, 4)]), [vec![(16, 20)], vec![(0, 4)]]);
        assert!(of(&[(5, 5), (1000, 2000)]).is_empty());
    }
}
