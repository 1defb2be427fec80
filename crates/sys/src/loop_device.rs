//! Loop devices: a file as a block device (`/dev/loop-control`, `LOOP_CONFIGURE` of linux/loop.h).
//!
//! A device is attached with all its settings in one call, so that it is never seen half
//! configured. [`LoopDevice`] is the name of one: it holds no descriptor and detaches nothing by
//! itself, so that a device may live longer than the process that attached it. By the time that it
//! is detached its number may be that of another file, so that is looked at while it is held open.

use crate::error::{Error, ErrorKind, Result, check};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const CONTROL: &str = "/dev/loop-control";
const DEVICES: &str = "/sys/block";
const DETACH: &str = "detach the loop device";
/// Requests of linux/loop.h.
const LOOP_CLR_FD: libc::c_ulong = 0x4c01;
const LOOP_CONFIGURE: libc::c_ulong = 0x4c0a;
const LOOP_CTL_ADD: libc::c_ulong = 0x4c80;
const LOOP_CTL_REMOVE: libc::c_ulong = 0x4c81;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4c82;

const READ_ONLY: u32 = 1;
const DIRECT_IO: u32 = 16;

/// `struct loop_config`, of which each field that is used is at a fixed place.
const CONFIG_BYTES: usize = 304;
const BLOCK_BYTES_AT: usize = 4;
const FLAGS_AT: usize = 60;
const NAME_AT: usize = 64;
/// What `lo_file_name` has room for, without the zero at its end.
const NAME_BYTES: usize = 63;

/// Another process may take the device that was free a moment ago.
const TRIES: u32 = 64;

/// How a file is attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopOptions {
    /// Requests reach the file as they are, past its page cache.
    pub is_direct: bool,
    /// Nothing can be written.
    pub is_read_only: bool,
    /// The logical block in bytes; the kernel chooses where it is `None`.
    pub block_bytes: Option<u32>,
}

/// A loop device, attached or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    number: u32,
    path: PathBuf,
}

/// Opens what gives out loop devices, and closes it again: no device is made or taken.
///
/// # Errors
/// `NotFound` without loop devices, `Denied` for users who may not have any.
pub fn examine_control() -> Result<()> {
    open_control("open").map(drop)
}

/// A loop device that is open, and keeps its file.
#[derive(Debug)]
pub struct HeldLoopDevice<'d> {
    device: &'d LoopDevice,
    opened: File,
}

impl HeldLoopDevice<'_> {
    /// As [`LoopDevice::detach`].
    ///
    /// # Errors
    /// As that.
    pub fn detach(self) -> Result<()> {
        self.device.clear(&self.opened)
    }
}

impl LoopDevice {
    /// Attaches the first free device to `file`; `name` is what `losetup` shows besides the path
    /// that the kernel knows.
    ///
    /// # Errors
    /// `Denied` for other users than root, `NotFound` without loop devices, `Invalid` for a file
    /// that cannot be one.
    pub fn attach(file: &File, name: &Path, options: LoopOptions) -> Result<Self> {
        let mut tries = 0;
        loop {
            let number = control(LOOP_CTL_GET_FREE, 0)?;
            let device = Self::numbered(number as u32);
            match device.configure(file, name, options) {
                Err(error) if is_taken(&error) && tries < TRIES => tries += 1,
                configured => return configured.map(|()| device),
            }
        }
    }

    /// The name of the device with this number, whether or not there is one.
    #[must_use]
    pub fn numbered(number: u32) -> Self {
        Self { number, path: PathBuf::from(format!("/dev/loop{number}")) }
    }

    /// All that there are, attached or not.
    ///
    /// # Errors
    /// If /sys cannot be read.
    pub fn all() -> Result<Vec<Self>> {
        let entries = std::fs::read_dir(DEVICES)
            .map_err(|error| Error::new("list the loop devices", error).at(DEVICES))?;
        let names = entries.flatten().map(|entry| entry.file_name());
        let number = |name: OsString| name.to_str()?.strip_prefix("loop")?.parse().ok();
        Ok(names.filter_map(number).map(Self::numbered).collect())
    }

    /// Makes the device with this number, which is its minor number too; it is not attached.
    ///
    /// # Errors
    /// As [`Self::attach`]; `Other` with `EEXIST` where there is such a device.
    pub fn add(number: u32) -> Result<Self> {
        control(LOOP_CTL_ADD, libc::c_ulong::from(number))?;
        Ok(Self::numbered(number))
    }

