//! What keeps a file system mounted: processes with an open file, a working or root directory, a
//! program or a mapped file there, and loop devices over its files. Read from /proc and /sys by
//! the paths of links alone, so that no file of a hanging mount is touched.
//!
//! A process that cannot be looked into, and one in another mount namespace, is not seen.

use machine::Root;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// So many are named.
const MOST_NAMED: usize = 100;

/// What a process has there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HolderUse {
    /// Its working directory.
    WorkingDirectory,
    /// Its root directory.
    RootDirectory,
    /// Its program.
    Program,
    /// An open file.
    OpenFile,
    /// A mapped file.
    MappedFile,
    /// The file behind a loop device.
    LoopDevice,
}

/// What holds a file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EjectHolder {
    /// The process; none for a loop device.
    pub pid: Option<u32>,
    /// Its name, or the device's; any text.
    pub name: String,
    /// What it has there.
    pub uses: HolderUse,
    /// Which file or directory.
    pub path: PathBuf,
}

/// Finds what holds the file system that is mounted at `point`: one use of each process.
pub(crate) fn find(root: &Root, point: &Path) -> Vec<EjectHolder> {
    let mut found = Vec::new();
    for name in names(root, "/proc") {
        let Ok(pid) = name.parse::<u32>() else { continue };
        if let Some((uses, path)) = use_of(root, pid, point) {
            let name = word(root, &format!("/proc/{pid}/comm")).unwrap_or_default();
            found.push(EjectHolder { pid: Some(pid), name, uses, path });
        }
    }
    for name in names(root, "/sys/block") {
        let file = word(root, &format!("/sys/block/{name}/loop/backing_file"));
        if let Some(path) = file.map(PathBuf::from).filter(|path| path.starts_with(point)) {
            found.push(EjectHolder { pid: None, name, uses: HolderUse::LoopDevice, path });
        }
    }
    found.truncate(MOST_NAMED);
    found
}

fn names(root: &Root, directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root.path(directory)).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn word(root: &Root, file: &str) -> Option<String> {
    Some(root.read(file).ok()?.trim_end().to_owned())
}

fn use_of(root: &Root, pid: u32, point: &Path) -> Option<(HolderUse, PathBuf)> {
    let links = [
        ("cwd", HolderUse::WorkingDirectory),
        ("root", HolderUse::RootDirectory),
        ("exe", HolderUse::Program),
    ];
    let there = |link: String| {
        let path = std::fs::read_link(root.path(link)).ok()?;
        path.starts_with(point).then_some(path)
    };
    for (link, uses) in links {
        if let Some(path) = there(format!("/proc/{pid}/{link}")) {
            return Some((uses, path));
        }
    }
    for number in names(root, &format!("/proc/{pid}/fd")) {
        if let Some(path) = there(format!("/proc/{pid}/fd/{number}")) {
            return Some((HolderUse::OpenFile, path));
        }
    }
    let maps = root.read_bytes(format!("/proc/{pid}/maps")).ok()?;
    mapped_below(&maps, point).map(|path| (HolderUse::MappedFile, path))
}

/// The first file below `point` in the text of maps. An end of line in a name is `\012` there.
fn mapped_below(maps: &[u8], point: &Path) -> Option<PathBuf> {
    maps.split(|byte| *byte == b'\n').find_map(|line| {
        let start = line.iter().position(|byte| *byte == b'/')?;
        let path = PathBuf::from(OsString::from_vec(line[start..].to_vec()));
        path.starts_with(point).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_is_found_by_its_path() {
        let maps = b"\
7f00-7f01 r-xp 00000000 fe:00 123    /usr/lib/libc.so.6
7f02-7f03 rw-p 00000000 00:00 0
7f04-7f05 r--s 00000000 07:01 12     /media/stick/a b
";
        let found = mapped_below(maps, Path::new("/media/stick"));
        assert_eq!(found, Some(PathBuf::from("/media/stick/a b")));
        assert_eq!(mapped_below(maps, Path::new("/media/sti")), None);
    }
}
