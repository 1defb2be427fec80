//! What waits to be written of who did it, and how it is cut into chunks.
//!
//! Identities go into chunks of their own, before the rows that name them: they are always read,
//! rows only where their time is. Rows that are longer than a minute are in chunks of their own as
//! well, so that the time range of all others is short.

use super::{growths, identities};
use crate::{Error, ErrorKind, Result};
use model::recording::{FileRow, ProcessRow, Who};

/// A longer row is written apart.
const LONG_NS: u64 = 60_000_000_000;

/// The most bytes of one chunk of identities, about.
const CHUNK_BYTES: usize = 1 << 20;

/// What waits, and how many identities there were before it.
#[derive(Debug, Default)]
pub(super) struct PendingWho {
    held: Who,
    /// Processes and files that were taken.
    known: (usize, usize),
}

/// Rows of about the same length, of one chunk or more.
#[derive(Debug, Default)]
pub(super) struct GrowthBatch {
    rows: Vec<ProcessRow>,
    file_rows: Vec<FileRow>,
}

impl PendingWho {
    /// Takes what is new.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] where ids do not go on, or rows name unknown ones.
    pub(super) fn take(&mut self, news: &Who) -> Result<()> {
        let (processes, files) = self.known;
        let mut process_ids = (processes..).zip(&news.processes);
        let mut file_ids = (files..).zip(&news.files);
        if !process_ids.all(|(id, process)| process.id as usize == id)
            || !file_ids.all(|(id, file)| file.id as usize == id)
        {
            return Err(refusal("its ids do not go on"));
        }
        let known = (processes + news.processes.len(), files + news.files.len());
        let is_known = |process: u32| (process as usize) < known.0;
        let is_file = |row: &FileRow| is_known(row.process) && (row.file as usize) < known.1;
        if !news.rows.iter().all(|row| is_known(row.process)) || !news.file_rows.iter().all(is_file)
        {
            return Err(refusal("a row names what is not known"));
        }
        self.known = known;
        self.held.processes.extend_from_slice(&news.processes);
        self.held.rows.extend_from_slice(&news.rows);
        self.held.files.extend_from_slice(&news.files);
        self.held.file_rows.extend_from_slice(&news.file_rows);
        Ok(())
    }

    /// Whether no more rows should wait.
    pub(super) fn is_full(&self) -> bool {
        self.held.rows.len().max(self.held.file_rows.len()) >= growths::MAX_GROWTHS
    }

    /// Forgets what waits.
    pub(super) fn clear(&mut self) {
        let Who { processes, rows, files, file_rows } = &mut self.held;
        processes.clear();
        rows.clear();
        files.clear();
        file_rows.clear();
    }

    /// Puts the next chunk of identities into `raw`; false once all were.
    pub(super) fn next_identities(&mut self, raw: &mut Vec<u8>) -> bool {
        let Who { processes, files, .. } = &mut self.held;
        if processes.is_empty() && files.is_empty() {
            return false;
        }
        let (first, second) = identities::encode(processes, files, CHUNK_BYTES, raw);
        processes.drain(..first);
        files.drain(..second);
        true
    }

    /// Takes out the rows, those of ordinary length and those that are longer.
    pub(super) fn take_growths(&mut self) -> [GrowthBatch; 2] {
        let is_short = |from_ns: u64, to_ns: u64| to_ns.saturating_sub(from_ns) <= LONG_NS;
        let rows = self.held.rows.drain(..);
        let (short, long) = rows.partition(|row| is_short(row.from_ns, row.to_ns));
        let file_rows = self.held.file_rows.drain(..);
        let (short_file, long_file) = file_rows.partition(|row| is_short(row.from_ns, row.to_ns));
        [
            GrowthBatch { rows: short, file_rows: short_file },
            GrowthBatch { rows: long, file_rows: long_file },
        ]
    }
}

impl GrowthBatch {
    /// Puts the next chunk into `raw`; its time range, or `None` once all rows were.
    pub(super) fn next(&mut self, raw: &mut Vec<u8>) -> Option<(u64, u64)> {
        if self.rows.is_empty() && self.file_rows.is_empty() {
            return None;
        }
        let rows = self.rows.len().min(growths::MAX_GROWTHS);
        let file_rows = self.file_rows.len().min(growths::MAX_GROWTHS);
        let range = growths::encode(&self.rows[..rows], &self.file_rows[..file_rows], raw);
        self.rows.drain(..rows);
        self.file_rows.drain(..file_rows);
        Some(range)
    }
}

fn refusal(why: &str) -> Error {
    Error::new(ErrorKind::Usage, "record who did it", why)
}