    /// Attaches this device to `file`.
    ///
    /// # Errors
    /// As [`Self::attach`]; `Other` with `EBUSY` if it is attached.
    pub fn configure(&self, file: &File, name: &Path, options: LoopOptions) -> Result<()> {
        const OPERATION: &str = "attach the loop device";
        // Some kernels take the size that they have in mind, which of a file over FUSE is 0 until
        // it is asked for (seen with 6.12, not with 6.18).
        file.metadata().map_err(|error| Error::new(OPERATION, error).at(name))?;
        let config = config(file, name, options);
        let device = self.open(OPERATION, !options.is_read_only)?;
        // SAFETY: this request reads a `struct loop_config`; `config` has its size and lives as
        // long as the call.
        let answer =
            unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, config.as_ptr()) };
        check(OPERATION, answer).map(drop).map_err(|error| error.at(&self.path))
    }

    /// Detaches it from its file: at once, or when the last program has closed it.
    ///
    /// # Errors
    /// `NotFound` if it is not attached; `Invalid` if its path leads to another device.
    pub fn detach(&self) -> Result<()> {
        let device = self.open(DETACH, false)?;
        self.clear(&device)
    }

    /// The same if its file is the one at `path`, as the kernel knows it; whether it is. While it
    /// is open here it cannot get another file.
    ///
    /// # Errors
    /// As [`Self::detach`], but for a device that is not attached; if /sys cannot be read.
    pub fn detach_from(&self, path: &Path) -> Result<bool> {
        let Some(held) = self.hold(path)? else { return Ok(false) };
        held.detach().map(|()| true)
    }

    /// Keeps it open, if its file is the one at `path`, as the kernel knows it: it then gets no
    /// other file, although that path may change, as that of a file whose mount has gone does.
    ///
    /// # Errors
    /// As [`Self::detach_from`].
    pub fn hold(&self, path: &Path) -> Result<Option<HeldLoopDevice<'_>>> {
        let opened = self.open(DETACH, false)?;
        let failed = |error| Error::new(DETACH, error).at(&self.path);
        let is_it = self.backing_file().map_err(failed)?.as_deref() == Some(path);
        Ok(is_it.then_some(HeldLoopDevice { device: self, opened }))
    }

    /// The path of the file that it is attached to, as the kernel knows it; `None` if it is not
    /// attached.
    ///
    /// # Errors
    /// If /sys cannot be read.
    pub fn backing_file(&self) -> io::Result<Option<PathBuf>> {
        match std::fs::read(format!("/sys/block/loop{}/loop/backing_file", self.number)) {
            Ok(path) => {
                let path = path.strip_suffix(b"\n").unwrap_or(&path);
                Ok(Some(PathBuf::from(OsStr::from_bytes(path))))
            }
            // It has no file, or lost it just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn clear(&self, device: &File) -> Result<()> {
        // SAFETY: this request takes no argument.
        let answer = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD as _, 0) };
        check(DETACH, answer).map(drop).map_err(|error| error.at(&self.path))
    }

    /// Removes a device that is not attached and not open.
    ///
    /// # Errors
    /// `Other` with `EBUSY` while it is attached or open.
    pub fn remove(&self) -> Result<()> {
        control(LOOP_CTL_REMOVE, libc::c_ulong::from(self.number)).map(drop)
    }

    /// Its number, as 0 of `/dev/loop0`.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its file, as `/dev/loop0`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, operation: &'static str, for_writing: bool) -> Result<File> {
        let opened = File::options().read(true).write(for_writing).open(&self.path);
        let device = opened.map_err(|error| Error::new(operation, error).at(&self.path))?;
        // Where the module counts partitions, the minor number is not that of the device.
        let place = format!("/sys/block/loop{}/dev", self.number);
        let numbers = std::fs::read_to_string(place)
            .map_err(|error| Error::new(operation, error).at(&self.path))?;
        match crate::block::numbers_of(&device)? {
            Some((major, minor)) if numbers.trim_end() == format!("{major}:{minor}") => Ok(device),
            _ => Err(Error::invalid(operation, "its path leads to another device").at(&self.path)),
        }
    }
}

/// Whether another process was faster.
fn is_taken(error: &Error) -> bool {
    // A device that was added a moment ago may not have its file yet.
    error.number() == Some(libc::EBUSY) || error.kind == ErrorKind::NotFound
}

fn config(file: &File, name: &Path, options: LoopOptions) -> [u8; CONFIG_BYTES] {
    let mut config = [0; CONFIG_BYTES];
    let mut put = |at: usize, bytes: &[u8]| config[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &file.as_raw_fd().to_ne_bytes());
    put(BLOCK_BYTES_AT, &options.block_bytes.unwrap_or(0).to_ne_bytes());
    let known = [(options.is_direct, DIRECT_IO), (options.is_read_only, READ_ONLY)];
    let flags = known.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum::<u32>();
    put(FLAGS_AT, &flags.to_ne_bytes());
    let name = name.as_os_str().as_bytes();
    put(NAME_AT, &name[..name.len().min(NAME_BYTES)]);
    config
}

