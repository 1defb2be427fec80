//! What all threads of the machine together used, as the kernel charged it (`bpf/totals.h`): living
//! ones are summed by the walk over the tasks, ended ones were at their end.
//!
//! Ended ones are read before the walk: a thread that ends between the two is in neither until the
//! next walk, and never in both.

use super::objects::{Maps, TOTALS};
use crate::collect::{TREE_FIGURES, TreeTotals};

/// Places behind the sums.
const THREADS: usize = TREE_FIGURES;
const PROCESSES: usize = THREADS + 1;
const MEMORY_PAGES: usize = PROCESSES + 1;
const _: () = assert!(MEMORY_PAGES + 1 == TOTALS);

/// The sums before a walk.
#[derive(Debug)]
pub struct BeforeWalk {
    living: [u64; TOTALS],
    ended: [u64; TOTALS],
}

impl BeforeWalk {
    /// Reads them.
    ///
    /// # Errors
    /// As of the maps.
    pub fn read(maps: &Maps) -> sys::Result<Self> {
        let mut ended = [0; TOTALS];
        for of_processor in maps.ended.read()?.iter() {
            add(&mut ended, of_processor);
        }
        Ok(Self { living: maps.living.get(0)?, ended })
    }

    /// What all used, once the walk is over.
    ///
    /// # Errors
    /// As of the maps.
    pub fn totals(&self, maps: &Maps) -> sys::Result<TreeTotals> {
        let mut found = maps.living.get(0)?;
        for (found, before) in found.iter_mut().zip(self.living) {
            *found = found.wrapping_sub(before);
        }
        let mut all = self.ended;
        add(&mut all, &found);
        let mut sums = [0; TREE_FIGURES];
        sums.copy_from_slice(&all[..TREE_FIGURES]);
        Ok(TreeTotals {
            sums,
            processes: found[PROCESSES],
            threads: found[THREADS],
            rss_bytes: found[MEMORY_PAGES] * sys::process::page_bytes() as u64,
            seen: all[PROCESSES],
        })
    }
}

fn add(to: &mut [u64; TOTALS], more: &[u64; TOTALS]) {
    for (to, more) in to.iter_mut().zip(more) {
        *to = to.wrapping_add(*more);
    }
}
