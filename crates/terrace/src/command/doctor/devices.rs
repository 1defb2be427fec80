//! Block devices, queues of requests, and the ways in which a cache is served: each is opened, and
//! closed again.

use super::{attempt, closed, partly, refused, works};
use machine::{Root, block};
use model::doctor::{KnownObstacle, SourceAttempt, SourceId, SourceRefusal};
use std::path::Path;
use sys::ErrorKind;
use sys::nbd::NbdClient;
use sys::uring::Queue;

/// Devices that are memory or a file, or that only exist while they are used.
const NO_DISKS: [&str; 4] = ["loop", "zram", "brd", "nbd"];
const QUEUE_DEPTH: u32 = 4;
const QUEUE_BYTES: usize = 4096;

pub(super) fn examine(root: &Root) -> [(SourceId, SourceAttempt); 6] {
    [
        (SourceId::DiskCounters, counters(root)),
        (SourceId::BlockDevices, disks(root)),
        (SourceId::IoUring, queue()),
        (SourceId::Fuse, fuse()),
        (SourceId::LoopDevices, loop_devices()),
        (SourceId::Nbd, nbd()),
    ]
}

fn counters(root: &Root) -> SourceAttempt {
    match root.read("/proc/diskstats") {
        Ok(text) => works(format!("counters of {} devices", text.lines().count())),
        Err(error) => refused(&error),
    }
}

/// Opens every disk that is awake; nothing is read.
fn disks(root: &Root) -> SourceAttempt {
    let (mut opened, mut last) = (Vec::new(), None);
    let mut names = disk_names(root);
    names.sort_unstable();
    for name in names {
        match sys::file::open_read(&Path::new("/dev").join(&name), false) {
            Ok(_) => opened.push(name),
            Err(error) => last = Some(error),
        }
    }
    match last {
        None if opened.is_empty() => super::idle("there is no disk that is awake"),
        None => works(opened.join(", ")),
        Some(error) if opened.is_empty() => refused(&error),
        Some(error) => partly(opened.join(", "), &error),
    }
}

fn disk_names(root: &Root) -> Vec<String> {
    let entries = std::fs::read_dir(root.path("/sys/block")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| block::by_name(root, name).is_some_and(|disk| is_awake(&disk))).collect()
}

fn is_awake(disk: &block::Disk) -> bool {
    let transport = disk.transport.as_deref().unwrap_or_default();
    let has_bytes = disk.size.is_some_and(|size| size.0 > 0);
    has_bytes && !disk.asleep && !NO_DISKS.contains(&transport)
}

fn queue() -> SourceAttempt {
    attempt(Queue::new(QUEUE_DEPTH, QUEUE_BYTES), |_| "a queue was set up".to_owned())
}

/// As `boost attach` asks, by a mount that has no place in the tree.
fn fuse() -> SourceAttempt {
    match serve::fuse::resend_is_offered() {
        Ok(true) => works("a file system was made and ended without a mount point"),
        Ok(false) => {
            let why = "it does not send requests again that a killed server left";
            let refusal = SourceRefusal {
                why: why.to_owned(),
                known: Some(KnownObstacle::NotInKernel),
                ..SourceRefusal::default()
            };
            SourceAttempt { refusals: vec![refusal], ..works("file systems can be served") }
        }
        Err(error) => refused(&error),
    }
}

fn loop_devices() -> SourceAttempt {
    attempt(sys::loop_device::examine_control(), |()| "/dev/loop-control opens".to_owned())
}

fn nbd() -> SourceAttempt {
    match NbdClient::open() {
        Ok(_) if sys::nbd::path(0).exists() => works("the kernel's client answers"),
        Ok(_) => closed("/dev/nbd0 is missing", KnownObstacle::NotLoaded),
        Err(error) if error.kind == ErrorKind::NotFound => {
            closed(error.to_string(), KnownObstacle::NotLoaded)
        }
        Err(error) => refused(&error),
    }
}
