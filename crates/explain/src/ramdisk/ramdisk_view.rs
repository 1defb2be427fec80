//! What was seen, made ready to be judged: the usual touch, the time lost beyond it, and what
//! grew while the first pass ran.

use crate::verdict::Verdict;
use model::duration::show_ns;
use model::explanation::Cause;
use model::ramdisk::{Pass, RamDiskObservation, Round};
use model::{Evidence, Finding, Grade};

/// The source of what touches show, as evidence gives it.
pub(super) const TOUCHES: &str = "time of each touch";
/// And of what a group counts.
pub(super) const CONTROLLER: &str = "memory controller";
/// From this many times the median on the mean is slow. Picked: on memory that was there it was
/// 1.09 to 1.19, in a group that had to swap to a fast disk 2.1.
const LOST_FROM: f64 = 1.4;
/// The median of new memory is itself slow when it is this many times that of memory that was
/// given back a moment ago.
const SLOW_MEDIAN: f64 = 2.0;

/// What was seen.
pub(super) struct RamDiskView<'a> {
    pub seen: &'a RamDiskObservation,
    pub first: Option<&'a Pass>,
    pub again: Option<&'a Pass>,
    /// The usual touch of new memory, without what made some slow; `None` without touches.
    pub usual_ns: Option<f64>,
}

impl<'a> RamDiskView<'a> {
    pub fn new(seen: &'a RamDiskObservation) -> Self {
        let pass = |round| seen.pass(round).filter(|pass| pass.touches > 0);
        let (first, again) = (pass(Round::First), pass(Round::Again));
        let median = first.and_then(|pass| pass.p50_ns);
        let warm = again.and_then(|pass| pass.p50_ns);
        let usual_ns = median.map(|median| match warm {
            Some(warm) if warm * SLOW_MEDIAN <= median => warm,
            _ => median,
        });
        Self { seen, first, again, usual_ns }
    }

    /// The time of the first pass beyond the usual, without what others took of the processor.
    pub fn lost_ns(&self) -> f64 {
        let lost = || {
            let first = self.first?;
            Some((first.mean_ns()? - self.usual_ns?).max(0.0) * first.touches as f64)
        };
        lost().unwrap_or(0.0)
    }

    /// Whether so much was lost that it needs a reason.
    pub fn is_lost(&self) -> bool {
        let mean = self.first.and_then(Pass::mean_ns).unwrap_or(0.0);
        self.usual_ns.is_some_and(|usual| mean >= usual * LOST_FROM)
    }

    /// What grew in the first pass; `None` where the kernel does not count it.
    pub fn grew(&self, name: &str) -> Option<u64> {
        self.first?.grew.get(name).copied()
    }

    /// The sum of those that are counted here; `None` if none is.
    pub fn grew_any(&self, names: &[&str]) -> Option<u64> {
        let counted = names.iter().filter_map(|name| self.grew(name));
        counted.reduce(u64::saturating_add)
    }

    /// The same as evidence.
    pub fn evidence(&self, name: &str, unit: &str) -> Option<Evidence> {
        let value = self.grew(name)? as f64;
        let source = if name.starts_with("vmstat.") { "/proc/vmstat" } else { CONTROLLER };
        Some(Evidence::new(name, value, unit, source).seen_in([name]))
    }

    /// The growth of those that are counted here.
    pub fn all_evidence(&self, names: &[&str], unit: &str) -> Vec<Evidence> {
        names.iter().filter_map(|name| self.evidence(name, unit)).collect()
    }

    /// The pages written in the first pass.
    pub fn touches(&self) -> u64 {
        self.first.map_or(0, |pass| pass.touches)
    }

    /// Mean and median of the first pass.
    pub fn touch_evidence(&self) -> Vec<Evidence> {
        let each = |name: &str, ns: Option<f64>| Some(Evidence::new(name, ns?, "ns", TOUCHES));
        let mean = each("a page, mean", self.first.and_then(Pass::mean_ns));
        let usual = each("a page, usual", self.usual_ns);
        mean.into_iter().chain(usual).collect()
    }

    /// "2.1 times as long: 6 us a page instead of 2.8 us"
    pub fn price(&self) -> String {
        let mean = self.first.and_then(Pass::mean_ns).unwrap_or(0.0);
        let usual = self.usual_ns.unwrap_or(mean);
        format!("a page took {} instead of {}", show_ns(mean), show_ns(usual))
    }

    /// The cause of the lost time if there is some; else it was cheap, and accounts for none.
    pub fn cause_or_cheap(
        &self,
        clause: &str,
        mut evidence: Vec<Evidence>,
        remedy: &str,
    ) -> Verdict<Cause> {
        evidence.extend(self.touch_evidence());
        if self.is_lost() {
            let claim = format!("{clause}: {}.", self.price());
            let finding = Finding::new(Grade::Measured, claim, evidence).remedy(remedy);
            return Ok(Cause::new(Some(self.lost_ns() as u64), finding));
        }
        let claim = format!("{clause}, which cost nothing here.");
        Ok(Cause::new(None, Finding::new(Grade::Measured, claim, evidence)))
    }
}
