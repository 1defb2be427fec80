//! What this process is and may do: user, capabilities, page size.
//!
//! Capabilities are asked of the kernel, not guessed from the user number: root in a
//! container often has few of them.

use crate::directory::Directory;
use crate::error::{Error, Result, check, failed};
use std::ffi::{CString, OsStr};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The capabilities that some level of insight depends on; numbers from `capability(7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Read any file, whatever its permissions.
    DacReadSearch = 2,
    /// What else only the owner of a file may do.
    Fowner = 3,
    /// Settings of the network, and reports of threads that end.
    NetAdmin = 12,
    /// Lock memory beyond the limit, use huge pages of a pool.
    IpcLock = 14,
    /// Read any process's maps and memory.
    SysPtrace = 19,
    /// Mounts, block devices' settings, physical addresses.
    SysAdmin = 21,
    /// Raise priorities and scheduling classes.
    SysNice = 23,
    /// Go beyond resource limits.
    SysResource = 24,
    /// The addresses of the kernel's functions.
    Syslog = 34,
    /// Performance counters of other processes and the kernel.
    Perfmon = 38,
    /// Run programs in the kernel.
    Bpf = 39,
}

/// Names the calling thread after the file of this program: a process that was started by
/// `/proc/self/exe` is called "exe" otherwise.
///
/// # Errors
/// Only where a filter forbids the call.
pub fn take_own_name() -> Result<()> {
    let path = std::env::current_exe().unwrap_or_default();
    let file_name = path.file_name().unwrap_or_default().as_bytes();
    // So the kernel marks a file that was removed since.
    let own_name = file_name.strip_suffix(b" (deleted)").unwrap_or(file_name);
    // A file name has no zero byte. The kernel cuts it at 15 bytes.
    rustix::thread::set_name(&CString::new(own_name).unwrap_or_default())
        .map_err(failed("take this program's name"))
}

/// The effective user number; 0 is root.
#[must_use]
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The effective group number.
#[must_use]
pub fn effective_gid() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Makes this process that user's for good, with no other group than `gid`.
///
/// # Errors
/// `Denied` without the right to; the process may have lost its groups then, so end it.
pub fn become_user(uid: u32, gid: u32) -> Result<()> {
    const OPERATION: &str = "become another user";
    // SAFETY: no group is read from the null pointer, as none is counted.
    check(OPERATION, unsafe { libc::setgroups(0, std::ptr::null()) })?;
    // SAFETY: takes numbers. The group first: afterwards there is no right to it.
    check(OPERATION, unsafe { libc::setgid(gid) })?;
    // SAFETY: takes a number; the C library does it for all threads.
    check(OPERATION, unsafe { libc::setuid(uid) }).map(drop)
}

/// Does `work` as another user, in this thread alone and only until it is done: what it opens and
/// connects to is opened and connected to with that user's rights.
///
/// # Errors
/// `Denied` without the right to; the thread has its own rights then.
pub fn as_user<T>(uid: u32, gid: u32, work: impl FnOnce() -> T) -> Result<T> {
    const OPERATION: &str = "act as another user";
    let own = (effective_uid(), effective_gid());
    // By the calls themselves: the C library's functions change all threads.
    let set = |call: libc::c_long, id: u32| {
        const KEPT: libc::c_long = -1;
        // SAFETY: takes numbers only.
        let answer = unsafe { libc::syscall(call, KEPT, libc::c_long::from(id), KEPT) };
        check(OPERATION, answer as libc::c_int).map(drop)
    };
    set(libc::SYS_setresgid, gid)?;
    let done = set(libc::SYS_setresuid, uid).map(|()| work());
    // The saved numbers are the old ones still, so both calls are permitted.
    let _ = set(libc::SYS_setresuid, own.0);
    let _ = set(libc::SYS_setresgid, own.1);
    done
}

/// Kills all processes of the group whose first process is the child `leader`, which was not waited
/// for yet.
///
/// # Errors
/// If there is no such group any more.
pub fn kill_group(leader: u32) -> Result<()> {
    const OPERATION: &str = "end a group of processes";
    let leader = crate::pidfd::process_number(OPERATION, leader)?;
    rustix::process::kill_process_group(leader, rustix::process::Signal::KILL)
        .map_err(failed(OPERATION))
}

/// Says to the kernel that this process does what memory reclaim waits for, so it may use the last
/// reserves and is not made to write other dirty pages first.
///
/// # Errors
/// `Denied` without `CAP_SYS_RESOURCE`.
pub fn serve_memory_reclaim() -> Result<()> {
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: this request takes numbers alone.
    let answer = unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
    check("serve memory reclaim", answer).map(drop)
}

/// Says how soon the kernel kills this process, and those that it starts, when memory is short:
/// from -1000, never, to 1000, first.
///
/// # Errors
/// `Denied` for less than it has, without `CAP_SYS_RESOURCE`; without /proc.
pub fn set_memory_kill_score(score: i16) -> Result<()> {
    // Not a setting of the machine: a file of this process alone.
    let own = Directory::open(Path::new("/proc/self"))?;
    let mut file = own.open_own(OsStr::new("oom_score_adj"))?;
    file.write_all(score.to_string().as_bytes())
        .map_err(|error| Error::new("set how soon it is killed when memory is short", error))
}

/// Whether the calling thread has `capability` in effect; false also if it cannot be read.
#[must_use]
pub fn has_capability(capability: Capability) -> bool {
    rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.bits() >> capability as u32 & 1 == 1)
}

/// Bytes in a base page.
#[must_use]
pub fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// How many descriptors this process may have; `None` if there is no limit.
#[must_use]
pub fn open_files_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_user_s_rights_end_with_the_work() {
        let own = (effective_uid(), effective_gid());
        if own.0 != 0 {
            return testkit::skip("root");
        }
        assert_eq!(
            as_user(65_534, 65_534, || (effective_uid(), effective_gid())).unwrap(),
            (65_534, 65_534)
        );
        assert_eq!((effective_uid(), effective_gid()), own);
        assert!(has_capability(Capability::SysAdmin) == testkit::is_admin());
    }

    #[test]
    fn a_process_says_how_soon_it_is_killed() {
        let own = || std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
        let before = own().trim().parse::<i16>().unwrap();
        if !has_capability(Capability::SysResource) {
            return testkit::skip("CAP_SYS_RESOURCE");
        }
        set_memory_kill_score(before - 1).unwrap();
        assert_eq!(own().trim(), (before - 1).to_string());
        set_memory_kill_score(before).unwrap();
        assert!(set_memory_kill_score(2000).is_err());
        assert_eq!(own().trim(), before.to_string());
    }

    #[test]
    fn capabilities_agree_with_proc() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        let effective = u64::from_str_radix(line.trim(), 16).unwrap();
        for capability in [
            Capability::DacReadSearch,
            Capability::Fowner,
            Capability::NetAdmin,
            Capability::IpcLock,
            Capability::SysPtrace,
            Capability::SysAdmin,
            Capability::SysNice,
            Capability::SysResource,
            Capability::Syslog,
            Capability::Perfmon,
            Capability::Bpf,
        ] {
            let bit = effective >> (capability as u32) & 1 == 1;
            assert_eq!(has_capability(capability), bit, "{capability:?}");
        }
    }

    #[test]
    fn a_page_is_a_power_of_two() {
        assert!(page_bytes() >= 4096);
        assert!(page_bytes().is_power_of_two());
    }
}
