//! A served file under the kernel's own loop device: trim, several requests at a time, and a server
//! that is killed again and again under a file system in use; the same over NBD. Needs root and
//! /dev/fuse; for NBD the module nbd, which `cargo xtask vm --module nbd --tests serve` has.
#![allow(clippy::unwrap_used, reason = "a test whose scene is not made must fail")]

mod cached;
mod killed;
mod load;
mod nbd;

use model::device::{BlockDevice, DeviceError};
use model::engine::ErrorNumber;
use serve::fuse::channel::RootKind;
use serve::fuse::{Channel, FileOptions, FileServer};
use serve::volume::{DeviceVolume, Volume, VolumeResult, number_of};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use sys::device::FileDevice;
use testkit::{LoopDevice, TempDir};

/// Longer than any machine takes; only a hang waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file as a volume, whose holes are punched.
struct FileVolume(DeviceVolume<FileDevice>, FileDevice);

impl FileVolume {
    fn open(path: &Path) -> Self {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let device = FileDevice::new(file).unwrap();
        let other = FileDevice::over(device.file()).unwrap();
        Self(DeviceVolume::new(device).unwrap(), other)
    }

    fn punch(&self, range: Range<u64>) -> Result<(), DeviceError> {
        self.1.discard(range)
    }
}

impl Volume for FileVolume {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> VolumeResult {
        self.0.read(offset, buffer)
    }

    fn write(&self, offset: u64, data: &[u8]) -> VolumeResult {
        self.0.write(offset, data)
    }

    fn flush(&self) -> VolumeResult {
        self.0.flush()
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> VolumeResult {
        self.punch(offset..offset + len).map_err(|error| number_of(&error))
    }
}

/// A file that this process serves; its connection is ended on drop.
struct Served {
    point: PathBuf,
    server: Option<FileServer>,
    _directory: TempDir,
}

impl Served {
    fn start(volume: Arc<dyn Volume>, channels: usize, options: FileOptions) -> Option<Self> {
        if !testkit::is_root() {
            testkit::skip("root");
            return None;
        }
        let directory = TempDir::new();
        let point = directory.join("disk");
        File::create(&point).unwrap();
        let first = match Channel::open() {
            Ok(first) => first,
            Err(error) => {
                testkit::skip(error);
                return None;
            }
        };
        let source = format!("terrace-test-{}", std::process::id());
        first.mount(&point, RootKind::File, &source).unwrap();
        let mut all = vec![first];
        while all.len() < channels {
            let another = all[0].another().unwrap();
            all.push(another);
        }
        let server = FileServer::start(all, volume, options).unwrap();
        Some(Self { point, server: Some(server), _directory: directory })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if sys::mount::abandon(&self.point).is_ok()
            && let Some(server) = self.server.take()
        {
            server.join();
        }
    }
}

/// A file of `bytes` bytes in memory.
fn backing(bytes: u64) -> (TempDir, PathBuf) {
    let directory = TempDir::in_dir(Path::new("/dev/shm"));
    let path = directory.join("backing");
    File::create(&path).unwrap().set_len(bytes).unwrap();
    (directory, path)
}

#[test]
fn a_trim_of_the_loop_device_frees_the_file() {
    const MIB: u64 = 1 << 20;
    let (_directory, path) = backing(8 * MIB);
    let volume = Arc::new(FileVolume::open(&path));
    let Some(served) = Served::start(volume, 2, FileOptions::DISK) else { return };
    let device = LoopDevice::direct_over(&served.point).unwrap();
    let opened = File::options().read(true).write(true).open(device.path()).unwrap();
    let disk = FileDevice::new(opened).unwrap();
    disk.write_at(&vec![7; 8 << 20], 0).unwrap();
    disk.flush().unwrap();
    let stored = || std::fs::metadata(&path).unwrap().blocks() * 512;
    assert_eq!(stored(), 8 * MIB);
    disk.discard(2 * MIB..6 * MIB).unwrap();
    assert_eq!(stored(), 4 * MIB);
    sys::block::zero_out(disk.file(), 0..MIB).unwrap();
    let mut bytes = vec![1; 8 << 20];
    // Past the page cache of the device, which does not know.
    let direct = sys::file::open_read(device.path(), true).unwrap();
    let mut room = sys::memory::AlignedBuffer::new(8 << 20).unwrap();
    FileDevice::new(direct).unwrap().read_at(&mut room, 0).unwrap();
    bytes.copy_from_slice(&room);
    let holes = [0..MIB, 2 * MIB..6 * MIB];
    for (at, byte) in bytes.iter().enumerate().step_by(512) {
        let is_hole = holes.iter().any(|hole| hole.contains(&(at as u64)));
        assert_eq!(*byte, if is_hole { 0 } else { 7 }, "byte {at}");
    }
    drop(disk);
    drop(device);
    drop(served);
}

/// A volume each of whose reads waits until so many are under way together.
struct Meeting {
    wanted: usize,
    present: Mutex<usize>,
    met: Condvar,
    most: AtomicUsize,
}

impl Volume for Meeting {
    fn bytes(&self) -> u64 {
        1 << 20
    }

