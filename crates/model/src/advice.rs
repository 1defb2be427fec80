//! What more memory, a stick or an SSD would have spared: the answer of `terrace advise`, and its
//! JSON (`terrace.advise/1`). docs/advise.md says what is measured in it and what is concluded.

use crate::bytes::three_digits;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "terrace.advise/1";

/// What an answer comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdviceState {
    /// Seconds would have been spared; if only less memory is judged: that it would have cost some.
    Helps,
    /// Nothing worth mentioning would have been spared.
    Nothing,
    /// The recording does not say.
    #[default]
    Unproven,
}

/// A time that would have been spared, with the range that it is in. Its ends come from different
/// ways of counting; each is 95 % sure of what pieces of the recording differ by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SparedTime {
    /// The estimate.
    pub ns: u64,
    /// The lower end.
    pub low_ns: u64,
    /// The upper end.
    pub high_ns: u64,
}

impl SparedTime {
    /// The unit that suits it, in ns and in words; both ends are shown in it too.
    #[must_use]
    pub fn unit(&self) -> (f64, &'static str) {
        match self.ns.max(self.high_ns) {
            ns if ns >= 7_200_000_000_000 => (3.6e12, "h"),
            ns if ns >= 600_000_000_000 => (60e9, "min"),
            _ => (1e9, "s"),
        }
    }

    /// A number of that unit: three digits that count, and no more than one after the point below
    /// 10.
    #[must_use]
    pub fn in_unit(&self, ns: u64) -> String {
        let value = ns as f64 / self.unit().0;
        three_digits(if value < 10.0 { (value * 10.0).round() / 10.0 } else { value })
    }
}

/// Pages of one kind that left memory and came back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnedBytes {
    /// What left memory while it was watched.
    pub left_bytes: u64,
    /// What was seen to leave and come back.
    pub came_back_bytes: u64,
    /// What came back by the kernel's own counter, with what had left before the recording; `None`
    /// if that counter is not the subject's.
    pub counted_bytes: Option<u64>,
    /// The time that threads waited for it, added up over threads.
    pub waited_ns: u64,
}

/// What one amount of memory, more or less, would have changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryGain {
    /// How much more; negative: less.
    pub more_bytes: i64,
    /// What would not have had to come back, if pages leave in the order of their last use; `None`
    /// if the recording does not say.
    pub kept_bytes: Option<u64>,
    /// The same if no page were used again while it is out: by the kernel's plain counter of what
    /// left.
    pub kept_low_bytes: Option<u64>,
    /// The wall time that would have been spared.
    pub spared: Option<SparedTime>,
    /// The waits that would have been spared, or of less memory added, summed over threads.
    pub threads_ns: Option<u64>,
    /// Of less memory: what was used again and would have had to be read again, if pages leave in
    /// the order of their last use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_bytes: Option<u64>,
    /// Of less memory: the wall time that it would have cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<SparedTime>,
    /// Why it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproven: Option<String>,
}

/// Whether more memory would have helped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryAdvice {
    /// What it comes to.
    pub state: AdviceState,
    /// The answer without its state: `4 GiB more would have spared 212 s (190 to 240)`.
    pub text: String,
    /// Pages of files.
    pub file: ReturnedBytes,
    /// Pages of swap.
    pub swap: ReturnedBytes,
    /// Distances beyond this are not known.
    pub reach_bytes: u64,
    /// Each size that was asked for.
    pub sizes: Vec<MemoryGain>,
    /// The spared time over the size, for a drawing.
    pub curve: Vec<MemoryGain>,
    /// From this size on hardly anything more is spared.
    pub knee_bytes: Option<u64>,
    /// The size that the answer names.
    pub named_bytes: Option<i64>,
}

/// What the disk time would have been with a cache on another device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlashAdvice {
    /// `stick` or `ssd`.
    pub kind: String,
    /// What it comes to.
    pub state: AdviceState,
    /// The answer without its state.
    pub text: String,
    /// Where its times of service come from, in words.
    pub times_from: String,
    /// Whether those times are assumed and were not measured.
    pub is_assumed: bool,
    /// How long was watched of what it is judged by: the recordings that kept accesses.
    pub span_ns: u64,
    /// The size that the answer names.
    pub named_bytes: Option<u64>,
    /// Sizes of the cache, each with what it would have spared.
    pub sizes: Vec<FlashGain>,
}

