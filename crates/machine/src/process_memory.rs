//! How much of each process is in swap, without reading its page table.
//!
//! `VmSwap` of /proc/PID/status counts private memory only: shared memory in swap belongs to no
//! process there. Threads of the kernel have no memory and are left out.

use crate::parse::kib_of;
use crate::root::Root;
use model::Bytes;

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Its number.
    pub pid: u32,
    /// When it started, ticks since boot: with the number it names a process for ever.
    pub start_ticks: u64,
    /// Its `comm`.
    pub name: String,
    /// Of its private memory, in swap.
    pub swap: Bytes,
}

/// All processes that can be seen, by number; one that ends during the scan is left out.
#[must_use]
pub fn all(root: &Root) -> Vec<ProcessMemory> {
    let names = root.names("/proc");
    let mut pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    pids.into_iter().filter_map(|pid| of(root, pid)).collect()
}

/// The process `pid`; `None` if it is gone or has no memory.
#[must_use]
pub fn of(root: &Root, pid: u32) -> Option<ProcessMemory> {
    let status = root.read(format!("/proc/{pid}/status")).ok()?;
    let stat = root.read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &status, &stat)
}

/// The same from the texts of status and stat.
#[must_use]
pub fn parse(pid: u32, status: &str, stat: &str) -> Option<ProcessMemory> {
    // "7 (a) b) S 1 ...": the name may hold anything, so what follows its last bracket counts.
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    // The third field of stat is the first after the name, the start is the 22nd.
    let start_ticks = after.split_whitespace().nth(19)?.parse().ok()?;
    Some(ProcessMemory { pid, start_ticks, name: name.to_owned(), swap: kib_of(status, "VmSwap")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 999 3";

    #[test]
    fn a_name_may_hold_brackets() {
        let found = parse(7, "Name:\ta) b\nVmSwap:\t     12 kB\n", STAT);
        let expected = ProcessMemory {
            pid: 7,
            start_ticks: 4711,
            name: "a) b".to_owned(),
            swap: Bytes(12 << 10),
        };
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn a_thread_of_the_kernel_has_no_memory() {
        assert_eq!(parse(2, "Name:\tkthreadd\nKthread:\t1\n", STAT), None);
    }

    #[test]
    fn this_process_is_among_all() {
        let pid = std::process::id();
        let found = all(&Root::system());
        assert!(found.iter().any(|process| process.pid == pid));
        assert!(found.is_sorted_by_key(|process| process.pid));
    }

    proptest::proptest! {
        #[test]
        fn any_text_parses(status in "\\PC{0,60}", stat in "[0-9() a]{0,90}") {
            let _ = parse(1, &status, &stat);
        }
    }
}
