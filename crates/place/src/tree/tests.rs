//! The walk on real trees: order, forgetting, races, and what it does not enter. Depth and few
//! descriptors are in `tests/tree_limits.rs`.

use super::*;
use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use testkit::{Mounted, TempDir, Tmpfs};

/// All paths below `top` with what was met there: `e`ntry, `E`nter, `L`eave, `o`ther, `r`efused.
fn events(walk: &mut TreeWalk, top: &Path) -> Vec<(char, PathBuf)> {
    let mut met = Vec::new();
    let below = |path: &Path| path.strip_prefix(top).unwrap_or(path).to_owned();
    while let Some(event) = walk.next() {
        met.push(match event {
            WalkEvent::Entry(entry) => ('e', below(&entry.path())),
            WalkEvent::OtherFileSystem(entry) => ('o', below(&entry.path())),
            WalkEvent::Enter(at) => ('E', below(at.directory.unwrap().path())),
            WalkEvent::Leave(at) => {
                ('L', at.directory.map(|at| below(at.path())).unwrap_or_default())
            }
            WalkEvent::Refused(path, _) => ('r', below(&path)),
        });
    }
    met
}

fn start(top: &Path) -> TreeWalk {
    TreeWalk::below(Directory::open(top).unwrap(), WalkLimits::default()).unwrap()
}

fn of(kind: char, met: &[(char, PathBuf)]) -> Vec<&Path> {
    met.iter().filter(|(of, _)| *of == kind).map(|(_, path)| path.as_path()).collect()
}

/// Directories of three levels, ten in each, with a file in each and a link that leads out.
fn wide() -> TempDir {
    let parent = TempDir::new();
    for number in 0..1000 {
        let path = format!("{}/{}/{}", number / 100, number / 10 % 10, number % 10);
        std::fs::create_dir_all(parent.join(&path)).unwrap();
        std::fs::write(parent.join(&path).join("file"), b"x").unwrap();
    }
    symlink("/", parent.join("0/link")).unwrap();
    parent
}

/// Every entry below `top`, by the standard library.
fn listed(top: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            }
            found.insert(entry.path().strip_prefix(top).unwrap().to_owned());
        }
    }
    found
}

#[test]
fn everything_is_met_once_and_directories_are_entered_and_left_in_pairs() {
    let tree = wide();
    let met = events(&mut start(tree.path()), tree.path());
    let entries = of('e', &met);
    assert_eq!(entries.len(), 1000 * 2 + 100 + 10 + 1);
    let set: BTreeSet<PathBuf> = entries.iter().map(|path| path.to_path_buf()).collect();
    assert_eq!(set, listed(tree.path()));
    let mut open: Vec<&Path> = Vec::new();
    for (kind, path) in &met {
        match kind {
            'E' => open.push(path),
            'L' => assert_eq!(open.pop(), Some(path.as_path())),
            _ => assert_eq!(path.parent(), open.last().copied()),
        }
    }
    assert!(open.is_empty());
    assert_eq!((of('E', &met).len(), of('r', &met).len()), (1111, 0));
    assert_eq!(met.first(), Some(&('E', PathBuf::new())));
    assert_eq!(met.last(), Some(&('L', PathBuf::new())));
}

#[test]
fn entries_of_a_directory_come_in_the_order_of_their_inodes() {
    let tree = TempDir::new();
    // A rename keeps the inode and changes the place of a name in its directory.
    for number in 0..500_u32 {
        let made = tree.join(number.to_string());
        std::fs::write(&made, b"").unwrap();
        std::fs::rename(made, tree.join(format!("{}", number.reverse_bits()))).unwrap();
    }
    let mut inodes = Vec::new();
    let mut walk = start(tree.path());
    while let Some(event) = walk.next() {
        if let WalkEvent::Entry(entry) = event {
            assert_eq!(entry.path().metadata().unwrap().ino(), entry.stat.inode);
            inodes.push(entry.stat.inode);
        }
    }
    assert_eq!(inodes.len(), 500);
    assert!(inodes.is_sorted());
}

