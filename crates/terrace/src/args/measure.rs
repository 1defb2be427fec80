//! Options of `terrace measure`: those that all probes share, and those of each probe. The short
//! ones of `iolat` are those of ioping, so that its command lines work here; the long ones of
//! `iolat` and `seqio` are those of fio if fio has them. A probe knows its defaults, and finds out
//! what PATH is and whether the machine has the memory.

use super::choice;
use super::shared::FormArgs;
use super::value::{self, Offset};
use clap::Args;
use measure::faults::TouchMethod;
use measure::memory::PageKind;
use measure::runs::DEFAULT_SPREAD;
use memops::Operation;
use model::{Bytes, ChaseOrder};
use std::path::PathBuf;
use std::time::Duration;

// How long, where and in which form a probe runs.
#[derive(Clone, Debug, Args)]
pub struct ProbeArgs {
    /// Stop measuring after this time, all runs together without the waits between them, and print
    /// what there is (default: 45s for memcpy and memlat, 30s for faults, 5s for compute, 10s for
    /// iolat, 20s for seqio)
    #[arg(long, value_name = "DURATION", value_parser = value::budget, allow_hyphen_values = true)]
    pub budget: Option<Duration>,

    /// Repeat the probe in this many processes, so that intervals hold what changes from run to
    /// run: how busy the machine is, which memory a process gets, where its file is (default: 9; 1
    /// for memlat without --size and iolat with -c)
    #[arg(long, value_name = "N", value_parser = value::runs, allow_hyphen_values = true)]
    pub runs: Option<u32>,

    /// Spread the runs over this time, with waits between them, as a slow spell of a machine lasts
    /// many seconds. 0 is one after the other (default: 1min, or 0 with --budget)
    #[arg(long, value_name = "DURATION", conflicts_with = "quick", value_parser = value::pause, allow_hyphen_values = true)]
    pub over: Option<Duration>,

    /// Measure once: the intervals are within this run. The same as --runs 1
    #[arg(long, conflicts_with = "runs")]
    pub quick: bool,

    /// Run on this processor (default: the first that this process may use)
    #[arg(long, value_name = "N", value_parser = value::cpu, allow_hyphen_values = true)]
    pub cpu: Option<usize>,

    /// Print comma-separated values, one line for each measurement
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub csv: bool,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

impl ProbeArgs {
    /// How often to run the probe, where `default` is usual.
    #[must_use]
    pub fn runs(&self, default: u32) -> u32 {
        if self.quick { 1 } else { self.runs.unwrap_or(default) }
    }

    /// The time that the runs are spread over, where `is_limited` says that all of them together
    /// were given a budget.
    #[must_use]
    pub fn over(&self, is_limited: bool) -> Duration {
        let usual = if is_limited { Duration::ZERO } else { DEFAULT_SPREAD };
        self.over.unwrap_or(usual)
    }
}

#[derive(Clone, Debug, Args)]
pub struct MemcpyArgs {
    /// Methods to run (default: all that this processor has; --list names them)
    #[arg(value_name = "METHOD", value_delimiter = ',')]
    pub named: Vec<String>,

    /// Methods to run, the same as METHOD
    #[arg(long = "method", value_name = "METHODS", value_delimiter = ',')]
    pub methods: Vec<String>,

    /// List all methods, and why some are absent here
    #[arg(long, conflicts_with_all = ["disassemble", "classic"])]
    pub list: bool,

    /// Sizes of the buffer (default: 16k,256k,4m,16m,256m)
    #[arg(long = "size", value_name = "SIZES", value_delimiter = ',', value_parser = value::size, allow_hyphen_values = true)]
    pub sizes: Vec<Bytes>,

