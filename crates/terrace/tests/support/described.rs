//! What a copy of a tree keeps of it, described so that two trees are compared: content, links,
//! metadata. Access times change by reading.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Everything below `top`, by path. Names of one inode have the first of them.
pub fn described(top: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    describe(top, top, &mut BTreeMap::new(), &mut all);
    all
}

fn describe(
    top: &Path,
    at: &Path,
    inodes: &mut BTreeMap<u64, String>,
    all: &mut BTreeMap<String, String>,
) {
    let about = fs::symlink_metadata(at).unwrap();
    let name = format!("{:?}", at.strip_prefix(top).unwrap());
    let content = if about.is_symlink() {
        format!("{:?}", fs::read_link(at).unwrap())
    } else if about.is_file() {
        let first = inodes.entry(about.ino()).or_insert_with(|| name.clone()).clone();
        let sum = fs::read(at).unwrap().iter().fold(0u64, |sum, byte| {
            sum.wrapping_mul(0x0100_0000_01b3).wrapping_add(u64::from(*byte))
        });
        format!("{} bytes {sum:x} as {first} of {}", about.len(), about.nlink())
    } else {
        // 0 but for a device.
        about.rdev().to_string()
    };
    let time = (about.mtime(), about.mtime_nsec());
    let (mode, owner) = (about.mode(), (about.uid(), about.gid()));
    all.insert(name, format!("{mode:o} {owner:?} {time:?} {content}"));
    if about.is_dir() {
        // In one order, so that the first name of an inode is the same in both.
        let mut names: Vec<_> =
            fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        for below in names {
            describe(top, &below, inodes, all);
        }
    }
}

/// The tree is as another one was described; what differs, in words short enough to read.
pub fn assert_is(expected: &BTreeMap<String, String>, found: &Path) {
    let found = described(found);
    for (name, is) in expected {
        assert_eq!(Some(is), found.get(name), "{name}");
    }
    assert_eq!(expected.len(), found.len());
}

/// The names in a directory, in order.
pub fn names(directory: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut all: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| name(entry.unwrap())).collect();
    all.sort();
    all
}
