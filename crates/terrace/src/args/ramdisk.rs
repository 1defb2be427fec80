//! Options of `terrace ramdisk`: the directory, its store, the size and the time. Whether that
//! makes sense is found out by `measure::ramdisk` and `place::ramdisk`.

use super::choice;
use super::run::RunArgs;
use super::shared::{FormArgs, WatchArgs};
use super::value;
use clap::{Args, Subcommand};
use model::Bytes;
use place::ramdisk::FreezeCommands;
use place::ramdisk::record::HugePolicy;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

// What can be done with RAM disks.
#[derive(Clone, Debug, Subcommand)]
pub enum Ramdisk {
    Create(CreateArgs),
    Status(StatusArgs),
    Grow(GrowArgs),
    Remove(RemoveArgs),
    Why(WhyArgs),
    Save(SaveArgs),
    Restore(RamdiskRestoreArgs),
    Extract(ExtractArgs),
    List(ListArgs),
    Keep(KeepArgs),
    Install(InstallArgs),
    Uninstall(UninstallArgs),
    Adopt(AdoptArgs),
    Release(ReleaseArgs),
    Try(TryArgs),
}

impl Ramdisk {
    /// The command, as error messages name it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "ramdisk create",
            Self::Status(_) => "ramdisk status",
            Self::Grow(_) => "ramdisk grow",
            Self::Remove(_) => "ramdisk remove",
            Self::Why(_) => "ramdisk why",
            Self::Save(_) => "ramdisk save",
            Self::Restore(_) => "ramdisk restore",
            Self::Extract(_) => "ramdisk extract",
            Self::List(_) => "ramdisk list",
            Self::Keep(_) => "ramdisk keep",
            Self::Install(_) => "ramdisk install",
            Self::Uninstall(_) => "ramdisk uninstall",
            Self::Adopt(_) => "ramdisk adopt",
            Self::Release(_) => "ramdisk release",
            Self::Try(_) => "ramdisk try",
        }
    }
}

/// Make a RAM disk
///
/// A tmpfs, or btrfs with --atomic, that is filled from the newest generation of its store before
/// it appears: nothing half full is ever at MOUNT. Needs root. What nosuid, nodev and noexec forbid
/// around MOUNT it forbids too.
#[derive(Clone, Debug, Args)]
pub struct CreateArgs {
    /// Where: an empty directory, or one that does not exist
    #[arg(value_name = "MOUNT")]
    pub mount_point: PathBuf,

    /// The most that it holds, as `4g`
    #[arg(long, value_name = "SIZE", value_parser = value::any_size, allow_hyphen_values = true)]
    pub size: Bytes,

    /// Which of its pages are huge; by default what the kernel does
    #[arg(long, value_name = "WHEN", value_parser = choice::HUGE_POLICIES)]
    pub huge: Option<HugePolicy>,

    /// Never move its pages to swap (Linux 6.4); cannot be changed later
    #[arg(long)]
    pub noswap: bool,

    /// The permissions of MOUNT, in octal; by default as saved, or as of the directory that it
    /// covers
    #[arg(long, value_name = "MODE", value_parser = value::mode)]
    pub mode: Option<u32>,

    /// The owner of MOUNT, by names or numbers; by default as for --mode
    #[arg(long, value_name = "USER[:GROUP]", value_parser = value::owner)]
    pub owner: Option<(u32, u32)>,

    /// Touch all of its memory once, so that a host has backed it before it is needed
    #[arg(long)]
    pub prefault: bool,

    /// Make it of btrfs on compressed memory (zram), so that each save is a snapshot: what a power
    /// cut would leave, from which databases recover. Needs mkfs.btrfs; SIZE is before compression
    #[arg(long, conflicts_with_all = ["huge", "noswap", "prefault"])]
    pub atomic: bool,

    /// The directory of its store: restored from it now, and saved to it by `keep`
    #[arg(long, value_name = "STORE")]
    pub persist: Option<PathBuf>,

    /// How often `keep` saves it
    #[arg(long, value_name = "DURATION", default_value = "5m", requires = "persist", value_parser = value::interval, allow_hyphen_values = true)]
    pub every: Duration,

    /// How many generations to keep
    #[arg(long, value_name = "N", default_value_t = 3, requires = "persist", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub keep: u16,

    /// Make it also if it may take more memory than can be had
    #[arg(long)]
    pub force: bool,

