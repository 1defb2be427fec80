//! As much of Rust's syntax as the rules need: tokens from `proc-macro2`, no parser.
//!
//! [`layers`] separates code from comments and literals; [`items`] finds modules and test-only
//! parts in the code; [`modules`] follows `mod` declarations from file to file. A parser would cost
//! more build time than the rest of this crate, and would not see inside macros.

pub mod items;
pub mod layers;
pub mod modules;
pub mod words;

pub use layers::Layers;
