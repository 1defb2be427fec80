//! The bytes of task accounting: netlink messages, their attributes, and the record of one
//! thread, whose layout grew over the kernel's versions.
//!
//! Fields are read in order as far as the record goes, so an older kernel's record gives
//! what it has and a newer one's additions are skipped. No bytes make it panic.
//! Version 15 (Linux 6.14 and 6.15) put the longest waits between the older fields; later
//! ones have them at the end.

use model::recording::Delay;

/// The record of one thread. What a kernel's version lacks is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The record's version; 8 since Linux 2.6.30, 16 since 6.16.
    pub version: u16,
    /// The thread.
    pub tid: u32,
    /// Its process; before version 12 unknown.
    pub tgid: Option<u32>,
    /// The parent of its process.
    pub ppid: u32,
    /// Its name; not UTF-8 is replaced.
    pub comm: String,
    /// Whether it is the last thread of its process, which ends with it (version 12).
    pub last_of_process: bool,
    /// How long it has lived, in steps of a microsecond.
    pub elapsed_ns: u64,
    /// On a processor; in the record of an end, the last stretch is missing, which is at
    /// most a tick long: it is charged when the thread leaves the processor for good.
    pub run_ns: u64,
    /// In user mode, as the tick saw it.
    pub user_ns: u64,
    /// In the kernel, as the tick saw it.
    pub system_ns: u64,
    /// Runnable, waiting for a processor; always counted.
    pub queue: Delay,
    /// Waiting for block I/O; this and what follows only where delay accounting was on when
    /// the thread began, 0 otherwise.
    pub block_io: Delay,
    /// Reading swapped pages back.
    pub swap_in: Delay,
    /// Freeing memory.
    pub reclaim: Delay,
    /// Reading again what was evicted (version 9).
    pub thrash: Option<Delay>,
    /// Compaction (version 11).
    pub compact: Option<Delay>,
    /// Copying write-protected pages (version 13).
    pub copy_on_write: Option<Delay>,
    /// Interrupts (version 14).
    pub interrupts: Option<Delay>,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Bytes asked for by `read` and its relatives.
    pub read_chars: u64,
    /// Bytes given to `write` and its relatives.
    pub write_chars: u64,
    /// Calls of `read` and its relatives.
    pub read_calls: u64,
    /// Calls of `write` and its relatives.
    pub write_calls: u64,
    /// Bytes read from devices.
    pub read_bytes: u64,
    /// Bytes written to devices.
    pub write_bytes: u64,
    /// Times that it gave the processor away.
    pub voluntary_switches: u64,
    /// Times that it was taken from it.
    pub involuntary_switches: u64,
}

/// A netlink message about tasks.
#[derive(Debug)]
pub(super) enum Message {
    /// The record of one thread.
    Thread(Box<Stats>),
    /// A refusal, or 0 for an acknowledgement.
    Error(i32),
    /// Something else: the sum of a process, an unknown kind.
    Other,
}

/// A message that is an error or an acknowledgement.
pub(crate) const KIND_ERROR: u16 = 2;

/// Command, version and padding in front of the attributes.
pub(crate) const GENERIC_HEADER_BYTES: usize = 4;

/// Length, kind, flags, sequence and port in front of every message.
const HEADER_BYTES: usize = 16;

/// "This is a request"; the kernel acts on nothing else.
const FLAG_REQUEST: u16 = 1;

/// "Answer also if there is nothing to say".
const FLAG_ACKNOWLEDGE: u16 = 4;

/// Attributes hold flags in these bits of their kind.
const ATTRIBUTE_KIND_MASK: u16 = 0x3fff;

const TYPE_PID: u16 = 1;
const TYPE_STATS: u16 = 3;
const TYPE_THREAD: u16 = 4;

/// The kernel's mark of a process's last thread, of `linux/acct.h`.
const FLAG_GROUP: u8 = 0x20;

