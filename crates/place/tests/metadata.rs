//! Metadata on real file systems: what they hold is equal afterwards, and what they do not is said.
//! Needs root and loop devices; as an ordinary user in a child of this program.

#![allow(clippy::unwrap_used, reason = "a test program")]

use place::metadata::{FileMetadata, LossKind, LossReason, MetadataLoss, create_like};
use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use sys::attributes::{self, FileTime};
use sys::directory::{Directory, SpecialFile};
use sys::file_stat::{FileStat, InodeKind};
use testkit::{Mounted, TempDir};

const BEFORE_1970: FileTime = FileTime { seconds: -1_000_000_007, nanoseconds: 123_456_789 };
const AFTER_2038: FileTime = FileTime { seconds: 4_000_000_001, nanoseconds: 987_654_321 };
const ODD_SECOND: FileTime = FileTime { seconds: 1_700_000_001, nanoseconds: 987_654_321 };
const OTHER: u32 = 4242;

/// An access control list of version 2 that gives the user 1000 `r-x`, with the mode 0650.
const ACCESS_LIST: [u8; 44] = {
    let mut list = [0; 44];
    let entries: [(u8, u8, u32); 5] = [
        (1, 6, u32::MAX),
        (2, 5, 1000),
        (4, 5, u32::MAX),
        (0x10, 5, u32::MAX),
        (0x20, 0, u32::MAX),
    ];
    list[0] = 2;
    let mut index = 0;
    while index < 5 {
        let (tag, rights, id) = entries[index];
        let at = 4 + index * 8;
        list[at] = tag;
        list[at + 2] = rights;
        let bytes = id.to_le_bytes();
        let mut byte = 0;
        while byte < 4 {
            list[at + 4 + byte] = bytes[byte];
            byte += 1;
        }
        index += 1;
    }
    list
};

fn name(text: &str) -> &OsStr {
    OsStr::new(text)
}

fn open(path: &Path) -> Directory {
    Directory::open(path).unwrap()
}

/// A file of `directory` with everything that a file can have.
fn full_file(directory: &Directory) -> File {
    let file = directory.create_new(name("source"), 0o600).unwrap();
    attributes::set_owner(&file, OTHER, OTHER + 1).unwrap();
    attributes::set_extended(&file, name("user.colour"), &[0, 255, 10]).unwrap();
    attributes::set_extended(&file, name("user.empty"), b"").unwrap();
    attributes::set_extended(&file, name("trusted.secret"), b"x").unwrap();
    attributes::set_extended(&file, name("system.posix_acl_access"), &ACCESS_LIST).unwrap();
    attributes::set_mode(&file, 0o6650).unwrap();
    attributes::set_times(&file, BEFORE_1970, AFTER_2038).unwrap();
    file
}

/// Whether both have the same owner, mode and attributes, and `target` these times.
fn assert_applied(source: &FileMetadata, target: &File) {
    let now = FileMetadata::of(target).unwrap();
    assert_eq!((now.stat.user, now.stat.group), (source.stat.user, source.stat.group));
    assert_eq!(now.stat.mode, source.stat.mode, "{:o}", now.stat.mode);
    assert_eq!(now.extended, source.extended);
    assert_eq!(now.stat.accessed, source.stat.accessed);
    assert_eq!(now.stat.modified, source.stat.modified);
}

/// File systems that hold all of it.
const WHOLE: [(&str, &[&str]); 3] =
    [("ext4", &["-q", "-I", "256"]), ("xfs", &["-q"]), ("btrfs", &["-q"])];
const MIB: u64 = 1 << 20;

#[test]
fn all_metadata_of_all_kinds_of_files_is_equal_afterwards() {
    let mut source_of = None;
    for (file_system, options) in WHOLE {
        let mounted = match Mounted::made(file_system, options, 400 * MIB) {
            Ok(mounted) => mounted,
            Err(need) => {
                testkit::skip(need);
                continue;
            }
        };
        let directory = open(mounted.path());
        let file = full_file(&directory);
        let source = FileMetadata::of(&file).unwrap();
        assert_eq!(source.extended.len(), 4, "{file_system}");
        let target = directory.create_new(name("target"), 0o600).unwrap();
        assert_eq!(source.apply(&target).unwrap(), []);
        assert_eq!(source.seal(&target).unwrap(), []);
        assert_applied(&source, &target);
        // From one file system to the other.
        let before: &FileMetadata = source_of.get_or_insert(source);
        let target = directory.create_new(name("second"), 0o600).unwrap();
        let losses = (before.apply(&target).unwrap(), before.seal(&target).unwrap());
        assert_eq!(losses, (vec![], vec![]), "{file_system}");
        assert_applied(before, &target);
        special_files(&directory);
        default_list(&directory);
        drop((file, target, directory));
    }
}

