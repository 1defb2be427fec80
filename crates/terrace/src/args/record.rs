//! Options of `terrace record`: the target, the duration and the file. Those of sampling are shared
//! with `run`.

use super::shared::TargetArgs;
use super::shared::WatchArgs;
use super::value;
use clap::Args;
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct RecordArgs {
    /// Record for this long (default: until Ctrl-C)
    #[arg(long = "for", value_name = "DURATION", value_parser = value::budget, allow_hyphen_values = true)]
    pub duration: Option<Duration>,

    /// The target.
    #[command(flatten)]
    pub target: TargetArgs,

    /// Keep the last DURATION in a directory of files, and remove older data
    #[arg(long, value_name = "DURATION", value_parser = value::budget, allow_hyphen_values = true)]
    pub keep: Option<Duration>,

    /// The most that --keep may take
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "1g", requires = "keep", allow_hyphen_values = true)]
    pub keep_bytes: Bytes,

    /// Try the first remedy that can be changed here and put back, in turn with how it is: each
    /// recording lasts --for and --work says how much was done in it
    #[arg(long = "try", requires_all = ["duration", "work"], conflicts_with_all = ["keep", "output"])]
    pub attempt: bool,

    /// Keep what --try changed, if it is proven to help
    #[arg(long, requires = "attempt")]
    pub keep_change: bool,

    /// Also keep single requests to block devices and pages of files that come, go and are read,
    /// of the whole machine, in at most SIZE; when they are too many, a share of them (default
    /// without SIZE: 256m). As root
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = value::size,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "256m",
        conflicts_with_all = ["keep", "attempt"]
    )]
    pub accesses: Option<Bytes>,

    /// Where to record to; its name should end in .trec. With --keep a directory (default: that of
    /// the flight recorder of this machine, or of this user)
    #[arg(
        short,
        long,
        value_name = "FILE",
        required_unless_present_any = ["attempt", "keep"],
        help_heading = "Output"
    )]
    pub output: Option<PathBuf>,

    /// Sampling and events.
    #[command(flatten)]
    pub watch: WatchArgs,
}
