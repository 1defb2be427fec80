//! `terrace boost serve`: keeps a process that serves the cache, and holds its open files, so that
//! requests wait for the next one when it is killed.
//!
//! It does nothing else. A signal that asks for the end is for the serving process, which ends when
//! the volume is not in use. One service has a name at a time; what one that was killed left is
//! cleaned up by the next, and nothing of it is touched by those that only ask.

use super::control;
use super::export::{self, ServedDevice};
use super::protection::protect;
use crate::args::boost::{CacheArgs, CacheParts};
use crate::error::{Error, Result};
use crate::exit::Exit;
use place::boost::plan::ExportChoice;
use serve::supervisor::{ServerKind, supervise};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use sys::loop_device::LoopDevice;

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
    // What was refused is said by the attach.
    let _ = protect();
    let method = export::resolve(args)?;
    let parts = CacheParts { export: export::choice_of(method), ..args.parts.clone() };
    let args = CacheArgs { parts, ..args.clone() };
    let _lock = control::take_name(&args.parts.name)?;
    let directory = control::directory(&args.parts.name)?;
    let point = control::path(&directory, control::EXPORT);
    clean_up(&point, &args.parts.name)
        .inspect_err(|_| control::give_name_back(&args.parts.name))?;
    // Made here: the process that serves must not touch it before it answers.
    drop(directory.open_or_create(control::EXPORT.as_ref(), 0o600)?);
    let mut is_first = true;
    let start = |socket: OwnedFd, kind: ServerKind| -> io::Result<Child> {
        let mut command = Command::new(THIS_PROGRAM);
        command.arg("boost-process").args(words(&args.parts)).stdin(Stdio::from(socket));
        if kind == ServerKind::Simple {
            command.arg("--without-cache");
        }
        if std::mem::take(&mut is_first) {
            command.args(first_words(&args));
        }
        command.spawn()
    };
    // One that ends before it serves says why; later the volume must not be without a server. What
    // cannot be looked at counts as there.
    let goes_on = |_: ExitStatus| !matches!(ServedDevice::find(&point, &args.parts.name), Ok(None));
    let ended = supervise(start, goes_on);
    let cleaned = clean_up(&point, &args.parts.name);
    control::remove(&args.parts.name);
    control::give_name_back(&args.parts.name);
    let ended = ended?;
    if ended.is_given_up {
        let text = "the process that serves failed again and again, also without the cache: \
                    the block device is given up, and its users get errors";
        return Err(Error::new(Exit::Partial, text));
    }
    cleaned?;
    Ok(exit_of(ended.status))
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

/// Removes the block device and the mount of a service that has ended.
fn clean_up(point: &Path, name: &str) -> Result<()> {
    let failed = |text: String| Error::new(Exit::Impossible, text);
    let found =
        || ServedDevice::find(point, name).map_err(|error| failed(sys::plain_reason(&error)));
    if let Some(old) = found()? {
        if let Some(used) = old.use_of() {
            let text = format!("a service of this name was killed, and {used}: unmount it first");
            return Err(failed(text));
        }
        old.abandon(point, name);
        let end = Instant::now() + CLEAN_UP_WAIT;
        while found()?.is_some() {
            if Instant::now() > end {
                let device = old.path();
                return Err(failed(format!("a program still has {} open", device.display())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    // Fails when nothing is mounted there.
    while sys::mount::abandon(point).is_ok() {}
    Ok(())
}

/// The options of a first process: its successors look for the file anyway, and take none.
pub(super) fn first_words(args: &CacheArgs) -> impl Iterator<Item = &'static str> {
    let options = [(args.take_file, "--take-file"), (args.file_optional, "--file-optional")];
    options.into_iter().filter_map(|(is_set, option)| is_set.then_some(option))
}

/// The options as words of a command line, without those of [`first_words`].
pub(super) fn words(parts: &CacheParts) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![parts.name.clone().into()];
    let size = parts.size.0.to_string();
    let resend_after = format!("{}ms", parts.resend_after.as_millis());
    let export = match parts.export {
        ExportChoice::Auto => "auto",
        ExportChoice::Fuse => "fuse",
        ExportChoice::Nbd => "nbd",
    };
    let options: [(&str, &Path); 6] = [
        ("--backing", &parts.backing),
        ("--cache", &parts.cache),
        ("--size", Path::new(&size)),
        ("--state", &parts.state),
        ("--export", Path::new(export)),
        ("--resend-after", Path::new(&resend_after)),
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
        let device = LoopDevice::numbered(number);
        if device.backing_file()?.as_deref() == Some(file) {
            return Ok(Some(device));
        }
    }
    Ok(None)
}
