//! A RAM disk that reads no faster than the kernel's cache of a disk.
//!
//! Both are pages of the same memory behind the same calls. "No faster" is a claim
//! of equality, so it needs error bars narrow enough to rule out a gain that would
//! matter; without them nothing is claimed.

use super::Outcome;
use crate::finding::{Class, Finding, Severity, Told};
use crate::numbers::{Interval, interval};
use crate::observed::{Observed, RamDiskSeen};
use crate::wording::{shell_word, survey_path};
use model::bytes::show_rate;
use model::{Evidence, Grade};

/// The id of this rule's findings.
pub const ID: &str = "ram_disk_no_faster";

/// A gain that would matter, and must be ruled out. Picked above the noise of such
/// reads; the published 11.1 to 11.4 against 8.7 to 12.0 GB/s lie within it.
pub const GAIN_RULED_OUT: f64 = 1.25;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure seqio";

/// Two reads from memory.
#[derive(Clone, Debug, PartialEq)]
pub struct RamDiskNoFaster {
    /// Its tier.
    pub tier: String,
    /// Where it is mounted.
    pub path: String,
    /// Reading it, bytes a second.
    pub ram_disk: Interval,
    /// Reading a cached file of a disk, bytes a second.
    pub page_cache: Interval,
    /// Its `huge=` option, if known.
    pub huge_setting: Option<String>,
}

/// Compares each RAM disk's read with the page cache's.
pub fn check(observed: &Observed) -> Outcome {
    Outcome::of_each(
        observed.ram_disks.iter().map(one),
        "no RAM disk was measured",
    )
}

fn one(disk: &RamDiskSeen) -> Outcome {
    let read = disk.read_bytes_per_s.as_ref().and_then(interval);
    let cached = disk.page_cache_read_bytes_per_s.as_ref().and_then(interval);
    let (Some(ram_disk), Some(page_cache)) = (read, cached) else {
        return Outcome::unchecked(format!(
            "reads of {} and of a cached file were not both measured with error bars",
            disk.path
        ));
    };
    if ram_disk.high >= GAIN_RULED_OUT * page_cache.low {
        return Outcome::Fine;
    }
    Outcome::found(Finding::RamDiskNoFaster(RamDiskNoFaster {
        tier: disk.tier.clone(),
        path: disk.path.clone(),
        ram_disk,
        page_cache,
        huge_setting: disk.huge_setting.clone(),
    }))
}

impl RamDiskNoFaster {
    fn remedy(&self) -> String {
        let mut remedy = "Use it for what is written and thrown away; for reads a file on disk \
                          does as well once it is cached, and its memory can be reclaimed. \
                          Risk: the first read of a file on disk is slow."
            .to_owned();
        if self.huge_setting.as_deref() == Some("never") {
            let path = shell_word(&self.path);
            remedy.push_str(&format!(
                " Huge pages speed up writes of new files: \
                 sudo mount -o remount,huge=within_size {path}. Risk: small files may take more memory."
            ));
        }
        remedy
    }
}

impl Told for RamDiskNoFaster {
    fn report(&self) -> model::Finding {
        model::Finding {
            id: ID.to_owned(),
            claim: format!(
                "The RAM disk {} reads at {}, a cached file of a disk at {}: for reads it is no faster.",
                self.path,
                show_rate(self.ram_disk.median),
                show_rate(self.page_cache.median),
            ),
            tier: Some(self.tier.clone()),
            evidence: vec![
                Evidence::new(
                    "read of the RAM disk",
                    self.ram_disk.median,
                    "bytes_per_s",
                    SOURCE,
                ),
                Evidence::new(
                    "read of a cached file",
                    self.page_cache.median,
                    "bytes_per_s",
                    SOURCE,
                ),
            ],
            grade: Grade::Measured,
            remedy: Some(self.remedy()),
            confirm: Some(survey_path(&self.path)),
        }
    }

    fn severity(&self) -> Severity {
        // The least of all findings: nothing is slow.
        Severity::new(Class::Setting, 1.0)
    }
}
