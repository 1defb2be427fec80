//! Options of `terrace ramdisk`: the directory, the size and the time. The probe checks that the
//! machine has the memory.

use super::shared::FormArgs;
use super::value;
use clap::{Args, Subcommand};
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

// What can be done with RAM disks.
#[derive(Clone, Debug, Subcommand)]
pub enum Ramdisk {
    Why(WhyArgs),
}

/// Say why writing to a RAM disk is slow
///
/// Writes memory that was free as new, as new again, and over itself, page by page, times each page
/// and reads the counters of the machine and of the own control groups meanwhile. Then it names the
/// cause: memory that was there already, a host that finds memory only when it is touched, a host
/// that swaps, this machine's swap, the limit of a group, memory that had to be freed or moved
/// together first, another node's memory, or a processor that others had; with what clears the
/// others.
#[derive(Clone, Debug, Args)]
pub struct WhyArgs {
    /// A directory on the RAM disk (tmpfs); without it, shared memory, which is the same file
    /// system
    #[arg(value_name = "MOUNT")]
    pub mount: Option<PathBuf>,

    /// How much each pass writes; without it at most 1 GiB, an eighth of what is available, and
    /// half of what a group has left. With it the limit of a group may be exceeded
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub size: Option<Bytes>,

    /// Stop writing after this time and judge what there is
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = value::budget, allow_hyphen_values = true)]
    pub budget: Duration,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}
