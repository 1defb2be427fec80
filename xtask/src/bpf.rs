//! The programs that the recorder loads into the kernel: built from C, and held against it.
//!
//! The object is kept in the tree, because no machine that builds Terrace needs a compiler for it.
//! It carries the sum of its sources and the name of its compiler. `--check` says that the sum is
//! right, and, where the same compiler is installed, that it gives the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::{process, workspace};

/// Where the sources and the object are.
const DIRECTORY: &str = "crates/record/bpf";
const SOURCE: &str = "recorder.bpf.c";
const OBJECT: &str = "recorder.bpf.o";
/// What stands before the sum in the object.
const STAMP: &str = "built-from-sha256 ";
/// Atomic operations that give the old value need version 3 of the instructions.
const FLAGS: &[&str] = &[
    "-O2",
    "-g",
    "-mcpu=v3",
    "-target",
    "bpf",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Werror",
];
const LIMIT: Duration = Duration::from_secs(120);

/// What a check found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// The same compiler gives the same bytes.
    Bytes,
    /// The sum of the sources is right; why the bytes were not compared.
    Sum(String),
}

/// Builds the object, or checks that it is what its sources give.
///
/// # Errors
/// When there is no compiler, it refuses the sources, or source and object do not agree.
pub(crate) fn run(is_check: bool) -> Result<(), Error> {
    let root = workspace::current_root()?;
    if !is_check {
        let built = build(&root)?;
        let path = root.join(DIRECTORY).join(OBJECT);
        fs::write(&path, &built).map_err(|error| failed(format!("{}: {error}", path.display())))?;
        println!("bpf: {DIRECTORY}/{OBJECT}, {} bytes", built.len());
        return Ok(());
    }
    match check(&root)? {
        Agreement::Bytes => println!("bpf: the object is what its sources give, byte for byte"),
        Agreement::Sum(why) => println!("bpf: the object has the sum of its sources; {why}"),
    }
    Ok(())
}

/// Whether the kept object is what its sources give.
///
/// # Errors
/// When it is not.
pub(crate) fn check(root: &Path) -> Result<Agreement, Error> {
    let path = root.join(DIRECTORY).join(OBJECT);
    let kept = fs::read(&path).map_err(|error| failed(format!("{}: {error}", path.display())))?;
    let advice = "`cargo xtask bpf` builds it";
    let Some((sum, compiler)) = stamp(&kept) else {
        return Err(failed(format!("{OBJECT} does not say what it was built from; {advice}")));
    };
    if sum != sum_of_sources(root)? {
        return Err(failed(format!("{OBJECT} was not built from these sources; {advice}")));
    }
    match version() {
        Ok(here) if here == compiler => {}
        Ok(here) => {
            return Ok(Agreement::Sum(format!("it was built by {compiler}, here is {here}")));
        }
        Err(_) => return Ok(Agreement::Sum(format!("needs {compiler} to compare the bytes"))),
    }
    if build(root)? != kept {
        return Err(failed(format!("{OBJECT} is not what {compiler} makes of it; {advice}")));
    }
    Ok(Agreement::Bytes)
}

/// Compiles the sources and leaves out what only a debugger reads.
fn build(root: &Path) -> Result<Vec<u8>, Error> {
    let stamp = format!("{STAMP}{} {}", sum_of_sources(root)?, version()?);
    let place = Scratch::new()?;
    let output = place.0.join(OBJECT);
    let mut compile = Command::new("clang");
    let directory = root.join(DIRECTORY);
    compile.current_dir(&directory).args(FLAGS);
    // The same bytes wherever the tree is.
    compile.arg(format!("-ffile-prefix-map={}=.", directory.display()));
    compile.arg(format!("-DSTAMP=\"{stamp}\"")).args(["-c", SOURCE, "-o"]).arg(&output);
    process::run(compile, LIMIT)?.success()?;
    let mut strip = Command::new("llvm-strip");
    strip.arg("-g").arg(&output);
    process::run(strip, LIMIT)?.success()?;
    fs::read(&output).map_err(|error| failed(format!("{}: {error}", output.display())))
}

/// The compiler's own name: `Debian clang version 14.0.6`.
fn version() -> Result<String, Error> {
    let mut command = Command::new("clang");
    command.arg("--version");
    let finished = process::run(command, LIMIT)?.success()?;
    let line = finished.stdout.lines().next().unwrap_or_default();
    Ok(line.split(" (").next().unwrap_or_default().trim().to_owned())
}

/// The sum of all sources, by name and text.
fn sum_of_sources(root: &Path) -> Result<String, Error> {
    let directory = root.join(DIRECTORY);
    let unread = |error: std::io::Error| failed(format!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(&directory).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        let is_source = path.extension().is_some_and(|end| end == "c" || end == "h");
        paths.extend(is_source.then_some(path));
    }
    paths.sort();
    let mut sum = Sha256::new();
    for path in paths {
        let text = fs::read(&path).map_err(unread)?;
        sum.update(path.file_name().unwrap_or_default().as_encoded_bytes());
        sum.update([0]);
        sum.update((text.len() as u64).to_le_bytes());
        sum.update(&text);
    }
    Ok(sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The sum and the compiler that an object names.
fn stamp(object: &[u8]) -> Option<(String, String)> {
    let mark = STAMP.as_bytes();
    let at = object.windows(mark.len()).position(|bytes| bytes == mark)? + mark.len();
    let rest = &object[at..];
    let end = rest.iter().position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&rest[..end]).ok()?;
    let (sum, compiler) = text.split_once(' ')?;
    Some((sum.to_owned(), compiler.to_owned()))
}

fn failed(why: String) -> Error {
    Error::Failed(format!("bpf: {why}"))
}

/// A directory that goes with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("terrace-bpf-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| failed(format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is two small files of a temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_object_is_what_its_sources_give() {
        let root = workspace::current_root().unwrap();
        match check(&root).unwrap() {
            Agreement::Bytes => {}
            Agreement::Sum(why) => testkit::skip(why),
        }
    }

    #[test]
    fn an_object_names_its_sources_and_its_compiler() {
        let object =
            [b"\x7fELF..".as_slice(), STAMP.as_bytes(), b"abc0 some clang 9\0more"].concat();
        assert_eq!(stamp(&object), Some(("abc0".to_owned(), "some clang 9".to_owned())));
        assert_eq!(stamp(b"\x7fELF"), None);
    }
}
