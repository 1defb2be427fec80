//! The default lines of `blkparse`: `major,minor cpu sequence seconds pid action rwbs sector +
//! sectors [name]`. Other lines, as the summary at its end, are skipped.

use super::{RawRequest, SECTOR_BYTES, number, sectors, shortened};
use std::collections::HashMap;

/// The action of a request that enters the queue of its disk: each is counted once.
const QUEUED: &str = "Q";

/// The disk got it.
const ISSUED: &str = "D";

/// The disk has done it.
const COMPLETED: &str = "C";

/// Requests that a disk has at a time; more are taken for a trace without completions. Picked: the
/// queues of all disks of a large machine have fewer.
const ISSUED_MAX: usize = 1 << 16;

/// One line that reads or writes.
struct Line<'t> {
    device: &'t str,
    at_ns: u64,
    first: u64,
    count: u64,
    is_write: bool,
    action: &'t str,
}

impl<'t> Line<'t> {
    fn request(self, latency_ns: Option<u64>) -> Result<RawRequest<'t>, String> {
        let Self { device: file, at_ns, is_write, .. } = self;
        let place = sectors(self.first, self.count.saturating_mul(SECTOR_BYTES))?;
        Ok(RawRequest { at_ns, file, place, is_write, latency_ns })
    }
}

/// Decodes one line; `None` if no request that reads or writes enters a queue in it.
pub(super) fn queued(text: &str) -> Result<Option<RawRequest<'_>>, String> {
    let found = line(text, &[QUEUED])?;
    found.map(|line| line.request(None)).transpose()
}

/// The requests that the disks have: the device, the sector and whether it writes, with the time of
/// the issue.
#[derive(Clone, Debug, Default)]
pub(super) struct Issued(HashMap<(String, u64, bool), u64>);

impl Issued {
    /// Decodes one line; `None` if no request that reads or writes is completed in it. One that was
    /// issued before the trace began has no time.
    pub(super) fn completed<'t>(
        &mut self,
        text: &'t str,
    ) -> Result<Option<RawRequest<'t>>, String> {
        let Some(line) = line(text, &[ISSUED, COMPLETED])? else {
            return Ok(None);
        };
        let key = (line.device.to_owned(), line.first, line.is_write);
        if line.action == ISSUED {
            if self.0.len() < ISSUED_MAX {
                self.0.insert(key, line.at_ns);
            }
            return Ok(None);
        }
        let issued_ns = self.0.remove(&key);
        let latency_ns = issued_ns.and_then(|issued_ns| line.at_ns.checked_sub(issued_ns));
        line.request(latency_ns).map(Some)
    }
}

/// Decodes one line with one of `actions`; `None` if it is another one, or has no data.
fn line<'t>(text: &'t str, actions: &[&str]) -> Result<Option<Line<'t>>, String> {
    let mut fields = text.split_ascii_whitespace();
    let Some(device) = fields.next().filter(|device| is_device(device)) else {
        return Ok(None);
    };
    let seconds = fields.nth(2);
    let (Some(action), Some(kinds)) = (fields.nth(1), fields.next()) else {
        return Err("it is cut before its action".to_owned());
    };
    let moves = kinds.contains(['R', 'W']) && !kinds.contains('D');
    if !actions.contains(&action) || !moves {
        return Ok(None);
    }
    // A flush has no sector, or one alone.
    let is_end = |field: Option<&str>| field.is_some_and(|text| text.starts_with(['[', '(']));
    let sector = fields.next();
    if is_end(sector) {
        return Ok(None);
    }
    let first = number(sector, "sector")?;
    let plus = fields.next();
    if is_end(plus) {
        return Ok(None);
    }
    let count = number(fields.next(), "number of sectors")?;
    let at_ns = nanoseconds(seconds.unwrap_or_default())?;
    let is_write = kinds.contains('W');
    Ok(Some(Line { device, at_ns, first, count, is_write, action }))
}

/// Whether `text` is `major,minor`.
fn is_device(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once(',').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// Seconds with nine digits after the point.
fn nanoseconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("its time is no number of seconds: {:?}", shortened(text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = format!("{fraction:0<9}");
    let parts = (whole.parse::<u64>(), digits.get(..9).and_then(|nine| nine.parse::<u64>().ok()));
    let (Ok(seconds), Some(ns)) = parts else {
        return Err(wrong());
    };
    seconds.checked_mul(1_000_000_000).and_then(|at| at.checked_add(ns)).ok_or_else(wrong)
}
