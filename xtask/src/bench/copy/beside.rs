//! What a copy does to a program that syncs 4 KiB again and again on another disk. That disk is in
//! memory, so that only the kernel and the processors are shared.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::image::MountedImage;
use super::{copiers, durable_seconds, large, shell, take_turns};
use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::turns::Turn;
use crate::error::Error;

/// The other disk, in memory: nothing but the kernel is shared with the copy.
const OTHER_DIRECTORY: &str = "/dev/shm";
const IMAGE_BYTES: u64 = 64 << 20;
const INODES: u64 = 1024;
const BLOCK_BYTES: u64 = 4096;
/// Syncs go over so many blocks.
const BLOCKS: u64 = 1024;
/// How long it syncs alone: about as long as a copy.
const ALONE: Duration = Duration::from_secs(3);

/// Measures the part.
///
/// # Errors
/// When a program is missing or fails, or there is no loop device.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let copiers = copiers(session)?;
    let (source, target) = (session.directory.file("source"), session.directory.file("target"));
    if !Path::new(&source).exists() {
        large::make_source(&source, &session.directory.file("hot"))?;
    }
    let name = format!("terrace-bench-{}", std::process::id());
    let other = MountedImage::new(OTHER_DIRECTORY, &name, IMAGE_BYTES, INODES)?;
    let mut programs: Vec<Turn<'_>> = vec![Box::new(|| {
        let syncs = Syncs::start(&other.point)?;
        std::thread::sleep(ALONE);
        Ok(vec![syncs.end()?])
    })];
    for copier in &copiers {
        copier.note(session);
        let (source, target, other) = (&source, &target, &other);
        let (terrace, directory) = (session.terrace.clone(), session.directory.name().to_owned());
        programs.push(Box::new(move || {
            shell(&format!("rm -rf '{target}'; sync"))?;
            terrace.run(&["warm", "evict", source], super::LIMIT)?;
            let mut command = std::process::Command::new(&copier.peer.program);
            command.args(copier.arguments(source, target));
            let syncs = Syncs::start(&other.point)?;
            durable_seconds(command, &directory)?;
            Ok(vec![syncs.end()?])
        }));
    }
    let what = "4 KiB synced on another disk during a copy of 2.6 GB: p99";
    let all = take_turns(session, "beside", (what, 1), programs)?;
    let Some((alone, with)) = all.split_first() else { return Ok(()) };
    for (copier, p99) in copiers.iter().zip(with) {
        let target = (copier.name == "terrace").then_some(Target::AtMost(1.5));
        let pair = (Series::new(&copier.name, &p99[0]), Series::new("alone", &alone[0]));
        let row = format!("{what}, {}, beside alone", copier.name);
        session.record.add_against(&row, "us", pair, target)?;
    }
    Ok(())
}

/// A thread that writes a block and syncs it, again and again.
struct Syncs {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<Vec<Duration>>>,
}

impl Syncs {
    fn start(point: &str) -> Result<Self, Error> {
        let path = format!("{point}/synced");
        let file = File::create(&path).map_err(Error::io("create", Path::new(&path)))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let (block, mut all) = (vec![7; BLOCK_BYTES as usize], Vec::new());
            while !seen.load(Ordering::Relaxed) {
                let started = Instant::now();
                file.write_all_at(&block, all.len() as u64 % BLOCKS * BLOCK_BYTES)?;
                file.sync_data()?;
                all.push(started.elapsed());
            }
            Ok(all)
        });
        Ok(Self { is_over, thread })
    }

    /// The 99th percentile, in microseconds.
    fn end(self) -> Result<f64, Error> {
        self.is_over.store(true, Ordering::Relaxed);
        let failed = |error| Error::Failed(format!("the syncs on another disk: {error}"));
        let ended = self.thread.join().unwrap_or_else(|_| Ok(Vec::new()));
        let mut all = ended.map_err(failed)?;
        all.sort();
        let at = all.len() * 99 / 100;
        let p99 = all.get(at).ok_or_else(|| Error::Failed("no sync ended".to_owned()))?;
        Ok(p99.as_secs_f64() * 1e6)
    }
}
