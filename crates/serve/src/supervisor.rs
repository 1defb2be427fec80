//! Keeps a server running: holds its open files, and starts a successor when it ends otherwise than
//! by success.
//!
//! A supervisor does nothing else, so that little can end it: with it would go the open files, and
//! all users of the volume would get errors. The server finds the holder's socket as its
//! standard input.

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
/// A successor that cannot be started is tried again after this time: short, because requests wait.
const RETRY: Duration = Duration::from_millis(250);

/// Starts a server by `start`, which gives it the socket as its standard input, and a successor
/// whenever one ends, until one ends with success or `goes_on`, which gets the status of the last,
/// says no. The status of the last.
///
/// While open files are held a successor that cannot be started (no process is to be had, the
/// program is being replaced) is tried again and again.
///
/// # Errors
/// When a server cannot be started or waited for, and no open file is held or `goes_on` says no.
pub fn supervise(
    mut start: impl FnMut(OwnedFd) -> io::Result<Child>,
    mut goes_on: impl FnMut(ExitStatus) -> bool,
) -> Result<ExitStatus> {
    let mut holder = Holder::default();
    let mut short_lives = 0;
    let mut last = None;
    loop {
        let started = Instant::now();
        let status = match serve_once(&mut start, &mut holder) {
            Ok(status) => status,
            Err(error) => {
                if holder.is_empty() || last.is_some_and(|status| !goes_on(status)) {
                    return Err(error);
                }
                std::thread::sleep(RETRY);
                continue;
            }
        };
        if status.success() || !goes_on(status) {
            return Ok(status);
        }
        last = Some(status);
        short_lives = if started.elapsed() < SHORT_LIFE { short_lives + 1 } else { 0 };
        if short_lives > SHORT_LIVES {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Starts a server, answers it, and waits for its end.
fn serve_once(
    start: &mut impl FnMut(OwnedFd) -> io::Result<Child>,
    holder: &mut Holder,
) -> Result<ExitStatus> {
    let (inner, outer) = socket_pair()?;
    let mut server = start(inner).map_err(|error| Error::new("start a server", error))?;
    // Ends when the server closes its end, and so at the latest when it ends. An error is no reason
    // to leave the server: it gets one too if it asks for more, and decides by itself.
    let _ = holder.answer(outer.as_fd());
    drop(outer);
    server.wait().map_err(|error| Error::new("wait for a server", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holder::HolderClient;
    use std::process::{Command, Stdio};
    use sys::descriptors::send;

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
        assert!(supervise(absent, |_| true).is_err());
    }

    fn absent(socket: OwnedFd) -> io::Result<Child> {
        drop(socket);
        Command::new("/no/such/program").spawn()
    }

    /// A server that fails, and before has a file kept, without reading the answer.
    fn keeping(socket: OwnedFd) -> io::Result<Child> {
        let file = sys::shared_memory::file().unwrap();
        send(socket.as_fd(), b"keep a", Some(file.as_fd())).unwrap();
        shell("exit 3", socket)
    }

    #[test]
    fn what_is_held_stays_while_no_successor_can_be_started() {
        let (mut starts, mut kept) = (0, None);
        let start = |socket: OwnedFd| {
            starts += 1;
            match starts {
                1 => keeping(socket),
                2 | 3 => absent(socket),
                _ => {
                    let client = socket.try_clone()?;
                    kept = Some(std::thread::spawn(move || {
                        HolderClient::new(client.as_fd()).take_all().unwrap().len()
                    }));
                    shell("exit 0", socket)
                }
            }
        };
        assert!(supervise(start, |_| true).unwrap().success());
        assert_eq!(kept.unwrap().join().unwrap(), 1);
    }

    #[test]
    fn a_caller_may_end_the_tries_to_start_a_successor() {
        let (mut starts, mut asked) = (0, 0);
        let start = |socket| {
            starts += 1;
            if starts == 1 { keeping(socket) } else { absent(socket) }
        };
        let goes_on = |status: ExitStatus| {
            asked += 1;
            assert_eq!(status.code(), Some(3));
            asked < 3
        };
        assert!(supervise(start, goes_on).is_err());
        assert_eq!((starts, asked), (3, 3));
    }
}
