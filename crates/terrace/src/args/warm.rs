//! The arguments of `terrace warm`: whose memory, which kinds of it, and how much may be used.
//! The command finds out whether that memory can be read.

use super::form::FormArgs;
use super::value::{self, SwapMethod};
use clap::{Args, Subcommand, ValueEnum};
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

// The ways to see and to move a working set.
#[derive(Clone, Debug, Subcommand)]
#[command(defer = true)]
pub enum Warm {
    /// Show who has how much in RAM, in swap and in the page cache
    ///
    /// Of all processes that this user may look into, or of those named. Says also what a restore
    /// would read, in how many pieces, and how long that would take by what the disk itself showed
    /// in a short trial. Brings nothing back.
    Show(ShowArgs),
    /// Bring back what was pushed out of memory, in the order of the disk
    ///
    /// Reads the memory of processes back from swap in the order in which it lies there, and the
    /// files that they use in the order of their disk. With FILE it brings back what `warm
    /// snapshot` noted. It takes free memory only and stops when others begin to wait for memory.
    /// It looks at no byte of what it moves, and keeps none. Needs CAP_SYS_ADMIN, CAP_SYS_PTRACE,
    /// CAP_SYS_NICE and CAP_DAC_READ_SEARCH, as root has them; files of a snapshot and --only files
    /// can be read without.
    Restore(Box<RestoreArgs>),
    /// Note what is in memory now, by name and without content
    ///
    /// FILE names the files that processes use and what of them is in the page cache, and which
    /// memory of which process is there. `terrace warm restore FILE` brings that back after a
    /// restart or when something has pushed it out.
    Snapshot(SnapshotArgs),
    /// Push a file or a process out of memory, for experiments
    ///
    /// A file, or all files below a directory, leave the page cache, and what was changed is
    /// written first. The memory of a process goes to swap. Nothing is lost; whatever is used again
    /// is slow once.
    Evict(EvictArgs),
}

// The processes or the group whose memory is meant.
#[derive(Clone, Debug, Args)]
#[group(id = "whose", multiple = false)]
pub struct WhoseArgs {
    /// These processes, separated by commas
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = value::pid, allow_hyphen_values = true)]
    pub pid: Vec<u32>,

    /// All processes of a control group and of the groups below: its path, or its directory
    #[arg(long, value_name = "GROUP")]
    pub cgroup: Option<PathBuf>,

    /// All processes of this name: of the program's file, of the process, or of its systemd unit
    #[arg(long, value_name = "NAME")]
    pub app: Option<String>,

    /// All processes that this user may look into
    #[arg(long)]
    pub all: bool,
}

#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// Whose memory.
    #[command(flatten)]
    pub whose: WhoseArgs,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

#[derive(Clone, Debug, Args)]
pub struct RestoreArgs {
    /// A snapshot: bring back what it names
    #[arg(value_name = "FILE", conflicts_with = "whose")]
    pub file: Option<PathBuf>,

    /// Whose memory.
    #[command(flatten)]
    pub whose: WhoseArgs,

    /// These processes before all others, separated by commas
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = value::pid, allow_hyphen_values = true)]
    pub first: Vec<u32>,

    /// Only these kinds of memory, separated by commas (default: all three)
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    pub only: Vec<Memory>,

    /// Afterwards list the directories and inodes below DIR, for the next `find` or `git status`;
    /// may be given several times
    #[arg(long, value_name = "DIR")]
    pub metadata: Vec<PathBuf>,

    /// How to read from swap: `auto` (the disk decides), `remote` (one reader), `readers:N` (2 to
    /// 64), `willneed` (advice to the kernel)
    #[arg(long, value_name = "METHOD", default_value = "auto", value_parser = value::swap_method)]
    pub method: SwapMethod,

    /// Memory that is left to others (default: a 16th of the machine's)
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub floor: Option<Bytes>,

    /// Do not pause while others want the processors
    #[arg(long)]
    pub hurry: bool,

    /// Stop after this time
    #[arg(long, value_name = "DURATION", value_parser = value::budget, allow_hyphen_values = true)]
    pub max_time: Option<Duration>,

    /// Stop after reading so much
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub max_bytes: Option<Bytes>,

    /// Only say what would be read
    #[arg(long)]
    pub dry_run: bool,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

#[derive(Clone, Debug, Args)]
pub struct SnapshotArgs {
    /// Where to; a snapshot that is there is replaced, any other file never
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Whose memory.
    #[command(flatten)]
    pub whose: WhoseArgs,

    /// Look at all files below DIR as well; may be given several times
    #[arg(long, value_name = "DIR")]
    pub tree: Vec<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct EvictArgs {
    /// A path, or the number of a process; a file whose name is a number is `./123`
    #[arg(value_name = "PATH|PID")]
    pub victim: PathBuf,
}

/// The kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Memory {
    /// What programs allocated, from swap
    Anonymous,
    /// Shared memory and what lies on tmpfs, from swap
    Shared,
    /// Files that processes use, from their disks
    Files,
}
