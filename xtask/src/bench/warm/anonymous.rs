//! Anonymous memory: 64 MiB on the modelled hard disk, in both layouts; 512 MiB on a fast disk.
//! All ways in one guest, one after another, each on a swap area of its own.

use std::collections::BTreeSet;

use serde_json::Value;

use super::guest::{FAST, Guest, HDD, Scene};
use super::{alone, faster_than, scaled, values};
use crate::bench::Session;
use crate::bench::record::{Record, Series, Target};
use crate::error::Error;

/// By demand 64 MiB take two minutes, two of the others one and a half; hogs take half a minute
/// each.
const TIMEOUT_S: u64 = 900;

pub(super) fn scattered(guest: &Guest, session: &mut Session) -> Result<(), Error> {
    on_a_hard_disk(guest, session, "scattered")
}

pub(super) fn contiguous(guest: &Guest, session: &mut Session) -> Result<(), Error> {
    on_a_hard_disk(guest, session, "contiguous")
}

/// The ways back, as the guest knows them. The tool's own takes a second or two, and what the host
/// does in that second is in it; the others take a minute, in which that evens out.
const WAYS: [&str; 6] = ["restore", "demand", "restore", "swapoff", "restore", "address"];

fn on_a_hard_disk(guest: &Guest, session: &mut Session, layout: &str) -> Result<(), Error> {
    let set = Set {
        mib: scaled(&session.request, 64),
        layout,
        disk: ("hard disk", &format!("swap:2G,{HDD}")),
        memory: "512M",
        hog: "300m",
        total_s: Some(Target::AtMost(1.3)),
        // In the order of addresses a contiguous set is read as well as it can be: no worse is
        // asked there.
        over: [Some(Target::AtLeast(90.0)), Some(Target::AtLeast(1.0)), Some(Target::AtLeast(1.0))],
    };
    set.bring_back(guest, session)
}

pub(super) fn fast(guest: &Guest, session: &mut Session) -> Result<(), Error> {
    for layout in ["scattered", "contiguous"] {
        let set = Set {
            mib: scaled(&session.request, 512),
            layout,
            disk: ("fast disk", &format!("swap:4G,{FAST}")),
            memory: "1536M",
            hog: "900m",
            total_s: None,
            over: [Some(Target::AtLeast(4.0)), Some(Target::AtLeast(1.0)), None],
        };
        set.bring_back(guest, session)?;
    }
    Ok(())
}

/// A set of pages in swap, and what is asked of bringing it back.
struct Set<'a> {
    mib: u64,
    layout: &'a str,
    /// In words, and for the guest.
    disk: (&'a str, &'a str),
    memory: &'a str,
    /// What each of the hogs takes.
    hog: &'a str,
    /// Restore and touch together.
    total_s: Option<Target>,
    /// The gain over demand, `swapoff` and the order of addresses.
    over: [Option<Target>; 3],
}

impl Set<'_> {
    fn bring_back(self, guest: &Guest, session: &mut Session) -> Result<(), Error> {
        let mib = self.mib.to_string();
        let mut words = vec!["anonymous", &mib, self.layout, self.hog];
        words.extend(WAYS);
        let scene = Scene {
            disks: &[self.disk.1],
            memory: self.memory,
            packages: &[],
            timeout_s: TIMEOUT_S,
            words: &words,
        };
        let lines = guest.play(&scene, session)?;
        let record = &mut session.record;
        let what = format!("{mib} MiB {}, {}", self.layout, self.disk.0);
        let total = format!("{what}: restore and touch");
        alone(record, &lines, (&total, "s", "total_s"), self.total_s)?;
        let [demand, swapoff, address] = self.over;
        let peers = [
            ("demand", "demand", demand),
            ("swapoff", "swapoff", swapoff),
            ("address", "address order, as de-swap", address),
        ];
        faster_than(record, &lines, &what, &peers)?;
        wrong_pages(record, &lines, &what)
    }
}

/// After every way, not only the tool's own.
fn wrong_pages(record: &mut Record, lines: &[Value], what: &str) -> Result<(), Error> {
    let ways = BTreeSet::from(WAYS);
    let wrong: Vec<f64> =
        ways.into_iter().flat_map(|way| values(lines, way, "wrong_pages")).collect();
    record.add_alone(
        &format!("{what}: wrong pages after any way"),
        "pages",
        Series::new("toucher", &wrong),
        Some(Target::AtMost(0.0)),
    )
}
