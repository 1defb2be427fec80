//! The default lines of `blkparse`: `major,minor cpu sequence seconds pid action rwbs sector +
//! sectors [name]`. Other lines, as the summary at its end, are skipped.

use super::{RawRequest, SECTOR_BYTES, number, sectors, shortened};

/// The action of a request that enters the queue of its disk: each is counted once.
const QUEUED: &str = "Q";

/// Decodes one line; `None` if it has no request that reads or writes.
pub(super) fn decode(line: &str) -> Result<Option<RawRequest<'_>>, String> {
    let mut fields = line.split_ascii_whitespace();
    let Some(device) = fields.next().filter(|device| is_device(device)) else {
        return Ok(None);
    };
    let seconds = fields.nth(2);
    let (action, kinds) = (fields.nth(1), fields.next().unwrap_or_default());
    let moves = kinds.contains(['R', 'W']) && !kinds.contains('D');
    let sector = fields.next();
    if action != Some(QUEUED) || !moves || sector.is_none_or(|text| text.starts_with('[')) {
        return Ok(None);
    }
    let at_ns = nanoseconds(seconds.unwrap_or_default())?;
    let first = number(sector, "sector")?;
    let count = number(fields.nth(1), "number of sectors")?;
    let place = sectors(first, count.saturating_mul(SECTOR_BYTES))?;
    Ok(Some(RawRequest { at_ns, file: device, place, is_write: kinds.contains('W') }))
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
