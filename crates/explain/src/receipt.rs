//! Judges a cache by its own counters: what its hits spared, against the time that all reads took.
//!
//! A hit is taken to spare what a read of the disk takes longer than one of the cache's device, on
//! average since both appeared. That is an inference: what hits would have cost on the disk was
//! measured on misses.

use model::cache_receipt::{CacheCounters, CacheReceipt, DeviceReads, ReceiptVerdict};

/// With fewer reads a mean says nothing.
const READS_MIN: u64 = 100;
/// Spared of the time that reads would have taken without the cache: a tenth is worth a device.
const WORTH_SHARE: f64 = 0.1;

/// What the cache has brought.
#[must_use]
pub fn judge(counters: CacheCounters) -> CacheReceipt {
    let (spared_s, verdict, why) = match known(&counters) {
        Err(why) => (None, ReceiptVerdict::Unproven, why),
        Ok((hits, disk, cache)) => {
            let spared_s = hits as f64 * (disk.mean_ms() - cache.mean_ms()) / 1e3;
            let taken_s = (disk.read_ms + cache.read_ms) as f64 / 1e3;
            let (verdict, why) = verdict(spared_s, taken_s, disk, cache);
            (Some(spared_s), verdict, why)
        }
    };
    CacheReceipt { counters, spared_s, verdict, why }
}

/// What is needed of the counters, or what is missing.
fn known(counters: &CacheCounters) -> Result<(u64, &DeviceReads, &DeviceReads), String> {
    let (Some(hits), Some(misses)) = (counters.hits, counters.misses) else {
        return Err("it counts no hits and misses here".to_owned());
    };
    if hits.saturating_add(misses) < READS_MIN {
        return Err(format!("it was asked only {} times", hits.saturating_add(misses)));
    }
    let of = |device: &'static str, reads: &'_ Option<DeviceReads>| match reads {
        None => Err(format!("how fast the {device} answers is not known here")),
        Some(reads) if reads.reads < READS_MIN => {
            Err(format!("the {device}, {}, has had only {} reads", reads.device, reads.reads))
        }
        Some(_) => Ok(()),
    };
    of("disk", &counters.disk)?;
    of("cache's device", &counters.cache)?;
    match (&counters.disk, &counters.cache) {
        (Some(disk), Some(cache)) => Ok((hits, disk, cache)),
        _ => Err("how fast its devices answer is not known here".to_owned()),
    }
}

fn verdict(
    spared_s: f64,
    taken_s: f64,
    disk: &DeviceReads,
    cache: &DeviceReads,
) -> (ReceiptVerdict, String) {
    let (of_disk, of_cache) = (disk.mean_ms(), cache.mean_ms());
    if of_cache >= of_disk {
        let why = format!("its device answers in {of_cache:.2} ms, the disk in {of_disk:.2} ms");
        return (ReceiptVerdict::NotWorthIt, why);
    }
    let share = spared_s / (spared_s + taken_s).max(f64::MIN_POSITIVE);
    let why = format!(
        "a hit takes {of_cache:.2} ms instead of {of_disk:.2} ms; that is {:.0} % of the time that \
         reads would have taken",
        100.0 * share
    );
    let is_worth = share >= WORTH_SHARE;
    (if is_worth { ReceiptVerdict::WorthIt } else { ReceiptVerdict::NotWorthIt }, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::cache_receipt::CacheKind;

    fn reads(reads: u64, read_ms: u64) -> Option<DeviceReads> {
        Some(DeviceReads { device: "sdb".to_owned(), reads, read_ms })
    }

    fn counters(hits: u64, misses: u64) -> CacheCounters {
        CacheCounters {
            kind: CacheKind::Bcache,
            name: "bcache0".to_owned(),
            hits: Some(hits),
            misses: Some(misses),
            dirty_bytes: None,
            written_bytes: None,
            disk: reads(misses, misses * 8),
            cache: reads(hits, hits / 4),
        }
    }

    #[test]
    fn hits_on_a_faster_device_are_worth_it() {
        let receipt = judge(counters(10_000, 2_000));
        assert_eq!(receipt.verdict, ReceiptVerdict::WorthIt);
        assert!((receipt.spared_s.unwrap() - 77.5).abs() < 0.1, "{receipt:?}");
        assert!(receipt.why.contains("0.25 ms instead of 8.00 ms"), "{}", receipt.why);
    }

    #[test]
    fn few_hits_and_a_slow_device_are_not() {
        assert_eq!(judge(counters(200, 100_000)).verdict, ReceiptVerdict::NotWorthIt);
        let slow = CacheCounters { cache: reads(10_000, 90_000), ..counters(10_000, 2_000) };
        let receipt = judge(slow);
        assert_eq!(receipt.verdict, ReceiptVerdict::NotWorthIt);
        assert!(receipt.spared_s.unwrap() < 0.0, "{receipt:?}");
    }

    #[test]
    fn what_is_missing_is_said() {
        let whole = counters(10_000, 2_000);
        let cases = [
            (CacheCounters { hits: None, ..whole.clone() }, "counts no hits"),
            (CacheCounters { disk: None, ..whole.clone() }, "the disk answers"),
            (CacheCounters { cache: reads(9, 1), ..whole.clone() }, "only 9 reads"),
            (CacheCounters { hits: Some(3), misses: Some(4), ..whole }, "only 7 times"),
        ];
        for (counters, words) in cases {
            let receipt = judge(counters);
            assert_eq!(receipt.verdict, ReceiptVerdict::Unproven);
            assert_eq!(receipt.spared_s, None);
            assert!(receipt.why.contains(words), "{}", receipt.why);
        }
    }
}
