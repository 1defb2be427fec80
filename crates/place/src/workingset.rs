//! The working set: what processes had in memory before it was evicted, and how to restore it.
//!
//! [`targets`] says whose; [`anonymous`], [`shared`] and [`files`] find what is not in memory and
//! where on which device it is, and put it into the order of the device; [`restore`] restores it
//! under a [`crate::background::Allowance`] and reports. [`show`] only looks. A [`snapshot`] keeps
//! what is in memory now, by name and without content, and is restored later. [`evict`] does the
//! opposite, for experiments.

pub mod anonymous;
mod areas;
pub mod cgroup_reader;
pub mod evict;
pub mod files;
pub mod metadata;
pub mod read;
mod remote;
pub mod restore;
pub mod shared;
pub mod show;
pub mod snapshot;
pub mod speed;
pub mod targets;
pub mod watch;
