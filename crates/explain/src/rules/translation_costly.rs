//! Random access that spends much of its time finding addresses.
//!
//! The same pattern over the same size, once with small pages and once with huge
//! ones: the difference is the walk of the page tables, which in a guest has two
//! dimensions. Nothing else changes between the two.

use super::SurveyVerdict;
use crate::finding::{Class, found};
use crate::numbers::{ErrorBars, interval};
use crate::observed::Observed;
use crate::verdict::NoFinding;
use crate::wording::times;
use model::duration::show_ns;
use model::{Bytes, Evidence, Finding, Grade};

/// Small pages must make a load this many times as slow. Seen in a guest: 1.11 at
/// 256 MiB, 1.51 at 1 GiB. Picked: below it the change of pages is not worth its risk.
const LEAST_FACTOR: f64 = 1.25;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure memlat";

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    let seen = observed
        .translation
        .as_ref()
        .ok_or("random loads with small and huge pages were not measured")?;
    let (Some(base), Some(huge)) = (interval(&seen.base_ns), interval(&seen.huge_ns)) else {
        return Err("too few trials of random loads for error bars".into());
    };
    let factor = base.median / huge.median;
    if !base.above(&huge) || factor < LEAST_FACTOR {
        return Err(NoFinding::Nothing);
    }
    let size = Bytes(seen.size_bytes);
    let load = |pages: &str, of: ErrorBars| {
        let name = format!("load, {size}, {pages} pages");
        Evidence::new(name, of.median, "ns", SOURCE)
    };
    let walk = if seen.virtualized {
        "finding its address, by two nested lookups as this is a guest"
    } else {
        "finding its address"
    };
    let pages = observed.pages.as_ref();
    let claim = format!(
        "A random load in {size} takes {} with 4 KiB pages and {} with huge ones: {} of it go \
         into {walk} ({} times as slow).",
        show_ns(base.median),
        show_ns(huge.median),
        show_ns(base.median - huge.median),
        times(factor),
    );
    let finding = Finding {
        remedy: remedy(pages.and_then(|pages| pages.thp_setting.as_deref())),
        ..Finding::new(Grade::Measured, claim, [load("small", base), load("huge", huge)])
            .tier("RAM")
            .confirm("terrace measure memlat")
    };
    found(Class::Level, factor, finding)
}

fn remedy(thp_setting: Option<&str>) -> Option<String> {
    let ask = "In programs with much memory, ask for huge pages (MADV_HUGEPAGE, or \
               GLIBC_TUNABLES=glibc.malloc.hugetlb=1 for malloc)";
    let risk = "Risk: more memory is taken, and a first touch takes longer.";
    match thp_setting {
        // Every large block gets huge pages already.
        Some("always") => None,
        Some("never") => Some(format!("Switch huge pages to `madvise` first. {ask}. {risk}")),
        _ => Some(format!("{ask}. {risk}")),
    }
}
