//! `two-thread`, for experiments: as Fire File Copy did in 2008. One thread reads past the cache
//! into a ring of 40 MB, another writes past the cache from it, one request each at a time.
//!
//! A file is drained before the next one begins. A target that refuses direct writes refuses the
//! engine; a source without direct reads is read through the cache.

use super::calls::{self, CallEnd, CallMethod, CallObserver, timed};
use super::ring::alignment;
use crate::copy::CopyShared;
use crate::copy::engine::extents::DataExtents;
use crate::copy::large::BUFFER_BYTES;
use std::fs::File;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use sys::file;
use sys::memory::AlignedBuffer;
use transfer::Extent;
use transfer::files_copy::Pace;

/// 40 buffers of 1 MiB: the buffer of 2008.
const BUFFERS: usize = 40;

/// The ring: its buffers are kept from file to file.
#[derive(Debug, Default)]
pub(in crate::copy) struct BufferRing {
    free: Vec<AlignedBuffer>,
}

/// A piece that was read.
struct ReadPiece {
    buffer: AlignedBuffer,
    offset: u64,
    /// What belongs to the file; the rest of the block is zeroes.
    bytes: usize,
}

/// What both threads are given.
#[derive(Clone, Copy)]
struct TwoSides<'a, 'b> {
    shared: &'a CopyShared<'b>,
    source: &'a File,
    target: &'a File,
    read_alignment: usize,
    write_alignment: usize,
}

/// Copies the extents of a file whose length is `bytes`.
pub(in crate::copy) fn copy(
    shared: &CopyShared<'_>,
    (source, target): (&File, &File),
    extents: DataExtents,
    bytes: u64,
    pace: &mut Pace,
    ring: &mut BufferRing,
    observer: &mut dyn CallObserver,
) -> CallEnd {
    let sides = match TwoSides::open(shared, source, target) {
        Ok(sides) => sides,
        Err(error) => return CallEnd::Unsupported(error),
    };
    while ring.free.len() < BUFFERS {
        match AlignedBuffer::new(BUFFER_BYTES) {
            Ok(buffer) => ring.free.push(buffer),
            Err(error) => return CallEnd::Unsupported(error),
        }
    }
    let (give_back, free) = channel();
    for buffer in ring.free.drain(..) {
        // The receiver lives.
        let _ = give_back.send(buffer);
    }
    let end = std::thread::scope(|scope| {
        let (filled, pieces) = sync_channel(BUFFERS);
        let reader = scope.spawn(move || {
            let end = read_all(sides, extents, pace, &free, &filled);
            (end, free)
        });
        let written = write_all(sides, &pieces, give_back, observer);
        // A reader that waits for its writer ends.
        drop(pieces);
        let Ok((read, free)) = reader.join() else { return CallEnd::Stopped };
        ring.free.extend(free.try_iter());
        // The first failure of either side; a reader whose writer failed was stopped.
        if matches!(written, CallEnd::Written) { read } else { written }
    });
    for gauge in [&shared.gauges.read_depth, &shared.gauges.write_depth] {
        gauge.set(0);
    }
    match (&end, target.set_len(bytes)) {
        // The last block was written whole.
        (CallEnd::Written, Err(error)) => {
            CallEnd::Failed(bytes, sys::Error::new("set the length", error))
        }
        _ => end,
    }
}

impl<'a, 'b> TwoSides<'a, 'b> {
    fn open(shared: &'a CopyShared<'b>, source: &'a File, target: &'a File) -> sys::Result<Self> {
        let write_alignment = alignment(target)?.write as usize;
        file::set_direct(target, true)?;
        let direct_read =
            alignment(source).and_then(|found| file::set_direct(source, true).map(|()| found));
        let read_alignment = direct_read.map_or(1, |found| found.read as usize).max(1);
        Ok(Self { shared, source, target, read_alignment, write_alignment })
    }
}

/// The reading thread: ends with `Written` when it has read everything.
fn read_all(
    sides: TwoSides<'_, '_>,
    extents: DataExtents,
    pace: &mut Pace,
    free: &Receiver<AlignedBuffer>,
    filled: &SyncSender<ReadPiece>,
) -> CallEnd {
    let gauges = sides.shared.gauges;
    for extent in extents {
        let extent = match extent {
            Ok(extent) => extent,
            Err(error) => return CallEnd::Failed(0, error),
        };
        let mut rest = extent;
        while rest.bytes > 0 {
            let to_boundary = BUFFER_BYTES as u64 - rest.source % BUFFER_BYTES as u64;
            let piece = Extent { bytes: rest.bytes.min(to_boundary), ..rest };
            if !sides.shared.wait_for_rate(pace, piece.bytes) {
                return CallEnd::Stopped;
            }
            let received = timed(&gauges.readers_waited_ns, || free.recv());
            // The writer has ended.
            let Ok(mut buffer) = received else { return CallEnd::Stopped };
            gauges.read_depth.set(1);
            let read = read_piece(sides, piece, &mut buffer);
            gauges.read_depth.set(0);
            match read {
                Ok(true) => {}
                Ok(false) => return CallEnd::Shorter,
                Err(error) => return CallEnd::Failed(piece.source, error),
            }
            gauges.read_bytes.add(piece.bytes);
            let bytes = piece.bytes as usize;
            if filled.send(ReadPiece { buffer, offset: piece.source, bytes }).is_err() {
                return CallEnd::Stopped;
            }
            rest.source += piece.bytes;
            rest.bytes -= piece.bytes;
        }
    }
    CallEnd::Written
}

/// Fills the buffer; whether the source had that much.
fn read_piece(sides: TwoSides<'_, '_>, piece: Extent, buffer: &mut [u8]) -> sys::Result<bool> {
    let bytes = piece.bytes as usize;
    let whole = bytes.next_multiple_of(sides.read_alignment).min(buffer.len());
    let mut done = 0;
    while done < bytes {
        match file::read_at(sides.source, &mut buffer[done..whole], piece.source + done as u64)? {
            0 => return Ok(false),
            got => done += got,
        }
    }
    let written = bytes.next_multiple_of(sides.write_alignment.max(1)).min(buffer.len());
    buffer[bytes..written].fill(0);
    Ok(true)
}

/// The writing thread.
fn write_all(
    sides: TwoSides<'_, '_>,
    pieces: &Receiver<ReadPiece>,
    give_back: Sender<AlignedBuffer>,
    observer: &mut dyn CallObserver,
) -> CallEnd {
    let gauges = sides.shared.gauges;
    while let Ok(piece) = timed(&gauges.writers_waited_ns, || pieces.recv()) {
        if sides.shared.is_stopped() {
            return CallEnd::Stopped;
        }
        let ReadPiece { buffer, offset, bytes } = piece;
        observer.seen(&buffer[..bytes], offset);
        let whole = bytes.next_multiple_of(sides.write_alignment.max(1)).min(buffer.len());
        gauges.write_depth.set(1);
        let written = calls::write(CallMethod::TwoThread, sides.target, &buffer[..whole], offset);
        gauges.write_depth.set(0);
        if let Err((at, error)) = written {
            return CallEnd::Failed(at, error);
        }
        gauges.written_bytes.add(bytes as u64);
        // Its receiver lives until both threads have ended.
        let _ = give_back.send(buffer);
        if let Err(error) = observer.written(sides.shared, sides.target, offset + bytes as u64) {
            return CallEnd::Failed(offset, error);
        }
    }
    CallEnd::Written
}
