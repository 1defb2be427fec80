//! The findings as a type: one variant for each rule, with that rule's numbers.
//!
//! How a finding is told lies beside its rule; here is only what all share: the
//! list of the variants and the order in which a person should read them.

use crate::rules::{
    cache_size_differs::CacheSizeDiffers, device_flag_at_odds::DeviceFlagAtOdds,
    device_read_ahead_at_odds::DeviceReadAheadAtOdds,
    device_scheduler_at_odds::DeviceSchedulerAtOdds,
    device_served_by_host_cache::DeviceServedByHostCache, libc_copy_slow::LibcCopySlow,
    memory_backed_lazily::MemoryBackedLazily, memory_goes_cold_again::MemoryGoesColdAgain,
    no_swap::NoSwap, processor_crowded::ProcessorCrowded, processor_stolen::ProcessorStolen,
    processor_throttled::ProcessorThrottled, ram_disk_no_faster::RamDiskNoFaster,
    result_noisy::ResultNoisy, swap_on_slow_device::SwapOnSlowDevice,
    thp_not_granted::ThpNotGranted, thp_off::ThpOff, translation_costly::TranslationCostly,
    volume_limit_bandwidth::VolumeLimitBandwidth, volume_limit_requests::VolumeLimitRequests,
};
use std::cmp::Ordering;

/// Something odd that a rule found, with the numbers that it found it by.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The C library's memcpy is slower than another copy on the same memory.
    LibcCopySlow(LibcCopySlow),
    /// The host finds memory for this guest only when it is first touched.
    MemoryBackedLazily(MemoryBackedLazily),
    /// Freed memory goes back to the host and is slow to touch again.
    MemoryGoesColdAgain(MemoryGoesColdAgain),
    /// A cache is not as large as something on this machine claims.
    CacheSizeDiffers(CacheSizeDiffers),
    /// Transparent huge pages are switched off.
    ThpOff(ThpOff),
    /// Huge pages were asked for and not given.
    ThpNotGranted(ThpNotGranted),
    /// Finding the address of small pages costs much of each random access.
    TranslationCostly(TranslationCostly),
    /// The kernel takes a device for a rotating disk, or not, wrongly.
    DeviceFlagAtOdds(DeviceFlagAtOdds),
    /// The request scheduler does not fit the device.
    DeviceSchedulerAtOdds(DeviceSchedulerAtOdds),
    /// The read-ahead is too small for the device.
    DeviceReadAheadAtOdds(DeviceReadAheadAtOdds),
    /// A volume stops at a bandwidth whatever the queue depth.
    VolumeLimitBandwidth(VolumeLimitBandwidth),
    /// A volume stops at a number of requests a second.
    VolumeLimitRequests(VolumeLimitRequests),
    /// Something below this system answers reads of fresh data from its memory.
    DeviceServedByHostCache(DeviceServedByHostCache),
    /// A RAM disk reads no faster than the kernel's cache of a disk.
    RamDiskNoFaster(RamDiskNoFaster),
    /// The host took the processor away during the survey.
    ProcessorStolen(ProcessorStolen),
    /// A CPU limit stopped the survey again and again.
    ProcessorThrottled(ProcessorThrottled),
    /// Other programs held the processor during the survey.
    ProcessorCrowded(ProcessorCrowded),
    /// Swap lies on a slow device.
    SwapOnSlowDevice(SwapOnSlowDevice),
    /// There is no swap.
    NoSwap(NoSwap),
    /// Trials of some levels disagree too much to be leant on.
    ResultNoisy(ResultNoisy),
}

/// What a finding is about, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It takes time from every program, whatever the program does.
    Everything,
    /// It makes one level slower than it could be.
    Level,
    /// It makes a figure of the survey mean less than it seems to.
    Doubt,
    /// A setting that costs nothing until something else happens.
    Setting,
}

/// How much a finding hurts: its class first, then the factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Severity {
    /// What it is about.
    pub class: Class,
    /// How many times slower (or further off) the thing is than it could be; at
    /// least 1, comparable only inside one class.
    pub factor: f64,
}

impl Severity {
    /// A severity; a `factor` that is no number counts as 1.
    pub fn new(class: Class, factor: f64) -> Self {
        // `max` returns the other value when one is NaN.
        let factor = factor.max(1.0);
        Self { class, factor }
    }

    /// The order for a sort that puts the worst first.
    pub fn worst_first(&self, other: &Self) -> Ordering {
        self.class
            .cmp(&other.class)
            .then(other.factor.total_cmp(&self.factor))
    }
}

/// What a rule's numbers can do once they are a finding.
pub(crate) trait Told {
    /// The finding as it is shown.
    fn report(&self) -> model::Finding;
    /// How much it hurts.
    fn severity(&self) -> Severity;
}

impl Finding {
    /// The finding as it is shown: claim, evidence, grade, remedy.
    pub fn report(&self) -> model::Finding {
        self.told().report()
    }

    /// How much it hurts.
    pub fn severity(&self) -> Severity {
        self.told().severity()
    }

    fn told(&self) -> &dyn Told {
        match self {
            Finding::LibcCopySlow(told) => told,
            Finding::MemoryBackedLazily(told) => told,
            Finding::MemoryGoesColdAgain(told) => told,
            Finding::CacheSizeDiffers(told) => told,
            Finding::ThpOff(told) => told,
            Finding::ThpNotGranted(told) => told,
            Finding::TranslationCostly(told) => told,
            Finding::DeviceFlagAtOdds(told) => told,
            Finding::DeviceSchedulerAtOdds(told) => told,
            Finding::DeviceReadAheadAtOdds(told) => told,
            Finding::VolumeLimitBandwidth(told) => told,
            Finding::VolumeLimitRequests(told) => told,
            Finding::DeviceServedByHostCache(told) => told,
            Finding::RamDiskNoFaster(told) => told,
            Finding::ProcessorStolen(told) => told,
            Finding::ProcessorThrottled(told) => told,
            Finding::ProcessorCrowded(told) => told,
            Finding::SwapOnSlowDevice(told) => told,
            Finding::NoSwap(told) => told,
            Finding::ResultNoisy(told) => told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_counts_before_the_factor() {
        let everything = Severity::new(Class::Everything, 1.1);
        let level = Severity::new(Class::Level, 10.0);
        let milder = Severity::new(Class::Level, 1.5);
        assert_eq!(everything.worst_first(&level), Ordering::Less);
        assert_eq!(level.worst_first(&milder), Ordering::Less);
        assert_eq!(Severity::new(Class::Level, f64::NAN).factor, 1.0);
    }
}
