//! The page of `boost receipt`: for each cache the answer, then its counters.
//!
//! Pure: receipts become text.

use super::Page;
use super::figure::{self, Digits};
use super::prose::{PageText, long_time};
use model::cache_receipt::{CacheKind, CacheReceipt, CacheReceipts, ReceiptVerdict};
use model::doctor::POINTER;

pub fn page(receipts: &CacheReceipts, page: Page) -> String {
    let mut text = PageText::new(page);
    if receipts.caches.is_empty() {
        text.heading("No cache was found: no bcache, no dm-cache, no L2ARC.");
    }
    for receipt in &receipts.caches {
        text.heading(&answer(receipt));
        text.sentence(&capital(&receipt.why));
        text.sentence(&counters(receipt));
    }
    if receipts.caches.iter().any(|receipt| receipt.spared_s.is_some()) {
        text.note(
            "Seconds are concluded: hits, times what a read of the disk takes longer than one of \
             the cache's device, on average since both appeared. They are added up over reads, of \
             which several may have waited at once.",
        );
    }
    text.notes(receipts.unseen.iter().map(|reason| format!("Not seen: {reason} ({POINTER}).")));
    text.finish()
}

/// `bcache0 (bcache): worth it: 77.5 s spared, added up over reads.`
fn answer(receipt: &CacheReceipt) -> String {
    let verdict = match receipt.verdict {
        ReceiptVerdict::WorthIt => "worth it",
        ReceiptVerdict::NotWorthIt => "not worth it",
        ReceiptVerdict::Unproven => "unproven",
    };
    let spared = match receipt.spared_s {
        None => String::new(),
        Some(spared_s) => {
            let time = long_time((spared_s.abs() * 1e9) as u64);
            let word = if spared_s < 0.0 { "lost" } else { "spared" };
            format!(": {time} {word}, added up over reads")
        }
    };
    let counters = &receipt.counters;
    format!("{} ({}): {verdict}{spared}.", counters.name, counters.kind.name())
}

fn counters(receipt: &CacheReceipt) -> String {
    let counters = &receipt.counters;
    let count = |value: Option<u64>| figure::or_absent(value, |value| value.to_string());
    let size = |value: Option<u64>| {
        figure::or_absent(value, |bytes| figure::binary_size(bytes, Digits::Two))
    };
    let since = if counters.kind == CacheKind::DmCache { " since it was made" } else { "" };
    format!(
        "Of reads{since}: hits {}, misses {}. Dirty {}, written to its device {}.",
        count(counters.hits),
        count(counters.misses),
        size(counters.dirty_bytes),
        size(counters.written_bytes)
    )
}

/// With a capital and a full stop.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::cache_receipt::{CacheCounters, RECEIPT_SCHEMA};

    fn receipt(name: &str, kind: CacheKind, verdict: ReceiptVerdict) -> CacheReceipt {
        let counters = CacheCounters {
            kind,
            name: name.to_owned(),
            is_write_back: Some(false),
            hits: Some(9000),
            misses: Some(1000),
            dirty_bytes: Some(0),
            written_bytes: None,
            disk: None,
            cache: None,
        };
        CacheReceipt { counters, spared_s: None, verdict, why: "it is so".to_owned() }
    }

    #[test]
    fn each_cache_has_its_answer_and_its_counters() {
        let worth = CacheReceipt {
            spared_s: Some(7750.0),
            ..receipt("bcache0", CacheKind::Bcache, ReceiptVerdict::WorthIt)
        };
        let slow = CacheReceipt {
            spared_s: Some(-12.0),
            ..receipt("vg-data", CacheKind::DmCache, ReceiptVerdict::NotWorthIt)
        };
        let unproven = receipt("arcstats", CacheKind::L2arc, ReceiptVerdict::Unproven);
        let receipts = CacheReceipts {
            schema: RECEIPT_SCHEMA,
            caches: vec![worth, slow, unproven],
            unseen: vec!["dm-cache: `dmsetup table` failed: no permission".to_owned()],
        };
        let shown = page(&receipts, Page::plain(200));
        let time = long_time(7_750_000_000_000);
        for line in [
            format!("bcache0 (bcache): worth it: {time} spared, added up over reads."),
            "vg-data (dm-cache): not worth it: 12 s lost, added up over reads.".to_owned(),
            "arcstats (L2ARC): unproven.".to_owned(),
            "It is so.".to_owned(),
            "Of reads since it was made: hits 9000, misses 1000. Dirty 0 B, ".to_owned(),
            "Of reads: hits 9000,".to_owned(),
            "Not seen: dm-cache: `dmsetup table` failed: no permission (why: `terrace doctor`)."
                .to_owned(),
        ] {
            assert!(shown.contains(&line), "{line}: {shown}");
        }
        let empty = CacheReceipts { caches: Vec::new(), ..receipts };
        assert!(page(&empty, Page::plain(200)).starts_with("No cache was found"));
    }
}
