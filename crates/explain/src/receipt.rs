//! Judges a cache by its own counters: what its hits spared, against the time that all reads would
//! have taken without it.
//!
//! A hit is taken to spare what a read of the disk takes longer than one of the cache's device, on
//! average since both appeared. That is an inference: what hits would have cost on the disk was
//! measured on misses. Hits and misses are of another span than the devices' counters (dm-cache
//! keeps them over reboots), so no sum of one is compared with a sum of the other. A cache that
//! takes writes reads them back from its device in larger pieces: that makes its mean too long, and
//! is said.

use crate::wording::{count, percent};
use model::cache_receipt::{CacheCounters, CacheReceipt, DeviceReads, ReceiptVerdict};

/// With fewer reads a mean says nothing.
const READS_MIN: u64 = 100;
/// Spared of the time that reads would have taken without the cache: a tenth is worth a device.
const WORTH_SHARE: f64 = 0.1;
/// A cache that answers less of the reads is not worth it, however fast its device is.
const LEAST_HIT_SHARE: f64 = 0.01;

/// What the cache has brought.
#[must_use]
pub fn judge(counters: CacheCounters) -> CacheReceipt {
    let (spared_s, mut verdict, mut why) = match reads_of(&counters) {
        Err(why) => (None, ReceiptVerdict::Unproven, why),
        Ok(reads) => match devices(&counters) {
            Ok((disk, cache)) => {
                let spared_s = reads.hits as f64 * (disk.mean_ms() - cache.mean_ms()) / 1e3;
                let (verdict, why) = verdict(&reads, disk, cache);
                (Some(spared_s), verdict, why)
            }
            // Its device has few reads because hardly anything is found in it.
            Err(_) if reads.hit_share() < LEAST_HIT_SHARE => {
                (None, ReceiptVerdict::NotWorthIt, reads.shown())
            }
            Err(why) => (None, ReceiptVerdict::Unproven, format!("{}; {why}", reads.shown())),
        },
    };
    if takes_writes(&counters) {
        if spared_s.is_some() {
            why.push_str(
                "; reads that write back are among those of its device, so a hit may take less",
            );
        }
        if verdict == ReceiptVerdict::NotWorthIt {
            verdict = ReceiptVerdict::Unproven;
            why.push_str("; it also takes writes, and what that spares is not counted");
        }
    }
    CacheReceipt { counters, spared_s, verdict, why }
}

fn takes_writes(counters: &CacheCounters) -> bool {
    counters.is_write_back == Some(true) || counters.dirty_bytes.unwrap_or(0) > 0
}

/// How many reads the cache answered, by its own count.
struct CacheReads {
    hits: u64,
    all: u64,
}

impl CacheReads {
    fn hit_share(&self) -> f64 {
        self.hits as f64 / self.all.max(1) as f64
    }

    /// `it answered 9,000 of 10,000 reads (90 %)`
    fn shown(&self) -> String {
        let (hits, all) = (count(self.hits), count(self.all));
        format!("it answered {hits} of {all} reads ({})", percent(self.hit_share()))
    }
}

fn reads_of(counters: &CacheCounters) -> Result<CacheReads, String> {
    let (Some(hits), Some(misses)) = (counters.hits, counters.misses) else {
        return Err("it counts no hits and misses here".to_owned());
    };
    let all = hits.saturating_add(misses);
    if all < READS_MIN {
        let least = count(READS_MIN);
        return Err(format!("it had {} reads, at least {least} are needed", count(all)));
    }
    Ok(CacheReads { hits, all })
}

/// The disk and the cache's device, or what is not known of them.
fn devices(counters: &CacheCounters) -> Result<(&DeviceReads, &DeviceReads), String> {
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
        (Some(disk), Some(cache)) => Ok((disk, cache)),
        _ => Err("how fast its devices answer is not known here".to_owned()),
    }
}

fn verdict(
    reads: &CacheReads,
    disk: &DeviceReads,
    cache: &DeviceReads,
) -> (ReceiptVerdict, String) {
    let (of_disk, of_cache) = (disk.mean_ms(), cache.mean_ms());
    let shown = reads.shown();
    if of_cache >= of_disk {
        let why =
            format!("{shown}; its device answers in {of_cache:.2} ms, the disk in {of_disk:.2} ms");
        return (ReceiptVerdict::NotWorthIt, why);
    }
    let share = reads.hit_share() * (of_disk - of_cache) / of_disk;
    let why = format!(
        "{shown}; a hit takes {of_cache:.2} ms instead of {of_disk:.2} ms; that is {} of the time \
         that reads would have taken",
        percent(share)
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
            is_write_back: Some(false),
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
        assert!(receipt.why.contains("10,000 of 12,000 reads (83.3 %)"), "{}", receipt.why);
        assert!(receipt.why.contains("that is 80.7 % of the time"), "{}", receipt.why);
    }

    /// dm-cache's hits are of all boots, what its devices took of this one.
    #[test]
    fn counts_of_an_earlier_boot_change_no_share() {
        let now = judge(counters(10_000, 90_000));
        let (disk, cache) = (reads(90, 0), reads(10, 0));
        assert_eq!(judge(CacheCounters { disk, cache, ..counters(10_000, 90_000) }).spared_s, None);
        let since_boot = CacheCounters {
            disk: reads(900, 900 * 8),
            cache: reads(100, 25),
            ..counters(10_000, 90_000)
        };
        assert_eq!(judge(since_boot).why, now.why);
        assert_eq!(now.verdict, ReceiptVerdict::NotWorthIt);
    }

    #[test]
    fn a_cache_that_answers_nothing_is_not_worth_it() {
        let idle = CacheCounters { cache: reads(9, 1), ..counters(0, 1_000_000) };
        let receipt = judge(idle);
        assert_eq!((receipt.verdict, receipt.spared_s), (ReceiptVerdict::NotWorthIt, None));
        assert!(receipt.why.starts_with("it answered 0 of 1,000,000 reads"), "{}", receipt.why);
    }

    #[test]
    fn what_a_cache_of_writes_spares_is_not_counted() {
        let few = counters(200, 100_000);
        for cache in [
            CacheCounters { is_write_back: Some(true), ..few.clone() },
            CacheCounters { dirty_bytes: Some(4096), is_write_back: None, ..few },
        ] {
            let receipt = judge(cache);
            assert_eq!(receipt.verdict, ReceiptVerdict::Unproven);
            assert!(receipt.why.ends_with("what that spares is not counted"), "{}", receipt.why);
        }
        let worth = judge(CacheCounters { is_write_back: Some(true), ..counters(10_000, 2_000) });
        assert_eq!(worth.verdict, ReceiptVerdict::WorthIt);
        assert!(worth.why.contains("; reads that write back are among"), "{}", worth.why);
        assert!(!judge(counters(10_000, 2_000)).why.contains("write back"));
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
            (CacheCounters { hits: Some(3), misses: Some(4), ..whole }, "it had 7 reads"),
        ];
        for (counters, words) in cases {
            let receipt = judge(counters);
            assert_eq!(receipt.verdict, ReceiptVerdict::Unproven);
            assert_eq!(receipt.spared_s, None);
            assert!(receipt.why.contains(words), "{}", receipt.why);
        }
    }
}