fn special_files(directory: &Directory) {
    let null = std::os::unix::fs::MetadataExt::rdev(&std::fs::metadata("/dev/null").unwrap());
    directory.create_link(name("link"), name("dangling/\u{1}")).unwrap();
    directory.create_special(name("pipe"), SpecialFile::Pipe, 0o600).unwrap();
    directory.create_special(name("socket"), SpecialFile::Socket, 0o600).unwrap();
    directory.create_special(name("device"), SpecialFile::CharacterDevice(null), 0o600).unwrap();
    for kind in ["link", "pipe", "socket", "device"] {
        let held = directory.hold(name(kind)).unwrap();
        attributes::set_owner(&held, OTHER, OTHER).unwrap();
        attributes::set_extended(&held, name("trusted.own"), kind.as_bytes()).unwrap();
        if kind != "link" {
            attributes::set_mode(&held, 0o1642).unwrap();
        }
        attributes::set_times(&held, ODD_SECOND, BEFORE_1970).unwrap();
        let source = FileMetadata::of(&held).unwrap();
        let copy = format!("copy-of-{kind}");
        let stat = &source.stat;
        let made = create_like(stat, directory, name(kind), directory, name(&copy));
        let target = made.unwrap().unwrap();
        assert_eq!(source.apply(&target).unwrap(), [], "{kind}");
        assert_eq!(source.seal(&target).unwrap(), [], "{kind}");
        assert_applied(&source, &target);
        let now = FileStat::of(&target).unwrap();
        assert_eq!((now.kind, now.special_device), (stat.kind, stat.special_device));
    }
    assert_eq!(directory.read_link(name("copy-of-link")).unwrap(), "dangling/\u{1}");
    let file = directory.stat(name("source")).unwrap();
    let made = create_like(&file, directory, name("source"), directory, name("none"));
    assert!(made.unwrap().is_none());
}

/// What a directory hands down is taken away where the source has no such list, and a directory's
/// own list is copied.
fn default_list(directory: &Directory) {
    let below = directory.create_subdirectory(name("below"), 0o700).unwrap();
    attributes::set_extended(below.file(), name("system.posix_acl_default"), &ACCESS_LIST).unwrap();
    let plain = directory.create_new(name("plain"), 0o600).unwrap();
    attributes::set_mode(&plain, 0o644).unwrap();
    let source = FileMetadata::of(&plain).unwrap();
    let target = below.create_new(name("heir"), 0o600).unwrap();
    assert_eq!(FileMetadata::of(&target).unwrap().extended.len(), 1);
    assert_eq!(source.apply(&target).unwrap(), []);
    assert_eq!(FileMetadata::of(&target).unwrap().extended, []);
    assert_eq!(FileStat::of(&target).unwrap().mode, 0o644);
    let source = FileMetadata::of(below.file()).unwrap();
    let copy = directory.create_subdirectory(name("copy"), 0o700).unwrap();
    assert_eq!(source.apply(copy.file()).unwrap(), []);
    assert_eq!(FileMetadata::of(copy.file()).unwrap().extended, source.extended);
}

#[test]
fn inodes_of_128_bytes_hold_whole_seconds_until_2038() {
    let mounted = match Mounted::made("ext4", &["-q", "-I", "128"], 16 * MIB) {
        Ok(mounted) => mounted,
        Err(need) => return testkit::skip(need),
    };
    let directory = open(mounted.path());
    let target = directory.create_new(name("target"), 0o600).unwrap();
    let stat =
        FileStat { accessed: AFTER_2038, modified: ODD_SECOND, ..FileStat::of(&target).unwrap() };
    let source = FileMetadata { stat, extended: Vec::new() };
    let whole = FileTime { nanoseconds: 0, ..ODD_SECOND };
    let last = FileTime { seconds: i32::MAX.into(), nanoseconds: 0 };
    let reason = LossReason::Rounded;
    let expected = [
        MetadataLoss::Accessed { wanted: AFTER_2038, held: last, reason },
        MetadataLoss::Modified { wanted: ODD_SECOND, held: whole, reason },
    ];
    assert_eq!(source.seal(&target).unwrap(), expected);
    // An attribute of more than a block.
    let extended = vec![("user.long".into(), vec![1; 60_000])];
    let losses = FileMetadata { extended, ..source }.apply(&target).unwrap();
    let reason = LossReason::NoSpace;
    assert_eq!(losses, [MetadataLoss::Attribute { name: "user.long".into(), reason }]);
}

