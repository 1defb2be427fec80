//! What a restore costs other programs, on the host's own processors: how much they slow down, and
//! how soon it stops when memory gets short.
//!
//! Needs root and room for a swap file on the host's disk; where it cannot have them the record
//! says so. Only the memory of a program of our own is evicted, by `terrace warm evict`.

use std::num::NonZero;
use std::thread;

use super::scaled;
use crate::bench::Request;
use crate::bench::peer::Peer;
use crate::bench::record::{Record, Series, Target};
use crate::error::Error;
use crate::workspace;

mod slowed;
mod stage;
mod stopped;
mod swap;
mod workers;

use stage::{Stage, meminfo_bytes, oom_kills};
use swap::SwapFile;

/// The set that is restored beside workers, and the one that is stopped half-way.
const SLOWED_MIB: u64 = 512;
const STOPPED_MIB: u64 = 1024;
/// Of the larger set: room in swap for it and for what the rest of the machine may lose.
const SWAP_PARTS: u64 = 2;
/// Of the larger set: it, a hog nearly as large, the workers and as much again for others.
const MEMORY_PARTS: u64 = 4;

/// Measures both, or notes why not.
pub(super) fn measure(request: &Request, terrace: &Peer, record: &mut Record) -> Result<(), Error> {
    let set_bytes = scaled(request, STOPPED_MIB) << 20;
    if meminfo_bytes("MemAvailable:")? < set_bytes * MEMORY_PARTS {
        let mib = (set_bytes * MEMORY_PARTS) >> 20;
        return leave_out(record, &format!("{mib} MiB of available memory"));
    }
    let root = workspace::current_root()?;
    let target = workspace::target_directory(&workspace::metadata(&root)?)?;
    let path = target.join(format!("terrace-bench-beside-{}", std::process::id()));
    let _swap = match SwapFile::on(&path, set_bytes * SWAP_PARTS) {
        Ok(swap) => swap,
        Err(needs) => return leave_out(record, &needs),
    };
    let stage = Stage {
        terrace: terrace.clone(),
        processors: thread::available_parallelism().map_or(1, NonZero::get),
    };
    record.command("terrace warm evict PID".to_owned());
    let killed_before = oom_kills()?;
    let mut wrong = slowed::measure(&stage, request, record)?;
    wrong.extend(stopped::measure(&stage, request, record)?);
    let killed = (oom_kills()? - killed_before) as f64;
    let none = Some(Target::AtMost(0.0));
    let what = "beside: killed for memory";
    record.add_alone(what, "processes", Series::new("terrace", &[killed]), none)?;
    record.add_alone("beside: wrong pages", "pages", Series::new("terrace", &wrong), none)
}

fn leave_out(record: &mut Record, needs: &str) -> Result<(), Error> {
    record.notes.push(format!("beside: left out, needs {needs}"));
    Ok(())
}
