//! The suite `storage`: reads, writes and latency against fio and ioping, past the page cache.
//!
//! 1. fio lays a file of incompressible data in a directory of its own; all reads of all programs
//!    go to that file. Writes go to a new file each time, as large and as preallocated.
//! 2. In each round both programs have their turn, at the same request size and depth.
//! 3. Compared are the rate and the processor time that one request cost, as each program accounts
//!    it.
//!
//! The directory is removed at the end, also after an error; only a killed bench leaves it, and the
//! next one says so.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::peer::{Peer, Version};
use super::record::Record;
use super::{Request, facts};
use crate::error::Error;
use crate::workspace;

mod compared;
mod fio;
mod ioping;
mod ours;

/// Size of the file that is read, and of each that is written: seconds of work for one device, and
/// far more than a drive's own cache on most.
const FILE_MIB: u64 = 1024;

/// The directory that the suite makes and removes.
const DIRECTORY: &str = "terrace-bench-storage";

/// What replaces the file and the directory in a record's command lines.
const FILE: &str = "FILE";

/// Runs the parts that `request` asks for.
///
/// # Errors
/// When a program is missing, fails, or prints what cannot be read, and when the directory cannot
/// be made.
pub fn run(request: &Request) -> Result<Record, Error> {
    let root = workspace::current_root()?;
    let terrace = Peer::terrace(&root)?;
    let fio = Peer::find(request, "fio", Version::Option("--version"))?;
    let suite = match &request.part {
        Some(part) => format!("{} {part}", request.suite.name),
        None => request.suite.name.to_owned(),
    };
    let mut record = Record::start(&suite);
    record.programs.extend([terrace.clone(), fio.clone()]);
    let parent = match &request.directory {
        Some(directory) => directory.clone(),
        None => workspace::target_directory(&workspace::metadata(&root)?)?,
    };
    let place = Place::make(&parent)?;
    if let Some(system) = facts::file_system(Path::new("/"), &place.directory) {
        record.notes.push(format!("measured on {system}"));
    }
    fio::lay(&fio, &place)?;
    let programs =
        compared::Programs { terrace: &terrace, fio: &fio, fio_huge: &fio::with_huge_pages(&fio) };
    if request.includes("random") {
        compared::random(request, &programs, &place, &mut record)?;
    }
    if request.includes("sequential") {
        compared::sequential(request, &programs, &place, &mut record)?;
    }
    if request.includes("latency") {
        let ioping = Peer::find(request, "ioping", Version::Option("-v"))?;
        record.programs.push(ioping.clone());
        compared::latency(request, (&terrace, &ioping), &place, &mut record)?;
    }
    record.finish();
    Ok(record)
}

/// The suite's own directory; removed with all that is in it when dropped.
struct Place {
    directory: PathBuf,
    /// The file that is read, as text for command lines.
    file: String,
    /// The directory, likewise.
    name: String,
}

impl Place {
    fn make(parent: &Path) -> Result<Self, Error> {
        let directory = parent.join(DIRECTORY);
        fs::create_dir(&directory).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::Failed(format!(
                "{} is there: another bench runs, or one was killed; remove it if none runs",
                directory.display()
            )),
            _ => Error::io("create", &directory)(error),
        })?;
        let utf8 = |path: &Path| path.to_str().map(str::to_owned);
        let (file, name) = (utf8(&directory.join("read")), utf8(&directory));
        match (file, name) {
            (Some(file), Some(name)) => Ok(Self { directory, file, name }),
            _ => {
                // Best effort: the directory is empty and was made a moment ago.
                let _ = fs::remove_dir(&directory);
                Err(Error::Usage("the path of the directory must be UTF-8".to_owned()))
            }
        }
    }

    /// A name for a file that is to be written, free again.
    fn fresh(&self) -> Result<String, Error> {
        let path = self.directory.join("written");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io("remove", &path)(error))
            }
            _ => Ok(format!("{}/written", self.name)),
        }
    }

    /// `args` with the names that replace this place on other machines.
    fn anonymous<'a>(&self, args: &[&'a str]) -> Vec<&'a str> {
        let is_here = |arg: &str| arg.contains(&self.name);
        args.iter()
            .map(|arg| match *arg {
                arg if arg.starts_with("--filename=") && is_here(arg) => "--filename=FILE",
                arg if arg == self.name => "DIR",
                arg if is_here(arg) => FILE,
                arg => arg,
            })
            .collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Nothing is left to do about a file system that refuses.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::record::tests::Scratch;

    #[test]
    fn the_place_is_removed_and_a_foreign_one_is_not_taken() {
        let parent = Scratch::new("place");
        let place = Place::make(parent.path()).unwrap();
        fs::write(&place.file, "x").unwrap();
        let error = Place::make(parent.path()).map(drop).unwrap_err();
        assert!(error.to_string().contains("remove it if none runs"), "{error}");
        let directory = place.directory.clone();
        drop(place);
        assert!(!directory.exists());
    }

    #[test]
    fn a_file_to_write_is_fresh_each_time() {
        let parent = Scratch::new("fresh");
        let place = Place::make(parent.path()).unwrap();
        for _ in 0..2 {
            let name = place.fresh().unwrap();
            assert!(!Path::new(&name).exists());
            fs::write(name, "x").unwrap();
        }
    }

    #[test]
    fn records_name_no_path_of_this_machine() {
        let parent = Scratch::new("anonymous");
        let place = Place::make(parent.path()).unwrap();
        let filename = format!("--filename={}", place.file);
        let args = ["measure", "iolat", &place.file, "-D", &place.name, &filename];
        let expected = ["measure", "iolat", "FILE", "-D", "DIR", "--filename=FILE"];
        assert_eq!(place.anonymous(&args), expected);
    }
}
