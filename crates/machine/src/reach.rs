//! Files of other processes, opened only where no server can hold the caller up.
//!
//! The idea: a call on a file of FUSE or of a network may wait for ever, and then not even SIGKILL
//! ends it. Which mount a path leads to is known from the mount table, before anything is touched.
//! The file is then opened below the directory of its mount by a walk that crosses to no other
//! mount: one made in the meantime, or a link, leads nowhere. What is left out is counted by
//! mount.
//!
//! A path below `/proc/PID/root` is one of another mount namespace, whose user may have mounted
//! anything there: its file systems are trusted if they are on a disk or mounted here as well.

use crate::mounts::{self, Mount};
use crate::root::Root;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

/// How many directories of mounts are held open.
const MAX_OPEN_MOUNTS: usize = 64;
/// How many mounts are named in the line about what was left out.
const MOST_NAMED: usize = 5;
/// File systems whose files are the kernel's own, in memory, and wait for no server.
const OF_THE_KERNEL: [&str; 12] = [
    "tmpfs",
    "ramfs",
    "devtmpfs",
    "hugetlbfs",
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "devpts",
    "mqueue",
    "debugfs",
    "tracefs",
];

/// The way to the files of others, and what was left out on it.
#[derive(Debug)]
pub struct Reach {
    root: Root,
    own: Table,
    /// By the namespace and the root directory of its processes.
    others: HashMap<(PathBuf, PathBuf), Table>,
    /// Directories of mounts, by the path that leads there and the mount's number.
    places: HashMap<(PathBuf, u32), File>,
    /// Files left out, by mount point and type.
    left_out: BTreeMap<(PathBuf, String), u64>,
    paths_left_out: HashSet<PathBuf>,
}

/// Why a file was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is on a mount that may hang, which is counted.
    LeftOut,
    /// It is gone, may not be read, or is not a regular file of a disk.
    Closed,
}

impl Reach {
    /// With the mounts of this moment.
    #[must_use]
    pub fn new(root: &Root) -> Self {
        Self {
            root: root.clone(),
            own: Table::new(mounts::read(root), None),
            others: HashMap::new(),
            places: HashMap::new(),
            left_out: BTreeMap::new(),
            paths_left_out: HashSet::new(),
        }
    }

    /// Opens the regular file at `path`, an absolute path of this namespace or one through
    /// `/proc/PID/root`, for reading, without changing its access time where that is permitted.
    ///
    /// # Errors
    /// Why it was not opened.
    pub fn open(&mut self, path: &Path) -> Result<File, Refusal> {
        let (base, inner) = self.split(path);
        let crossing = self.table(&base).crossing(&inner);
        let (id, point) = match crossing {
            // Without a mount table nothing is known, and nothing was asked for by its means.
            Crossing::Unknown if self.own.mounts.is_empty() => {
                return regular(sys::file::open_unnoticed(path).ok());
            }
            Crossing::Unknown => return Err(Refusal::Closed),
            Crossing::OfTheKernel => return Err(Refusal::Closed),
            Crossing::MayHang(point, fs_type) => {
                self.leave_out(path, base.join(relative(&point)), fs_type);
                return Err(Refusal::LeftOut);
            }
            Crossing::Leads(id, point) => (id, point),
        };
        let below = inner.strip_prefix(&point).unwrap_or(Path::new(""));
        if below.as_os_str().is_empty() {
            // A file that is itself a mount point: nothing is below it.
            return regular(sys::file::open_unnoticed(path).ok());
        }
        let place = self.place(&base.join(relative(&point)), id)?;
        regular(sys::file::open_unnoticed_below(place, below).ok())
    }

    /// Whether a directory or file may be looked at without waiting for a server: for walks.
    #[must_use]
    pub fn is_safe(&mut self, path: &Path) -> bool {
        let (base, inner) = self.split(path);
        !matches!(self.table(&base).crossing(&inner), Crossing::MayHang(..))
    }