/// The bytes of the oldest record that is understood: version 8 up to reclaim.
const OLDEST_BYTES: usize = 328;

/// The bytes of a record of version 14; what version 15 put between is beyond it.
const VERSION_14_BYTES: usize = 432;

/// How many categories version 15 gave additional words.
const CATEGORIES: usize = 8;

impl Stats {
    /// The record in `bytes`; `None` if they are too few or of no known version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let version = u16::from_ne_bytes(*bytes.first_chunk::<2>()?);
        if version < 8 || bytes.len() < OLDEST_BYTES {
            return None;
        }
        let mut fields = Fields::new(bytes, version);
        let flag = *bytes.get(8)?;
        let mut stats = Self {
            version,
            last_of_process: version >= 12 && flag & FLAG_GROUP != 0,
            ..Self::default()
        };
        stats.read_first(&mut fields)?;
        stats.read_basic(&mut fields)?;
        stats.read_later(&mut fields);
        stats.read_longest(&mut fields);
        Some(stats)
    }

    /// Version 1: the first delays.
    fn read_first(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        self.queue = fields.delay()?;
        self.block_io = fields.delay()?;
        self.swap_in = fields.delay()?;
        let _scaled_by_steal = fields.word()?;
        self.run_ns = fields.word()?;
        Some(())
    }

    /// Versions 2 to 8: who it was and what it did.
    fn read_basic(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        self.comm = text(fields.take(32)?);
        fields.take(8)?;
        let _user_and_group = fields.take(8)?;
        self.tid = fields.half()?;
        self.ppid = fields.half()?;
        let _begin_s = fields.take(8)?;
        self.elapsed_ns = fields.microseconds()?;
        self.user_ns = fields.microseconds()?;
        self.system_ns = fields.microseconds()?;
        self.minor_faults = fields.word()?;
        self.major_faults = fields.word()?;
        let _memory = fields.take(4 * 8)?;
        self.read_chars = fields.word()?;
        self.write_chars = fields.word()?;
        self.read_calls = fields.word()?;
        self.write_calls = fields.word()?;
        self.read_bytes = fields.word()?;
        self.write_bytes = fields.word()?;
        let _cancelled = fields.word()?;
        self.voluntary_switches = fields.word()?;
        self.involuntary_switches = fields.word()?;
        let _scaled = fields.take(3 * 8)?;
        self.reclaim = fields.delay()?;
        Some(())
    }

    /// Versions 9 to 14: each addition as far as the record goes.
    fn read_later(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        self.thrash = Some(fields.delay()?);
        let _begin_s = fields.word()?;
        self.compact = Some(fields.delay()?);
        self.tgid = Some(fields.half()?).filter(|tgid| *tgid != 0);
        let _padding = fields.half()?;
        let _process_and_program = fields.take(3 * 8)?;
        self.copy_on_write = Some(fields.delay()?);
        self.interrupts = Some(fields.delay()?);
        Some(())
    }

    /// Version 16: the longest and the shortest wait of each category.
    fn read_longest(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        if self.version < 16 {
            return None;
        }
        let categories = [
            Some(&mut self.queue),
            Some(&mut self.block_io),
            Some(&mut self.swap_in),
            Some(&mut self.reclaim),
            self.thrash.as_mut(),
            self.compact.as_mut(),
            self.copy_on_write.as_mut(),
            self.interrupts.as_mut(),
        ];
        for category in categories {
            let max_ns = fields.word()?;
            let _min_ns = fields.word()?;
            category?.max_ns = Some(max_ns);
        }
        Some(())
    }
}

/// The fields of a record, one after the other.
struct Fields<'a> {
    rest: &'a [u8],
    /// Words that follow each count and sum: 0, or by version 15 the longest wait first.
    additional: usize,
}