#[test]
fn what_is_forgotten_is_listed_again_and_met_once() {
    let tree = wide();
    let mut expected = events(&mut start(tree.path()), tree.path());
    let mut walk = start(tree.path());
    walk.most_pending_bytes = 0;
    let mut met = events(&mut walk, tree.path());
    assert_eq!(met, expected, "in the same order");
    // One level fits.
    let mut walk = start(tree.path());
    walk.most_pending_bytes = 800;
    met = events(&mut walk, tree.path());
    expected.sort();
    met.sort();
    assert_eq!(met, expected);
}

/// Batches of one piece, so that each file system is asked to go on from its own places, after the
/// directory was closed and opened again in between.
fn check_batches(file_system: &str, path: &Path) {
    const NUMBER: usize = 2000;
    let top = path.join("top");
    let deep: PathBuf = ["d"; MOST_OPEN_DIRECTORIES + 2].iter().collect();
    std::fs::create_dir(&top).unwrap();
    for number in 0..NUMBER {
        let below = top.join(format!("directory-{number:06}"));
        std::fs::create_dir(&below).unwrap();
        if number % 100 == 0 {
            std::fs::create_dir_all(below.join(&deep)).unwrap();
        } else {
            std::fs::write(below.join("file"), b"").unwrap();
        }
    }
    let expected = listed(&top);
    let mut walk = start(&top);
    walk.batch_bytes = 1;
    let met = events(&mut walk, &top);
    let entries = of('e', &met);
    let set: BTreeSet<PathBuf> = entries.iter().map(|path| path.to_path_buf()).collect();
    assert_eq!(entries.len(), set.len(), "{file_system}: met once");
    assert!(set == expected, "{file_system}: {} of {}", set.len(), expected.len());
    assert_eq!((of('E', &met).len(), of('r', &met).len()), (of('L', &met).len(), 0));
    let is_of_top = |path: &Path| path.components().count() == 1;
    let below = entries.iter().position(|path| !is_of_top(path)).unwrap();
    let last = entries.iter().rposition(|path| is_of_top(path)).unwrap();
    assert!(last > below, "{file_system}: in more than one batch");
    check_forgetting(file_system, &top, NUMBER);
}

/// The same, and names are forgotten each time that a directory is entered: so only a few are.
fn check_forgetting(file_system: &str, top: &Path, number: usize) {
    let mut walk = start(top);
    walk.batch_bytes = 1;
    walk.most_pending_bytes = 0;
    let (mut entries, mut entered) = (0, Vec::new());
    while let Some(event) = walk.next() {
        match event {
            WalkEvent::Entry(entry) if entry.directory.path() == top => {
                entries += 1;
                if !entry.name.as_encoded_bytes().ends_with(b"50") {
                    walk.skip();
                }
            }
            WalkEvent::Enter(at) if at.depth == 1 => {
                entered.push(at.directory.unwrap().path().file_name().unwrap().to_owned());
            }
            WalkEvent::Refused(path, error) => panic!("{file_system}: {path:?}: {error}"),
            _ => {}
        }
    }
    entered.sort();
    let expected: Vec<OsString> =
        (50..number).step_by(100).map(|number| format!("directory-{number:06}").into()).collect();
    assert_eq!((entries, entered), (number, expected), "{file_system}");
}

#[test]
fn a_large_directory_is_walked_in_batches_on_each_file_system() {
    const MIB: u64 = 1 << 20;
    match Tmpfs::mount(256 * MIB) {
        Ok(tmpfs) => check_batches("tmpfs", tmpfs.path()),
        Err(need) => testkit::skip(need),
    }
    for file_system in ["ext4", "xfs", "btrfs", "vfat", "exfat"] {
        let options: &[&str] = if file_system.ends_with("fat") { &[] } else { &["-q"] };
        match Mounted::made(file_system, options, 400 * MIB) {
            Ok(mounted) => check_batches(file_system, mounted.path()),
            Err(need) => testkit::skip(need),
        }
    }
}

