//! The suite `memory`: copies and load latency against peer programs.
//!
//! `copy` and `latency` measure and compare; `mbw`, `stream`, `tinymembench` and `multichase` run
//! one peer each and read what it prints. Every rate counts a copied byte once, in GB/s of 10^9
//! bytes, whatever the peer's own habit is.

use super::Measure;

mod copy;
mod latency;
mod mbw;
mod multichase;
mod stream;
mod tinymembench;

pub(super) const PARTS: &[(&str, Measure)] =
    &[("copy", copy::measure), ("latency", latency::measure)];
