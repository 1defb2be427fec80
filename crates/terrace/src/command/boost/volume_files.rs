//! The files of the file system that is mounted from a served volume, for the commands that name
//! them: their parts of the volume, or a sentence why there are none.

use crate::error::Result;
use crate::output::boost::CacheStatus;
use machine::Root;
use model::progress::ProgressSink;
use place::boost::mounted::{CachedParts, MountedVolume};
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// The file system of a served volume.
pub(super) struct VolumeFiles {
    mounted: MountedVolume,
    device: String,
}

/// A file of it.
pub(super) struct VolumeFile {
    /// The open file.
    pub(super) file: File,
    /// Its length.
    pub(super) bytes: u64,
    /// Where it is on the volume, without holes.
    pub(super) parts: Vec<Range<u64>>,
}

impl VolumeFiles {
    /// Finds where the device of a cache is mounted.
    ///
    /// # Errors
    /// `Impossible` where it is not, or does not say where its files are.
    pub(super) fn of(status: &CacheStatus) -> Result<Self> {
        let mounted = MountedVolume::find(&Root::system(), Path::new(&status.device))?;
        Ok(Self { mounted, device: status.device.clone() })
    }

    /// Opens a file of it and finds its parts, at most `room`.
    ///
    /// # Errors
    /// Why it has none, as a sentence with its path.
    pub(super) fn parts_of(
        &self,
        path: &Path,
        room: usize,
    ) -> std::result::Result<VolumeFile, String> {
        let shown = path.display();
        let failed = |error: sys::Error| format!("{shown}: {}", sys::plain_reason(&error.source));
        let file = sys::file::open_input(path).map_err(failed)?;
        if !self.mounted.has(&file).map_err(|error| error.to_string())? {
            return Err(format!(
                "{shown}: it is not on the file system that is mounted from {}",
                self.device
            ));
        }
        let about = file.metadata().map_err(|error| format!("{shown}: {error}"))?;
        let whole = 0..about.len();
        let found =
            self.mounted.parts_of(&file, std::slice::from_ref(&whole), room).map_err(failed)?;
        if found.is_cut {
            return Err(format!("{shown}: it is in more than {room} parts"));
        }
        Ok(VolumeFile { file, bytes: about.len(), parts: found.parts })
    }

    /// What of all its files is in the page cache, ranked.
    ///
    /// # Errors
    /// Where they cannot be listed.
    pub(super) fn cached_parts(&self, progress: &mut ProgressSink<'_>) -> Result<CachedParts> {
        Ok(self.mounted.cached_parts(progress)?)
    }
}
