//! A volume on a loop device that is read through a cache on another one: what tests of `terrace
//! boost attach` share. Needs root and FUSE with resend (Linux 6.9).

use super::support::{Ran, terrace};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use sys::memory::AlignedBuffer;
use testkit::{LoopDevice, Mounted, TempDir};

pub const MIB: u64 = 1 << 20;
pub const VOLUME: u64 = 96 * MIB;
const PATIENCE: Duration = Duration::from_secs(30);
pub const BLOCK: usize = 4096;

/// A volume with ext4, and what is attached to it.
pub struct Scene {
    pub name: String,
    pub volume: LoopDevice,
    /// What the cache is on.
    pub flash: Mounted,
    pub directory: TempDir,
}

impl Scene {
    /// `None` where the machine cannot serve a cache, which is said.
    pub fn new(what: &str) -> Option<Self> {
        let made = Self::made(what);
        made.map_err(testkit::skip).ok()
    }

    fn made(what: &str) -> Result<Self, String> {
        Self::of(what, &["mkfs.ext4", "-q", "-F"], VOLUME)
    }

    /// A volume with what `maker` makes.
    pub fn of(what: &str, maker: &[&str], bytes: u64) -> Result<Self, String> {
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
        // A name has no points.
        let name = format!("terrace-test-{}-{}", what.replace('.', "-"), std::process::id());
        Ok(Self { name, volume, flash: Mounted::ext4(64 * MIB)?, directory })
    }

    /// The file of the cache.
    pub fn medium(&self) -> PathBuf {
        self.flash.path().join("cache")
    }

    pub fn attach(&self, medium: &Path) -> Ran {
        terrace(&self.line("attach", medium))
    }

    pub fn line(&self, action: &str, medium: &Path) -> String {
        format!(
            "boost {action} {} --backing {} --cache {} --size 24m --state {}",
            self.name,
            self.volume.path().display(),
            medium.display(),
            self.directory.join("state").display()
        )
    }

    pub fn status(&self) -> Value {
        let text = terrace(&format!("boost status {} --json", self.name)).done();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], "terrace.boost_status/1");
        value["caches"][0].clone()
    }

    pub fn device(&self) -> PathBuf {
        PathBuf::from(self.status()["device"].as_str().unwrap())
    }

    pub fn detach(&self) -> Ran {
        terrace(&format!("boost detach {}", self.name))
    }

    /// Kills the process that serves, and waits for its successor.
    pub fn kill(&self) {
        self.end_process("-KILL");
    }

    /// The same by another signal.
    pub fn end_process(&self, signal: &str) {
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
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reads a device past the page cache, in an order that is no run.
pub fn read_blocks(device: &Path, blocks: u64) -> Vec<u8> {
    let file = File::options().read(true).custom_flags(testkit::O_DIRECT).open(device).unwrap();
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
