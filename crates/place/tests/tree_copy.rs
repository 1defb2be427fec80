//! Any tree is walked and made again with its metadata: names of any bytes, holes, links, pipes,
//! second names, any mode, owner and time. What is compared with is what the tree was made from,
//! read back by the standard library. As root with all owners and modes, else with those that a
//! user may have.

#![allow(clippy::unwrap_used, reason = "a test program")]

use place::metadata::{FileMetadata, create_like};
use place::tree::{TreeWalk, WalkEvent, WalkLimits};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use sys::attributes::{self, FileTime};
use sys::directory::{Directory, DirectoryStack, SpecialFile};
use sys::file_stat::{FileStat, InodeKind};
use testkit::TempDir;

/// An entry of a made-up tree.
#[derive(Clone, Debug)]
struct Node {
    content: Content,
    mode: u32,
    user: u32,
    group: u32,
    accessed: FileTime,
    modified: FileTime,
    attribute: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum Content {
    /// Pieces of a file, by offset, and its length.
    File(Vec<(u64, Vec<u8>)>, u64),
    /// A second name of the file that was made before, if there is one.
    SecondName,
    Directory(BTreeMap<Vec<u8>, Node>),
    Link(Vec<u8>),
    Pipe,
    Socket,
}

fn name_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![1_u8..b'/', b'/' + 1..], 1..60)
        .prop_filter("a name", |name| name != b"." && name != b"..")
}

fn time() -> impl Strategy<Value = FileTime> {
    // What ext4 and tmpfs hold: from 1901 to 2446.
    (-2_147_483_648_i64..15_000_000_000, 0_i64..1_000_000_000)
        .prop_map(|(seconds, nanoseconds)| FileTime { seconds, nanoseconds })
}

fn file() -> impl Strategy<Value = Content> {
    let piece = (0_u64..200_000, prop::collection::vec(any::<u8>(), 1..5000));
    (prop::collection::vec(piece, 0..4), 0_u64..1 << 40)
        .prop_map(|(pieces, length)| Content::File(pieces, length))
}

fn node(content: impl Strategy<Value = Content>) -> impl Strategy<Value = Node> {
    let owner = (0_u32..70_000, 0_u32..70_000);
    let attribute = prop::option::of(prop::collection::vec(any::<u8>(), 0..100));
    (content, 0_u32..0o10000, owner, time(), time(), attribute).prop_map(
        |(content, mode, (user, group), accessed, modified, attribute)| {
            let is_root = testkit::is_root();
            let (own, own_group) = (sys::process::effective_uid(), sys::process::effective_gid());
            Node {
                content,
                mode: if is_root { mode } else { mode & 0o777 | 0o700 },
                user: if is_root { user } else { own },
                group: if is_root { group } else { own_group },
                accessed,
                modified,
                attribute,
            }
        },
    )
}

fn tree() -> impl Strategy<Value = Node> {
    let target = prop::collection::vec(1_u8.., 1..100).prop_map(Content::Link);
    let leaf = node(prop_oneof![
        4 => file(),
        1 => Just(Content::SecondName),
        1 => target,
        1 => Just(Content::Pipe),
        1 => Just(Content::Socket),
    ]);
    let below = leaf.prop_recursive(6, 40, 8, |inner| {
        node(prop::collection::btree_map(name_bytes(), inner, 0..8).prop_map(Content::Directory))
    });
    let top = prop::collection::btree_map(name_bytes(), below, 0..8);
    node(top.prop_map(Content::Directory))
}

