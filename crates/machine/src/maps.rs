//! What a process has mapped: one entry for each line of /proc/PID/maps.
//!
//! Names are bytes: a path may hold any. The kernel escapes a line feed only and marks a file
//! without a name by " (deleted)", which a real name may end with as well: code that opens a path
//! compares device and inode.

use crate::root::Root;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use sys::{ErrorKind, Result};

/// How the kernel marks a file that has no name any more.
const DELETED: &[u8] = b" (deleted)";

/// Names of shared memory that has no name in any file system.
const SHARED_MEMORY: [&[u8]; 3] = [b"/memfd:", b"/SYSV", b"/dev/zero"];

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// Whether the process may read it.
    pub readable: bool,
    /// Whether the process may write to it.
    pub writable: bool,
    /// Whether the process may execute it.
    pub executable: bool,
    /// Whether writes are seen by others who map the same.
    pub shared: bool,
    /// Where in the file it starts, bytes.
    pub offset: u64,
    /// The file's device, major and minor; (0, 0) without a file.
    pub device: (u32, u32),
    /// The file's inode; 0 without a file.
    pub inode: u64,
    /// The file's name or the kernel's own (`[heap]`, `/memfd:x`), without the mark of a
    /// deleted one.
    pub path: Option<PathBuf>,
    /// Whether the file has no name any more.
    pub deleted: bool,
    /// What backs it.
    pub kind: MappingKind,
}

/// What backs a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MappingKind {
    /// Memory of the process alone: heap, stack, `mmap` without a file.
    Anonymous,
    /// Memory that can be shared and has no file: `memfd`, System V, shared `mmap`. A file on
    /// tmpfs (`/dev/shm`) cannot be distinguished by its name and is `File`.
    SharedMemory,
    /// A file. Pages that a private mapping wrote to are anonymous nonetheless.
    File,
    /// The kernel's own pages, as `[vdso]`: never moved.
    Special,
}

/// The mappings of the process `pid`, by address.
///
/// # Errors
/// `NotFound` for a process that is gone, `Denied` for one that this user may not look into.
pub fn read(root: &Root, pid: u32) -> Result<Vec<Mapping>> {
    Ok(parse(&root.read_bytes(format!("/proc/{pid}/maps"))?))
}

/// Which inodes of one device processes have mapped shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedMappings {
    /// The numbers of the inodes.
    pub inodes: BTreeSet<u64>,
    /// Processes that this user may not look into.
    pub unseen_processes: u64,
}

/// What all processes have mapped shared of the device with these numbers.
#[must_use]
pub fn shared(root: &Root, device: (u32, u32)) -> SharedMappings {
    let mut found = SharedMappings::default();
    for pid in root.names("/proc").iter().filter_map(|name| name.parse().ok()) {
        match read(root, pid) {
            Ok(mappings) => found.inodes.extend(
                mappings
                    .iter()
                    .filter(|mapping| mapping.shared && mapping.device == device)
                    .map(|mapping| mapping.inode),
            ),
            Err(error) if error.kind == ErrorKind::Denied => found.unseen_processes += 1,
            // It ended meanwhile.
            Err(_) => {}
        }
    }
    found
}

