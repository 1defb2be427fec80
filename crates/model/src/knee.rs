//! The edges of the caches in a curve of latency against buffer size.
//!
//! A random chase over a buffer that fits a cache has that cache's latency; over
//! a larger one it climbs to the next level's. An edge is the last size before a
//! climb that ends on a level at least [`LEAST_CLIMB`] times higher. Walk:
//! 1. While a point stays within [`FLAT`] of the plateau's median, it belongs to it.
//! 2. The first point above begins a climb; it ends where the curve flattens.
//! 3. A climb that was too low is drift (page walks), and becomes the plateau.

use crate::statistics;
use serde::{Deserialize, Serialize};

/// A point within this factor of the plateau's median still belongs to it.
/// Picked: repeated chases of one size vary by under 10 % on quiet machines.
pub const FLAT: f64 = 1.25;

/// A climb to less than this many times the plateau is no cache edge. Picked:
/// the nearest neighbours known are L3 slices, a factor of 1.3; L1 to L2 is 3.
pub const LEAST_CLIMB: f64 = 1.6;

/// The climb is over when a step of the ladder raises the latency by less.
const FLATTENED: f64 = 1.12;

/// One size of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LadderPoint {
    /// Size of the chased buffer in bytes.
    pub size_bytes: u64,
    /// Latency of one dependent load in nanoseconds.
    pub latency_ns: f64,
}

/// An edge: the buffer still fits at `fits_bytes`, no longer at `spills_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// The last size of the ladder that still had the cache's latency.
    pub fits_bytes: u64,
    /// The first size of the ladder that had not.
    pub spills_bytes: u64,
    /// The latency below the edge in nanoseconds.
    pub below_ns: f64,
    /// The latency where the climb ended, in nanoseconds.
    pub above_ns: f64,
}

impl Edge {
    /// Whether a cache of `claimed` bytes would show this edge, given that the
    /// last bytes of a cache are shared with the stack, the page tables and, for
    /// a physically indexed cache under 4 KiB pages, unlucky colours: the edge
    /// may show at two thirds of the size, never well above it.
    pub fn agrees_with(&self, claimed: u64) -> bool {
        let claimed = claimed as f64;
        self.spills_bytes as f64 >= claimed * 0.66 && (self.fits_bytes as f64) <= claimed * 1.34
    }

    /// Whether more fits than a cache of `claimed` bytes could hold.
    pub fn exceeds(&self, claimed: u64) -> bool {
        self.fits_bytes as f64 > claimed as f64 * 1.34
    }
}

/// The edges of `ladder`, which must be in ascending order of size.
pub fn edges(ladder: &[LadderPoint]) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut plateau: Vec<f64> = Vec::new();
    let mut at = 0;
    while at < ladder.len() {
        let Some(level) = statistics::median(&statistics::sorted(&plateau)) else {
            plateau.push(ladder[at].latency_ns);
            at += 1;
            continue;
        };
        if ladder[at].latency_ns <= level * FLAT {
            plateau.push(ladder[at].latency_ns);
            at += 1;
            continue;
        }
        let top = end_of_climb(ladder, at);
        if ladder[top].latency_ns >= level * LEAST_CLIMB && at > 0 {
            edges.push(Edge {
                fits_bytes: ladder[at - 1].size_bytes,
                spills_bytes: ladder[at].size_bytes,
                below_ns: level,
                above_ns: ladder[top].latency_ns,
            });
        }
        plateau.clear();
        plateau.push(ladder[top].latency_ns);
        at = top + 1;
    }
    edges
}

/// The index where the climb that starts at `start` has flattened: the next two
/// steps together add less than one step of a climb would.
fn end_of_climb(ladder: &[LadderPoint], start: usize) -> usize {
    let latency = |i: usize| ladder[i.min(ladder.len() - 1)].latency_ns;
    (start..ladder.len())
        .find(|&i| latency(i + 1) < latency(i) * FLATTENED && latency(i + 2) < latency(i) * FLAT)
        .unwrap_or(ladder.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIB: u64 = 1024;

    fn ladder(points: &[(u64, f64)]) -> Vec<LadderPoint> {
        points
            .iter()
            .map(|&(kib, latency_ns)| LadderPoint { size_bytes: kib * KIB, latency_ns })
            .collect()
    }

    /// Measured on a Zen 5 guest with 48 KiB, 1 MiB and (claimed) 32 MiB, THP.
    #[test]
    fn three_caches_of_a_measured_curve() {
        let curve = ladder(&[
            (8, 0.96),
            (16, 0.96),
            (32, 0.96),
            (48, 0.97),
            (64, 2.4),
            (96, 3.2),
            (128, 3.4),
            (256, 3.6),
            (512, 3.8),
            (1024, 4.0),
            (1536, 8.1),
            (2048, 10.9),
            (3072, 11.9),
            (4096, 12.1),
            (8192, 12.8),
            (16384, 16.7),
            (24576, 97.0),
            (32768, 119.0),
            (65536, 150.0),
            (131072, 158.0),
            (262144, 160.0),
            (1048576, 189.0),
        ]);
        let found = edges(&curve);
        let fits: Vec<u64> = found.iter().map(|e| e.fits_bytes / KIB).collect();
        assert_eq!(fits.len(), 3, "{found:?}");
        assert_eq!(fits[..2], [48, 1024]);
        assert!((8192..=16384).contains(&fits[2]));
        assert!(found[0].agrees_with(48 * KIB) && found[1].agrees_with(1024 * KIB));
        assert!(!found[2].agrees_with(32 * 1024 * KIB), "the host gives less than it claims");
    }

    #[test]
    fn a_slow_drift_is_no_edge() {
        let curve: Vec<(u64, f64)> = (0..20).map(|i| (64 << i, 100.0 * 1.02_f64.powi(i))).collect();
        assert_eq!(edges(&ladder(&curve)), []);
        assert_eq!(edges(&[]), []);
    }

    proptest! {
        #[test]
        fn any_curve_gives_ordered_edges(latencies in prop::collection::vec(0.5..400.0_f64, 0..40)) {
            let curve: Vec<LadderPoint> = latencies.iter().enumerate()
                .map(|(i, &latency_ns)| LadderPoint { size_bytes: 4096 << (i / 2), latency_ns }).collect();
            let found = edges(&curve);
            prop_assert!(found.windows(2).all(|w| w[0].fits_bytes <= w[1].fits_bytes));
            prop_assert!(found.iter().all(|e| e.above_ns > e.below_ns));
        }
    }
}
