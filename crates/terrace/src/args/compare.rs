//! Options of `terrace compare`: the two sides, how they are aligned, and when a difference is a
//! failure.

use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "terrace compare [OPTIONS] A B\n       terrace compare [OPTIONS] --first A... --second B..."
)]
pub struct CompareArgs {
    /// The two to compare
    #[arg(value_name = "FILE", num_args = 2, required_unless_present = "first")]
    pub files: Vec<PathBuf>,

    /// The runs of the first side
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "second", conflicts_with = "files")]
    pub first: Vec<PathBuf>,

    /// The runs of the second side
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "first", conflicts_with = "files")]
    pub second: Vec<PathBuf>,

    /// Align two recordings by `time`, or by `progress`: the work that a counter counts
    /// (progress:tree.read_chars)
    #[arg(long, value_name = "BY", value_parser = Align::parse, default_value = "time")]
    pub align: Align,

    /// Exit with 4 if the second is proven worse by more than this: the wall time of recordings,
    /// any figure of surveys
    #[arg(long, value_name = "worse:SHARE", value_parser = gate)]
    pub fail_if: Option<Gate>,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long, conflicts_with = "markdown", help_heading = "Output")]
    pub json: bool,

    /// Print Markdown instead of text
    #[arg(long, help_heading = "Output")]
    pub markdown: bool,

    /// Write the comparison also to FILE as one page for a browser, both sides over each other; it
    /// needs no network
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,

    /// Keep command lines, names and paths in the page, which otherwise has stand-ins for them
    #[arg(long, requires = "html", help_heading = "Output")]
    pub no_redact: bool,

    /// Write to FILE, whole or not at all, instead of to standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// How two recordings are aligned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Align {
    /// By the clock.
    Time,
    /// By the work done: this series, or the usual one.
    Progress(Option<String>),
}

impl Align {
    /// Parses `time`, `progress` or `progress:SERIES`.
    ///
    /// # Errors
    /// For any other text.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "time" => Ok(Self::Time),
            None if text == "progress" => Ok(Self::Progress(None)),
            Some(("progress", series)) if !series.is_empty() => {
                Ok(Self::Progress(Some(series.to_owned())))
            }
            _ => Err("use time, progress or progress:SERIES".to_owned()),
        }
    }
}

/// The difference that is a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    /// Worse by more than this share.
    pub worse: f64,
}

fn gate(text: &str) -> Result<Gate, String> {
    let share = text.strip_prefix("worse:");
    let number = share.map(|share| share.strip_suffix('%').unwrap_or(share));
    let percent = number.and_then(|number| number.parse::<f64>().ok());
    match percent {
        Some(percent) if (0.0..=1000.0).contains(&percent) => Ok(Gate { worse: percent / 100.0 }),
        _ => Err("use worse: and a share from 0% to 1000%, as in worse:5%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_and_alignments() {
        assert_eq!(gate("worse:5%"), Ok(Gate { worse: 0.05 }));
        assert_eq!(gate("worse:12.5"), Ok(Gate { worse: 0.125 }));
        for wrong in ["5%", "worse:", "worse:x%", "worse:-1%", "worse:NaN", "better:5%"] {
            assert!(gate(wrong).is_err(), "{wrong}");
        }
        let align = Align::parse;
        assert_eq!(align("time"), Ok(Align::Time));
        assert_eq!(align("progress"), Ok(Align::Progress(None)));
        let series = Some("tree.read_chars".to_owned());
        assert_eq!(align("progress:tree.read_chars"), Ok(Align::Progress(series)));
        for wrong in ["", "progress:", "time:x", "bytes"] {
            assert!(align(wrong).is_err(), "{wrong}");
        }
    }
}
