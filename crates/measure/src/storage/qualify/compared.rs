//! The disk that a stick would help: a few random reads of it, in the same run, so that the verdict
//! compares two measurements and no figures from a data sheet.
//!
//! A block device is read anywhere, which needs root; in a directory it is a nameless file.
//! Without `--for` it is the disk of the root file system, because there the system and its swap
//! are; if that has none (a container), the largest disk that is mounted.

use super::candidate::{Candidate, node};
use super::requests;
use crate::Budget;
use crate::storage::iolat::fill_own;
use machine::Root;
use machine::block::{self, Disk};
use machine::mounts;
use model::Bytes;
use model::bytes::MIB;
use model::qualification::ComparedDisk;
use std::path::{Path, PathBuf};

/// The own file in a directory: its blocks last for seconds of a slow disk.
const FILE: Bytes = Bytes(64 * MIB);
const LEAST_FILE: Bytes = Bytes(4 * MIB);

/// Reads the disk at `path`, or the default one; adds to `written_bytes` what its own file took.
/// The error says in words why it was not read.
pub(super) fn measure(
    path: Option<&Path>,
    stick: &Candidate<'_>,
    budget: &Budget,
    written_bytes: &mut u64,
) -> Result<ComparedDisk, String> {
    let root = stick.root;
    let (path, why) = match path {
        Some(path) => (path.to_owned(), "it was named by --for".to_owned()),
        None => default_disk(root)?,
    };
    let words = |error: crate::Error| model::error_chain(&error);
    let hint = |reason: String| {
        let hint = "; --for DIRECTORY measures it by a file";
        format!("{reason}{}", if path.is_dir() { "" } else { hint })
    };
    let disk = Candidate::open(&path, root).map_err(|error| hint(words(error)))?;
    if disk.disk.is_some() && same_disk(disk.disk.as_ref(), stick.disk.as_ref()) {
        let name = disk.facts.disk.unwrap_or_default();
        return Err(format!("{name} is the disk that was qualified: name another by --for"));
    }
    let random_read = if disk.is_device() {
        let bytes = disk.target.bytes().map_err(words)?;
        requests::read(&disk, bytes, budget)
    } else {
        let (size, _) = disk.target.fit(root, FILE, LEAST_FILE).map_err(words)?;
        let seed = disk.target.draw_seed().map_err(words)?;
        let part = budget.part(budget.left() / 2);
        let bytes = fill_own(&disk.target, size, seed, &part).map_err(words)?;
        *written_bytes += bytes;
        requests::read(&disk, bytes, budget)
    };
    Ok(ComparedDisk {
        disk: disk.facts.disk.clone(),
        random_read: random_read.map_err(words)?,
        path,
        why,
    })
}

fn same_disk(a: Option<&Disk>, b: Option<&Disk>) -> bool {
    a.zip(b).is_some_and(|(a, b)| (a.major, a.minor) == (b.major, b.minor))
}

/// The node of the disk of the root file system, or of the largest disk that is mounted.
fn default_disk(root: &Root) -> Result<(PathBuf, String), String> {
    let mounts = mounts::read(root);
    let of = |mount: &mounts::Mount| block::of_device(root, mount.major, mount.minor);
    let root_disk = mounts::behind(&mounts, Path::new("/")).and_then(of);
    if let Some(disk) = root_disk {
        return Ok((node(&disk.name), "it holds the root file system".to_owned()));
    }
    let largest = mounts.iter().filter_map(of).max_by_key(|disk| disk.size);
    largest
        .map(|disk| (node(&disk.name), "it is the largest disk that is mounted".to_owned()))
        .ok_or_else(|| "no disk is known behind the root file system".to_owned())
}
