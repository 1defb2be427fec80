//! The directory that a part of the suite makes for its files, and removes. It holds nothing that
//! is measured.

use std::fs;
use std::path::PathBuf;

use crate::error::Error;

/// The directory; removed on drop.
pub(super) struct Place {
    directory: PathBuf,
}

impl Place {
    pub(super) fn make() -> Result<Self, Error> {
        let directory =
            std::env::temp_dir().join(format!("terrace-bench-aa-{}", std::process::id()));
        fs::create_dir(&directory)
            .map_err(|error| Error::Failed(format!("{}: {error}", directory.display())))?;
        Ok(Self { directory })
    }

    /// The path of something in it, as text for a command line.
    pub(super) fn file(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
