//! Changes the size of a RAM disk and takes one away.
//!
//! Nothing is done to a mount that is not the one that was made. What was not saved is not given up
//! unless that is asked for: the RAM disk is compared with its store, made read-only once nothing
//! uses it, compared again, and only then unmounted. Killed in between it is read-only and whole,
//! and the next `remove` goes on.

use super::create::refuse_beyond_memory;
use super::record::{
    RamdiskOptions, RamdiskRecord, RamdiskRecords, RamdiskState, remove_made_directory,
};
use super::save::{Comparison, compare};
use crate::copy::find_holders;
use crate::{Error, ErrorKind, Result};
use machine::Root;
use model::Bytes;
use model::progress::ProgressSink;
use serde::Serialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use sys::directory::Directory;
use sys::file;
use sys::mount::{self, FileSystemOptions};

const GROW: &str = "change the size of";
const REMOVE: &str = "remove the RAM disk";
/// How long what uses it is waited for. A recorder that walks the files holds a directory open: for
/// 0.2 s with 100,000 files.
const LONGEST_BUSY: Duration = Duration::from_secs(1);
const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// Processes that are named.
const NAMED_HOLDERS: usize = 5;

/// A RAM disk of another size.
#[derive(Clone, Debug, Serialize)]
pub struct RamdiskGrowReport {
    /// It.
    pub ramdisk: RamdiskRecord,
    /// Its size before.
    pub size_before: Bytes,
    /// What is in use.
    pub used_bytes: u64,
}

/// What is to be removed.
#[derive(Clone, Debug)]
pub struct RamdiskRemove {
    /// Its mount point or its name.
    pub name: PathBuf,
    /// Whether what was not saved is given up.
    pub discard: bool,
}

/// A RAM disk that was removed.
#[derive(Clone, Debug, Serialize)]
pub struct RamdiskRemoveReport {
    /// It, as it was.
    pub ramdisk: RamdiskRecord,
    /// Whether it was where it was mounted.
    pub state: RamdiskState,
    /// Whether it was not interrupted. If it was nothing is removed.
    pub is_complete: bool,
    /// What was in use.
    pub used_bytes: u64,
    /// The comparison with its store; absent with `discard`, and without a store.
    pub compared: Option<Comparison>,
}

/// Gives a RAM disk another size.
///
/// # Errors
/// `Usage` for a size of 0 or less than what is in use, `Impossible` beyond the memory that may be
/// taken and for a RAM disk that is not there any more. Its size is as it was then.
pub fn grow(root: &Root, name: &Path, size: Bytes, force: bool) -> Result<RamdiskGrowReport> {
    let refused = |kind, why: String| Error::new(kind, GROW, why).at(name);
    if size.0 == 0 {
        let why = "a size of 0 would be no limit to the kernel";
        return Err(refused(ErrorKind::Usage, why.to_owned()));
    }
    let records = RamdiskRecords::lock(root)?;
    let mut ramdisk = records.find(name)?;
    ramdisk.kind.refuse_other_size().map_err(|error| error.at(&ramdisk.mount_point))?;
    let top = ramdisk.open(root, GROW)?;
    let used_bytes = file::file_system(top.file())?.used_bytes.unwrap_or(0);
    if size.0 < used_bytes {
        let why = format!("{} are in use, more than {size}; remove files first", Bytes(used_bytes));
        return Err(refused(ErrorKind::Usage, why));
    }
    let size_before = ramdisk.options.size;
    if size > size_before && !force {
        refuse_beyond_memory(root, size, Bytes(used_bytes))
            .map_err(|error| Error::new(error.kind, GROW, error.source).at(&ramdisk.mount_point))?;
    }
    change(&top, &ramdisk.options, |options| options.set("size", &size.0.to_string()))
        .map_err(|error| refused(ErrorKind::Failed, sys::plain_reason(&error.source)))?;
    ramdisk.options.size = size;
    records.write(&ramdisk)?;
    Ok(RamdiskGrowReport { ramdisk, size_before, used_bytes })
}

