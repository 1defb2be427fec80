//! Memory that the host finds only when the guest first touches it.
//!
//! No counter of the guest moves: the fault counts are the same, no swap, no
//! reclaim. Only the time of single faults shows it, by a second mode far above
//! the first, or by all of them being far slower than faults on memory that was
//! touched a moment ago. If memory touched a moment ago is as slow, it is
//! something else.

use super::SurveyVerdict;
use crate::finding::{Class, RankedFinding};
use crate::numbers::{share, sound};
use crate::observed::{FaultKind, Observed};
use crate::verdict::NoFinding;
use crate::wording::{count, percent};
use model::duration::show_ns;
use model::{Bytes, Evidence, Finding, Grade};

/// The slow faults must take this many times as long as the fast ones. Seen: 9 to
/// 11 for 4 KiB, 58 to 100 for 2 MiB; the kernel's own faults vary by 1.3.
const APART: f64 = 4.0;

/// The least share of slow faults. Seen: 44 % on new memory, 9 % on a second
/// pass, 2 % in the steady state, which nothing can mend.
const LEAST_SHARE: f64 = 0.05;

/// Fewer faults than this have no distribution to speak of.
const LEAST_FAULTS: u64 = 200;

/// Huge pages need fewer: each fault zeroes 2 MiB, whose time hardly varies
/// (85 to 92 us were seen, against 5.1 ms and more where the host has no page).
const LEAST_HUGE_FAULTS: u64 = 16;

/// A base-page fault this slow is more than a page found: the host had to make
/// room, as its own swap or a full host does. Seen for plain backing: 10 to 20 us.
const HOST_SHORT_NS: f64 = 100_000.0;

/// A probe's name, as evidence gives it.
const SOURCE: &str = "measure faults";

/// The fast and the slow faults of one page size.
struct Split<'a> {
    kind: &'a FaultKind,
    /// Median of the fast ones.
    fast_ns: f64,
    /// Median of the slow ones.
    slow_ns: f64,
    /// Share of the slow ones, 0 to 1.
    slow_share: f64,
    /// Median fault on memory touched a moment ago.
    again_ns: Option<f64>,
}

pub(super) fn check(observed: &Observed) -> SurveyVerdict {
    let faults = observed.faults.as_ref().ok_or("first touch of memory was not measured")?;
    if !faults.virtualized {
        // Without a host beneath, memory that the kernel hands out is there.
        return Err(NoFinding::Nothing);
    }
    let kinds = [
        (faults.base.as_ref(), faults.again_ns.and_then(sound)),
        (faults.huge.as_ref(), faults.huge_again_ns.and_then(sound)),
    ];
    let splits: Vec<Split> =
        kinds.into_iter().filter_map(|(kind, again_ns)| split(kind?, again_ns)).collect();
    if splits.is_empty() {
        let why = "too few page faults were timed, or none on memory touched a moment ago";
        return Err(why.into());
    }
    let lazy = splits.iter().find(|split| split.is_lazy()).filter(|split| !split.is_slow_again());
    Ok(vec![lazy.ok_or(NoFinding::Nothing)?.finding()])
}

/// The fast and the slow faults of one page size; `None` if the numbers cannot
/// separate them.
fn split(kind: &FaultKind, again_ns: Option<f64>) -> Option<Split<'_>> {
    let least = match kind.page_bytes {
        0..=65_536 => LEAST_FAULTS,
        _ => LEAST_HUGE_FAULTS,
    };
    if kind.faults < least {
        return None;
    }
    let (fast_ns, slow_ns, slow_share) = match (kind.modes, again_ns) {
        (Some(modes), _) => {
            (sound(modes.fast_ns)?, sound(modes.slow_ns)?, share(modes.slow_share)?.min(1.0))
        }
        // One mode: new memory as a whole against memory touched a moment ago.
        (None, Some(again_ns)) => (again_ns, sound(kind.p50_ns?)?, 1.0),
        (None, None) => return None,
    };
    Some(Split { kind, fast_ns, slow_ns, slow_share, again_ns })
}

impl Split<'_> {
    fn is_lazy(&self) -> bool {
        self.slow_ns >= APART * self.fast_ns && self.slow_share >= LEAST_SHARE
    }

    /// Whether memory touched a moment ago is as slow as new memory: then reclaim, a
    /// memory limit or a slow kernel costs the time, and not the host's backing.
    fn is_slow_again(&self) -> bool {
        let again_ns = self.again_ns;
        again_ns.is_some_and(|again_ns| again_ns * APART > self.slow_ns)
    }

    fn claim(&self) -> String {
        let host = if self.slow_ns >= HOST_SHORT_NS && self.kind.page_bytes <= 1 << 16 {
            "the host seems short of memory and makes room first"
        } else {
            "the host backs memory only when it is first touched"
        };
        let slow = show_ns(self.slow_ns);
        let fast = show_ns(self.fast_ns);
        let of = count(self.kind.faults);
        let mut claim = if self.slow_share >= 1.0 {
            format!(
                "New memory costs {slow} a page, memory touched a moment ago {fast} ({of} \
                 faults): {host}."
            )
        } else {
            let share = percent(self.slow_share);
            format!("New memory costs {slow} instead of {fast} for {share} of {of} pages: {host}.")
        };
        if let Some(rate) = sound(self.kind.bytes_per_s) {
            let seconds = show_ns(2f64.powi(30) / rate * 1e9);
            claim.push_str(&format!(" The first GiB takes {seconds} to fill."));
        }
        claim
    }

    fn evidence(&self) -> Vec<Evidence> {
        let page = Bytes(self.kind.page_bytes);
        let ns = |name: &str, ns| Evidence::new(name, ns, "ns", SOURCE);
        let rate = |rate| Evidence::new("new memory filled", rate, "bytes_per_s", SOURCE);
        let mut evidence = vec![
            ns(&format!("fast fault, {page}"), self.fast_ns),
            ns(&format!("slow fault, {page}"), self.slow_ns),
            Evidence::new("slow faults", self.slow_share, "ratio", SOURCE),
            Evidence::count("faults timed", self.kind.faults, SOURCE),
        ];
        evidence.extend(sound(self.kind.bytes_per_s).map(rate));
        let again = "fault on memory touched a moment ago";
        evidence.extend(self.again_ns.map(|again_ns| ns(again, again_ns)));
        evidence
    }

    fn finding(&self) -> RankedFinding {
        // The times are measured; what the host does cannot be seen from here.
        let finding = Finding::new(Grade::Inferred, self.claim(), self.evidence())
            .tier("RAM, new")
            .remedy(
                "Touch memory before it is needed (MADV_POPULATE_WRITE, or one pass at the start) \
                 and keep it, or ask for a machine whose memory is reserved. \
                 Risk: memory that is held idle is missing elsewhere.",
            )
            .confirm("terrace measure faults");
        // The mean cost of a page, against a fast one.
        let mean = 1.0 + self.slow_share * (self.slow_ns / self.fast_ns - 1.0);
        RankedFinding::new(Class::Level, mean, finding)
    }
}
