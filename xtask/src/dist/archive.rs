//! Tarballs whose bytes depend on nothing but their files: sorted, owned by root, of one time,
//! compressed without a name and a time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use crate::error::Error;

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// Whether it can be executed.
    pub is_program: bool,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Files by their paths below a directory.
pub type FileTree = BTreeMap<String, TreeFile>;

const BLOCK: usize = 512;
/// The longest path of the first form of the format, which every tar reads.
const NAME_BYTES: usize = 100;

/// An archive (ustar) of `tree` below the directory `top`, all of the time `epoch_s`.
///
/// # Errors
/// If a path is too long for the format.
pub fn tar(top: &str, tree: &FileTree, epoch_s: u64) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    for directory in directories(tree) {
        let path = format!("{top}/{directory}");
        out.extend(header(&path, 0o755, 0, epoch_s, b'5')?);
    }
    for (path, file) in tree {
        let mode = if file.is_program { 0o755 } else { 0o644 };
        out.extend(header(&format!("{top}/{path}"), mode, file.bytes.len(), epoch_s, b'0')?);
        out.extend(&file.bytes);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    Ok(out)
}

/// `bytes` compressed, with no name and no time in it.
///
/// # Errors
/// None; the compressor writes to memory.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let failed = |error: std::io::Error| Error::Failed(format!("gzip: {error}"));
    let level = flate2::Compression::best();
    let mut encoder = flate2::GzBuilder::new().mtime(0).write(Vec::new(), level);
    encoder.write_all(bytes).map_err(failed)?;
    encoder.finish().map_err(failed)
}

/// The directories of the files, each before what is in it; the first one is the top.
fn directories(tree: &FileTree) -> BTreeSet<String> {
    let mut all = BTreeSet::from([String::new()]);
    for path in tree.keys() {
        all.extend(path.match_indices('/').map(|(at, _)| path[..=at].to_owned()));
    }
    all
}

fn header(
    path: &str,
    mode: u32,
    bytes: usize,
    epoch_s: u64,
    kind: u8,
) -> Result<[u8; BLOCK], Error> {
    if path.len() > NAME_BYTES {
        return Err(Error::Failed(format!("{path}: longer than {NAME_BYTES} bytes")));
    }
    let mut header = [0; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, path);
    put(100, &format!("{mode:07o}\0"));
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{bytes:011o}\0"));
    put(136, &format!("{epoch_s:011o}\0"));
    // Its own sum counts as spaces.
    put(148, "        ");
    put(156, char::from(kind).encode_utf8(&mut [0; 1]));
    put(257, "ustar\x0000");
    put(265, "root");
    put(297, "root");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use testkit::TempDir;

    fn tree() -> FileTree {
        let file = |is_program, text: &str| TreeFile { is_program, bytes: text.into() };
        FileTree::from([
            ("share/doc/a".to_owned(), file(false, &"x".repeat(1000))),
            ("bin/terrace".to_owned(), file(true, "#!/bin/sh\n")),
        ])
    }

    #[test]
    fn the_same_files_give_the_same_bytes_and_another_time_others() {
        let packed = |epoch_s| gzip(&tar("top", &tree(), epoch_s).unwrap()).unwrap();
        assert_eq!(packed(1_700_000_000), packed(1_700_000_000));
        assert_ne!(packed(1_700_000_000), packed(1_700_000_001));
    }

    /// As GNU tar reads it: the first independent reader at hand.
    #[test]
    fn another_tar_reads_names_owners_modes_and_times() {
        let folder = TempDir::new();
        let path = folder.join("x.tar.gz");
        std::fs::write(&path, gzip(&tar("top", &tree(), 1_700_000_000).unwrap()).unwrap()).unwrap();
        let mut list = Command::new("tar");
        list.args(["--numeric-owner", "--full-time", "-tvzf"]).arg(&path).env("TZ", "UTC");
        let listed = list.output().unwrap();
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        let listed = String::from_utf8(listed.stdout).unwrap();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines: Vec<Vec<String>> = listed.lines().map(words).collect();
        let names: Vec<&str> = lines.iter().map(|line| line[5].as_str()).collect();
        let in_order = [
            "top/",
            "top/bin/",
            "top/share/",
            "top/share/doc/",
            "top/bin/terrace",
            "top/share/doc/a",
        ];
        assert_eq!(names, in_order);
        assert!(lines.iter().all(|line| line[1] == "0/0" && line[3] == "2023-11-14"), "{listed}");
        assert_eq!((lines[4][0].as_str(), lines[5][0].as_str()), ("-rwxr-xr-x", "-rw-r--r--"));
        let mut extract = Command::new("tar");
        extract.arg("-xzf").arg(&path).arg("-C").arg(folder.path());
        assert!(extract.status().unwrap().success());
        assert_eq!(std::fs::read(folder.join("top/share/doc/a")).unwrap(), vec![b'x'; 1000]);
    }

    #[test]
    fn a_path_that_the_format_cannot_hold_is_refused() {
        let file = TreeFile { is_program: false, bytes: Vec::new() };
        let tree = FileTree::from([("x".repeat(NAME_BYTES), file)]);
        assert!(tar("top", &tree, 0).is_err());
    }
}