impl Node {
    /// Makes it as `name` in `parent`. `last_file` is the file that was made last.
    fn make(&self, parent: &Directory, name: &OsStr, last_file: &mut Option<(PathBuf, Node)>) {
        match &self.content {
            Content::File(pieces, length) => {
                let file = parent.create_new(name, 0o600).unwrap();
                for (offset, bytes) in pieces {
                    file.write_all_at(bytes, *offset).unwrap();
                }
                file.set_len((*length).max(file.metadata().unwrap().len())).unwrap();
                *last_file = Some((parent.path().join(name), self.clone()));
            }
            Content::SecondName => {
                let Some((first, _)) = last_file else {
                    return parent.create_link(name, OsStr::new("none")).unwrap();
                };
                let from = Directory::open(first.parent().unwrap()).unwrap();
                return parent.create_hard_link(name, &from, first.file_name().unwrap()).unwrap();
            }
            Content::Directory(entries) => {
                let below = parent.create_subdirectory(name, 0o700).unwrap();
                for (name, entry) in entries {
                    entry.make(&below, OsStr::from_bytes(name), last_file);
                }
            }
            Content::Link(target) => {
                parent.create_link(name, OsStr::from_bytes(target)).unwrap();
            }
            Content::Pipe => parent.create_special(name, SpecialFile::Pipe, 0o600).unwrap(),
            Content::Socket => parent.create_special(name, SpecialFile::Socket, 0o600).unwrap(),
        }
        let held = parent.hold(name).unwrap();
        attributes::set_owner(&held, self.user, self.group).unwrap();
        let is_link = matches!(self.content, Content::Link(_));
        let is_plain = matches!(self.content, Content::File(..) | Content::Directory(_));
        if let Some(value) = self.attribute.as_ref().filter(|_| is_plain) {
            attributes::set_extended(&held, OsStr::new("user.own"), value).unwrap();
        }
        if !is_link {
            attributes::set_mode(&held, self.mode).unwrap();
        }
        attributes::set_times(&held, self.accessed, self.modified).unwrap();
    }

    /// That what is at `path` is as it was made.
    fn assert_is(&self, path: &Path, source: &Path, last_file: &mut Option<(PathBuf, Node)>) {
        let about = path.symlink_metadata().unwrap();
        match (&self.content, &last_file) {
            (Content::SecondName, None) => return assert!(about.is_symlink()),
            (Content::SecondName, Some((first, node))) => {
                let first = first.symlink_metadata().unwrap();
                assert_eq!((about.ino(), about.dev()), (first.ino(), first.dev()));
                return assert_eq!(about.mtime(), node.modified.seconds);
            }
            _ => {}
        }
        let of = |seconds, nanoseconds| FileTime { seconds, nanoseconds };
        assert_eq!(of(about.mtime(), about.mtime_nsec()), self.modified, "{}", path.display());
        assert_eq!(of(about.atime(), about.atime_nsec()), self.accessed, "{}", path.display());
        assert_eq!((about.uid(), about.gid()), (self.user, self.group));
        if !about.is_symlink() {
            assert_eq!(about.mode() & 0o7777, self.mode, "{}", path.display());
        }
        match &self.content {
            Content::File(..) => {
                *last_file = Some((path.to_owned(), self.clone()));
                assert_same_data(path, source);
            }
            Content::Directory(entries) => {
                assert_eq!(std::fs::read_dir(path).unwrap().count(), entries.len());
                for (name, entry) in entries {
                    let name = OsStr::from_bytes(name);
                    entry.assert_is(&path.join(name), &source.join(name), last_file);
                }
            }
            Content::Link(target) => {
                assert_eq!(std::fs::read_link(path).unwrap().as_os_str().as_bytes(), target);
            }
            Content::Pipe => assert!(about.file_type().is_fifo()),
            Content::Socket => assert!(about.file_type().is_socket()),
            Content::SecondName => {}
        }
    }
}

/// The same length, data and attributes, and no data where there were none.
fn assert_same_data(one: &Path, other: &Path) {
    let (one, other) = (File::open(one).unwrap(), File::open(other).unwrap());
    assert_eq!(one.metadata().unwrap().len(), other.metadata().unwrap().len());
    assert_eq!(attributes::extended(&one).unwrap(), attributes::extended(&other).unwrap());
    let mut from = 0;
    while let Some(data) = sys::file::next_data(&other, from).unwrap() {
        let length = (data.end - data.start) as usize;
        let (mut copied, mut original) = (vec![0; length], vec![0; length]);
        one.read_exact_at(&mut copied, data.start).unwrap();
        other.read_exact_at(&mut original, data.start).unwrap();
        assert!(copied == original, "different at {}", data.start);
        from = data.end;
    }
    let blocks = |file: &File| file.metadata().unwrap().blocks() * 512;
    assert!(blocks(&one) <= blocks(&other) + (64 << 10));
}

