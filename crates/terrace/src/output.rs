//! The only place that prints: standard output, standard error, and the file of `-o`.
//!
//! Results become text (`human`, `survey`), JSON or CSV first, by pure functions; a
//! [`OutputTarget`] then takes the whole text at once.

pub mod advise;
pub mod boost;
pub mod boost_explain;
pub mod boost_fill;
pub mod boost_report;
pub mod clean;
pub mod compare;
pub mod copy;
pub mod csv;
pub mod doctor;
pub mod figure;
pub mod hog;
pub mod json;
pub mod lab;
pub mod markdown;
pub mod progress;
pub mod proof;
pub mod prose;
pub mod qualify;
pub mod ramdisk;
pub mod ramdisk_adopt;
pub mod ramdisk_mount;
pub mod ramdisk_store;
pub mod receipt;
pub mod report;
pub mod style;
pub mod survey;
pub mod table;
mod target;
mod terminal;
pub mod top;
pub mod verdict;
pub mod warm;

pub use report::Report;
pub use target::{OutputTarget, Written};
pub use terminal::{Page, wants_colour};

use crate::error::Error;
use crate::exit::Exit;
use std::io::Write;

/// Prints a text that is no result: help, the version, the manual.
pub fn show(text: &str) -> Exit {
    match OutputTarget::standard().write(text) {
        Ok(_) => Exit::Done,
        Err(error) => complain(&error),
    }
}

/// Says on standard error what `command` will do to the machine, or has kept there.
pub fn announce(command: &str, text: &str) {
    report(&format!("terrace: {command}: {}\n", clean::escaped(text)));
}

/// Writes a text to standard error, printable. A reader that has gone does not end the command.
pub fn report(text: &str) {
    let _ = std::io::stderr().write_all(clean::printable(text).as_bytes());
}

/// Says on standard error what went wrong, and gives the exit status that it means.
pub fn complain(error: &Error) -> Exit {
    let mut lines = format!("terrace: {}\n", clean::escaped(&error.to_string()));
    if let Some(hint) = &error.hint {
        lines.push_str(&format!("hint: {}\n", clean::escaped(hint)));
    }
    // When standard error is gone too, the exit status is all that is left to say.
    report(&lines);
    error.exit
}
