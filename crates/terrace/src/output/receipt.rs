//! The page of `boost receipt`: for each cache the answer, then its counters.
//!
//! Pure: receipts become text.

use super::Page;
use super::figure::{self, Digits};
use super::prose::PageText;
use model::cache_receipt::{CacheReceipt, CacheReceipts, ReceiptVerdict};

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
             the cache's device, on average since both appeared.",
        );
    }
    text.notes(receipts.unseen.iter().map(|why| format!("Not seen: {why}.")));
    text.finish()
}

/// `bcache0 (bcache): worth it: 77.5 s spared.`
fn answer(receipt: &CacheReceipt) -> String {
    let verdict = match receipt.verdict {
        ReceiptVerdict::WorthIt => "worth it",
        ReceiptVerdict::NotWorthIt => "not worth it",
        ReceiptVerdict::Unproven => "unproven",
    };
    let spared = match receipt.spared_s {
        None => String::new(),
        Some(spared_s) if spared_s < 0.0 => format!(": {:.1} s lost", -spared_s),
        Some(spared_s) => format!(": {spared_s:.1} s spared"),
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
    format!(
        "Hits {}, misses {}, dirty {}, written to its device {}.",
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
