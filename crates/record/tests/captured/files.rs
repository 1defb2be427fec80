//! Files of the tests: flags between a script and its test, and one on a disk. They are
//! removed with their directory or when dropped.

use super::until;
use std::path::{Path, PathBuf};
use testkit::TempDir;

/// A signal from a script or a test to the other: the file exists.
pub struct Flag(PathBuf);

impl Flag {
    pub fn new(directory: &TempDir, name: &str) -> Self {
        Self(directory.join(name))
    }

    pub fn raise(&self) {
        std::fs::write(&self.0, "").unwrap();
    }

    pub fn is_up(&self) -> bool {
        self.0.exists()
    }

    pub fn wait(&self) {
        until(|| self.is_up());
    }

    /// What was shown with [`Flag::showing`].
    pub fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }

    /// The words of a script that raise it.
    pub fn raising(&self) -> String {
        format!("touch {}", self.0.display())
    }

    /// The words of a script that raise it with what a command prints, whole at once.
    pub fn showing(&self, command: &str) -> String {
        let path = self.0.display();
        format!("{command} > {path}.new; mv {path}.new {path}")
    }

    /// The words of a script that wait for it.
    pub fn waiting(&self) -> String {
        format!("while [ ! -e {} ]; do sleep 0.01; done", self.0.display())
    }
}

/// A name for a file beside what is built, not on tmpfs, which has no device behind it; what
/// is there goes away with the test.
pub struct DiskFile(PathBuf);

impl DiskFile {
    pub fn new(name: &str) -> Self {
        let name = format!("{name}-{}.tmp", std::process::id());
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_file(&self.0);
    }
}
