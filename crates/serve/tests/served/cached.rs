//! The driver with the flash cache on real devices: files, and a block device that is unplugged
//! while it is used; then the whole way, with a file system on a loop device over a served file,
//! whose server is killed.

use super::PATIENCE;
use super::killed::{SCENE, Server, load_while_killed};
use cache::{Cache, Cold, Geometry, Limits, Setup, Start, Witness};
use model::device::BlockDevice;
use model::engine::{CacheOff, Event};
use serve::driver::{Driver, DriverDevices, DriverOptions, RevocableDevice};
use serve::fuse::{FileOptions, FileServer, Session};
use serve::holder::HolderClient;
use serve::volume::Volume;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use sys::device::FileDevice;
use testkit::{FaultPlan, FaultyDisk, FileSystem, LoopDevice, Mount, Random, TempDir};

const VOLUME: u64 = 8 << 20;
const BLOCK: usize = 4096;
const SEGMENT: u32 = 256 << 10;
const SEGMENTS: u32 = 16;

fn geometry(volume_bytes: u64) -> Geometry {
    Geometry {
        volume_bytes,
        frame_bytes: BLOCK as u32,
        segment_bytes: SEGMENT,
        segments: SEGMENTS,
        region_bytes: 64 << 10,
    }
}

/// A volume and a journal in memory, and the disk that the cache is on.
struct Scene {
    directory: TempDir,
    disk: FaultyDisk,
    attaches: AtomicU64,
}

impl Scene {
    fn new() -> Option<Self> {
        let bytes = u64::from(SEGMENT) * (u64::from(SEGMENTS) + 1);
        let disk = match FaultyDisk::new(bytes, FaultPlan::new()) {
            Ok(disk) => disk,
            Err(need) => {
                testkit::skip(need);
                return None;
            }
        };
        let directory = TempDir::in_dir(Path::new("/dev/shm"));
        let scene = Self { directory, disk, attaches: AtomicU64::new(0) };
        let mut content = vec![0; VOLUME as usize];
        for (number, block) in content.chunks_exact_mut(BLOCK).enumerate() {
            Random(number as u64).fill(&mut block[..BLOCK / 2]);
        }
        std::fs::write(scene.path("volume"), content).unwrap();
        let journal = File::create(scene.path("journal")).unwrap();
        journal.set_len(cache::journal_bytes(&geometry(VOLUME))).unwrap();
        Some(scene)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The medium as it is plugged in now, past the page cache.
    fn medium(&self) -> FileDevice {
        let mut options = File::options();
        options.read(true).write(true).custom_flags(testkit::O_DIRECT);
        FileDevice::new(options.open(self.disk.device()).unwrap()).unwrap()
    }

    /// Attaches the cache: the driver, how it started, and what it reports.
    fn attach(&self) -> (Driver, Start, Arc<Mutex<Vec<Event>>>) {
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&events);
        let report = move |event| seen.lock().unwrap().push(event);
        let number = self.attaches.fetch_add(1, Ordering::Relaxed) as u8;
        let medium = Arc::new(self.medium());
        let (driver, start) = attach(self.directory.path(), VOLUME, medium, [number; 32], report);
        (driver, start, events)
    }
}

/// Attaches a cache on `medium` to the file `volume` in a directory, with its `journal` there.
fn attach(
    directory: &Path,
    volume_bytes: u64,
    medium: Arc<FileDevice>,
    salt: [u8; 32],
    report: impl Fn(Event) + Send + Sync + 'static,
) -> (Driver, Start) {
    let open = |name| {
        let path = directory.join(name);
        FileDevice::new(File::options().read(true).write(true).open(path).unwrap()).unwrap()
    };
    let content = std::fs::read(directory.join("journal")).unwrap();
    let mut head = vec![0; 4096];
    open("volume").read_at(&mut head, 0).unwrap();
    let geometry = geometry(volume_bytes);
    let setup = Setup {
        geometry,
        volume_id: [1; 16],
        key: [2; 32],
        salt,
        new_cache_id: salt[..16].try_into().unwrap(),
        witnesses: vec![Witness { offset: 0, bytes: head }],
        proof: cache::ChangeProof::Always,
        may_format: true,
        // A load of seconds writes what a day should not.
        limits: Limits { budget_bytes_per_day: 1 << 40, ..Limits::fit(&geometry) },
    };
    let path = directory.join("journal");
    let devices = DriverDevices {
        backing: Arc::new(open("volume")),
        cache_file: Some(medium.file().try_clone().unwrap()),
        cache: medium,
        journal: Arc::new(RevocableDevice::new(open("journal"), move || {
            std::fs::remove_file(&path)
        })),
    };
    let sizes = Cache::buffers(&setup.geometry, &setup.limits);
    let mut start = None;
    let driver = Driver::start(
        DriverOptions::of(volume_bytes, 512),
        devices,
        &sizes,
        |buffers| {
            let engine = Cache::attach(&setup, &content, buffers)?;
            start = Some(engine.start());
            Ok(engine)
        },
        report,
    );
    (driver.unwrap(), start.unwrap())
}

