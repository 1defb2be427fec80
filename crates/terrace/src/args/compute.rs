//! What `terrace measure compute` can be told. Only the length of the run changes: the
//! control must stay the same everywhere.

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
