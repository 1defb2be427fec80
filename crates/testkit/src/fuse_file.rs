//! A file of a test's own whose every read and write this process serves: a volume of the crate
//! `serve`, mounted over an ordinary file.
//!
//! The idea: a loop device over it is a disk whose requests, merged and ordered by the
//! kernel as those of any disk, arrive here one by one. Needs root.
//!
//! One thread answers, so one request is served at a time. It must not stand still for
//! memory that only its own answer can free: see [`crate::SlowDisk`].

use crate::TempDir;
use crate::fuse_mount::{mount, unmount};
use serve::fuse::channel::RootKind;
use serve::fuse::{Channel, FileOptions, FileServer};
use serve::volume::Volume;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The mounted file; unmounted on drop.
#[derive(Debug)]
pub struct FuseFile {
    path: PathBuf,
    server: Option<FileServer>,
    _directory: TempDir,
}

impl FuseFile {
    /// Mounts a file that holds `content`.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn mount(content: impl Volume) -> Result<Self, String> {
        let directory = TempDir::new();
        let path = directory.join("disk");
        File::create(&path).map_err(|error| format!("a file to mount over: {error}"))?;
        let channel = Channel::open().map_err(|error| error.to_string())?;
        mount(&channel, &path, RootKind::File)?;
        let options = FileOptions::default();
        let server = FileServer::start(vec![channel], Arc::new(content), options)
            .map_err(|error| error.to_string())?;
        Ok(Self { path, server: Some(server), _directory: directory })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FuseFile {
    fn drop(&mut self) {
        if unmount(&self.path)
            && let Some(server) = self.server.take()
        {
            // The kernel has closed the connection, so the thread ends.
            server.join();
        }
    }
}
