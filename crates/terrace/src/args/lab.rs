//! Options of `terrace lab`: the action, and the options of each experiment. An experiment defines
//! what is done and checks that the machine has the memory; the caller chooses time and sizes.

use super::value;
use ::lab::working_set::Layout;
use clap::{Args, Subcommand};
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

// What can be done with the experiments.
#[derive(Clone, Debug, Subcommand)]
pub enum Lab {
    /// List the experiments
    List,
    /// Show what an experiment repeats, what it cannot, and what it does to this machine
    Show {
        /// Its name, as in `lab list`
        name: String,
    },
    /// Repeat an experiment on this machine, beside the original's figures
    #[command(subcommand_value_name = "EXPERIMENT", subcommand_help_heading = "Experiments")]
    Run {
        /// Which one.
        #[command(subcommand)]
        experiment: Experiment,
    },
}

/// The experiments; the doc comment of each `Args` is its help.
#[derive(Clone, Debug, Subcommand)]
pub enum Experiment {
    #[command(name = "file-copy-2008")]
    FileCopy2008(FileCopyArgs),
    #[command(name = "memory-copy-2001")]
    MemoryCopy2001(MemoryCopyArgs),
    #[command(name = "ramdisk-puzzle")]
    RamdiskPuzzle(RamdiskPuzzleArgs),
    #[command(name = "recovery-2012")]
    Recovery2012(Box<RecoveryArgs>),
}

// The helper processes of `lab`.
#[derive(Clone, Debug, Subcommand)]
pub enum LabProcess {
    /// Join a group, end with the parent, become another program
    Member {
        /// The group's directory (default: no other group)
        #[arg(long)]
        group: Option<PathBuf>,
        /// Whose process it becomes, UID:GID (default: as now)
        #[arg(long, value_parser = user)]
        user: Option<(u32, u32)>,
        /// The program and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        words: Vec<std::ffi::OsString>,
    },
    /// Keep a directory with a swap file until the input ends
    Workplace {
        /// The directory, which does not exist
        directory: PathBuf,
        /// The size of the swap
        bytes: u64,
        /// A directory on flash, for one more that is kept (default: none)
        #[arg(long)]
        flash: Option<PathBuf>,
    },
    /// Keep a directory until the input ends
    Directory {
        /// The directory, which does not exist
        directory: PathBuf,
    },
    /// Write a working set and answer requests
    WorkingSet {
        /// Its size
        bytes: u64,
        /// The order of its pages: contiguous, scattered or half
        layout: Layout,
    },
}

fn user(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.split_once(':').map(|(uid, gid)| (uid.parse(), gid.parse()));
    match numbers {
        Some((Ok(uid), Ok(gid))) => Ok((uid, gid)),
        _ => Err("a user is UID:GID".to_owned()),
    }
}

/// Cached or not: what does a copy of 69 files do to disks, memory and others?
///
/// Copies 69 files three times: through the page cache as a file manager, past it by two threads as
/// in 2008, and as `terrace copy` does. Keeps a recording of each and one page that lays them over
/// each other. Needs no root.
#[derive(Clone, Debug, Args)]
pub struct FileCopyArgs {
    /// Make the files in this directory, on the disk that is read
    #[arg(long, value_name = "DIR", required_unless_present = "files")]
    pub from: Option<PathBuf>,

    /// Copy them to this directory, on the disk that is written
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,

    /// Copy the files of this directory instead of making some; they leave the page cache
    #[arg(long, value_name = "DIR", conflicts_with_all = ["from", "size"])]
    pub files: Option<PathBuf>,

    /// The size of all files that are made
    #[arg(long, value_name = "SIZE", default_value = "2480m", value_parser = value::size, allow_hyphen_values = true)]
    pub size: Bytes,

    /// Keep result.json, the recordings and the page in DIR, which does not exist yet or is empty
    /// (default: lab-file-copy-2008)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long)]
    pub json: bool,
}

