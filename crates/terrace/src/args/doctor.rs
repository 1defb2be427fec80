//! Options of `terrace doctor`. It has no `--record` and names no host: its report is about rights,
//! and is made to be passed on.

use clap::Args;
use std::path::PathBuf;

// The options of `doctor`.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Write to FILE, whole or not at all, instead of to standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}
