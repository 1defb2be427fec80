//! What one record of a ring says: its bytes, decoded without a copy.
//!
//! Every event is opened with the same [`SAMPLE_TYPE`], so a sample is always: number of the
//! event, process and thread, time, processor, stack, raw data; and every other record ends
//! with process and thread, time, processor, number of the event. Nothing is allocated, and
//! bytes that do not make sense are [`Record::Other`].

/// `PERF_SAMPLE_` TID, TIME, CALLCHAIN, CPU, RAW and IDENTIFIER.
pub(super) const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 5 | 1 << 7 | 1 << 10 | 1 << 16;
/// Bytes of the header of each record.
pub(super) const HEADER_BYTES: usize = 8;
/// Bytes that a record other than a sample ends with.
const TRAILER_BYTES: usize = 32;

const TYPE_LOST: u32 = 2;
const TYPE_COMM: u32 = 3;
const TYPE_EXIT: u32 = 4;
const TYPE_FORK: u32 = 7;
const TYPE_SAMPLE: u32 = 9;
const TYPE_LOST_SAMPLES: u32 = 13;
const TYPE_SWITCH_CPU_WIDE: u32 = 15;
/// In `misc`: the program of the process begins anew.
const MISC_COMM_EXEC: u16 = 1 << 13;
/// In `misc`: the thread leaves the processor.
const MISC_SWITCH_OUT: u16 = 1 << 13;
/// In `misc`: it leaves although it could go on.
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A tracepoint was passed.
    Sample(Sample<'a>),
    /// A processor changed its thread.
    Switch(Switch),
    /// A thread began; `parent` made it.
    Fork(Task),
    /// A thread ended.
    Exit(Task),
    /// The process began a new program; its other threads are gone.
    Exec(Task),
    /// Records were dropped here, because they were not read fast enough.
    Lost {
        /// How many.
        count: u64,
    },
    /// Something else.
    Other,
}

/// A tracepoint was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The number of the event, as [`super::Event::id`] gives it.
    pub id: u64,
    /// When.
    pub time_ns: u64,
    /// The process that was on the processor.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
    /// The processor.
    pub processor: u32,
    /// The tracepoint's own data.
    pub raw: &'a [u8],
    stack: &'a [u8],
}

impl Sample<'_> {
    /// Addresses of the stack, innermost first, between marks that are no addresses.
    pub fn stack(&self) -> impl Iterator<Item = u64> {
        let words = self.stack.chunks_exact(8);
        words.map(|word| word.try_into().map_or(0, u64::from_ne_bytes))
    }
}

/// A processor changed its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// When.
    pub time_ns: u64,
    /// The process of the thread that this is about; 0 for the idle task.
    pub process: u32,
    /// The thread that leaves or comes.
    pub thread: u32,
    /// The processor.
    pub processor: u32,
    /// Whether it leaves.
    pub is_out: bool,
    /// Whether it leaves although it could go on.
    pub is_preempted: bool,
    /// The process on the other side of the switch.
    pub other_process: u32,
    /// The thread on the other side.
    pub other_thread: u32,
}

/// The beginning or the end of a thread or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// When.
    pub time_ns: u64,
    /// Its process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The process of its parent; itself for [`Record::Exec`].
    pub parent: u32,
}

/// The length of a record whose first bytes these are; `None` if it is no record.
pub(super) fn length(header: &[u8]) -> Option<usize> {
    let length = usize::from(u16_at(header, 6)?);
    (length >= HEADER_BYTES && length % 8 == 0).then_some(length)
}

impl<'a> Record<'a> {
    /// Decodes one whole record.
    pub(super) fn decode(bytes: &'a [u8]) -> Self {
        Self::known(bytes).unwrap_or(Record::Other)
    }

    fn known(bytes: &'a [u8]) -> Option<Self> {
        let misc = u16_at(bytes, 4)?;
        let body = bytes.get(HEADER_BYTES..)?;
        Some(match u32_at(bytes, 0)? {
            TYPE_SAMPLE => Record::Sample(Sample::decode(body)?),
            TYPE_SWITCH_CPU_WIDE => {
                let end = Trailer::decode(body)?;
                Record::Switch(Switch {
                    time_ns: end.time_ns,
                    process: end.process,
                    thread: end.thread,
                    processor: end.processor,
                    is_out: misc & MISC_SWITCH_OUT != 0,
                    is_preempted: misc & MISC_SWITCH_OUT_PREEMPT != 0,
                    other_process: u32_at(body, 0)?,
                    other_thread: u32_at(body, 4)?,
                })
            }
            TYPE_FORK => Record::Fork(Task::decode(body)?),
            TYPE_EXIT => Record::Exit(Task::decode(body)?),
            TYPE_COMM if misc & MISC_COMM_EXEC != 0 => {
                let process = u32_at(body, 0)?;
                Record::Exec(Task {
                    time_ns: Trailer::decode(body)?.time_ns,
                    process,
                    thread: u32_at(body, 4)?,
                    parent: process,
                })
            }
            TYPE_LOST => Record::Lost { count: u64_at(body, 8)? },
            TYPE_LOST_SAMPLES => Record::Lost { count: u64_at(body, 0)? },
            _ => Record::Other,
        })
    }
}

