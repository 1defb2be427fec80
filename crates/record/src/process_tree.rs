//! Processes and their parents, from /proc.
//!
//! Reading all of /proc costs as much as the machine has processes. If a few processes have no
//! other children, those few are enough.

use model::duration::CLOCK_TICK_NS;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::str::SplitAsciiWhitespace;

/// How far a chain of parents is followed; deeper trees do not occur.
pub(crate) const CHAIN_MAX: usize = 64;

/// More than the largest `stat` of a thread: a name of 64 bytes and 52 numbers of 20 digits.
const STAT_BYTES_MAX: usize = 1536;

/// Every process and its parent.
pub(crate) fn parents() -> HashMap<u32, u32> {
    numbers(Path::new("/proc")).filter_map(|process| Some((process, parent(process)?))).collect()
}

/// Parents of `processes` and their descendants. If none of them has other children, returns just
/// those, as for a command that has not begun; otherwise scans all of /proc.
pub(crate) fn parents_around(processes: &[u32]) -> HashMap<u32, u32> {
    let is_named = |child: &u32| processes.contains(child);
    let has_others = |process: &u32| {
        let children = children(*process);
        children.is_none_or(|children| !children.iter().all(is_named))
    };
    if processes.iter().any(has_others) {
        return parents();
    }
    let named = processes.iter();
    named.filter_map(|process| Some((*process, parent(*process)?))).collect()
}

/// The children of a process that has not ended; `None` where the kernel does not list them.
/// While some of them end the list can lack others, but never all.
fn children(process: u32) -> Option<Vec<u32>> {
    let directory = format!("/proc/{process}/task");
    let mut all = Vec::new();
    for thread in numbers(Path::new(&directory)) {
        // Where the thread has ended meanwhile others have its children: not certain any more.
        let text = std::fs::read_to_string(format!("{directory}/{thread}/children")).ok()?;
        all.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    }
    Some(all)
}

/// The parent of a process.
pub(crate) fn parent(process: u32) -> Option<u32> {
    state_and_parent(&format!("/proc/{process}/stat")).map(|(_, parent)| parent)
}

/// The parent of a process, and when it began on the clock of [`sys::clock::since_boot_ns`], in
/// whole hundredths of a second.
pub(crate) fn parent_and_beginning(process: u32) -> Option<(u32, u64)> {
    read_stat(&format!("/proc/{process}/stat"), |words| {
        let parent = words.nth(1)?.parse().ok()?;
        let ticks: u64 = words.nth(17)?.parse().ok()?;
        Some((parent, ticks.saturating_mul(CLOCK_TICK_NS)))
    })
}

/// The letter of a thread's state and its parent, from its `stat`.
pub(crate) fn state_and_parent(path: &str) -> Option<(u8, u32)> {
    read_stat(path, |words| {
        let letter = *words.next()?.as_bytes().first()?;
        Some((letter, words.next()?.parse().ok()?))
    })
}

/// Reads what follows the name in a `stat`: the state, then numbers.
fn read_stat<T>(
    path: &str,
    take: impl FnOnce(&mut SplitAsciiWhitespace<'_>) -> Option<T>,
) -> Option<T> {
    // One read gives all; `fs::read` would need four for a file that hides its length.
    let mut buffer = [0; STAT_BYTES_MAX];
    let bytes = std::fs::File::open(path).ok()?.read(&mut buffer).ok()?;
    let stat = &buffer[..bytes];
    // A name may hold anything but ends with the last parenthesis.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    take(&mut rest.split_ascii_whitespace())
}

/// The entries of a directory that are numbers.
pub(crate) fn numbers(directory: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Self {
            Self(Command::new("sleep").arg("60").spawn().unwrap())
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn one_without_children_is_looked_up_alone() {
        let (own, child) = (std::process::id(), Sleeper::start());
        let pid = child.0.id();
        assert_eq!(parent(pid), Some(own));
        let (_, began_ns) = parent_and_beginning(pid).unwrap();
        let since_ns = sys::clock::since_boot_ns() - began_ns;
        assert!(since_ns < 5_000_000_000, "{since_ns} ns");
        if children(pid).is_none() {
            return testkit::skip("a kernel that lists children");
        }
        assert_eq!(parents_around(&[pid]), HashMap::from([(pid, own)]));
        // This process has a child that is not named.
        let all = parents_around(&[own]);
        assert_eq!(all.get(&pid), Some(&own));
        assert_eq!(all.get(&own).copied(), parent(own));
        assert_eq!(parent(u32::MAX), None);
    }
}