/// The barest copy that a walk and the metadata allow.
fn copy(source: &Path, target: &Path) {
    let top = Directory::open(source).unwrap();
    let mut walk = TreeWalk::below(top, WalkLimits::default()).unwrap();
    let mut stack = DirectoryStack::new(Directory::open(target).unwrap(), 2);
    let mut metadata: Vec<FileMetadata> = Vec::new();
    let mut first_names: HashMap<u64, PathBuf> = HashMap::new();
    while let Some(event) = walk.next() {
        match event {
            WalkEvent::Enter(at) => {
                let held = at.directory.unwrap();
                if at.depth > 0 {
                    let name = held.path().file_name().unwrap();
                    stack.current().unwrap().create_subdirectory(name, 0o700).unwrap();
                    stack.enter(name).unwrap();
                }
                let read = FileMetadata::of(held.file()).unwrap();
                metadata.push(FileMetadata { stat: *at.stat, ..read });
            }
            WalkEvent::Leave(_) => {
                let of = metadata.pop().unwrap();
                let held = stack.current().unwrap().file();
                assert_eq!((of.apply(held).unwrap(), of.seal(held).unwrap()), (vec![], vec![]));
                stack.leave().unwrap();
            }
            WalkEvent::Entry(entry) if entry.stat.kind != InodeKind::Directory => {
                let to = stack.current().unwrap();
                let first = first_names.get(&entry.stat.inode).filter(|_| entry.stat.links > 1);
                if let Some(first) = first {
                    let from = Directory::open(first.parent().unwrap()).unwrap();
                    to.create_hard_link(entry.name, &from, first.file_name().unwrap()).unwrap();
                    continue;
                }
                first_names.insert(entry.stat.inode, to.path().join(entry.name));
                let held = entry.directory.hold(entry.name).unwrap();
                let of = FileMetadata { stat: *entry.stat, ..FileMetadata::of(&held).unwrap() };
                let made = match entry.stat.kind {
                    InodeKind::File => copy_file(entry.directory, to, entry.name, entry.stat),
                    _ => create_like(entry.stat, entry.directory, entry.name, to, entry.name)
                        .unwrap()
                        .unwrap(),
                };
                assert_eq!((of.apply(&made).unwrap(), of.seal(&made).unwrap()), (vec![], vec![]));
            }
            WalkEvent::Entry(_) => {}
            WalkEvent::Refused(path, error) => panic!("{}: {error}", path.display()),
            WalkEvent::OtherFileSystem(entry) => panic!("{}", entry.path().display()),
        }
    }
}

fn copy_file(from: &Directory, to: &Directory, name: &OsStr, stat: &FileStat) -> File {
    let (source, target) = (from.open_regular(name).unwrap(), to.create_new(name, 0o600).unwrap());
    let mut begin = 0;
    while let Some(data) = sys::file::next_data(&source, begin).unwrap() {
        let mut bytes = vec![0; (data.end - data.start) as usize];
        source.read_exact_at(&mut bytes, data.start).unwrap();
        target.write_all_at(&bytes, data.start).unwrap();
        begin = data.end;
    }
    target.set_len(stat.bytes).unwrap();
    target
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn any_tree_is_made_again_with_its_metadata(tree in tree()) {
        let parent = TempDir::new();
        let held = Directory::open(parent.path()).unwrap();
        tree.make(&held, OsStr::new("source"), &mut None);
        held.create_subdirectory(OsStr::new("target"), 0o700).unwrap();
        copy(&parent.join("source"), &parent.join("target"));
        tree.assert_is(&parent.join("target"), &parent.join("source"), &mut None);
    }
}