impl<'a> Sample<'a> {
    fn decode(body: &'a [u8]) -> Option<Self> {
        const FIXED_BYTES: usize = 40;
        let frames = usize::try_from(u64_at(body, 32)?).ok()?;
        let stack_end = frames.checked_mul(8)?.checked_add(FIXED_BYTES)?;
        let stack = body.get(FIXED_BYTES..stack_end)?;
        let raw_bytes = usize::try_from(u32_at(body, stack_end)?).ok()?;
        let raw_start = stack_end + 4;
        Some(Self {
            id: u64_at(body, 0)?,
            process: u32_at(body, 8)?,
            thread: u32_at(body, 12)?,
            time_ns: u64_at(body, 16)?,
            processor: u32_at(body, 24)?,
            raw: body.get(raw_start..raw_start.checked_add(raw_bytes)?)?,
            stack,
        })
    }
}

impl Task {
    /// Process, its parent, thread, the parent's thread, time.
    fn decode(body: &[u8]) -> Option<Self> {
        Some(Self {
            process: u32_at(body, 0)?,
            parent: u32_at(body, 4)?,
            thread: u32_at(body, 8)?,
            time_ns: u64_at(body, 16)?,
        })
    }
}

/// What a record other than a sample ends with.
struct Trailer {
    process: u32,
    thread: u32,
    time_ns: u64,
    processor: u32,
}

impl Trailer {
    fn decode(body: &[u8]) -> Option<Self> {
        let end = body.get(body.len().checked_sub(TRAILER_BYTES)?..)?;
        Some(Self {
            process: u32_at(end, 0)?,
            thread: u32_at(end, 4)?,
            time_ns: u64_at(end, 8)?,
            processor: u32_at(end, 16)?,
        })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let word = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_ne_bytes(word.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(word.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_ne_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(HEADER_BYTES + body.len()).unwrap();
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend(length.to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn pair(low: u32, high: u32) -> u64 {
        u64::from(low) | u64::from(high) << 32
    }

    #[test]
    fn a_switch_says_who_leaves_and_why() {
        let body = words(&[pair(1, 2), pair(30, 31), 99, pair(1, 0), 7]);
        let bytes = header(TYPE_SWITCH_CPU_WIDE, MISC_SWITCH_OUT, &body);
        let Record::Switch(switch) = Record::decode(&bytes) else {
            panic!("no switch");
        };
        assert_eq!((switch.process, switch.thread), (30, 31));
        assert_eq!((switch.other_process, switch.other_thread), (1, 2));
        assert_eq!((switch.time_ns, switch.processor), (99, 1));
        assert!(switch.is_out && !switch.is_preempted);
    }

    #[test]
    fn a_sample_has_a_stack_and_data() {
        let body = words(&[5, pair(30, 31), 99, 0, 2, 0xa, 0xb, pair(4, 0xdead_beef)]);
        let bytes = header(TYPE_SAMPLE, 0, &body);
        let Record::Sample(sample) = Record::decode(&bytes) else {
            panic!("no sample");
        };
        assert_eq!(sample.id, 5);
        assert_eq!(sample.stack().collect::<Vec<_>>(), [0xa, 0xb]);
        assert_eq!(sample.raw, 0xdead_beefu32.to_ne_bytes());
    }

    #[test]
    fn no_cut_or_absurd_record_is_believed() {
        let body = words(&[5, pair(30, 31), 99, 0, 2, 0xa, 0xb, pair(4, 1)]);
        let whole = header(TYPE_SAMPLE, 0, &body);
        for cut in 0..whole.len() - 4 {
            assert_eq!(Record::decode(&whole[..cut]), Record::Other, "{cut} bytes");
        }
        let absurd = header(TYPE_SAMPLE, 0, &words(&[5, 0, 99, 0, u64::MAX]));
        assert_eq!(Record::decode(&absurd), Record::Other);
        assert_eq!(length(&[0; 8]), None, "a length of 0 would never end");
    }
}
