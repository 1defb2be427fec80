//! Options of `terrace export`. An export is meant to be shared, so it is redacted unless
//! `--no-redact` is given.

use super::choice;
use clap::Args;
use record::export::Exporter;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// A recording, or the directory of a flight recorder
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The format
    #[arg(long, value_parser = choice::FORMATS, value_name = "FORM")]
    pub to: &'static dyn Exporter,

    /// Replace command lines, names and paths by stand-ins; this is the default
    #[arg(long, conflicts_with = "no_redact")]
    pub redact: bool,

    /// Keep command lines, names and paths
    #[arg(long)]
    pub no_redact: bool,

    /// Write to FILE, whole or not at all, instead of to standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}
