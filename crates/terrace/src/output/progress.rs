//! One line on standard error that says what is being measured, gone at the end.
//!
//! Only on a terminal. The line stands still between steps: a ticking one would wake a
//! thread in the midst of the trials that it reports on.

use super::clean::escaped;
use std::io::{IsTerminal, Write};

/// The line; erased when dropped.
#[derive(Debug)]
pub struct Progress {
    shown: bool,
}

impl Progress {
    /// A line that is empty so far, and stays so where standard error is no terminal.
    pub fn new() -> Self {
        Self {
            shown: std::io::stderr().is_terminal(),
        }
    }

    /// Replaces the line.
    pub fn step(&self, text: &str) {
        if self.shown {
            self.put(&format!("\r\x1b[K{} ...", escaped(text)));
        }
    }

    fn put(&self, text: &str) {
        let mut terminal = std::io::stderr();
        // Who cannot read the progress has no use for an error about it either.
        let _ = terminal.write_all(text.as_bytes());
        let _ = terminal.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            self.put("\r\x1b[K");
        }
    }
}
