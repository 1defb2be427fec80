//! The suite `record`: what watching costs, beside other recorders; how large a recording
//! is while a compiler runs; whether samples are lost while memory is short; and how long
//! an hour takes to explain.
//!
//! The cost of a recorder is the time that its threads were on a processor, as the kernel
//! charged it in nanoseconds, over a window that opens after it has settled.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Request;
use super::peer::Peer;
use super::record::Record;
use crate::error::Error;
use crate::workspace;

mod cost;
mod explained;
mod pcp;
mod pressure;
mod running;
mod size;

/// The directory that the suite makes and removes.
const DIRECTORY: &str = "terrace-bench-record";

/// No command of Terrace's own takes longer than the hour's recording and this.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs the parts that `request` asks for.
///
/// # Errors
/// When a program is missing or fails, and when a directory cannot be made.
pub fn run(request: &Request) -> Result<Record, Error> {
    let root = workspace::current_root()?;
    let terrace = Peer::terrace(&root)?;
    let suite = match &request.part {
        Some(part) => format!("{} {part}", request.suite.name),
        None => request.suite.name.to_owned(),
    };
    let mut record = Record::start(&suite);
    record.programs.push(terrace.clone());
    let place = Place::make(&workspace::target_directory(&workspace::metadata(&root)?)?)?;
    if request.includes("cost") {
        cost::measure(request, &terrace, &place, &mut record)?;
    }
    if request.includes("size") {
        size::measure(request, &terrace, &place, &mut record)?;
    }
    if request.includes("pressure") {
        pressure::measure(request, &terrace, &place, &mut record)?;
    }
    if request.includes("explained") {
        explained::measure(request, &terrace, &place, &mut record)?;
    }
    record.finish();
    Ok(record)
}

/// The directory of the suite; removed on drop.
struct Place {
    directory: PathBuf,
}

impl Place {
    fn make(parent: &Path) -> Result<Self, Error> {
        let directory = parent.join(DIRECTORY);
        fs::create_dir(&directory)
            .map_err(|error| Error::Failed(format!("{}: {error}", directory.display())))?;
        Ok(Self { directory })
    }

    /// The path of something in it, as text for a command line.
    fn file(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// What `terrace explain --json` says of a recording.
fn explained_json(terrace: &Peer, file: &str) -> Result<serde_json::Value, Error> {
    let finished = terrace.run(&["explain", "--json", file], LIMIT)?;
    serde_json::from_str(&finished.stdout)
        .map_err(|error| Error::Malformed { what: "the explanation", why: error.to_string() })
}
