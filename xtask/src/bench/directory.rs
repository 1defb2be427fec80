//! The directory that a suite makes for its files, and removes with all that is in it.
//!
//! It goes also after an error; only a killed bench leaves it, and the next one says so.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The directory; removed on drop.
#[derive(Debug)]
pub(super) struct WorkDirectory {
    path: PathBuf,
    /// Its path, as text for command lines.
    name: String,
}

impl WorkDirectory {
    /// Makes `terrace-bench-NAME` in `parent`.
    ///
    /// # Errors
    /// [`Error::Failed`] if it is there already, [`Error::Usage`] for a path that is not UTF-8.
    pub(super) fn make(parent: &Path, name: &str) -> Result<Self, Error> {
        let path = parent.join(format!("terrace-bench-{name}"));
        let Some(name) = path.to_str().map(str::to_owned) else {
            return Err(Error::Usage("the path of the directory must be UTF-8".to_owned()));
        };
        fs::create_dir(&path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::Failed(format!(
                "{name} is there: another bench runs, or one was killed; remove it if none runs"
            )),
            _ => Error::io("create", &path)(error),
        })?;
        Ok(Self { path, name })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its path as text.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The path of something in it, as text.
    pub(super) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.name)
    }

    /// Writes a file in it; its path as text.
    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<String, Error> {
        let file = self.file(name);
        fs::write(&file, text).map_err(Error::io("write", Path::new(&file)))?;
        Ok(file)
    }

    /// `args` with the names that replace this place in a record, which is read on other machines.
    pub(super) fn anonymous<'a>(&self, args: &[&'a str]) -> Vec<&'a str> {
        let is_here = |arg: &str| arg.contains(&self.name);
        args.iter()
            .map(|arg| match *arg {
                arg if arg.starts_with("--filename=") && is_here(arg) => "--filename=FILE",
                arg if arg == self.name => "DIR",
                arg if is_here(arg) => "FILE",
                arg => arg,
            })
            .collect()
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        // Nothing is left to do about a file system that refuses.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_removed_and_a_foreign_one_is_not_taken() {
        let parent = testkit::TempDir::new();
        let directory = WorkDirectory::make(parent.path(), "x").unwrap();
        directory.write("a", "b").unwrap();
        let error = WorkDirectory::make(parent.path(), "x").map(drop).unwrap_err();
        assert!(error.to_string().contains("remove it if none runs"), "{error}");
        drop(directory);
        assert!(parent.names().is_empty());
    }

    #[test]
    fn records_name_no_path_of_this_machine() {
        let parent = testkit::TempDir::new();
        let directory = WorkDirectory::make(parent.path(), "x").unwrap();
        let (file, filename) = (directory.file("a"), format!("--filename={}", directory.file("a")));
        let args = ["measure", "iolat", &file, "-D", directory.name(), &filename];
        let expected = ["measure", "iolat", "FILE", "-D", "DIR", "--filename=FILE"];
        assert_eq!(directory.anonymous(&args), expected);
    }
}
