//! The file system that the databases use when a flash cache is tried: in a file on the disk, as a
//! loop device, read from that alone or through `terrace boost attach`. It is mounted anew for each
//! trial, so that nothing of it is in memory. The workplace's own process takes all of it apart.

use super::application::program;
use super::plan::FlashPlan;
use super::workplace::Workplace;
use crate::{Error, Host, Result};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use sys::ErrorKind;
use sys::directory::Directory;
use sys::helper::HiddenCommand;
use sys::loop_device::{LoopDevice, LoopOptions};
use sys::mount::{self, FileSystemOptions, MountRestrictions};

/// What is in the workplace: the file with the file system, where that is mounted, and the key and
/// the journal of the cache.
const IMAGE: &str = "volume";
const POINT: &str = "files";
const STATE: &str = "state";
/// The file of the cache, in the lab's directory on the flash.
const CACHE: &str = "cache";
const MAKE: &str = "mkfs.ext4";
/// A file system stays in use for a moment after the last program of it has ended.
const UNMOUNT_TRIES: u32 = 100;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(100);
/// How often it is tried to take all apart, and how long between two tries.
const TAKE_APART_TRIES: u32 = 120;
const TAKE_APART_PAUSE: Duration = Duration::from_millis(500);
/// The longest complaint that is passed on.
const COMPLAINT_CHARACTERS: usize = 500;

/// The file system and its cache.
#[derive(Debug)]
pub struct Volume<'a> {
    boost: &'a HiddenCommand,
    flash: &'a FlashPlan,
    workplace: PathBuf,
    /// The lab's directory on the flash.
    flash_directory: PathBuf,
    device: LoopDevice,
    /// How many caches there were.
    attached: Cell<u32>,
}

/// What a cache holds, and what it was asked for and has answered since then; or since it was
/// attached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheCounts {
    /// Bytes of the volume that it holds.
    pub cached_bytes: u64,
    /// Bytes that were read of it.
    pub read_bytes: u64,
    /// Those of them that the flash answered.
    pub hit_bytes: u64,
}

impl CacheCounts {
    /// What it held at an earlier look, and what it was asked for since then.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            cached_bytes: earlier.cached_bytes,
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            hit_bytes: self.hit_bytes.saturating_sub(earlier.hit_bytes),
        }
    }
}

/// `terrace.boost_status/1`, as far as it is needed.
#[derive(Debug, Deserialize)]
struct Statuses {
    caches: Vec<Status>,
}

#[derive(Debug, Deserialize)]
struct Status {
    device: PathBuf,
    #[serde(flatten)]
    counts: CacheCounts,
}

impl<'a> Volume<'a> {
    /// Makes it, and attaches a cache once, so that what this machine refuses is known before
    /// anything is measured.
    ///
    /// # Errors
    /// `Impossible` where no such file system or cache can be had.
    pub fn make(host: &'a Host, workplace: &Workplace, flash: &'a FlashPlan) -> Result<Self> {
        let refused = |error: Error| Error::impossible(error.text);
        let directory = Directory::open(workplace.directory())?;
        let image = workplace.directory().join(IMAGE);
        let file = directory.create_new(OsStr::new(IMAGE), 0o600)?;
        sys::file::allocate(&file, flash.volume_bytes.0).map_err(|error| refused(error.into()))?;
        make_file_system(&image).map_err(refused)?;
        // Past the page cache: a copy of it there would be a further cache.
        let options = LoopOptions { is_direct: true, ..LoopOptions::default() };
        let device =
            LoopDevice::attach(&file, &image, options).map_err(|error| refused(error.into()))?;
        directory.create_subdirectory(OsStr::new(POINT), 0o700)?;
        let made = Self {
            boost: &host.programs.boost,
            flash,
            workplace: workplace.directory().to_owned(),
            flash_directory: flash_directory(&flash.directory, workplace.directory()),
            device,
            attached: Cell::new(0),
        };
        made.attach().and_then(|_| made.detach()).map_err(refused)?;
        Ok(made)
    }

    /// Where it is mounted.
    pub fn point(&self) -> PathBuf {
        self.workplace.join(POINT)
    }

    /// Mounts it anew, with an empty cache before it or with none.
    ///
    /// # Errors
    /// Where a program still uses it, and what the kernel or the cache refuses.
    pub fn mount(&self, with_cache: bool) -> Result<()> {
        unmount(&self.point())?;
        self.detach()?;
        let device = if with_cache { self.attach()? } else { self.device.path().to_owned() };
        let system = FileSystemOptions::new("ext4")?;
        system.set("source", &device.to_string_lossy())?;
        let restrictions = MountRestrictions {
            no_set_user_id: true,
            no_devices: true,
            ..MountRestrictions::default()
        };
        let mounted = system.mount(restrictions)?;
        Ok(mounted.attach(&Directory::open(&self.point())?)?)
    }

    /// Fills the cache with what is in memory of the volume's files.
    ///
    /// # Errors
    /// When that fails.
    pub fn fill(&self) -> Result<()> {
        boost(self.boost, &["fill".into(), self.name(), "--from-page-cache".into()]).map(drop)
    }

    /// What the cache holds and has answered.
    ///
    /// # Errors
    /// Where it does not say.
    pub fn counts(&self) -> Result<CacheCounts> {
        Ok(self.status()?.counts)
    }

    fn status(&self) -> Result<Status> {
        let text = boost(self.boost, &["status".into(), self.name(), "--json".into()])?;
        let all: Option<Statuses> = serde_json::from_str(&text).ok();
        let first = all.and_then(|all| all.caches.into_iter().next());
        first.ok_or_else(|| Error::failed("the flash cache does not say what it does"))
    }

