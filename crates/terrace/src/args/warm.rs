//! The arguments of `terrace warm`: whose memory, which kinds of it, and how much may be used.
//! The command finds out whether that memory can be read.

use super::choice;
use super::shared::FormArgs;
use super::value::{self, SwapMethod};
use clap::{Args, Subcommand};
use model::Bytes;
use place::workingset::restore::MemoryKind;
use std::path::PathBuf;
use std::time::Duration;

// The actions on working sets.
#[derive(Clone, Debug, Subcommand)]
#[command(defer = true)]
pub enum Warm {
    /// Show how much each process has in RAM, in swap and in the page cache
    ///
    /// Of all processes that this user may read, or of those selected. Says also what a restore
    /// would read, in how many pieces, and how long that would take by a short trial of the disk.
    /// Restores nothing.
    Show(ShowArgs),
    /// Restore what was evicted from memory, in the order of the disk
    ///
    /// Reads the memory of processes from swap in the order of its slots, and the files that they
    /// use in the order of their disk. With FILE it restores what `warm snapshot` listed. It uses
    /// free memory only, and stops when other tasks wait for memory. It does not look at the data,
    /// and keeps none of it. Needs CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_NICE and
    /// CAP_DAC_READ_SEARCH, as root has them; files of a snapshot and --only files need none.
    Restore(Box<RestoreArgs>),
    /// Wait until a memory shortage is over, then restore what it evicted to swap; again and again
    ///
    /// Stays in the foreground until Ctrl-C or SIGTERM. Looks at the kernel's counters once a
    /// second. When memory was short and has not been for a while, and there is room for what was
    /// evicted, it does once what `warm restore` does, and prints what came of it in one line.
    /// Needs the rights of `warm restore`. The service terrace-warm-watch runs it.
    Watch(Box<WarmWatchArgs>),
    /// List what is in memory now, by name and without content
    ///
    /// FILE names the files that processes use and their pages in the page cache, and the memory of
    /// each process that is in RAM. `terrace warm restore FILE` restores that after a restart, or
    /// after something has evicted it.
    Snapshot(SnapshotArgs),
    /// Evict a file or a process from memory, for experiments
    ///
    /// A file, or all files below a directory, leave the page cache; changed data is written first.
    /// The memory of a process goes to swap. Nothing is lost; the next use is slow once.
    Evict(EvictArgs),
}

// The selection of processes.
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

    /// All processes that this user may read
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
    /// A snapshot: restore what it names
    #[arg(value_name = "FILE", conflicts_with = "whose")]
    pub file: Option<PathBuf>,

    /// Whose memory.
    #[command(flatten)]
    pub whose: WhoseArgs,

    /// Restore these processes first, separated by commas
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = value::pid, allow_hyphen_values = true)]
    pub first: Vec<u32>,

    /// Only these kinds of memory, separated by commas (default: all three)
    #[arg(long, value_name = "KINDS", value_parser = choice::MEMORY_KINDS, value_delimiter = ',')]
    pub only: Vec<MemoryKind>,

    /// Afterwards list the directories and inodes below DIR, for the next `find` or `git status`;
    /// may be given several times
    #[arg(long, value_name = "DIR")]
    pub metadata: Vec<PathBuf>,

    /// How it reads, and what it may take.
    #[command(flatten)]
    pub how: RestoreHowArgs,

    /// Only say what would be read
    #[arg(long)]
    pub dry_run: bool,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

// How a restore reads, and what it may take.
#[derive(Clone, Debug, Args)]
pub struct RestoreHowArgs {
    /// How to read from swap: `auto` (the disk decides), `remote` (one reader), `readers:N` (2 to
    /// 64), `willneed` (advice to the kernel)
    #[arg(long, value_name = "METHOD", default_value = "auto", value_parser = value::swap_method)]
    pub method: SwapMethod,

    /// Keep this much memory available (default: a 16th of the machine's)
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub floor: Option<Bytes>,

    /// Do not pause while other tasks want the processors
    #[arg(long)]
    pub hurry: bool,

    /// End a restore after this time
    #[arg(long, value_name = "DURATION", value_parser = value::budget, allow_hyphen_values = true)]
    pub max_time: Option<Duration>,

    /// End a restore after reading this much
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub max_bytes: Option<Bytes>,
}

#[derive(Clone, Debug, Args)]
pub struct WarmWatchArgs {
    /// Whose memory; of all processes if none is named.
    #[command(flatten)]
    pub whose: WhoseArgs,

    /// These kinds of memory, separated by commas; `files` only with another one
    #[arg(long, value_name = "KINDS", value_parser = choice::MEMORY_KINDS, value_delimiter = ',', default_value = "anonymous,shared")]
    pub only: Vec<MemoryKind>,

    /// How long memory must not have been short, at least 1 s
    #[arg(long, value_name = "DURATION", value_parser = value::quiet_time, allow_hyphen_values = true, default_value = "10s")]
    pub quiet: Duration,

    /// How it reads, and what it may take.
    #[command(flatten)]
    pub how: RestoreHowArgs,
}

#[derive(Clone, Debug, Args)]
pub struct SnapshotArgs {
    /// Where to; a snapshot that is there is replaced, any other file never
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Whose memory.
    #[command(flatten)]
    pub whose: WhoseArgs,

    /// Also include all files below DIR; may be given several times
    #[arg(long, value_name = "DIR")]
    pub tree: Vec<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct EvictArgs {
    /// A path, or the number of a process; a file whose name is a number is `./123`
    #[arg(value_name = "PATH|PID")]
    pub victim: PathBuf,
}
