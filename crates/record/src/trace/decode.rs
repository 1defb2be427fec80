//! From the raw data of a tracepoint to an [`Event`]: which fields matter, and their offsets.
//!
//! Numbers in the data are those of the outermost process namespace, which must be ours; the
//! sample's own are those of this process.

use super::block::direction;
use super::cpu;
use super::event::{BlockRequest, Event, EventKind, Leave};
use super::stack::FunctionTable;
use sys::perf::Sample;
use sys::tracefs::{Field, Tracepoint};

/// Bits of a thread's state at its last switch: `EXIT_DEAD` and `EXIT_ZOMBIE`. They reveal a thread
/// that /proc showed after its end had been reported.
const DEAD: u64 = 0x30;

/// A tracepoint that is made use of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    Switch,
    Wakeup,
    Issue,
    Complete,
    Requeue,
    Reclaim { begins: bool },
    Compaction { begins: bool },
    Throttled,
    DirtyPages,
}

/// How to read the samples of one tracepoint.
#[derive(Clone, Debug)]
pub enum Decoder {
    Switch {
        thread: Field,
        state: Field,
        next: Field,
    },
    Wakeup {
        thread: Field,
    },
    Issue {
        request: RequestFields,
        bytes: Field,
    },
    Complete {
        request: RequestFields,
        sectors: Field,
    },
    Requeue {
        request: RequestFields,
    },
    Reclaim {
        begins: bool,
    },
    Compaction {
        begins: bool,
    },
    Throttled {
        delay_us: Field,
    },
    DirtyPages {
        pause_ms: Field,
    },
    /// A tick of a processor's clock, with the stack.
    Clock,
}

/// Where a request is named.
#[derive(Clone, Debug)]
pub struct RequestFields {
    device: Field,
    sector: Field,
    letters: Field,
}

impl RequestFields {
    fn of(tracepoint: &Tracepoint) -> Option<Self> {
        Some(Self {
            device: tracepoint.field("dev")?.clone(),
            sector: tracepoint.field("sector")?.clone(),
            letters: tracepoint.field("rwbs")?.clone(),
        })
    }

    fn read(&self, raw: &[u8]) -> Option<BlockRequest> {
        Some(BlockRequest {
            device: u32::try_from(self.device.number(raw)?).ok()?,
            sector: self.sector.number(raw)?,
            direction: direction(self.letters.data(raw)?),
        })
    }
}

impl Decoder {
    /// The decoder for a tracepoint as this kernel describes it; `None` if a field is gone.
    pub fn of(point: Point, tracepoint: &Tracepoint) -> Option<Self> {
        let field = |name: &str| tracepoint.field(name).cloned();
        let request = || RequestFields::of(tracepoint);
        Some(match point {
            Point::Switch => Decoder::Switch {
                thread: field("prev_pid")?,
                state: field("prev_state")?,
                next: field("next_pid")?,
            },
            Point::Wakeup => Decoder::Wakeup { thread: field("pid")? },
            Point::Issue => Decoder::Issue { request: request()?, bytes: field("bytes")? },
            Point::Complete => {
                Decoder::Complete { request: request()?, sectors: field("nr_sector")? }
            }
            Point::Requeue => Decoder::Requeue { request: request()? },
            Point::Reclaim { begins } => Decoder::Reclaim { begins },
            Point::Compaction { begins } => Decoder::Compaction { begins },
            Point::Throttled => Decoder::Throttled { delay_us: field("usec_delayed")? },
            Point::DirtyPages => Decoder::DirtyPages { pause_ms: field("pause")? },
        })
    }

    /// What a sample says; `None` if it is of no interest.
    pub fn decode(&self, sample: &Sample<'_>, table: &FunctionTable) -> Option<Event> {
        let (process, thread, raw) = (sample.process, sample.thread, sample.raw);
        let what = match self {
            Decoder::Switch { thread, state, next } => {
                let state = state.number(raw)?;
                let leave = match table.classify(state, sample.stack()) {
                    _ if state & DEAD != 0 => Leave::Ended,
                    Some(state) => Leave::Waits(state),
                    None => Leave::Ready,
                };
                EventKind::Switch {
                    // From the data: the sample has no number any more for one that is dead.
                    thread: u32::try_from(thread.number(raw)?).ok()?,
                    leave,
                    next: u32::try_from(next.number(raw)?).ok()?,
                }
            }
            Decoder::Wakeup { thread } => {
                EventKind::Wakeup { thread: u32::try_from(thread.number(raw)?).ok()? }
            }
            Decoder::Issue { request, bytes } => EventKind::Issue {
                request: request.read(raw)?,
                bytes: u32::try_from(bytes.number(raw)?).ok()?,
            },
            Decoder::Complete { request, sectors } => EventKind::Complete {
                request: request.read(raw)?,
                bytes: u32::try_from(sectors.number(raw)?.checked_mul(512)?).ok()?,
            },
            Decoder::Requeue { request } => EventKind::Requeue { request: request.read(raw)? },
            Decoder::Reclaim { begins } => EventKind::Reclaim { process, thread, begins: *begins },
            Decoder::Compaction { begins } => {
                EventKind::Compaction { process, thread, begins: *begins }
            }
            Decoder::Throttled { delay_us } => {
                EventKind::Throttled { process, delay_ns: delay_us.number(raw)?.checked_mul(1000)? }
            }
            // A pause of 0 or less is a note without a wait.
            Decoder::DirtyPages { pause_ms } => EventKind::DirtyWait {
                process,
                pause_ns: positive(pause_ms.number(raw)?)?.checked_mul(1_000_000)?,
            },
            Decoder::Clock => {
                EventKind::Sampled { process, seen: cpu::judge(false, sample.stack()) }
            }
        };
        Some(Event { time_ns: sample.time_ns, what })
    }
}

/// A number of 64 bits with a sign that is larger than 0.
fn positive(number: u64) -> Option<u64> {
    u64::try_from(number.cast_signed()).ok().filter(|number| *number > 0)
}
