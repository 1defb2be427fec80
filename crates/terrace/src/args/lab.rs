//! What `terrace lab` can be told: which experiment, on how much memory, how often. That the
//! machine bears it is the experiment's to check.

use super::value;
use clap::{Args, Subcommand};
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

/// What can be done with the experiments.
#[derive(Clone, Debug, Subcommand)]
pub enum Lab {
    /// List the experiments
    List,
    /// Show what an experiment repeats, what it cannot, and what it does to this machine
    Show {
        /// Its name, as `lab list` tells
        name: String,
    },
    Run(Box<RunArgs>),
}

/// Repeat an experiment on this machine, beside the original's figures
///
/// Everything happens in a memory group of its own, with a swap file of its own, both removed at the end. The results are kept in a
/// directory: result.json and one recording for each time, for `terrace explain`. Needs root.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Its name, as `lab list` tells
    pub name: String,

    /// Where the results are kept; a directory that does not exist yet or is empty (default: lab-NAME)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// The disk that is tried: the swap file and the databases lie in this directory (default: that of --out)
    #[arg(long, value_name = "DIR")]
    pub disk: Option<PathBuf>,

    /// Only these applications, separated by commas (default: all that are installed)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub app: Vec<String>,

    /// Memory of the group
    #[arg(long, value_name = "SIZE", default_value = "256m", value_parser = value::size, allow_hyphen_values = true, conflicts_with = "whole_machine")]
    pub memory: Bytes,

    /// What the application has in use (default: three quarters of the memory)
    #[arg(long, value_name = "SIZE", value_parser = value::size, allow_hyphen_values = true)]
    pub working_set: Option<Bytes>,

    /// How often the two hogs are launched
    #[arg(long, value_name = "N", default_value = "25", value_parser = value::repeats, allow_hyphen_values = true)]
    pub repeat: u32,

    /// How often each way is tried, in turn with the others; 4 are needed to prove a difference
    #[arg(long, value_name = "N", default_value = "4", value_parser = value::repeats, allow_hyphen_values = true)]
    pub runs: u32,

    /// Give up waiting for a way after this time
    #[arg(long, value_name = "DURATION", default_value = "5min", value_parser = value::budget, allow_hyphen_values = true)]
    pub limit: Duration,

    /// Make memory short on the whole machine instead of in a group: for a machine that has nothing else to do
    #[arg(long)]
    pub whole_machine: bool,

    /// Print JSON instead of text (docs/json.md describes it)
    #[arg(long)]
    pub json: bool,
}

/// What `lab` starts as processes of its own.
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
    /// Keep a directory with swap in it until the input ends
    Workplace {
        /// The directory, which does not exist
        directory: PathBuf,
        /// The size of the swap
        bytes: u64,
    },
    /// Hold a working set and answer requests
    Toucher {
        /// Its size
        bytes: u64,
    },
}

fn user(text: &str) -> Result<(u32, u32), String> {
    let numbers = text
        .split_once(':')
        .map(|(uid, gid)| (uid.parse(), gid.parse()));
    match numbers {
        Some((Ok(uid), Ok(gid))) => Ok((uid, gid)),
        _ => Err("a user is UID:GID".to_owned()),
    }
}
