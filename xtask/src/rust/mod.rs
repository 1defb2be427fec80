//! As much of Rust's syntax as the rules need, read from text without a parser.
//!
//! [`layers`] tells code from comments and literals; [`items`] finds modules and test-only parts in
//! the code; [`modules`] follows `mod` declarations from file to file. A real parser would
//! cost more build time than the rest of this crate and still not see inside macros.

pub mod items;
pub mod layers;
pub mod modules;
pub mod words;

pub use layers::Layers;
