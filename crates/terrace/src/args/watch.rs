//! Options of sampling, shared by `run` and `record`: rate, events, settings. `top` has a rate
//! and events of its own.

use super::choice::{self, EventFamily};
use super::value;
use clap::Args;

// Sampling and events.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Watching")]
pub struct WatchArgs {
    /// Samples a second, 1 to 100
    #[arg(long, value_name = "HZ", value_parser = value::rate, default_value = "10", allow_hyphen_values = true)]
    pub rate: u32,

    /// Take 100 samples a second for a short time whenever something stalls
    #[arg(long)]
    pub burst: bool,

    /// Kernel events to follow, separated by commas, or `none` (default:
    /// sched,block,vmscan,writeback as root; an ordinary user cannot follow any)
    #[arg(long, value_name = "EVENTS", value_parser = choice::EVENTS, value_delimiter = ',')]
    pub trace: Vec<EventFamily>,

    /// Switch kernel.task_delayacct on, so that the kernel counts waits for devices, and off again
    /// at the end
    #[arg(long)]
    pub apply: bool,

    /// Replace an existing recording; any other file is never replaced
    #[arg(long)]
    pub force: bool,
}
