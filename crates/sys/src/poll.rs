//! Waiting for several descriptors at once, with a limit in nanoseconds.
//!
//! Owns `ppoll`. Allocates nothing, so that a sampler may wait here between two samples; a
//! signal that arrives ends the wait early, which looks the same as its time being over.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Which of `sources` can be read, or were closed at their other end, after at most
/// `limit_ns`; none of them when the time was over or a signal came. `None` waits for ever.
#[must_use]
pub fn readable<const N: usize>(
    sources: [Option<BorrowedFd<'_>>; N],
    limit_ns: Option<u64>,
) -> [bool; N] {
    let mut asked = sources.map(|source| libc::pollfd {
        // The kernel skips entries with a negative number.
        fd: source.map_or(-1, |descriptor| descriptor.as_raw_fd()),
        events: libc::POLLIN,
        revents: 0,
    });
    let timeout = limit_ns.map(timespec);
    let limit = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `asked` is an array of N live entries that the call may write to, the limit is
    // null or points to a live `timespec`, and a null signal mask changes nothing.
    let count =
        unsafe { libc::ppoll(asked.as_mut_ptr(), N as libc::nfds_t, limit, std::ptr::null()) };
    asked.map(|entry| count > 0 && entry.revents != 0)
}

/// Whether the other end of `source` is gone for good: a terminal that was closed, whose reads
/// report of an end again and again.
#[must_use]
pub fn is_hung_up(source: BorrowedFd<'_>) -> bool {
    let mut asked = [PollFd::from_borrowed_fd(source, PollFlags::empty())];
    let at_once = Timespec::default();
    let is_gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    poll(&mut asked, Some(&at_once)).is_ok() && asked[0].revents().intersects(is_gone)
}

fn timespec(ns: u64) -> libc::timespec {
    // Both parts fit: the largest number of seconds in a u64 of nanoseconds is 18 thousand million.
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

#[cfg(test)]
mod tests {
    use super::readable;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn tells_which_one_has_something() {
        let (quiet, _other) = UnixStream::pair().unwrap();
        let (ready, mut writer) = UnixStream::pair().unwrap();
        writer.write_all(b"x").unwrap();
        let sources = [Some(quiet.as_fd()), None, Some(ready.as_fd())];
        assert_eq!(readable(sources, None), [false, false, true]);
    }

    #[test]
    fn the_time_is_waited_for_at_least() {
        // A lower bound only: the kernel never wakes a poller before its time. A signal could,
        // and this process gets none.
        let started = crate::clock::now_ns();
        assert_eq!(readable([None], Some(20_000_000)), [false]);
        assert!(crate::clock::now_ns() - started >= 20_000_000);
    }

    #[test]
    fn a_closed_end_counts() {
        let (here, there) = UnixStream::pair().unwrap();
        assert!(!super::is_hung_up(here.as_fd()));
        drop(there);
        assert_eq!(readable([Some(here.as_fd())], None), [true]);
        assert!(super::is_hung_up(here.as_fd()));
    }
}