/// Requests, errors and wrong blocks of a load.
#[derive(Debug, Default)]
struct Tally {
    requests: AtomicU64,
    errors: AtomicU64,
    wrong: AtomicU64,
}

/// Reads and writes blocks of an eighth of the volume, and checks what it reads.
fn load(volume: &Driver, part: u64, tally: &Tally, stop: &AtomicBool) {
    let blocks = VOLUME / BLOCK as u64 / 8;
    let mut random = Random(part);
    let mut known = vec![None; blocks as usize];
    let mut buffer = vec![0; BLOCK];
    while !stop.load(Ordering::Relaxed) {
        let block = random.below(blocks);
        let offset = (part * blocks + block) * BLOCK as u64;
        let expected = &mut known[block as usize];
        let done = if random.below(10) < 2 {
            let byte = random.below(256) as u8;
            buffer.fill(byte);
            *expected = Some(buffer.clone());
            volume.write(offset, &buffer)
        } else {
            let done = volume.read(offset, &mut buffer);
            let first = expected.get_or_insert_with(|| buffer.clone());
            tally.wrong.fetch_add(u64::from(done.is_ok() && *first != buffer), Ordering::Relaxed);
            done
        };
        tally.errors.fetch_add(u64::from(done.is_err()), Ordering::Relaxed);
        tally.requests.fetch_add(1, Ordering::Relaxed);
    }
    if volume.flush().is_err() {
        tally.errors.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until `is_so`.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_medium_that_vanishes_costs_no_request() {
    let Some(scene) = Scene::new() else { return };
    let (driver, start, events) = scene.attach();
    assert_eq!(start, Start::Cold(Cold::New));
    let driver = Arc::new(driver);
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let reads = |scene: &Scene| {
        let asked = scene.disk.requests();
        asked.iter().filter(|it| it.kind == testkit::disk_model::RequestKind::Read).count()
    };
    std::thread::scope(|scope| {
        for part in 0..4 {
            let (driver, tally, stop) = (&driver, &tally, &stop);
            scope.spawn(move || load(driver, part, tally, stop));
        }
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let goes_on = || {
                let before = tally.requests.load(Ordering::Relaxed);
                wait_until("the load goes on", || {
                    tally.requests.load(Ordering::Relaxed) > before + 2000
                });
            };
            let reported = |event| events.lock().unwrap().contains(&event);
            let is_hit = || {
                let before = reads(&scene);
                wait_until("frames are read of the medium", || reads(&scene) > before + 50);
            };
            wait_until("it serves", || reported(Event::CacheOn));
            for _ in 0..3 {
                is_hit();
                events.lock().unwrap().clear();
                scene.disk.unplug();
                let off = Event::CacheOff { why: CacheOff::Errors };
                wait_until("it is noticed", || reported(off));
                goes_on();
                scene.disk.plug();
                let medium = scene.medium();
                let file = medium.file().try_clone().unwrap();
                driver.replace_cache(Arc::new(medium), Some(&file)).unwrap();
                wait_until("it serves again", || reported(Event::CacheOn));
            }
            is_hit();
        }));
        stop.store(true, Ordering::Relaxed);
        run.unwrap();
    });
    assert_eq!((tally.errors.into_inner(), tally.wrong.into_inner()), (0, 0));
    assert_eq!(driver.detach(PATIENCE), Some(true), "{:?}", events.lock().unwrap());
    drop(driver);
    // Warm: once it has recovered, frames of the medium are read.
    let (driver, start, events) = scene.attach();
    assert_eq!(start, Start::Warm);
    let is_recovered = |event: &Event| matches!(event, Event::Recovered { .. });
    wait_until("it has recovered", || events.lock().unwrap().iter().any(is_recovered));
    scene.disk.set_plan(FaultPlan::new());
    let stored = std::fs::read(scene.path("volume")).unwrap();
    let mut read = vec![0; VOLUME as usize];
    for (at, part) in read.chunks_exact_mut(BLOCK).enumerate() {
        driver.read((at * BLOCK) as u64, part).unwrap();
    }
    assert!(read == stored);
    assert!(reads(&scene) > 0, "no frame was warm");
    assert_eq!(driver.detach(PATIENCE), Some(true));
}

