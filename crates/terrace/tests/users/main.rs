//! What people do with the program in earnest, from the start to the answer that they act on: each
//! module is one person's day. The causes are real, the answers are judged by what was done.
#![allow(clippy::unwrap_used)]

mod day;
mod dba;
mod engineer;
#[path = "../support/postgres.rs"]
mod postgres;
mod sre;
#[path = "../support/mod.rs"]
mod support;
