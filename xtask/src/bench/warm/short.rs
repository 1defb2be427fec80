//! Memory gets short again during a restore: how much a program beside it slows down, and how
//! soon the restore stops.
//!
//! In the guest, on the modelled hard disk, where the whole machine can be made short. It has one
//! emulated processor, which the bystander and the restore share, and where a restore costs many
//! times the processor time of a real one: what it is slowed by there is an upper bound, and has no
//! target.

use serde_json::Value;

use super::guest::{Guest, HDD, Scene};
use super::{scaled, values};
use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::error::Error;

/// A set is evicted and restored twice.
const TIMEOUT_S: u64 = 900;

pub(super) fn measure(guest: &Guest, session: &mut Session) -> Result<(), Error> {
    let mib = scaled(&session.request, 192).to_string();
    let scene = Scene {
        disks: &[&format!("swap:4G,{HDD}")],
        memory: "640M",
        packages: &[],
        timeout_s: TIMEOUT_S,
        words: &["short", &mib, "350m"],
    };
    let lines = guest.play(&scene, session)?;
    let record = &mut session.record;
    let what = format!("{mib} MiB brought back from a hard disk");
    let none = Some(Target::AtMost(0.0));
    let mut add = |row: String, unit, way: &str, key: &str, target| {
        let series = Series::new("terrace", &values(&lines, way, key));
        record.add_alone(&row, unit, series, target)?;
        Ok::<(), Error>(())
    };
    let slowed = format!("{what}: who works beside, time of a round over alone");
    add(slowed, "times", "undisturbed", "slowed", None)?;
    let stopped = format!("{what}: from the first sign that memory is short to its end");
    add(stopped, "s", "short", "stopped_s", Some(Target::AtMost(0.2)))?;
    add(format!("{what}: killed for memory"), "processes", "all", "oom_kills", none)?;
    let wrong = format!("{what}: wrong pages");
    add(format!("{wrong} undisturbed"), "pages", "undisturbed", "wrong_pages", none)?;
    add(format!("{wrong} stopped"), "pages", "short", "wrong_pages", none)?;
    record.notes.extend(lines.iter().filter_map(early));
    Ok(())
}

/// What a restore that was to be stopped ended for.
fn early(line: &Value) -> Option<String> {
    let stop = line["stop"].as_str()?;
    let left = &line["left_mib"];
    Some(format!("short: stopped for {stop}, {left} MiB still in swap at the first sign"))
}
