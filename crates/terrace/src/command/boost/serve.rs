//! `terrace boost serve`: keeps a process that serves the cache, and holds its open files, so that
//! requests wait for the next one when it is killed.
//!
//! It does nothing else. A signal that asks for the end is for the serving process, which ends when
//! the volume is not in use. One service has a name at a time; what one that was killed left is
//! cleaned up by the next, and nothing of it is touched by those that only ask.

use super::control;
use crate::args::boost::CacheArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use machine::{Root, block_use};
use serve::supervisor::supervise;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use sys::loop_device::LoopDevice;

/// The major number of loop devices.
const LOOP_MAJOR: u32 = 7;
/// This program, also if its file was replaced or is out of reach by then.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// How long the kernel may take to give up a loop device.
const CLEAN_UP_WAIT: Duration = Duration::from_secs(5);

/// Serves until the cache is detached.
///
/// # Errors
/// `Impossible` if the name has a service, or what a killed one left is in use; if the first
/// process cannot serve.
pub(super) fn serve(args: &CacheArgs) -> Result<Exit> {
    let _all_my_life = sys::interrupt::hold();
    let _lock = control::take_name(&args.name)?;
    let directory = control::directory(&args.name)?;
    let point = control::path(&directory, control::EXPORT);
    clean_up(&point).inspect_err(|_| control::give_name_back(&args.name))?;
    // Made here: the process that serves must not touch it before it answers.
    drop(directory.open_or_create(control::EXPORT.as_ref(), 0o600)?);
    let mut is_first = true;
    let start = |socket: OwnedFd| -> io::Result<Child> {
        let mut command = Command::new(THIS_PROGRAM);
        command.arg("boost-process").args(words(args)).stdin(Stdio::from(socket));
        if std::mem::take(&mut is_first) && args.take_file {
            command.arg("--take-file");
        }
        command.spawn()
    };
    // One that ends before it serves says why; later the volume must not be without a server. What
    // cannot be looked at counts as there.
    let goes_on = |_: ExitStatus| !matches!(loop_device_over(&point), Ok(None));
    let ended = supervise(start, goes_on);
    let cleaned = clean_up(&point);
    control::remove(&args.name);
    control::give_name_back(&args.name);
    cleaned?;
    Ok(exit_of(ended?))
}

/// What the end of a process of the service means for the one that started it.
pub(super) fn exit_of(ended: ExitStatus) -> Exit {
    match ended.code() {
        Some(0) => Exit::Done,
        Some(2) => Exit::Usage,
        Some(3) => Exit::Impossible,
        _ => Exit::Partial,
    }
}

/// Removes the loop device and the mount of a service that has ended.
fn clean_up(point: &Path) -> Result<()> {
    let failed = |text: String| Error::new(Exit::Impossible, text);
    let found = || loop_device_over(point).map_err(|error| failed(sys::plain_reason(&error)));
    if let Some(old) = found()? {
        if let Some(used) = use_of(&old) {
            let text = format!("a service of this name was killed, and {used}: unmount it first");
            return Err(failed(text));
        }
        // The dead file ends what still waits for it.
        let _ = sys::mount::abandon(point);
        let _ = old.detach();
        let end = Instant::now() + CLEAN_UP_WAIT;
        while found()?.is_some() {
            if Instant::now() > end {
                let device = old.path().display();
                return Err(failed(format!("a program still has {device} open")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    // Fails when nothing is mounted there.
    while sys::mount::abandon(point).is_ok() {}
    Ok(())
}

/// What uses a loop device, in words.
pub(super) fn use_of(device: &LoopDevice) -> Option<String> {
    let uses = block_use::uses(&Root::system(), LOOP_MAJOR, device.number());
    uses.first().map(ToString::to_string)
}

/// The options as words of a command line, without `--take-file`.
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
///
/// # Errors
/// If that cannot be found out.
pub(super) fn loop_device_over(file: &Path) -> io::Result<Option<LoopDevice>> {
    for entry in std::fs::read_dir("/sys/block")? {
        let name = entry?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix("loop"));
        let Some(number) = digits.and_then(|digits| digits.parse::<u32>().ok()) else { continue };
        match std::fs::read_to_string(format!("/sys/block/loop{number}/loop/backing_file")) {
            Ok(backing) if Path::new(backing.trim_end_matches('\n')) == file => {
                return Ok(Some(LoopDevice::numbered(number)));
            }
            Ok(_) => {}
            // It has no file, or lost it just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if matches!(error.raw_os_error(), Some(6 | 19)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