    /// The device numbers of the RAM disks (tmpfs) that this process or the process `pid` sees.
    pub fn ram_devices(&mut self, pid: u32) -> HashSet<(u32, u32)> {
        let base = self.root.path(format!("/proc/{pid}/root"));
        let of = |table: &Table| -> Vec<(u32, u32)> {
            let ram = table.mounts.iter().filter(|mount| mount.fs_type == "tmpfs");
            ram.map(|mount| (mount.major, mount.minor)).collect()
        };
        let own = of(&self.own);
        own.into_iter().chain(of(self.table(&base))).collect()
    }

    /// "7 files on FUSE or network mounts were left out: /mnt/x (fuse.sshfs)"; `None` if none was.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let files: u64 = self.left_out.values().sum();
        let named: Vec<String> = self
            .left_out
            .keys()
            .take(MOST_NAMED)
            .map(|(point, fs_type)| format!("{} ({fs_type})", point.display()))
            .collect();
        let more = match self.left_out.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (what, were) = match files {
            0 => return None,
            1 => ("file", "was"),
            _ => ("files", "were"),
        };
        Some(format!(
            "{files} {what} on mounts that a program or a server serves, which may never answer, {were} \
             left out: {}{more}",
            named.join(", ")
        ))
    }

    fn leave_out(&mut self, path: &Path, point: PathBuf, fs_type: String) {
        if self.paths_left_out.insert(path.to_owned()) {
            *self.left_out.entry((point, fs_type)).or_default() += 1;
        }
    }

    /// The directory that the path starts from, and the path from there on.
    fn split(&self, path: &Path) -> (PathBuf, PathBuf) {
        let top = self.root.path("/");
        let proc = self.root.path("/proc");
        let of_process = || {
            let mut rest = path.strip_prefix(&proc).ok()?.components();
            let pid: u32 = rest.next()?.as_os_str().to_str()?.parse().ok()?;
            (rest.next()?.as_os_str() == "root").then_some(())?;
            let base = self.root.path(format!("/proc/{pid}/root"));
            Some((base, Path::new("/").join(rest.as_path())))
        };
        of_process().unwrap_or_else(|| {
            let inner = path.strip_prefix(&top).unwrap_or(path);
            (top, Path::new("/").join(inner))
        })
    }

    /// The mounts behind a base directory that [`Self::split`] gave.
    fn table(&mut self, base: &Path) -> &Table {
        if base == self.root.path("/") {
            return &self.own;
        }
        let process = base.parent().unwrap_or(base);
        let link = |name: &str| std::fs::read_link(process.join(name)).unwrap_or_default();
        let key = (link("ns/mnt"), link("root"));
        let name = process.file_name().unwrap_or_default().to_string_lossy();
        let (root, own) = (&self.root, &self.own);
        self.others.entry(key).or_insert_with(|| Table::new(mounts::read_of(root, name), Some(own)))
    }

    /// The directory of a mount, if it is still the one that the table names.
    fn place(&mut self, point: &Path, id: u32) -> Result<&File, Refusal> {
        if self.places.len() >= MAX_OPEN_MOUNTS {
            self.places.clear();
        }
        let key = (point.to_owned(), id);
        if !self.places.contains_key(&key) {
            let place = sys::file::open_place(point).map_err(|_| Refusal::Closed)?;
            if mount_id(&self.root, &place).is_some_and(|now| now != id) {
                return Err(Refusal::Closed);
            }
            self.places.insert(key.clone(), place);
        }
        self.places.get(&key).ok_or(Refusal::Closed)
    }
}

