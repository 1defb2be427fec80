//! The processes of `terrace boost attach`: how they are protected, that a successor needs no
//! path to its state, that one that fails again and again is followed by one without the cache, and
//! which ways to serve are refused. Needs root and FUSE with resend (Linux 6.9).

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Ran, terrace};
use sys::memory::AlignedBuffer;
use sys::process::{Capability, has_capability};
use testkit::{FileSystem, LoopDevice, Mount, Mounted, TempDir};

const MIB: u64 = 1 << 20;
const VOLUME: u64 = 96 * MIB;
const PATIENCE: Duration = Duration::from_secs(30);
const BLOCK: usize = 4096;

/// A volume with ext4, and what is attached to it.
struct Scene {
    name: String,
    volume: LoopDevice,
    /// What the cache is on.
    flash: Mounted,
    directory: TempDir,
}

impl Scene {
    /// `None` where the machine cannot serve a cache, which is said.
    fn new(what: &str) -> Option<Self> {
        let made = Self::made(what);
        made.map_err(testkit::skip).ok()
    }

    fn made(what: &str) -> Result<Self, String> {
        Self::of(what, &["mkfs.ext4", "-q", "-F"], VOLUME)
    }

    /// A volume with what `maker` makes.
    fn of(what: &str, maker: &[&str], bytes: u64) -> Result<Self, String> {
        if !testkit::is_admin() {
            return Err("root outside of a container".to_owned());
        }
        sys::fuse_device::open().map_err(|error| error.to_string())?;
        let directory = TempDir::new();
        let image = directory.join("volume");
        File::create(&image).unwrap().set_len(bytes).unwrap();
        let volume = LoopDevice::over(&image)?;
        let mut command = Command::new(maker[0]);
        let made = command.args(&maker[1..]).arg(volume.path()).output();
        let output = made.map_err(|error| format!("the program {} ({error})", maker[0]))?;
        assert!(output.status.success(), "{output:?}");
        let name = format!("terrace-test-{what}-{}", std::process::id());
        Ok(Self { name, volume, flash: Mounted::ext4(64 * MIB)?, directory })
    }

    /// The file of the cache.
    fn medium(&self) -> PathBuf {
        self.flash.path().join("cache")
    }

    fn attach(&self, medium: &Path) -> Ran {
        terrace(&self.line("attach", medium))
    }

    fn line(&self, action: &str, medium: &Path) -> String {
        format!(
            "boost {action} {} --backing {} --cache {} --size 24m --state {}",
            self.name,
            self.volume.path().display(),
            medium.display(),
            self.directory.join("state").display()
        )
    }

    fn status(&self) -> Value {
        let text = terrace(&format!("boost status {} --json", self.name)).done();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], "terrace.boost_status/1");
        value["caches"][0].clone()
    }

    fn device(&self) -> PathBuf {
        PathBuf::from(self.status()["device"].as_str().unwrap())
    }

    fn detach(&self) -> Ran {
        terrace(&format!("boost detach {}", self.name))
    }

    /// Kills the process that serves, and waits for its successor.
    fn kill(&self) {
        self.end_process("-KILL");
    }

    /// The same by another signal.
    fn end_process(&self, signal: &str) {
        let process = self.status()["process"].as_u64().unwrap();
        let killed = Command::new("kill").args([signal, &process.to_string()]).status();
        assert!(killed.unwrap().success());
        wait_until("a successor answers", || {
            let asked = terrace(&format!("boost status {} --json", self.name));
            asked.code == Some(0) && !asked.out.contains(&format!("\"process\": {process},"))
        });
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if terrace(&format!("boost status {}", self.name)).code == Some(0) {
            self.detach();
        }
    }
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reads a device past the page cache, in an order that is no run.
fn read_blocks(device: &Path, blocks: u64) -> Vec<u8> {
    const DIRECT: i32 = 0o40000;
    let file = File::options().read(true).custom_flags(DIRECT).open(device).unwrap();
    let mut buffer = AlignedBuffer::new(BLOCK).unwrap();
    let mut content = vec![0; blocks as usize * BLOCK];
    for number in 0..blocks {
        // A prime, so that each is met once.
        let block = number * 7919 % blocks;
        file.read_exact_at(&mut buffer, block * BLOCK as u64).unwrap();
        let at = block as usize * BLOCK;
        content[at..at + BLOCK].copy_from_slice(&buffer);
    }
    content
}

