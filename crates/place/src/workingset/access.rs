//! Access to files of other users: files that may hang are left out, and the cost of one file and
//! of all is bounded. One [`Access`] lasts for a command, so its bounds apply to all files
//! together.

use super::cached::{CacheQueries, QueryLimitReached};
use super::read_plan::FileIdentity;
use machine::Root;
use machine::reach::{Reach, Refusal};
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// The way to files, what may still be asked, and what was left out.
#[derive(Debug)]
pub struct Access {
    /// Which files are opened.
    pub reach: Reach,
    /// What the page cache is asked.
    pub questions: CacheQueries,
}

impl Access {
    /// With all bounds unused.
    #[must_use]
    pub fn new(root: &Root) -> Self {
        Self {
            reach: Reach::new(root),
            questions: CacheQueries::default(),
        }
    }

    /// Opens `path` for reading if it is still the file `identity`.
    ///
    /// # Errors
    /// `LeftOut` on a mount that may hang, `Closed` where it is another by now, is gone or may not
    /// be read.
    pub fn open(&mut self, path: &Path, identity: &FileIdentity) -> Result<File, Refusal> {
        let file = self.reach.open(path)?;
        let now = file.metadata().map_err(|_| Refusal::Closed)?;
        if identity.is_still(&FileIdentity::of(&now)) {
            Ok(file)
        } else {
            Err(Refusal::Closed)
        }
    }

    /// What of `parts` is in the page cache; `None` where the kernel does not say.
    ///
    /// # Errors
    /// `QueryLimitReached` for a file that is left out.
    pub fn cached(
        &mut self,
        file: &File,
        parts: &[Range<u64>],
    ) -> Result<Option<Vec<Range<u64>>>, QueryLimitReached> {
        self.questions.ranges_of(file, parts)
    }

    /// What was left out, each in a line.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let notes = [self.reach.note(), self.questions.note()];
        notes.into_iter().flatten().collect()
    }
}
