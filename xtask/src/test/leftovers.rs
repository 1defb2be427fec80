//! What a run of tests left behind: directories, mounts, loop devices, swap areas, zram devices and
//! control groups that are there after it and were not before it.
//!
//! Guards of `testkit` name what they make after their process, so what a test program left names
//! it. What belongs to a process that lives is in use; what names no process of this run may be of
//! another run on this machine, and is only said.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How the names of all guards begin; the number of the process follows.
const PREFIX: &str = "terrace-test-";

/// Directories in which guards make theirs.
const PARENTS: [&str; 2] = ["/tmp", "/dev/shm"];

/// Groups of tests are at most so deep below the top of their hierarchy.
const GROUP_DEPTH: usize = 6;

/// One thing, in words with its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Leftover {
    pub(super) words: String,
    /// The process that made it, if its name says so.
    pub(super) process: Option<u32>,
}

/// What is there now.
#[derive(Debug)]
pub(super) struct Present(BTreeSet<Leftover>);

impl Present {
    pub(super) fn now() -> Self {
        let mut all = BTreeSet::new();
        let mut add = |kind: &str, name: &str| {
            all.insert(Leftover { words: format!("{kind} {name}"), process: process_of(name) });
        };
        let temporary = std::env::temp_dir();
        let parents = PARENTS.iter().map(Path::new).chain([temporary.as_path()]);
        for path in parents.flat_map(entries).filter(|path| is_ours(path)) {
            add("directory", &path.to_string_lossy());
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        for line in mounts.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let (point, source) = (fields[4.min(fields.len() - 1)], fields[fields.len() - 2]);
            if point.contains(PREFIX) || source.contains(PREFIX) {
                add("mount", &format!("{source} at {point}"));
            }
            if line.contains(" - cgroup") {
                for group in groups(Path::new(point), GROUP_DEPTH) {
                    add("group", &group.to_string_lossy());
                }
            }
        }
        for device in entries(Path::new("/sys/block")) {
            let name = device.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let file = fs::read_to_string(device.join("loop/backing_file")).unwrap_or_default();
            let is_used = fs::read_to_string(device.join("initstate"));
            if file.contains(PREFIX) {
                add("loop device", &format!("{name} over {}", file.trim_end()));
            } else if is_used.is_ok_and(|state| state.trim() == "1") {
                add("zram device", &name);
            }
        }
        let areas = fs::read_to_string("/proc/swaps").unwrap_or_default();
        for area in areas.lines().skip(1).filter_map(|line| line.split_whitespace().next()) {
            add("swap area", area);
        }
        Self(all)
    }

    /// What is here and was not in `before`, but for what a living process has.
    pub(super) fn since(&self, before: &Self) -> Vec<Leftover> {
        let is_new = |found: &&Leftover| !before.0.contains(found) && !is_in_use(found);
        self.0.iter().filter(is_new).cloned().collect()
    }
}

fn is_in_use(found: &Leftover) -> bool {
    found.process.is_some_and(|process| Path::new(&format!("/proc/{process}")).exists())
}

/// The number behind the prefix.
fn process_of(name: &str) -> Option<u32> {
    let (_, rest) = name.split_once(PREFIX)?;
    rest.split(|digit: char| !digit.is_ascii_digit()).next()?.parse().ok()
}

fn is_ours(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(directory).into_iter().flatten().flatten();
    all.map(|entry| entry.path()).collect()
}

/// The groups of tests below a directory of the hierarchy.
fn groups(directory: &Path, depth: usize) -> Vec<PathBuf> {
    let below = fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found = Vec::new();
    for path in directories.map(|entry| entry.path()) {
        if is_ours(&path) {
            found.push(path);
        } else if depth > 1 {
            found.extend(groups(&path, depth - 1));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_directory_of_a_process_that_ended_is_left_and_one_in_use_is_not() {
        let before = Present::now();
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let folder = testkit::TempDir::new();
        let left = std::env::temp_dir().join(format!("{PREFIX}{}-0-leftovers", ended.id()));
        fs::create_dir(&left).unwrap();
        let found = Present::now().since(&before);
        fs::remove_dir(&left).unwrap();
        let words = format!("directory {}", left.display());
        let one = found.iter().find(|found| found.words == words).unwrap();
        assert_eq!(one.process, Some(ended.id()));
        let own = folder.path().to_string_lossy().into_owned();
        assert!(found.iter().all(|found| !found.words.contains(&own)), "{found:?}");
        assert!(!Present::now().since(&before).iter().any(|found| found.words == words));
    }

    #[test]
    fn a_mount_and_a_loop_device_name_the_process_that_made_them() {
        let before = Present::now();
        let disk = match testkit::Mounted::ext4(8 << 20) {
            Ok(disk) => disk,
            Err(need) => return testkit::skip(need),
        };
        let own = Some(std::process::id());
        let after = Present::now();
        for kind in ["mount ", "loop device "] {
            let is_it = |found: &&Leftover| {
                found.words.starts_with(kind) && found.process == own && !before.0.contains(*found)
            };
            assert!(after.0.iter().any(|found| is_it(&found)), "{kind}: {after:?}");
        }
        drop(disk);
    }

    #[test]
    fn a_group_of_a_test_is_found() {
        let group = match testkit::Cgroup::v2().or_else(|_| testkit::Cgroup::v1_freezer()) {
            Ok(group) => group,
            Err(need) => return testkit::skip(need),
        };
        let path = group.path().to_string_lossy().into_owned();
        let all = Present::now();
        assert!(all.0.iter().any(|found| found.words == format!("group {path}")), "{path} {all:?}");
    }

    #[test]
    fn the_process_is_in_the_name() {
        assert_eq!(process_of("/dir/terrace-test-17-0-18eba/x"), Some(17));
        assert_eq!(process_of("terrace-test-17 at /mnt"), Some(17));
        assert_eq!(process_of("/dir/terrace-test-x"), None);
        assert_eq!(process_of("/dev/zram0"), None);
    }
}
