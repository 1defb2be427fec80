//! Options of `terrace mark`: the text of the mark.
//! Several words need no quotes.

use clap::Args;

#[derive(Clone, Debug, Args)]
pub struct MarkArgs {
    /// Its words
    #[arg(value_name = "TEXT", required = true, num_args = 1..)]
    pub text: Vec<String>,
}
