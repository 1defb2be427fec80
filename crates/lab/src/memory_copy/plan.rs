//! What will be measured, checked before anything is touched: sizes by the caches of this machine,
//! memory by what can be had, and each part's share of the time.

use crate::error::Result;
use crate::output_directory;
use machine::Root;
use measure::memory::PageKind;
use measure::memory::arena;
use measure::memory::classic::METHODS;
use measure::memory::copy::CopyPlan;
use measure::trial::Schedule;
use model::Bytes;
use std::path::PathBuf;
use std::time::Duration;

/// The original's block, and how often it was copied.
pub const ARTICLE_BYTES: u64 = 16 << 20;
/// Passes over it.
pub const PASSES: u64 = 8;

/// Two buffers of this size fit the second cache of every processor of the last ten years.
pub const CACHED_BYTES: u64 = 64 << 10;

/// Block sizes below that of main memory.
pub const SIZES: [u64; 5] = [16 << 10, CACHED_BYTES, 1 << 20, 4 << 20, ARTICLE_BYTES];

/// A buffer of main memory is larger: up to this size the probe brings it into the caches.
const LEAST_MEMORY: u64 = 64 << 20;

/// Each part's share of the time, in percent; together 100.
pub mod percent {
    pub const TABLE: u32 = 8;
    pub const CONTROL: u32 = 2;
    pub const MOVERS: u32 = 4;
    pub const BLOCKS: u32 = 40;
    pub const TWO_CORES: u32 = 14;
    pub const STRIDES: u32 = 20;
    pub const LOADS: u32 = 12;
}

/// What will be done.
#[derive(Clone, Debug)]
pub struct MemoryCopyPlan {
    /// Time for everything.
    pub budget: Duration,
    /// The size that stands for main memory; `None` where not enough can be had.
    pub memory_bytes: Option<u64>,
    /// Whether a second core can be asked.
    pub second_core: bool,
    /// Where the result is kept; not kept if absent.
    pub out: Option<PathBuf>,
    /// What cannot be measured here.
    pub notes: Vec<String>,
}

impl MemoryCopyPlan {
    /// Checks what the user chose and makes the plan; `main_memory_bytes` is a buffer that no cache
    /// of this machine holds.
    ///
    /// # Errors
    /// `Usage` for a directory that is taken, `Impossible` where two blocks of 2001 do not fit.
    pub fn new(
        out: Option<PathBuf>,
        budget: Duration,
        main_memory_bytes: u64,
        root: &Root,
    ) -> Result<Self> {
        output_directory::check_options(out.as_deref(), None)?;
        arena::check_fits(root, 2 * ARTICLE_BYTES)?;
        // Both buffers of a copy lie in it.
        let memory = main_memory_bytes / 2;
        let memory_bytes = Some(memory).filter(|&bytes| bytes > LEAST_MEMORY);
        let second_core = sys::affinity::allowed().is_ok_and(|allowed| allowed.len() > 1);
        let mut notes = Vec::new();
        if memory_bytes.is_none() {
            notes.push("main memory: too little can be had, so the limits stay open".to_owned());
        }
        if !second_core {
            notes.push("two cores: this process may use one only".to_owned());
        }
        Ok(Self { budget, memory_bytes, second_core, out, notes })
    }

    /// What is said before anything is done.
    pub fn announcement(&self) -> String {
        let cores = 1 + u64::from(self.second_core);
        let bytes = 2 * self.memory_bytes.unwrap_or(ARTICLE_BYTES) * cores;
        format!(
            "copies within {} of memory for up to {} s and changes nothing; Ctrl-C prints what there is",
            Bytes(bytes),
            self.budget.as_secs_f64()
        )
    }

    /// The time of a part with this share.
    pub fn share(&self, percent: u32) -> Duration {
        self.budget * percent / 100
    }

    /// All methods, the loops as compiled, and such `counterparts` as this processor has, at every
    /// size.
    pub fn blocks(&self, counterparts: &[&str]) -> CopyPlan {
        let compiled = METHODS[1..].iter().map(|name| format!("{name}-compiled"));
        let present = |name: &&str| memops::find(name).is_some_and(|one| one.absent().is_none());
        let counterparts = counterparts.iter().copied().filter(present);
        let methods = METHODS.into_iter().chain(counterparts).map(str::to_owned);
        CopyPlan {
            methods: methods.chain(compiled).collect(),
            sizes: SIZES.into_iter().chain(self.memory_bytes).collect(),
            budget: self.share(percent::BLOCKS),
            schedule: Schedule {
                // More rounds than this narrow no verdict; they leave time for main memory.
                rounds: 40,
                ..Schedule::default()
            },
            ..CopyPlan::default()
        }
    }

    /// The seven methods in main memory by two cores; `None` where there is no second one, or
    /// no such memory.
    pub fn two_cores(&self) -> Option<CopyPlan> {
        let size = self.memory_bytes.filter(|_| self.second_core)?;
        Some(CopyPlan {
            methods: METHODS.map(str::to_owned).to_vec(),
            sizes: vec![size],
            threads: 2,
            budget: self.share(percent::TWO_CORES),
            ..CopyPlan::default()
        })
    }

    /// One loop over one buffer, walked down the columns of a matrix of `stride` columns.
    pub fn stride(&self, size: u64, stride: usize, pages: PageKind, passes: u32) -> CopyPlan {
        CopyPlan {
            methods: vec!["int64".to_owned()],
            sizes: vec![size],
            stride,
            pages,
            budget: self.share(percent::STRIDES) / passes,
            ..CopyPlan::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn the_parts_share_all_of_the_time() {
        use percent::{BLOCKS, CONTROL, LOADS, MOVERS, STRIDES, TABLE, TWO_CORES};
        assert_eq!(TABLE + CONTROL + MOVERS + BLOCKS + TWO_CORES + STRIDES + LOADS, 100);
    }
}