/// The mappings in the text of maps; other lines are skipped.
#[must_use]
pub fn parse(text: &[u8]) -> Vec<Mapping> {
    text.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

/// "7f00-7f10 r-xp 00001000 fe:01 1234     /usr/lib/x.so (deleted)"
fn parse_line(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(fields.next()?).ok();
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = word()?.split_once('-')?;
    let range = hex(start)?..hex(end)?;
    let &[read, write, execute, share] = word()?.as_bytes() else {
        return None;
    };
    let offset = hex(word()?)?;
    let (major, minor) = word()?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let device = (number(major)?, number(minor)?);
    let inode = word()?.parse().ok()?;
    let name = fields.next().unwrap_or_default().trim_ascii_start();
    let kept = name.strip_suffix(DELETED).unwrap_or(name);
    let path = (!kept.is_empty()).then(|| PathBuf::from(OsString::from_vec(plain(kept))));
    (range.start < range.end).then_some(Mapping {
        range,
        readable: read == b'r',
        writable: write == b'w',
        executable: execute == b'x',
        shared: share == b's',
        offset,
        device,
        inode,
        path,
        deleted: kept.len() < name.len(),
        kind: kind_of(kept, inode),
    })
}

fn kind_of(name: &[u8], inode: u64) -> MappingKind {
    const OWN: [&[u8]; 3] = [b"[heap]", b"[stack", b"[anon"];
    let starts = |marks: &[&[u8]]| marks.iter().any(|mark| name.starts_with(mark));
    if inode != 0 {
        let shared = starts(&SHARED_MEMORY) || name.starts_with(b"[anon_shmem:");
        return if shared { MappingKind::SharedMemory } else { MappingKind::File };
    }
    match name.first() {
        Some(b'[') if !starts(&OWN) => MappingKind::Special,
        _ => MappingKind::Anonymous,
    }
}

/// Undoes the kernel's escape of a line feed, the only one in this file.
fn plain(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = rest.starts_with(b"\\012");
        out.push(if escaped { b'\n' } else { first });
        rest = if escaped { &rest[4..] } else { tail };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt;

    const TEXT: &[u8] = b"\
55d0a000-55d0b000 r-xp 00002000 fe:01 1310747                            /usr/bin/a b (deleted)
55d0c000-55d0d000 rw-p 00000000 00:00 0                                  [heap]
7f000000-7f200000 rw-s 00001000 00:01 2055                               /memfd:x (deleted)
7f200000-7f300000 ---p 00000000 00:00 0 
7f300000-7f301000 rw-p 00000000 00:00 0                                  [anon:arena one]
7f301000-7f302000 rw-s 00000000 00:01 5                                  /dev/zero (deleted)
7ffc0000-7ffc1000 r--p 00000000 00:00 0                                  [vvar]
7ffd0000-7ffd1000 rw-p 00000000 103:02 9                                  /srv/o\\012\xff
";

    #[test]
    fn each_kind_is_recognized() {
        use MappingKind::{Anonymous, File, SharedMemory, Special};
        let kinds: Vec<MappingKind> = parse(TEXT).iter().map(|mapping| mapping.kind).collect();
        assert_eq!(
            kinds,
            [File, Anonymous, SharedMemory, Anonymous, Anonymous, SharedMemory, Special, File]
        );
    }

    #[test]
    fn each_field_is_read() {
        let all = parse(TEXT);
        let program = &all[0];
        assert_eq!(program.range, 0x55d0_a000..0x55d0_b000);
        assert!(program.readable && program.executable);
        assert!(!program.writable && !program.shared);
        assert_eq!((program.offset, program.inode), (0x2000, 1_310_747));
        assert_eq!(program.device, (0xfe, 1));
        assert_eq!(program.path.as_deref(), Some("/usr/bin/a b".as_ref()));
        assert!(program.deleted && !all[1].deleted);
        assert!(all[2].shared && all[2].writable);
        assert_eq!(all[3].path, None);
        assert!(!all[3].readable);
        assert_eq!(all[7].device, (0x103, 2));
        let name = all[7].path.as_ref().unwrap().as_os_str().as_bytes();
        assert_eq!(name, b"/srv/o\n\xff");
    }

    #[test]
    fn this_process_finds_its_own_memory() {
        let memory = sys::memory::Mapping::anonymous(1 << 20, sys::memory::Pages::Base).unwrap();
        let all = read(&Root::system(), std::process::id()).unwrap();
        let own =
            all.iter().find(|mapping| mapping.range.contains(&(memory.address() as u64))).unwrap();
        assert_eq!(own.kind, MappingKind::Anonymous);
        assert!(own.readable && own.writable && !own.shared);
        let program = std::env::current_exe().unwrap();
        assert!(all.iter().any(|mapping| {
            mapping.kind == MappingKind::File && mapping.path.as_deref() == Some(program.as_path())
        }));
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        let error = read(&Root::system(), u32::MAX).unwrap_err();
        assert_eq!(error.kind, crate::ErrorKind::NotFound);
    }

    proptest! {
        #[test]
        fn any_bytes_parse(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0..TEXT.len()) {
            let _ = parse(&bytes);
            let _ = parse(&TEXT[..cut]);
        }
    }
}
