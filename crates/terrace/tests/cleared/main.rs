//! No suspect is cleared by what did not watch: over the kept recordings with each of their sources
//! taken away or cut, and over recordings that were made with few rights.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod damaged;
mod rights;
#[path = "../support/mod.rs"]
mod support;
