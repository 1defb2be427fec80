//! Options of `terrace measure seqio`; the long ones are those of fio if fio has them. The probe
//! finds out whether PATH can be written.

use super::probe::ProbeArgs;
use super::value;
use clap::Args;
use model::Bytes;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub struct SeqioArgs {
    /// A directory, a file or a block device
    pub path: PathBuf,

    /// Size of a request
    #[arg(long, value_name = "SIZE", default_value = "1m", value_parser = value::size, allow_hyphen_values = true)]
    pub bs: Bytes,

    /// Size of the scratch file, or how much to read
    #[arg(long, value_name = "SIZE", default_value = "256m", value_parser = value::size, allow_hyphen_values = true)]
    pub size: Bytes,

    /// Requests in flight, for --direct
    #[arg(long, value_name = "N", value_parser = value::depth, allow_hyphen_values = true)]
    pub iodepth: Option<u32>,

    /// Through the page cache (this is the default)
    #[arg(long, group = "mode")]
    pub buffered: bool,

    /// Bypass the page cache (O_DIRECT)
    #[arg(long, group = "mode")]
    pub direct: bool,

    /// Through the page cache, and dropped from it at once (RWF_DONTCACHE)
    #[arg(long, group = "mode")]
    pub uncached: bool,

    /// What all probes share.
    #[command(flatten)]
    pub probe: ProbeArgs,
}
