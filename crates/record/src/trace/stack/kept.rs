//! The functions that were found, kept in the run directory until the machine starts anew:
//! the kernel takes 50 ms of processor time to print /proc/kallsyms.
//!
//! The first line says what they hold for: this start of the machine, the modules as they are
//! loaded, the rules that they were found by. Anything else is read anew and replaces it.

use crate::run_directory;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufReader, Read};
use sys::directory::Directory;
use sys::file::{Durability, FileMode};

/// A larger file is not from this program.
const BYTES_MAX: u64 = 16 << 20;
/// For a file of several megabytes that is read once.
const BUFFER_BYTES: usize = 64 << 10;

/// What is made of the kernel's list of functions, and how it is kept.
pub trait KeptTable: Sized {
    /// The file's name; addresses of the kernel are root's to know.
    const FILE: &'static str;

    /// Reads /proc/kallsyms.
    fn find(symbols: BufReader<File>) -> Self;

    /// Whether nothing was found, as where the kernel hides addresses.
    fn is_empty(&self) -> bool;

    /// Its lines.
    fn write(&self) -> String;

    /// Reads them back; `None` for a line that was not written by [`KeptTable::write`].
    fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Self>;
}

/// What is kept of the running kernel, or was found now; `None` where it cannot be read. `rules`
/// is what it was found by.
pub fn of_kernel<T: KeptTable>(rules: &impl Hash) -> Option<T> {
    // A recorder makes it for its marks in any case.
    let directory = run_directory::own().ok();
    let place = directory.zip(validity(rules));
    let kept = place.as_ref().and_then(|(directory, valid)| read(directory, valid));
    if kept.is_some() {
        return kept;
    }
    let file = File::open("/proc/kallsyms").ok()?;
    let found = T::find(BufReader::with_capacity(BUFFER_BYTES, file));
    if let Some((directory, valid)) = place.filter(|_| !found.is_empty()) {
        // The next one looks for them itself then.
        let _ = write(&directory, &valid, &found);
    }
    Some(found)
}

/// Bytes of the running kernel that take a while to make, kept in `file` in the same way.
///
/// # Errors
/// When they are not kept and cannot be made.
pub fn bytes_of_kernel<E>(
    file: &str,
    rules: &impl Hash,
    make: impl FnOnce() -> std::result::Result<Vec<u8>, E>,
) -> std::result::Result<Vec<u8>, E> {
    let directory = run_directory::own().ok();
    let place = directory.zip(validity(rules));
    if let Some((directory, valid)) = &place
        && let Some(kept) = read_bytes(directory, file, valid)
    {
        return Ok(kept);
    }
    let made = make()?;
    if let Some((directory, valid)) = place {
        let mut bytes = format!("{valid}\n").into_bytes();
        bytes.extend_from_slice(&made);
        let (mode, durability) = (FileMode::OwnerOnly, Durability::Unsynced);
        // The next one makes them itself then.
        let _ = sys::file::replace(&directory, OsStr::new(file), &bytes, mode, durability);
    }
    Ok(made)
}

fn read_bytes(directory: &Directory, file: &str, valid: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let held = directory.open_regular(OsStr::new(file)).ok()?;
    held.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let rest = bytes.strip_prefix(valid.as_bytes())?.strip_prefix(b"\n")?;
    (!rest.is_empty()).then(|| rest.to_vec())
}

/// What the functions hold for; `None` where it cannot be known.
fn validity(rules: &impl Hash) -> Option<String> {
    let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    // A kernel without modules has no such file.
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    rules.hash(&mut hasher);
    for module in modules.lines() {
        // Name and address; in between are its users at the moment.
        let mut words = module.split_ascii_whitespace();
        (words.next(), words.nth(4)).hash(&mut hasher);
    }
    Some(format!("{} {:016x}", start.trim(), hasher.finish()))
}

/// Reads what is kept, if it holds and is whole.
fn read<T: KeptTable>(directory: &Directory, valid: &str) -> Option<T> {
    let mut text = String::new();
    let file = directory.open_regular(OsStr::new(T::FILE)).ok()?;
    file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    if lines.next()? != valid {
        return None;
    }
    T::read(lines).filter(|found| !found.is_empty())
}

/// Keeps the functions. They are not synced: they are valid only until the machine starts anew.
fn write<T: KeptTable>(directory: &Directory, valid: &str, found: &T) -> sys::Result<()> {
    let text = format!("{valid}\n{}", found.write());
    sys::file::replace(
        directory,
        OsStr::new(T::FILE),
        text.as_bytes(),
        FileMode::OwnerOnly,
        Durability::Unsynced,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    /// Numbers in order.
    #[derive(Debug, PartialEq, Eq)]
    struct Numbers(Vec<u64>);

    impl KeptTable for Numbers {
        const FILE: &'static str = "numbers";

        fn find(_: BufReader<File>) -> Self {
            Self(vec![1])
        }

        fn is_empty(&self) -> bool {
            self.0.is_empty()
        }

        fn write(&self) -> String {
            self.0.iter().map(|number| format!("{number}\n")).collect()
        }

        fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Self> {
            lines.map(|line| line.parse().ok()).collect::<Option<_>>().map(Self)
        }
    }

    #[test]
    fn what_is_kept_is_read_back_while_it_holds() {
        let directory = TempDir::new();
        let held = Directory::open_private(directory.path()).unwrap();
        assert_eq!(read::<Numbers>(&held, "now"), None);
        write(&held, "now", &Numbers(vec![4, 5])).unwrap();
        assert_eq!(read(&held, "now"), Some(Numbers(vec![4, 5])));
        assert_eq!(read::<Numbers>(&held, "later"), None);
        assert_eq!(directory.names(), [Numbers::FILE], "nothing else is left");
    }

    #[test]
    fn what_is_damaged_is_not_believed() {
        let directory = TempDir::new();
        let held = Directory::open_private(directory.path()).unwrap();
        for text in ["", "now\n", "now\n4\nfive\n"] {
            fs::write(directory.join(Numbers::FILE), text).unwrap();
            assert_eq!(read::<Numbers>(&held, "now"), None, "{text}");
        }
    }

    #[test]
    fn bytes_are_read_back_while_they_hold() {
        let directory = TempDir::new();
        let held = Directory::open_private(directory.path()).unwrap();
        fs::write(directory.join("types"), b"now\n\x00\n\xff").unwrap();
        assert_eq!(read_bytes(&held, "types", "now"), Some(b"\x00\n\xff".to_vec()));
        assert_eq!(read_bytes(&held, "types", "later"), None);
        assert_eq!(read_bytes(&held, "others", "now"), None);
    }

    #[test]
    fn it_holds_for_this_start_and_these_rules() {
        let Some(valid) = validity(&"rules") else {
            return testkit::skip("a kernel that names its start");
        };
        assert_eq!(validity(&"rules"), Some(valid.clone()));
        assert_ne!(validity(&"others"), Some(valid));
    }
}
