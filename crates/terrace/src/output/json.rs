//! The envelope around every probe's JSON: schema, version, machine, result, cost.
//!
//! `docs/json.md` describes it. The number after the slash of a schema goes up when a
//! field changes its meaning or goes; fields may be added without that.

use model::machine::MachineFacts;
use model::survey::Cost;
use serde::Serialize;

/// The envelope of one probe's result.
#[derive(Debug, Serialize)]
pub struct Envelope<'a, R> {
    /// `terrace.measure.memcpy/1`.
    pub schema: String,
    /// The version of the program.
    pub version: &'static str,
    /// When it started, seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// The words of the command line, without the program's name.
    pub command: Vec<String>,
    /// Whether Ctrl-C ended it before its plan was done.
    pub interrupted: bool,
    /// The machine.
    pub machine: &'a MachineFacts,
    /// What was measured.
    pub result: &'a R,
    /// What the run itself cost.
    pub cost: &'a Cost,
}

/// `value` as indented JSON with a line end.
pub fn render(value: &impl Serialize) -> crate::error::Result<String> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| {
            crate::error::Error::new(
                crate::exit::Exit::Partial,
                format!("cannot write JSON: {error}"),
            )
        })
}
