//! Options of the commands that read recordings. What leaves the machine (a page, an export, a
//! card) is meant to be shared, so it is redacted unless `--no-redact` is given. `command` finds
//! the ends of a part in the recording; `explain` decides which counters belong to a claim.

use super::choice::{self, EventFamily};
use super::compare::Align;
use super::shared::TargetArgs;
use super::value::{self, Moment, NamedPart};
use clap::Args;
use record::export::Exporter;
use record::import::Form;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// A recording, or the directory of a flight recorder (default: the flight recorder that runs
    /// here)
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Explain only what came after T
    #[arg(long, value_name = "T", value_parser = value::moment, allow_hyphen_values = true)]
    pub from: Option<Moment>,

    /// Explain only what came before T
    #[arg(long, value_name = "T", value_parser = value::moment, allow_hyphen_values = true)]
    pub to: Option<Moment>,

    /// Explain that minute (14:32), the ten seconds around T (14:32:05, 12.5s) or around the mark
    /// of this text, or from T to T (14:30..14:35)
    #[arg(long, value_name = "T", value_parser = value::part, conflicts_with_all = ["from", "to"], allow_hyphen_values = true)]
    pub at: Option<NamedPart>,

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

#[derive(Clone, Debug, Args)]
pub struct ViewArgs {
    /// A recording, or the directory of a flight recorder (default: the flight recorder that runs
    /// here)
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// A second one, drawn over the first and compared with it
    #[arg(value_name = "FILE2")]
    pub second: Option<PathBuf>,

    /// Two more at most: three or four are laid over each other, a colour for each
    #[arg(value_name = "MORE", num_args = 0..=2, conflicts_with_all = ["align", "live"])]
    pub more: Vec<PathBuf>,

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

#[derive(Clone, Debug, Args)]
pub struct TopArgs {
    /// A recording, also one that is being written, or the directory of a flight recorder (default:
    /// this machine, now)
    #[arg(value_name = "FILE", conflicts_with_all = ["target", "rate", "trace"])]
    pub file: Option<PathBuf>,

    /// Show what the flight recorder of this machine, or of this user, has kept
    #[arg(long, conflicts_with_all = ["file", "target", "rate", "trace"])]
    pub recorder: bool,

    /// The target.
    #[command(flatten)]
    pub target: TargetArgs,

    /// Print one screen and end; needs no terminal. What goes on here is watched for three seconds
    /// first
    #[arg(long)]
    pub once: bool,

    /// Samples a second, 1 to 100
    #[arg(long, value_name = "HZ", value_parser = value::rate, default_value = "5", allow_hyphen_values = true)]
    pub rate: u32,

    /// Kernel events to follow, separated by commas, or `none` (default: as of `run`)
    #[arg(long, value_name = "EVENTS", value_parser = choice::EVENTS, value_delimiter = ',')]
    pub trace: Vec<EventFamily>,
}

#[derive(Clone, Debug, Args)]
pub struct ProofArgs {
    /// The recording before
    #[arg(value_name = "FILE")]
    pub first: PathBuf,

    /// The recording after
    #[arg(value_name = "FILE")]
    pub second: PathBuf,

    /// What is claimed, in words
    #[arg(long, value_name = "TEXT", value_parser = claim)]
    pub claim: String,

    /// A counter to show (repeatable); without it those that belong to the claim. docs/counters.md
    /// lists them
    #[arg(long = "counter", value_name = "NAME")]
    pub counters: Vec<String>,

    /// Write the card as one HTML file that needs no network, instead of printing Markdown
    #[arg(long, value_name = "FILE", conflicts_with = "output", help_heading = "Output")]
    pub html: Option<PathBuf>,

    /// Write the Markdown to FILE, whole or not at all, instead of to standard output; `-` is
    /// standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// The longest claim: a card is small.
const LONGEST_CLAIM: usize = 300;

fn claim(text: &str) -> Result<String, String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.chars().count() {
        1..=LONGEST_CLAIM => Ok(text),
        _ => Err(format!("a claim is a text of 1 to {LONGEST_CLAIM} letters")),
    }
}

/// A form in which something is exported.
#[derive(Clone, Copy, Debug)]
pub enum ExportForm {
    /// Of a recording as a whole.
    Recording(&'static dyn Exporter),
    /// Of single accesses.
    OracleGeneral,
}

#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// A recording, or the directory of a flight recorder; for `oracle-general` also a trace of
    /// another tool
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The format
    #[arg(long, value_parser = choice::FORMATS, value_name = "FORM")]
    pub to: ExportForm,

    /// The columns of a CSV in their order, separated by commas, with `*` for any text: `time,
    /// pressure.*`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,

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

#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// The output of the tool: `sadf -j`, the JSON of fio, a log of fio, `vmstat N` or `iostat N`;
    /// `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The tool that wrote it, if its first lines do not show that
    #[arg(long, value_parser = choice::TOOLS, value_name = "TOOL")]
    pub from: Option<Form>,

    /// The time between two reports of vmstat or iostat without time stamps (-t); 1s if it is not
    /// given
    #[arg(long, value_name = "TIME", value_parser = value::budget)]
    pub interval: Option<Duration>,

    /// Where to
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_one_short_line() {
        assert_eq!(claim(" a \n b "), Ok("a b".to_owned()));
        assert!(claim(" ").is_err() && claim(&"x".repeat(301)).is_err());
    }
}
