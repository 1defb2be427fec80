//! One run: extents in, every slot kept busy, each piece and each failure reported.
//!
//! 1. A piece starts in an idle slot: a read, or a write of data that the observer puts there.
//! 2. A short transfer is continued from where it stopped. 0 bytes, or a direct transfer that
//!    stopped inside a block, means that the device ended there.
//! 3. Of a copy, what was read is written from the same buffer.
//! 4. After a stop or a fatal failure nothing is started, and what is in flight ends.

use crate::engine::{Completion, Engine};
use crate::extent::{Extent, Piece, Pieces};
use crate::observer::{Failure, MovedPiece, Observer};
use model::device::DeviceError;
use std::io;
use sys::ErrorKind;
use sys::uring::{IoOperation, IoRequest};

/// Between which devices of the engine the bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// From this device to the observer.
    Read(usize),
    /// From the observer to this device.
    Write(usize),
    /// From one device to another, or within one.
    Copy {
        /// The device that is read.
        source: usize,
        /// The device that is written.
        target: usize,
    },
}

/// What a run did.
#[derive(Debug, Default)]
pub struct Summary {
    /// Bytes of the pieces that are done.
    pub bytes: u64,
    /// Bytes that are done from the start of the first extent, without a gap, in the order of the
    /// extents: where to go on.
    pub whole_bytes: u64,
    /// Pieces that failed.
    pub failures: u64,
    /// The first of these failures.
    pub failure: Option<Failure>,
    /// Whether the observer stopped it, before the end or at a failure.
    pub is_stopped: bool,
}

/// Moves `extents` in their order along `route`; pieces end in any order.
///
/// The caller guarantees: extents do not overlap on the target, they fit the alignment of the
/// devices, and nothing is in flight on the engine.
pub fn run<E: Engine, O: Observer>(
    engine: &mut E,
    route: Route,
    extents: impl IntoIterator<Item = Extent>,
    observer: &mut O,
) -> Summary {
    let pieces = Pieces::new(extents.into_iter(), engine.buffer_bytes() as u64);
    let run = Run {
        pending: vec![None; engine.depth()],
        first_gap: u64::MAX,
        started: 0,
        summary: Summary::default(),
        engine,
        route,
        observer,
    };
    run.finish(pieces)
}

struct Run<'a, E, O> {
    engine: &'a mut E,
    route: Route,
    observer: &'a mut O,
    /// By slot.
    pending: Vec<Option<Piece>>,
    /// Bytes of all pieces that were started.
    started: u64,
    /// The position of the first piece that failed.
    first_gap: u64,
    summary: Summary,
}

impl<E: Engine, O: Observer> Run<'_, E, O> {
    fn finish(mut self, mut pieces: Pieces<impl Iterator<Item = Extent>>) -> Summary {
        loop {
            self.start_pieces(&mut pieces);
            if self.engine.in_flight() == 0 {
                break;
            }
            if let Err(error) = self.engine.wait() {
                self.fail(Piece::default(), error.operation, None, error.source);
                break;
            }
            while let Some(completion) = self.engine.complete() {
                self.take(completion);
            }
        }
        self.summary.whole_bytes = self.started.min(self.first_gap);
        self.summary
    }

    fn start_pieces(&mut self, pieces: &mut Pieces<impl Iterator<Item = Extent>>) {
        while !self.summary.is_stopped
            && let Some(slot) = self.engine.idle_slot()
        {
            let Some(piece) = pieces.next() else { return };
            if self.observer.control().is_stop() {
                self.summary.is_stopped = true;
                return;
            }
            let extent = &piece.extent;
            // At most a buffer's size.
            let bytes = extent.bytes as usize;
            let request = match self.route {
                Route::Read(file) | Route::Copy { source: file, .. } => {
                    IoRequest::read(file, extent.source, bytes)
                }
                Route::Write(file) => {
                    if let Some(buffer) = self.engine.buffer_mut(slot) {
                        self.observer.fill(&mut buffer[..bytes], extent);
                    }
                    IoRequest::write(file, extent.target, bytes)
                }
            };
            self.started += extent.bytes;
            self.submit(slot, piece, request);
        }
    }

    fn submit(&mut self, slot: usize, piece: Piece, request: IoRequest) {
        match self.engine.submit(slot, request) {
            Ok(()) => self.pending[slot] = Some(piece),
            Err(error) => self.fail(piece, error.operation, Some(request.offset), error.source),
        }
    }

    /// Does what follows the end of a request.
    fn take(&mut self, completion: Completion) {
        let Completion { slot, request, .. } = completion;
        let Some(piece) = self.pending[slot].take() else {
            return;
        };
        match completion.result {
            Ok(bytes) if bytes == request.bytes => self.advance(&completion, piece),
            Ok(bytes) if bytes > 0 => self.submit(slot, piece, request.after(bytes)),
            // A direct transfer stops inside a block only at the end, and cannot go on from there.
            Err(error) if !(request.start > 0 && error.kind == ErrorKind::Invalid) => {
                self.fail(piece, error.operation, Some(request.offset), error.source);
            }
            _ => {
                let kind = match request.operation {
                    IoOperation::Write => io::ErrorKind::WriteZero,
                    _ => io::ErrorKind::UnexpectedEof,
                };
                let operation = request.operation.name();
                self.fail(piece, operation, Some(request.offset), kind.into());
            }
        }
    }

    /// Writes what was read for a copy; everything else is done.
    fn advance(&mut self, completion: &Completion, piece: Piece) {
        let Completion { slot, request, .. } = *completion;
        if request.operation == IoOperation::Read {
            let bytes = piece.extent.bytes as usize;
            if let Some(buffer) = self.engine.buffer_mut(slot) {
                self.observer.read(&mut buffer[..bytes], &piece.extent);
            }
            if let Route::Copy { target, .. } = self.route {
                let write = IoRequest::write(target, piece.extent.target, bytes);
                return self.submit(slot, piece, write);
            }
        }
        self.summary.bytes += piece.extent.bytes;
        self.observer.moved(&MovedPiece {
            slot,
            extent: piece.extent,
            completed_ns: completion.completed_ns,
        });
    }

    fn fail(
        &mut self,
        piece: Piece,
        operation: &'static str,
        offset: Option<u64>,
        source: io::Error,
    ) {
        self.first_gap = self.first_gap.min(piece.position);
        self.summary.failures += 1;
        let failure =
            Failure { extent: piece.extent, error: DeviceError::new(operation, offset, source) };
        if self.observer.failed(&failure).is_stop() {
            self.summary.is_stopped = true;
        }
        self.summary.failure.get_or_insert(failure);
    }
}
