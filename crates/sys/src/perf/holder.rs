//! Closing kernel events without waiting for the kernel's grace period.
//!
//! The last process that holds an event waits for that period, at the latest when it ends; closing
//! them in a thread only delays it. So a child process holds them for a moment longer than this
//! one, and ends. It keeps no other descriptor, so that no reader of a pipe waits for it. It leaves
//! the control groups and the working directory that it was started in, so that they can be
//! removed. What it cannot leave: the mount of the program itself, and as an ordinary user the
//! groups.

use super::Event;
use crate::error::{Error, Result, check};
use crate::spawn::{block_all_signals, restore_signals};
use crate::wait;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// How long it holds them. This process closes its own in far less, also as it ends.
const HOLD_NS: libc::c_long = 250_000_000;

/// A process that holds events for a moment. Dropping this waits for its end, so do that where time
/// does not matter; if this process ends first, the first process reaps it.
#[derive(Debug)]
pub struct Holder {
    pid: u32,
}

/// The pipe that says when the last holder has left; -1 for none.
static LEAVING: AtomicI32 = AtomicI32::new(-1);

/// How long an end of this process waits for that: to leave a group takes the kernel a few
/// milliseconds for each hierarchy.
const LEAVE_PATIENCE_NS: u64 = 500_000_000;

/// Waits until a holder that was started has left the groups and the directory of this process,
/// so that the caller of this program can remove them as soon as it has ended.
pub fn wait_until_left() {
    let number = LEAVING.swap(-1, Ordering::SeqCst);
    if number < 0 {
        return;
    }
    // SAFETY: the number was taken from a pipe that `Holder::start` gave up, and the exchange
    // gives it to one caller only.
    let pipe = unsafe { OwnedFd::from_raw_fd(number) };
    // The end of the pipe is the sign.
    let _ = crate::poll::readable([Some(pipe.as_fd())], Some(LEAVE_PATIENCE_NS));
}

impl Holder {
    /// Starts it. Drop the events afterwards.
    ///
    /// # Errors
    /// `Unsupported` before Linux 5.9; `Other` where no process can be made.
    pub fn start<'a>(events: impl Iterator<Item = &'a Event>) -> Result<Self> {
        const OPERATION: &str = "hand kernel events on";
        let mut held: Vec<u32> =
            events.map(|event| event.descriptor.as_raw_fd().unsigned_abs()).collect();
        let (left, leaving) = crate::pipe::make()?;
        held.push(leaving.as_raw_fd().unsigned_abs());
        let others = all_but(held);
        let groups = groups_to_join();
        // Asks only: there is no such descriptor.
        close_range(u32::MAX, u32::MAX).map_err(|source| Error::new(OPERATION, source))?;
        let mask = block_all_signals()?;
        // SAFETY: the child makes system calls only, on memory that was prepared above, and
        // ends in `_exit`.
        let answer = unsafe { libc::fork() };
        if answer == 0 {
            hold(&others, &groups, leaving.as_raw_fd());
        }
        let forked = check(OPERATION, answer);
        restore_signals(&mask);
        let pid = forked?.unsigned_abs();
        let before = LEAVING.swap(left.into_raw_fd(), Ordering::SeqCst);
        if before >= 0 {
            // SAFETY: as in `wait_until_left`: the exchange gave it to this caller only.
            drop(unsafe { OwnedFd::from_raw_fd(before) });
        }
        Ok(Self { pid })
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
    // SAFETY: takes three numbers. The caller owns these descriptors, or they are not open.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The files by which a process joins the top of each hierarchy in which this one is below it.
/// Empty where that is not known.
fn groups_to_join() -> Vec<CString> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let (own, mounts) = (read("/proc/self/cgroup"), read("/proc/self/mountinfo"));
    let paths = own.lines().filter_map(|line| tops(line, &mounts));
    paths.filter_map(|path| CString::new(path).ok()).collect()
}

