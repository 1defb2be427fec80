//! Output options: the format of a result and its destination.
//! `output` checks the file.

use clap::Args;
use std::path::PathBuf;

// The options of every command that has a result.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct FormArgs {
    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long)]
    pub json: bool,

    /// Write to FILE, whole or not at all, instead of to standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Name this host in the JSON too; without it only the text on the terminal does
    #[arg(long)]
    pub host_name: bool,

    /// Record the counters of this machine meanwhile to FILE; its name should end in .trec
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}
