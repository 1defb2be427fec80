//! The kernel's own network block device over a server that is killed: requests wait for its
//! successor. Needs root and the module nbd.

use super::killed::{SCENE, Server, Slow, load_while_killed};
use super::{FileVolume, PATIENCE, backing};
use model::device::BlockDevice;
use serve::nbd::protocol::Negotiated;
use serve::nbd::server::serve;
use serve::nbd::{ExportFeatures, KernelDevice};
use std::fs::File;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use sys::device::FileDevice;
use testkit::{FileSystem, Mount};

const BYTES: u64 = 64 << 20;
const BLOCK: u32 = 4096;
const FEATURES: ExportFeatures = ExportFeatures::all(BLOCK);
const CONNECTIONS: usize = 2;
const KILLS: u64 = 5;

/// The process that the next test kills. It writes the number of the device into the point.
#[test]
#[ignore = "is started by the test below"]
fn serving_process() {
    let Ok(scene) = std::env::var(SCENE) else { return };
    let (path, point) = scene.split_once('\n').unwrap();
    let volume = Slow(FileVolume::open(Path::new(path)));
    let streams = match std::fs::read_to_string(point).unwrap().parse() {
        Ok(number) => {
            let device = KernelDevice::existing(number, BYTES, BLOCK, FEATURES);
            (0..CONNECTIONS).map(|_| device.take_over().unwrap()).collect()
        }
        Err(_) => {
            let made = KernelDevice::connect(BYTES, BLOCK, FEATURES, CONNECTIONS).unwrap();
            std::fs::write(point, made.0.number().to_string()).unwrap();
            made.1
        }
    };
    let close = |stream: &UnixStream| drop(stream.shutdown(Shutdown::Both));
    std::thread::scope(|scope| {
        for stream in &streams {
            scope.spawn(|| serve(stream, &volume, Negotiated::default(), 4, close));
        }
    });
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
    let number = loop {
        assert!(Instant::now() < end, "no device");
        if let Ok(number) = std::fs::read_to_string(&server.point).unwrap().parse() {
            break number;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let device = Disconnected(KernelDevice::existing(number, BYTES, BLOCK, FEATURES));
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
    drop(device);
    drop(server);
}