    fn read(&self, _offset: u64, buffer: &mut [u8]) -> VolumeResult {
        let mut present = self.present.lock().unwrap();
        *present += 1;
        self.most.fetch_max(*present, Ordering::SeqCst);
        self.met.notify_all();
        let (present, _) = self
            .met
            .wait_timeout_while(present, PATIENCE, |_| {
                self.most.load(Ordering::SeqCst) < self.wanted
            })
            .unwrap();
        drop(present);
        *self.present.lock().unwrap() -= 1;
        buffer.fill(1);
        Ok(())
    }

    fn write(&self, _offset: u64, _data: &[u8]) -> VolumeResult {
        Ok(())
    }

    fn flush(&self) -> VolumeResult {
        Ok(())
    }
}

#[test]
fn as_many_requests_are_served_at_once_as_there_are_channels() {
    const CHANNELS: usize = 4;
    let volume = Arc::new(Meeting {
        wanted: CHANNELS,
        present: Mutex::new(0),
        met: Condvar::new(),
        most: AtomicUsize::new(0),
    });
    let shared = Arc::clone(&volume);
    let Some(served) = Served::start(shared, CHANNELS, FileOptions::DISK) else { return };
    std::thread::scope(|scope| {
        for number in 0..CHANNELS as u64 {
            let path = &served.point;
            scope.spawn(move || {
                let file = FileDevice::new(File::open(path).unwrap()).unwrap();
                let mut buffer = [0; 4096];
                assert_eq!(file.read_at(&mut buffer, number << 12).unwrap(), 4096);
                assert_eq!(buffer, [1; 4096]);
            });
        }
    });
    assert_eq!(volume.most.load(Ordering::SeqCst), CHANNELS);
}

/// Where its second half begins.
const REFUSED: u64 = 1 << 19;

/// A volume that refuses what lies at some offsets of its second half, and panics at its start.
struct Refusing;

impl Volume for Refusing {
    fn bytes(&self) -> u64 {
        1 << 20
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> VolumeResult {
        assert!(offset > 0, "a fault of the volume");
        buffer.fill(2);
        match offset {
            0..REFUSED => Ok(()),
            REFUSED => Err(ErrorNumber(61)),
            // The kernel would not take these.
            0xc_0000 => Err(ErrorNumber(0)),
            0xd_0000 => Err(ErrorNumber(512)),
            _ => Ok(()),
        }
    }

    fn write(&self, _offset: u64, _data: &[u8]) -> VolumeResult {
        Err(ErrorNumber(28))
    }

    fn flush(&self) -> VolumeResult {
        Ok(())
    }
}

#[test]
fn errors_arrive_unchanged_and_a_panic_is_one_of_them() {
    let Some(served) = Served::start(Arc::new(Refusing), 1, FileOptions::default()) else { return };
    let opened = File::options().read(true).write(true).open(&served.point).unwrap();
    let file = FileDevice::new(opened).unwrap();
    let mut buffer = [0; 512];
    let number = |error: DeviceError| error.source.raw_os_error();
    assert_eq!(file.read_at(&mut buffer, 0).map_err(number), Err(Some(5)));
    assert_eq!(file.read_at(&mut buffer, REFUSED).map_err(number), Err(Some(61)));
    for offset in [0xc_0000, 0xd_0000] {
        assert_eq!(file.read_at(&mut buffer, offset).map_err(number), Err(Some(5)), "{offset}");
    }
    assert_eq!(file.write_at(&buffer, 512).map_err(number), Err(Some(28)));
    assert_eq!(file.read_at(&mut buffer, 512).unwrap(), 512);
    assert_eq!(buffer, [2; 512]);
    // Behind the end there is nothing, and that is no error.
    assert_eq!(file.read_at(&mut buffer, (1 << 20) - 100).unwrap(), 100);
    assert_eq!(file.read_at(&mut buffer, 1 << 21).unwrap(), 0);
    // A server without holes answers that there is no such request.
    assert_eq!(file.discard(0..4096).map_err(number), Err(Some(95)));
}
