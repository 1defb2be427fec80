//! The storage probes: latency one request at a time (`iolat`), random reads at a
//! depth, sequential transfer (`seqio`), and what a survey needs of a device.
//!
//! 1. `target` opens what a path names and refuses what cannot be measured.
//! 2. `iolat`, `random`, `stream` time requests; nothing but the request is timed.
//! 3. `served` finds out from counters what answered: device, cache or RAM.
//!
//! Only the probe's own nameless file is ever written or evicted from the cache.

pub mod fill;
pub mod iolat;
pub mod latency;
pub mod order;
pub mod qualify;
pub mod random;
pub mod raw;
pub mod seqio;
pub mod served;
pub mod stream;
pub mod survey;
pub mod target;

use crate::{Error, ErrorKind};
use model::Estimate;
use model::estimate::Better;
use std::io;
use std::path::Path;

pub use iolat::{Access, IolatPlan, IolatReport, PaceReport, PacesReport, iolat, iolat_paces};
pub use random::{RandomReport, random_read};
pub use raw::raw_compare;
pub use seqio::{PhaseName, SeqPhase, SeqPlan, SeqReport, seqio};
pub use served::{Served, ServedBy};
pub use stream::{RateAt, TransferMode};
pub use survey::{DeviceLimits, survey_device, survey_ram_disk};
pub use target::{StorageTarget, TargetFacts, TargetKind};

/// A system call's failure as this crate's error.
fn failed(operation: impl Into<String>, path: &Path, error: sys::Error) -> Error {
    let kind = match error.kind {
        sys::ErrorKind::NotFound | sys::ErrorKind::Invalid => ErrorKind::Usage,
        sys::ErrorKind::Denied | sys::ErrorKind::Unsupported | sys::ErrorKind::NoMemory => {
            ErrorKind::Impossible
        }
        _ => ErrorKind::Failed,
    };
    Error::io(kind, operation, &error.source).at(path)
}

/// A failed request: always `Failed`, because the file was opened and measured before.
fn failed_request(operation: &str, offset: Option<u64>, source: &io::Error) -> Error {
    let operation = match offset {
        Some(offset) => format!("{operation} at byte {offset} of"),
        None => operation.to_owned(),
    };
    Error::io(ErrorKind::Failed, operation, source)
}

/// An error as its text and its causes, for a report that is printed as JSON; read back it has the
/// same text.
mod failure_text {
    use crate::{Error, ErrorKind};
    use model::error_chain;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        error: &Option<Error>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        match error {
            None => out.serialize_none(),
            Some(error) => out.serialize_some(&error_chain(error)),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Option<Error>, D::Error> {
        let text = Option::<String>::deserialize(input)?;
        Ok(text.map(|text| Error {
            kind: ErrorKind::Failed,
            // The display of an error puts this word before it.
            operation: text.strip_prefix("cannot ").unwrap_or(&text).to_owned(),
            path: None,
            reason: None,
            source: None,
        }))
    }
}

/// A quantity of a single run, which alone has no interval.
fn of_one_run(value: f64, better: Better) -> Option<Estimate> {
    Estimate::from_values(&[value], better, 0)
}

/// Nanoseconds as seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A rate, absent where no time passed.
fn per_second(amount: u64, ns: u64) -> Option<f64> {
    (ns > 0).then(|| amount as f64 / seconds(ns))
}

/// Processor time of the process so far, kernel workers of its rings included.
fn cpu_ns() -> Option<u64> {
    let usage = sys::usage::process().ok()?;
    Some(usage.cpu_ns())
}

/// Processor time of the process since it had used `before`.
fn cpu_ns_since(before: Option<u64>) -> Option<u64> {
    Some(cpu_ns()?.saturating_sub(before?))
}
