//! The block traces of Microsoft Research, Cambridge (Narayanan and others, FAST 2008): lines of
//! `time,host,disk,Read|Write,offset,size,response`, times in units of 100 ns since 1601. A
//! request is timed at its start.

use super::{RawPlace, RawRequest, number, shortened};

/// Nanoseconds of a unit of time.
const TICK_NS: u64 = 100;

/// Decodes one line.
pub(super) fn decode(line: &str) -> Result<RawRequest<'_>, String> {
    let mut fields = line.split(',');
    let ticks = number(fields.next(), "time")?;
    // The name of the host and the number of the disk, with the comma between.
    let after = line.split_once(',').map_or("", |(_, after)| after);
    let (host, disk) = (fields.next(), fields.next());
    let (Some(host), Some(disk)) = (host, disk) else {
        return Err("its disk is missing".to_owned());
    };
    let file = &after[..host.len() + 1 + disk.len()];
    let is_write = match fields.next().unwrap_or_default() {
        "Read" => false,
        "Write" => true,
        other => {
            return Err(format!("its type is neither Read nor Write: {:?}", shortened(other)));
        }
    };
    let offset = number(fields.next(), "offset")?;
    let bytes = number(fields.next(), "size")?;
    // Since 1601 there is room for nanoseconds until 2185.
    let at_ns =
        ticks.checked_mul(TICK_NS).ok_or_else(|| format!("its time {ticks} is too late"))?;
    let response = number(fields.next(), "response time")?;
    let place = RawPlace::Range { offset, bytes };
    let latency_ns = Some(response.saturating_mul(TICK_NS));
    Ok(RawRequest { at_ns, file, place, is_write, latency_ns })
}