/// Changes options of the mounted tmpfs. The kernel wants `noswap` repeated at each change.
pub(super) fn change(
    top: &Directory,
    options: &RamdiskOptions,
    set: impl FnOnce(&FileSystemOptions) -> sys::Result<()>,
) -> sys::Result<()> {
    let system = FileSystemOptions::of_mounted(top)?;
    if options.noswap {
        system.set_flag("noswap")?;
    }
    set(&system)?;
    system.change()
}

/// Unmounts a RAM disk and forgets it. One that another program unmounted is only forgotten.
///
/// # Errors
/// `Impossible` while data are not saved, naming the command that saves them, or files are in use,
/// and where something else is mounted. It is as it was then.
pub fn remove(
    root: &Root,
    request: &RamdiskRemove,
    progress: &mut ProgressSink<'_>,
) -> Result<RamdiskRemoveReport> {
    let records = RamdiskRecords::lock(root)?;
    let ramdisk = records.find(&request.name)?;
    let (state, top) = ramdisk.state(root);
    if ramdisk.adopted && top.is_some() && !request.discard {
        let why = format!(
            "it covers a directory that was moved onto it; `terrace ramdisk release {0}` gives that \
             back as it is now, and --discard uncovers it as it was",
            ramdisk.name()
        );
        return Err(Error::new(ErrorKind::Impossible, REMOVE, why).at(&ramdisk.mount_point));
    }
    let mut report =
        RamdiskRemoveReport { ramdisk, state, is_complete: false, used_bytes: 0, compared: None };
    if let Some(top) = top {
        report.used_bytes = file::file_system(top.file())?.used_bytes.unwrap_or(0);
        if !request.discard && !refuse_unsaved(root, &top, &mut report, progress)? {
            return Ok(report);
        }
        if !take_away(root, request, top, &mut report, progress)? {
            return Ok(report);
        }
    } else if state == RamdiskState::Replaced && !request.discard {
        let why = "something else is mounted there, and is not touched; --discard only forgets the \
                   RAM disk that was made here";
        return Err(Error::new(ErrorKind::Impossible, REMOVE, why).at(&report.ramdisk.mount_point));
    }
    if state == RamdiskState::Unmounted && report.ramdisk.kind.outlives_mount() && !request.discard
    {
        let kept = report.ramdisk.kind.after_unmount();
        let why = format!("it was unmounted by another program, and {kept}; --discard gives it up");
        return Err(Error::new(ErrorKind::Impossible, REMOVE, why).at(&report.ramdisk.mount_point));
    }
    records.remove(&report.ramdisk)?;
    if state != RamdiskState::Replaced {
        remove_made_directory(&report.ramdisk);
    }
    report.is_complete = true;
    Ok(report)
}

/// Refuses to give up what was not saved; whether the comparison was not interrupted.
fn refuse_unsaved(
    root: &Root,
    top: &Directory,
    report: &mut RamdiskRemoveReport,
    progress: &mut ProgressSink<'_>,
) -> Result<bool> {
    let point = &report.ramdisk.mount_point;
    let refused = |why: String| Error::new(ErrorKind::Impossible, REMOVE, why).at(point);
    let is_empty = top.names()?.is_empty();
    let Some(persist) = &report.ramdisk.persist else {
        if is_empty {
            return Ok(true);
        }
        let used = Bytes(report.used_bytes);
        return Err(refused(format!(
            "its {used} are saved nowhere; `terrace ramdisk save {} --persist STORE` saves them, \
             --discard gives them up",
            point.display()
        )));
    };
    let compared = compare(root, point, &persist.store, progress)?;
    let is_saved = compared.is_saved() || (compared.generation == 0 && is_empty);
    let is_complete = compared.is_complete;
    if is_complete && !is_saved {
        let words = compared.unsaved_words();
        let remedy = if compared.changed_entries + compared.removed_entries > 0 {
            format!(
                "`terrace ramdisk save {}` saves them, --discard gives them up",
                point.display()
            )
        } else {
            "no save has what is unreadable or on another file system; --discard gives it up"
                .to_owned()
        };
        return Err(refused(format!("{words} not saved; {remedy}")));
    }
    report.compared = Some(compared);
    Ok(is_complete)
}

