//! The mount table, and which mount a path is on.
//!
//! A longest prefix is not enough: a mount over a parent directory hides what was mounted
//! below before. So the tree is walked from its top as the kernel does, by mount numbers.
//! Paths are taken as they are written; links in them are the caller's to resolve.

use crate::parse::{device_numbers, unescape};
use crate::root::Root;
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Types whose files live on another machine. Plain `fuse` is unknown and not among them.
const NETWORK_TYPES: [&str; 32] = [
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "curlftpfs",
    "davfs",
    "fuse.ceph-fuse",
    "fuse.curlftpfs",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.juicefs",
    "fuse.mount-s3",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "gfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "pvfs2",
    "smb3",
    "smbfs",
    "sshfs",
    "vboxsf",
];

/// One line of /proc/self/mountinfo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// The mount's number.
    pub id: u32,
    /// The number of the mount that it is mounted on.
    pub parent: u32,
    /// Device number, major part; 0 for file systems without a device.
    pub major: u32,
    /// Device number, minor part.
    pub minor: u32,
    /// Which directory of the file system is mounted: `/`, but for bind mounts and subvolumes.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Options of this mount, as `rw,noatime`.
    pub options: String,
    /// The file system's type, as `ext4`.
    pub fs_type: String,
    /// What is mounted, as `/dev/vda1` or `server:/export`.
    pub source: String,
    /// Options of the file system itself.
    pub super_options: String,
    /// Whether its files live on another machine, as far as the type says.
    pub network: bool,
    /// Whether touching it may mount something (autofs).
    pub automount: bool,
}

impl Mount {
    /// Whether a call on its files can wait for ever for a process or a server that no longer
    /// answers. All of FUSE counts, also for a local disk (`fuseblk`): a program serves it.
    /// `virtiofs` does not: the host serves it, as it serves the disks of a guest.
    #[must_use]
    pub fn may_hang(&self) -> bool {
        let by_program =
            self.fs_type == "fuseblk" || self.fs_type.split('.').next() == Some("fuse");
        self.network || by_program
    }
}

/// The mounts that this process sees; none where /proc is missing.
#[must_use]
pub fn read(root: &Root) -> Vec<Mount> {
    read_of(root, "self")
}

/// The mounts that a process sees from its root directory; none where it may not be looked into.
#[must_use]
pub fn read_of(root: &Root, process: impl std::fmt::Display) -> Vec<Mount> {
    root.read_bytes(format!("/proc/{process}/mountinfo")).map(parse).unwrap_or_default()
}

/// The mounts of a mountinfo text, in its order; malformed lines are skipped.
#[must_use]
pub fn parse(text: impl AsRef<[u8]>) -> Vec<Mount> {
    text.as_ref().split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

/// The mount that an absolute path is on.
#[must_use]
pub fn behind<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let covers = |mount: &&Mount| path.starts_with(&mount.mount_point);
    // The top: a mount that is mounted on none of the list.
    let is_top = |mount: &&Mount| {
        !mounts.iter().any(|other| other.id == mount.parent && other.id != mount.id)
    };
    // Backwards, so that of equals the one mounted last is taken.
    let newest_first = || mounts.iter().rev().filter(covers);
    let mut current = newest_first().filter(is_top).min_by_key(depth)?;
    // A walk down cannot be longer than the list; the bound guards against a cycle in bad input.
    for _ in 0..mounts.len() {
        // Two mounts on the same parent: the shorter is met first and hides the longer.
        let next = newest_first()
            .filter(|mount| mount.parent == current.id && mount.id != current.id)
            .min_by_key(depth);
        match next {
            Some(next) => current = next,
            None => break,
        }
    }
    Some(current)
}

fn depth(mount: &&Mount) -> usize {
    mount.mount_point.components().count()
}

