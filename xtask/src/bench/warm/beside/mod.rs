//! What a restore costs other programs, on the host's own processors: how much they slow down, and
//! how soon it stops when memory gets short.
//!
//! Needs root and room for a swap file on the host's disk; where it cannot have them the record
//! says so. Only the memory of a program of our own is evicted, by `terrace warm evict`.

use std::num::NonZero;
use std::thread;

use super::scaled;
use crate::bench::Session;
use crate::bench::record::{Record, Series, Target};
use crate::error::Error;

mod host;
mod slowed;
mod stopped;
mod swap;
pub(in crate::bench) mod workers;

use host::{Host, meminfo_bytes, oom_kills};
use swap::SwapFile;

/// The set that is restored beside workers, and the one that is stopped half-way.
const SLOWED_MIB: u64 = 512;
const STOPPED_MIB: u64 = 1024;
/// Of the larger set: room in swap for it and for what the rest of the machine may lose.
const SWAP_PARTS: u64 = 2;
/// Of the larger set: it, a hog nearly as large, the workers and as much again for others.
const MEMORY_PARTS: u64 = 4;

/// Measures both, or notes why not.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let Session { request, terrace, directory, record, .. } = session;
    let set_bytes = scaled(request, STOPPED_MIB) << 20;
    if meminfo_bytes("MemAvailable:")? < set_bytes * MEMORY_PARTS {
        let mib = (set_bytes * MEMORY_PARTS) >> 20;
        return leave_out(record, &format!("{mib} MiB of available memory"));
    }
    let _swap = match SwapFile::on(&directory.path().join("swap"), set_bytes * SWAP_PARTS) {
        Ok(swap) => swap,
        Err(needs) => return leave_out(record, &needs),
    };
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let host = Host { terrace: terrace.clone(), processors };
    record.command("terrace warm evict PID".to_owned());
    let killed_before = oom_kills()?;
    let mut wrong = slowed::measure(&host, request, record)?;
    wrong.extend(stopped::measure(&host, request, record)?);
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
