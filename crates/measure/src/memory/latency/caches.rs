//! The caches in a curve of latencies: where it climbs, which level each climb is the edge of, and
//! the latency of each level. Pure but for what the system claims of its caches.

use super::{LatencyRow, WARMED_BYTES};
use crate::memory::PageKind;
use machine::Root;
use model::knee::{self, Edge, LadderPoint};
use model::probe::CacheLevel;
use model::{ChaseOrder, Estimate, Latency};

/// Fits the first cache of every processor of the last twenty years.
const IN_EVERY_L1: u64 = 16 << 10;

/// The curve of random chains on the largest pages measured: base pages blur the
/// edges, because from L2 on the page walks climb too.
fn curve(rows: &[LatencyRow]) -> Vec<(u64, &Estimate)> {
    let of = |pages: PageKind| -> Vec<(u64, &Estimate)> {
        rows.iter()
            .filter(|row| row.order == ChaseOrder::Random && row.pages == pages)
            .filter_map(|row| Some((row.size_bytes, row.load_ns.as_ref()?)))
            .collect()
    };
    [PageKind::Huge, PageKind::Transparent, PageKind::Base]
        .into_iter()
        .map(of)
        .find(|curve| !curve.is_empty())
        .unwrap_or_default()
}

/// The ladder for the search of edges: the best trial of each size. What a cache
/// can hold is a question of capability; a neighbour that pushes lines out in some
/// trials raises their median, not the size.
fn steps(curve: &[(u64, &Estimate)]) -> Vec<LadderPoint> {
    let point =
        |&(size_bytes, load): &(u64, &Estimate)| LadderPoint { size_bytes, latency_ns: load.best };
    curve.iter().map(point).collect()
}

/// The edges found in `rows`, beside the claims of the system under `root`.
pub(super) fn find(rows: &[LatencyRow], root: &Root) -> Vec<CacheLevel> {
    let libc = sys::libc_facts::cache_claims();
    let claims = machine::cpu::read(root).caches;
    let levels = claims
        .iter()
        .map(|claim| CacheLevel {
            level: claim.level,
            measured: None,
            sysfs_bytes: claim.sysfs.map(|b| b.0),
            cpuid_bytes: claim.cpuid.map(|b| b.0),
            libc_bytes: claim.libc.map(|b| b.0).or_else(|| {
                let believed = libc.iter().find(|c| c.level == claim.level)?;
                Some(believed.bytes)
            }),
            shared_by: claim.shared_by,
            searches: None,
        })
        .collect();
    let steps = steps(&curve(rows));
    with_edges(levels, &knee::edges(&steps), steps.first().map(|step| step.size_bytes))
}

/// Gives each edge to the level whose claim it fits best; an edge beyond all claims is a cache too.
///
/// Only sizes that can tell name a level. One that begins above a level's claim, `smallest`, does
/// not show it. An edge between two sizes far apart can be any cache's in between, and where
/// nothing is claimed, only a curve that begins in L1 counts from there.
fn with_edges(
    mut levels: Vec<CacheLevel>,
    edges: &[Edge],
    smallest: Option<u64>,
) -> Vec<CacheLevel> {
    let fine: Vec<Edge> = edges.iter().copied().filter(is_fine).collect();
    let edges = fine.as_slice();
    let claimed = levels.len();
    let is_below = |level: &CacheLevel| {
        let claim = level.hardware_bytes().or(level.libc_bytes);
        claim.zip(smallest).is_some_and(|(claim, smallest)| smallest > claim)
    };
    let hidden = levels.iter().take_while(|level| is_below(level)).count();
    if claimed == 0 && smallest.is_some_and(|smallest| smallest > IN_EVERY_L1) {
        return levels;
    }
    let assigned = assign(&levels[hidden..], edges);
    for (level, edge) in levels[hidden..].iter_mut().zip(&assigned) {
        level.measured = edge.map(|edge| edges[edge]);
    }
    let beyond = assigned.into_iter().flatten().max().map_or(0, |last| last + 1);
    levels.extend(edges[beyond..].iter().enumerate().map(|(i, edge)| CacheLevel {
        level: (claimed + i + 1) as u8,
        measured: Some(*edge),
        ..CacheLevel::default()
    }));
    levels
}

/// Whether the two sizes of an edge are near enough to say which cache ends between them: one
/// doubling, since the next cache of every known processor is at least four times as large.
fn is_fine(edge: &Edge) -> bool {
    edge.spills_bytes <= 2 * edge.fits_bytes
}

/// How many edges are given away, how badly they fit, and which one each level has.
type Assignment = (usize, f64, Vec<Option<usize>>);

/// For each level the index of its edge. The order stays, as many edges as can be are given away,
/// and of all such ways the one counts whose edges are nearest to the claims.
fn assign(levels: &[CacheLevel], edges: &[Edge]) -> Vec<Option<usize>> {
    // The best way for the levels so far and the edges before each index.
    let mut best: Vec<Assignment> = vec![(0, 0.0, Vec::new()); edges.len() + 1];
    let is_better = |a: &Assignment, b: &Assignment| b.0.cmp(&a.0).then(a.1.total_cmp(&b.1));
    for level in levels {
        let with = |(given, cost, chosen): &Assignment, edge: Option<usize>| {
            let misfit = edge.map_or(0.0, |edge| misfit(level, &edges[edge]));
            let chosen = chosen.iter().copied().chain([edge]).collect();
            (given + usize::from(edge.is_some()), cost + misfit, chosen)
        };
        let mut next = vec![with(&best[0], None)];
        for end in 1..=edges.len() {
            let ways = [
                with(&best[end - 1], Some(end - 1)),
                with(&best[end], None),
                next[end - 1].clone(),
            ];
            next.extend(ways.into_iter().min_by(is_better));
        }
        best = next;
    }
    best.pop().map(|way| way.2).unwrap_or_default()
}

