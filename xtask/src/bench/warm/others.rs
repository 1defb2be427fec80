//! Files on the modelled hard disk, and a page cache brought back from its snapshot. The peers
//! differ from part to part; demand is always among them where there is something to wait for.

use super::guest::{Guest, HDD, Scene};
use super::{alone, faster_than, scaled, values};
use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::error::Error;

pub(super) fn mapped(guest: &Guest, session: &mut Session) -> Result<(), Error> {
    let mib = scaled(&session.request, 64);
    let scene = Scene {
        disks: &[&format!("data:2G,{HDD}")],
        memory: "512M",
        packages: &[],
        timeout_s: 600,
        words: &["mapped", &mib.to_string(), "restore", "demand", "restore", "cat", "restore"],
    };
    let lines = guest.play(&scene, session)?;
    let record = &mut session.record;
    let what = format!("file of {mib} MiB mapped, read at random, hard disk");
    alone(record, &lines, (&format!("{what}: restore and read"), "s", "total_s"), None)?;
    let peers =
        [("demand", "demand", Some(Target::AtLeast(8.0))), ("cat", "dd of the file before", None)];
    faster_than(record, &lines, &what, &peers)
}

pub(super) fn snapshot(guest: &Guest, session: &mut Session) -> Result<(), Error> {
    let mib = scaled(&session.request, 1024);
    let scene = Scene {
        disks: &[&format!("data:4G,{HDD}")],
        memory: "2G",
        packages: &[],
        timeout_s: 900,
        words: &["snapshot", &mib.to_string()],
    };
    let lines = guest.play(&scene, session)?;
    let record = &mut session.record;
    let what = format!("page cache of {mib} MiB from its snapshot, hard disk");
    let rates = |name: &str, key| Series::new(name, &values(&lines, "restore", key));
    let pair = (rates("terrace", "brought_mib_per_s"), rates("dd, direct", "sequential_mib_per_s"));
    record.add_against(&what, "MiB/s", pair, Some(Target::AtLeast(0.8)))?;
    alone(
        record,
        &lines,
        ("brought back", "MiB", "brought_mib"),
        Some(Target::AtLeast(mib as f64 * 0.99)),
    )
}
