//! The flash cache: its engine in simulation, and the cache itself before modelled disks.
//!
//! - `simulation`: the engine, cut at every write, with every fault, and without each rule.
//! - `warm`: an empty cache gets warm by skewed requests, as bcache, dm-cache and none; `gain`:
//!   the same on this machine, without those two.
//! - `again`: what is warm after a boot, and after a power cut amid writes.
//! - `disk`: what the cache costs where it has nothing; `cost`: the same on this machine.
//! - `recovery`: how soon files are back after memory was short.
//! - `hit`: how long a hit takes where the cache is in memory; what fits into a cache of programs.
//!
//! Those in the middle run in guests (`boost/guest/`); `gain`, `cost` and `hit` need root, FUSE and
//! loop devices.

use super::Measure;

mod again;
mod cost;
mod disk;
mod gain;
mod guest;
mod hit;
mod log;
mod recovery;
mod simulation;
mod warm;

/// The parts, in their order.
pub(super) const PARTS: &[(&str, Measure)] = &[
    ("simulation", simulation::simulation),
    ("warm", warm::measure),
    ("gain", gain::measure),
    ("again", again::measure),
    ("disk", disk::measure),
    ("cost", cost::measure),
    ("recovery", recovery::measure),
    ("hit", hit::measure),
];
