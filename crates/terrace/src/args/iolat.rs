//! Options of `terrace measure iolat`. The short ones are those of ioping, so that its command
//! lines work here. The probe finds out what PATH is.

use super::probe::ProbeArgs;
use super::value;
use clap::Args;
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct IolatArgs {
    /// A directory, a file or a block device
    pub path: PathBuf,

    /// Stop after this many requests
    #[arg(short = 'c', long, value_name = "COUNT", value_parser = value::count, allow_hyphen_values = true)]
    pub count: Option<u64>,

    /// From the start of one request to the start of the next; 0 is back to back (default: 10ms;
    /// ioping waits 1s)
    #[arg(short = 'i', long, value_name = "DURATION", value_parser = value::pause, allow_hyphen_values = true)]
    pub interval: Option<Duration>,

    /// Size of a request
    #[arg(short = 's', long, value_name = "SIZE", default_value = "4k", value_parser = value::size, allow_hyphen_values = true)]
    pub size: Bytes,

    /// Spread the requests over this much of the file or device
    #[arg(short = 'S', long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub working_set: Option<Bytes>,

    /// Bypass the page cache (O_DIRECT)
    #[arg(short = 'D', long, conflicts_with = "cached")]
    pub direct: bool,

    /// Read through the page cache, warm; without it and -D the scratch file is evicted first
    #[arg(short = 'C', long)]
    pub cached: bool,

    /// Keep N random reads in flight, always direct, until the time ends (default: 1, one after the
    /// other)
    #[arg(long, value_name = "N", value_parser = value::depth, allow_hyphen_values = true)]
    pub iodepth: Option<u32>,

    /// Write instead of reading; only to a scratch file, so PATH must be a directory
    #[arg(short = 'W', long)]
    pub write: bool,

    /// Requests before the first that counts
    #[arg(short = 'a', long, value_name = "COUNT", value_parser = value::count, allow_hyphen_values = true)]
    pub warmup: Option<u64>,

    /// Stop after this time; the same as --budget
    #[arg(short = 'w', long, value_name = "DURATION", conflicts_with = "budget", value_parser = value::budget, allow_hyphen_values = true)]
    pub deadline: Option<Duration>,

    /// Leave the histogram out
    #[arg(short = 'q', long)]
    pub quiet: bool,

    /// What all probes share.
    #[command(flatten)]
    pub probe: ProbeArgs,
}
