//! A process held by a descriptor: its number cannot be reused while it is held.
//!
//! Owns `pidfd_open`. The descriptor becomes readable when the process ends, whoever its
//! parent is, so any process can be waited for with [`crate::poll`].

use crate::error::{Error, Result, failed};
use rustix::process::{Pid, PidfdFlags};
use std::os::fd::OwnedFd;

/// A descriptor of the process `pid`, readable once it has ended; close-on-exec.
///
/// # Errors
/// `Other` (no such process) where it is gone, `Invalid` for a thread or a number that no
/// process has, `Unsupported` before Linux 5.3.
pub fn open(pid: u32) -> Result<OwnedFd> {
    const OPERATION: &str = "watch the process";
    let number = process_number(OPERATION, pid)?;
    rustix::process::pidfd_open(number, PidfdFlags::empty()).map_err(failed(OPERATION))
}

/// The number as the kernel's calls take it.
pub(crate) fn process_number(operation: &'static str, pid: u32) -> Result<Pid> {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| Error::invalid(operation, "no process has such a number"))
}

#[cfg(test)]
mod tests {
    use super::open;
    use crate::poll::readable;
    use std::os::fd::AsFd;
    use std::process::{Command, Stdio};

    #[test]
    fn tells_of_the_end() {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let watched = open(child.id()).unwrap();
        assert_eq!(readable([Some(watched.as_fd())], Some(0)), [false]);
        drop(child.stdin.take());
        assert_eq!(readable([Some(watched.as_fd())], None), [true]);
        child.wait().unwrap();
    }

    #[test]
    fn no_process_is_an_error() {
        assert!(open(0).is_err());
        assert!(open(u32::MAX).is_err());
    }
}
