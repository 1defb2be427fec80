//! The nouns of Terrace, their units and their statistics.
//!
//! Everything here is pure: no I/O, no clock, no `unsafe`, nothing that can fail
//! on the outside world. Probes fill these types, rules read them, and the
//! binary prints them; the three never share anything else.

pub mod advice;
pub mod boost_counters;
pub mod bytes;
pub mod cache_receipt;
pub mod chase;
pub mod compared;
pub mod comparison;
pub mod copy_gauges;
pub mod curves;
pub mod denial;
pub mod device;
pub mod doctor;
pub mod duration;
pub mod engine;
mod error_chain;
pub mod estimate;
pub mod explanation;
pub mod finding;
pub mod frame;
pub mod gauge;
pub mod histogram;
pub mod knee;
pub mod link;
pub mod machine;
pub mod probe;
pub mod progress;
pub mod proof;
pub mod qualification;
pub mod ramdisk;
pub mod random;
pub mod recording;
pub mod statistics;
pub mod survey;
pub mod text;
pub mod tier;

pub use boost_counters::BoostCounters;
pub use bytes::Bytes;
pub use chase::ChaseOrder;
pub use copy_gauges::{CopyEngine, CopyGauges};
pub use error_chain::error_chain;
pub use estimate::{Covers, Estimate, Latency};
pub use finding::{Evidence, Finding, Grade};
pub use gauge::{Gauge, GaugeName, GaugeSet};
pub use histogram::Histogram;
pub use progress::{Control, Progress, ProgressSink};
pub use tier::{Tier, TierKind};
