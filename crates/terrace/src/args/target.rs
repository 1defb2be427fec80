//! Target selection (`--pid`, `--unit`, `--cgroup`), shared by `record` and `top`.
//! Without one of them the whole machine is recorded.

use super::value;
use clap::Args;
use std::path::PathBuf;

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
