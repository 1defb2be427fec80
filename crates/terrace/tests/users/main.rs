//! What people do with the program in earnest, from the start to the answer that they act on: each
//! module is one person's day. The causes are real, the answers are judged by what was done.
#![allow(clippy::unwrap_used)]

mod client;
mod day;
mod dba;
mod engineer;
mod flight;
#[path = "../support/postgres.rs"]
mod postgres;
mod sre;
#[path = "../support/mod.rs"]
mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

static MACHINE: Mutex<()> = Mutex::new(());

/// The machine for one test alone: their causes would disturb each other.
pub fn machine_alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}
