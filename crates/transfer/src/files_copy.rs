//! Copies many files over one ring: the next file begins while the last pieces of those before it
//! are still being written, and each is made durable by a sync in the ring.
//!
//! 1. Files are started in the order in which they are given, at most [`MAX_COPIES`] at a time.
//! 2. A piece is read into the buffer of a slot and written from it. The last piece of a direct
//!    write is rounded up, and the target is cut to its length afterwards.
//! 3. When all pieces of a file are written it is synced, and the caller gets its handles back.
//! 4. A failed piece ends its file: nothing more of it is started.
//! 5. On disks with a head few requests are in flight ([`Heads`]).
//!
//! Never more bytes are under way than the target takes in [`LONGEST_QUEUE`]: a stop is quick, and
//! a slow stick is no queue of seconds for others.

mod pace;
mod turns;

pub use pace::{LONGEST_QUEUE, Pace, RateLimit};

use crate::extent::Extent;
use crate::observer::Failure;
use model::device::DeviceError;
use model::progress::Control;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::time::Duration;
use sys::clock::now_ns;
use sys::uring::{IoOperation, IoRequest, MAX_FILES, Queue};
use turns::HeadQueue;

/// Files that are copied at the same time. The caller and the ring have two descriptors each of a
/// file, and some systems permit 64 in all.
pub const MAX_COPIES: usize = MAX_FILES / 8;

/// How often a copier that holds requests back is asked again.
const HELD_NAP: Duration = Duration::from_millis(1);

/// A file that is to be copied. Its extents are in ascending order and fit the alignment of both
/// files, except for the end of the last one.
pub struct FileCopy<T> {
    /// What is read.
    pub source: File,
    /// What is written.
    pub target: File,
    /// The length of the source, in bytes. The target gets it at the end.
    pub bytes: u64,
    /// What reads are rounded up to, in bytes; 1 for cached ones.
    pub read_alignment: u32,
    /// What writes are rounded up to, in bytes; 1 for cached ones.
    pub write_alignment: u32,
    /// The ranges that hold data.
    pub extents: Box<dyn Iterator<Item = sys::Result<Extent>>>,
    /// What the caller knows it by.
    pub tag: T,
}

impl<T: std::fmt::Debug> std::fmt::Debug for FileCopy<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("FileCopy")
            .field("source", &self.source)
            .field("target", &self.target)
            .field("bytes", &self.bytes)
            .field("read_alignment", &self.read_alignment)
            .field("write_alignment", &self.write_alignment)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}

/// Whether source and target are on disks with a head. On one such disk reads and writes take long
/// turns; between two what was read waits in memory, so that neither waits for a seek or a sync of
/// the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heads {
    /// Neither is.
    #[default]
    None,
    /// One or both are, and they are different disks.
    Apart,
    /// Both are on the same one.
    Shared,
}

/// Gives files, and receives what becomes of them.
pub trait FileCopier {
    /// What the caller knows a file by.
    type Tag;

    /// Asked before each piece. After `Stop` what is in flight still ends, and no file is complete
    /// that was not.
    fn control(&mut self) -> Control;

    /// Whether another request may start beside the `in_flight` ones; asked before each piece and
    /// each sync. What was read is written without being asked.
    fn may_start(&mut self, _in_flight: usize) -> bool {
        true
    }

    /// The largest piece now, in bytes: a multiple of every alignment.
    fn most_piece_bytes(&self) -> u64 {
        u64::MAX
    }

    /// The next file; `None` when there is no other. Asked again only by the next run.
    fn next_file(&mut self) -> Option<FileCopy<Self::Tag>>;

    /// The heads that the requests of this run move.
    fn heads(&self) -> Heads {
        Heads::None
    }

    /// A piece was read.
    fn read(&mut self, _tag: &mut Self::Tag, _data: &[u8], _offset: u64) {}

    /// Bytes of a piece are written.
    fn written(&mut self, _tag: &mut Self::Tag, _bytes: u64) {}

    /// All of the file before `whole_bytes` is written. Whether it is to be synced up to there now,
    /// while the copy goes on.
    fn wants_sync(&mut self, _tag: &mut Self::Tag, _whole_bytes: u64) -> bool {
        false
    }

    /// All of the file before `whole_bytes` is durable, by a sync that was wanted.
    fn durable_to(&mut self, _tag: &mut Self::Tag, _whole_bytes: u64) {}

    /// What is in flight now, and how long one side waited since this was called before. Called
    /// whenever requests have ended.
    fn in_flight(&mut self, _now: &InFlight) {}

    /// Nothing was in flight for so long, for the allowed rate.
    fn held_back(&mut self, _waited: Duration) {}