    /// Cover a directory that `adopt` moved to STORE, as after a restart: its files stay below
    #[arg(long, requires = "persist")]
    pub adopted: bool,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

/// Say what RAM disks hold, and what a crash would cost
///
/// Compares them with the newest generation, without writing anything: what is not saved, what is
/// in swap, what would compress, when they are full.
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// Its mount point, or the last component of that; all without it
    #[arg(value_name = "NAME")]
    pub name: Option<PathBuf>,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

/// Change the size of a RAM disk
#[derive(Clone, Debug, Args)]
pub struct GrowArgs {
    /// Its mount point, or the last component of that
    #[arg(value_name = "NAME")]
    pub name: PathBuf,

    /// Its new size: not less than what is in use
    #[arg(value_name = "SIZE", value_parser = value::any_size, allow_hyphen_values = true)]
    pub size: Bytes,

    /// Do it also if it may take more memory than can be had
    #[arg(long)]
    pub force: bool,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

/// Unmount a RAM disk
///
/// Refused while it holds what was not saved, and while files on it are in use.
#[derive(Clone, Debug, Args)]
pub struct RemoveArgs {
    /// Its mount point, or the last component of that
    #[arg(value_name = "NAME")]
    pub name: PathBuf,

    /// Give up what was not saved
    #[arg(long)]
    pub discard: bool,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

/// Save a RAM disk to a store on a disk
///
/// Makes the next generation of the store, durable when the command ends: until then, and if it is
/// killed, the one before is the newest. Only what changed is written; without a change nothing is.
#[derive(Clone, Debug, Args)]
pub struct SaveArgs {
    /// With --persist any directory; without it a RAM disk that is known: its mount point, or the
    /// last component of that
    #[arg(value_name = "DIR")]
    pub source: PathBuf,

    /// The directory of the store, made if it does not exist; by default that of the RAM disk
    #[arg(long, value_name = "STORE")]
    pub persist: Option<PathBuf>,

    /// How many generations to keep; by default as the RAM disk was made, if STORE is its own; else
    /// 3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub keep: Option<u16>,

    /// Save DIR also if it is not the directory that this store saved or restored last
    #[arg(long)]
    pub force: bool,

    /// Wait while another process saves to the store or restores from it
    #[arg(long)]
    pub wait: bool,

    /// What holds back the users.
    #[command(flatten)]
    pub freeze: FreezeArgs,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

// How often a RAM disk is saved.
#[derive(Clone, Debug, Args)]
pub struct ScheduleArgs {
    /// How long after the begin of a save the next one begins
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = value::interval, allow_hyphen_values = true)]
    pub every: Duration,

    /// How many generations to keep
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub keep: u16,
}

// How often a RAM disk is saved that may be known already.
#[derive(Clone, Debug, Args)]
pub struct KnownScheduleArgs {
    /// How long after the begin of a save the next one begins; by default as it was made, else 5m
    #[arg(long, value_name = "DURATION", value_parser = value::interval, allow_hyphen_values = true)]
    pub every: Option<Duration>,

    /// How many generations to keep; by default as it was made, else 3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub keep: Option<u16>,
}

// Commands around each save.
#[derive(Clone, Debug, Args)]
pub struct FreezeArgs {
    /// Run CMD before what is to be saved is read, and save nothing if it fails
    #[arg(long, value_name = "CMD", requires = "thaw_cmd")]
    pub freeze_cmd: Option<String>,

    /// Run CMD after it was read: also if `--freeze-cmd` failed, and if this program is killed
    #[arg(long, value_name = "CMD", requires = "freeze_cmd")]
    pub thaw_cmd: Option<String>,
}

impl FreezeArgs {
    /// Both commands, if they were given.
    pub fn commands(&self) -> Option<FreezeCommands> {
        let (freeze, thaw) = (self.freeze_cmd.clone()?, self.thaw_cmd.clone()?);
        Some(FreezeCommands { freeze, thaw })
    }
}

/// Keep a RAM disk: save it again and again, and when this ends
///
/// A service in the foreground: it saves at its start, then every --every, and on SIGTERM and
/// SIGINT for the last time; a second signal ends it without. A save gives way to other work. If
/// the store is full, the last generation stays and the next save tries it again. A directory that
/// was unmounted or replaced is not saved over the one that was kept.
#[derive(Clone, Debug, Args)]
pub struct KeepArgs {
    /// A RAM disk that is known: its mount point, or the last component of that; with --persist any
    /// directory
    #[arg(value_name = "NAME")]
    pub source: PathBuf,

