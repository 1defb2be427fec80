//! What the rules about the processor share: access to its counters, and the factor by
//! which lost time slows work down.

use crate::observed::Observed;
use model::probe::ProcessorLoad;

/// The processors' counters, or why no rule about them can judge.
pub(super) fn processor(observed: &Observed) -> Result<&ProcessorLoad, String> {
    let processor = observed.processor.as_ref();
    processor.ok_or_else(|| "the processors' time was not counted".to_owned())
}

/// How many times as long work takes that loses `share` of its time: 1.25 for 20 %.
pub(super) fn slowdown(share: f64) -> f64 {
    1.0 / (1.0 - share).max(0.01)
}
