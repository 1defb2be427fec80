//! Requests to disks with a head.
//!
//! One disk: first as much is read as may be under way, then all of it is written. The head moves
//! twice a turn and not twice a piece. Two disks: both work at the same time, and what was read
//! waits here, so that the target finds its next piece after a seek of the source, and the source
//! reads on while the target is synced.

use super::{FileCopier, FilesRun, Heads, SlotPiece};
use std::collections::VecDeque;
use sys::uring::IoRequest;

/// Requests of a kind in flight: the disk has its next one, and others wait no longer for it.
const HEAD_DEPTH: usize = 8;

/// What was read and is to be written.
pub(super) struct HeadQueue {
    /// Those of a file in the order of their offsets. Each keeps its slot.
    held: VecDeque<(usize, IoRequest)>,
    takes_turns: bool,
    /// The turn of the writes.
    is_writing: bool,
}

impl HeadQueue {
    pub(super) fn new(heads: Heads) -> Self {
        let takes_turns = heads == Heads::Shared;
        Self { held: VecDeque::new(), takes_turns, is_writing: false }
    }

    /// Reads end in any order.
    fn hold(&mut self, slot: usize, request: IoRequest) {
        let is_behind = |other: &(usize, IoRequest)| {
            other.1.file == request.file && other.1.offset > request.offset
        };
        let place = self.held.iter().position(is_behind).unwrap_or(self.held.len());
        self.held.insert(place, (slot, request));
    }
}

impl<C: FileCopier> FilesRun<'_, C> {
    /// Whether another piece may be read now.
    pub(super) fn may_read(&self) -> bool {
        self.head_queue.as_ref().is_none_or(|queue| {
            let is_turn = !queue.takes_turns || !queue.is_writing;
            is_turn && self.reads < HEAD_DEPTH
        })
    }

    /// A slot that is idle and holds nothing.
    pub(super) fn free_slot(&self) -> Option<usize> {
        match &self.head_queue {
            None => self.queue.idle_slot(),
            Some(_) => self.pending.iter().position(Option::is_none),
        }
    }

    /// Writes a piece that was read, at once or when its time has come.
    pub(super) fn write_piece(&mut self, slot: usize, piece: SlotPiece, request: IoRequest) {
        let Some(queue) = &mut self.head_queue else {
            return self.submit(slot, piece, request);
        };
        self.pending[slot] = Some(piece);
        queue.hold(slot, request);
    }

    /// Writes what is held, as far as it may.
    pub(super) fn write_held(&mut self) {
        let Some(queue) = &mut self.head_queue else { return };
        if queue.held.is_empty() && !queue.is_writing {
            return;
        }
        if queue.takes_turns && !queue.is_writing {
            // A read was started since the last one ended: more may be under way.
            if self.reads > 0 {
                return;
            }
            queue.is_writing = true;
            self.pace.turn_begins();
        }
        if self.copier.control().is_stop() {
            return self.stop();
        }
        while self.writes < HEAD_DEPTH
            && let Some((slot, request)) = self.take_held()
            && let Some(piece) = self.pending[slot].take()
        {
            self.submit(slot, piece, request);
        }
        if self.writes == 0
            && let Some(queue) = self.head_queue.as_mut().filter(|queue| queue.is_writing)
            && queue.held.is_empty()
        {
            queue.is_writing = false;
            self.pace.turn_ended();
        }
    }

    fn take_held(&mut self) -> Option<(usize, IoRequest)> {
        self.head_queue.as_mut()?.held.pop_front()
    }

    /// After a stop: what was read is not written.
    pub(super) fn drop_held(&mut self) {
        while let Some((slot, _)) = self.take_held() {
            let Some(piece) = self.pending[slot].take() else { continue };
            self.pace.ended(piece.extent.bytes);
            if let Some(active) = &mut self.active[piece.file] {
                active.in_flight -= 1;
                active.gap = active.gap.min(piece.extent.source);
            }
        }
        if let Some(queue) = &mut self.head_queue {
            queue.is_writing = false;
        }
    }
}
