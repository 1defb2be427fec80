//! `terrace ramdisk save`, `restore` and `keep` against `rsync -a --delete`, `tar -x` and `cp -a`:
//! from and to a tmpfs, the disk is a new ext4 on a loop device. The sync of the disk is in all
//! times.
//!
//! - `unchanged`, `changed`: 100,000 files of 4 KiB, nothing changed, or 1 % of them; also against
//!   the scripts anything-sync-daemon and log2ram.
//! - `little`: what is written for 4 KiB at the end of 64 MiB, and for seven logs that are rotated.
//! - `restore`: 100,000 files brought back, the disk mounted anew.
//! - `large`: 1 GiB in large files, saved and restored, beside the rates of `measure seqio`.
//! - `writer`, `beside`: what a save costs a program that writes to the RAM disk, and workers.
//! - `databases`: SQLite and PostgreSQL saved under load, after power cuts of the disk.
//! - `keep`: what the service costs with 100,000 files.

mod beside;
mod databases;
mod keep;
mod large;
mod scripts;
mod small;
mod writer;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use testkit::{Random, Tmpfs};

use super::copy::image::MountedImage;
use super::copy::{durable_seconds, shell};
use super::peer::{Peer, Version};
use super::report;
use super::{Measure, Session};
use crate::error::Error;

/// The parts, in their order.
pub(super) const PARTS: &[(&str, Measure)] = &[
    ("unchanged", small::unchanged),
    ("changed", small::changed),
    ("little", small::little),
    ("restore", small::restore),
    ("large", large::measure),
    ("writer", writer::measure),
    ("beside", beside::measure),
    ("keep", keep::measure),
    ("databases", databases::measure),
];

const DIRECTORIES: usize = 1000;
const FILES_IN_EACH: usize = 100;
const FILE_BYTES: usize = 4096;
/// Files that change between two saves: 1 %.
const CHANGED_FILES: usize = 1000;
const MEMORY_BYTES: u64 = 3 << 30;
const DISK_BYTES: u64 = 4 << 30;
/// Of 100,000 files for each of four programs, and as many again.
const INODES: u64 = 800_000;
const LARGE_FILES: u64 = 8;
const LARGE_BYTES: u64 = 128 << 20;
/// A command that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// A RAM disk, a disk, and the programs.
struct Scene {
    memory: Tmpfs,
    disk: MountedImage,
    terrace: Peer,
    rsync: Option<Peer>,
}

impl Scene {
    fn new(session: &mut Session) -> Result<Self, Error> {
        let memory = Tmpfs::mount(MEMORY_BYTES).map_err(Error::Failed)?;
        let disk = MountedImage::direct(session.directory.name(), "disk", DISK_BYTES, INODES)?;
        let rsync = Peer::find_if_any(&session.request, "rsync", Version::Option("--version"))?;
        for peer in [Some(&session.terrace), rsync.as_ref()].into_iter().flatten() {
            session.record.program(peer.clone());
        }
        Ok(Self { memory, disk, terrace: session.terrace.clone(), rsync })
    }

    fn in_memory(&self, name: &str) -> String {
        self.memory.path().join(name).display().to_string()
    }

    fn on_disk(&self, name: &str) -> String {
        format!("{}/{name}", self.disk.point)
    }

    /// Seconds of a save of `tree`, and bytes that it wrote.
    fn save(&self, tree: &str) -> Result<(f64, f64), Error> {
        let store = self.on_disk("store");
        let started = Instant::now();
        let line = ["ramdisk", "save", tree, "--persist", &store];
        let saved = report::run(&self.terrace, &line, LIMIT)?;
        shell(&format!("sync -f '{}'", self.disk.point))?;
        let seconds = started.elapsed().as_secs_f64();
        let bytes = |name: &str| report::number(&saved, &format!("/result/saved/{name}"));
        Ok((seconds, bytes("data_bytes")? + bytes("manifest_bytes")?))
    }

    fn rsync(&self, peer: &Peer, tree: &str) -> Result<f64, Error> {
        durable_seconds(self.rsync_command(peer, tree), &self.disk.point)
    }

    fn rsync_command(&self, peer: &Peer, tree: &str) -> Command {
        let mut command = Command::new(&peer.program);
        command.args(["-a", "--delete", &format!("{tree}/"), &self.on_disk("rsync")]);
        command
    }
}

/// 100,000 small files.
fn make_tree(tree: &str) -> Result<(), Error> {
    let mut content = vec![0; FILE_BYTES];
    let mut random = Random(7);
    for directory in 0..DIRECTORIES {
        let path = format!("{tree}/d{directory}");
        fs::create_dir_all(&path).map_err(Error::io("create", Path::new(&path)))?;
        for file in 0..FILES_IN_EACH {
            random.fill(&mut content);
            let name = format!("{path}/f{file}");
            fs::write(&name, &content).map_err(Error::io("write", Path::new(&name)))?;
        }
    }
    Ok(())
}

/// Writes 1 % of the files of [`make_tree`]: others for each seed of a hundred.
fn change_some(tree: &str, seed: u64) -> Result<(), Error> {
    let mut random = Random(seed);
    let mut content = vec![0; FILE_BYTES];
    for at in 0..CHANGED_FILES {
        random.fill(&mut content);
        let file = format!("{tree}/d{}/f{}", at % DIRECTORIES, seed as usize % FILES_IN_EACH);
        fs::write(&file, &content).map_err(Error::io("write", Path::new(&file)))?;
    }
    Ok(())
}

/// 1 GiB in large files, incompressible.
fn make_large(tree: &str, files: u64) -> Result<(), Error> {
    fs::create_dir(tree).map_err(Error::io("create", Path::new(tree)))?;
    for at in 0..files {
        shell(&format!("head -c {LARGE_BYTES} /dev/urandom > '{tree}/file{at}'"))?;
    }
    Ok(())
}
