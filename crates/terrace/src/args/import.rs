//! Options of `terrace import`: the output of another tool, and what it does not say itself. The
//! tool is recognised by the first lines, as a rule.

use super::value;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// The text: `sadf -j`, the JSON of fio, a log of fio, `vmstat N` or `iostat N`; `-` is
    /// standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Who wrote it, where its first lines do not show that
    #[arg(long, value_enum, value_name = "TOOL")]
    pub from: Option<Tool>,

    /// The time between two reports of vmstat or iostat without time stamps (-t); 1s if it is not
    /// given
    #[arg(long, value_name = "TIME", value_parser = value::budget)]
    pub interval: Option<Duration>,

    /// Where the recording goes
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: PathBuf,
}

/// A tool whose text is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tool {
    /// `sadf -j`
    Sadf,
    /// Its JSON
    Fio,
    /// A log that it wrote while it ran
    FioLog,
    /// `vmstat N`
    Vmstat,
    /// `iostat N`
    Iostat,
}
