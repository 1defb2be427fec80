//! Options of `terrace proof`: two recordings, the claim, and the counters to show. `explain`
//! decides which counters belong to a claim.

use clap::Args;
use std::path::PathBuf;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_one_short_line() {
        assert_eq!(claim(" a \n b "), Ok("a b".to_owned()));
        assert!(claim(" ").is_err() && claim(&"x".repeat(301)).is_err());
    }
}
