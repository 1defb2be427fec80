//! Links, owners and modes, on the way to a directory and in it. As root also those of
//! another user. What must not happen is a file elsewhere, so each test looks there too.

use super::*;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use testkit::TempDir;

/// The number of `nobody`, who owns nothing here.
const OTHER: u32 = 65534;

fn name(text: &str) -> &OsStr {
    OsStr::new(text)
}

fn text_of<T>(answer: Result<T>) -> String {
    answer.err().map(|error| error.to_string()).unwrap_or_default()
}

fn is_root() -> bool {
    crate::process::effective_uid() == 0
}

/// A directory of another user, if this test may make one.
fn of_another_user(parent: &TempDir) -> Option<PathBuf> {
    let path = parent.join("theirs");
    std::fs::create_dir(&path).ok()?;
    chown(&path, Some(OTHER), Some(OTHER)).ok()?;
    Some(path)
}

#[test]
fn files_are_made_read_renamed_and_removed_by_name() {
    let parent = TempDir::new();
    let directory = Directory::create_private(&parent.join("a/b")).unwrap();
    let mut file = directory.create_new(name("one"), 0o600).unwrap();
    file.write_all(b"text").unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    let taken = directory.create_new(name("one"), 0o600).unwrap_err();
    assert_eq!(taken.number(), Some(libc::EEXIST));
    directory.rename(name("one"), name("two")).unwrap();
    let mut text = String::new();
    let mut again = directory.open_regular(name("two")).unwrap();
    again.read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
    directory.open_or_create(name("two"), 0o600).unwrap();
    directory.open_or_create(name("three"), 0o600).unwrap();
    directory.create_subdirectory(name("inner"), 0o700).unwrap();
    assert_eq!(directory.names().unwrap(), ["inner", "three", "two"]);
    directory.remove(name("two")).unwrap();
    directory.remove_directory(name("inner")).unwrap();
    assert!(directory.sync().unwrap());
    assert_eq!(directory.names().unwrap(), ["three"]);
}

#[test]
fn a_name_is_one_component() {
    let parent = TempDir::new();
    let directory = Directory::open(parent.path()).unwrap();
    for bad in ["", ".", "..", "a/b", "/etc/passwd", "../x", "a/"] {
        let text = text_of(directory.create_new(name(bad), 0o600));
        assert!(text.contains("not a single name"), "{bad}: {text}");
        assert!(directory.remove(name(bad)).is_err());
    }
}

#[test]
fn a_link_in_the_directory_is_never_followed() {
    let parent = TempDir::new();
    let outside = parent.join("outside");
    std::fs::write(&outside, "kept").unwrap();
    let directory = Directory::create_private(&parent.join("inside")).unwrap();
    for link in ["link", "inner"] {
        symlink(&outside, parent.join("inside").join(link)).unwrap();
    }
    assert!(text_of(directory.open_own(name("link"))).contains("not a regular file"));
    assert!(text_of(directory.open_regular(name("link"))).contains("not a regular file"));
    assert!(directory.create_new(name("link"), 0o600).is_err());
    assert!(directory.open_or_create(name("link"), 0o600).is_err());
    assert!(directory.subdirectory(name("inner")).is_err());
    directory.remove(name("link")).unwrap();
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "kept");
}

#[test]
fn a_directory_that_is_exchanged_is_still_the_one_that_was_opened() {
    let parent = TempDir::new();
    let directory = Directory::create_private(&parent.join("a")).unwrap();
    std::fs::rename(parent.join("a"), parent.join("moved")).unwrap();
    std::fs::create_dir(parent.join("elsewhere")).unwrap();
    symlink(parent.join("elsewhere"), parent.join("a")).unwrap();
    directory.create_new(name("file"), 0o600).unwrap();
    assert!(parent.join("moved/file").exists());
    assert!(!parent.join("elsewhere/file").exists());
}

#[test]
fn what_is_not_a_regular_file_is_not_opened() {
    let parent = TempDir::new();
    let directory = Directory::open(parent.path()).unwrap();
    rustix::fs::mknodat(directory.file(), "fifo", FileType::Fifo, Mode::from_raw_mode(0o600), 0)
        .unwrap();
    // Opening it for writing alone would fail at once, for reading it would wait for ever.
    assert!(text_of(directory.open_regular(name("fifo"))).contains("not a regular file"));
    assert!(text_of(directory.open_own(name("fifo"))).contains("not a regular file"));
    assert!(text_of(directory.open_regular(name("absent"))).contains("no such file"));
}

#[test]
fn a_file_with_a_second_name_is_not_written_to() {
    let parent = TempDir::new();
    let directory = Directory::open(parent.path()).unwrap();
    directory.create_new(name("first"), 0o600).unwrap();
    std::fs::hard_link(parent.join("first"), parent.join("second")).unwrap();
    assert!(text_of(directory.open_own(name("second"))).contains("more than one name"));
}

