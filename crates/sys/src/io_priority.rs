//! The class in which a thread's disk requests wait: idle ones go when nobody else's do.
//!
//! Owns `ioprio_get` and `ioprio_set` for the calling thread. Honoured by the schedulers bfq and
//! mq-deadline (since Linux 5.14); with `none` it has no effect. Threads that are started
//! inherit it.

use crate::error::{Error, Result};

/// `IOPRIO_WHO_PROCESS` of linux/ioprio.h; with the number 0 it is the calling thread.
const WHO_THREAD: libc::c_int = 1;
/// `IOPRIO_CLASS_IDLE`, shifted by `IOPRIO_CLASS_SHIFT`.
const IDLE: libc::c_long = 3 << 13;

/// While this lives, the calling thread's requests give way to all others; what was set before
/// comes back on drop, which must be in the same thread.
#[derive(Debug)]
pub struct Idle {
    before: libc::c_long,
    /// A raw pointer keeps the value in its thread.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Idle {
    /// Moves the calling thread to the idle class.
    ///
    /// # Errors
    /// Only where a filter forbids it.
    pub fn take() -> Result<Self> {
        const OPERATION: &str = "lower the I/O priority";
        // SAFETY: takes numbers; 0 is the calling thread.
        let before = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_THREAD, 0) };
        if before < 0 || !set(IDLE) {
            return Err(Error::last(OPERATION));
        }
        let _thread = std::marker::PhantomData;
        Ok(Self { before, _thread })
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        // It was so before, hence it is permitted.
        set(self.before);
    }
}

fn set(priority: libc::c_long) -> bool {
    // SAFETY: takes numbers; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_THREAD, 0, priority) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> libc::c_long {
        // SAFETY: takes numbers; 0 is the calling thread.
        unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_THREAD, 0) }
    }

    #[test]
    fn the_thread_is_idle_while_it_lives_and_then_as_before() {
        let before = now();
        let idle = Idle::take().unwrap();
        assert_eq!(now(), IDLE);
        assert_eq!(std::thread::spawn(now).join().unwrap(), IDLE);
        drop(idle);
        assert_eq!(now(), before);
    }
}
