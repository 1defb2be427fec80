//! What a flash cache needs of the machine before it serves, each part looked at and opened once
//! and then reached by its descriptor:
//!
//! 1. [`volume`] claims the block device, [`content`] says what on it shows a write elsewhere.
//! 2. [`host`] has key and journal, locked against a second daemon.
//! 3. [`medium`] finds or makes the file on the stick.
//! 4. [`mounted`] says which bytes of a served volume the files on it have.
//! 5. [`plan`] refuses parts on one disk, and says what a kill, a pull and a power cut will do.
//!
//! What is refused is refused before volume, medium or journal were written. This knows no engine:
//! `terrace` joins it with `cache` and an export.

pub mod content;
pub mod host;
pub mod medium;
pub mod mounted;
pub mod plan;
pub mod volume;