    /// Attaches an empty cache; its device.
    fn attach(&self) -> Result<PathBuf> {
        let words = [
            "attach".into(),
            self.name(),
            "--backing".into(),
            self.device.path().into(),
            "--cache".into(),
            self.flash_directory.join(CACHE).into(),
            "--size".into(),
            self.flash.cache_bytes.0.to_string().into(),
            "--state".into(),
            // One for each: what is there belongs to a cache before.
            self.workplace.join(format!("{STATE}-{}", self.attached.get())).into(),
        ];
        boost(self.boost, &words)?;
        Ok(self.status()?.device)
    }

    /// Detaches the cache, if there is one, and forgets it: the next one is empty.
    fn detach(&self) -> Result<()> {
        detach(self.boost, &self.workplace)?;
        self.attached.set(self.attached.get() + 1);
        match Directory::open(&self.flash_directory)?.remove(OsStr::new(CACHE)) {
            Err(error) if error.kind != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn name(&self) -> OsString {
        cache_name(&self.workplace)
    }
}

/// Unmounts the file system, detaches its cache and its loop device, as far as they are there. What
/// is on the flash goes with its directory.
///
/// # Errors
/// What is still in use; then the rest stays too.
pub(crate) fn take_apart(workplace: &Path, boost: &HiddenCommand) -> Result<()> {
    let image = workplace.join(IMAGE);
    for _ in 0..TAKE_APART_TRIES {
        unmount(&workplace.join(POINT))?;
        detach(boost, workplace)?;
        if !is_attached_after(&image)? {
            return Ok(());
        }
        // A cache that a killed lab has just asked for may still be on its way.
        std::thread::sleep(TAKE_APART_PAUSE);
    }
    Err(Error::failed(format!("{} is still in use", image.display())))
}

/// Detaches what is attached to a file; whether something still is, since it is in use.
fn is_attached_after(image: &Path) -> Result<bool> {
    let is_it = |device: &LoopDevice| {
        device.backing_file().is_ok_and(|file| file.as_deref() == Some(image))
    };
    let devices: Vec<LoopDevice> = LoopDevice::all()?.into_iter().filter(is_it).collect();
    for device in &devices {
        device.detach_from(image)?;
    }
    Ok(devices.iter().any(is_it))
}

/// The lab's directory in `flash`: its name is that of the workplace.
pub(crate) fn flash_directory(flash: &Path, workplace: &Path) -> PathBuf {
    flash.join(workplace.file_name().unwrap_or_default())
}

fn cache_name(workplace: &Path) -> OsString {
    workplace.file_name().unwrap_or_default().to_owned()
}

fn make_file_system(image: &Path) -> Result<()> {
    let Some(program) = program(MAKE) else {
        return Err(Error::failed(format!("{MAKE} is not installed")));
    };
    // All of it is written now, and nothing is given back to the disk.
    let options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
    let mut command = Command::new(program);
    command.args(["-q", "-F", "-E", options]).arg(image);
    answer(command, MAKE).map(drop)
}

fn unmount(point: &Path) -> Result<()> {
    let mut answer = mount::unmount(point);
    for _ in 0..UNMOUNT_TRIES {
        match &answer {
            Err(error) if mount::is_busy(error) => std::thread::sleep(UNMOUNT_PAUSE),
            _ => break,
        }
        answer = mount::unmount(point);
    }
    match answer {
        // It is not mounted, or not made yet.
        Err(error) if matches!(error.kind, ErrorKind::Invalid | ErrorKind::NotFound) => Ok(()),
        answer => Ok(answer?),
    }
}

fn detach(command: &HiddenCommand, workplace: &Path) -> Result<()> {
    let name = cache_name(workplace);
    let is_attached = boost(command, &["status".into(), name.clone()]).is_ok();
    if is_attached { boost(command, &["detach".into(), name]).map(drop) } else { Ok(()) }
}

/// What a command of `terrace boost` printed.
fn boost(command: &HiddenCommand, words: &[OsString]) -> Result<String> {
    let line = command.command_line();
    let mut boost = Command::new(&line[0]);
    boost.args(&line[1..]).args(words);
    // Ctrl-C ends a fill. What attaches or detaches goes on to its end: the lab waits for that.
    if words.first().is_none_or(|word| word != "fill") {
        boost.process_group(0);
    }
    answer(boost, "terrace boost")
}

fn answer(mut command: Command, name: &str) -> Result<String> {
    let failed = |why: &str| Error::failed(format!("{name}: {why}"));
    let ran = command.stdin(Stdio::null()).output();
    let output = ran.map_err(|error| failed(&sys::plain_reason(&error)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let Some(line) = said.lines().next() else {
        return Err(failed("it failed and said nothing"));
    };
    // It begins with the command that said it.
    let why = line.strip_prefix("terrace: ").unwrap_or(line);
    Err(Error::failed(why.chars().take(COMPLAINT_CHARACTERS).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read() {
        let text = r#"{"caches": [{"name": "a", "device": "/dev/loop3", "cached_bytes": 5,
            "read_bytes": 7, "hit_bytes": 6, "off": null}]}"#;
        let all: Statuses = serde_json::from_str(text).unwrap();
        assert_eq!(all.caches[0].device, Path::new("/dev/loop3"));
        let counts = CacheCounts { cached_bytes: 5, read_bytes: 7, hit_bytes: 6 };
        assert_eq!(all.caches[0].counts, counts);
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo 'terrace: boost attach: no such disk' >&2; echo more >&2; exit 3"]);
        let error = answer(command, "terrace boost").unwrap_err();
        assert_eq!(error.text, "boost attach: no such disk");
    }
}
