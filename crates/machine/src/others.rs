//! Processes of others: what shows whether this process may look into them.
//!
//! Process 1 alone shows too little: some machines protect it in a way of their own.

use crate::root::Root;
use std::os::unix::fs::MetadataExt;

/// Processes that this one did not start as itself: of other users, or for root any other process
/// that runs a program. At most `most` of them, the lowest numbers first.
#[must_use]
pub fn processes_of_others(root: &Root, most: usize) -> Vec<u32> {
    let own = (std::process::id(), sys::process::effective_uid());
    let mut found: Vec<u32> =
        root.names("/proc").iter().filter_map(|name| name.parse().ok()).collect();
    found.sort_unstable();
    let is_other = |pid: &u32| {
        let owner = std::fs::metadata(root.path(format!("/proc/{pid}"))).ok().map(|it| it.uid());
        let is_of_other_user = own.1 == 0 || owner.is_some_and(|uid| uid != own.1);
        // Threads of the kernel have no command line.
        let runs =
            || root.read_bytes(format!("/proc/{pid}/cmdline")).is_ok_and(|it| !it.is_empty());
        *pid != own.0 && is_of_other_user && runs()
    };
    found.into_iter().filter(is_other).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    #[test]
    fn the_own_process_and_threads_of_the_kernel_are_left_out() {
        let own = std::process::id();
        let fake = FakeRoot::new()
            .file("/proc/1/cmdline", "init\0")
            .file("/proc/2/cmdline", "")
            .file("/proc/7/cmdline", "sh\0")
            .file(&format!("/proc/{own}/cmdline"), "x\0")
            .file("/proc/meminfo", "");
        let root = Root::at(fake.path());
        if sys::process::effective_uid() != 0 {
            return testkit::skip("root, which has processes of other users");
        }
        assert_eq!(processes_of_others(&root, 8), [1, 7]);
        assert_eq!(processes_of_others(&root, 1), [1]);
    }
}
