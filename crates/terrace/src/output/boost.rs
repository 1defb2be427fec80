//! What an attached cache does, for people: the first sentence says where its reads are answered.
//!
//! Pure: a status becomes text.

use super::prose::{PageText, count};
use super::{Page, figure};
use model::Bytes;
use model::text::escaped;
use serde::{Deserialize, Serialize};

/// The state of an attached cache, as `terrace.boost_status/1` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStatus {
    /// What it is called.
    pub name: String,
    /// The block device to use instead of the volume.
    pub device: String,
    /// The volume, by its kernel name.
    pub volume: String,
    /// Its bytes.
    pub volume_bytes: u64,
    /// The file of the cache.
    pub cache: String,
    /// Bytes that it has when it is full.
    pub cache_bytes: u64,
    /// The process that serves.
    pub process: u32,
    /// Why nothing of the cache was used when that process began; `None` if it was warm.
    pub cold: Option<String>,
    /// Why nothing of the cache is served now.
    pub off: Option<String>,
    /// Bytes of the volume that are in the cache.
    pub cached_bytes: u64,
    /// Of the volume, cached because it was read, and by fills ahead.
    pub filled_bytes: u64,
    pub brought_bytes: u64,
    /// Reads, and their bytes.
    pub reads: u64,
    pub read_bytes: u64,
    /// Those of them that the cache answered alone.
    pub hits: u64,
    pub hit_bytes: u64,
    /// Reads of long runs, which the disk answered.
    pub bailed_out: u64,
    /// Writes, and their bytes.
    pub writes: u64,
    pub write_bytes: u64,
    /// Bytes written to the flash, and those that may still be written to it today.
    pub medium_bytes: u64,
    pub budget_bytes: u64,
    /// Its requests that failed or took too long, and what was not as it was written.
    pub medium_errors: u64,
    pub medium_wrong: u64,
}

/// All of them, as JSON has it.
#[derive(Debug, Serialize)]
pub struct CacheStatuses<'s> {
    /// `terrace.boost_status/1`.
    pub schema: &'static str,
    /// Those that answered.
    pub caches: &'s [CacheStatus],
}

impl CacheStatus {
    /// The first sentence: what it does now.
    fn sentence(&self) -> String {
        let (name, device) = (escaped(&self.name), &self.device);
        match &self.off {
            Some(why) => format!("{name}: all reads of {device} go to the disk, as {why}."),
            None if self.reads == 0 => format!("{name}: nothing was read of {device} yet."),
            None => format!(
                "{name}: {} of the {} reads of {device} came from the cache.",
                figure::percent(self.hits as f64 / self.reads as f64),
                count(self.reads)
            ),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            format!(
                "{} of {} are cached; {} may have {}, and is written a segment at a time",
                Bytes(self.cached_bytes),
                self.volume,
                escaped(&self.cache),
                Bytes(self.cache_bytes)
            ),
            format!(
                "since process {} began: read {}, of that {} from the cache; reads in long runs, left \
                 to the disk: {}; cached by reads {}, by fills {}; written {}, and {} to the flash",
                self.process,
                Bytes(self.read_bytes),
                Bytes(self.hit_bytes),
                count(self.bailed_out),
                Bytes(self.filled_bytes),
                Bytes(self.brought_bytes),
                Bytes(self.write_bytes),
                Bytes(self.medium_bytes)
            ),
        ];
        if let Some(cold) = &self.cold {
            notes.push(format!("it began empty: {}", escaped(cold)));
        }
        if self.medium_errors + self.medium_wrong > 0 {
            notes.push(format!(
                "the flash failed or was slow {} times, and was wrong {} times; each was read \
                 from the disk",
                self.medium_errors, self.medium_wrong
            ));
        }
        notes
    }
}

/// A few lines for each.
#[must_use]
pub fn page(caches: &[CacheStatus], page: Page) -> String {
    page_of(caches.iter().map(|cache| (cache.sentence(), cache.notes())), page)
}

/// A sentence and its notes for each cache.
pub(super) fn page_of(caches: impl Iterator<Item = (String, Vec<String>)>, page: Page) -> String {
    let mut prose = PageText::new(page);
    let mut caches = caches.peekable();
    if caches.peek().is_none() {
        prose.sentence("No cache is attached.");
    }
    for (sentence, notes) in caches {
        prose.sentence(&sentence);
        prose.notes(notes);
    }
    prose.finish()
}
