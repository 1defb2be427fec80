//! Page faults without I/O on new memory: how many, and the time of first touches where
//! processors were sampled.
//!
//! Without samples the time is not known: a fault was seen to cost from 0.3 us to 60 us, by the
//! machine below, so no price is assumed. Then the kernel time is the most that it can be.

use super::RunView;
use crate::recording::accounting::processor_samples::SampledTime;
use model::Evidence;
use model::explanation::TimePart;

/// What a guest without a processor of its own is called; with KVM it says so.
const EMULATED: &str = "QEMU guest";

/// The faults of a subject and the kernel time that they are part of.
#[derive(Clone, Debug)]
pub(super) struct Touched {
    /// Faults without I/O, of which first touches are a part.
    pub(super) faults: u64,
    /// Kernel time, all of it.
    pub(super) kernel_ns: u64,
    /// The time of first touches, if it was sampled.
    pub(super) time: Option<SampledTime>,
}

impl Touched {
    /// The most that first touches can have taken: their time, else the kernel time. On an
    /// emulated processor everything is dear, so that bounds nothing.
    pub(super) fn most_ns(&self, run: &RunView) -> Option<u64> {
        let kernel_ns = (!is_emulated(run)).then_some(self.kernel_ns);
        self.time.as_ref().map_or(kernel_ns, |time| Some(time.ns))
    }

    /// The faults as evidence.
    pub(super) fn evidence(&self) -> Evidence {
        let faults = self.faults as f64;
        Evidence::new("minor faults", faults, "count", "/proc/PID/stat")
            .seen_in(["tree.minor_faults"])
    }
}

/// The faults of the subject; `None` where they or the kernel time are not known.
pub(super) fn touched(run: &RunView) -> Option<Touched> {
    let faults = run.minor_faults()?;
    let kernel_ns = run.kernel_ns()?;
    Some(Touched { faults, kernel_ns, time: run.sampled(TimePart::FirstTouch) })
}

/// Whether the processor is emulated.
pub(super) fn is_emulated(run: &RunView) -> bool {
    let machine = run.facts().machine.as_ref();
    let kind = machine.and_then(|machine| machine.virtualization.as_deref());
    kind.is_some_and(|kind| kind.contains(EMULATED))
}

/// How much more memory the subject held than at its start, at the most that was seen.
pub(super) fn grown_bytes(run: &RunView) -> u64 {
    let rise = |name: &str| {
        let start = run.at_start(name).unwrap_or(0);
        let most = run.max(name).unwrap_or(start);
        u64::try_from(most.saturating_sub(start)).unwrap_or(0)
    };
    let largest = run.usage().map_or(0, |usage| usage.max_rss_bytes);
    rise("tree.rss_bytes").max(largest)
}
