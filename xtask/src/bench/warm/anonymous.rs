//! Anonymous memory: 64 MiB on the modelled hard disk, in both layouts; 512 MiB on a fast disk.
//! All ways in one guest, one after another, each on a swap area of its own.

use serde_json::Value;

use super::guest::{FAST, Guest, HDD, Scene};
use super::{alone, faster_than, scaled, values};
use crate::bench::Request;
use crate::bench::record::{Comparison, Record, Series, Target};
use crate::error::Error;

/// By demand 64 MiB take two minutes, two of the others one and a half; hogs take half a minute each.
const TIMEOUT_S: u64 = 900;

pub(super) fn scattered(
    guest: &Guest,
    request: &Request,
    record: &mut Record,
) -> Result<(), Error> {
    on_a_hard_disk(guest, request, "scattered", record)
}

pub(super) fn contiguous(
    guest: &Guest,
    request: &Request,
    record: &mut Record,
) -> Result<(), Error> {
    on_a_hard_disk(guest, request, "contiguous", record)
}

fn on_a_hard_disk(
    guest: &Guest,
    request: &Request,
    layout: &str,
    record: &mut Record,
) -> Result<(), Error> {
    let mib = scaled(request, 64);
    let scene = Scene {
        disks: &[&format!("swap:2G,{HDD}")],
        memory: "512M",
        packages: &[],
        timeout_s: TIMEOUT_S,
        words: &[
            "anonymous",
            &mib.to_string(),
            layout,
            "300m",
            "restore",
            "demand",
            "swapoff",
            "address",
        ],
    };
    let lines = guest.play(&scene, request.alternations, record)?;
    let what = format!("{mib} MiB {layout}, hard disk");
    let seconds = (format!("{what}: restore and touch"), Target::AtMost(1.3));
    alone(
        record,
        &lines,
        (&seconds.0, "s", "total_s"),
        Some(seconds.1),
    )?;
    // In the order of addresses a contiguous set is read as well as it can be: no worse is asked there.
    let peers = [
        ("demand", "demand", Some(Target::AtLeast(90.0))),
        ("swapoff", "swapoff", Some(Target::AtLeast(1.0))),
        (
            "address",
            "address order, as de-swap",
            Some(Target::AtLeast(1.0)),
        ),
    ];
    faster_than(record, &lines, &what, &peers)?;
    wrong_pages(record, &lines, &what)
}

pub(super) fn fast(guest: &Guest, request: &Request, record: &mut Record) -> Result<(), Error> {
    let mib = scaled(request, 512);
    for layout in ["scattered", "contiguous"] {
        let scene = Scene {
            disks: &[&format!("swap:4G,{FAST}")],
            memory: "1536M",
            packages: &[],
            timeout_s: TIMEOUT_S,
            words: &[
                "anonymous",
                &mib.to_string(),
                layout,
                "900m",
                "restore",
                "demand",
                "swapoff",
                "address",
            ],
        };
        let lines = guest.play(&scene, request.alternations, record)?;
        let what = format!("{mib} MiB {layout}, fast disk");
        alone(
            record,
            &lines,
            (&format!("{what}: restore and touch"), "s", "total_s"),
            None,
        )?;
        let peers = [
            ("demand", "demand", Some(Target::AtLeast(4.0))),
            ("swapoff", "swapoff", Some(Target::AtLeast(1.0))),
            ("address", "address order, as de-swap", None),
        ];
        faster_than(record, &lines, &what, &peers)?;
        wrong_pages(record, &lines, &what)?;
    }
    Ok(())
}

/// After every way, not only the tool's own.
fn wrong_pages(record: &mut Record, lines: &[Value], what: &str) -> Result<(), Error> {
    let ways = ["restore", "demand", "swapoff", "address"];
    let wrong: Vec<f64> = ways
        .iter()
        .flat_map(|way| values(lines, way, "wrong_pages"))
        .collect();
    let row = Comparison::alone(
        &format!("{what}: wrong pages after any way"),
        "pages",
        Series::new("toucher", &wrong),
        Some(Target::AtMost(0.0)),
    )?;
    record.comparisons.push(row);
    Ok(())
}