impl FileCopyArgs {
    /// The options of the experiment.
    pub fn options(&self) -> ::lab::file_copy::FileCopyOptions {
        ::lab::file_copy::FileCopyOptions {
            from: self.from.clone(),
            to: self.to.clone(),
            files: self.files.clone(),
            out: self.out.clone(),
            size: self.size,
        }
    }
}

/// How fast does memory move, and why do two systems differ?
///
/// Seven methods copy 16 MiB 8 times, beside the figures of 2001 and with its control; then block
/// size, stride, page size and page tables; then what moves the data here and what limits each
/// method, by experiment. Needs no root and changes nothing.
#[derive(Clone, Debug, Args)]
pub struct MemoryCopyArgs {
    /// Keep result.json and a recording of the machine in DIR, which does not exist yet or is empty
    /// (default: only shown)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Time for everything; with less, more results are unproven
    #[arg(long, value_name = "DURATION", default_value = "50s", value_parser = value::budget, allow_hyphen_values = true)]
    pub budget: Duration,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long)]
    pub json: bool,
}

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
    pub fn options(&self) -> ::lab::ramdisk_puzzle::RamDiskPuzzleOptions {
        ::lab::ramdisk_puzzle::RamDiskPuzzleOptions {
            out: self.out.clone(),
            disk: self.disk.clone(),
            ramdisk: self.ramdisk.clone(),
            unit: self.unit,
            limit: self.limit,
        }
    }
}

/// How long until a machine is back to normal after memory was short?
///
/// Everything happens in a memory group of its own, with a swap file of its own, both removed at
/// the end. The results are kept in a directory: result.json and one recording for each time, for
/// `terrace explain`. Needs root.
#[derive(Clone, Debug, Args)]
pub struct RecoveryArgs {
    /// Where the results are kept; a directory that does not exist yet or is empty (default:
    /// lab-recovery-2012)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// The disk that is measured: this directory holds the swap file and the databases (default:
    /// that of --out)
    #[arg(long, value_name = "DIR")]
    pub disk: Option<PathBuf>,

    /// Only these applications, separated by commas (default: all that are installed)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub app: Vec<String>,

    /// Only these ways, separated by commas (default: all; those with a flash cache need --flash)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub way: Vec<String>,

    /// Also try a flash cache before the files of the databases: this directory on a stick or an
    /// SSD holds it (default: none)
    #[arg(long, value_name = "DIR")]
    pub flash: Option<PathBuf>,

    /// Memory of the group
    #[arg(long, value_name = "SIZE", default_value = "256m", value_parser = value::size, allow_hyphen_values = true, conflicts_with = "whole_machine")]
    pub memory: Bytes,

    /// Memory that the application uses (default: three quarters of the memory)
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub working_set: Option<Bytes>,

    /// How often the two hogs are launched
    #[arg(long, value_name = "N", default_value = "25", value_parser = value::repeats, allow_hyphen_values = true)]
    pub repeat: u32,

    /// How often each method is tried, in turn with the others; 4 are needed to prove a difference
    #[arg(long, value_name = "N", default_value = "4", value_parser = value::repeats, allow_hyphen_values = true)]
    pub runs: u32,

    /// Give up waiting for a method after this time
    #[arg(long, value_name = "DURATION", default_value = "5min", value_parser = value::budget, allow_hyphen_values = true)]
    pub limit: Duration,

    /// Make memory short on the whole machine instead of in a group: for a machine that has nothing
    /// else to do
    #[arg(long)]
    pub whole_machine: bool,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long)]
    pub json: bool,
}

impl RecoveryArgs {
    /// The options of the experiment.
    pub fn options(&self) -> ::lab::recovery::RecoveryOptions {
        ::lab::recovery::RecoveryOptions {
            out: self.out.clone(),
            disk: self.disk.clone(),
            applications: self.app.clone(),
            memory: self.memory,
            working_set: self.working_set,
            rounds: self.repeat,
            runs: self.runs,
            limit: self.limit,
            whole_machine: self.whole_machine,
            flash: self.flash.clone(),
            ways: self.way.clone(),
        }
    }
}
