//! The process that serves a volume without its cache, where those with it failed again and again,
//! as over something that it holds: a disk that is slow is better than one that is gone.
//!
//! What the cache has is given up first, since writes leave no marks here. It serves until the
//! volume is detached; the next attach begins with an empty cache.

use super::control::{self, Question};
use super::coverage::PartsCoverage;
use super::ending::Ending;
use super::export::{Export, Exported};
use super::filling::refuse;
use super::serving::{DEVICE_LOOKED_FOR, LOCK_WAIT, TURN, UNMOUNT_WAIT, held_parts, run_directory};
use crate::args::boost::CacheArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::boost::CacheStatus;
use machine::Root;
use model::device::BlockDevice;
use place::boost::host::HostPart;
use place::boost::volume::Volume as BackingVolume;
use serve::direct::DirectVolume;
use serve::driver::DriverDevice;
use serve::holder::HolderClient;
use serve::volume::Volume;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;
use sys::device::FileDevice;

/// Why all goes to the disk.
const OFF: &str = "the process with the cache failed again and again, and this one does without";

/// Serves until the volume is detached.
///
/// # Errors
/// If there is no volume of a process before, or what its cache proves cannot be given up.
pub(super) fn process(args: &CacheArgs, holder: &HolderClient<'_>) -> Result<Exit> {
    let (claimed, _lock) = give_up_cache(args, holder)?;
    let backing = BackingVolume::of_claimed_unread(claimed, &args.parts.backing, &Root::system())?;
    let device: Arc<FileDevice> = Arc::clone(&backing.device);
    let block_bytes = device.alignment().write.max(512);
    let device: Arc<dyn DriverDevice> = device;
    let volume: Arc<dyn Volume> = Arc::new(DirectVolume::new(device, backing.bytes, block_bytes)?);
    let directory = run_directory(args, holder)?;
    let exported = Exported {
        args,
        volume: Arc::clone(&volume),
        backing: &backing,
        block_bytes,
        directory: &directory,
        point: control::path(&directory, control::EXPORT),
    };
    let export = Export::begin(&exported, holder)?;
    let listener = control::listen(&directory)?;
    let mut ending = Ending::default();
    let mut looked = Instant::now();
    loop {
        while let Ok((client, _)) = listener.accept() {
            answer(args, &backing, &export, &mut ending, client);
        }
        ending.begin_if_asked(&export);
        ending.answer_late(&export);
        if ending.is_begun() || looked.elapsed() >= DEVICE_LOOKED_FOR {
            looked = Instant::now();
            if !export.is_there() {
                break;
            }
        }
        std::thread::sleep(TURN);
    }
    let _ = export.end(UNMOUNT_WAIT);
    let _ = volume.flush();
    ending.answer(false);
    Ok(Exit::Done)
}

/// Waits while requests of the process before are under way, and gives up what its cache proves:
/// the claimed volume, and the lock.
fn give_up_cache(args: &CacheArgs, holder: &HolderClient<'_>) -> Result<(File, File)> {
    let end = Instant::now() + LOCK_WAIT;
    loop {
        let held = held_parts(args, holder)?;
        let Some(volume) = held.volume else {
            return Err(Error::new(Exit::Partial, "no process before has left its volume"));
        };
        let state = match held.state {
            Some(state) => state,
            None => HostPart::directory(&args.parts.state, &args.parts.name)?,
        };
        match HostPart::give_up(state) {
            Ok(lock) => return Ok((volume, lock)),
            Err(error) if error.kind == place::ErrorKind::Impossible && Instant::now() < end => {
                std::thread::sleep(TURN);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn answer(
    args: &CacheArgs,
    backing: &BackingVolume,
    export: &Export,
    ending: &mut Ending,
    client: UnixStream,
) {
    match control::question(&client) {
        None => {}
        Some(Question::Status) => control::answer(&client, &status(args, backing, export)),
        Some(Question::Detach) => ending.ask(export, client),
        Some(Question::Coverage(_)) => control::answer(&client, &PartsCoverage::default()),
        Some(Question::Fill(_)) => refuse(&client, "the service does without the cache"),
        // Nothing is cached.
        Some(_) => control::answer(&client, &Some(false)),
    }
}

fn status(args: &CacheArgs, backing: &BackingVolume, export: &Export) -> CacheStatus {
    CacheStatus {
        name: args.parts.name.clone(),
        device: export.device.path().display().to_string(),
        volume: backing.name.clone(),
        volume_bytes: backing.bytes,
        cache: args.parts.cache.display().to_string(),
        cache_bytes: args.parts.size.0,
        process: std::process::id(),
        off: Some(OFF.to_owned()),
        ..CacheStatus::default()
    }
}
