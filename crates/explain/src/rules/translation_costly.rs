//! Random access that spends much of its time finding addresses.
//!
//! The same pattern over the same size, once with small pages and once with huge
//! ones: the difference is the walk of the page tables, which in a guest has two
//! dimensions. Nothing else changes between the two.

use super::Outcome;
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::{Interval, interval};
use crate::observed::Observed;
use crate::wording::times;
use model::duration::show_ns;
use model::{Bytes, Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "translation_costly";

/// Small pages must make a load this many times as slow. Seen in a guest: 1.11 at
/// 256 MiB, 1.51 at 1 GiB. Picked: below it the change of pages is not worth its risk.
pub const LEAST_FACTOR: f64 = 1.25;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure memlat";

/// The same loads with small and with huge pages.
#[derive(Clone, Debug, PartialEq)]
pub struct TranslationCostly {
    /// The buffer's size.
    pub size_bytes: u64,
    /// One load with small pages, in nanoseconds.
    pub base_ns: Interval,
    /// One load with huge pages, in nanoseconds.
    pub huge_ns: Interval,
    /// One load where the pattern stays inside each page, in nanoseconds.
    pub in_page_ns: Option<Interval>,
    /// Whether the walk has two dimensions.
    pub virtualized: bool,
    /// The setting of huge pages: what is still to be done.
    pub thp_setting: Option<String>,
}

/// Compares the two.
pub fn check(observed: &Observed) -> Outcome {
    let Some(seen) = &observed.translation else {
        return Outcome::unchecked("random loads with small and huge pages were not measured");
    };
    let (Some(base_ns), Some(huge_ns)) = (interval(&seen.base_ns), interval(&seen.huge_ns)) else {
        return Outcome::unchecked("too few trials of random loads for error bars");
    };
    if !base_ns.above(&huge_ns) || base_ns.median < LEAST_FACTOR * huge_ns.median {
        return Outcome::Fine;
    }
    Outcome::found(Finding::TranslationCostly(TranslationCostly {
        size_bytes: seen.size_bytes,
        base_ns,
        huge_ns,
        in_page_ns: seen.in_page_ns.as_ref().and_then(interval),
        virtualized: seen.virtualized,
        thp_setting: observed.pages.as_ref().and_then(|p| p.thp_setting.clone()),
    }))
}

impl TranslationCostly {
    fn factor(&self) -> f64 {
        self.base_ns.median / self.huge_ns.median
    }

    fn remedy(&self) -> Option<String> {
        let ask = "In programs with much memory, ask for huge pages (MADV_HUGEPAGE, or \
                   GLIBC_TUNABLES=glibc.malloc.hugetlb=1 for malloc)";
        let risk = "Risk: more memory is taken, and a first touch takes longer.";
        match self.thp_setting.as_deref() {
            // Every large block gets huge pages already.
            Some("always") => None,
            Some("never") => Some(format!(
                "Switch huge pages to `madvise` first. {ask}. {risk}"
            )),
            _ => Some(format!("{ask}. {risk}")),
        }
    }
}

impl Told for TranslationCostly {
    fn report(&self) -> model::Finding {
        let size = Bytes(self.size_bytes);
        let mut evidence = vec![
            Evidence::new(
                format!("load, {size}, small pages"),
                self.base_ns.median,
                "ns",
                SOURCE,
            ),
            Evidence::new(
                format!("load, {size}, huge pages"),
                self.huge_ns.median,
                "ns",
                SOURCE,
            ),
        ];
        if let Some(ns) = self.in_page_ns {
            let name = format!("load, {size}, inside each page");
            evidence.push(Evidence::new(name, ns.median, "ns", SOURCE));
        }
        let walk = if self.virtualized {
            "finding its address, by two nested lookups as this is a guest"
        } else {
            "finding its address"
        };
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "A random load in {size} takes {} with 4 KiB pages and {} with huge ones: {} of it go into {walk} ({} times as slow).",
                show_ns(self.base_ns.median),
                show_ns(self.huge_ns.median),
                show_ns(self.base_ns.median - self.huge_ns.median),
                times(self.factor()),
            ),
            tier: Some("RAM".to_owned()),
            evidence,
            grade: Grade::Measured,
            remedy: self.remedy(),
            confirm: Some("terrace measure memlat".to_owned()),
        }
    }

    fn severity(&self) -> Severity {
        Severity::new(Class::Level, self.factor())
    }
}
