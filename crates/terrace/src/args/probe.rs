//! Options that all probes of `measure` share: time, processor, output format. Each probe has a
//! default budget; no run is unbounded.

use super::form::FormArgs;
use super::value;
use clap::Args;
use std::time::Duration;

// How long, where and in which form a probe runs.
#[derive(Clone, Debug, Args)]
pub struct ProbeArgs {
    /// Stop measuring after this time, and print what there is (default: 20s for memcpy, 45s for
    /// memlat, 30s for faults, 5s for compute, 10s for iolat and seqio)
    #[arg(long, value_name = "DURATION", value_parser = value::budget, allow_hyphen_values = true)]
    pub budget: Option<Duration>,

    /// Run on this processor (default: the first that this process may use)
    #[arg(long, value_name = "N", value_parser = value::cpu, allow_hyphen_values = true)]
    pub cpu: Option<usize>,

    /// Print comma-separated values, one line for each measurement
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub csv: bool,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}
