//! Options of `terrace measure faults`: how much memory is touched, by which methods, and how long
//! it is left alone. The probe checks that the machine has it.

use super::choice;
use super::probe::ProbeArgs;
use super::value;
use clap::Args;
use measure::faults::TouchMethod;
use model::Bytes;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct FaultsArgs {
    /// Touch at most this much memory
    #[arg(long, value_name = "SIZE", default_value = "512m", value_parser = value::size, allow_hyphen_values = true)]
    pub limit: Bytes,

    /// Pause between freeing memory and touching it again
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = value::pause, allow_hyphen_values = true)]
    pub wait: Duration,

    /// Ways to touch it first
    #[arg(
        long = "way",
        value_name = "WAYS",
        value_delimiter = ',',
        value_parser = choice::WAYS,
        default_value = "4k,thp,populate"
    )]
    pub ways: Vec<TouchMethod>,

    /// What all probes share.
    #[command(flatten)]
    pub probe: ProbeArgs,
}
