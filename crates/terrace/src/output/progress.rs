//! One line on standard error, or a few, that say what a command is doing, erased at the end.
//!
//! Only on a terminal. The line changes with the steps and batches of the operation and never by
//! itself: a thread that redraws it would wake in the midst of the trials that it reports on.

use super::clean::escaped;
use super::figure;
use model::progress::{Control, ProgressUnit};
use model::{Bytes, Progress as Amount};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// An operation that reports after each batch changes the line this often at most.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// The line; erased when dropped.
#[derive(Debug)]
pub struct Progress {
    shown: bool,
    /// Lines above the one that the terminal's cursor is in.
    above: AtomicUsize,
}

impl Progress {
    /// An empty line; it stays empty unless standard error is a terminal.
    pub fn new() -> Self {
        Self { shown: Self::is_shown(), above: AtomicUsize::new(0) }
    }

    /// Whether the line is displayed: standard error is a terminal.
    pub fn is_shown() -> bool {
        std::io::stderr().is_terminal()
    }

    pub fn step(&self, text: &str) {
        if self.shown {
            let begin = self.begin_again(0);
            self.put(&format!("{begin}{} ...", escaped(text)));
        }
    }

    /// Displays several lines, escaped and no wider than the terminal, in place of what there is.
    pub fn panel(&self, lines: &[String]) {
        if self.shown {
            let begin = self.begin_again(lines.len().saturating_sub(1));
            // Without the wrap of lines: a terminal that became narrower cuts them.
            self.put(&format!("\x1b[?7l{begin}{}\x1b[?7h", lines.join("\r\n")));
        }
    }

    /// What erases all lines, when so many are displayed next above the cursor's.
    fn begin_again(&self, above: usize) -> String {
        match self.above.swap(above, Ordering::Relaxed) {
            0 => "\r\x1b[J".to_owned(),
            before => format!("\r\x1b[{before}A\x1b[J"),
        }
    }

    /// A sink that displays what an operation of `command` reports, with the rate since now.
    pub fn display<'a>(&'a self, command: &'a str) -> impl FnMut(Amount<'_>) -> Control + 'a {
        let started = Instant::now();
        let mut displayed = started;
        move |amount| {
            if displayed.elapsed() >= SHORTEST_INTERVAL {
                displayed = Instant::now();
                let text = describe(amount, started.elapsed());
                self.step(&format!("terrace {command}: {text}"));
            }
            Control::Continue
        }
    }

    fn put(&self, text: &str) {
        let mut terminal = std::io::stderr();
        // If the line cannot be written, an error message cannot be written either.
        let _ = terminal.write_all(text.as_bytes());
        let _ = terminal.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            self.put(&self.begin_again(0));
        }
    }
}

/// `12 MiB of 48 MiB, 203 MB/s, Ctrl-C ends it`, or the step and its count.
fn describe(amount: Amount<'_>, elapsed: Duration) -> String {
    let of_total = |show: fn(u64) -> String| match amount.total {
        Some(total) => format!("{} of {}", show(amount.done), show(total)),
        None => show(amount.done),
    };
    match amount.unit {
        ProgressUnit::Bytes => {
            let rate = amount.done as f64 / elapsed.as_secs_f64().max(1e-9);
            let speed = figure::precise_rate(rate);
            let amount = of_total(|bytes| Bytes(bytes).to_string());
            format!("{amount}, {speed}, Ctrl-C ends it")
        }
        ProgressUnit::Items if amount.total.is_none() && amount.done == 0 => amount.step.to_owned(),
        ProgressUnit::Items => {
            format!("{}, {}", amount.step, of_total(|items| items.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_rate_and_a_step_has_its_name() {
        let text = |amount| describe(amount, Duration::from_millis(500));
        assert_eq!(
            text(Amount::bytes("restoring", 12 << 20, Some(48 << 20))),
            "12 MiB of 48 MiB, 25.2 MB/s, Ctrl-C ends it"
        );
        assert_eq!(text(Amount::step("random reads")), "random reads");
        assert_eq!(text(Amount::items("trials", 3, Some(9))), "trials, 3 of 9");
    }
}