#[test]
fn a_directory_is_skipped_as_an_entry_and_after_it_was_entered() {
    let tree = wide();
    for most_pending_bytes in [MOST_PENDING_BYTES, 0] {
        let mut walk = start(tree.path());
        walk.most_pending_bytes = most_pending_bytes;
        let (mut entries, mut entered) = (0, Vec::new());
        while let Some(event) = walk.next() {
            let is_skipped = match &event {
                WalkEvent::Entry(entry) => {
                    entries += 1;
                    entry.name == "3" && entry.stat.kind == InodeKind::Directory
                }
                WalkEvent::Enter(at) => {
                    let path = at.directory.unwrap().path().to_owned();
                    let is_skipped = path.ends_with("4");
                    entered.push(path);
                    is_skipped
                }
                _ => false,
            };
            if is_skipped {
                walk.skip();
            }
        }
        assert!(!entered.iter().any(|path| path.ends_with("3")));
        assert!(!entered.iter().any(|path| path.parent().unwrap().ends_with("4")));
        // Nine of ten entered at each level, of which one is not gone on with.
        assert_eq!(entered.len(), 1 + 9 + 8 * 9 + 8 * 8 * 9);
        assert_eq!(entries, 10 + 8 * 10 + 8 * 8 * 10 + 8 * 8 * 8 + 1);
    }
}

#[test]
fn a_directory_that_becomes_a_link_is_not_followed() {
    let tree = TempDir::new();
    let outside = TempDir::new();
    std::fs::write(outside.join("secret"), b"").unwrap();
    std::fs::create_dir(tree.join("victim")).unwrap();
    std::fs::write(tree.join("victim/file"), b"").unwrap();
    let mut walk = start(tree.path());
    let (mut refused, mut entries) = (0, Vec::new());
    while let Some(event) = walk.next() {
        match event {
            WalkEvent::Entry(entry) => {
                entries.push(entry.path());
                if entry.name == "victim" {
                    std::fs::rename(tree.join("victim"), tree.join("away")).unwrap();
                    symlink(outside.path(), tree.join("victim")).unwrap();
                }
            }
            WalkEvent::Refused(path, _) => {
                assert_eq!(path, tree.join("victim"));
                refused += 1;
            }
            _ => {}
        }
    }
    assert_eq!((entries, refused), (vec![tree.join("victim")], 1));
}

/// Another user exchanges a directory and a link as fast as possible.
#[test]
fn a_racing_link_is_never_followed() {
    let tree = TempDir::new();
    let outside = TempDir::new();
    std::fs::create_dir(outside.join("victim")).unwrap();
    std::fs::write(outside.join("secret"), b"").unwrap();
    std::fs::create_dir(tree.join("victim")).unwrap();
    std::fs::write(tree.join("victim/file"), b"").unwrap();
    symlink(outside.path(), tree.join("link")).unwrap();
    let is_over = AtomicBool::new(false);
    let (victim, link, away) = (tree.join("victim"), tree.join("link"), outside.join("away"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::fs::rename(&victim, &away).unwrap();
                std::fs::rename(&link, &victim).unwrap();
                std::fs::rename(&victim, &link).unwrap();
                std::fs::rename(&away, &victim).unwrap();
            }
        });
        let (mut refused, mut files, mut followed) = (0, 0, 0);
        // Until both outcomes of the race were seen; on a busy machine one may not come.
        for _ in 0..20_000 {
            let mut walk = start(tree.path());
            while let Some(event) = walk.next() {
                match event {
                    WalkEvent::Entry(entry) if entry.name == "secret" => followed += 1,
                    WalkEvent::Entry(entry) if entry.name == "file" => files += 1,
                    WalkEvent::Refused(..) => refused += 1,
                    _ => {}
                }
            }
            if followed > 0 || (files > 100 && refused > 100) {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(followed, 0, "{files} walked, {refused} refused");
        assert!(files + refused > 0);
    });
}

