//! The bars of a recording: who is believed, what is repaired, and that every bar adds up
//! to its whole whatever a recording holds. Recordings are built in code; whether a real
//! run closes is for the verdict suite.

#![allow(clippy::unwrap_used, reason = "a recording that cannot be built must fail the test")]

mod builder;
mod contradictions;
mod doubts;
mod late;
mod machine;
mod parts;
mod properties;
mod queued;
mod sampled_processors;
mod schema;
mod sources;
mod windows;
mod workloads;
