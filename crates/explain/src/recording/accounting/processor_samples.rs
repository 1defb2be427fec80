//! Where processor time went, by samples: 49 to 397 times a second each processor that runs the
//! subject is looked at, and what it was doing is summed (`trace.cpu.*`).
//!
//! Two divisions of the same samples: by origin (user code, a system call, a kind of page fault,
//! ...) and, of those in the kernel, by the class of what ran (copying, locks, ...). A share of
//! the samples times the exact time is a measured length with an error, which is the 95 %
//! interval of a binomial share (Wilson's, which holds for few samples and shares near 0).

use crate::recording::View;
use crate::verdict::NoFinding;
use model::Evidence;
use model::explanation::TimePart;

/// Fewer samples divide nothing: a half of 20 is known to 20 points at best. Picked: what else
/// would divide it are the kernel's ticks, one each 4 ms of most kernels, which know less.
pub(in crate::recording) const LEAST_SAMPLES: u64 = 20;

/// The quantile of the normal distribution for 95 %.
const Z: f64 = 1.96;

/// The divisions by origin; they add up to all samples.
pub(in crate::recording) const ORIGINS: [(TimePart, &str); 12] = [
    (TimePart::User, "trace.cpu.in.user"),
    (TimePart::SystemCalls, "trace.cpu.in.call"),
    (TimePart::FirstTouch, "trace.cpu.in.fault_first_touch"),
    (TimePart::CopyOnWrite, "trace.cpu.in.fault_copy_on_write"),
    (TimePart::FileFault, "trace.cpu.in.fault_file"),
    (TimePart::SwapFault, "trace.cpu.in.fault_swap"),
    (TimePart::OtherFault, "trace.cpu.in.fault_other"),
    (TimePart::ReclaimRun, "trace.cpu.in.reclaim"),
    (TimePart::Interrupts, "trace.cpu.in.interrupt"),
    (TimePart::SoftInterrupts, "trace.cpu.in.softirq"),
    (TimePart::KernelThread, "trace.cpu.in.kernel_thread"),
    (TimePart::OtherKernel, "trace.cpu.in.other"),
];

/// The divisions of what is not user code by the class of the kernel's function.
pub(in crate::recording) const CLASSES: [(TimePart, &str); 9] = [
    (TimePart::KernelCopying, "trace.cpu.kernel.copying"),
    (TimePart::KernelClearing, "trace.cpu.kernel.clearing"),
    (TimePart::KernelFileSystem, "trace.cpu.kernel.file_system"),
    (TimePart::KernelNetwork, "trace.cpu.kernel.network"),
    (TimePart::KernelLocks, "trace.cpu.kernel.locks"),
    (TimePart::KernelMemory, "trace.cpu.kernel.memory"),
    (TimePart::KernelScheduling, "trace.cpu.kernel.scheduling"),
    (TimePart::KernelBlock, "trace.cpu.kernel.block"),
    (TimePart::KernelUnclassified, "trace.cpu.kernel.other"),
];

/// What the series of one system call are called before its name.
pub(in crate::recording) const CALL: &str = "trace.cpu.call.";

/// What the series of what a call to read or write does beside itself are called before the name
/// of the call.
pub(in crate::recording) const WITHIN: &str = "trace.cpu.within.";

/// What stands for the name of a call in those of page faults on files.
pub(in crate::recording) const FILE_FAULT: &str = "fault_file";

const SAMPLES: &str = "trace.cpu.samples";
const USER: &str = "trace.cpu.in.user";

/// The samples of a view.
#[derive(Clone, Copy, Debug)]
pub(in crate::recording) struct ProcessorSamples<'a> {
    view: &'a View<'a>,
    /// All of them.
    pub all: u64,
}

/// A time that was sampled.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::recording) struct SampledTime {
    /// The likeliest length.
    pub ns: u64,
    /// The ends of its 95 % interval.
    pub low_ns: u64,
    /// The longer end.
    pub high_ns: u64,
    /// What it was computed from.
    pub evidence: Vec<Evidence>,
}

impl SampledTime {
    /// The verdict on what took too little of it.
    pub(in crate::recording) fn cleared(self) -> NoFinding {
        self.evidence.into_iter().next().map_or(NoFinding::Nothing, NoFinding::Cleared)
    }
}

impl<'a> ProcessorSamples<'a> {
    /// The samples of `view`, however few; `None` where processors were not sampled.
    pub(in crate::recording) fn any(view: &'a View<'a>) -> Option<Self> {
        let said = view.sum(SAMPLES)?;
        // The divisions add up to the samples, unless a file is damaged: no share is above 1 then.
        let origins = ORIGINS.iter().filter_map(|(_, series)| view.sum(series));
        let all = said.max(origins.fold(0, u64::saturating_add));
        Some(Self { view, all })
    }

    /// The samples of `view`, where they are enough to divide a time.
    pub(in crate::recording) fn of(view: &'a View<'a>) -> Option<Self> {
        Self::any(view).filter(|samples| samples.all >= LEAST_SAMPLES)
    }

