//! Replacing a file: modes, what an error leaves, and what is swept. Processes that are killed
//! are in `tests/replace_killed.rs` of this crate.

use super::*;
use testkit::{Dead, DeadFuse, TempDir, Tmpfs, skip};

const TARGET: &str = "target";
const AS_BEFORE: FileMode = FileMode::AsBefore { new: 0o644 };

fn target() -> &'static OsStr {
    OsStr::new(TARGET)
}

fn put(directory: &Directory, contents: &[u8], file_mode: FileMode) -> Result<()> {
    replace(directory, target(), contents, file_mode, Durability::Synced)
}

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_old_file_is_there_until_the_new_one_is_complete() {
    let parent = TempDir::new();
    let directory = Directory::open(parent.path()).unwrap();
    put(&directory, b"old", AS_BEFORE).unwrap();
    for durability in [Durability::Synced, Durability::Unsynced] {
        std::fs::write(parent.join(TARGET), "old").unwrap();
        let temporary = TempFile::create(&directory, target(), AS_BEFORE, durability).unwrap();
        temporary.file().write_all(b"new").unwrap();
        assert_eq!(std::fs::read(parent.join(TARGET)).unwrap(), b"old");
        temporary.put().unwrap();
        assert_eq!(std::fs::read(parent.join(TARGET)).unwrap(), b"new");
    }
    drop(TempFile::create(&directory, target(), AS_BEFORE, Durability::Synced).unwrap());
    assert_eq!(parent.names(), [TARGET], "nothing else is left");
}

#[test]
fn permissions_are_those_of_the_old_file_or_the_owners_alone() {
    let parent = TempDir::new();
    let directory = Directory::open(parent.path()).unwrap();
    let path = parent.join(TARGET);
    put(&directory, b"1", FileMode::AsBefore { new: 0o600 }).unwrap();
    assert_eq!(mode(&path), 0o600);
    // No mask takes bits away from those of the old file, and set-user-ID is not taken over.
    set_mode(&path, 0o4664);
    put(&directory, b"2", FileMode::AsBefore { new: 0o600 }).unwrap();
    assert_eq!(mode(&path), 0o664);
    put(&directory, b"3", FileMode::OwnerOnly).unwrap();
    assert_eq!(mode(&path), 0o600);
    // While it is written the file permits no more than the old one.
    let temporary = TempFile::create(&directory, target(), AS_BEFORE, Durability::Synced).unwrap();
    let about = temporary.file().metadata().unwrap();
    assert_eq!(about.mode() & 0o7777, 0o600);
}

#[test]
fn the_new_file_belongs_to_this_user() {
    if !testkit::is_root() {
        return skip("root");
    }
    let parent = TempDir::new();
    let directory = Directory::open(parent.path()).unwrap();
    put(&directory, b"1", AS_BEFORE).unwrap();
    std::os::unix::fs::chown(parent.join(TARGET), Some(65534), Some(65534)).unwrap();
    put(&directory, b"2", AS_BEFORE).unwrap();
    let about = std::fs::metadata(parent.join(TARGET)).unwrap();
    assert_eq!((about.uid(), about.gid()), (0, 0));
}

#[test]
fn only_a_regular_file_is_replaced() {
    let parent = TempDir::new();
    let directory = Directory::open(parent.path()).unwrap();
    std::os::unix::fs::symlink("elsewhere", parent.join(TARGET)).unwrap();
    let error = put(&directory, b"new", AS_BEFORE).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
    assert_eq!(parent.names(), [TARGET]);
}

#[test]
fn what_a_killed_process_left_is_swept_and_nothing_else() {
    let parent = TempDir::new();
    let directory = Directory::open(parent.path()).unwrap();
    let others = [".other.00ff.part", ".target..part", ".target.00fg.part", "target.00ff.part"];
    for name in others.iter().chain(&[".target.00ff.part", ".target.4711.part"]) {
        std::fs::write(parent.join(name), "x").unwrap();
    }
    // Of a live process: it is locked.
    let live = TempFile::create(&directory, target(), AS_BEFORE, Durability::Synced).unwrap();
    // Another name of a file elsewhere.
    std::fs::write(parent.join("first"), "x").unwrap();
    std::fs::hard_link(parent.join("first"), parent.join(".target.aa.part")).unwrap();
    put(&directory, b"new", AS_BEFORE).unwrap();
    live.file().write_all(b"newer").unwrap();
    live.put().unwrap();
    assert_eq!(std::fs::read(parent.join(TARGET)).unwrap(), b"newer");
    let mut left = vec![".target.aa.part", "first", TARGET];
    left.extend(others);
    left.sort_unstable();
    let mut names = parent.names();
    names.sort();
    assert_eq!(names, left);
}

#[test]
fn the_longest_name_is_replaced_too() {
    let parent = TempDir::new();
    let directory = Directory::open(parent.path()).unwrap();
    let longest = "n".repeat(255);
    let name = OsStr::new(&longest);
    for text in ["old", "new"] {
        replace(&directory, name, text.as_bytes(), AS_BEFORE, Durability::Synced).unwrap();
    }
    assert_eq!(std::fs::read(parent.join(name)).unwrap(), b"new");
    assert_eq!(parent.names().len(), 1);
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let disk = match Tmpfs::mount(1 << 20) {
        Ok(disk) => disk,
        Err(need) => return skip(need),
    };
    let directory = Directory::open(disk.path()).unwrap();
    put(&directory, b"old", AS_BEFORE).unwrap();
    let error = put(&directory, &vec![1; 2 << 20], AS_BEFORE).unwrap_err();
    assert_eq!(error.kind, crate::ErrorKind::NoSpace, "{error}");
    assert_eq!(std::fs::read(disk.path().join(TARGET)).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 1);
    // A child that another test has forked holds the removed file, and its room, until it executes.
    let mut again = (0..100).map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        put(&directory, b"new", AS_BEFORE)
    });
    assert!(again.any(|put| put.is_ok()), "no room for the new file");
}

/// A rename over a mount point is refused, and the file under it is as it was. The server no
/// longer answers, so a replacement that asked it for anything would hang here.
#[test]
fn a_dead_file_system_leaves_the_old_file() {
    let mut dead = match DeadFuse::mount() {
        Ok(dead) => dead,
        Err(need) => return skip(need),
    };
    dead.hold().unwrap();
    let path = dead.path().to_owned();
    let directory = Directory::open(path.parent().unwrap()).unwrap();
    let name = path.file_name().unwrap();
    let held = directory.names().unwrap();
    let temporary = TempFile::create(&directory, name, AS_BEFORE, Durability::Synced).unwrap();
    dead.stop(Dead::Gone);
    temporary.file().write_all(b"new").unwrap();
    let error = temporary.put().unwrap_err();
    assert_eq!(error.number(), Some(libc::EBUSY), "{error}");
    assert_eq!(directory.names().unwrap(), held);
}
