//! Processes and their parents, from /proc.
//!
//! Reading all of /proc costs as much as the machine has processes. If a few processes have no
//! other children, those few are enough.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

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

/// The letter of a thread's state and its parent, from its `stat`.
pub(crate) fn state_and_parent(path: &str) -> Option<(u8, u32)> {
    // One read gives all; `fs::read` would need four for a file that hides its length.
    let mut buffer = [0; STAT_BYTES_MAX];
    let bytes = std::fs::File::open(path).ok()?.read(&mut buffer).ok()?;
    let stat = &buffer[..bytes];
    // A name may hold anything but ends with the last parenthesis.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let mut words = rest.split_ascii_whitespace();
    let letter = *words.next()?.as_bytes().first()?;
    Some((letter, words.next()?.parse().ok()?))
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