    /// The part of `run_ns` spent on what any of `series` counts, of which one that is absent
    /// was never met. The series must not overlap.
    pub(in crate::recording) fn time<'s>(
        &self,
        series: impl IntoIterator<Item = &'s str>,
        run_ns: u64,
    ) -> SampledTime {
        let counted: Vec<(&str, u64)> =
            series.into_iter().filter_map(|name| Some((name, self.view.sum(name)?))).collect();
        let hits = counted.iter().fold(0, |sum: u64, (_, hits)| sum.saturating_add(*hits));
        let names = counted.iter().map(|(name, _)| *name).chain([SAMPLES]);
        self.share_of(hits.min(self.all), run_ns, names)
    }

    /// The part of `run_ns` spent on what `series` count and `apart` do not; each of the latter is
    /// a part of one of the former.
    pub(in crate::recording) fn time_without<'s>(
        &self,
        series: impl IntoIterator<Item = &'s str>,
        apart: impl IntoIterator<Item = &'s str>,
        run_ns: u64,
    ) -> SampledTime {
        let known = |name: &'s str| Some((name, self.view.sum(name)?));
        let counted: Vec<(&str, u64)> = series.into_iter().filter_map(known).collect();
        let apart: Vec<(&str, u64)> = apart.into_iter().filter_map(known).collect();
        let sum = |counted: &[(&str, u64)]| {
            counted.iter().fold(0u64, |sum, (_, hits)| sum.saturating_add(*hits))
        };
        let hits = sum(&counted).saturating_sub(sum(&apart));
        let names = counted.iter().chain(&apart).map(|(name, _)| *name).chain([SAMPLES]);
        self.share_of(hits.min(self.all), run_ns, names)
    }

    /// The part of `run_ns` outside of user code.
    pub(in crate::recording) fn kernel(&self, run_ns: u64) -> SampledTime {
        let user = self.view.sum(USER).unwrap_or(0).min(self.all);
        let inside = ORIGINS.iter().map(|(_, series)| *series).filter(|series| *series != USER);
        let recorded = inside.filter(|series| self.view.sum(series).is_some_and(|hits| hits > 0));
        self.share_of(self.all - user, run_ns, recorded.chain([SAMPLES]))
    }

    /// The system calls by their samples, most first: the name, the series, and the time.
    pub(in crate::recording) fn calls(&self, run_ns: u64) -> Vec<(&'a str, SampledTime)> {
        let sampled = self.view.starting_with(CALL).filter_map(|series| {
            let name = series.schema.name.as_str();
            let call = name.strip_prefix(CALL)?;
            let time = self.time([name], run_ns);
            (time.ns > 0).then_some((call, time))
        });
        let mut calls: Vec<_> = sampled.collect();
        calls.sort_by(|a, b| b.1.ns.cmp(&a.1.ns).then(a.0.cmp(b.0)));
        calls
    }

    fn share_of<'s>(
        &self,
        hits: u64,
        run_ns: u64,
        series: impl Iterator<Item = &'s str>,
    ) -> SampledTime {
        let (low, high) = interval(hits, self.all);
        let part = |share: f64| ((run_ns as f64 * share) as u64).min(run_ns);
        // In whole numbers, so that all parts together are no more than the whole.
        let exact = u128::from(run_ns) * u128::from(hits) / u128::from(self.all.max(1));
        let ns = u64::try_from(exact).unwrap_or(run_ns);
        let series: Vec<&str> = series.collect();
        let source = match self.view.source(SAMPLES) {
            "" => "cpu-clock",
            named => named,
        };
        let (low_ns, high_ns) = (part(low).min(ns), part(high).max(ns));
        let time = |name: &str, ns| Evidence::time(name, ns, source).seen_in(&series);
        let evidence = vec![
            time("sampled", ns),
            time("at least (95 %)", low_ns),
            time("at most (95 %)", high_ns),
            Evidence::count("samples", hits, source).seen_in(&series),
            Evidence::count("samples of all", self.all, source).seen_in([SAMPLES]),
        ];
        SampledTime { ns, low_ns, high_ns, evidence }
    }
}

/// The 95 % interval of a share of which `hits` of `all` samples were seen: Wilson's.
pub(in crate::recording) fn interval(hits: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let n = all as f64;
    let share = (hits.min(all)) as f64 / n;
    let spread = Z * Z / n;
    let centre = share + spread / 2.0;
    let half = Z * (share * (1.0 - share) / n + spread / (4.0 * n)).sqrt();
    let whole = 1.0 + spread;
    (((centre - half) / whole).clamp(0.0, 1.0), ((centre + half) / whole).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::interval;

    fn percent((low, high): (f64, f64)) -> (f64, f64) {
        let round = |share: f64| (share * 1000.0).round() / 10.0;
        (round(low), round(high))
    }

    /// Figures of Newcombe (1998), Statistics in Medicine 17, table I, Wilson's method.
    #[test]
    fn the_interval_is_wilsons() {
        assert_eq!(percent(interval(81, 263)), (25.5, 36.6));
        assert_eq!(percent(interval(15, 148)), (6.2, 16.0));
        assert_eq!(percent(interval(0, 20)), (0.0, 16.1));
        assert_eq!(percent(interval(1, 29)), (0.6, 17.2));
    }

    #[test]
    fn no_sample_says_nothing() {
        assert_eq!(interval(0, 0), (0.0, 1.0));
        assert!(interval(u64::MAX, 1).1 <= 1.0);
    }
}