/// The number of the mount that an open file is on.
fn mount_id(root: &Root, file: &File) -> Option<u32> {
    use std::os::fd::AsRawFd;
    let text = root.read(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    line.trim().parse().ok()
}

fn regular(file: Option<File>) -> Result<File, Refusal> {
    let is_regular = |file: &File| file.metadata().is_ok_and(|metadata| metadata.is_file());
    file.filter(is_regular).ok_or(Refusal::Closed)
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// What a path crosses.
enum Crossing {
    /// No mount covers it.
    Unknown,
    /// A file system of the kernel's own.
    OfTheKernel,
    /// This mount point, of this type, may hang.
    MayHang(PathBuf, String),
    /// It leads to this mount at this point.
    Leads(u32, PathBuf),
}

/// A mount table, by what is mounted on what.
#[derive(Debug)]
struct Table {
    mounts: Vec<Mount>,
    /// Mounts that are on none of the table, the last mounted first.
    tops: Vec<usize>,
    /// By the number of the mount below and the mount point.
    on: HashMap<u32, HashMap<PathBuf, usize>>,
    /// Which mounts may hang.
    may_hang: Vec<bool>,
}

impl Table {
    /// Of this namespace, or of another if `own` is given.
    fn new(mounts: Vec<Mount>, own: Option<&Self>) -> Self {
        let ids: HashSet<u32> = mounts.iter().map(|mount| mount.id).collect();
        let is_top = |mount: &Mount| !ids.contains(&mount.parent) || mount.parent == mount.id;
        let (mut tops, mut on) = (Vec::new(), HashMap::<u32, HashMap<PathBuf, usize>>::new());
        for (index, mount) in mounts.iter().enumerate() {
            if is_top(mount) {
                tops.insert(0, index);
            } else {
                let points = on.entry(mount.parent).or_default();
                points.insert(mount.mount_point.clone(), index);
            }
        }
        let known = |mount: &Mount, own: &Self| {
            let device = |other: &Mount| (other.major, other.minor) == (mount.major, mount.minor);
            mount.major != 0
                || OF_THE_KERNEL.contains(&mount.fs_type.as_str())
                || own.mounts.iter().any(device)
        };
        let may_hang = mounts.iter().map(|mount| match own {
            // What this program itself was started from answers.
            None => mount.may_hang() && mount.mount_point != Path::new("/"),
            Some(own) => mount.may_hang() || !known(mount, own),
        });
        Self { may_hang: may_hang.collect(), mounts, tops, on }
    }

    /// Walks an absolute path as the kernel does.
    fn crossing(&self, path: &Path) -> Crossing {
        let covers = |index: &&usize| path.starts_with(&self.mounts[**index].mount_point);
        let depth = |index: &&usize| self.mounts[**index].mount_point.components().count();
        let Some(mut current) = self.tops.iter().filter(covers).min_by_key(depth).copied() else {
            return Crossing::Unknown;
        };
        let mut prefix = PathBuf::new();
        for component in path.components() {
            prefix.push(component);
            // A mount that another covers whole is not asked for anything. The bound guards against
            // a cycle in bad input.
            for _ in 0..self.mounts.len() {
                let next = self.on.get(&self.mounts[current].id);
                match next.and_then(|points| points.get(&prefix)) {
                    Some(next) => current = *next,
                    None => break,
                }
            }
            let mount = &self.mounts[current];
            let is_inside = prefix.starts_with(&mount.mount_point);
            if self.may_hang[current] && is_inside {
                return Crossing::MayHang(mount.mount_point.clone(), mount.fs_type.clone());
            }
        }
        let mount = &self.mounts[current];
        if mount.automount {
            return Crossing::MayHang(mount.mount_point.clone(), mount.fs_type.clone());
        }
        if OF_THE_KERNEL.contains(&mount.fs_type.as_str()) {
            Crossing::OfTheKernel
        } else {
            Crossing::Leads(mount.id, mount.mount_point.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    const TABLE: &str = "\
27 1 254:0 / / rw - ext4 /dev/vda rw
30 27 0:50 / /mnt/ssh rw - fuse.sshfs host: rw
31 30 8:1 / /mnt/ssh/disk rw - ext4 /dev/sda1 rw
32 27 0:51 / /mnt/both rw - fuse x rw
33 32 8:2 / /mnt/both rw - xfs /dev/sdb1 rw
34 27 0:52 / /net rw - autofs -hosts rw
35 34 8:3 / /net/near rw - ext4 /dev/sdc1 rw
36 27 0:53 / /srv/nfs rw - nfs4 server:/x rw
37 27 0:54 / /dev/shm rw - tmpfs tmpfs rw
38 27 0:55 / /ntfs rw - fuseblk /dev/sdd1 rw
39 27 0:56 / /host rw - virtiofs host rw
40 27 0:57 / /merged rw - overlay overlay rw
";

    fn crossed(table: &Table, path: &str) -> String {
        match table.crossing(Path::new(path)) {
            Crossing::Unknown => "unknown".to_owned(),
            Crossing::OfTheKernel => "kernel".to_owned(),
            Crossing::MayHang(point, fs_type) => format!("{} {fs_type}", point.display()),
            Crossing::Leads(_, point) => point.display().to_string(),
        }
    }

    #[test]
    fn a_mount_that_may_hang_is_known_wherever_it_is_on_the_way() {
        let table = Table::new(mounts::parse(TABLE), None);
        for (path, expected) in [
            ("/etc/passwd", "/"),
            ("/mnt/ssh/file", "/mnt/ssh fuse.sshfs"),
            ("/mnt/ssh", "/mnt/ssh fuse.sshfs"),
            ("/mnt/ssh/disk/file", "/mnt/ssh fuse.sshfs"),
            ("/mnt/sshx", "/"),
            ("/mnt/both/file", "/mnt/both"),
            ("/net/far/file", "/net autofs"),
            ("/net/near/file", "/net/near"),
            ("/srv/nfs/a/b", "/srv/nfs nfs4"),
            ("/dev/shm/x", "kernel"),
            ("/ntfs/x", "/ntfs fuseblk"),
            ("/host/x", "/host"),
            ("/merged/x", "/merged"),
        ] {
            assert_eq!(crossed(&table, path), expected, "{path}");
        }
        assert_eq!(crossed(&Table::new(Vec::new(), None), "/x"), "unknown");
    }

    #[test]
    fn another_namespace_is_trusted_with_disks_and_with_what_is_mounted_here() {
        let own = Table::new(mounts::parse(TABLE), None);
        let other = mounts::parse(
            "\
90 1 0:57 / / rw - overlay overlay rw
91 90 8:9 / /disk rw - ext4 /dev/sdx rw
92 90 0:90 / /own rw - overlay overlay rw
93 90 0:91 / /tmp rw - tmpfs tmpfs rw
",
        );
        let table = Table::new(other, Some(&own));
        for (path, expected) in [
            ("/etc/x", "/"),
            ("/disk/x", "/disk"),
            ("/own/x", "/own overlay"),
            ("/tmp/x", "kernel"),
        ] {
            assert_eq!(crossed(&table, path), expected, "{path}");
        }
    }

    #[test]
    fn a_program_that_was_started_from_a_network_looks_at_its_own_root() {
        let mounts = mounts::parse("27 1 0:40 / / rw - nfs server:/ rw\n");
        let table = Table::new(mounts, None);
        assert_eq!(crossed(&table, "/bin/sh"), "/");
    }

    #[test]
    fn files_are_opened_here_and_through_a_process() {
        let directory = TempDir::new();
        let path = directory.path().canonicalize().unwrap().join("file");
        std::fs::write(&path, "x").unwrap();
        let mut reach = Reach::new(&Root::system());
        if reach.open(&path).is_err() {
            return testkit::skip("a temporary directory on a disk");
        }
        let through = Path::new("/proc")
            .join(std::process::id().to_string())
            .join("root")
            .join(path.strip_prefix("/").unwrap());
        assert!(reach.open(&through).is_ok());
        assert_eq!(reach.open(Path::new("/proc/version")).err(), Some(Refusal::Closed));
        assert_eq!(reach.open(Path::new("/proc/self/exe")).err(), Some(Refusal::Closed));
        assert_eq!(reach.open(directory.path()).err(), Some(Refusal::Closed));
        assert_eq!(reach.note(), None);
    }

    proptest::proptest! {
        #[test]
        fn any_table_ends_the_walk(
            rows in proptest::collection::vec((0u32..6, 0u32..6, "(/[ab]){0,3}"), 0..12),
            path in "(/[ab]){0,4}",
        ) {
            let text: String = rows
                .iter()
                .map(|(id, parent, point)| format!("{id} {parent} 1:1 / /{point} rw - x y z\n"))
                .collect();
            let table = Table::new(mounts::parse(&text), None);
            let _ = table.crossing(Path::new(&format!("/{path}")));
        }
    }
}
