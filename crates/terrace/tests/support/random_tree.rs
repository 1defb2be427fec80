//! Makes a tree from a seed, with everything that a copy may meet. As root, on a file system that
//! holds all of it.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

use rustix::fs::{AtFlags, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use testkit::Random;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Around every boundary at which a copy does something else.
const SIZES: [u64; 20] = [
    0,
    1,
    511,
    512,
    513,
    4095,
    4096,
    4097,
    64 * KIB,
    128 * KIB - 1,
    128 * KIB,
    128 * KIB + 1,
    MIB - 4096,
    MIB - 1,
    MIB,
    MIB + 1,
    MIB + 4096,
    2 * MIB + 511,
    3 * MIB - 1,
    4 * MIB + 4097,
];
const DIRECTORIES: u64 = 25;
const OTHER_FILES: u64 = 120;
/// More entries than one call lists.
const WIDE: u64 = 1500;
const DEEP: usize = 40;
/// Users of files: with names and without.
const OWNERS: [u32; 5] = [0, 1, 1000, 65534, 4_000_000_000];
/// The seconds of times: before 1970, and beyond 2038.
const FIRST_SECOND: i64 = -1_000_000_000;
const SECONDS: u64 = 7_000_000_000;

/// Makes the tree `top`, which must not exist.
pub fn make_tree(top: &Path, seed: u64) {
    fs::create_dir(top).unwrap();
    let mut maker =
        TreeMaker { random: Random(seed), directories: vec![top.to_owned()], files: vec![] };
    maker.directories();
    for size in SIZES {
        maker.file(size);
    }
    for _ in 0..OTHER_FILES {
        let size = maker.random.below(300) * maker.random.below(300);
        maker.file(size);
    }
    maker.sparse_files();
    maker.others();
    maker.wide_and_deep(top);
    maker.metadata();
}

struct TreeMaker {
    random: Random,
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl TreeMaker {
    fn one_in(&mut self, of: u64) -> bool {
        self.random.below(of) == 0
    }

    /// A place for a new entry, in any directory.
    fn place(&mut self) -> PathBuf {
        let at = self.random.below(self.directories.len() as u64) as usize;
        loop {
            let name = self.name();
            let path = self.directories[at].join(name);
            if path.symlink_metadata().is_err() {
                return path;
            }
        }
    }

    /// Any bytes but the two that no name has; now and then as long as one may be.
    fn name(&mut self) -> OsString {
        let length = match self.random.below(10) {
            0 => 255,
            1 => 1,
            _ => 2 + self.random.below(30),
        };
        let prefix: &[u8] = match self.random.below(12) {
            0 => b"-rf ",
            1 => b".terrace-copy.",
            2 => b"\x1b[31m\n",
            _ => b"",
        };
        let mut name = prefix.to_vec();
        while name.len() < length.max(prefix.len() as u64 + 1) as usize {
            let byte = self.random.below(256) as u8;
            if byte != 0 && byte != b'/' {
                name.push(byte);
            }
        }
        if name == b"." || name == b".." {
            name.push(b'x');
        }
        OsString::from_vec(name)
    }

    fn directories(&mut self) {
        for _ in 0..DIRECTORIES {
            let path = self.place();
            fs::create_dir(&path).unwrap();
            self.directories.push(path);
        }
    }

    fn bytes(&mut self, length: u64) -> Vec<u8> {
        let mut data = vec![0; length as usize];
        self.random.fill(&mut data);
        data
    }

    fn file(&mut self, size: u64) {
        let path = self.place();
        let data = self.bytes(size);
        fs::write(&path, data).unwrap();
        self.files.push(path);
    }

    /// Holes at the beginning, in between and at the end, of any length.
    fn sparse_files(&mut self) {
        for size in [5000, 300 * KIB, MIB - 1, MIB + 100, 8 * MIB + 3, 64 * MIB] {
            let path = self.place();
            let file = File::create(&path).unwrap();
            for _ in 0..self.random.below(5) {
                let length = (1 + self.random.below(200 * KIB)).min(size);
                let data = self.bytes(length);
                file.write_all_at(&data, self.random.below(size - length + 1)).unwrap();
            }
            file.set_len(size).unwrap();
            self.files.push(path);
        }
    }

    /// Second names, links, pipes, sockets and devices.
    fn others(&mut self) {
        for _ in 0..30 {
            let path = self.place();
            let at = self.random.below(self.files.len() as u64) as usize;
            fs::hard_link(&self.files[at], path).unwrap();
        }
        for length in [1, 40, 1000] {
            let path = self.place();
            let mut target = vec![b'/'; length];
            self.random.fill(&mut target);
            target.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b'z');
            symlink(OsString::from_vec(target), path).unwrap();
        }
        let kinds =
            [FileType::Fifo, FileType::Socket, FileType::CharacterDevice, FileType::BlockDevice];
        for kind in kinds {
            for _ in 0..2 {
                let path = self.place();
                let device = if matches!(kind, FileType::CharacterDevice | FileType::BlockDevice) {
                    rustix::fs::makedev(1 + self.random.below(500) as u32, 300)
                } else {
                    0
                };
                let mode = Mode::from_raw_mode(0o644);
                rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, device).unwrap();
            }
        }
    }

    fn wide_and_deep(&mut self, top: &Path) {
        let wide = top.join("wide");
        fs::create_dir(&wide).unwrap();
        for at in 0..WIDE {
            let data = self.bytes(at % 9);
            fs::write(wide.join(format!("{at}")), data).unwrap();
        }
        let mut deep = top.join("deep");
        for _ in 0..DEEP {
            fs::create_dir(&deep).unwrap();
            fs::write(deep.join("file"), "deep").unwrap();
            deep.push("below");
        }
        self.directories.push(wide);
    }

    /// Owners, attributes, modes and times, in an order in which the kernel keeps them.
    fn metadata(&mut self) {
        for path in self.files.clone() {
            self.dress(&path, true);
        }
        // What is in a directory is made, so it may be closed: the deepest first.
        for path in self.directories.clone().into_iter().rev() {
            self.dress(&path, false);
        }
    }

    fn dress(&mut self, path: &Path, is_file: bool) {
        if self.one_in(2) {
            let owner = |random: &mut Random| OWNERS[random.below(5) as usize];
            let user = Some(Uid::from_raw(owner(&mut self.random)));
            let group = Some(Gid::from_raw(owner(&mut self.random)));
            rustix::fs::chown(path, user, group).unwrap();
        }
        if self.one_in(4) {
            let length = self.random.below(900);
            let value = self.bytes(length);
            self.attribute(path, "user.terrace test", &value);
            self.attribute(path, "trusted.terrace", b"");
        }
        if self.one_in(5) {
            let list = access_list(OWNERS[self.random.below(5) as usize]);
            self.attribute(path, "system.posix_acl_access", &list);
            if !is_file {
                self.attribute(path, "system.posix_acl_default", &list);
            }
        }
        if is_file && self.one_in(8) {
            // cap_net_raw, permitted and effective.
            let capability = [1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            self.attribute(path, "security.capability", &capability);
        }
        if self.one_in(2) {
            // Not of files with an access list, whose mask it is.
            let mode = Mode::from_raw_mode(self.random.below(0o10000) as u32);
            rustix::fs::chmod(path, mode).unwrap();
        }
        let time = |random: &mut Random| Timespec {
            tv_sec: FIRST_SECOND + random.below(SECONDS).cast_signed(),
            tv_nsec: random.below(1_000_000_000).cast_signed(),
        };
        let times = Timestamps {
            last_access: time(&mut self.random),
            last_modification: time(&mut self.random),
        };
        rustix::fs::utimensat(rustix::fs::CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }

    fn attribute(&self, path: &Path, name: &str, value: &[u8]) {
        rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()).unwrap();
    }
}

/// A list as the kernel keeps it: one user besides the usual ones, and a mask.
fn access_list(user: u32) -> Vec<u8> {
    let none = u32::MAX;
    let entries = [(1, 7, none), (2, 5, user), (4, 4, none), (16, 5, none), (32, 1, none)];
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(u16::to_le_bytes(tag));
        list.extend(u16::to_le_bytes(permissions));
        list.extend(u32::to_le_bytes(id));
    }
    list
}
