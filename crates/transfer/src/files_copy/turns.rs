//! Long turns, for a source and a target on one disk with a head: first as much is read as may be
//! under way, then all of it is written. The head moves twice a turn and not twice a piece.

use super::{FileCopier, FilesRun, SlotPiece};
use std::collections::VecDeque;
use sys::uring::IoRequest;

/// Requests of a turn in flight: the disk has its next one, and others wait no longer for it.
const TURN_DEPTH: usize = 8;

/// The turn of a run.
#[derive(Default)]
pub(super) struct Turns {
    /// What was read and is to be written, in the order of the reads. Each keeps its slot.
    held: VecDeque<(usize, IoRequest)>,
    is_writing: bool,
}

impl<C: FileCopier> FilesRun<'_, C> {
    /// Whether another piece may be read now.
    pub(super) fn may_read(&self) -> bool {
        let is_turn = |turns: &Turns| !turns.is_writing && self.reads < TURN_DEPTH;
        self.turns.as_ref().is_none_or(is_turn)
    }

    /// A slot that is idle and holds nothing.
    pub(super) fn free_slot(&self) -> Option<usize> {
        match &self.turns {
            None => self.queue.idle_slot(),
            Some(_) => self.pending.iter().position(Option::is_none),
        }
    }

    /// Writes a piece that was read, at once or in its turn.
    pub(super) fn write_piece(&mut self, slot: usize, piece: SlotPiece, request: IoRequest) {
        let Some(turns) = &mut self.turns else {
            return self.submit(slot, piece, request);
        };
        self.pending[slot] = Some(piece);
        turns.held.push_back((slot, request));
    }

    /// Goes on with a turn, or to the next one.
    pub(super) fn go_on_with_turn(&mut self) {
        let Some(turns) = &mut self.turns else { return };
        // No read was started since the last one ended: all that may be under way is read.
        if !turns.is_writing && self.reads == 0 && !turns.held.is_empty() {
            // The reads of a turn end in any order.
            let piece = |slot: usize| self.pending[slot].map(|piece| piece.extent.source);
            let file = |request: &IoRequest| request.file;
            let held = turns.held.make_contiguous();
            held.sort_by_key(|(slot, request)| (file(request), piece(*slot)));
            turns.is_writing = true;
        }
        if !turns.is_writing {
            return;
        }
        if self.copier.control().is_stop() {
            return self.stop();
        }
        while self.writes < TURN_DEPTH
            && let Some((slot, request)) = self.take_held()
            && let Some(piece) = self.pending[slot].take()
        {
            self.submit(slot, piece, request);
        }
        if self.writes == 0
            && let Some(turns) = &mut self.turns
            && turns.held.is_empty()
        {
            turns.is_writing = false;
            self.pace.turn_ended();
        }
    }

    fn take_held(&mut self) -> Option<(usize, IoRequest)> {
        self.turns.as_mut()?.held.pop_front()
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
        if let Some(turns) = &mut self.turns {
            turns.is_writing = false;
        }
    }
}
