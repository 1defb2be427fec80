//! How long it takes to note a large page cache, and how long the note is. On the host: an emulated
//! processor would tell nothing.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::scaled;
use crate::bench::Session;
use crate::bench::directory::WorkDirectory;
use crate::bench::record::{Series, Target};
use crate::error::Error;

/// Large files of 64 MiB hold most of it, 30,000 small ones the rest, as a system does.
const LARGE_BYTES: usize = 64 << 20;
const SMALL_FILES: u64 = 30_000;
const SMALL_BYTES: usize = 16 << 10;

const LIMIT: Duration = Duration::from_secs(120);

/// Makes the files, notes them so often, removes them.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let Session { request, terrace, target, record, .. } = session;
    let mib = scaled(request, 8192);
    let folder = WorkDirectory::make(target, "noting")?;
    fill(&folder, mib << 20)?;
    let note = folder.file("noted");
    let (mut seconds, mut bytes) = (Vec::new(), Vec::new());
    for _ in 0..request.alternations {
        let started = Instant::now();
        terrace.run(&["warm", "snapshot", &note, "--tree", folder.name()], LIMIT)?;
        seconds.push(started.elapsed().as_secs_f64());
        bytes.push(fs::metadata(&note).map_err(Error::io("look at", Path::new(&note)))?.len() as f64);
    }
    record.command("terrace warm snapshot FILE --tree DIR".to_owned());
    let what = format!("snapshot of {mib} MiB in memory");
    let mut add = |what: &str, unit, values: &[f64], most| {
        record.add_alone(what, unit, Series::new("terrace", values), Some(Target::AtMost(most)))
    };
    add(&what, "s", &seconds, 2.0)?;
    add(&format!("{what}: its file"), "B", &bytes, f64::from(2 << 20))
}

/// Writes files, which are in memory then.
fn fill(folder: &WorkDirectory, bytes: u64) -> Result<(), Error> {
    let small_bytes = SMALL_FILES * SMALL_BYTES as u64;
    for file in 0..bytes.saturating_sub(small_bytes) / LARGE_BYTES as u64 {
        folder.write(&format!("large-{file}"), vec![7; LARGE_BYTES])?;
    }
    for file in 0..SMALL_FILES {
        folder.write(&format!("small-{file}"), [7; SMALL_BYTES])?;
    }
    Ok(())
}
