//! Options of `terrace lab`: the action, and the experiment. The options of an experiment are in a
//! file of their own.

pub mod memory_copy;
pub mod ramdisk_puzzle;
pub mod recovery;

use ::lab::working_set::Layout;
use clap::Subcommand;
use std::path::PathBuf;

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
    #[command(name = "memory-copy-2001")]
    MemoryCopy2001(memory_copy::MemoryCopyArgs),
    #[command(name = "ramdisk-puzzle")]
    RamdiskPuzzle(ramdisk_puzzle::RamdiskPuzzleArgs),
    #[command(name = "recovery-2012")]
    Recovery2012(Box<recovery::RecoveryArgs>),
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
