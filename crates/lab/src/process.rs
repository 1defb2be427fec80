//! The helper processes of the lab: one joins a group and becomes another program, one keeps
//! the lab's directory with its swap. Both end with the lab, however it ends. The third is
//! [`crate::working_set`].

use crate::recovery::{volume, workplace};
use crate::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use sys::directory::{Directory, FilePlace};
use sys::helper::HiddenCommand;

/// This much of the swap file is written before its process asks whether it is still wanted.
const CHUNK_BYTES: u64 = 4 << 20;
/// A database's user passes through it to a directory of its own, and reads nothing.
const MODE: u32 = 0o711;
/// What an experiment copies is its user's alone.
const OWNER_ONLY: u32 = 0o700;
const OFF_TRIES: u32 = 60;
const OFF_PAUSE: Duration = Duration::from_millis(500);

/// Joins the group and becomes the program, as `user` (numbers of user and group) if given.
/// Returns only if that fails.
pub fn become_member(group: Option<&Path>, user: Option<(u32, u32)>, words: &[OsString]) -> Error {
    if let Err(error) = sys::parent::die_with_it() {
        return error.into();
    }
    if let Some(group) = group {
        let members = group.join("cgroup.procs");
        if let Err(error) = std::fs::write(&members, std::process::id().to_string()) {
            return failed("join", &members, &error);
        }
    }
    let Some((program, arguments)) = words.split_first() else {
        return Error::usage("no program is named");
    };
    if let Some((uid, gid)) = user {
        // A change of user clears the parent-death signal, so it is set again.
        let become_user = sys::process::become_user(uid, gid);
        if let Err(error) = become_user.and_then(|()| sys::parent::die_with_it()) {
            return error.into();
        }
    }
    let mut command = Command::new(program);
    command.args(arguments);
    failed("start", Path::new(program), &command.exec())
}

/// Makes the directory and the swap in it, and one in the directory `flash` if it is given; says
/// "ready", and removes all when the input ends: that also happens when the lab is killed. `boost`
/// is how a cache is detached.
///
/// # Errors
/// When the swap cannot be made, switched off or removed, or a file system is still in use.
pub fn keep_workplace(
    directory: &Path,
    bytes: u64,
    flash: Option<&Path>,
    boost: &HiddenCommand,
    (input, output): (&mut (impl Read + AsFd), &mut impl Write),
) -> Result<()> {
    let place = FilePlace::of(directory)?;
    let made = place.directory.create_subdirectory(&place.name, MODE)?;
    let swap = directory.join(workplace::SWAP);
    let on_flash = flash.map(|flash| volume::flash_directory(flash, directory));
    if let Some(refused) = on_flash.as_deref().and_then(|flash| make_owner_only(flash).err()) {
        remove_all(directory)?;
        return Err(refused);
    }
    let kept = make_swap(&made, bytes, &*input).and_then(|made| {
        if made {
            // If the lab has ended, then the input has ended too.
            let _ = output.write_all(b"ready\n").and_then(|()| output.flush());
            let _ = input.read_to_end(&mut Vec::new());
        }
        switch_off(&swap)
    });
    if on_flash.is_some() {
        // What is in use is not removed.
        volume::take_apart(directory, boost)?;
    }
    for directory in on_flash.iter().map(PathBuf::as_path).chain([directory]) {
        remove_all(directory)?;
    }
    kept
}

/// Makes the directory, says "ready", and removes it with all that is in it when the input ends:
/// that also happens when the lab is killed.
///
/// # Errors
/// When it cannot be made or removed.
pub fn keep_directory(
    directory: &Path,
    input: &mut impl Read,
    output: &mut impl Write,
) -> Result<()> {
    make_owner_only(directory)?;
    // If the lab has ended, then the input has ended too.
    let _ = output.write_all(b"ready\n").and_then(|()| output.flush());
    let _ = input.read_to_end(&mut Vec::new());
    remove_all(directory)
}

fn make_owner_only(directory: &Path) -> Result<()> {
    let place = FilePlace::of(directory)?;
    place.directory.create_subdirectory(&place.name, OWNER_ONLY)?;
    Ok(())
}

fn remove_all(directory: &Path) -> Result<()> {
    std::fs::remove_dir_all(directory).map_err(|error| failed("remove", directory, &error))
}

/// The lab's processes end at the same time; what finds no room in memory now does a little later.
fn switch_off(path: &Path) -> Result<()> {
    let mut answer = sys::swap_area::off(path);
    for _ in 0..OFF_TRIES {
        match &answer {
            Ok(()) => return Ok(()),
            // It is off already: the lab was stopped before or between.
            Err(error) if error.kind == sys::ErrorKind::Invalid => return Ok(()),
            Err(_) => std::thread::sleep(OFF_PAUSE),
        }
        answer = sys::swap_area::off(path);
    }
    Ok(answer?)
}

/// Whether the file was made and switched on; `false` if the lab ended meanwhile.
fn make_swap(directory: &Directory, bytes: u64, input: &impl AsFd) -> Result<bool> {
    let path = directory.path().join(workplace::SWAP);
    let mut file = directory.create_new(OsStr::new(workplace::SWAP), 0o600)?;
    if !fill(&mut file, bytes, input).map_err(|error| failed("write", &path, &error))? {
        return Ok(false);
    }
    sys::swap_area::mark(&file, bytes)?;
    // By its path, which no other user can exchange: the workplace was checked.
    sys::swap_area::on(&path, sys::swap_area::FIRST)?;
    Ok(true)
}

/// Writes zeros, as a swap file must have no holes; `false` once the input has ended.
fn fill(file: &mut File, bytes: u64, input: &impl AsFd) -> std::io::Result<bool> {
    let mut left = bytes;
    while left > 0 {
        let ended = sys::poll::readable([Some(input.as_fd())], Some(0)) == [true];
        if ended {
            return Ok(false);
        }
        let written = std::io::copy(&mut std::io::repeat(0).take(left.min(CHUNK_BYTES)), file)?;
        left -= written;
    }
    Ok(true)
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    let reason = sys::plain_reason(error);
    let text = format!("cannot {what} {}: {reason}", path.display());
    Error::failed(text)
}
