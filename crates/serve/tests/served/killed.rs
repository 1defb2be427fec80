//! A server that is killed by SIGKILL under a file system in use: its successor takes the channels
//! from the holder and goes on, without an error and without a wrong byte.

use super::{FileVolume, PATIENCE, backing, load};
use load::Tally;
use serve::fuse::{FileOptions, FileServer, Session};
use serve::holder::HolderClient;
use serve::supervisor::supervise;
use serve::volume::{Volume, VolumeResult};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use testkit::{FileSystem, LoopDevice, Mount, TempDir};

const KILLS: u64 = 12;
const CHANNELS: usize = 4;
const LOADS: u64 = 4;
/// Where the killed process finds what it serves: the file, then where it is mounted.
pub(crate) const SCENE: &str = "TERRACE_SERVE_SCENE";
/// A request takes so long, so that some are always under way.
const SERVICE: Duration = Duration::from_millis(2);

/// A volume that takes its time.
pub(crate) struct Slow(pub(crate) FileVolume);

impl Volume for Slow {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> VolumeResult {
        std::thread::sleep(SERVICE);
        self.0.read(offset, buffer)
    }

    fn write(&self, offset: u64, data: &[u8]) -> VolumeResult {
        std::thread::sleep(SERVICE);
        self.0.write(offset, data)
    }

    fn flush(&self) -> VolumeResult {
        self.0.flush()
    }

    fn write_zeroes(&self, offset: u64, len: u64) -> VolumeResult {
        self.0.write_zeroes(offset, len)
    }
}

/// The process that the next test kills.
#[test]
#[ignore = "is started by the test below"]
fn serving_process() {
    let Ok(scene) = std::env::var(SCENE) else { return };
    let (path, point) = scene.split_once('\n').unwrap();
    let input = std::io::stdin();
    let holder = HolderClient::new(input.as_fd());
    // If the test is killed, the next one removes what has its number.
    let source = format!("terrace-test-{}", std::os::unix::process::parent_id());
    let session = Session::open(&holder, Path::new(point), &source, CHANNELS).unwrap();
    let volume = Arc::new(Slow(FileVolume::open(Path::new(path))));
    FileServer::start(session.channels, volume, FileOptions::DISK).unwrap().join();
}

/// A server in a process of its own, with successors.
pub(crate) struct Server {
    /// A file of its own: what is served is mounted there, or written about.
    pub(crate) point: PathBuf,
    pid: Arc<AtomicU32>,
    pub(crate) starts: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _directory: TempDir,
}

impl Server {
    /// Runs the ignored test `server` in a process of its own, again and again.
    pub(crate) fn start(server: &'static str, backing: &Path) -> Self {
        let directory = TempDir::new();
        let point = directory.join("disk");
        File::create(&point).unwrap();
        let scene = format!("{}\n{}", backing.display(), point.display());
        let (pid, starts) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU64::new(0)));
        let is_over = Arc::new(AtomicBool::new(false));
        let (own, counted, over) = (Arc::clone(&pid), Arc::clone(&starts), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let start = |socket, _| {
                let child = spawn(server, &scene, socket)?;
                own.store(child.id(), Ordering::SeqCst);
                counted.fetch_add(1, Ordering::SeqCst);
                Ok(child)
            };
            supervise(start, |_| !over.load(Ordering::SeqCst)).unwrap();
        });
        Self { point, pid, starts, is_over, thread: Some(thread), _directory: directory }
    }

    /// Waits until the file has its size, which only the server knows.
    pub(crate) fn wait_until_mounted(&self, bytes: u64) {
        let end = Instant::now() + PATIENCE;
        while std::fs::metadata(&self.point).unwrap().len() != bytes {
            assert!(Instant::now() < end, "no server");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn kill(&self) {
        let pid = self.pid.load(Ordering::SeqCst).to_string();
        // It may be on its way out already.
        let _ = Command::new("kill").args(["-KILL", &pid]).stderr(Stdio::null()).status();
    }
}

fn spawn(server: &str, scene: &str, socket: OwnedFd) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["--exact", server, "--include-ignored"])
        .env(SCENE, scene)
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .spawn()
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ends all that waits for a server.
        let _ = sys::mount::abandon(&self.point);
        self.is_over.store(true, Ordering::SeqCst);
        let Some(thread) = self.thread.take() else { return };
        // A server of FUSE has ended by that.
        let end = Instant::now() + Duration::from_secs(1);
        while !thread.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        if !thread.is_finished() {
            self.kill();
        }
        let _ = thread.join();
    }
}

/// Kills the server again and again, each time after the load went on with the one before.
pub(crate) fn kill_under(server: &Server, tally: &Tally, kills: u64) {
    for kill in 0..kills {
        let before = tally.requests.load(Ordering::Relaxed);
        let end = Instant::now() + PATIENCE;
        while tally.requests.load(Ordering::Relaxed) < before + 100 {
            assert!(Instant::now() < end, "the load hangs after {kill} kills");
            std::thread::sleep(Duration::from_millis(5));
        }
        server.kill();
    }
}

/// Loads all `files` while the server is killed `kills` times; `give_up` ends what hangs.
pub(crate) fn load_while_killed(
    server: &Server,
    files: &[PathBuf],
    kills: u64,
    give_up: impl Fn(),
) -> Tally {
    load::during(files, |tally| kill_under(server, tally, kills), give_up)
}

#[test]
fn a_killed_server_has_a_successor_and_no_request_fails() {
    const BYTES: u64 = 64 << 20;
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    if let Err(error) = sys::fuse_device::open() {
        return testkit::skip(error);
    }
    let (_directory, path) = backing(BYTES);
    let server = Server::start("killed::serving_process", &path);
    server.wait_until_mounted(BYTES);
    let device = LoopDevice::direct_over(&server.point).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(device.path()).status();
    assert!(made.unwrap().success());
    let point = server.point.with_file_name("mount");
    let mount = Mount::existing(FileSystem::Ext4, device.path(), point).unwrap();
    let files: Vec<_> = (0..LOADS).map(|it| mount.path().join(it.to_string())).collect();
    let tally = load_while_killed(&server, &files, KILLS, || {
        // What waits for a server gets an error now.
        let _ = sys::mount::abandon(&server.point);
    });
    drop(mount);
    let checked = Command::new("e2fsck").args(["-f", "-n"]).arg(device.path()).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!("{tally:?}, {} servers", server.starts.load(Ordering::SeqCst));
    assert!(server.starts.load(Ordering::SeqCst) >= KILLS);
    assert_eq!((count(&tally.errors), count(&tally.wrong)), (0, 0));
    drop(device);
}