/// Unmounts it; whether that was not interrupted.
fn take_away(
    root: &Root,
    request: &RamdiskRemove,
    top: Directory,
    report: &mut RamdiskRemoveReport,
    progress: &mut ProgressSink<'_>,
) -> Result<bool> {
    let point = report.ramdisk.mount_point.clone();
    let options = report.ramdisk.options.clone();
    let busy = |error: sys::Error| in_use(root, REMOVE, &point, &error);
    // Before it is read-only: who goes on to use it has lost nothing then.
    await_unused(root, &point)?;
    // From here on nothing is written to it that would not be seen.
    change(&top, &options, |system| system.set_flag("ro")).map_err(busy)?;
    let compared =
        if request.discard { Ok(true) } else { refuse_unsaved(root, &top, report, progress) };
    let outcome = match compared {
        Ok(true) => match (point.parent(), point.file_name()) {
            (Some(parent), Some(name)) => {
                drop(top);
                let parent = Directory::open(parent)?;
                unmount(&parent, name).map(|()| true).map_err(busy)
            }
            _ => Ok(false),
        },
        other => other,
    };
    if !matches!(outcome, Ok(true))
        && let Some(top) = report.ramdisk.state(root).1
    {
        change(&top, &options, |system| system.set_flag("rw"))?;
    }
    outcome
}

/// Waits for a moment until nothing uses the RAM disk.
fn await_unused(root: &Root, point: &Path) -> Result<()> {
    let begun = Instant::now();
    while let Some(names) = holder_names(root, point) {
        if begun.elapsed() >= LONGEST_BUSY {
            let why = format!("it is in use by {names}");
            return Err(Error::new(ErrorKind::Impossible, REMOVE, why).at(point));
        }
        thread::sleep(BUSY_PAUSE);
    }
    Ok(())
}

/// Unmounts what is mounted at an entry; tried again for a moment while it is in use.
pub(super) fn unmount(parent: &Directory, name: &OsStr) -> sys::Result<()> {
    let begun = Instant::now();
    loop {
        match mount::unmount_entry(parent, name) {
            Err(error) if mount::is_busy(&error) && begun.elapsed() < LONGEST_BUSY => {
                thread::sleep(BUSY_PAUSE);
            }
            ended => return ended,
        }
    }
}

/// The error of a RAM disk that is in use, with names.
pub(super) fn in_use(root: &Root, operation: &str, point: &Path, error: &sys::Error) -> Error {
    let why = match (mount::is_busy(error), holder_names(root, point)) {
        (true, Some(names)) => format!("it is in use by {names}"),
        (true, None) => "it is in use".to_owned(),
        (false, _) => sys::plain_reason(&error.source),
    };
    Error::new(ErrorKind::Impossible, operation, why).at(point)
}

/// What uses files at or below a directory besides this process: the first few, named. `None` if
/// nothing does.
pub(super) fn holder_names(root: &Root, point: &Path) -> Option<String> {
    let mut holders: Vec<String> = find_holders(root, point)
        .iter()
        .filter(|holder| holder.pid != Some(std::process::id()))
        .map(|holder| match holder.pid {
            Some(pid) => format!("{} ({pid}, {})", holder.name, holder.path.display()),
            None => format!("{} ({})", holder.name, holder.path.display()),
        })
        .collect();
    let hidden = holders.len().saturating_sub(NAMED_HOLDERS);
    holders.truncate(NAMED_HOLDERS);
    if hidden > 0 {
        holders.push(format!("{hidden} more"));
    }
    (!holders.is_empty()).then(|| holders.join(", "))
}