    /// The directory of the store, made if it does not exist; by default that of the RAM disk
    #[arg(long, value_name = "STORE")]
    pub persist: Option<PathBuf>,

    /// How often it is saved, and how much stays.
    #[command(flatten)]
    pub schedule: KnownScheduleArgs,

    /// First restore the newest generation, if it is empty and another directory than the one that
    /// was saved or restored last
    #[arg(long)]
    pub restore: bool,

    /// What holds back the users.
    #[command(flatten)]
    pub freeze: FreezeArgs,
}

/// Write units of systemd that mount, restore and keep a RAM disk from the next boot on
///
/// The RAM disk is mounted as it is mounted now. All ordinary services start after it is restored,
/// and have ended before it is saved for the last time, which no time-out ends. It is also saved
/// before the machine sleeps. A unit that this command did not make is never replaced.
#[derive(Clone, Debug, Args)]
pub struct InstallArgs {
    /// A RAM disk that is known: its mount point, or the last component of that; with --persist any
    /// place where a tmpfs is mounted now
    #[arg(value_name = "NAME")]
    pub mount: PathBuf,

    /// The directory of the store, on a disk of this machine; by default that of the RAM disk
    #[arg(long, value_name = "STORE")]
    pub persist: Option<PathBuf>,

    /// How often it is saved, and how much stays.
    #[command(flatten)]
    pub schedule: KnownScheduleArgs,

    /// A unit that is not to start unless the RAM disk is restored; may be given several times
    #[arg(long, value_name = "UNIT", value_parser = value::unit)]
    pub before: Vec<String>,

    /// What holds back the users.
    #[command(flatten)]
    pub freeze: FreezeArgs,

    /// Print the units, and a line of /etc/fstab in place of one of them; write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Write to DIR instead of /etc/systemd/system
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

/// Remove the units of a RAM disk, after a last save
///
/// The RAM disk stays mounted. Its store stays too.
#[derive(Clone, Debug, Args)]
pub struct UninstallArgs {
    /// Its mount point, or, if it is known, the last component of that
    #[arg(value_name = "NAME")]
    pub mount: PathBuf,

    /// Only say what would be removed
    #[arg(long)]
    pub dry_run: bool,

    /// Remove from DIR instead of /etc/systemd/system
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

/// Restore a RAM disk from its store
///
/// DIR appears whole, or not at all; of a mount, its entries appear one after the other. Nothing is
/// replaced. From then on DIR is what `save` saves to this store.
#[derive(Clone, Debug, Args)]
pub struct RamdiskRestoreArgs {
    /// Where to: must not exist, or be empty; without --persist a RAM disk that is known
    #[arg(value_name = "DIR")]
    pub target: PathBuf,

    /// The directory of the store; by default that of the RAM disk
    #[arg(long, value_name = "STORE")]
    pub persist: Option<PathBuf>,

    /// The number of the generation; by default the newest
    #[arg(long, value_name = "N")]
    pub generation: Option<u64>,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

/// Take files out of a generation
///
/// As `restore`, but DIR stays a copy: it is not what `save` saves from then on.
#[derive(Clone, Debug, Args)]
pub struct ExtractArgs {
    /// The number of the generation, as `ramdisk list` has it
    #[arg(value_name = "GENERATION")]
    pub generation: u64,

    /// A path on the RAM disk, if not all of it is wanted, and the directory to make
    #[arg(value_name = "[PATH] DIR", required = true, num_args = 1..=2)]
    pub paths: Vec<PathBuf>,

    /// The directory of the store
    #[arg(long, value_name = "STORE")]
    pub persist: PathBuf,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

/// List the RAM disks that are known here, or the generations of a store
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// List the generations of this store
    #[arg(long, value_name = "STORE")]
    pub persist: Option<PathBuf>,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

/// Move a directory onto a RAM disk
///
/// The directory is saved to STORE, and a RAM disk with the same content covers it. Refused while
/// something uses a file below it. The directory stays on its disk as it was until `release` gives
/// it back as it is then. Needs root.
#[derive(Clone, Debug, Args)]
pub struct AdoptArgs {
    /// The directory
    #[arg(value_name = "PATH")]
    pub path: PathBuf,

    /// The most that the RAM disk holds, as `4g`
    #[arg(long, value_name = "SIZE", value_parser = value::any_size, allow_hyphen_values = true)]
    pub size: Bytes,

