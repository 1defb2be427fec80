//! Options of `terrace advise`: what was recorded, or for how long to record, and which sizes of
//! memory are judged.

use super::value;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct AdviseArgs {
    /// Recordings of one machine, or directories of flight recorders; several are judged together
    #[arg(value_name = "FILE", required_unless_present = "record")]
    pub files: Vec<PathBuf>,

    /// Record this machine for so long first
    #[arg(long, value_name = "DURATION", value_parser = value::budget, conflicts_with = "files", allow_hyphen_values = true)]
    pub record: Option<Duration>,

    /// How much more memory, or less, separated by commas: 2g,-1g (default: 1g,2g,4g,8g)
    #[arg(long, value_name = "SIZES", value_parser = value::signed_size, value_delimiter = ',', allow_hyphen_values = true)]
    pub ram: Vec<i64>,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Write to FILE, whole or not at all, instead of to standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}
