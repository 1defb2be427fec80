//! The arguments of `terrace copy`: what, where to, and by which engine. Whether that makes sense
//! is found out by `place::copy::plan`.

use super::choice;
use super::shared::FormArgs;
use super::value;
use clap::Args;
use model::Bytes;
use model::copy_gauges::CopyEngine;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub struct CopyArgs {
    /// What to copy; as with `cp -a`, `SRC/.` means the entries of SRC
    #[arg(value_name = "SRC", required = true, num_args = 1..)]
    pub sources: Vec<PathBuf>,

    /// Where to: a directory that exists, or the name of the copy
    #[arg(value_name = "DST")]
    pub target: PathBuf,

    /// Replace files only by newer ones, or by others of another length
    #[arg(short, long, conflicts_with = "no_clobber")]
    pub update: bool,

    /// Keep files that exist
    #[arg(short, long)]
    pub no_clobber: bool,

    /// Leave out other file systems below SRC
    #[arg(short = 'x', long)]
    pub one_file_system: bool,

    /// Read the copy back past the cache, and compare checksums, before it gets its name; with
    /// --eject after that, by a new mount
    #[arg(long)]
    pub verify: bool,

    /// Leave the copy in the page cache
    #[arg(long)]
    pub keep_cached: bool,

    /// Move at most this many bytes a second: `100m`
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub limit_rate: Option<Bytes>,

    /// Unmount the target's file system when the copy is durable, and say whether its disk is safe
    /// to unplug
    #[arg(long)]
    pub eject: bool,

    /// Give way to others: one small request at a time while they use the disks, little processor
    /// time while they run
    #[arg(long)]
    pub background: bool,

    /// Do not wait for another copy on the same rotating or removable disk
    #[arg(long)]
    pub now: bool,

    /// Copy everything again that an interrupted run of the same command completed
    #[arg(long)]
    pub restart: bool,

    /// Leave out what the target cannot hold: names, files of 4 GiB on FAT; else nothing is copied
    #[arg(long)]
    pub skip_unfit: bool,

    /// Use only this engine, for experiments; by default the best one for each file
    #[arg(long, value_name = "ENGINE", value_parser = choice::COPY_ENGINES)]
    pub engine: Option<CopyEngine>,

    /// Only say what would be copied where
    #[arg(long)]
    pub dry_run: bool,

    /// Record this machine and the copy to FILE; its name should end in .trec
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub log: Option<PathBuf>,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}
