//! Reads of a disk behind a cache on a stick: LRU as it is simulated, against bcache in a guest.
//!
//! `fio` writes down what it asks the cached disk for; the same blocks are given to the simulation
//! with as many slots as the cache has room. Counted are the reads that reach the disk for each
//! request, from an empty cache on.

use crate::bench::Session;
use crate::bench::peer::Peer;
use crate::bench::record::{Series, Target};
use crate::bench::report::malformed;
use crate::bench::steps::Steps;
use crate::error::Error;

use super::guest::{ScriptRun, counted};
use super::{LIMIT, numbers, simulate};

/// The simulation may be so far from bcache.
const DIFFERENCE_MAX: f64 = 0.15;

const MEMORY: &str = "512M";
const DISK: &str = "disk:512M,model=hdd";
const BLOCK_BYTES: f64 = 4096.0;

/// Size of the stick and the skew of the requests: all that is read has room; it has not.
const CASES: [(&str, &str); 2] = [("64M", "1.1"), ("16M", "0.7")];
const REQUESTS: &str = "12000";

/// Figures of a case: pages for each request, simulated and by bcache.
const FIGURES: usize = 2;

/// Compares both.
///
/// # Errors
/// When the guest or the simulation fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let program = simulate(session)?;
    let parameters = format!("{REQUESTS} requests, {CASES:?}");
    let target = session.target.clone();
    let mut steps = Steps::open(&target, "flash", &program.program, &parameters, FIGURES)?;
    for (number, case) in CASES.iter().enumerate() {
        let step = steps.get(number, || one_case(session, &program, *case))?;
        step.note_in(&mut session.record);
        let [simulated, seen] = step.values[..] else {
            return Err(malformed("a step without both figures".to_owned()));
        };
        let pair = (Series::new("simulated LRU", &[simulated]), Series::new("bcache", &[seen]));
        let what = format!("stick of {}: pages read from the disk for each request", case.0);
        let target = Some(Target::Within(DIFFERENCE_MAX));
        session.record.add_against(&what, "pages", pair, target)?;
    }
    steps.end(&mut session.record, "cases", CASES.len());
    Ok(())
}

/// Both figures, and the room that the cache has.
fn one_case(
    session: &mut Session,
    program: &Peer,
    (stick, skew): (&str, &str),
) -> Result<(Vec<f64>, Vec<String>), Error> {
    let disk = format!("stick:{stick},model=usb");
    let run = ScriptRun {
        what: "stick",
        memory: MEMORY,
        disks: &[DISK, &disk],
        packages: &["bcache-tools"],
        modules: &["bcache"],
        command: &["flash.sh", REQUESTS, skew],
    };
    let counts = counted(session, &run)?;
    let room = counts.get("nbuckets")? * counts.get("bucket_size")?;
    let slots = format!("{:.0}", room / BLOCK_BYTES);
    let log = session.directory.file("out/requests");
    session.record.command(program.command_line(&["iolog", "requests", &slots]));
    let printed = program.run(&["iolog", &log, &slots], LIMIT)?.stdout;
    let line = printed.lines().find(|line| line.starts_with("LRU "));
    let [_, requests, misses] = line.map(numbers).unwrap_or_default()[..] else {
        return Err(malformed(format!("no LRU: {printed}")));
    };
    if requests != counts.get("requests")? {
        return Err(malformed(format!("{requests} requests written down")));
    }
    let pages = counts.get("disk_pages")?;
    let note = format!(
        "stick of {stick}, skew {skew}: {requests} requests, {slots} slots; pages read from the \
         disk: {misses} simulated, {pages} by bcache"
    );
    Ok((vec![misses / requests, pages / requests], vec![note]))
}
