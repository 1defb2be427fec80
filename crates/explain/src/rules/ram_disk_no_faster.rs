//! A RAM disk that reads no faster than the kernel's cache of a disk.
//!
//! Both are pages of the same memory behind the same calls. "No faster" is a claim
//! of equality, so it needs error bars narrow enough to rule out a gain that would
//! matter; without them nothing is claimed.

use super::{SurveyVerdict, check_each};
use crate::finding::{Class, found};
use crate::numbers::{ErrorBars, interval};
use crate::observed::Observed;
use crate::verdict::NoFinding;
use crate::wording::{shell_word, survey_path};
use model::bytes::show_rate;
use model::probe::RamDiskReport;
use model::{Evidence, Finding, Grade};

/// A gain that would matter, and must be ruled out. Picked above the noise of such
/// reads; the published 11.1 to 11.4 against 8.7 to 12.0 GB/s lie within it.
const GAIN_RULED_OUT: f64 = 1.25;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure seqio";

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    check_each(&observed.ram_disks, check_disk, "no RAM disk was measured")
}

fn check_disk(disk: &RamDiskReport) -> SurveyVerdict {
    let path = &disk.path;
    let read = disk.read_bytes_per_s.as_ref().and_then(interval);
    let cached = disk.page_cache_read_bytes_per_s.as_ref().and_then(interval);
    let (Some(read), Some(cached)) = (read, cached) else {
        return Err(format!(
            "reads of {path} and of a cached file were not both measured with error bars"
        )
        .into());
    };
    if read.high >= GAIN_RULED_OUT * cached.low {
        return Err(NoFinding::Nothing);
    }
    let rate = |name, of: ErrorBars| Evidence::new(name, of.median, "bytes_per_s", SOURCE);
    let claim = format!(
        "The RAM disk {path} reads at {}, a cached file of a disk at {}: for reads it is no \
         faster.",
        show_rate(read.median),
        show_rate(cached.median),
    );
    let evidence = [rate("read of the RAM disk", read), rate("read of a cached file", cached)];
    let finding = Finding::new(Grade::Measured, claim, evidence)
        .tier(&disk.tier)
        .remedy(remedy(disk))
        .confirm(survey_path(path));
    // The least of all findings: nothing is slow.
    found(Class::Setting, 1.0, finding)
}

fn remedy(disk: &RamDiskReport) -> String {
    let mut remedy = "Use it for what is written and thrown away; for reads a file on disk \
                      does as well once it is cached, and its memory can be reclaimed. \
                      Risk: the first read of a file on disk is slow."
        .to_owned();
    if disk.huge_setting.as_deref() == Some("never") {
        let path = shell_word(&disk.path);
        remedy.push_str(&format!(
            " Huge pages speed up writes of new files: \
             sudo mount -o remount,huge=within_size {path}. Risk: small files may take more memory."
        ));
    }
    remedy
}
