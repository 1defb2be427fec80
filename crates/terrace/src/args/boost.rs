//! Options of `terrace boost`: what is qualified, and beside which disk. The probe finds out what
//! the path is and whether there is room.

use super::shared::FormArgs;
use super::value;
use clap::{Args, Subcommand};
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

// What can be done about caches on flash.
#[derive(Clone, Debug, Subcommand)]
pub enum Boost {
    Qualify(QualifyArgs),
    Receipt(ReceiptArgs),
}

impl Boost {
    /// The command, as error messages name it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Qualify(_) => "boost qualify",
            Self::Receipt(_) => "boost receipt",
        }
    }
}

/// Say whether a stick would help as a cache, with figures
///
/// Measures random reads and writes, reads while writing, the burst and the rate of writing that
/// lasts, and how much of the claimed capacity is there, in one nameless file beside your files;
/// nothing is left of it. Then it reads your disk and compares. As root it also finds a stick that
/// lies about its size before it harms much, and the erase block. A block device is only read.
#[derive(Clone, Debug, Args)]
pub struct QualifyArgs {
    /// A directory on the stick, or its block device
    #[arg(value_name = "PATH")]
    pub path: PathBuf,

    /// The disk that it would help: a block device, or a directory on it [default: the disk of the
    /// root file system]
    #[arg(long = "for", value_name = "DEV")]
    pub compare_with: Option<PathBuf>,

    /// Bytes of the nameless file, at least 16m
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = value::size, allow_hyphen_values = true)]
    pub size: Bytes,

    /// The longest that it takes
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = value::budget, allow_hyphen_values = true)]
    pub budget: Duration,

    /// Write and read back all the room there is, however long that takes
    #[arg(long, conflicts_with_all = ["size", "budget"])]
    pub full: bool,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

/// Say what the caches of this machine have spared, by their own counters
///
/// bcache, dm-cache (also LVM's, as root by `dmsetup`) and ZFS' L2ARC: hits and misses, what is
/// dirty, what was written to the device, and the seconds that the hits spared. Reads counters and
/// changes nothing.
#[derive(Clone, Debug, Args)]
pub struct ReceiptArgs {
    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// Write to FILE, whole or not at all, instead of to standard output; `-` is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}
