//! What a run reports while it moves bytes, and how it is stopped: by the observer's answer before
//! each piece and after each failure.

use crate::extent::Extent;
use model::device::DeviceError;
use model::progress::{Control, Progress, ProgressSink};

/// Receives each step of a run. Every method has an empty default.
pub trait Observer {
    /// Asked before each piece is started. After `Stop` what is in flight still ends.
    fn control(&mut self) -> Control {
        Control::Continue
    }

    /// Puts the data of a write into the buffer.
    fn fill(&mut self, _data: &mut [u8], _extent: &Extent) {}

    /// A piece was read. What is changed in the data is written in a copy.
    fn read(&mut self, _data: &mut [u8], _extent: &Extent) {}

    /// A piece is done: read, written, or both in a copy. Pieces end in any order.
    fn moved(&mut self, _piece: &MovedPiece) {}

    /// A piece failed. `Continue` goes on with the others.
    fn failed(&mut self, _failure: &Failure) -> Control {
        Control::Stop
    }
}

/// Observes nothing and stops at the first failure.
impl Observer for () {}

/// A piece that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedPiece {
    /// The slot whose buffer still has its data.
    pub slot: usize,
    /// Its range.
    pub extent: Extent,
    /// When its end was seen, on [`sys::clock`].
    pub completed_ns: u64,
}

/// A piece that was not moved.
#[derive(Debug)]
pub struct Failure {
    /// Its range.
    pub extent: Extent,
    /// What failed, at which offset of the device, and why. If the device ended early, the source's
    /// kind is `UnexpectedEof` for a read and `WriteZero` for a write.
    pub error: DeviceError,
}

/// Reports the bytes done to a progress sink after each piece, and stops when it says so.
pub struct ReportProgress<'a> {
    sink: &'a mut ProgressSink<'a>,
    step: &'a str,
    done: u64,
    total: Option<u64>,
    control: Control,
}

impl<'a> ReportProgress<'a> {
    /// A report of `step` in words for a person, and of how many bytes there are to move.
    pub fn new(sink: &'a mut ProgressSink<'a>, step: &'a str, total: Option<u64>) -> Self {
        Self { sink, step, done: 0, total, control: Control::Continue }
    }
}

impl std::fmt::Debug for ReportProgress<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ReportProgress")
            .field("step", &self.step)
            .field("done", &self.done)
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

impl Observer for ReportProgress<'_> {
    fn control(&mut self) -> Control {
        self.control
    }

    fn moved(&mut self, piece: &MovedPiece) {
        self.done += piece.extent.bytes;
        let progress = Progress::bytes(self.step, self.done, self.total);
        if (self.sink)(progress).is_stop() {
            self.control = Control::Stop;
        }
    }
}
