//! `terrace lab run recovery-2012 --whole-machine` in a guest with the modelled hard disk, beside
//! the figures of 2012. What the lab keeps stays below cargo's target directory.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::guest::{Guest, HDD, Scene};
use super::scaled;
use crate::bench::Session;
use crate::bench::record::{Record, Series, Target};
use crate::error::Error;

/// The databases, each with its three ways: hogs five times before each, and at most two minutes
/// after.
const TIMEOUT_S: u64 = 1800;

/// The ways of the lab, each with the figure of 2012.
const WAYS: [(&str, &str); 3] = [
    ("nothing", " (2012, no flash cache: 155 s)"),
    ("swapoff", ""),
    ("restore", " (2012, flash cache little filled: 119 s, well filled: 35 s)"),
];

/// One experiment for each alternation.
pub(super) fn measure(guest: &Guest, session: &mut Session) -> Result<(), Error> {
    let repeat = scaled(&session.request, 5).max(1).to_string();
    let scene = Scene {
        disks: &[&format!("data:4G,{HDD}")],
        memory: "384M",
        packages: &["postgresql-15"],
        timeout_s: TIMEOUT_S,
        words: &["recovery", "sqlite,postgresql", &repeat, "120s"],
    };
    let kept = session.target.join("terrace-bench-warm-recovery");
    let _ = fs::remove_dir_all(&kept);
    let mut number = 0;
    let lines = guest.play_and_keep(&scene, session, &mut |out| {
        number += 1;
        keep(out, &kept, number)
    })?;
    let record = &mut session.record;
    record.notes.push(
        "recovery: the lab's results and recordings are in terrace-bench-warm-recovery of the target directory"
            .to_owned(),
    );
    for application in ["sqlite", "postgresql"] {
        rows(record, &lines, application)?;
    }
    let wrong: Vec<f64> = lines.iter().filter_map(|line| line["wrong"].as_f64()).collect();
    record.add_alone(
        "recovery-2012: wrong answers and rows after any way",
        "rows",
        Series::new("lab", &wrong),
        Some(Target::AtMost(0.0)),
    )
}

/// Moves what the lab left in the guest's folder to where it stays.
fn keep(out: &Path, kept: &Path, number: u32) -> Result<(), Error> {
    fs::create_dir_all(kept).map_err(Error::io("make", kept))?;
    let (from, to) = (out.join("lab"), kept.join(number.to_string()));
    fs::rename(&from, &to).map_err(Error::io("keep", &from))
}

/// Each way of one application: until it was as fast as before, and until the disk was back to
/// normal.
fn rows(record: &mut Record, lines: &[Value], application: &str) -> Result<(), Error> {
    for (way, original) in WAYS {
        let of_way = || {
            lines
                .iter()
                .filter(move |line| line["way"] == way && line["application"] == application)
        };
        let seconds =
            |clock: fn(&Value) -> Option<f64>| -> Vec<f64> { of_way().filter_map(clock).collect() };
        let recovered = seconds(|line| line["recovered_s"].as_f64());
        let normal = seconds(|line| {
            let clocks = ["quiet_s", "cached_s"].map(|key| line[key].as_f64());
            clocks.into_iter().flatten().reduce(f64::min)
        });
        for (values, clock) in [
            (recovered, "until its former p99 x 1.2"),
            (normal, "until the disk was back to normal"),
        ] {
            let what = format!("recovery-2012, {application}, {way}: {clock}{original}");
            if values.len() < of_way().count() {
                let (seen, all) = (values.len(), of_way().count());
                record.notes.push(format!("{what}: {seen} of {all} times before the limit"));
            }
            if !values.is_empty() {
                record.add_alone(&what, "s", Series::new("lab", &values), None)?;
            }
        }
    }
    Ok(())
}