/// A number of `/proc/PID/status`.
fn of_status(process: u64, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_service_is_protected_and_its_successor_needs_no_path_to_its_state() {
    let Some(scene) = Scene::new("state") else { return };
    let file = scene.medium();
    let attached = scene.attach(&file).done();
    let process = scene.status()["process"].as_u64().unwrap();
    let keeper = of_status(process, "PPid:");
    // A container may have refused it; then the plan says so.
    let is_permitted = has_capability(Capability::SysResource);
    for pid in [process, keeper] {
        let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        assert_eq!(score.trim() == "-900", is_permitted, "{score}");
        assert!(of_status(pid, "VmLck:") > 1 << 10, "{pid} is not locked in memory");
    }
    let said =
        ["refused  the kernel may kill the service", "refused  the service may have to wait"];
    assert!(said.iter().all(|it| attached.contains(it) != is_permitted), "{attached}");
    // What was there is gone, and another one may be in its place.
    let state = scene.directory.join("state");
    fs::rename(&state, scene.directory.join("elsewhere")).unwrap();
    let device = scene.device();
    let first = read_blocks(&device, 200);
    scene.kill();
    assert!(read_blocks(&device, 200) == first);
    assert!(!state.exists(), "a successor made it anew");
    fs::rename(scene.directory.join("elsewhere"), &state).unwrap();
    scene.kill();
    assert_eq!(scene.status()["cold"], Value::Null);
    scene.detach().done();
}

#[test]
fn a_service_that_fails_again_and_again_goes_on_without_the_cache() {
    let Some(scene) = Scene::new("fails") else { return };
    let file = scene.medium();
    scene.attach(&file).done();
    let device = scene.device();
    let point = scene.directory.join("point");
    let mount = Mount::existing(FileSystem::Ext4, &device, point).unwrap();
    fs::write(mount.path().join("before"), vec![5; 1 << 20]).unwrap();
    for _ in 0..5 {
        assert!(!scene.status()["off"].to_string().contains("failed again"));
        // As a panic of the engine ends it.
        scene.end_process("-ABRT");
    }
    let off = scene.status()["off"].to_string();
    assert!(off.contains("failed again and again"), "{off}");
    // It serves, and what it has written is on the disk.
    fs::write(mount.path().join("after"), vec![6; 1 << 20]).unwrap();
    assert_eq!(fs::read(mount.path().join("before")).unwrap(), vec![5; 1 << 20]);
    scene.detach().refused(3, "is mounted at");
    scene.kill();
    assert_eq!(fs::read(mount.path().join("after")).unwrap(), vec![6; 1 << 20]);
    drop(mount);
    let checked = Command::new("e2fsck").args(["-f", "-n"]).arg(&device).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let detached = scene.detach().done();
    assert!(detached.contains("not proved fresh"), "{detached}");
    // Its writes left no marks, so nothing of before is used.
    let attached = scene.attach(&file).done();
    assert!(attached.contains("start    cold"), "{attached}");
    scene.detach().done();
}

#[test]
fn a_way_to_serve_that_is_not_there_is_refused_in_one_line() {
    let Some(scene) = Scene::new("export") else { return };
    let words = format!("{} --export nbd", scene.line("attach", &scene.medium()));
    if sys::nbd::NbdClient::open().is_err() {
        terrace(&words).refused(3, "NBD");
    }
    terrace(&format!("{words}s")).refused(2, "--export");
    let fuse = format!("{} --export fuse", scene.line("attach", &scene.medium()));
    let attached = terrace(&fuse).done();
    assert!(attached.contains("a kill   requests wait for the next process"), "{attached}");
    scene.detach().done();
}