    /// A file is complete and durable, or ended before; the handles come back.
    fn ended(&mut self, file: FileCopy<Self::Tag>, end: FileEnd);
}

/// The requests of a run at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// Reads.
    pub reads: usize,
    /// Writes and syncs.
    pub writes: usize,
    /// Nanoseconds in which nothing was being read, since the last call.
    pub reader_waited_ns: u64,
    /// Nanoseconds in which nothing was being written, since the last call.
    pub writer_waited_ns: u64,
}

/// How the copy of a file ended.
#[derive(Debug)]
pub enum FileEnd {
    /// All of it is written, has its length and is synced.
    Durable,
    /// The source ended before its length: it was changed meanwhile.
    Shorter,
    /// A piece or the sync failed.
    Failed(Failure),
    /// It was stopped. All before this offset is written, but not synced.
    Stopped {
        /// Bytes from the start of the file without a gap.
        whole_bytes: u64,
    },
}

/// What a run did, and where its time went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopySummary {
    /// Bytes written.
    pub bytes: u64,
    /// Nanoseconds in which nothing was being read, because all buffers waited to be written.
    pub reader_waited_ns: u64,
    /// Nanoseconds in which nothing was being written, because nothing had been read yet.
    pub writer_waited_ns: u64,
    /// Whether the caller stopped it.
    pub is_stopped: bool,
    /// Whether the ring itself failed: what was in flight then has an unknown state.
    pub is_broken: bool,
}

/// Copies all files that `copier` gives.
///
/// The caller guarantees that the queue is idle and has no files.
pub fn copy_files<C: FileCopier>(
    queue: &mut Queue,
    pace: &mut Pace,
    copier: &mut C,
) -> CopySummary {
    let slots = queue.depth();
    let heads = copier.heads();
    pace.use_heads(heads);
    let mut run = FilesRun {
        queue,
        pace,
        copier,
        active: Vec::new(),
        order: VecDeque::new(),
        pending: vec![None; slots],
        reads: 0,
        writes: 0,
        counted_at: now_ns(),
        is_exhausted: false,
        head_queue: (heads != Heads::None).then(|| HeadQueue::new(heads)),
        is_held: false,
        summary: CopySummary::default(),
    };
    run.finish();
    run.summary
}

/// A piece in a slot.
#[derive(Clone, Copy)]
struct SlotPiece {
    /// Index in `active`.
    file: usize,
    /// Where it is on the source; nothing for a sync.
    extent: Extent,
    /// Of a sync while the copy goes on: what was written before.
    sync_to: Option<u64>,
    /// When its read was started, on [`sys::clock`].
    started_ns: u64,
}

struct ActiveFile<T> {
    copy: FileCopy<T>,
    /// Indices in the ring.
    source: usize,
    target: usize,
    /// What is left of the extent that is being cut.
    rest: Option<Extent>,
    in_flight: usize,
    /// The lowest offset that is not written yet, if a piece failed or was stopped.
    gap: u64,
    started_to: u64,
    /// Whether a sync is under way while the copy goes on.
    is_syncing: bool,
    state: FileState,
}

enum FileState {
    Moving,
    /// All pieces are started.
    Draining,
    Syncing,
    Ending(FileEnd),
}

struct FilesRun<'a, C: FileCopier> {
    queue: &'a mut Queue,
    pace: &'a mut Pace,
    copier: &'a mut C,
    active: Vec<Option<ActiveFile<C::Tag>>>,
    /// Files with pieces left, oldest first.
    order: VecDeque<usize>,
    pending: Vec<Option<SlotPiece>>,
    reads: usize,
    writes: usize,
    counted_at: u64,
    is_exhausted: bool,
    /// `None` where no disk has a head: what was read is written at once.
    head_queue: Option<HeadQueue>,
    /// Whether the copier held a request back.
    is_held: bool,
    summary: CopySummary,
}

