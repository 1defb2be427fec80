//! Access to files of other users: files that may hang are left out, and the cost of one file and
//! of all is bounded. One [`Access`] lasts for a command, so its bounds apply to all files
//! together.

use super::cached::CacheQueries;
use super::read_plan::FileIdentity;
use machine::Root;
use machine::reach::{Reach, Refusal};
use std::fs::File;
use std::path::Path;

/// Opens files, and limits the queries about them.
#[derive(Debug)]
pub struct Access {
    /// Finds mounts that may hang.
    pub reach: Reach,
    /// Queries the page cache.
    pub questions: CacheQueries,
}

impl Access {
    /// With all bounds unused.
    #[must_use]
    pub fn new(root: &Root) -> Self {
        Self { reach: Reach::new(root), questions: CacheQueries::default() }
    }

    /// Opens `path` for reading if it is still the file `identity`.
    ///
    /// # Errors
    /// `LeftOut` on a mount that may hang, `Closed` where it is another by now, is gone or may not
    /// be read.
    pub fn open(&mut self, path: &Path, identity: &FileIdentity) -> Result<File, Refusal> {
        let file = self.reach.open(path)?;
        let now = file.metadata().map_err(|_| Refusal::Closed)?;
        if identity.is_still(&FileIdentity::of(&now)) { Ok(file) } else { Err(Refusal::Closed) }
    }

    /// What was left out, each in a line.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let notes = [self.reach.note(), self.questions.note()];
        notes.into_iter().flatten().collect()
    }
}