    /// The directory of its store
    #[arg(long, value_name = "STORE")]
    pub persist: PathBuf,

    /// How often it is saved, and how much stays.
    #[command(flatten)]
    pub schedule: ScheduleArgs,

    /// Which of its pages are huge; by default what the kernel does
    #[arg(long, value_name = "WHEN", value_parser = choice::HUGE_POLICIES)]
    pub huge: Option<HugePolicy>,

    /// Never move its pages to swap (Linux 6.4); cannot be changed later
    #[arg(long)]
    pub noswap: bool,

    /// Make it of btrfs on zram: each save is a snapshot, what a power cut would leave
    #[arg(long, conflicts_with_all = ["huge", "noswap"])]
    pub atomic: bool,

    /// Make it also if it may take more memory than can be had
    #[arg(long)]
    pub force: bool,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

/// Give back a directory that was moved onto a RAM disk
///
/// The RAM disk becomes read-only and is saved. A copy is made on the disk and compared; then the
/// RAM disk goes, and the copy takes the place of the directory at once. Refused while something
/// uses a file on the RAM disk.
#[derive(Clone, Debug, Args)]
pub struct ReleaseArgs {
    /// Its mount point, or the last component of that
    #[arg(value_name = "NAME")]
    pub name: PathBuf,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}

/// Say whether a command is quicker with a directory in memory
///
/// Runs CMD with DIR on its disk and in memory in turn, and says which takes longer, or that this
/// is unproven, as `run --against` does. Each run gets a fresh copy of DIR that only CMD sees in
/// the place of DIR: nothing of DIR itself changes. The copies are beside DIR and in memory, and
/// are removed.
#[derive(Clone, Debug, Args)]
#[command(override_usage = "terrace ramdisk try [OPTIONS] <DIR> [--] CMD [ARGS]...")]
pub struct TryArgs {
    /// The directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, num_args = 1.., trailing_var_arg = true)]
    pub command: Vec<OsString>,

    /// Run it N times in each place, and once before to warm up
    #[arg(long, visible_alias = "runs", value_name = "N", default_value = "5", value_parser = value::repeats, allow_hyphen_values = true)]
    pub repeat: u32,

    /// Run this with `sh -c` before each run, with the copy in its place; it is not measured
    #[arg(long, value_name = "SHELL COMMAND")]
    pub prepare: Option<String>,

    /// Sampling and events.
    #[command(flatten)]
    pub watch: WatchArgs,

    /// Keep the recordings: NAME.first.1.trec on the disk, NAME.second.1.trec in memory
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Show all numbers and all evidence
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    pub details: bool,

    /// Write the comparison as JSON to FILE too (docs/json.md describes it)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,

    /// Print nothing
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

impl TryArgs {
    /// The same as options of `run`.
    pub fn as_run(&self) -> RunArgs {
        RunArgs {
            watch: self.watch.clone(),
            no_group: false,
            repeat: Some(self.repeat),
            against: None,
            attempt: false,
            keep_change: false,
            prepare: self.prepare.clone(),
            cache: None,
            cache_files: Vec::new(),
            output: self.output.clone(),
            details: self.details,
            json: self.json.clone(),
            quiet: self.quiet,
            command: self.command.clone(),
        }
    }
}

/// Say why writing to a RAM disk is slow
///
/// Writes memory that was free as new, as new again, and over itself, page by page, times each page
/// and reads the counters of the machine and of the own control groups meanwhile. Then it names the
/// cause: memory that was there already, a host that finds memory only when it is touched, a host
/// that swaps, this machine's swap, the limit of a group, memory that had to be freed or moved
/// together first, another node's memory, or a processor that others had; with what clears the
/// others.
#[derive(Clone, Debug, Args)]
pub struct WhyArgs {
    /// A directory on the RAM disk (tmpfs); without it, shared memory, which is the same file
    /// system
    #[arg(value_name = "MOUNT")]
    pub mount: Option<PathBuf>,

    /// How much each pass writes; without it at most 1 GiB, an eighth of what is available, and
    /// half of what a group has left. With it the limit of a group may be exceeded
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub size: Option<Bytes>,

    /// Stop writing after this time and judge what there is
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = value::budget, allow_hyphen_values = true)]
    pub budget: Duration,

    /// The form of the result.
    #[command(flatten)]
    pub form: FormArgs,
}
