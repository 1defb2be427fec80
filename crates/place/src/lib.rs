//! The movers: data that lies on a slow level is brought to a fast one.
//!
//! The idea: a mover has a plan that can be printed before anything is touched, a loop that
//! asks a [`guard::Guard`] after each batch, and a report of what was done, with the counters
//! that prove it. It uses what is free and never takes from others; what it is refused, it
//! says. It reads other processes' memory only to make the kernel bring it back: no byte of
//! it is looked at, kept or written.

mod error;
pub mod guard;
pub mod workingset;

pub use error::{Error, Kind, Result};