impl<C: FileCopier> FilesRun<'_, C> {
    fn finish(&mut self) {
        loop {
            self.is_held = false;
            self.start_pieces();
            self.write_held();
            self.end_files();
            if self.queue.in_flight() == 0 {
                let is_done = self.order.is_empty() && self.is_exhausted && !self.has_unsynced();
                if self.summary.is_stopped || is_done {
                    break;
                }
                if self.is_held {
                    std::thread::sleep(HELD_NAP);
                } else {
                    let before = self.pace.held_back();
                    self.pace.wait();
                    self.copier.held_back(self.pace.held_back().saturating_sub(before));
                }
                continue;
            }
            let answer = self.queue.enter(1);
            self.count_waits();
            if answer.is_err() {
                self.summary.is_broken = true;
                break;
            }
            while let Some(ended) = self.queue.complete() {
                self.take(ended.slot, &ended.request, ended.result);
            }
            self.end_files();
        }
        self.give_up();
    }

    /// Adds the time since the last look to the side that waited.
    fn count_waits(&mut self) {
        let now = now_ns();
        let passed = now.saturating_sub(self.counted_at);
        self.counted_at = now;
        let mut state = InFlight { reads: self.reads, writes: self.writes, ..InFlight::default() };
        match (self.reads, self.writes) {
            (0, 1..) => state.reader_waited_ns = passed,
            (1.., 0) => state.writer_waited_ns = passed,
            _ => {}
        }
        self.summary.reader_waited_ns += state.reader_waited_ns;
        self.summary.writer_waited_ns += state.writer_waited_ns;
        self.copier.in_flight(&state);
    }

    fn start_pieces(&mut self) {
        while !self.summary.is_stopped
            && self.may_read()
            && let Some(slot) = self.free_slot()
        {
            if self.copier.control().is_stop() {
                self.stop();
                return;
            }
            if !self.may_start() {
                return;
            }
            let Some((file, extent)) = self.next_piece() else { return };
            if !self.pace.may_start(extent.bytes) {
                let Some(active) = &mut self.active[file] else { return };
                // Put back: it starts when others have ended.
                let rest = active.rest.map_or(0, |rest| rest.bytes);
                active.rest = Some(Extent { bytes: extent.bytes + rest, ..extent });
                return;
            }
            self.pace.started(extent.bytes);
            let Some(active) = &mut self.active[file] else { return };
            active.in_flight += 1;
            active.started_to = active.started_to.max(extent.source + extent.bytes);
            // At most a buffer's size. The end of a file is read with the rest of its block.
            let alignment = (active.copy.read_alignment as usize).max(1);
            let whole_blocks = (extent.bytes as usize).next_multiple_of(alignment);
            let bytes = whole_blocks.min(self.queue.buffer_bytes());
            let request = IoRequest::read(active.source, extent.source, bytes);
            self.submit(
                slot,
                SlotPiece { file, extent, sync_to: None, started_ns: now_ns() },
                request,
            );
        }
    }

    fn may_start(&mut self) -> bool {
        let may = self.copier.may_start(self.queue.in_flight());
        self.is_held |= !may;
        may
    }

    /// Whether a file is written, and its sync was held back.
    fn has_unsynced(&self) -> bool {
        self.active.iter().flatten().any(|active| matches!(active.state, FileState::Draining))
    }

    /// The next piece of the oldest file that has one; a new file where none has.
    fn next_piece(&mut self) -> Option<(usize, Extent)> {
        loop {
            let Some(&file) = self.order.front() else {
                if !self.start_file() {
                    return None;
                }
                continue;
            };
            let buffer_bytes = self.queue.buffer_bytes() as u64;
            let most_bytes = self.copier.most_piece_bytes();
            let Some(active) = &mut self.active[file] else {
                self.order.pop_front();
                continue;
            };
            let next = active.rest.take().map(Ok).or_else(|| active.copy.extents.next());
            match next {
                Some(Ok(extent)) if extent.bytes > 0 => {
                    let to_boundary = buffer_bytes - extent.source % buffer_bytes;
                    let bytes = extent.bytes.min(to_boundary).min(most_bytes);
                    active.rest = (bytes < extent.bytes).then(|| Extent {
                        source: extent.source + bytes,
                        target: extent.target + bytes,
                        bytes: extent.bytes - bytes,
                    });
                    return Some((file, Extent { bytes, ..extent }));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    let failure =
                        failure_of(Extent::default(), error.operation, None, error.source);
                    self.order.pop_front();
                    active.state = FileState::Ending(FileEnd::Failed(failure));
                }
                None => {
                    self.order.pop_front();
                    active.state = FileState::Draining;
                }
            }
        }
    }

    /// Starts the next file; whether there was one and room for it.
    fn start_file(&mut self) -> bool {
        if self.is_exhausted || self.active.iter().flatten().count() >= MAX_COPIES {
            return false;
        }
        let Some(copy) = self.copier.next_file() else {
            self.is_exhausted = true;
            return false;
        };
        let added = self.queue.add_file(&copy.source).and_then(|source| {
            match self.queue.add_file(&copy.target) {
                Ok(target) => Ok((source, target)),
                Err(error) => {
                    let _ = self.queue.release_file(source);
                    Err(error)
                }
            }
        });
        let (source, target) = match added {
            Ok(both) => both,
            Err(error) => {
                let failure = failure_of(Extent::default(), error.operation, None, error.source);
                self.copier.ended(copy, FileEnd::Failed(failure));
                return true;
            }
        };
        let active = ActiveFile {
            copy,
            source,
            target,
            rest: None,
            in_flight: 0,
            gap: u64::MAX,
            started_to: 0,
            is_syncing: false,
            state: FileState::Moving,
        };
        let free = self.active.iter().position(Option::is_none);
        let index = free.unwrap_or(self.active.len());
        match self.active.get_mut(index) {
            Some(place) => *place = Some(active),
            None => self.active.push(Some(active)),
        }
        self.order.push_back(index);
        true
    }

    fn submit(&mut self, slot: usize, piece: SlotPiece, request: IoRequest) {
        match self.queue.submit(slot, request) {
            Ok(()) => {
                self.pending[slot] = Some(piece);
                match request.operation {
                    IoOperation::Read => self.reads += 1,
                    _ => self.writes += 1,
                }
            }
            Err(error) => self.fail(piece, error.operation, Some(request.offset), error.source),
        }
    }

    fn take(&mut self, slot: usize, request: &IoRequest, result: sys::Result<usize>) {
        match request.operation {
            IoOperation::Read => self.reads -= 1,
            _ => self.writes -= 1,
        }
        let Some(piece) = self.pending[slot].take() else { return };
        let done = match result {
            Ok(done) => done,
            // A direct read inside a block goes on only at the end of the file.
            Err(error) if request.start > 0 && error.kind == sys::ErrorKind::Invalid => 0,
            Err(error) => {
                return self.fail(piece, error.operation, Some(request.offset), error.source);
            }
        };
        match request.operation {
            IoOperation::Read => self.take_read(slot, piece, request, done),
            IoOperation::Write => self.take_write(slot, piece, request, done),
            IoOperation::Sync | IoOperation::Discard => self.take_sync(piece),
        }
    }

    fn take_read(&mut self, slot: usize, piece: SlotPiece, request: &IoRequest, done: usize) {
        let Some(active) = &mut self.active[piece.file] else { return };
        let have = request.start + done;
        let wanted = piece.extent.bytes as usize;
        if have < wanted {
            if done == 0 {
                // The file is shorter than it was.
                self.pace.ended(piece.extent.bytes);
                active.in_flight -= 1;
                active.gap = active.gap.min(piece.extent.source);
                if !matches!(active.state, FileState::Ending(_)) {
                    active.state = FileState::Ending(FileEnd::Shorter);
                }
                self.order.retain(|file| *file != piece.file);
                return;
            }
            return self.submit(slot, piece, request.after(done));
        }
        let alignment = (active.copy.write_alignment as usize).max(1);
        let bytes = wanted.next_multiple_of(alignment).min(self.queue.buffer_bytes());
        let target = active.target;
        if let Some(buffer) = self.queue.buffer_mut(slot) {
            self.copier.read(&mut active.copy.tag, &buffer[..wanted], piece.extent.source);
            buffer[wanted..bytes].fill(0);
        }
        self.write_piece(slot, piece, IoRequest::write(target, piece.extent.target, bytes));
    }

    fn take_write(&mut self, slot: usize, piece: SlotPiece, request: &IoRequest, done: usize) {
        if done < request.bytes {
            if done == 0 {
                let kind = io::ErrorKind::WriteZero;
                return self.fail(piece, "write", Some(request.offset), kind.into());
            }
            return self.submit(slot, piece, request.after(done));
        }
        let bytes = piece.extent.bytes;
        if bytes == self.queue.buffer_bytes() as u64 {
            let passed = Duration::from_nanos(now_ns().saturating_sub(piece.started_ns));
            self.pace.written_after(bytes, passed);
        } else {
            self.pace.written(bytes);
        }
        self.summary.bytes += piece.extent.bytes;
        let Some(active) = &mut self.active[piece.file] else { return };
        active.in_flight -= 1;
        self.copier.written(&mut active.copy.tag, piece.extent.bytes);
        self.sync_if_wanted(slot, piece.file);
    }

    /// Starts a sync in the slot of a write that ended, if the caller wants one.
    fn sync_if_wanted(&mut self, slot: usize, file: usize) {
        let of_file = |piece: &&SlotPiece| piece.file == file && piece.extent.bytes > 0;
        let unwritten =
            self.pending.iter().flatten().filter(of_file).map(|piece| piece.extent.source).min();
        let Some(active) = &mut self.active[file] else { return };
        let whole_bytes = unwritten.unwrap_or(active.started_to);
        if active.is_syncing
            || !matches!(active.state, FileState::Moving)
            || !self.copier.wants_sync(&mut active.copy.tag, whole_bytes)
        {
            return;
        }
        active.is_syncing = true;
        active.in_flight += 1;
        let request = IoRequest::sync(active.target);
        let piece = SlotPiece {
            file,
            extent: Extent::default(),
            sync_to: Some(whole_bytes),
            started_ns: now_ns(),
        };
        self.submit(slot, piece, request);
    }

    fn take_sync(&mut self, piece: SlotPiece) {
        let Some(active) = &mut self.active[piece.file] else { return };
        active.in_flight -= 1;
        if let Some(whole_bytes) = piece.sync_to {
            active.is_syncing = false;
            return self.copier.durable_to(&mut active.copy.tag, whole_bytes);
        }
        active.state = FileState::Ending(FileEnd::Durable);
    }

    /// Moves files on that have nothing in flight: to their sync, or out.
    fn end_files(&mut self) {
        for index in 0..self.active.len() {
            let Some(active) = &mut self.active[index] else { continue };
            if active.in_flight == 0 && matches!(active.state, FileState::Draining) {
                self.start_sync(index);
            }
            let Some(active) = &self.active[index] else { continue };
            if active.in_flight == 0 && matches!(active.state, FileState::Ending(_)) {
                self.end_file(index);
            }
        }
    }

    fn start_sync(&mut self, index: usize) {
        if !self.may_start() {
            return;
        }
        let Some(slot) = self.free_slot() else { return };
        let Some(active) = &mut self.active[index] else { return };
        let piece = SlotPiece {
            file: index,
            extent: Extent::default(),
            sync_to: None,
            started_ns: now_ns(),
        };
        let cut = active.copy.target.metadata().and_then(|about| {
            let is_right = about.len() == active.copy.bytes;
            if is_right { Ok(()) } else { active.copy.target.set_len(active.copy.bytes) }
        });
        active.state = FileState::Syncing;
        active.in_flight += 1;
        let target = active.target;
        match cut {
            Ok(()) => self.submit(slot, piece, IoRequest::sync(target)),
            Err(source) => self.fail(piece, "set the length", None, source),
        }
    }

    fn end_file(&mut self, index: usize) {
        let Some(active) = self.active[index].take() else { return };
        self.order.retain(|file| *file != index);
        // Nothing of it is in flight, so neither is refused.
        let _ = self.queue.release_file(active.source);
        let _ = self.queue.release_file(active.target);
        match active.state {
            // A piece may have failed after the stop.
            FileState::Ending(FileEnd::Stopped { whole_bytes }) => {
                let whole_bytes = whole_bytes.min(active.gap);
                self.copier.ended(active.copy, FileEnd::Stopped { whole_bytes });
            }
            FileState::Ending(end) => self.copier.ended(active.copy, end),
            FileState::Moving | FileState::Draining | FileState::Syncing => {}
        }
    }

    fn fail(
        &mut self,
        piece: SlotPiece,
        operation: &'static str,
        offset: Option<u64>,
        source: io::Error,
    ) {
        self.pace.ended(piece.extent.bytes);
        let Some(active) = &mut self.active[piece.file] else { return };
        active.in_flight -= 1;
        active.gap = active.gap.min(piece.extent.source);
        if !matches!(active.state, FileState::Ending(_)) {
            let failure = failure_of(piece.extent, operation, offset, source);
            active.state = FileState::Ending(FileEnd::Failed(failure));
        }
        self.order.retain(|file| *file != piece.file);
    }

    /// Starts nothing more: files that have pieces left are stopped.
    fn stop(&mut self) {
        self.summary.is_stopped = true;
        for active in self.active.iter_mut().flatten() {
            if matches!(active.state, FileState::Moving) {
                let whole_bytes = active.started_to.min(active.gap);
                active.state = FileState::Ending(FileEnd::Stopped { whole_bytes });
            }
        }
        self.order.clear();
        self.drop_held();
    }

    /// After the loop: what has not ended was interrupted by a fault of the ring.
    fn give_up(&mut self) {
        for place in &mut self.active {
            let Some(active) = place.take() else { continue };
            let _ = self.queue.release_file(active.source);
            let _ = self.queue.release_file(active.target);
            let end = FileEnd::Stopped { whole_bytes: 0 };
            self.copier.ended(active.copy, end);
        }
    }
}

fn failure_of(
    extent: Extent,
    operation: &'static str,
    offset: Option<u64>,
    source: io::Error,
) -> Failure {
    Failure { extent, error: DeviceError::new(operation, offset, source) }
}

#[cfg(test)]
mod tests;
