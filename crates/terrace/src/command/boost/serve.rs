//! `terrace boost serve`: keeps a process that serves the cache, and holds its open files, so that
//! requests wait for the next one when it is killed.
//!
//! It does nothing else. A signal that asks for the end is for the serving process, which ends if
//! the volume is not in use.

use super::control;
use crate::args::boost::CacheArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use serve::supervisor::supervise;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use sys::loop_device::LoopDevice;

/// Serves until the cache is detached.
///
/// # Errors
/// If the first process cannot serve.
pub(super) fn serve(args: &CacheArgs) -> Result<Exit> {
    let _all_my_life = sys::interrupt::hold();
    let program = std::env::current_exe()
        .map_err(|error| Error::new(Exit::Partial, format!("cannot find itself: {error}")))?;
    let directory = control::directory(&args.name)?;
    // Made here: the process that serves must not touch it before it answers.
    drop(directory.open_or_create(control::EXPORT.as_ref(), 0o600)?);
    let point = control::path(&directory, control::EXPORT);
    let words = words(args);
    let start = |socket: OwnedFd| -> std::io::Result<Child> {
        let mut command = Command::new(&program);
        command.arg("boost-process").args(&words).stdin(Stdio::from(socket)).spawn()
    };
    // One that ends before it serves says why; later the volume must not be without a server.
    let goes_on = |_: ExitStatus| loop_device_over(&point).is_some();
    let ended = supervise(start, goes_on)?;
    control::remove(&args.name);
    Ok(match ended.code() {
        Some(0) => Exit::Done,
        Some(2) => Exit::Usage,
        Some(3) => Exit::Impossible,
        _ => Exit::Partial,
    })
}

/// The options as words of a command line.
pub(super) fn words(args: &CacheArgs) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![args.name.clone().into()];
    let size = args.size.0.to_string();
    let options: [(&str, &Path); 4] = [
        ("--backing", &args.backing),
        ("--cache", &args.cache),
        ("--size", Path::new(&size)),
        ("--state", &args.state),
    ];
    for (option, value) in options {
        words.extend([option.into(), value.into()]);
    }
    words
}

/// The loop device that is attached to this file.
pub(super) fn loop_device_over(file: &Path) -> Option<LoopDevice> {
    let names = std::fs::read_dir("/sys/block").ok()?;
    names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).find_map(|name| {
        let number: u32 = name.strip_prefix("loop")?.parse().ok()?;
        let backing = std::fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
        let is_it = Path::new(backing.ok()?.trim_end_matches('\n')) == file;
        is_it.then(|| LoopDevice::numbered(number))
    })
}
