//! Which parts of an open file are in the page cache.
//!
//! The idea: `cachestat` counts a range in one call. A range of which some pages are there is
//! halved until it is all there, empty, or small; a small one with many pages is mapped and asked
//! page by page (`mincore`). So the cost goes with what is in memory, not with the length of the
//! file. Where the kernel cannot count, only the parts with data are asked for, window by window.
//!
//! Another user's file decides how many questions it takes, so [`CacheQueries`] bounds them, for
//! one file and for all. One [`Access`] lasts for a command; it also leaves out files that may
//! hang.

use crate::ranges;
use crate::read_plan::FileIdentity;
use machine::Root;
use machine::reach::{Reach, Refusal};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};
use sys::cachestat;
use sys::file::MappedFile;

/// How much is asked page by page at once: 16 Ki pages, so 16 KiB of answers.
const WINDOW_BYTES: u64 = 64 << 20;
/// So few pages of a window are found faster by halving: a window takes as long as 1,000 counts.
const FEW_PAGES: u64 = 32;
/// Questions about one file. One of 1 TiB with every 500th page in memory takes half of these, in
/// about two seconds.
const MAX_QUESTIONS_A_FILE: u64 = 1 << 22;
/// Questions about all files of a command.
const MAX_QUESTIONS: u64 = 1 << 26;
/// How long a command asks; 29,000 files with 8 GiB in memory took half a second.
const LONGEST: Duration = Duration::from_secs(60);

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

/// How much may still be asked, and how many files were left out because of that.
#[derive(Debug)]
pub struct CacheQueries {
    left: u64,
    time_left: Duration,
    cut_files: u64,
}

/// A file about which too much would have to be asked, or an interrupt came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimitReached;

/// Why the questions about a file ended early.
enum QueryEnd {
    /// The kernel does not say.
    Unknown,
    LimitReached,
}

impl Default for CacheQueries {
    fn default() -> Self {
        Self { left: MAX_QUESTIONS, time_left: LONGEST, cut_files: 0 }
    }
}

impl CacheQueries {
    /// The ranges of all of `parts` that are in the page cache, as [`ranges_of`] for each.
    ///
    /// # Errors
    /// `QueryLimitReached` for a file that is left out, which is counted.
    pub fn ranges_of(
        &mut self,
        file: &File,
        parts: &[Range<u64>],
    ) -> Result<Option<Vec<Range<u64>>>, QueryLimitReached> {
        let began = Instant::now();
        let most = MAX_QUESTIONS_A_FILE.min(self.left);
        let mut asking = FileQuery {
            file,
            page_bytes: sys::process::page_bytes() as u64,
            left: most,
            until: began.checked_add(self.time_left),
            found: Vec::new(),
        };
        let answer = asking.ask_all(parts);
        self.left -= most - asking.left;
        self.time_left = self.time_left.saturating_sub(began.elapsed());
        match answer {
            Ok(()) => Ok(Some(asking.found)),
            Err(QueryEnd::Unknown) => Ok(None),
            Err(QueryEnd::LimitReached) => {
                self.cut_files += 1;
                Err(QueryLimitReached)
            }
        }
    }

    /// How many questions were asked.
    #[must_use]
    pub fn asked(&self) -> u64 {
        MAX_QUESTIONS - self.left
    }

    /// "3 files were left out: ..."; `None` if none was.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let (what, were) = match self.cut_files {
            0 => return None,
            1 => ("file", "was"),
            _ => ("files", "were"),
        };
        let why = if sys::interrupt::requested() {
            "an interrupt came before the page cache was asked for all of them"
        } else {
            "the page cache would have to be asked too often what of them it holds"
        };
        Some(format!("{} {what} {were} left out: {why}", self.cut_files))
    }
}

/// The ranges of `within` that are in the page cache, whole pages, ascending, merged; `None` where
/// the kernel does not say, or would not say the truth: to an ordinary user about files of others,
/// and before Linux 6.5 to all but the owner and root; also where it takes more questions than a
/// single file may.
#[must_use]
pub fn ranges_of(file: &File, within: &Range<u64>) -> Option<Vec<Range<u64>>> {
    let parts = std::slice::from_ref(within);
    CacheQueries::default().ranges_of(file, parts).ok().flatten()
}

/// How many bytes of `ranges` are in the page cache; `None` as for [`ranges_of`].
#[must_use]
pub fn bytes_of(file: &File, within: &Range<u64>) -> Option<u64> {
    match count(file, within)? {
        Some(pages) => Some(pages.saturating_mul(sys::process::page_bytes() as u64)),
        None => Some(ranges::total(&ranges_of(file, within)?)),
    }
}

/// The questions about one file.
struct FileQuery<'a> {
    file: &'a File,
    page_bytes: u64,
    left: u64,
    until: Option<Instant>,
    found: Vec<Range<u64>>,
}

