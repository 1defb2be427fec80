//! Options of `terrace explain`: the recording, a part of it, the format. `moment` parses the two
//! ends of the part, and `command` finds them in the recording.

use super::moment::{self, Moment};
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// A recording, or the directory of a flight recorder
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Explain only what came after T
    #[arg(long, value_name = "T", value_parser = moment::parse, allow_hyphen_values = true)]
    pub from: Option<Moment>,

    /// Explain only what came before T
    #[arg(long, value_name = "T", value_parser = moment::parse, allow_hyphen_values = true)]
    pub to: Option<Moment>,

    /// Explain that minute (14:32), or the ten seconds around T (14:32:05, 12.5s)
    #[arg(long, value_name = "T", value_parser = moment::parse, conflicts_with_all = ["from", "to"], allow_hyphen_values = true)]
    pub at: Option<Moment>,

    /// Show both bars with their numbers, all evidence, everything that was cleared, and what could
    /// not be seen
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub details: bool,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Write to FILE, whole or not at all, instead of to standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}
