//! Keeps a server running: holds its open files, and starts a successor when it ends otherwise than
//! by success.
//!
//! A supervisor does nothing else, so that little can end it. The server finds the holder's socket
//! as its standard input.

use crate::holder::Holder;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use sys::descriptors::socket_pair;
use sys::{Error, Result};

/// A server that lives for less has failed to start.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// So many that failed to start, one after the other, are replaced at once.
const SHORT_LIVES: u32 = 20;
/// Then each is replaced after this time: what is wrong may pass.
const PAUSE: Duration = Duration::from_secs(2);

/// Starts a server by `start`, which gives it the socket as its standard input, and a successor
/// whenever one ends, until one ends with success or `goes_on` says no. The status of the last.
///
/// # Errors
/// When a server cannot be started or waited for.
pub fn supervise(
    mut start: impl FnMut(OwnedFd) -> io::Result<Child>,
    mut goes_on: impl FnMut(ExitStatus) -> bool,
) -> Result<ExitStatus> {
    let mut holder = Holder::default();
    let mut short_lives = 0;
    loop {
        let (inner, outer) = socket_pair()?;
        let started = Instant::now();
        let mut server = start(inner).map_err(|error| Error::new("start a server", error))?;
        // Ends when the server closes its end, and so at the latest when it ends.
        holder.answer(outer.as_fd())?;
        let status = server.wait().map_err(|error| Error::new("wait for a server", error))?;
        if status.success() || !goes_on(status) {
            return Ok(status);
        }
        short_lives = if started.elapsed() < SHORT_LIFE { short_lives + 1 } else { 0 };
        if short_lives > SHORT_LIVES {
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Runs `script` with the socket as its standard input.
    fn shell(script: &str, socket: OwnedFd) -> io::Result<Child> {
        Command::new("sh").args(["-c", script]).stdin(Stdio::from(socket)).spawn()
    }

    #[test]
    fn a_server_has_successors_until_one_succeeds() {
        let mut starts = 0;
        let start = |socket| {
            starts += 1;
            shell(["kill -9 $$", "exit 3", "exit 0"][starts - 1], socket)
        };
        assert!(supervise(start, |_| true).unwrap().success());
        assert_eq!(starts, 3);
    }

    #[test]
    fn a_caller_may_end_it() {
        let status = supervise(|socket| shell("exit 3", socket), |_| false).unwrap();
        assert_eq!(status.code(), Some(3));
        let absent = |socket: OwnedFd| {
            drop(socket);
            Command::new("/no/such/program").spawn()
        };
        assert!(supervise(absent, |_| true).is_err());
    }
}