#[test]
fn a_directory_that_is_moved_away_ends_only_what_was_in_it() {
    let tree = TempDir::new();
    let elsewhere = TempDir::new();
    let deep = "d/".repeat(MOST_OPEN_DIRECTORIES + 4);
    std::fs::create_dir_all(tree.join(&deep)).unwrap();
    for name in ["a", "b"] {
        std::fs::create_dir_all(tree.join(name)).unwrap();
        std::fs::write(tree.join(name).join("file"), b"").unwrap();
    }
    let mut walk = start(tree.path());
    let (mut files, mut depth, mut left) = (0, 0, 0);
    while let Some(event) = walk.next() {
        match event {
            WalkEvent::Enter(at) if at.depth == MOST_OPEN_DIRECTORIES + 4 => {
                std::fs::rename(tree.join("d/d"), elsewhere.join("d")).unwrap();
                depth = at.depth;
            }
            WalkEvent::Entry(entry) if entry.name == "file" => files += 1,
            WalkEvent::Leave(_) => left += 1,
            _ => {}
        }
    }
    assert_eq!((depth, files), (MOST_OPEN_DIRECTORIES + 4, 2));
    assert_eq!(left, depth + 3, "each directory that was entered is left");
}

#[test]
fn another_file_system_is_met_and_not_entered() {
    let tmpfs = match Tmpfs::mount(1 << 20) {
        Ok(tmpfs) => tmpfs,
        Err(need) => return testkit::skip(need),
    };
    std::fs::write(tmpfs.path().join("file"), b"").unwrap();
    let top = tmpfs.path().parent().unwrap();
    let mounted = tmpfs.path().strip_prefix(top).unwrap();
    let met = |one_file_system| {
        let limits = WalkLimits { one_file_system, reach: None };
        let mut walk = TreeWalk::below(Directory::open(top).unwrap(), limits).unwrap();
        let mut kinds = BTreeSet::new();
        while let Some(event) = walk.next() {
            match event {
                WalkEvent::Entry(entry) if entry.stat.kind == InodeKind::Directory => {
                    if entry.name == mounted {
                        kinds.insert("entry");
                    } else {
                        walk.skip();
                    }
                }
                WalkEvent::OtherFileSystem(entry) if entry.name == mounted => {
                    kinds.insert("other");
                }
                WalkEvent::Entry(entry) if entry.directory.path().ends_with(mounted) => {
                    kinds.insert("below");
                }
                _ => {}
            }
        }
        kinds
    };
    assert_eq!(met(true), BTreeSet::from(["other"]));
    assert_eq!(met(false), BTreeSet::from(["below", "entry"]));
}

/// On an overlay of two file systems `statx` reports the lower one's device of a file and the
/// overlay's own of a directory.
#[test]
fn files_of_an_overlay_are_on_its_file_system() {
    let lower = match Tmpfs::mount(1 << 20) {
        Ok(tmpfs) => tmpfs,
        Err(need) => return testkit::skip(need),
    };
    std::fs::create_dir(lower.path().join("below")).unwrap();
    std::fs::write(lower.path().join("below/file"), b"x").unwrap();
    let parent = TempDir::new();
    let overlay = match testkit::Mount::overlay(lower.path(), parent.path()) {
        Ok(overlay) => overlay,
        Err(need) => return testkit::skip(need),
    };
    let limits = WalkLimits { one_file_system: true, reach: None };
    let top = Directory::open(overlay.path()).unwrap();
    let mut walk = TreeWalk::below(top, limits).unwrap();
    let met = events(&mut walk, overlay.path());
    assert_eq!(of('e', &met), [Path::new("below"), Path::new("below/file")]);
    assert_eq!(of('o', &met), [] as [&Path; 0]);
    drop(walk);
}

#[test]
fn names_are_any_bytes_and_what_may_not_be_read_is_said() {
    use std::os::unix::ffi::OsStrExt;
    let tree = TempDir::new();
    let odd: Vec<&[u8]> = vec![b"\xff\xfe", b"a\nb", b"\x1b[31m", b"-rf", b" ", b"..."];
    for name in &odd {
        std::fs::write(tree.join(OsStr::from_bytes(name)), b"").unwrap();
    }
    let mut walk = start(tree.path());
    let mut names = BTreeSet::new();
    while let Some(event) = walk.next() {
        if let WalkEvent::Entry(entry) = event {
            names.insert(entry.name.as_bytes().to_vec());
        }
    }
    assert_eq!(names, odd.iter().map(|name| name.to_vec()).collect());
}
