//! Background priority for a thread: its disk requests and its share of a processor give way to all
//! others.
//!
//! Owns `ioprio_get`, `ioprio_set` and the nice value of the calling thread; both are its own and
//! no setting of the machine. The I/O class is honoured by the schedulers bfq and mq-deadline
//! (since Linux 5.14); with `none` it has no effect. Threads and processes that are started inherit
//! both.

use crate::error::{Error, Result};
use crate::process::{Capability, has_capability};
use rustix::process::{getpriority_process, setpriority_process};

/// `IOPRIO_WHO_PROCESS` of linux/ioprio.h; with the number 0 it is the calling thread.
const WHO_THREAD: libc::c_int = 1;
/// `IOPRIO_CLASS_IDLE`, shifted by `IOPRIO_CLASS_SHIFT`.
const IDLE: libc::c_long = 3 << 13;
/// A tenth of an ordinary thread's share of a processor that is busy (weight 110 against 1024), all
/// of one that is not. Not less: a thread that loses its processor with a page locked, or between
/// two looks at free memory, comes back after about a slice (3 ms) over its share. That is 30 ms
/// here, 200 ms at 19 (weight 15), 1 s in the class `SCHED_IDLE` (weight 3). Seen with two busy
/// processors and Linux 6.18, a program that needed its memory meanwhile waited for a page up to
/// 73 ms beside an ordinary restore, 160 ms at 10, 749 ms at 19.
const NICE: i32 = 10;

/// While this lives, the calling thread gives way to all others; what was set before comes back on
/// drop, which must be in the same thread.
#[derive(Debug)]
pub struct Background {
    class_before: libc::c_long,
    /// `None` where it was left as it was.
    nice_before: Option<i32>,
    /// A raw pointer keeps the value in its thread.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Background {
    /// Moves the calling thread to the idle class of I/O, and to nice 10 unless it is nicer
    /// already. Without `CAP_SYS_NICE` the nice value stays, because it could not be put back.
    ///
    /// # Errors
    /// Only where a filter forbids the I/O class.
    pub fn take() -> Result<Self> {
        const OPERATION: &str = "lower the I/O priority";
        // SAFETY: takes numbers; 0 is the calling thread.
        let class_before = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_THREAD, 0) };
        if class_before < 0 || !set_class(IDLE) {
            return Err(Error::last(OPERATION));
        }
        let nice_before = has_capability(Capability::SysNice)
            .then(nice)
            .filter(|before| *before < NICE && set_nice(NICE));
        Ok(Self { class_before, nice_before, _thread: std::marker::PhantomData })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It was so before, hence it is permitted.
        set_class(self.class_before);
        if let Some(before) = self.nice_before {
            set_nice(before);
        }
    }
}

fn set_class(priority: libc::c_long) -> bool {
    // SAFETY: takes numbers; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_THREAD, 0, priority) == 0 }
}

/// The nice value of the calling thread: Linux has one for each. It cannot fail for one's own.
fn nice() -> i32 {
    getpriority_process(None).unwrap_or(0)
}

fn set_nice(nice: i32) -> bool {
    setpriority_process(None, nice).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I/O class and nice value.
    fn now() -> (libc::c_long, libc::c_int) {
        // SAFETY: takes numbers; 0 is the calling thread.
        let class = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_THREAD, 0) };
        (class, nice())
    }

    fn elsewhere() -> (libc::c_long, libc::c_int) {
        std::thread::spawn(now).join().unwrap()
    }

    #[test]
    fn the_thread_gives_way_while_it_lives_and_is_then_as_before() {
        let before = now();
        let background = Background::take().unwrap();
        let wanted =
            if has_capability(Capability::SysNice) { NICE.max(before.1) } else { before.1 };
        assert_eq!(now(), (IDLE, wanted));
        assert_eq!(elsewhere(), now(), "inherited");
        drop(background);
        assert_eq!(now(), before);
    }

    #[test]
    fn who_is_nicer_already_stays_so_and_no_other_thread_is_touched() {
        let (ready, taken) = std::sync::mpsc::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let before = now();
        let nicer_still = before.1.max(NICE + 5);
        let nicer = std::thread::spawn(move || {
            assert!(set_nice(nicer_still));
            let background = Background::take().unwrap();
            ready.send(now()).unwrap();
            let _ = released.recv();
            drop(background);
            nice()
        });
        assert_eq!(taken.recv().unwrap(), (IDLE, nicer_still));
        assert_eq!(now(), before);
        drop(release);
        assert_eq!(nicer.join().unwrap(), nicer_still);
    }
}
