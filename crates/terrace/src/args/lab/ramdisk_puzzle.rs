//! Options of `terrace lab run ramdisk-puzzle`: the directories, the sizes and the time. The
//! experiment checks that the machine has the memory.

use crate::args::value;
use clap::Args;
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

/// A RAM disk: why does 4 GB take 40 times as long as 2 GB?
///
/// Writes 1, 2, 4 and 8 units to memory, zeros and what does not compress, as far as this machine
/// bears it, times requests and reading back, and names the cause of what is slow here; then it
/// says which causes fit the original's figures, and which these cannot exclude. Needs no root.
#[derive(Clone, Debug, Args)]
pub struct RamdiskPuzzleArgs {
    /// Keep result.json and one recording for each size in DIR, which does not exist yet or is
    /// empty (default: only shown)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// A directory on the disk to compare with; six units are written there (default: no disk)
    #[arg(long, value_name = "DIR")]
    pub disk: Option<PathBuf>,

    /// A directory on the RAM disk whose requests are timed
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    pub ramdisk: PathBuf,

    /// The size used for the original's 1 GB
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = value::size, allow_hyphen_values = true)]
    pub unit: Bytes,

    /// The most time for each size
    #[arg(long, value_name = "DURATION", default_value = "2min", value_parser = value::budget, allow_hyphen_values = true)]
    pub limit: Duration,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long)]
    pub json: bool,
}

impl RamdiskPuzzleArgs {
    /// The options of the experiment.
    pub fn options(&self) -> lab::ramdisk_puzzle::RamDiskPuzzleOptions {
        lab::ramdisk_puzzle::RamDiskPuzzleOptions {
            out: self.out.clone(),
            disk: self.disk.clone(),
            ramdisk: self.ramdisk.clone(),
            unit: self.unit,
            limit: self.limit,
        }
    }
}