#[test]
fn fat_and_exfat_say_what_they_do_not_hold() {
    for file_system in ["vfat", "exfat"] {
        let mounted = match Mounted::made(file_system, &[], 32 * MIB) {
            Ok(mounted) => mounted,
            Err(need) => {
                testkit::skip(need);
                continue;
            }
        };
        let directory = open(mounted.path());
        let target = directory.create_new(name("target"), 0o600).unwrap();
        let now = FileStat::of(&target).unwrap();
        let stat = FileStat {
            user: OTHER,
            group: OTHER,
            mode: 0o6640,
            accessed: ODD_SECOND,
            modified: ODD_SECOND,
            ..now
        };
        let extended = vec![
            ("system.posix_acl_access".into(), ACCESS_LIST.to_vec()),
            ("user.colour".into(), vec![1]),
        ];
        let source = FileMetadata { stat, extended };
        let losses = source.apply(&target).unwrap();
        let kinds: Vec<LossKind> = losses.iter().map(MetadataLoss::kind).collect();
        use LossKind::{AccessList, Attribute, Mode, Owner};
        assert_eq!(kinds, [Owner, Owner, AccessList, Attribute, Mode], "{file_system}: {losses:?}");
        let times = source.seal(&target).unwrap();
        let held = FileStat::of(&target).unwrap().modified;
        let reason = LossReason::Rounded;
        let modified = MetadataLoss::Modified { wanted: ODD_SECOND, held, reason };
        assert!(times.contains(&modified), "{file_system}: {times:?}");
        let lost_ns = (ODD_SECOND.seconds - held.seconds) * 1_000_000_000 + ODD_SECOND.nanoseconds
            - held.nanoseconds;
        let granularity_ns = if file_system == "vfat" { 2_000_000_000 } else { 10_000_000 };
        assert!((1..granularity_ns).contains(&lost_ns), "{file_system}: {lost_ns} ns");
        drop((target, directory));
    }
}

/// The child of the next test: copies metadata as the user who runs it, in the directory that is
/// the current one, and fails if it is not as said.
#[test]
#[ignore = "run by the test below as an ordinary user"]
fn child_of_an_ordinary_user() {
    let directory = open(Path::new("."));
    let file = directory.open_regular(name("source")).unwrap();
    let source = FileMetadata::of(&file).unwrap();
    assert!(source.extended.iter().all(|(name, _)| name != "trusted.secret"));
    let target = directory.create_new(name("target"), 0o600).unwrap();
    let losses = source.apply(&target).unwrap();
    let reason = LossReason::Denied;
    let mode = MetadataLoss::Mode { wanted: 0o6654, held: 0o654, reason: LossReason::WithoutOwner };
    let owner = MetadataLoss::Owner { wanted: OTHER, reason };
    assert_eq!(losses, [MetadataLoss::Group { wanted: OTHER + 1, reason }, owner, mode]);
    assert_eq!(source.seal(&target).unwrap(), []);
    let now = FileMetadata::of(&target).unwrap();
    assert_eq!(now.extended, source.extended);
    // Of a file that cannot be written to once it has its mode: attributes come before.
    let only_read = FileMetadata { stat: FileStat { mode: 0o444, ..now.stat }, ..source };
    let second = directory.create_new(name("second"), 0o600).unwrap();
    assert_eq!(only_read.apply(&second).unwrap(), []);
}

#[test]
fn an_ordinary_user_keeps_what_may_be_kept_and_no_set_user_id() {
    let parent = match Mounted::ext4(16 * MIB) {
        Ok(mounted) => mounted,
        Err(need) => return testkit::skip(need),
    };
    let directory = open(parent.path());
    let file = full_file(&directory);
    attributes::set_mode(&file, 0o6654).unwrap();
    attributes::set_mode(directory.file(), 0o777).unwrap();
    // The program must be reached by the user as well.
    let programs = TempDir::in_dir(Path::new("/dev/shm"));
    let own = programs.join("metadata");
    std::fs::copy(std::env::current_exe().unwrap(), &own).unwrap();
    attributes::set_mode(open(programs.path()).file(), 0o755).unwrap();
    let output = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&own)
        .args(["--ignored", "--exact", "child_of_an_ordinary_user"])
        .current_dir(parent.path())
        .output();
    match output {
        Ok(output) => assert!(
            output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        ),
        Err(error) => testkit::skip(format!("setpriv: {error}")),
    }
    assert_eq!(directory.stat(name("target")).unwrap().kind, InodeKind::File);
}
