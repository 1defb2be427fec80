//! Who did it: the actors of findings, in recordings built here. Each kind of culprit and victim is
//! named where it is clear, and not where it nearly is.

#![allow(clippy::unwrap_used, reason = "what is built here is there")]

mod builder;
mod caches;
mod limits;
mod processors;
mod sampled;
mod usage;
