//! Options of `terrace view`: the recordings, and whether they go to a browser or to a file. A file
//! is meant to be shared, so it is redacted unless `--no-redact` is given.

use super::compare::Align;
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub struct ViewArgs {
    /// A recording, or the directory of a flight recorder
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// A second one, drawn over the first and compared with it
    #[arg(value_name = "FILE2")]
    pub second: Option<PathBuf>,

    /// Draw FILE2 by `time`, or where it had done as much work as FILE: by `progress`, as `compare
    /// --align` does
    #[arg(long, value_name = "BY", value_parser = Align::parse, default_value = "time", requires = "second")]
    pub align: Align,

    /// Follow FILE, or the newest of a flight recorder, which is being recorded now
    #[arg(long, conflicts_with_all = ["second", "html", "redact"])]
    pub live: bool,

    /// Only print the address. Root's browser is never opened
    #[arg(long, conflicts_with = "html")]
    pub no_browser: bool,

    /// Replace command lines, names and paths by stand-ins; the default of --html
    #[arg(long, conflicts_with = "no_redact")]
    pub redact: bool,

    /// Keep command lines, names and paths in the file of --html
    #[arg(long, requires = "html")]
    pub no_redact: bool,

    /// Write the page to FILE, whole or not at all, instead of serving it; `-` is standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
}

impl ViewArgs {
    /// Whether names and paths are replaced.
    pub fn is_redacted(&self) -> bool {
        self.redact || (self.html.is_some() && !self.no_redact)
    }
}
