//! A control group of the hogs' own with a limit, so that they evict each other's memory and no
//! other.
//!
//! Version 1: a child of our own group. Version 2 lets no group have both processes and
//! limited children, so there it is a child of the nearest group above that gives `memory` to
//! its children; where a service manager owns that tree it is left alone. A group that a
//! killed run left is removed by the next one.

use crate::{Error, ErrorKind, Result};
use machine::Root;
use machine::cgroup::{CgroupVersion, Controller, own_group};
use model::Bytes;
use std::path::{Path, PathBuf};
use std::time::Duration;

const OPERATION: &str = "make a control group for the hogs";
/// Groups of hogs are named so, with the number of the process that made them after it.
const PREFIX: &str = "terrace-hog-";
/// There where systemd manages the machine (`sd_booted(3)`).
const SERVICE_MANAGER: &str = "/run/systemd/system";
/// A group can be removed only some time after its last process has ended.
const REMOVAL_TRIES: u32 = 200;
const REMOVAL_PAUSE: Duration = Duration::from_millis(10);

/// The group; removed on drop, when what was in it has ended.
#[derive(Debug)]
pub struct HogGroup {
    directory: PathBuf,
}

impl HogGroup {
    /// A group whose processes may have `limit` bytes of memory together.
    ///
    /// # Errors
    /// `Impossible` without the right or the controller.
    pub fn make(root: &Root, limit: Bytes) -> Result<Self> {
        let impossible = |why: String| Error::new(ErrorKind::Impossible, OPERATION, why);
        let (parent, limit_file) = parent(root).map_err(impossible)?;
        remove_leftovers(&parent);
        let directory = parent.join(format!("{PREFIX}{}", std::process::id()));
        let words = |error: std::io::Error| impossible(sys::plain_reason(&error));
        std::fs::create_dir(&directory).map_err(|error| words(error).at(&directory))?;
        // From here on `Drop` removes it.
        let group = Self { directory };
        let file = group.directory.join(limit_file);
        std::fs::write(&file, limit.0.to_string()).map_err(|error| words(error).at(&file))?;
        Ok(group)
    }

    /// Its directory in the tree of groups.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file of its own pressure; `None` in version 1.
    #[must_use]
    pub fn pressure_file(&self) -> Option<PathBuf> {
        let file = self.directory.join("memory.pressure");
        file.exists().then_some(file)
    }
}

impl Drop for HogGroup {
    fn drop(&mut self) {
        for _ in 0..REMOVAL_TRIES {
            if std::fs::remove_dir(&self.directory).is_ok() || !self.directory.exists() {
                return;
            }
            std::thread::sleep(REMOVAL_PAUSE);
        }
    }
}

/// Where the group goes, and the name of the file for its limit; or why it goes nowhere.
fn parent(root: &Root) -> std::result::Result<(PathBuf, &'static str), String> {
    let place = own_group(root, Controller::Memory).ok_or("there is no memory controller")?;
    let mut groups = place.groups().into_iter().map(|group| group.directory);
    if place.version == CgroupVersion::V1 {
        let own = groups.next().ok_or("the own group cannot be seen")?;
        return Ok((root.path(own), "memory.limit_in_bytes"));
    }
    if root.path(SERVICE_MANAGER).is_dir() {
        return Err("the service manager owns the groups; ask it for one: systemd-run --scope \
                    -p MemoryMax=256M terrace hog ..."
            .to_owned());
    }
    let gives_memory = |group: &PathBuf| {
        let given = root.read(group.join("cgroup.subtree_control"));
        given.is_ok_and(|given| given.split_whitespace().any(|name| name == "memory"))
    };
    let above = groups
        .find(gives_memory)
        .ok_or("no group above gives the memory controller to its children")?;
    Ok((root.path(above), "memory.max"))
}

/// Removes the groups of runs that were killed. Their hogs died with them.
fn remove_leftovers(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(maker_of);
        if maker.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// The process that made the group of this name.
fn maker_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    #[test]
    fn only_names_of_hogs_are_leftovers() {
        assert_eq!(maker_of("terrace-hog-12"), Some(12));
        for name in ["terrace-hog-", "terrace-12-34", "terrace-hog-x", "user.slice"] {
            assert_eq!(maker_of(name), None, "{name}");
        }
    }

    #[test]
    fn version_2_goes_to_the_nearest_group_that_gives_memory() {
        let tree = FakeRoot::bare()
            .file("/proc/self/mountinfo", "1 2 0:1 / /g rw - cgroup2 x rw\n")
            .file("/proc/self/cgroup", "0::/a/b\n")
            .file("/g/a/b/cgroup.subtree_control", "\n")
            .file("/g/a/cgroup.subtree_control", "cpu memory\n")
            .file("/g/cgroup.subtree_control", "memory\n");
        let root = Root::at(tree.path());
        assert_eq!(parent(&root), Ok((root.path("/g/a"), "memory.max")));
        std::fs::create_dir_all(root.path(SERVICE_MANAGER)).unwrap();
        assert!(parent(&root).unwrap_err().contains("systemd-run"));
    }

    #[test]
    fn version_1_goes_below_our_own() {
        let tree = FakeRoot::bare()
            .file("/proc/self/mountinfo", "1 2 0:1 / /m rw - cgroup cgroup rw,memory\n")
            .file("/proc/self/cgroup", "4:memory:/a\n");
        let root = Root::at(tree.path());
        assert_eq!(parent(&root), Ok((root.path("/m/a"), "memory.limit_in_bytes")));
        let none = FakeRoot::bare().file("/proc/self/cgroup", "4:memory:/a\n");
        assert!(parent(&Root::at(none.path())).is_err());
    }
}
