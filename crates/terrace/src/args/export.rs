//! Options of `terrace export`. An export is meant to be shared, so it is redacted unless
//! `--no-redact` is given.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// A recording, or the directory of a flight recorder
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The form
    #[arg(long, value_enum, value_name = "FORM")]
    pub to: Form,

    /// Replace what is personal; this is the default
    #[arg(long, conflicts_with = "no_redact")]
    pub redact: bool,

    /// Keep command lines, names and paths
    #[arg(long)]
    pub no_redact: bool,

    /// Write to FILE, whole or not at all, instead of to standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// A form that other programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// One line for each sample, one column for each counter
    Csv,
    /// Everything: facts, counters, delays, marks, how it ended
    Json,
    /// A recording again, which `terrace explain` takes
    Trec,
    /// A trace that ui.perfetto.dev and its trace processor open; counters as they were read
    Perfetto,
    /// Text with time stamps that Prometheus and its kin take in as history
    Openmetrics,
}
