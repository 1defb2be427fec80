//! Options of `terrace top`: this machine or a recording, and the sampling. Keys choose what it
//! shows.

use super::choice::{self, EventFamily};
use super::shared::TargetArgs;
use super::value;
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub struct TopArgs {
    /// A recording, also one that is being written, or the directory of a flight recorder (default:
    /// this machine, now)
    #[arg(value_name = "FILE", conflicts_with_all = ["target", "rate", "trace"])]
    pub file: Option<PathBuf>,

    /// The target.
    #[command(flatten)]
    pub target: TargetArgs,

    /// Samples a second, 1 to 100
    #[arg(long, value_name = "HZ", value_parser = value::rate, default_value = "5", allow_hyphen_values = true)]
    pub rate: u32,

    /// Kernel events to follow, separated by commas: they name the cause of each wait, and cost
    /// more than the rest together
    #[arg(long, value_name = "EVENTS", value_parser = choice::EVENTS, value_delimiter = ',')]
    pub trace: Vec<EventFamily>,
}
