//! The functions that were found, kept in the run directory until the machine starts anew:
//! the kernel takes 50 ms of processor time to print /proc/kallsyms.
//!
//! The first line says what they hold for: this start of the machine, the modules as they
//! are loaded, the names that are looked for. Anything else is read anew and replaces it.

use super::functions::FunctionNames;
use super::symbols::{self, Function};
use crate::run_directory;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufReader, Read};
use sys::directory::Directory;
use sys::file::{Durability, FileMode};

/// The file's name; addresses of the kernel are root's to know.
const FILE: &str = "functions";
/// Some two hundred lines of 60 bytes; a larger file is not from this program.
const BYTES_MAX: u64 = 256 << 10;
/// For a file of several megabytes that is read once.
const BUFFER_BYTES: usize = 64 << 10;

/// The functions of the running kernel; none where it hides their addresses.
pub(super) fn functions(names: &FunctionNames) -> Vec<Function> {
    // A recorder makes it for its marks in any case.
    let directory = run_directory::own().ok();
    let place = directory.zip(validity(names));
    let kept = place.as_ref().and_then(|(directory, valid)| read(directory, valid, names));
    if let Some(kept) = kept {
        return kept;
    }
    let Ok(file) = File::open("/proc/kallsyms") else {
        return Vec::new();
    };
    let found = symbols::read(BufReader::with_capacity(BUFFER_BYTES, file), names);
    if let Some((directory, valid)) = place.filter(|_| !found.is_empty()) {
        // The next one looks for them itself then.
        let _ = write(&directory, &valid, &found);
    }
    found
}

/// What the functions hold for; `None` where it cannot be known.
fn validity(names: &FunctionNames) -> Option<String> {
    let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    // A kernel without modules has no such file.
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    let mut names: Vec<&str> = names.keys().copied().collect();
    names.sort_unstable();
    let mut hasher = DefaultHasher::new();
    names.hash(&mut hasher);
    for module in modules.lines() {
        // Name and address; in between are its users at the moment.
        let mut words = module.split_ascii_whitespace();
        (words.next(), words.nth(4)).hash(&mut hasher);
    }
    Some(format!("{} {:016x}", start.trim(), hasher.finish()))
}

/// Reads what is kept, if it holds and is whole.
fn read(directory: &Directory, valid: &str, names: &FunctionNames) -> Option<Vec<Function>> {
    let mut text = String::new();
    let file = directory.open_regular(OsStr::new(FILE)).ok()?;
    file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    if lines.next()? != valid {
        return None;
    }
    let functions: Vec<Function> =
        lines.map(|line| function(line, names)).collect::<Option<_>>()?;
    let in_order = functions.is_sorted_by_key(|function| function.start);
    (in_order && !functions.is_empty()).then_some(functions)
}

fn function(line: &str, names: &FunctionNames) -> Option<Function> {
    let mut words = line.split(' ');
    let mut address = || u64::from_str_radix(words.next()?, 16).ok();
    let (start, end) = (address()?, address()?);
    let (name, meaning) = names.get_key_value(words.next()?)?;
    Some(Function { start, end, name, meaning: *meaning })
}

/// Keeps the functions. They are not synced: they are valid only until the machine starts anew.
fn write(directory: &Directory, valid: &str, functions: &[Function]) -> sys::Result<()> {
    let mut text = format!("{valid}\n");
    for Function { start, end, name, .. } in functions {
        text.push_str(&format!("{start:x} {end:x} {name}\n"));
    }
    sys::file::replace(
        directory,
        OsStr::new(FILE),
        text.as_bytes(),
        FileMode::OwnerOnly,
        Durability::Unsynced,
    )
}

#[cfg(test)]
mod tests {
    use super::super::functions::names;
    use super::*;
    use testkit::TempDir;

    fn found(names: &FunctionNames) -> Vec<Function> {
        let symbols = "1000 T io_schedule\n1100 t futex_wait\n1200 T end\n";
        symbols::read(symbols.as_bytes(), names)
    }

    #[test]
    fn what_is_kept_is_read_back_while_it_holds() {
        let (directory, names) = (TempDir::new(), names());
        let found = found(&names);
        assert_eq!(found.len(), 2);
        let held = Directory::open_private(directory.path()).unwrap();
        assert_eq!(read(&held, "now", &names), None);
        write(&held, "now", &found).unwrap();
        assert_eq!(read(&held, "now", &names), Some(found));
        assert_eq!(read(&held, "later", &names), None);
        assert_eq!(directory.names(), [FILE], "nothing else is left");
    }

    #[test]
    fn what_is_damaged_is_not_believed() {
        let (directory, names) = (TempDir::new(), names());
        let held = Directory::open_private(directory.path()).unwrap();
        for text in [
            "",
            "now\n",
            "now\n1000 1100 no_such_function\n",
            "now\n1000 io_schedule\n",
            "now\n1100 1200 futex_wait\n1000 1100 io_schedule\n",
        ] {
            fs::write(directory.join(FILE), text).unwrap();
            assert_eq!(read(&held, "now", &names), None, "{text}");
        }
    }

    #[test]
    fn it_holds_for_this_start_and_these_names() {
        let mut names = names();
        let Some(valid) = validity(&names) else {
            return testkit::skip("a kernel that names its start");
        };
        assert_eq!(validity(&super::super::functions::names()), Some(valid.clone()));
        names.remove("io_schedule");
        assert_ne!(validity(&names), Some(valid));
    }
}