const SERVED: u64 = 64 << 20;
const KILLS: u64 = 8;
/// How often a server began, and how: one letter for each, in a file beside the volume.
const STARTS: &str = "starts";

/// The process that the next test kills: the cache is attached anew in each.
#[test]
#[ignore = "is started by the test below"]
fn serving_process() {
    let Ok(scene) = std::env::var(SCENE) else { return };
    let (volume, point) = scene.split_once('\n').unwrap();
    let directory = Path::new(volume).parent().unwrap();
    let medium = File::options().read(true).write(true).open(directory.join("medium")).unwrap();
    let mut salt = [0; 32];
    Random(sys::random::seed().unwrap()).fill(&mut salt);
    let medium = Arc::new(FileDevice::new(medium).unwrap());
    let (driver, start) = attach(directory, SERVED, medium, salt, |_| {});
    let mut starts = File::options().append(true).open(directory.join(STARTS)).unwrap();
    starts.write_all(if start == Start::Warm { b"w" } else { b"c" }).unwrap();
    let driver = Arc::new(driver);
    let input = std::io::stdin();
    let holder = HolderClient::new(input.as_fd());
    let source = format!("terrace-test-{}", std::os::unix::process::parent_id());
    let session = Session::open(&holder, Path::new(point), &source, 8).unwrap();
    let served = Arc::clone(&driver);
    FileServer::start(session.channels, served, FileOptions::DISK).unwrap().join();
    assert_eq!(driver.detach(PATIENCE), Some(true));
}

#[test]
fn a_killed_cache_is_attached_again_and_no_byte_is_old() {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    if let Err(error) = sys::fuse_device::open() {
        return testkit::skip(error);
    }
    let directory = TempDir::in_dir(Path::new("/dev/shm"));
    let medium_bytes = u64::from(SEGMENT) * (u64::from(SEGMENTS) + 1);
    let journal_bytes = cache::journal_bytes(&geometry(SERVED));
    for (name, bytes) in [("volume", SERVED), ("medium", medium_bytes), ("journal", journal_bytes)]
    {
        File::create(directory.join(name)).unwrap().set_len(bytes).unwrap();
    }
    File::create(directory.join(STARTS)).unwrap();
    let server = Server::start("cached::serving_process", &directory.join("volume"));
    server.wait_until_mounted(SERVED);
    let device = LoopDevice::direct_over(&server.point).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(device.path()).status();
    assert!(made.unwrap().success());
    let point = server.point.with_file_name("mount");
    let mount = Mount::existing(FileSystem::Ext4, device.path(), point).unwrap();
    let files: Vec<_> = (0..4).map(|it| mount.path().join(it.to_string())).collect();
    let tally = load_while_killed(&server, &files, KILLS, || {
        let _ = sys::mount::abandon(&server.point);
    });
    drop(mount);
    let checked = Command::new("e2fsck").args(["-f", "-n"]).arg(device.path()).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let starts = std::fs::read_to_string(directory.join(STARTS)).unwrap();
    println!("{tally:?}, attached {starts}");
    assert_eq!((tally.errors.into_inner(), tally.wrong.into_inner()), (0, 0));
    assert!(starts.len() as u64 > KILLS);
    drop(device);
}