/// "36 35 98:0 /root /point rw shared:1 - ext4 /dev/sda1 rw,errors=continue"
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut field = || fields.next();
    let id = text(field()?).parse().ok()?;
    let parent = text(field()?).parse().ok()?;
    let (major, minor) = device_numbers(&text(field()?))?;
    let root = path(field()?);
    let mount_point = path(field()?);
    let options = text(field()?);
    // Any number of optional fields, ended by a lone hyphen.
    fields.by_ref().find(|field| *field == b"-")?;
    let fs_type = text(fields.next()?);
    let source = text(fields.next().unwrap_or_default());
    let super_options = text(fields.next().unwrap_or_default());
    Some(Mount {
        network: NETWORK_TYPES.contains(&fs_type.as_str()),
        automount: fs_type == "autofs",
        id,
        parent,
        major,
        minor,
        root,
        mount_point,
        options,
        fs_type,
        source,
        super_options,
    })
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(&unescape(field)).into_owned()
}

fn path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
30 27 8:1 /home/ann /home rw - ext4 /dev/sda1 rw
31 27 0:50 / /mnt/with\\040space rw - nfs4 server:/export rw
32 27 0:51 / /net rw - autofs -hosts rw
33 27 8:2 / /a/b rw - xfs /dev/sda2 rw
34 27 8:3 / /a rw - xfs /dev/sda3 rw
35 34 8:4 / /a rw - btrfs /dev/sda4 rw
";

    fn device_behind(path: &str) -> String {
        behind(&parse(TABLE), Path::new(path)).unwrap().source.clone()
    }

    #[test]
    fn fields_are_found_around_optional_ones() {
        let mounts = parse(TABLE);
        assert_eq!(mounts.len(), 8);
        assert_eq!(mounts[1].source, "/dev/vda");
        assert_eq!(mounts[1].super_options, "rw,discard");
        assert_eq!((mounts[1].major, mounts[1].minor), (254, 0));
        assert_eq!(mounts[2].root, Path::new("/home/ann"));
        assert_eq!(mounts[3].mount_point, Path::new("/mnt/with space"));
        assert!(mounts[3].network && !mounts[3].automount);
        assert!(mounts[4].automount && !mounts[4].network);
    }

    #[test]
    fn paths_find_their_mount() {
        assert_eq!(device_behind("/etc/passwd"), "/dev/vda");
        assert_eq!(device_behind("/home/x"), "/dev/sda1");
        assert_eq!(device_behind("/homes"), "/dev/vda", "whole components only");
        assert_eq!(device_behind("/mnt/with space/f"), "server:/export");
        assert_eq!(device_behind("/a"), "/dev/sda4", "the last mounted on one point wins");
        assert_eq!(device_behind("/a/b/c"), "/dev/sda4", "/a/b was hidden by the mount on /a");
        assert!(behind(&[], Path::new("/")).is_none());
    }

    #[test]
    fn this_machine_agrees_with_stat() {
        use std::os::unix::fs::MetadataExt;
        let mounts = read(&Root::system());
        for path in ["/", "/proc", "/sys", "/dev/shm"] {
            let (Ok(meta), Some(mount)) =
                (std::fs::metadata(path), behind(&mounts, Path::new(path)))
            else {
                continue;
            };
            let (major, minor) = sys::block::device_numbers(meta.dev());
            if mount.fs_type != "btrfs" && mount.fs_type != "overlay" {
                assert_eq!((mount.major, mount.minor), (major, minor), "{path}: {mount:?}");
            }
        }
        assert!(!mounts.is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_parse(bytes in prop::collection::vec(any::<u8>(), 0..400), path in "(/[a-z]{0,3}){0,4}") {
            let mounts = parse(&bytes);
            let _ = behind(&mounts, Path::new(&path));
        }

        #[test]
        fn any_table_ends_the_walk(
            rows in prop::collection::vec((0u32..6, 0u32..6, "(/[ab]){0,3}"), 0..12),
            path in "(/[ab]){0,4}",
        ) {
            let text: String = rows
                .iter()
                .map(|(id, parent, point)| format!("{id} {parent} 1:1 / /{point} rw - x y z\n"))
                .collect();
            let mounts = parse(&text);
            prop_assert_eq!(mounts.len(), rows.len());
            if let Some(mount) = behind(&mounts, Path::new(&path)) {
                prop_assert!(Path::new(&path).starts_with(&mount.mount_point));
            }
        }
    }
}