impl FileQuery<'_> {
    fn ask_all(&mut self, parts: &[Range<u64>]) -> Result<(), QueryEnd> {
        for part in parts {
            let start = part.start / self.page_bytes * self.page_bytes;
            // The last whole page below 2^64: no file reaches further.
            let last = u64::MAX / self.page_bytes * self.page_bytes;
            let end = part.end.checked_next_multiple_of(self.page_bytes).unwrap_or(last);
            if start >= end {
                continue;
            }
            let counted = count(self.file, &(start..end)).ok_or(QueryEnd::Unknown)?;
            self.take_question()?;
            match counted {
                Some(pages) => self.halve(start..end, pages)?,
                None => self.ask_for_data(&(start..end))?,
            }
        }
        Ok(())
    }

    /// Halves `range`, of which so many pages are there, until each part is known.
    fn halve(&mut self, range: Range<u64>, pages: u64) -> Result<(), QueryEnd> {
        // What is to be looked at, the first part last.
        let mut waiting = vec![(range, pages)];
        while let Some((range, pages)) = waiting.pop() {
            let bytes = range.end - range.start;
            let all = bytes / self.page_bytes;
            if pages == 0 {
                continue;
            }
            if pages >= all {
                ranges::push(&mut self.found, range);
                continue;
            }
            if bytes <= WINDOW_BYTES && pages > FEW_PAGES {
                self.ask_by_page(&range)?;
                continue;
            }
            let middle = range.start + all / 2 * self.page_bytes;
            self.take_question()?;
            let before = range.start..middle;
            let there = cachestat::of(self.file, before.start, before.end - before.start)
                .map_err(|_| QueryEnd::Unknown)?
                .cached;
            // Pages come and go meanwhile; what is counted behind may then be wrong by as many.
            waiting.push((middle..range.end, pages.saturating_sub(there)));
            waiting.push((before, there));
        }
        Ok(())
    }

    /// Asks page by page, where the file has data.
    fn ask_for_data(&mut self, within: &Range<u64>) -> Result<(), QueryEnd> {
        let mut from = within.start;
        while from < within.end {
            self.take_question()?;
            let data = match sys::file::next_data(self.file, from) {
                Ok(Some(data)) => data,
                Ok(None) => break,
                // No offset of a file is larger, or this file system does not support the call.
                Err(_) if from > 0 => break,
                Err(_) => within.clone(),
            };
            let end = data.end.next_multiple_of(self.page_bytes).min(within.end);
            let first = data.start / self.page_bytes * self.page_bytes;
            let mut start = first.max(within.start).min(end);
            while start < end {
                let window = start..end.min(start.saturating_add(WINDOW_BYTES));
                self.ask_by_page(&window)?;
                start = window.end;
            }
            from = data.end.max(from.saturating_add(1));
        }
        Ok(())
    }

    fn ask_by_page(&mut self, window: &Range<u64>) -> Result<(), QueryEnd> {
        self.take_question()?;
        for part in resident_of(self.file, window).ok_or(QueryEnd::Unknown)? {
            ranges::push(&mut self.found, part);
        }
        Ok(())
    }

    /// Takes one question of those that are left.
    fn take_question(&mut self) -> Result<(), QueryEnd> {
        let is_late = self.until.is_some_and(|until| Instant::now() >= until);
        self.left = self.left.checked_sub(1).ok_or(QueryEnd::LimitReached)?;
        if is_late || sys::interrupt::requested() {
            return Err(QueryEnd::LimitReached);
        }
        Ok(())
    }
}

/// `Some(None)` where the kernel cannot count and can be asked page by page instead.
fn count(file: &File, window: &Range<u64>) -> Option<Option<u64>> {
    match cachestat::of(file, window.start, window.end - window.start) {
        Ok(stat) if stat.cached == 0 && may_be_stacked(file) && gets_true_answers(file) => {
            Some(None)
        }
        Ok(stat) => Some(Some(stat.cached)),
        Err(error) if error.kind == sys::ErrorKind::Unsupported && gets_true_answers(file) => {
            Some(None)
        }
        Err(_) => None,
    }
}

/// On overlayfs (Linux 6.12) `cachestat` counts nothing: the pages belong to the file below, which
/// is what a mapping maps. Such file systems have no block device, and so no major number, of their
/// own.
fn may_be_stacked(file: &File) -> bool {
    let device = file.metadata().map(|metadata| metadata.dev());
    device.is_ok_and(|device| sys::block::device_numbers(device).0 == 0)
}

/// `mincore` answers "all there" unless the caller owns the file or is root.
fn gets_true_answers(file: &File) -> bool {
    let user = sys::process::effective_uid();
    user == 0 || file.metadata().is_ok_and(|metadata| metadata.uid() == user)
}

/// The ranges of `within`, of whole pages, that are in memory by `mincore`'s word, which is true
/// only for the owner and root; `None` where the kernel does not say.
pub(crate) fn resident_of(file: &File, within: &Range<u64>) -> Option<Vec<Range<u64>>> {
    let page_bytes = sys::process::page_bytes() as u64;
    let mut found = Vec::new();
    for start in within.clone().step_by(WINDOW_BYTES as usize) {
        if sys::interrupt::requested() {
            return None;
        }
        let bytes = WINDOW_BYTES.min(within.end - start);
        let resident = MappedFile::part(file, start, bytes).ok()?.resident().ok()?;
        for (index, _) in resident.iter().enumerate().filter(|(_, there)| **there) {
            let page = start + index as u64 * page_bytes;
            ranges::push(&mut found, page..page + page_bytes);
        }
    }
    Some(found)
}