#[test]
fn a_private_directory_is_this_users_alone() {
    let parent = TempDir::new();
    let open = parent.join("open");
    std::fs::create_dir(&open).unwrap();
    for mode in [0o777, 0o1777, 0o720] {
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(mode)).unwrap();
        let text = text_of(Directory::open_private(&open));
        assert!(text.contains("may write to it"), "{mode:o}: {text}");
    }
    // Below a directory that all may write to, another user can exchange a private one.
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::create_dir(open.join("inner")).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    let text = text_of(Directory::open_private(&open.join("inner")));
    assert!(text.contains("others may write to it"), "{text}");
    let text = text_of(Directory::create_private(&open.join("new")));
    assert!(text.contains("others may write to it"), "{text}");
    assert!(!open.join("new").exists());
    // With the sticky bit only owners rename what is in it.
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o1777)).unwrap();
    Directory::open_private(&open.join("inner")).unwrap();
}

#[test]
fn own_links_on_the_way_are_followed_and_circles_end() {
    let parent = TempDir::new();
    std::fs::create_dir_all(parent.join("real/inner")).unwrap();
    symlink("real", parent.join("short")).unwrap();
    symlink(parent.join("short/inner"), parent.join("long")).unwrap();
    let directory = Directory::open(&parent.join("long/../inner")).unwrap();
    directory.create_new(name("file"), 0o600).unwrap();
    assert!(parent.join("real/inner/file").exists());
    symlink("circle", parent.join("circle")).unwrap();
    assert!(Directory::open(&parent.join("circle")).is_err());
}

#[test]
fn the_place_of_a_file_follows_the_last_link_and_says_so() {
    let parent = TempDir::new();
    std::fs::create_dir(parent.join("real")).unwrap();
    std::fs::write(parent.join("real/file"), "x").unwrap();
    symlink("real/file", parent.join("link")).unwrap();
    let place = FilePlace::of(&parent.join("link")).unwrap();
    assert!(place.is_link);
    assert_eq!(place.path(), parent.join("real/file"));
    let place = FilePlace::of(&parent.join("real/new")).unwrap();
    assert!(!place.is_link);
    assert_eq!(place.name, "new");
    assert!(text_of(FilePlace::of(&parent.join("absent/new"))).contains("no such file"));
    for bad in ["/", "", ".", "real/.."] {
        assert!(FilePlace::of(Path::new(bad)).is_err(), "{bad}");
    }
}

#[test]
fn a_directory_that_may_not_be_listed_is_not_synced_and_no_error() {
    let parent = TempDir::new();
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let file = rustix::fs::open(parent.path(), flags, Mode::empty()).unwrap();
    let directory = Directory { file: file.into(), path: parent.path().to_owned(), exposure: None };
    assert!(!directory.sync().unwrap());
    assert!(Directory::open(parent.path()).unwrap().sync().unwrap());
}

#[test]
fn as_root_links_of_another_user_are_refused_everywhere_on_the_way() {
    let parent = TempDir::new();
    let Some(theirs) = of_another_user(&parent).filter(|_| is_root()) else {
        return testkit::skip("root");
    };
    std::fs::create_dir(parent.join("secret")).unwrap();
    // In a directory of theirs, even a link that root made may have been moved there.
    symlink(parent.join("secret"), theirs.join("link")).unwrap();
    let text = text_of(Directory::open(&theirs.join("link")));
    assert!(text.contains("symbolic link that another user"), "{text}");
    let text = text_of(FilePlace::of(&theirs.join("link/file")));
    assert!(text.contains("symbolic link that another user"), "{text}");
    // In a sticky directory that all write to, a link is its maker's.
    let sticky = parent.join("sticky");
    std::fs::create_dir(&sticky).unwrap();
    std::fs::set_permissions(&sticky, std::fs::Permissions::from_mode(0o1777)).unwrap();
    symlink(parent.join("secret"), sticky.join("link")).unwrap();
    Directory::open(&sticky.join("link")).unwrap();
    std::os::unix::fs::lchown(sticky.join("link"), Some(OTHER), Some(OTHER)).unwrap();
    assert!(text_of(Directory::open(&sticky.join("link"))).contains("symbolic link"));
}

#[test]
fn as_root_a_directory_of_another_user_is_usable_but_not_private() {
    let parent = TempDir::new();
    let Some(theirs) = of_another_user(&parent).filter(|_| is_root()) else {
        return testkit::skip("root");
    };
    let directory = Directory::open(&theirs).unwrap();
    assert_eq!(directory.owner().unwrap(), OTHER);
    directory.create_new(name("ours"), 0o600).unwrap();
    directory.open_own(name("ours")).unwrap();
    std::fs::write(theirs.join("planted"), "x").unwrap();
    chown(theirs.join("planted"), Some(OTHER), None).unwrap();
    assert!(text_of(directory.open_own(name("planted"))).contains("another user"));
    for path in [theirs.clone(), theirs.join("ours-below")] {
        let text = text_of(Directory::create_private(&path));
        assert!(text.contains("it belongs to another user"), "{text}");
    }
}