/// The file of the top of the hierarchy of one line of `/proc/self/cgroup`.
fn tops(line: &str, mounts: &str) -> Option<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    if path == "/" {
        return None;
    }
    let mount = mounts.lines().find(|mount| {
        let (Some((head, tail)), false) = (mount.split_once(" - "), mount.is_empty()) else {
            return false;
        };
        let is_top = head.split(' ').nth(3) == Some("/");
        let mut tail = tail.split(' ');
        let (kind, options) = (tail.next(), tail.nth(1).unwrap_or_default());
        let is_this = match controllers {
            "" => kind == Some("cgroup2"),
            controllers => {
                let has = |name| options.split(',').any(|option| option == name);
                kind == Some("cgroup") && controllers.split(',').all(has)
            }
        };
        is_top && is_this
    })?;
    let point = mount.split(' ').nth(4)?;
    // The kernel writes spaces and the like as octal numbers; such a place is left alone.
    (!point.contains('\\')).then(|| format!("{point}/cgroup.procs"))
}

/// All that the child does.
fn hold(others: &[(u32, u32)], groups: &[CString], leaving: libc::c_int) -> ! {
    for (first, last) in others {
        // The child's own copies, which it does not use.
        let _ = close_range(*first, *last);
    }
    // SAFETY: the names end with a zero byte; nothing is allocated and no lock is taken. What is
    // refused stays as it was.
    unsafe {
        libc::chdir(c"/".as_ptr());
        for group in groups {
            let file = libc::open(group.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            if file >= 0 {
                libc::write(file, c"0".as_ptr().cast(), 1);
                libc::close(file);
            }
        }
        libc::close(leaving);
    }
    let time = libc::timespec { tv_sec: 0, tv_nsec: HOLD_NS };
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
    use crate::error::ErrorKind;
    use crate::perf::{Attributes, EventSource};
    use std::os::fd::AsFd;

    #[test]
    fn all_others_are_all_others() {
        assert_eq!(all_but(Vec::new()), [(0, u32::MAX)]);
        assert_eq!(all_but(vec![7, 4, 5]), [(0, 3), (6, 6), (8, u32::MAX)]);
        assert_eq!(all_but(vec![0]), [(1, u32::MAX)]);
    }

    #[test]
    fn it_keeps_the_events_and_no_other_descriptors() {
        let faults = Attributes { user_only: true, ..Attributes::new(EventSource::PageFaults) };
        // Of this thread; where not even that is permitted it keeps nothing at all.
        let event = Event::on_thread(&faults, 0).ok();
        loop {
            let holder = match Holder::start(event.iter()) {
                Ok(holder) => holder,
                Err(error) if error.kind == ErrorKind::Unsupported => {
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
    fn the_top_of_each_hierarchy_is_found() {
        let mounts = "30 20 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      31 20 0:27 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n\
                      32 20 0:28 /box /mnt rw - cgroup cgroup rw,memory\n\
                      33 20 0:29 / /run/named rw - cgroup cgroup rw,name=systemd\n";
        let top = |line| tops(line, mounts);
        let cpu = "/sys/fs/cgroup/cpu,cpuacct/cgroup.procs";
        assert_eq!(top("4:cpu,cpuacct:/box").as_deref(), Some(cpu));
        let unified = "/sys/fs/cgroup/cgroup.procs";
        assert_eq!(top("0::/a/b").as_deref(), Some(unified));
        let named = "/run/named/cgroup.procs";
        assert_eq!(top("1:name=systemd:/x").as_deref(), Some(named));
        // One is at the top already, the top of the other cannot be seen.
        assert_eq!(top("0::/"), None);
        assert_eq!(top("5:memory:/box/a"), None);
    }

    #[test]
    fn it_ends_by_itself() {
        let Ok(holder) = Holder::start(std::iter::empty()) else {
            return testkit::skip("Linux 5.9");
        };
        let child = crate::pidfd::open(holder.pid).unwrap();
        drop(holder);
        assert_eq!(crate::poll::readable([Some(child.as_fd())], Some(0)), [true]);
    }
}
