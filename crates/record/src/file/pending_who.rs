//! What waits to be written of who did it, and how it is cut into chunks.
//!
//! Identities go into chunks of their own, before the rows that name them: they are always read,
//! rows only where their time is. Rows that are longer than a minute are in chunks of their own as
//! well, so that the time range of all others is short.

use super::{growths, identities};
use crate::device_number;
use crate::{Error, ErrorKind, Result};
use model::recording::{FileRow, Who};

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

/// Rows of about the same length, of one chunk or more; without identities.
#[derive(Debug, Default)]
pub(super) struct GrowthBatch(Who);

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
        if !news.rows.iter().all(|row| is_known(row.process))
            || !news.file_rows.iter().all(is_file)
            || !news.samples.iter().all(|row| is_known(row.process))
            || !news
                .requests
                .iter()
                .all(|row| is_known(row.process) && device_number::is_one(row.device))
        {
            return Err(refusal("a row names what is not known"));
        }
        self.known = known;
        self.held.processes.extend_from_slice(&news.processes);
        self.held.rows.extend_from_slice(&news.rows);
        self.held.files.extend_from_slice(&news.files);
        self.held.file_rows.extend_from_slice(&news.file_rows);
        self.held.samples.extend_from_slice(&news.samples);
        self.held.requests.extend_from_slice(&news.requests);
        Ok(())
    }

    /// Whether no more rows should wait.
    pub(super) fn is_full(&self) -> bool {
        let Who { rows, file_rows, samples, requests, .. } = &self.held;
        rows.len().max(file_rows.len()) >= growths::MAX_GROWTHS
            || samples.len().max(requests.len()) >= growths::MAX_WIDE
    }

    /// Forgets what waits.
    pub(super) fn clear(&mut self) {
        self.held = Who::default();
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
        let Who { rows, file_rows, samples, requests, .. } = &mut self.held;
        let (mut short, mut long) = (Who::default(), Who::default());
        (short.rows, long.rows) = rows.drain(..).partition(|row| is_short(row.from_ns, row.to_ns));
        (short.file_rows, long.file_rows) =
            file_rows.drain(..).partition(|row| is_short(row.from_ns, row.to_ns));
        (short.samples, long.samples) =
            samples.drain(..).partition(|row| is_short(row.from_ns, row.to_ns));
        (short.requests, long.requests) =
            requests.drain(..).partition(|row| is_short(row.from_ns, row.to_ns));
        [GrowthBatch(short), GrowthBatch(long)]
    }
}

impl GrowthBatch {
    /// Puts the next chunk into `raw`; its time range, or `None` once all rows were.
    pub(super) fn next(&mut self, raw: &mut Vec<u8>) -> Option<(u64, u64)> {
        fn first<T>(rows: &mut Vec<T>, most: usize) -> Vec<T> {
            rows.drain(..rows.len().min(most)).collect()
        }
        let Who { rows, file_rows, samples, requests, .. } = &mut self.0;
        let next = Who {
            rows: first(rows, growths::MAX_GROWTHS),
            file_rows: first(file_rows, growths::MAX_GROWTHS),
            samples: first(samples, growths::MAX_WIDE),
            requests: first(requests, growths::MAX_WIDE),
            ..Who::default()
        };
        if next.is_empty() { None } else { Some(growths::encode(&next, raw)) }
    }
}

fn refusal(why: &str) -> Error {
    Error::new(ErrorKind::Usage, "record who did it", why)
}
