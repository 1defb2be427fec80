//! Options of `terrace advise`: what was recorded, by this or another tool, or for how long to
//! record, and which sizes of memory and of a cache are judged.

use super::value;
use clap::Args;
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct AdviseArgs {
    /// Recordings of one machine, directories of flight recorders, or traces of other tools: MSR
    /// CSV, the lines of blkparse, fio's iolog 2 and 3, oracleGeneral, each also packed with zstd;
    /// several are judged together
    #[arg(value_name = "FILE", required_unless_present = "record")]
    pub files: Vec<PathBuf>,

    /// Record this machine for so long first
    #[arg(long, value_name = "DURATION", value_parser = value::budget, conflicts_with = "files", allow_hyphen_values = true)]
    pub record: Option<Duration>,

    /// How much more memory, or less, separated by commas: 2g,-1g (default: 1g,2g,4g,8g)
    #[arg(long, value_name = "SIZES", value_parser = value::signed_size, value_delimiter = ',', allow_hyphen_values = true)]
    pub ram: Vec<i64>,

    /// The size of a cache on a stick or an SSD, separated by commas (default: 4g,8g,16g,32g)
    #[arg(long, value_name = "SIZES", value_parser = value::size, value_delimiter = ',', allow_hyphen_values = true)]
    pub flash: Vec<Bytes>,

    /// The stick, as `terrace boost qualify --json` measured it; without it the times of a usual
    /// stick are assumed
    #[arg(long, value_name = "QUALIFY.json")]
    pub with: Option<PathBuf>,

    /// Write the advice also to FILE as one page for a browser; it needs no network
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub page: Option<PathBuf>,

    /// Keep command lines, names and paths in the page, which otherwise has stand-ins for them
    #[arg(long, requires = "page", help_heading = "Output")]
    pub no_redact: bool,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Write to FILE, whole or not at all, instead of to standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}