/// How badly an edge fits a level's claim. That other users have taken a part is likelier than
/// that more fits than is claimed.
fn misfit(level: &CacheLevel, edge: &Edge) -> f64 {
    let Some(claimed) = level.hardware_bytes().or(level.libc_bytes) else {
        return 0.0;
    };
    if edge.agrees_with(claimed) {
        return 0.0;
    }
    let excess = (edge.fits_bytes as f64 / claimed.max(1) as f64).ln();
    if excess > 0.0 { 2.0 * excess } else { -excess }
}

/// The latency of each level in the middle of what it alone holds.
pub(super) fn latencies(rows: &[LatencyRow], caches: &[CacheLevel]) -> Vec<(String, Latency)> {
    let curve = curve(rows);
    let mut low = 0;
    let mut levels = Vec::new();
    for cache in caches {
        let Some(edge) = &cache.measured else {
            continue;
        };
        let size = middle(low, edge.fits_bytes);
        levels.extend(nearest(&curve, size).map(|load| (format!("L{}", cache.level), load)));
        low = edge.spills_bytes;
    }
    let far = curve.last().filter(|(size, _)| *size >= WARMED_BYTES && *size > 2 * low);
    levels.extend(far.map(|(_, load)| ("RAM".to_owned(), Latency::from(*load))));
    levels
}

/// The size in the geometric middle of what a level alone holds; half of the
/// first level's, whose lower bound is nothing.
pub fn middle(low: u64, high: u64) -> u64 {
    if low == 0 {
        return high / 2;
    }
    (low as f64 * high as f64).sqrt() as u64
}

fn nearest(curve: &[(u64, &Estimate)], size: u64) -> Option<Latency> {
    curve.iter().min_by_key(|(step, _)| step.abs_diff(size)).map(|(_, load)| Latency::from(*load))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_goes_to_the_level_that_it_fits() {
        let claim = |level, kib: u64| CacheLevel {
            level,
            sysfs_bytes: Some(kib << 10),
            ..CacheLevel::default()
        };
        let levels = vec![claim(1, 48), claim(2, 1 << 10), claim(3, 32 << 10)];
        let edge = |kib: &u64| Edge {
            fits_bytes: kib << 10,
            spills_bytes: (kib + kib / 4) << 10,
            below_ns: 1.0,
            above_ns: 3.0,
        };
        let found = |kib: &[u64]| -> Vec<Option<u64>> {
            let edges: Vec<Edge> = kib.iter().map(edge).collect();
            let levels = with_edges(levels.clone(), &edges, Some(4 << 10)).into_iter();
            levels.map(|level| Some(level.measured?.fits_bytes >> 10)).collect()
        };
        assert_eq!(found(&[48, 896, 28_672]), [Some(48), Some(896), Some(28_672)]);
        // Noise hid L1, or L2; others hold most of L3.
        assert_eq!(found(&[341, 4096]), [None, Some(341), Some(4096)]);
        assert_eq!(found(&[40, 6144]), [Some(40), None, Some(6144)]);
        assert_eq!(found(&[4096]), [None, None, Some(4096)]);
        // More edges than levels: the one that fits nothing is dropped, one beyond all is kept.
        assert_eq!(found(&[48, 160, 1024, 24_576]), [Some(48), Some(1024), Some(24_576)]);
        let beyond = found(&[48, 1024, 32_768, 131_072]);
        assert_eq!(beyond, [Some(48), Some(1024), Some(32_768), Some(131_072)]);
        assert_eq!(found(&[]), [None; 3]);
    }

    /// Seen: "L1 64 KiB to 16 MiB" of 64k,16m,1g; "L1 256 KiB to 512 KiB" of sizes from 64k.
    #[test]
    fn sizes_that_cannot_tell_name_no_level() {
        let claim = |level, kib: u64| CacheLevel {
            level,
            sysfs_bytes: Some(kib << 10),
            ..CacheLevel::default()
        };
        let levels = vec![claim(1, 32), claim(2, 1 << 10), claim(3, 32 << 10)];
        let edge = |fits_kib: u64, spills_kib: u64| Edge {
            fits_bytes: fits_kib << 10,
            spills_bytes: spills_kib << 10,
            below_ns: 1.0,
            above_ns: 3.0,
        };
        let found =
            |claims: &[CacheLevel], edges: &[Edge], smallest_kib: u64| -> Vec<Option<u64>> {
                let levels =
                    with_edges(claims.to_vec(), edges, Some(smallest_kib << 10)).into_iter();
                levels.map(|level| Some(level.measured?.fits_bytes >> 10)).collect()
            };
        let far_apart = [edge(64, 16 << 10), edge(16 << 10, 1 << 20)];
        assert_eq!(found(&levels, &far_apart, 64), [None; 3]);
        assert_eq!(found(&levels, &[edge(256, 512)], 64), [None, Some(256), None]);
        let two = [edge(256, 512), edge(4096, 8192)];
        assert_eq!(found(&levels, &two, 64), [None, Some(256), Some(4096)]);
        // Nothing is claimed: the first edge is of L1 only if the curve begins there.
        assert_eq!(found(&[], &two, 64), []);
        assert_eq!(found(&[], &two, 4), [Some(256), Some(4096)]);
    }
}
