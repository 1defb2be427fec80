//! Options of `terrace lab run recovery-2012`: memory, applications and repeats. The experiment
//! checks that the machine has the memory.

use crate::args::value;
use clap::Args;
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

/// How long until a machine is back to normal after memory was short?
///
/// Everything happens in a memory group of its own, with a swap file of its own, both removed at
/// the end. The results are kept in a directory: result.json and one recording for each time, for
/// `terrace explain`. Needs root.
#[derive(Clone, Debug, Args)]
pub struct RecoveryArgs {
    /// Where the results are kept; a directory that does not exist yet or is empty (default:
    /// lab-recovery-2012)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// The disk that is measured: this directory holds the swap file and the databases (default:
    /// that of --out)
    #[arg(long, value_name = "DIR")]
    pub disk: Option<PathBuf>,

    /// Only these applications, separated by commas (default: all that are installed)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub app: Vec<String>,

    /// Memory of the group
    #[arg(long, value_name = "SIZE", default_value = "256m", value_parser = value::size, allow_hyphen_values = true, conflicts_with = "whole_machine")]
    pub memory: Bytes,

    /// Memory that the application uses (default: three quarters of the memory)
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub working_set: Option<Bytes>,

    /// How often the two hogs are launched
    #[arg(long, value_name = "N", default_value = "25", value_parser = value::repeats, allow_hyphen_values = true)]
    pub repeat: u32,

    /// How often each method is tried, in turn with the others; 4 are needed to prove a difference
    #[arg(long, value_name = "N", default_value = "4", value_parser = value::repeats, allow_hyphen_values = true)]
    pub runs: u32,

    /// Give up waiting for a method after this time
    #[arg(long, value_name = "DURATION", default_value = "5min", value_parser = value::budget, allow_hyphen_values = true)]
    pub limit: Duration,

    /// Make memory short on the whole machine instead of in a group: for a machine that has nothing
    /// else to do
    #[arg(long)]
    pub whole_machine: bool,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long)]
    pub json: bool,
}

impl RecoveryArgs {
    /// The options of the experiment.
    pub fn options(&self) -> lab::recovery::RecoveryOptions {
        lab::recovery::RecoveryOptions {
            out: self.out.clone(),
            disk: self.disk.clone(),
            applications: self.app.clone(),
            memory: self.memory,
            working_set: self.working_set,
            rounds: self.repeat,
            runs: self.runs,
            limit: self.limit,
            whole_machine: self.whole_machine,
        }
    }
}
