//! Where a recording goes: into memory, a file, or a ring of files, as the user asked.
//!
//! Opening is above the sinks: each of them knows only itself.

use super::recent::RecentSink;
use super::sampler::{Assignment, Sampler};
use super::shown_sink::ShownSink;
use crate::file::{FileSink, MemoryFile, Ring, Writer};
use crate::{Error, ErrorKind, Result};

/// Starts a sampler whose sink is the one that the assignment asks for.
///
/// # Errors
/// When the recording cannot be made.
pub(super) fn start_sampler(assignment: Assignment) -> Result<Sampler> {
    let watch = &assignment.watch;
    let (force, keep_bytes) = (watch.force, watch.keep_bytes);
    match (watch.output.clone(), watch.keep_ns) {
        (None, None) => {
            let file = MemoryFile::new(watch.kept_bytes.clone());
            Sampler::start(assignment, |facts| Writer::new(file, facts))
        }
        (None, Some(_)) => {
            let why = "a ring needs a directory";
            Err(Error::new(ErrorKind::Usage, "keep the last hours", why))
        }
        (Some(path), None) => {
            Sampler::start(assignment, move |facts| FileSink::create(&path, force, facts))
        }
        (Some(path), Some(keep_ns)) => {
            Sampler::start(assignment, move |facts| Ring::open(&path, keep_ns, keep_bytes, facts))
        }
    }
}

/// As [`start_sampler`], with the last minutes in `recent` as well; without an output only those
/// are kept.
///
/// # Errors
/// When the recording cannot be made.
pub(super) fn start_shown_sampler(
    assignment: Assignment,
    recent: Option<RecentSink>,
) -> Result<Sampler> {
    let Some(recent) = recent else {
        return start_sampler(assignment);
    };
    let watch = &assignment.watch;
    let (force, keep_bytes) = (watch.force, watch.keep_bytes);
    match (watch.output.clone(), watch.keep_ns) {
        (None, _) => Sampler::start(assignment, move |_| Ok(recent)),
        (Some(path), None) => Sampler::start(assignment, move |facts| {
            Ok(ShownSink::new(FileSink::create(&path, force, facts)?, recent))
        }),
        (Some(path), Some(keep_ns)) => Sampler::start(assignment, move |facts| {
            let ring = Ring::open(&path, keep_ns, keep_bytes, facts)?;
            Ok(ShownSink::new(ring, recent))
        }),
    }
}
