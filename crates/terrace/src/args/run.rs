//! Options of `terrace run`. Everything from the first word that is not an option belongs to the
//! command.

use super::shared::WatchArgs;
use super::value;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
#[command(override_usage = "terrace run [OPTIONS] [--] CMD [ARGS]...")]
pub struct RunArgs {
    /// Sampling and events.
    #[command(flatten)]
    pub watch: WatchArgs,

    /// Do not give the command a control group of its own
    #[arg(long, help_heading = "Watching")]
    pub no_group: bool,

    /// Run it N times; the verdict is that of the median run (with --against 10 times each)
    #[arg(long, visible_alias = "runs", value_name = "N", value_parser = value::repeats, allow_hyphen_values = true, help_heading = "Repeating")]
    pub repeat: Option<u32>,

    /// Run this command too, in turn, and say whether it takes longer or less, and why; it is taken
    /// apart without a shell
    #[arg(long, value_name = "CMD2", value_parser = value::command_line, help_heading = "Repeating")]
    pub against: Option<Words>,

    /// Try the first remedy that can be changed here and put back, in turn with how it is, and say
    /// what it brings (4 runs of each)
    #[arg(long = "try", conflicts_with = "against", help_heading = "Repeating")]
    pub attempt: bool,

    /// Keep what --try changed, if it is proven to help
    #[arg(long, requires = "attempt", help_heading = "Repeating")]
    pub keep_change: bool,

    /// Run this with `sh -c` before each run; it is not measured
    #[arg(long, value_name = "SHELL COMMAND", help_heading = "Repeating")]
    pub prepare: Option<String>,

    /// Before each run read the files of --cache-file into the page cache (hot), or evict them, and
    /// only them (cold)
    #[arg(
        long,
        value_enum,
        value_name = "STATE",
        requires = "cache_files",
        help_heading = "Repeating"
    )]
    pub cache: Option<Cache>,

    /// A file, or a directory with all that is in it, for --cache (repeatable)
    #[arg(
        long = "cache-file",
        value_name = "PATH",
        requires = "cache",
        help_heading = "Repeating"
    )]
    pub cache_files: Vec<PathBuf>,

    /// Keep the recording in FILE; its name should end in .trec
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Show both bars with their numbers, all evidence, everything that was cleared, and what could
    /// not be seen
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    pub details: bool,

    /// Write the verdict as JSON to FILE too (docs/json.md describes it)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,

    /// Print no verdict
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,

    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, num_args = 1.., trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// A command line in words. A name of its own, because clap would take a `Vec` for several values.
type Words = Vec<OsString>;

impl RunArgs {
    /// How often the command is run: once, or often enough for a difference to show.
    pub fn repeats(&self) -> u32 {
        let usual = if self.against.is_some() { 10 } else { 1 };
        self.repeat.unwrap_or(usual)
    }
}

/// The state of the page cache before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cache {
    /// The named files are in it
    Hot,
    /// The named files are not in it
    Cold,
}
