//! What will be copied from where to where, checked before anything is touched: directories, room,
//! and disks on which a copy says something.

use super::files;
use crate::description::Experiment;
use crate::output_directory;
use crate::{Error, Result};
use model::Bytes;
use model::progress::Control;
use place::copy::{self, CopyRequest};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Smaller sets have files below 1 MiB, which no engine for large files copies.
const LEAST_SIZE: Bytes = Bytes(160 << 20);
/// A tenth of a disk's free space at least is left to others.
const MOST_OF_FREE: f64 = 0.9;

/// What the user chose.
#[derive(Clone, Debug)]
pub struct FileCopyOptions {
    /// The directory on the disk that is read; absent with files of the user's own.
    pub from: Option<PathBuf>,
    /// The directory on the disk that is written.
    pub to: PathBuf,
    /// A directory with files of the user's own.
    pub files: Option<PathBuf>,
    /// Where the results are kept; a directory of this experiment's name if absent.
    pub out: Option<PathBuf>,
    /// The bytes of the files that are made.
    pub size: Bytes,
}

/// What will be done.
#[derive(Clone, Debug)]
pub struct FileCopyPlan {
    /// What the user chose.
    pub options: FileCopyOptions,
    /// Where the results go.
    pub out: PathBuf,
    /// Files that are copied.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether source and target are one file system.
    pub is_one_disk: bool,
}

impl FileCopyPlan {
    /// Checks the options and makes the plan.
    ///
    /// # Errors
    /// `Usage` for what makes no sense, `Impossible` where there is no disk or too little room.
    pub fn of(options: FileCopyOptions, experiment: &Experiment) -> Result<Self> {
        let out = options
            .out
            .clone()
            .unwrap_or_else(|| PathBuf::from(format!("lab-{}", experiment.name)));
        output_directory::check_options(Some(&out), None)?;
        let source = match (&options.files, &options.from) {
            (Some(files), _) => ("--files", files.as_path()),
            (None, Some(from)) => ("--from", from.as_path()),
            (None, None) => return Err(Error::usage("--from DIR or --files DIR is needed")),
        };
        for (option, directory) in [source, ("--to", &options.to)] {
            if !directory.is_dir() {
                let shown = directory.display();
                return Err(Error::usage(format!("{option}: {shown} is no directory")));
            }
        }
        let is_one_disk = device_of(source.1)? == device_of(&options.to)?;
        let (files, bytes) = match &options.files {
            Some(own) => counted(own, &options.to)?,
            None if options.size < LEAST_SIZE => {
                return Err(Error::usage(format!("--size is at least {LEAST_SIZE}")));
            }
            None => (files::FILES, options.size.0),
        };
        let made = if options.files.is_some() { 0 } else { bytes };
        if is_one_disk {
            check_room("--to", &options.to, made + bytes)?;
        } else {
            check_room(source.0, source.1, made)?;
            check_room("--to", &options.to, bytes)?;
        }
        Ok(Self { options, out, files, bytes, is_one_disk })
    }

    /// What is said before anything is done.
    pub fn announcement(&self) -> String {
        let to = self.options.to.display();
        let bytes = Bytes(self.bytes);
        let made = match (&self.options.files, &self.options.from) {
            (None, Some(from)) => format!("makes {bytes} of files in {}, ", from.display()),
            _ => String::new(),
        };
        format!(
            "{made}copies {bytes} to {to} three times; what it makes goes at its end, and the \
             files are put out of the page cache before each copy"
        )
    }
}

/// The number and the bytes of the user's own files.
fn counted(own: &Path, to: &Path) -> Result<(u64, u64)> {
    let request = CopyRequest {
        sources: vec![own.to_owned()],
        target: to.to_owned(),
        ..CopyRequest::default()
    };
    let plan = copy::plan(&request)?;
    let mut ask = || Control::stop_if(sys::interrupt::requested());
    let counted = copy::count(&request, &plan, &mut ask)?;
    if counted.bytes == 0 {
        return Err(Error::usage(format!("--files: there is no data in {}", own.display())));
    }
    Ok((counted.files, counted.bytes))
}

fn device_of(directory: &Path) -> Result<u64> {
    let about = std::fs::metadata(directory);
    let about = about.map_err(|error| {
        let reason = sys::plain_reason(&error);
        Error::usage(format!("cannot examine {}: {reason}", directory.display()))
    })?;
    Ok(about.dev())
}

fn check_room(option: &str, directory: &Path, bytes: u64) -> Result<()> {
    let system = sys::file::file_system_of(directory)?;
    let shown = directory.display();
    if system.in_ram || system.network {
        return Err(Error::impossible(format!("{option}: {shown} is no disk of this machine")));
    }
    if bytes as f64 > system.free_bytes as f64 * MOST_OF_FREE {
        let (needed, free) = (Bytes(bytes), Bytes(system.free_bytes));
        let text = format!("{option}: {shown} has {free} free, and {needed} are needed");
        return Err(Error::impossible(text).hint("a smaller --size"));
    }
    Ok(())
}
