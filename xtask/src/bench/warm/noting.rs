//! How long it takes to note a large page cache, and how long the note is. On the host: an emulated
//! processor would tell nothing.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::scaled;
use crate::bench::Request;
use crate::bench::peer::Peer;
use crate::bench::record::{Comparison, Record, Series, Target};
use crate::error::Error;
use crate::workspace;

/// Large files of 64 MiB hold most of it, 30,000 small ones the rest, as a system does.
const LARGE_BYTES: usize = 64 << 20;
const SMALL_FILES: u64 = 30_000;
const SMALL_BYTES: usize = 16 << 10;

const LIMIT: Duration = Duration::from_secs(120);

/// Makes the files, notes them so often, removes them.
pub(super) fn measure(request: &Request, terrace: &Peer, record: &mut Record) -> Result<(), Error> {
    let root = workspace::current_root()?;
    let target = workspace::target_directory(&workspace::metadata(&root)?)?;
    let mib = scaled(request, 8192);
    let folder = Folder::filled(target.join("terrace-bench-noting"), mib << 20)?;
    let note = folder.0.join("noted");
    let [tree, note_word] = [&folder.0, &note].map(|path| path.to_string_lossy().into_owned());
    let (mut seconds, mut bytes) = (Vec::new(), Vec::new());
    for _ in 0..request.alternations {
        let started = Instant::now();
        terrace.run(&["warm", "snapshot", &note_word, "--tree", &tree], LIMIT)?;
        seconds.push(started.elapsed().as_secs_f64());
        bytes.push(fs::metadata(&note).map_err(Error::io("look at", &note))?.len() as f64);
    }
    record.command("terrace warm snapshot FILE --tree DIR".to_owned());
    let what = format!("snapshot of {mib} MiB in memory");
    let mut add = |what: String, unit, values: &[f64], most| {
        let row = Comparison::alone(
            &what,
            unit,
            Series::new("terrace", values),
            Some(Target::AtMost(most)),
        );
        row.map(|row| record.comparisons.push(row))
    };
    add(what.clone(), "s", &seconds, 2.0)?;
    add(format!("{what}: its file"), "B", &bytes, f64::from(2 << 20))
}

/// Files just written, and so in memory; removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn filled(path: PathBuf, bytes: u64) -> Result<Self, Error> {
        fs::create_dir_all(&path).map_err(Error::io("make", &path))?;
        let folder = Self(path);
        let small_bytes = SMALL_FILES * SMALL_BYTES as u64;
        let write = |name: String, bytes: usize| {
            let path = folder.0.join(name);
            fs::write(&path, vec![7; bytes]).map_err(Error::io("write", &path))
        };
        for file in 0..bytes.saturating_sub(small_bytes) / LARGE_BYTES as u64 {
            write(format!("large-{file}"), LARGE_BYTES)?;
        }
        for file in 0..SMALL_FILES {
            write(format!("small-{file}"), SMALL_BYTES)?;
        }
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
