//! Options of `terrace lab run memory-copy-2001`. The original defines what is copied and how
//! often; the caller chooses the time.

use crate::args::value;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// How fast does memory move, and why do two systems differ?
///
/// Seven methods copy 16 MiB 8 times, beside the figures of 2001 and with its control; then block
/// size, stride, page size and page tables; then what moves the data here and what limits each
/// method, by experiment. Needs no root and changes nothing.
#[derive(Clone, Debug, Args)]
pub struct MemoryCopyArgs {
    /// Keep result.json and a recording of the machine in DIR, which does not exist yet or is empty
    /// (default: only shown)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Time for everything; with less, more results are unproven
    #[arg(long, value_name = "DURATION", default_value = "50s", value_parser = value::budget, allow_hyphen_values = true)]
    pub budget: Duration,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long)]
    pub json: bool,
}

impl MemoryCopyArgs {
    /// The options of the experiment; `main_memory_bytes` is a buffer that no cache holds.
    pub fn options(&self, main_memory_bytes: u64) -> lab::memory_copy::MemoryCopyOptions {
        lab::memory_copy::MemoryCopyOptions {
            out: self.out.clone(),
            budget: self.budget,
            main_memory_bytes,
        }
    }
}
