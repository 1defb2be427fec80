//! Groups of options that several commands share: the form of a result, the target of a recording
//! (the whole machine without one), and the sampling of `run` and `record`.

use super::choice::{self, EventFamily};
use super::value;
use clap::Args;
use record::WorkSpec;
use std::path::PathBuf;

// The options of every command that has a result.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct FormArgs {
    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long)]
    pub json: bool,

    /// Write to FILE, whole or not at all, instead of to standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Name this host in the JSON too; without it only the text on the terminal does
    #[arg(long)]
    pub host_name: bool,

    /// Record the counters of this machine meanwhile to FILE; its name should end in .trec
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

// The target of a recording.
#[derive(Clone, Debug, Args)]
pub struct TargetArgs {
    /// Record this process and its children
    #[arg(long, value_name = "PID", group = "target", value_parser = value::pid, allow_hyphen_values = true)]
    pub pid: Option<u32>,

    /// Record a unit of systemd
    #[arg(long, value_name = "UNIT", group = "target")]
    pub unit: Option<String>,

    /// Record a control group: its path below the hierarchy, or its directory
    #[arg(long, value_name = "GROUP", group = "target")]
    pub cgroup: Option<PathBuf>,
}

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
    /// sched,block,vmscan,writeback,cpu,who as root; an ordinary user cannot follow any)
    #[arg(long, value_name = "EVENTS", value_parser = choice::EVENTS, value_delimiter = ',')]
    pub trace: Vec<EventFamily>,

    /// Also follow pages of files that are used again while they are in memory, so that `advise`
    /// says what less memory would cost. Each read that the page cache serves takes
    /// longer for it. As root
    #[arg(long)]
    pub hits: bool,

    /// Switch kernel.task_delayacct on, so that the kernel counts waits for devices, and off again
    /// at the end
    #[arg(long)]
    pub apply: bool,

    /// Also record how much work was done, by a counter: `pg:xact_commit`, `mysql:Com_commit`,
    /// `redis:total_commands_processed`, `nginx:http://127.0.0.1/stub_status`, `file:PATH[:KEY]` or
    /// `command:CMD`, which prints a number
    #[arg(long, value_name = "SPEC", value_parser = value::work)]
    pub work: Option<WorkSpec>,

    /// Replace an existing recording; any other file is never replaced
    #[arg(long)]
    pub force: bool,
}
