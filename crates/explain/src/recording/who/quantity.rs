//! What users are compared by: a figure of their rows, or a quantity that is made of several.
//! Its names in JSON and in sentences.

use super::shares;
use super::sums::{ProcessSum, SharedSum};
use model::recording::{ProcessFigure, SampledPart};

/// A quantity of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A figure as it is.
    Figure(ProcessFigure),
    /// By how much its memory grew, bytes.
    MemoryGrowth,
    /// Its memory at its highest level, bytes.
    MemoryHeld,
    /// What it added to the page cache that had not just been evicted, bytes: it took the place of
    /// other pages, while what was read again only came back.
    CacheFilled,
    /// What it read from devices and wrote to them, bytes.
    DeviceBytes,
    /// The time that it spent freeing memory and waiting for what had been evicted or swapped, ns.
    LackOfMemory,
    /// Samples of processors that met it at this.
    Sampled(SampledPart),
    /// Samples of processors that met it outside of user code.
    SampledKernel,
}

use ProcessFigure as Figure;

impl Quantity {
    /// Its name in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Figure(figure) => figure.id(),
            Self::MemoryGrowth => "memory_growth",
            Self::MemoryHeld => "memory_held",
            Self::CacheFilled => "cache_filled",
            Self::DeviceBytes => "device_bytes",
            Self::LackOfMemory => "lack_of_memory",
            Self::Sampled(part) => part.id(),
            Self::SampledKernel => "kernel",
        }
    }

    /// The unit of its values: `ns`, `bytes`, `count` or `samples`.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Figure(figure) => figure.unit(),
            Self::Sampled(_) | Self::SampledKernel => "samples",
            Self::LackOfMemory => "ns",
            _ => "bytes",
        }
    }

    /// Whether it is counted by samples, so that a share of it has an error.
    pub const fn is_sampled(self) -> bool {
        matches!(self, Self::Sampled(_) | Self::SampledKernel)
    }

    /// How much of it a process has.
    pub fn of(self, sum: &ProcessSum) -> SharedSum {
        match self {
            Self::Figure(figure) => sum.get(figure),
            Self::MemoryGrowth => sum.memory_growth,
            Self::MemoryHeld => sum.memory_held,
            Self::CacheFilled => {
                let (added, again) = (sum.get(Figure::CacheAdded), sum.get(Figure::Refaulted));
                SharedSum {
                    value: added.value.saturating_sub(again.value),
                    shared: added.shared.saturating_sub(again.shared),
                }
            }
            Self::DeviceBytes => sum.device_bytes[0].plus(sum.device_bytes[1]),
            Self::LackOfMemory => sum.get(Figure::Reclaim).plus(shares::waited_again(sum)),
            Self::Sampled(part) => sum.sampled(part),
            Self::SampledKernel => sum.in_kernel(),
        }
    }

    /// What all of it is called, as in "the first of them had 9 % of the processor time".
    pub const fn whole_in_words(self) -> &'static str {
        match self {
            Self::Figure(Figure::Cpu) => "the processor time",
            Self::Figure(Figure::Queue) => "the waiting for processors",
            Self::Figure(Figure::BlockWait) => "the waiting for block I/O",
            Self::Figure(Figure::Reclaim) => "the time spent freeing memory",
            Self::Figure(Figure::ReadBytes) => "the bytes read",
            Self::Figure(Figure::WrittenBytes) => "the bytes written",
            Self::Figure(Figure::MajorFaults | Figure::MinorFaults) => "the page faults",
            Self::Figure(Figure::CacheAdded) | Self::CacheFilled => "what filled the page cache",
            Self::Figure(Figure::Refaulted) => "what was read again",
            Self::Figure(Figure::SwappedIn) => "what came back from swap",
            Self::MemoryGrowth => "the memory that was taken",
            Self::MemoryHeld => "the memory",
            Self::DeviceBytes => "the bytes read and written",
            Self::LackOfMemory => "the time lost for lack of memory",
            Self::Sampled(_) | Self::SampledKernel => "this time",
        }
    }
}