/// What a cache of one size would have changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlashGain {
    /// Its size.
    pub bytes: u64,
    /// The disk time that would have been spared.
    pub spared: SparedTime,
    /// Reads that the device would have served, of all block reads.
    pub hits: u64,
    /// All block reads.
    pub reads: u64,
    /// What would have been written to it.
    pub written_bytes: u64,
}

/// Where the times of a trace come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceTimes {
    /// From the trace.
    #[default]
    Trace,
    /// From a disk that was measured.
    Measured,
    /// There are none.
    None,
}

/// What a cache would have hit of the reads of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceAdvice {
    /// What wrote it: `MSR CSV`.
    pub form: String,
    /// Where its times come from.
    pub times: TraceTimes,
    /// The same in words, of times that are not the trace's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_from: Option<String>,
    /// From its first request to its last, by its own times.
    pub span_ns: u64,
    /// Its reads that are judged.
    pub reads: u64,
    /// Those of them that say what the disk took.
    #[serde(default)]
    pub timed_reads: u64,
    /// Reads after those that are judged.
    #[serde(default)]
    pub unseen_reads: u64,
    /// The bytes of the judged reads, in whole blocks of 4 KiB.
    pub read_bytes: u64,
    /// Its writes, which are not simulated.
    pub writes: u64,
    /// The bytes of the blocks that were read, each once: a larger cache gains nothing.
    pub distinct_bytes: u64,
    /// Whether it has objects, each of which counts as one block.
    pub counts_objects: bool,
    /// Each size of a cache, the smallest first.
    pub sizes: Vec<TraceSize>,
}

impl TraceAdvice {
    /// Whether it says what a cache would have hit, and nothing of seconds.
    #[must_use]
    pub fn has_only_hits(&self) -> bool {
        self.times == TraceTimes::None && !self.sizes.is_empty()
    }
}

/// What a cache of one size would have hit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceSize {
    /// Its size.
    pub bytes: u64,
    /// Reads that the disk would have been spared if the least recently used is evicted: all
    /// their blocks hit.
    pub served_reads: u64,
    /// The share of all blocks that hit, by policy of eviction.
    pub policies: Vec<PolicyShare>,
}

/// What a cache of one policy of eviction would have hit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyShare {
    /// Its name: `S3-FIFO`.
    pub policy: String,
    /// Blocks that hit by blocks that were read, 0 to 1.
    pub hit_share: f64,
}

/// A process or a control group that waited for what came back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AdviceUser {
    /// What sentences call it: `postgres (pid 812)`, `backup.service`.
    pub label: String,
    /// Its waits for what came back, added up over threads.
    pub waited_ns: u64,
    /// Their part of all such waits, 0 to 1.
    pub share: f64,
    /// That part of what the named size would have spared: concluded.
    pub spared_ns: u64,
}

/// What would have helped, and by how many seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was recorded, in words.
    pub subject: String,
    /// The answer in one sentence.
    pub answer: String,
    /// What it comes to.
    pub state: AdviceState,
    /// How long was watched: what the seconds are of.
    pub span_ns: u64,
    /// Of that, the time in which nothing could run until a disk answered: the most that can be
    /// spared.
    pub disk_ns: u64,
    /// The waits for reads and for pages of swap, added up over threads.
    pub threads_waited_ns: u64,
    /// Pieces of the recording that were drawn anew for the range, and the length of one.
    pub blocks: u64,
    /// The length of one of these pieces.
    pub block_ns: u64,
    /// Whether more memory would have helped.
    pub memory: MemoryAdvice,
    /// Whether a cache on a stick or an SSD would have.
    pub flash: Vec<FlashAdvice>,
    /// What a cache would have hit, of traces of other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceAdvice>,
    /// Spared time in a day like this, if all of it were: concluded, not measured.
    pub per_day_ns: Option<u64>,
    /// The first processes that waited for what came back.
    pub processes: Vec<AdviceUser>,
    /// The first control groups.
    pub groups: Vec<AdviceUser>,
    /// What widens the range, what is not priced, and why to trust it less.
    pub notes: Vec<String>,
}
