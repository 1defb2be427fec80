//! The parameters that the author of 2001 named and left open: stride and page size of a copy, and
//! how far the page tables' own cache reaches.

use super::plan::{ARTICLE_BYTES, MemoryCopyPlan, percent};
use explain::copying;
use machine::Root;
use measure::Budget;
use measure::memory::PageKind;
use measure::memory::copy;
use measure::memory::latency::{self, LatencyPlan};
use model::{ChaseOrder, Estimate};
use serde::Serialize;

/// The original's matrix: 12 x 12 elements of 8 bytes.
const MATRIX: (u64, usize) = (12 * 12 * 8, 12);

/// Steps in elements of 8 bytes: within a line, a line, the original's 12, two lines, a page of
/// 4 KiB and a line more, which spreads over the sets of a cache what a page puts into one.
const STEPS: [usize; 6] = [4, 8, 12, 16, 512, 520];

/// Buffers of the chain of loads: from the second cache to main memory.
const CHAINS: [u64; 5] = [256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];

/// A walk down the columns of a matrix.
#[derive(Debug, Serialize)]
pub struct Stride {
    /// The whole matrix.
    pub size_bytes: u64,
    /// Columns, so elements of 8 bytes from one to the next; 0 is sequential.
    pub elements: usize,
    /// The pages that were requested.
    pub pages: PageKind,
    /// The share of them that was granted.
    pub granted: Option<f64>,
    /// Copied bytes a second.
    pub bytes_per_s: Option<Estimate>,
}

/// Dependent loads in random order over a buffer, on both kinds of pages.
#[derive(Debug, Serialize)]
pub struct Load {
    /// The buffer.
    pub size_bytes: u64,
    /// One load on pages of 4 KiB.
    pub base_ns: Option<Estimate>,
    /// One load on huge pages.
    pub huge_ns: Option<Estimate>,
}

/// Every walk on both kinds of pages.
pub fn strides(
    root: &Root,
    plan: &MemoryCopyPlan,
    budget: &Budget,
    notes: &mut Vec<String>,
) -> Vec<Stride> {
    let (matrix, columns) = MATRIX;
    let large = STEPS.map(|step| (ARTICLE_BYTES, step));
    let mut walks = vec![(matrix, 0), (matrix, columns), (ARTICLE_BYTES, 0)];
    walks.extend(large);
    let passes = 2 * walks.len() as u32;
    let mut strides = Vec::new();
    let (mut missed, mut why) = (0, None);
    for (size, step) in walks {
        for pages in [PageKind::Base, PageKind::Transparent] {
            let walk = plan.stride(size, step, pages, passes);
            match copy::measure(&walk, root, &budget.part(walk.budget)) {
                Ok(report) => strides.push(Stride {
                    size_bytes: size,
                    elements: step,
                    pages,
                    granted: report.pages.first().and_then(|pages| pages.share()),
                    bytes_per_s: report.rows.into_iter().find_map(|row| row.bytes_per_s),
                }),
                Err(_) if budget.over() => return strides,
                Err(error) => {
                    missed += 1;
                    why.get_or_insert(error);
                }
            }
        }
    }
    notes.extend(why.map(|why| format!("{missed} of {passes} walks by stride: {why}")));
    strides
}

/// A chain of loads through buffers of several sizes, on both kinds of pages.
///
/// # Errors
/// Where the memory cannot be had, or the time ended before the first trial.
pub fn loads(root: &Root, plan: &MemoryCopyPlan, budget: &Budget) -> measure::Result<Vec<Load>> {
    let chains = LatencyPlan {
        sizes: CHAINS.to_vec(),
        orders: vec![ChaseOrder::Random],
        budget: plan.share(percent::LOADS),
        ..LatencyPlan::default()
    };
    let report = latency::measure(&chains, root, &budget.part(chains.budget))?;
    let of = |size: u64, pages: PageKind| {
        let mut rows = report.rows.iter();
        let row = rows.find(|row| row.size_bytes == size && row.pages == pages)?;
        row.load_ns.clone()
    };
    let load = |size_bytes: u64| Load {
        size_bytes,
        base_ns: of(size_bytes, PageKind::Base),
        huge_ns: of(size_bytes, PageKind::Transparent),
    };
    Ok(CHAINS.map(load).into())
}

/// From which size on small pages cost more, where both kinds were measured.
pub fn reach(loads: &[Load]) -> Option<u64> {
    let both = |load: &Load| {
        let (base, huge) = (load.base_ns.clone()?, load.huge_ns.clone()?);
        Some((load.size_bytes, base, huge))
    };
    copying::reach(&loads.iter().filter_map(both).collect::<Vec<_>>())
}
