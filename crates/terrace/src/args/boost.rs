//! Options of `terrace boost`: what is qualified, and beside which disk. The probe finds out what
//! the path is and whether there is room.

use super::shared::FormArgs;
use super::{choice, value};
use clap::{Args, Subcommand};
use model::Bytes;
use place::boost::plan::ExportChoice;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

// What can be done about caches on flash.
#[derive(Clone, Debug, Subcommand)]
pub enum Boost {
    Qualify(QualifyArgs),
    Receipt(ReceiptArgs),
    /// Read a disk through a cache on flash, which may be pulled at any time
    ///
    /// Prints what a kill, a pull and a power cut will do on this kernel, starts `boost serve` in
    /// the background, and names the block device to mount instead of the disk. Reads that come
    /// twice are kept on the flash; writes go to the disk. A disk that is in use is refused.
    Attach(CacheArgs),
    Status(CacheStatusArgs),
    Explain(CacheExplainArgs),
    Fill(FillArgs),
    Report(CacheReportArgs),
    Detach(DetachArgs),
    /// Serve a cache until it is detached: what `boost attach` starts
    ///
    /// A service in the foreground. It starts a process that serves and, whenever that is killed,
    /// another one; requests wait meanwhile. SIGTERM to that process ends it once the block device
    /// is not in use.
    Serve(CacheArgs),
    Install(CacheInstallArgs),
    Uninstall(CacheUninstallArgs),
}

impl Boost {
    /// The command, as error messages name it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Qualify(_) => "boost qualify",
            Self::Receipt(_) => "boost receipt",
            Self::Attach(_) => "boost attach",
            Self::Status(_) => "boost status",
            Self::Explain(_) => "boost explain",
            Self::Fill(_) => "boost fill",
            Self::Report(_) => "boost report",
            Self::Detach(_) => "boost detach",
            Self::Serve(_) => "boost serve",
            Self::Install(_) => "boost install",
            Self::Uninstall(_) => "boost uninstall",
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

// What a cache is made of, and how it is served.
#[derive(Clone, Debug, Args)]
pub struct CacheParts {
    /// What the cache is called: letters, digits, `-`, `_` and `.`
    #[arg(value_name = "NAME", value_parser = value::cache_name)]
    pub name: String,

    /// The disk or partition that is read through the cache, not mounted
    #[arg(long, value_name = "DEV")]
    pub backing: PathBuf,

    /// The file of the cache on a stick or an SSD, made if it does not exist
    #[arg(long, value_name = "FILE")]
    pub cache: PathBuf,

    /// Bytes that the file may have
    #[arg(long, value_name = "SIZE", default_value = "4g", value_parser = value::size, allow_hyphen_values = true)]
    pub size: Bytes,

    /// The directory of the key and the journal, on another disk than the cache
    #[arg(long, value_name = "DIR", default_value = "/var/lib/terrace/boost")]
    pub state: PathBuf,

    /// How the disk is served to the kernel
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = choice::EXPORTS)]
    pub export: ExportChoice,

    /// With NBD: what is under way when the service is killed is sent again after so long, and what
    /// takes longer than this is sent twice. More than the disk takes for a request at worst
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = value::budget, allow_hyphen_values = true)]
    pub resend_after: Duration,
}

// A cache that is to be served.
#[derive(Clone, Debug, Args)]
pub struct CacheArgs {
    /// What it is made of.
    #[command(flatten)]
    pub parts: CacheParts,

    /// Use FILE though it is not of this cache: what it holds is lost
    #[arg(long)]
    pub take_file: bool,

    /// Serve from the disk while FILE is not there or cannot be used, and never make it
    #[arg(long, conflicts_with = "take_file")]
    pub file_optional: bool,
}

// A process of a service.
#[derive(Clone, Debug, Args)]
pub struct CacheProcessArgs {
    /// The parts of the cache.
    #[command(flatten)]
    pub cache: CacheArgs,

    /// Serve the disk alone: those before failed again and again
    #[arg(long)]
    pub without_cache: bool,
}

/// Say what the attached caches do
///
/// For each: the reads that it answered, what it holds, and what was written to the flash.
#[derive(Clone, Debug, Args)]
pub struct CacheStatusArgs {
    /// Only this one
    #[arg(value_name = "NAME", value_parser = value::cache_name)]
    pub name: Option<String>,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Say which device answers a read of a file, or of one place of the volume
///
/// Of a file on the file system that is mounted from the cache's device (ext4, XFS): how much of it
/// is in memory, in the cache and on the disk alone, and why it is not cached.
#[derive(Clone, Debug, Args)]
pub struct CacheExplainArgs {
    /// The cache
    #[arg(value_name = "NAME", value_parser = value::cache_name)]
    pub name: String,

    /// A file, or a byte of the volume (4096, 1g); a file that is called like a number is written
    /// with ./
    #[arg(value_name = "PATH|OFFSET")]
    pub place: OsString,
}

/// Say what the attached caches have brought in 7 days and since they were attached
///
/// The time and the seeks that they saved, with what of it is measured and what is concluded, and
/// what was written to the flash.
#[derive(Clone, Debug, Args)]
pub struct CacheReportArgs {
    /// Only this one
    #[arg(value_name = "NAME", value_parser = value::cache_name)]
    pub name: Option<String>,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Bring into a cache what will be read, the most wanted first
///
/// What is read ahead need not be read twice before it is kept. A fill takes no more of the flash
/// than a cache keeps and the budget of the day permits, and goes on if the service is killed.
/// Ctrl-C ends it; what was brought stays.
#[derive(Clone, Debug, Args)]
pub struct FillArgs {
    /// The cache
    #[arg(value_name = "NAME", value_parser = value::cache_name)]
    pub name: String,

    /// A file with `OFFSET LENGTH` or a path on each line, the most wanted first; `-` is standard
    /// input
    #[arg(value_name = "LIST", required_unless_present = "from_page_cache")]
    pub list: Option<PathBuf>,

    /// What is in memory now of the files on the file system that is mounted from the cache's
    /// device (ext4, XFS): what is wholly there first, small files before large ones
    #[arg(long, conflicts_with = "list")]
    pub from_page_cache: bool,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// End a cache, so that it is warm at the next attach
///
/// The block device must be unmounted. Says whether the cache is proved fresh.
#[derive(Clone, Debug, Args)]
pub struct DetachArgs {
    /// The cache
    #[arg(value_name = "NAME", value_parser = value::cache_name)]
    pub name: String,
}

/// Serve a cache from the next boot on: write units of systemd
///
/// One serves the cache when its disk is there, also while the flash is not. With --mount another
/// one mounts what is read through it, and is unmounted before the cache ends. A unit that this
/// command did not make is never replaced. Nothing is started.
#[derive(Clone, Debug, Args)]
pub struct CacheInstallArgs {
    /// What it is made of; it was attached before.
    #[command(flatten)]
    pub parts: CacheParts,

    /// Also mount it at this directory
    #[arg(long, value_name = "DIR")]
    pub mount: Option<PathBuf>,

    /// Print the units; write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Write to DIR instead of /etc/systemd/system
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

/// Remove the units of a cache, after its end
///
/// What is mounted by them is unmounted. The file, the key and the journal stay.
#[derive(Clone, Debug, Args)]
pub struct CacheUninstallArgs {
    /// The cache
    #[arg(value_name = "NAME", value_parser = value::cache_name)]
    pub name: String,

    /// Only say what would be removed
    #[arg(long)]
    pub dry_run: bool,

    /// Remove from DIR instead of /etc/systemd/system
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}