fn control(request: libc::c_ulong, argument: libc::c_ulong) -> Result<libc::c_int> {
    const OPERATION: &str = "use";
    let control = open_control(OPERATION)?;
    // SAFETY: these requests take a number and no pointer.
    let answer = unsafe { libc::ioctl(control.as_raw_fd(), request as _, argument) };
    check(OPERATION, answer).map_err(|error| error.at(CONTROL))
}

fn open_control(operation: &'static str) -> Result<File> {
    File::open(CONTROL).map_err(|error| Error::new(operation, error).at(CONTROL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    /// A file of 64 KiB whose bytes are 7, opened for both.
    fn image(directory: &TempDir) -> (PathBuf, File) {
        let path = directory.join("image");
        std::fs::write(&path, vec![7u8; 64 << 10]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        (path, file)
    }

    /// Detaches the device also when the test fails.
    struct Detached(LoopDevice);

    impl Drop for Detached {
        fn drop(&mut self) {
            let _ = self.0.detach();
        }
    }

    #[test]
    fn a_file_is_attached_with_its_options_and_detached() {
        if !testkit::is_root() {
            return testkit::skip("root");
        }
        let directory = TempDir::new();
        let (path, file) = image(&directory);
        let options =
            LoopOptions { is_direct: true, block_bytes: Some(4096), ..LoopOptions::default() };
        let device = match LoopDevice::attach(&file, &path, options) {
            Ok(device) => Detached(device),
            Err(error) => return testkit::skip(error),
        };
        let open = File::open(device.0.path()).unwrap();
        assert_eq!(crate::block::size_bytes(&open).unwrap(), 64 << 10);
        assert_eq!(crate::block::logical_block_bytes(&open).unwrap(), 4096);
        let facts = format!("/sys/block/loop{}/loop", device.0.number());
        let fact = |name: &str| std::fs::read_to_string(format!("{facts}/{name}")).unwrap();
        assert_eq!(fact("dio").trim(), "1");
        assert_eq!(Path::new(fact("backing_file").trim_end()), path);
        assert!(LoopDevice::all().unwrap().contains(&device.0));
        let taken = device.0.configure(&file, &path, options).unwrap_err();
        assert_eq!(taken.number(), Some(libc::EBUSY));
        drop(open);
        // By then the number may be that of another file.
        assert!(!device.0.detach_from(&directory.join("another")).unwrap());
        assert_eq!(device.0.backing_file().unwrap().as_deref(), Some(path.as_path()));
        assert!(device.0.detach_from(&path).unwrap());
        assert_eq!(device.0.backing_file().unwrap(), None);
        assert!(!device.0.detach_from(&path).unwrap());
        assert_eq!(device.0.detach().unwrap_err().kind, ErrorKind::NotFound);
        assert!(!Path::new(&facts).exists());
    }

    #[test]
    fn a_path_that_leads_to_another_device_is_refused() {
        if !testkit::is_root() {
            return testkit::skip("root");
        }
        let device = LoopDevice { number: 1, path: PathBuf::from("/dev/null") };
        assert_eq!(device.detach().unwrap_err().kind, ErrorKind::Invalid);
    }

    #[test]
    fn a_device_that_is_only_read_refuses_writes() {
        if !testkit::is_root() {
            return testkit::skip("root");
        }
        let directory = TempDir::new();
        let (path, _) = image(&directory);
        let file = File::open(&path).unwrap();
        let options = LoopOptions { is_read_only: true, ..LoopOptions::default() };
        let device = match LoopDevice::attach(&file, &path, options) {
            Ok(device) => Detached(device),
            Err(error) => return testkit::skip(error),
        };
        assert_eq!(std::fs::read(device.0.path()).unwrap(), vec![7u8; 64 << 10]);
        let size = format!("/sys/block/loop{}/ro", device.0.number());
        assert_eq!(std::fs::read_to_string(size).unwrap().trim(), "1");
    }

    #[test]
    fn the_control_opens_to_those_who_may_have_a_device() {
        if let Err(error) = examine_control() {
            return testkit::skip(format!("loop devices: {error}"));
        }
        if testkit::is_root() {
            let refused = crate::process::as_user(65_534, 65_534, examine_control).unwrap();
            assert_eq!(refused.unwrap_err().kind, crate::ErrorKind::Denied);
        }
    }
}
