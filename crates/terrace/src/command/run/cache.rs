//! `run --cache hot|cold`: reads the named files into the page cache before a run, or evicts them.
//! Other files are left alone: a benchmark must not slow down other programs.

use crate::args::run::{Cache, RunArgs};
use crate::error::{Error, Result};
use crate::exit;
use crate::output;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use sys::file::CacheAdvice;

/// The most files below a named directory: reading or evicting more takes longer than the run.
const MOST_FILES: usize = 100_000;

/// Directories inside of each other; a loop of mounts has no end.
const DEEPEST: usize = 64;

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Sets the requested state of the page cache.
///
/// # Errors
/// If a file is missing or cannot be read.
pub fn set_cache_state(args: &RunArgs) -> Result<()> {
    let Some(cache) = args.cache else {
        return Ok(());
    };
    let mut files = Vec::new();
    for path in &args.cache_files {
        collect(path, 0, &mut files)?;
    }
    match cache {
        Cache::Hot => files.iter().try_for_each(|path| read_whole(path)),
        Cache::Cold => evict_all(&files),
    }
}

/// `path`, or all regular files below it; links are not followed below the first.
fn collect(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    let found = if depth == 0 { fs::metadata(path) } else { fs::symlink_metadata(path) };
    let what = found.map_err(|error| refused(path, &error))?;
    if what.is_file() {
        files.push(path.to_owned());
    } else if what.is_dir() && depth < DEEPEST {
        for entry in fs::read_dir(path).map_err(|error| refused(path, &error))? {
            let entry = entry.map_err(|error| refused(path, &error))?;
            collect(&entry.path(), depth + 1, files)?;
        }
    } else if depth == 0 {
        let text = format!("--cache-file {}: not a file or directory", path.display());
        return Err(Error::usage(text));
    }
    if files.len() > MOST_FILES {
        let text = format!("--cache-file: more than {MOST_FILES} files");
        return Err(Error::usage(text));
    }
    Ok(())
}

fn refused(path: &Path, error: &std::io::Error) -> Error {
    let reason = sys::plain_reason(error);
    let text = format!("--cache-file {}: {reason}", path.display());
    Error::new(exit::FAILED_BEFORE, text)
}

fn read_whole(path: &Path) -> Result<()> {
    let file = sys::file::open_read(path, false)?;
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    loop {
        match sys::file::read_at(&file, &mut buffer, offset)? {
            0 => return Ok(()),
            bytes => offset += bytes as u64,
        }
    }
}

/// Evicts all, and reports how much stayed: pages that a process maps or writes cannot be evicted.
fn evict_all(files: &[PathBuf]) -> Result<()> {
    let mut left_pages = 0;
    for path in files {
        let file = sys::file::open_read(path, false)?;
        evict(&file)?;
        left_pages += sys::cachestat::of(&file, 0, 0).map_or(0, |stat| stat.cached);
    }
    if left_pages > 0 {
        let bytes = left_pages * sys::process::page_bytes() as u64;
        let text = format!(
            "--cache cold: {} stayed in the page cache: a process maps or locks it",
            model::Bytes(bytes)
        );
        output::complain(&Error::new(exit::FAILED_BEFORE, text).during("run"));
    }
    Ok(())
}

/// Only clean pages leave the cache, so what is dirty is written first.
fn evict(file: &File) -> Result<()> {
    sys::file::sync_data(file)?;
    sys::file::advise(file, 0, 0, CacheAdvice::DontNeed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    #[test]
    fn files_are_found_below_directories_and_links_are_not_followed() {
        let directory = TempDir::new();
        fs::create_dir(directory.join("sub")).unwrap();
        for name in ["a", "sub/b"] {
            fs::write(directory.join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("/", directory.join("root")).unwrap();
        let mut files = Vec::new();
        collect(directory.path(), 0, &mut files).unwrap();
        files.sort();
        assert_eq!(files, [directory.join("a"), directory.join("sub/b")]);
        assert!(collect(&directory.join("missing"), 0, &mut files).is_err());
        assert!(collect(Path::new("/dev/null"), 0, &mut files).is_err());
    }

    /// If the kernel reports it (Linux 6.5, a file system with a page cache): evicted pages are
    /// gone, read pages are there. No other process knows the file.
    #[test]
    fn cold_evicts_and_hot_reads() {
        let directory = TempDir::new();
        let path = directory.join("data");
        fs::write(&path, vec![7; 256 << 10]).unwrap();
        let file = File::open(&path).unwrap();
        read_whole(&path).unwrap();
        let Ok(hot) = sys::cachestat::of(&file, 0, 0) else {
            return testkit::skip("cachestat");
        };
        assert!(hot.cached > 0);
        evict(&file).unwrap();
        let cold = sys::cachestat::of(&file, 0, 0).unwrap();
        // A file system in RAM has nowhere to evict to.
        if sys::file::file_system(&file).is_ok_and(|system| system.in_ram) {
            return testkit::skip("a temporary directory on a disk");
        }
        assert!(cold.cached < hot.cached, "{cold:?}");
    }
}
