//! The points behind a survey's pictures: what its probes measured on the way to one
//! figure for each level. Nothing is measured for a picture's sake.
//!
//! A curve that no probe gave (it failed, or its time was over) is empty or left out.

use crate::estimate::Estimate;
use crate::histogram::Bar;
use crate::probe::CacheLevel;
pub use crate::probe::RateAt;
use serde::{Deserialize, Serialize};

/// All curves of one survey.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// Copy rate against size, a curve for each method, at the size of each level of memory.
    pub copies: Vec<CopyCurve>,
    /// Latency against size, a curve for each kind of pages.
    pub latencies: Vec<LatencyCurve>,
    /// The edges in that curve, and what others claim.
    pub caches: Vec<CacheLevel>,
    /// How long touches of memory took, a histogram for each kind of pages and phase.
    pub faults: Vec<FaultHistogram>,
    /// Sequential rates over time, of each device.
    pub devices: Vec<DeviceRates>,
}

/// One method of copying.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyCurve {
    /// Its name in `terrace measure memcpy --list`.
    pub method: String,
    /// By size, ascending.
    pub points: Vec<CopyPoint>,
}

/// The rate of copies of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyPoint {
    /// The bytes that one copy copies.
    pub size_bytes: u64,
    /// Copied bytes a second, each counted once.
    pub bytes_per_s: Estimate,
}

/// One kind of pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyCurve {
    /// `4k`, or `thp` for huge pages where granted.
    pub pages: String,
    /// By size, ascending.
    pub points: Vec<LatencyPoint>,
}

/// The time of one dependent load from a buffer of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyPoint {
    /// The buffer's size.
    pub size_bytes: u64,
    /// One load, nanoseconds.
    pub load_ns: Estimate,
    /// Why the point is not to be leant on, if so.
    pub noisy: Option<String>,
}

/// The times of touches of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultHistogram {
    /// `4k`, or `thp` for huge pages.
    pub pages: String,
    /// `first`, `again` (freed and touched at once) or `after_wait`.
    pub phase: String,
    /// Bytes that one timed touch made resident.
    pub touch_bytes: u64,
    /// Two bars for each doubling.
    pub bars: Vec<Bar>,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRates {
    /// The tier's name.
    pub tier: String,
    /// Sequential reads.
    pub reads: Vec<RateAt>,
    /// Sequential writes, made durable.
    pub writes: Vec<RateAt>,
}
