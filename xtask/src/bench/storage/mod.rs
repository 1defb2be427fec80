//! The suite `storage`: reads, writes and latency against fio and ioping, past the page cache.
//!
//! 1. fio lays a file of incompressible data in a directory of its own; all reads of all programs
//!    go to that file. Writes go to a new file each time, as large and as preallocated.
//! 2. In each round both programs have their turn, at the same request size and depth.
//! 3. Compared are the rate and the processor time that one request cost, as each program accounts
//!    it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::directory::WorkDirectory;
use super::peer::{Peer, Version};
use super::{Measure, Session, SuiteRequest, facts};
use crate::error::Error;

mod compared;
mod fio;
mod ioping;
mod ours;

/// Size of the file that is read, and of each that is written: seconds of work for one device, and
/// far more than a drive's own cache on most.
const FILE_MIB: u64 = 1024;

const PARTS: &[(&str, Measure)] = &[
    ("random", compared::random),
    ("sequential", compared::sequential),
    ("latency", compared::latency),
];

/// Lays the file that is read, and runs the parts that are asked for.
///
/// # Errors
/// When a program is missing, fails, or prints what cannot be read.
pub(super) fn run(session: &mut Session) -> Result<(), Error> {
    let fio = fio(&session.request)?;
    session.record.programs.push(fio.clone());
    if let Some(system) = facts::file_system(Path::new("/"), session.directory.path()) {
        session.record.notes.push(format!("measured on {system}"));
    }
    fio::lay(&fio, &read_file(&session.directory))?;
    session.run(PARTS)
}

fn fio(request: &SuiteRequest) -> Result<Peer, Error> {
    Peer::find(request, "fio", Version::Option("--version"))
}

/// The file that is read.
fn read_file(directory: &WorkDirectory) -> String {
    directory.file("read")
}

/// A name for a file that is to be written, free again.
fn fresh_file(directory: &WorkDirectory) -> Result<String, Error> {
    let name = directory.file("written");
    match fs::remove_file(&name) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::io("remove", Path::new(&name))(error))
        }
        _ => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_to_write_is_fresh_each_time() {
        let parent = testkit::TempDir::new();
        let directory = WorkDirectory::make(parent.path(), "storage").unwrap();
        for _ in 0..2 {
            let name = fresh_file(&directory).unwrap();
            assert!(!Path::new(&name).exists());
            fs::write(name, "x").unwrap();
        }
    }
}
