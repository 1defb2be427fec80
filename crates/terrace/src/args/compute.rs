//! Options of `terrace measure compute`. Only the length of the run can be changed: the control
//! must be the same everywhere.

use super::probe::ProbeArgs;
use super::value;
use clap::Args;

#[derive(Clone, Debug, Args)]
pub struct ComputeArgs {
    /// Iterations of one trial
    #[arg(long, value_name = "COUNT", value_parser = value::count, allow_hyphen_values = true)]
    pub iterations: Option<u64>,

    /// What all probes share.
    #[command(flatten)]
    pub probe: ProbeArgs,
}
