//! The kernel's own network block device over a server that is killed: requests wait for its
//! successor. Needs root and the module nbd.

use super::killed::{SCENE, Server, Slow, load_while_killed};
use super::{FileVolume, PATIENCE, backing};
use model::device::BlockDevice;
use serve::nbd::{DeviceServer, DeviceSetup, ExportFeatures, KernelDevice};
use serve::volume::{Volume, VolumeResult};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use sys::device::FileDevice;
use testkit::{FileSystem, Mount};

const BYTES: u64 = 64 << 20;
const BLOCK: u32 = 4096;
const FEATURES: ExportFeatures = ExportFeatures::all(BLOCK);
const CONNECTIONS: usize = 2;
const KILLS: u64 = 5;

/// What was under way in a killed server waits for so long. The guest that this runs in is
/// emulated: requests of a server that is alive may take longer, which must not matter.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// The device of a scene, which its point names.
fn setup(point: &Path) -> DeviceSetup {
    DeviceSetup {
        identifier: point.display().to_string(),
        bytes: BYTES,
        block_bytes: BLOCK,
        features: FEATURES,
        request_timeout: REQUEST_TIMEOUT,
    }
}

/// The process that the next test kills. It finds the device that another one made.
#[test]
#[ignore = "is started by the test below"]
fn serving_process() {
    let Ok(scene) = std::env::var(SCENE) else { return };
    let (path, point) = scene.split_once('\n').unwrap();
    let volume: Arc<dyn Volume> = Arc::new(Slow(FileVolume::open(Path::new(path))));
    let setup = setup(Path::new(point));
    let (device, streams) = match KernelDevice::find(setup.clone()).unwrap() {
        Some(device) => {
            let streams = (0..CONNECTIONS).map(|_| device.take_over().unwrap()).collect();
            (device, streams)
        }
        None => KernelDevice::connect(setup, CONNECTIONS).unwrap(),
    };
    let server = DeviceServer::start(&device, streams, &volume, 4).unwrap();
    while device.is_connected() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = server.join_within(PATIENCE);
}

/// Disconnects the device also when the test fails.
struct Disconnected(KernelDevice);

impl Drop for Disconnected {
    fn drop(&mut self) {
        let _ = self.0.disconnect();
    }
}

#[test]
fn a_killed_server_of_a_network_block_device_has_a_successor() {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    if let Err(error) = sys::nbd::NbdClient::open() {
        return testkit::skip(error);
    }
    let (_directory, path) = backing(BYTES);
    let server = Server::start("nbd::serving_process", &path);
    let end = Instant::now() + PATIENCE;
    let device = loop {
        assert!(Instant::now() < end, "no device");
        // It has its name before it has its size.
        let has_size = |device: &KernelDevice| {
            let size = format!("/sys/block/nbd{}/size", device.number());
            std::fs::read_to_string(size).is_ok_and(|sectors| sectors.trim() != "0")
        };
        let found = KernelDevice::find(setup(&server.point)).unwrap();
        if let Some(device) = found.filter(has_size) {
            break Disconnected(device);
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let node = device.0.path();
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&node).status().unwrap();
    assert!(made.success());
    let point = server.point.with_file_name("mount");
    let mount = Mount::existing(FileSystem::Ext4, &node, point).unwrap();
    let files: Vec<_> = (0..4).map(|it| mount.path().join(it.to_string())).collect();
    let tally = load_while_killed(&server, &files, KILLS, || drop(device.0.disconnect()));
    drop(mount);
    let checked = Command::new("e2fsck").args(["-f", "-n"]).arg(&node).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    println!("{tally:?}, {} servers", server.starts.load(Ordering::SeqCst));
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!((count(&tally.errors), count(&tally.wrong)), (0, 0));

    // A trim reaches the file.
    let opened = File::options().read(true).write(true).open(&node).unwrap();
    let disk = FileDevice::new(opened).unwrap();
    disk.write_at(&vec![7; 8 << 20], 0).unwrap();
    disk.flush().unwrap();
    sys::block::zero_out(disk.file(), 0..4 << 20).unwrap();
    let stored = std::fs::read(&path).unwrap();
    assert!(stored[..4 << 20].iter().all(|byte| *byte == 0));
    assert!(stored[4 << 20..8 << 20].iter().all(|byte| *byte == 7));
    drop(disk);
    // While a program has it open it works, and afterwards it is gone.
    device.0.end_when_closed().unwrap();
    wait_until_gone(&device.0);
    drop(server);
}

fn wait_until_gone(device: &KernelDevice) {
    let end = Instant::now() + PATIENCE;
    while device.is_connected() {
        assert!(Instant::now() < end, "it is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A volume whose first reads take longer than the kernel waits.
struct Hesitant(AtomicU32);

impl Volume for Hesitant {
    fn bytes(&self) -> u64 {
        BYTES
    }

    fn read(&self, _offset: u64, buffer: &mut [u8]) -> VolumeResult {
        if self.0.fetch_add(1, Ordering::SeqCst) < 8 {
            std::thread::sleep(REQUEST_TIMEOUT * 2);
        }
        buffer.fill(9);
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
fn a_connection_that_was_killed_for_slowness_is_made_anew() {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    if let Err(error) = sys::nbd::NbdClient::open() {
        return testkit::skip(error);
    }
    let identifier = Path::new("terrace-test").join(std::process::id().to_string());
    let made = KernelDevice::connect(setup(&identifier), CONNECTIONS).unwrap();
    let device = Disconnected(made.0);
    let volume: Arc<dyn Volume> = Arc::new(Hesitant(AtomicU32::new(0)));
    let server = DeviceServer::start(&device.0, made.1, &volume, 4).unwrap();
    // All connections are alive: there is none to take over.
    let mut block = [0; 4096];
    let file = File::open(device.0.path()).unwrap();
    for number in 0..16 {
        file.read_exact_at(&mut block, number << 20).unwrap();
        assert_eq!(block, [9; 4096]);
    }
    drop(file);
    server.let_end();
    device.0.end_when_closed().unwrap();
    wait_until_gone(&device.0);
    assert!(server.join_within(PATIENCE));
}
