//! Text that other tools wrote becomes a recording, so that it can be looked at, exported and
//! compared like one: `sadf -j`, fio's JSON and logs, `vmstat` and `iostat`.
//!
//! These tools report rates and averages of an interval. A rate becomes the growth of a counter
//! over its interval, under the name that the counter has here where it means the same; what
//! was rounded away there stays away. The first report of `vmstat` and `iostat` is an average
//! since the machine's start and is left out.

mod bounded;
mod fio;
mod iostat;
mod sadf;
mod time;
mod timeline;
mod vmstat;

use crate::{Error, ErrorKind, Result};
use model::recording::Recording;
use std::time::Duration;

/// The longest text that is taken in. It is in memory as a whole: with what is made of it the
/// program stays below 512 MiB.
pub const MAX_BYTES: u64 = 192 << 20;

/// The tool that wrote the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `sadf -j`.
    Sadf,
    /// `fio --output-format=json`.
    Fio,
    /// `fio --write_bw_log`, `--write_iops_log`, `--write_lat_log`.
    FioLog,
    /// `vmstat N`, with `-t` or without.
    Vmstat,
    /// `iostat N`, with `-x` and `-t` or without.
    Iostat,
}

/// What the text itself does not say.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The time between two reports, where the text has no time stamps.
    pub interval: Option<Duration>,
    /// The name of the file: only it says what an fio log measures.
    pub name: String,
}

/// The tool that wrote this text, by its first lines; `None` if it is not one of these.
#[must_use]
pub fn form_of(text: &str) -> Option<Form> {
    let start = text.trim_start();
    if start.starts_with('{') {
        // The name of the whole comes before everything else.
        let head: String = start.chars().take(4096).collect();
        return match head {
            head if head.contains("\"sysstat\"") => Some(Form::Sadf),
            head if head.contains("\"fio version\"") => Some(Form::Fio),
            _ => None,
        };
    }
    let mut lines = start.lines().take(20);
    if start.starts_with("procs ") {
        return Some(Form::Vmstat);
    }
    if lines.clone().any(|line| line.starts_with("avg-cpu:") || line.starts_with("Device")) {
        return Some(Form::Iostat);
    }
    let is_log = |line: &str| line.split(',').count() >= 4 && fio::numbers(line).is_some();
    lines.next().is_some_and(is_log).then_some(Form::FioLog)
}

/// Makes a recording of `text`.
///
/// # Errors
/// `NotARecording` when the text has no report that can be read.
pub fn import(text: &str, form: Form, options: &ImportOptions) -> Result<Recording> {
    let recording = match form {
        Form::Sadf => sadf::read(text),
        Form::Fio => fio::read(text),
        Form::FioLog => fio::read_log(text, &options.name),
        Form::Vmstat => vmstat::read(text, options.interval),
        Form::Iostat => iostat::read(text, options.interval),
    };
    recording.map_err(|why| Error::new(ErrorKind::NotARecording, "import", why))
}
