//! Memory gets short in the middle of a restore: how soon the whole command has ended.
//!
//! Free memory down to the floor is the sign. The floor is set so far below what is free at the
//! start that the restore gets half-way, and a hog takes the rest at once, on a machine that has
//! plenty: nobody else loses anything. Once with idle processors and once with workers on all.

use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use testkit::WorkingSet;

use super::host::{self, Host, Restore, meminfo_bytes};
use super::workers::{Within, Workers};
use super::{STOPPED_MIB, scaled};
use crate::bench::SuiteRequest;
use crate::bench::record::{Record, Series, Target};
use crate::error::Error;

/// Between two looks of the witness.
const LOOK: Duration = Duration::from_millis(2);
/// Of the set: what is left above the floor, how much is back when the hog comes, and what that
/// takes.
const ROOM: f64 = 0.4;
const BACK: f64 = 0.1;
const HOG: f64 = 0.7;

/// From the first sign to the end of the command.
const MOST: Option<Target> = Some(Target::AtMost(0.2));

/// What one restore showed.
struct Seen {
    /// 0 where it had ended before the sign.
    stopped_s: f64,
    reason: String,
    /// What lay in swap still when it had ended.
    left_mib: u64,
}

/// Measures with and without workers in turn; how many pages were wrong in each alternation.
pub(super) fn measure(
    host: &Host,
    request: &SuiteRequest,
    record: &mut Record,
) -> Result<Vec<f64>, Error> {
    let mib = scaled(request, STOPPED_MIB);
    let mut owner = host.owner(mib)?;
    let mut wrong = Vec::new();
    let mut stopped_s = [Vec::new(), Vec::new()];
    for alternation in 0..request.alternations {
        for turn in 0..stopped_s.len() {
            let row = (alternation + turn) % stopped_s.len();
            let seen = beside(host, &owner, mib << 20, row * host.processors)?;
            stopped_s[row].push(seen.stopped_s);
            let (reason, left) = (&seen.reason, seen.left_mib);
            let note = format!("beside: stopped for {reason}, {left} of {mib} MiB still in swap");
            record.notes.push(note);
            wrong.push(host::wrong_pages(&mut owner)?);
        }
    }
    record
        .command("terrace warm restore --pid PID --only anonymous --floor SIZE --json".to_owned());
    let what = "beside: from the first sign that memory is short to the restore's end";
    for (processors, values) in ["idle", "busy"].iter().zip(&stopped_s) {
        let row = format!("{what}, processors {processors}");
        record.add_alone(&row, "s", Series::new("terrace", values), MOST)?;
    }
    Ok(wrong)
}

/// One restore that is stopped, beside `count` workers.
fn beside(host: &Host, owner: &WorkingSet, set_bytes: u64, count: usize) -> Result<Seen, Error> {
    host.evict(owner)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _workers = Workers::start((count, Within::Memory), scope, &over, Instant::now());
        let floor = meminfo_bytes("MemAvailable:")?.saturating_sub(part(set_bytes, ROOM));
        let mut restore = host.restore(owner, &["--floor", &floor.to_string()])?;
        let swapped = host::swapped_bytes(owner.pid())?;
        let wanted = swapped.saturating_sub(part(set_bytes, BACK));
        while restore.runs() && host::swapped_bytes(owner.pid())? > wanted {
            thread::sleep(LOOK);
        }
        // Not zero, so that every page is touched and not only reserved.
        let hog = scope.spawn(move || vec![1_u8; part(set_bytes, HOG) as usize]);
        let stopped_s = witness(&mut restore, floor)?;
        black_box(hog.join().unwrap_or_default());
        Ok(Seen {
            stopped_s,
            reason: restore.stop_reason()?,
            left_mib: host::swapped_bytes(owner.pid())? >> 20,
        })
    })
}

/// Looks until the restore has ended; seconds since free memory first was down to `floor`.
fn witness(restore: &mut Restore, floor: u64) -> Result<f64, Error> {
    let mut sign = None;
    while restore.runs() {
        if sign.is_none() && meminfo_bytes("MemAvailable:")? <= floor {
            sign = Some(Instant::now());
        }
        thread::sleep(LOOK);
    }
    Ok(sign.map_or(0.0, |sign: Instant| sign.elapsed().as_secs_f64()))
}

fn part(bytes: u64, share: f64) -> u64 {
    (bytes as f64 * share) as u64
}
