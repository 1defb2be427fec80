//! Letting go of events without waiting for the kernel to come to rest.
//!
//! Whoever holds an event last waits, at the latest when it ends as a process; a thread that
//! closes them only delays that. So a child process holds them for a moment longer than this
//! one, and ends. It keeps no other descriptor, so that nobody who reads a pipe to its end
//! waits for it, and runs nothing but what follows.

use super::Event;
use crate::error::{Error, Result, check};
use crate::spawn::{block_all_signals, restore_signals};
use crate::wait;
use std::os::fd::AsRawFd;

/// How long it holds them. This process closes its own in far less, also as it ends.
const HOLD_NS: libc::c_long = 250_000_000;

/// A process that holds events for a moment. Dropping this waits for its end, so do that
/// where nobody waits; whoever ends before that leaves it to the first process.
#[derive(Debug)]
pub struct Holder {
    pid: u32,
}

impl Holder {
    /// Starts it. Drop the events afterwards.
    ///
    /// # Errors
    /// `Unsupported` before Linux 5.9; `Other` where no process can be made.
    pub fn start<'a>(events: impl Iterator<Item = &'a Event>) -> Result<Self> {
        const OPERATION: &str = "hand kernel events on";
        let held = events.map(|event| event.descriptor.as_raw_fd().unsigned_abs());
        let others = all_but(held.collect());
        // Asks only: there is no such descriptor.
        close_range(u32::MAX, u32::MAX).map_err(|source| Error::new(OPERATION, source))?;
        let mask = block_all_signals()?;
        // SAFETY: the child makes system calls only, on memory that was prepared above, and
        // ends in `_exit`.
        let answer = unsafe { libc::fork() };
        if answer == 0 {
            hold(&others);
        }
        let forked = check(OPERATION, answer);
        restore_signals(&mask);
        Ok(Self {
            pid: forked?.unsigned_abs(),
        })
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // Somebody who reaps all children may have been faster.
        let _ = wait::wait(self.pid);
    }
}

/// The ranges of descriptors, first and last, between these.
fn all_but(mut held: Vec<u32>) -> Vec<(u32, u32)> {
    held.sort_unstable();
    let mut ranges = Vec::new();
    let mut next = 0;
    for number in held {
        if number > next {
            ranges.push((next, number - 1));
        }
        next = number + 1;
    }
    ranges.push((next, u32::MAX));
    ranges
}

fn close_range(first: u32, last: u32) -> std::io::Result<()> {
    // SAFETY: takes three numbers. Who calls it owns these descriptors, or there are none.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// All that the child does.
fn hold(others: &[(u32, u32)]) -> ! {
    for (first, last) in others {
        // The child's own copies; nobody uses them in it.
        let _ = close_range(*first, *last);
    }
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: HOLD_NS,
    };
    // SAFETY: the name ends with a zero byte and the time is alive; nothing is allocated and
    // no lock is taken. With all signals blocked nothing ends the nap early.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"close-events".as_ptr());
        libc::nanosleep(&raw const time, std::ptr::null_mut());
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::perf::{Attributes, Source};
    use std::os::fd::AsFd;

    #[test]
    fn all_others_are_all_others() {
        assert_eq!(all_but(Vec::new()), [(0, u32::MAX)]);
        assert_eq!(all_but(vec![7, 4, 5]), [(0, 3), (6, 6), (8, u32::MAX)]);
        assert_eq!(all_but(vec![0]), [(1, u32::MAX)]);
    }

    #[test]
    fn it_keeps_the_events_and_nothing_that_somebody_waits_for() {
        let faults = Attributes {
            user_only: true,
            ..Attributes::new(Source::PageFaults)
        };
        // Of this thread; where not even that is permitted it keeps nothing at all.
        let event = Event::on_thread(&faults, 0).ok();
        loop {
            let holder = match Holder::start(event.iter()) {
                Ok(holder) => holder,
                Err(error) if error.kind == Kind::Unsupported => {
                    return testkit::skip("Linux 5.9");
                }
                Err(error) => panic!("{error}"),
            };
            let directory = format!("/proc/{}", holder.pid);
            let file = |name: &str| std::fs::read_to_string(format!("{directory}/{name}"));
            // It has its name when it has closed everything.
            while file("comm").unwrap() != "close-events\n" {
                std::thread::yield_now();
            }
            let kept = std::fs::read_dir(format!("{directory}/fd")).map(Iterator::count);
            // One that has ended in between keeps nothing at all, and shows nothing.
            if !file("stat").unwrap().contains(") Z ") {
                return assert_eq!(kept.unwrap(), event.iter().count());
            }
        }
    }

    #[test]
    fn it_ends_by_itself() {
        let Ok(holder) = Holder::start(std::iter::empty()) else {
            return testkit::skip("Linux 5.9");
        };
        let child = crate::pidfd::open(holder.pid).unwrap();
        drop(holder);
        assert_eq!(
            crate::poll::readable([Some(child.as_fd())], Some(0)),
            [true]
        );
    }
}