impl<'a> Fields<'a> {
    fn new(bytes: &'a [u8], version: u16) -> Self {
        let beyond = bytes.len().saturating_sub(VERSION_14_BYTES);
        let additional = match version {
            15 => (beyond / (CATEGORIES * 8)).min(2),
            _ => 0,
        };
        Self {
            // Version, exit code and flags come first.
            rest: bytes.get(16..).unwrap_or_default(),
            additional,
        }
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(field)
    }

    fn word(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.first_chunk::<8>()?;
        Some(u64::from_ne_bytes(*bytes))
    }

    fn half(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.first_chunk::<4>()?;
        Some(u32::from_ne_bytes(*bytes))
    }

    fn microseconds(&mut self) -> Option<u64> {
        self.word().map(|us| us.saturating_mul(1000))
    }

    fn delay(&mut self) -> Option<Delay> {
        let count = self.word()?;
        let total_ns = self.word()?;
        let mut delay = Delay { count, total_ns, max_ns: None };
        for word in 0..self.additional {
            let value = self.word()?;
            if word == 0 {
                delay.max_ns = Some(value);
            }
        }
        Some(delay)
    }
}

/// A request: both headers, then `attributes`.
pub(super) fn header(family: u16, command: u8, sequence: u32, attributes: &[u8]) -> Vec<u8> {
    let bytes = HEADER_BYTES + GENERIC_HEADER_BYTES + attributes.len();
    let mut message = Vec::with_capacity(bytes);
    // Requests are a few dozen bytes long.
    message.extend((bytes as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend((FLAG_REQUEST | FLAG_ACKNOWLEDGE).to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend([command, 1, 0, 0]);
    message.extend(attributes);
    message
}

/// One attribute with its padding.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    // Values are a list of processors at most, far below the 64 KiB of the field.
    let bytes = (4 + value.len()) as u16;
    let mut attribute = Vec::with_capacity(value.len() + 8);
    attribute.extend(bytes.to_ne_bytes());
    attribute.extend(kind.to_ne_bytes());
    attribute.extend(value);
    attribute.resize(padded(attribute.len()), 0);
    attribute
}

/// The messages in what was received.
pub(super) fn messages(bytes: &[u8]) -> impl Iterator<Item = Message> {
    bodies(bytes).map(|(kind, body)| match kind {
        KIND_ERROR => Message::Error(error_number(body)),
        _ => thread_of(body).map_or(Message::Other, |stats| Message::Thread(Box::new(stats))),
    })
}

/// Kind and body of each message.
pub(crate) fn bodies(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let body = bytes.get(HEADER_BYTES..length)?;
        bytes = bytes.get(padded(length)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// Kind and value of each attribute.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header = bytes.first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & ATTRIBUTE_KIND_MASK;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(padded(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The positive error number of an error message; 0 for an acknowledgement.
pub(crate) fn error_number(body: &[u8]) -> i32 {
    let bytes = body.first_chunk::<4>().copied().unwrap_or_default();
    i32::from_ne_bytes(bytes).checked_neg().unwrap_or(i32::MAX)
}

/// The record of a thread in a message's body, if it holds one.
fn thread_of(body: &[u8]) -> Option<Stats> {
    let (_, thread) =
        attributes(body.get(GENERIC_HEADER_BYTES..)?).find(|(kind, _)| *kind == TYPE_THREAD)?;
    let mut tid = None;
    let mut stats = None;
    for (kind, value) in attributes(thread) {
        match kind {
            TYPE_PID => tid = value.first_chunk::<4>().map(|id| u32::from_ne_bytes(*id)),
            TYPE_STATS => stats = Stats::from_bytes(value),
            _ => {}
        }
    }
    let mut stats = stats?;
    stats.tid = tid.unwrap_or(stats.tid);
    Some(stats)
}

/// A name up to its zero byte.
fn text(bytes: &[u8]) -> String {
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// Netlink pads to 4 bytes.
fn padded(bytes: usize) -> usize {
    bytes.saturating_add(3) & !3
}
