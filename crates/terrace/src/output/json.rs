//! The envelope around every probe's JSON: schema, version, machine, result, cost.
//!
//! `docs/json.md` describes it. The number after the slash of a schema goes up when a
//! field changes its meaning or goes; fields may be added without that.

use super::clean;
use crate::error::{Error, Result};
use crate::exit::Exit;
use model::machine::MachineFacts;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Envelope<'a, R> {
    /// `terrace.measure.memcpy/1`.
    pub schema: String,
    pub version: &'static str,
    /// When it started, seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// The words of the command line, without the program's name.
    pub command: Vec<String>,
    /// Whether Ctrl-C ended it before its plan was done.
    pub interrupted: bool,
    pub machine: &'a MachineFacts,
    pub result: &'a R,
    pub cost: &'a Cost,
}

#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    pub wall_s: f64,
    /// Processor time of all threads, user and kernel, seconds.
    pub cpu_s: f64,
    pub max_resident_bytes: u64,
    /// Bytes written to files, all of them removed again.
    pub written_bytes: u64,
    /// The harness's own; `None` where nothing was measured by it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub harness: Option<Harness>,
}

/// The harness's own overhead.
#[derive(Clone, Debug, Serialize)]
pub struct Harness {
    /// Time of one reading of the clock, nanoseconds.
    pub timer_ns: f64,
    /// Time around one trial, nanoseconds; not part of any trial.
    pub bracket_ns: f64,
}

/// The word that `value`, a variant without fields, is in JSON.
pub fn word(value: &impl Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}

/// `value` as indented JSON with a line end, without characters that a terminal obeys.
pub fn render(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::new(Exit::Partial, format!("cannot write JSON: {error}")))?;
    Ok(clean::json(&text).into_owned() + "\n")
}
