//! What a tree holds, by descriptors, so at any depth: content and all metadata that a copy keeps.
//! It shares no code with the program under test.
// Each test file uses a part of it; and a helper of tests may unwrap as the tests do.
#![allow(dead_code, clippy::unwrap_used)]

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// An entry of a tree in words, and how much it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Everything that a copy keeps.
    pub words: String,
    pub bytes: u64,
    pub allocated: u64,
}

/// All entries below `top`, and itself, by their paths from there.
pub fn described(top: &Path) -> BTreeMap<OsString, Described> {
    let mut all = BTreeMap::new();
    let mut walk = Describer { all: &mut all, first_names: HashMap::new() };
    let parent = open_directory(top.parent().unwrap());
    walk.entry(&parent, top.file_name().unwrap(), OsString::new());
    all
}

/// Fails with what differs.
#[track_caller]
pub fn assert_same(source: &BTreeMap<OsString, Described>, copy: &Path, what: &str) {
    let copy = described(copy);
    for (path, is) in source {
        let found = copy.get(path);
        let (shown, words) = (path.to_string_lossy(), found.map(|found| &found.words));
        assert_eq!(Some(&is.words), words, "{what}: {}", &shown[shown.len().saturating_sub(80)..]);
        let found = found.unwrap();
        let most = is.allocated + is.bytes / 4 + (1 << 20);
        assert!(found.allocated <= most, "{what}: {shown}: {found:?}, of {is:?}");
    }
    assert_eq!(source.len(), copy.len(), "{what}");
}

/// A directory by its path.
pub fn open_directory(path: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).unwrap()
}

/// A directory in another one.
pub fn subdirectory(directory: &OwnedFd, name: &OsStr) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty()).unwrap()
}

/// Makes `depth` directories of this name, one in the other, and calls `fill` with the path of each
/// as it can be used: below the top it may be longer than a path may be.
pub fn make_deep(top: &Path, name: &str, depth: usize, mut fill: impl FnMut(usize, PathBuf)) {
    let mut held = open_directory(top);
    for level in 0..depth {
        rustix::fs::mkdirat(&held, name, Mode::from_raw_mode(0o755)).unwrap();
        held = subdirectory(&held, OsStr::new(name));
        fill(level, by_descriptor(&held));
    }
}

/// A path to an open directory that is short however deep it is.
pub fn by_descriptor(held: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()))
}

struct Describer<'a> {
    all: &'a mut BTreeMap<OsString, Described>,
    first_names: HashMap<(u64, u64), OsString>,
}

impl Describer<'_> {
    fn entry(&mut self, parent: &OwnedFd, name: &OsStr, path: OsString) {
        let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let kind = FileType::from_raw_mode(stat.st_mode);
        let mut words = format!(
            "{:o} {}:{} {}.{:09}",
            stat.st_mode, stat.st_uid, stat.st_gid, stat.st_mtime, stat.st_mtime_nsec
        );
        if kind != FileType::Directory {
            let inode = (stat.st_dev, stat.st_ino);
            let first = self.first_names.entry(inode).or_insert_with(|| path.clone());
            write!(words, " {} names as {first:?}", stat.st_nlink).unwrap();
        }
        match kind {
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(parent, name, Vec::new()).unwrap();
                write!(words, " to {target:?}").unwrap();
            }
            FileType::CharacterDevice | FileType::BlockDevice => {
                write!(words, " device {:x}", stat.st_rdev).unwrap();
            }
            FileType::RegularFile => write_content(&mut words, parent, name),
            _ => {}
        }
        write_attributes(&mut words, &by_descriptor(parent).join(name));
        let (bytes, allocated) = (stat.st_size as u64, stat.st_blocks as u64 * 512);
        let is_file = kind == FileType::RegularFile;
        let sized = if is_file { (bytes, allocated) } else { (0, 0) };
        self.all.insert(path.clone(), Described { words, bytes: sized.0, allocated: sized.1 });
        if kind == FileType::Directory {
            let held = subdirectory(parent, name);
            for below in names(&held) {
                let mut longer = path.clone();
                longer.push("/");
                longer.push(&below);
                self.entry(&held, &below, longer);
            }
        }
    }
}

/// The names in a directory, sorted.
pub fn names(directory: &OwnedFd) -> Vec<OsString> {
    let mut names: Vec<OsString> = Dir::read_from(directory)
        .unwrap()
        .map(|entry| OsString::from_vec(entry.unwrap().file_name().to_bytes().to_vec()))
        .filter(|name| name != "." && name != "..")
        .collect();
    names.sort();
    names
}

fn write_content(words: &mut String, parent: &OwnedFd, name: &OsStr) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOATIME;
    let mut file = File::from(rustix::fs::openat(parent, name, flags, Mode::empty()).unwrap());
    let mut buffer = vec![0; 256 << 10];
    let (mut length, mut sum) = (0, 0xcbf2_9ce4_8422_2325_u64);
    loop {
        let got = file.read(&mut buffer).unwrap();
        if got == 0 {
            break;
        }
        for word in buffer[..got].chunks(8) {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            sum = (sum ^ u64::from_le_bytes(bytes)).wrapping_mul(0x0000_0100_0000_01b3);
            sum ^= sum >> 29;
        }
        length += got;
    }
    write!(words, " {length} bytes {sum:x}").unwrap();
}

fn write_attributes(words: &mut String, path: &Path) {
    let mut buffer = vec![0; 64 << 10];
    let Ok(length) = rustix::fs::llistxattr(path, &mut buffer[..]) else { return };
    let mut names: Vec<Vec<u8>> = buffer[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    names.sort();
    for name in names {
        let name = OsStr::from_bytes(&name);
        let mut value = vec![0; 64 << 10];
        let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
        write!(words, " {name:?}={:02x?}", &value[..length]).unwrap();
    }
}