    /// What to measure (default: copy)
    #[arg(
        long = "operation",
        value_name = "OPERATIONS",
        value_delimiter = ',',
        value_parser = choice::OPERATIONS
    )]
    pub operations: Vec<Operation>,

    /// Work through the buffer in blocks of this size (default: all at once)
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub block: Option<Bytes>,

    /// Walk the columns of a matrix: every Nth element, for the element methods
    #[arg(long, value_name = "ELEMENTS", default_value = "0", value_parser = value::stride, allow_hyphen_values = true)]
    pub stride: usize,

    /// Bytes that the target (and the source) start behind a page boundary
    #[arg(long, value_name = "TARGET[,SOURCE]", default_value = "0", value_parser = value::offset, allow_hyphen_values = true)]
    pub offset: Offset,

    /// Threads, each with buffers of its own on a processor of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = value::threads, allow_hyphen_values = true)]
    pub threads: usize,

    /// Page size of the buffers; what the kernel granted is checked and shown
    #[arg(long, value_parser = choice::PAGES, value_name = "PAGES", default_value = "thp")]
    pub pages: PageKind,

    /// Print the loop of METHOD as it is in memory, and measure nothing
    #[arg(long, value_name = "METHOD", conflicts_with = "classic")]
    pub disassemble: Option<String>,

    /// Run as the program of 2001, from its own arguments: "[-f] [-w] [-s] [-p] [-csv] SIZE COUNT
    /// [METHOD...]"
    #[arg(
        long,
        value_name = "ARGS",
        allow_hyphen_values = true,
        conflicts_with_all = ["named", "methods", "sizes", "operations", "block", "stride", "offset", "threads", "pages"]
    )]
    pub classic: Option<String>,

    /// What all probes share.
    #[command(flatten)]
    pub probe: ProbeArgs,
}

#[derive(Clone, Debug, Args)]
pub struct MemlatArgs {
    /// Sizes of the buffer (default: steps from 4 KiB to 1 GiB)
    #[arg(long = "size", value_name = "SIZES", value_delimiter = ',', value_parser = value::size, allow_hyphen_values = true)]
    pub sizes: Vec<Bytes>,

    /// Page sizes of the buffer
    #[arg(
        long,
        value_name = "PAGES",
        value_delimiter = ',',
        value_parser = choice::PAGES,
        default_value = "4k,thp"
    )]
    pub pages: Vec<PageKind>,

    /// Order of the loads
    #[arg(
        long = "pattern",
        value_name = "PATTERNS",
        value_delimiter = ',',
        value_parser = choice::ORDERS,
        default_value = "random,in-page"
    )]
    pub patterns: Vec<ChaseOrder>,

    /// What all probes share.
    #[command(flatten)]
    pub probe: ProbeArgs,
}

#[derive(Clone, Debug, Args)]
pub struct FaultsArgs {
    /// Touch at most this much memory
    #[arg(long, value_name = "SIZE", default_value = "512m", value_parser = value::size, allow_hyphen_values = true)]
    pub limit: Bytes,

    /// Pause between freeing memory and touching it again
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = value::pause, allow_hyphen_values = true)]
    pub wait: Duration,

    /// Ways to touch it first
    #[arg(
        long = "way",
        value_name = "WAYS",
        value_delimiter = ',',
        value_parser = choice::WAYS,
        default_value = "4k,thp,populate"
    )]
    pub ways: Vec<TouchMethod>,

    /// What all probes share.
    #[command(flatten)]
    pub probe: ProbeArgs,
}

#[derive(Clone, Debug, Args)]
pub struct ComputeArgs {
    /// Iterations of one trial
    #[arg(long, value_name = "COUNT", value_parser = value::count, allow_hyphen_values = true)]
    pub iterations: Option<u64>,

    /// What all probes share.
    #[command(flatten)]
    pub probe: ProbeArgs,
}

#[derive(Clone, Debug, Args)]
pub struct IolatArgs {
    /// A directory, a file or a block device
    pub path: PathBuf,

    /// Stop after this many requests, at each pace
    #[arg(short = 'c', long, value_name = "COUNT", value_parser = value::count, allow_hyphen_values = true)]
    pub count: Option<u64>,

    /// From the start of one request to the start of the next; 0 is back to back (default: both
    /// back to back and 10ms; ioping waits 1s)
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
