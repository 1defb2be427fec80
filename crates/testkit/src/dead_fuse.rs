//! A file of FUSE whose server stops answering: what a dead network file system is to those who
//! touch it. Needs root.
//!
//! Until [`DeadFuse::stop`] it answers. Afterwards each request is taken and never answered, or not
//! even taken. When it is dropped the connection is closed, which ends every request with an error,
//! so that no process is left waiting.

use crate::TempDir;
use crate::fuse_mount::{mount, unmount};
use serve::fuse::channel::RootKind;
use serve::fuse::server::FileThread;
use serve::fuse::{Channel, FileOptions};
use serve::volume::{Volume, VolumeResult};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// `O_NONBLOCK`: the server looks now and then whether it is to end.
const NONBLOCK: i32 = 0o4000;
/// How often it looks.
const PAUSE: Duration = Duration::from_millis(2);
/// Its length.
const FILE_BYTES: u64 = 1 << 20;

/// What the server does with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Dead {
    /// It answers.
    Not = 0,
    /// It takes them and does not answer: not even SIGKILL ends the waiting.
    Silent = 1,
    /// It does not take them: SIGKILL ends the waiting.
    Gone = 2,
}

const ENDED: u8 = 3;

/// The mounted file; the connection is closed and the mount removed on drop.
#[derive(Debug)]
pub struct DeadFuse {
    path: PathBuf,
    state: Arc<AtomicU8>,
    server: Option<JoinHandle<()>>,
    holders: Vec<Child>,
    _directory: TempDir,
}

impl DeadFuse {
    /// Mounts a file that is answered for.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn mount() -> Result<Self, String> {
        let directory = TempDir::new();
        let path = directory.join("file");
        File::create(&path).map_err(|error| format!("a file to mount over: {error}"))?;
        let device = File::options()
            .read(true)
            .write(true)
            .custom_flags(NONBLOCK)
            .open("/dev/fuse")
            .map_err(|error| format!("/dev/fuse: {error}"))?;
        let channel = Channel::of(device);
        mount(&channel, &path, RootKind::File)?;
        let state = Arc::new(AtomicU8::new(Dead::Not as u8));
        let seen = Arc::clone(&state);
        let server = std::thread::Builder::new()
            .name("dead-fuse".to_owned())
            .spawn(move || serve(channel, &seen))
            .map_err(|error| format!("a thread: {error}"))?;
        Ok(Self { path, state, server: Some(server), holders: Vec::new(), _directory: directory })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts a process that holds the file open until this is dropped; its number.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn hold(&mut self) -> Result<u32, String> {
        let file = File::open(&self.path).map_err(|error| format!("the file opened: {error}"))?;
        let holder = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::from(file))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("the program sleep ({error})"))?;
        let pid = holder.id();
        self.holders.push(holder);
        // Its exec closes the file's other descriptor, which asks the server. A process that waits
        // there holds up whoever reads its `/proc/PID/stat`.
        let arguments = || std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        while !arguments().starts_with(b"sleep\0") {
            std::thread::sleep(PAUSE);
        }
        Ok(pid)
    }

    /// From now on requests are treated so.
    pub fn stop(&self, how: Dead) {
        self.state.store(how as u8, Ordering::SeqCst);
    }
}

impl Drop for DeadFuse {
    fn drop(&mut self) {
        self.state.store(ENDED, Ordering::SeqCst);
        // With the server its descriptor goes, the last one, and so does the connection.
        let _ = self.server.take().map(JoinHandle::join);
        for mut holder in self.holders.drain(..) {
            let _ = holder.kill();
            let _ = holder.wait();
        }
        unmount(&self.path);
    }
}

fn serve(channel: Channel, state: &AtomicU8) {
    // The attributes are asked for each time, and the file can be mapped as an ordinary one.
    let options = FileOptions { valid_s: 0, open_flags: 0, ..FileOptions::default() };
    let mut thread = FileThread::new(channel, Arc::new(Zeros), options);
    loop {
        let now = state.load(Ordering::SeqCst);
        if now == ENDED {
            return;
        }
        if now == Dead::Gone as u8 {
            std::thread::sleep(PAUSE);
            continue;
        }
        match thread.step(now == Dead::Not as u8) {
            Some(true) => {}
            Some(false) => std::thread::sleep(PAUSE),
            None => return,
        }
    }
}

/// A file of zeros.
struct Zeros;

impl Volume for Zeros {
    fn bytes(&self) -> u64 {
        FILE_BYTES
    }

    fn read(&self, _offset: u64, buffer: &mut [u8]) -> VolumeResult {
        buffer.fill(0);
        Ok(())
    }

    fn write(&self, _offset: u64, _data: &[u8]) -> VolumeResult {
        Ok(())
    }

    fn flush(&self) -> VolumeResult {
        Ok(())
    }
}
