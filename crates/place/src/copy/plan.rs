//! What was typed, resolved as `cp -a` does: which entries are copied, into which directory, under
//! which names. Refuses what makes no sense before anything is touched.

use super::{CopyRequest, staging};
use crate::{Error, ErrorKind, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use sys::directory::Directory;
use sys::file_stat::{FileStat, InodeKind};

/// What will be copied where.
#[derive(Debug)]
pub struct CopyPlan {
    pub(super) items: Vec<CopyItem>,
    /// The directory that exists and gets the copies.
    pub(super) into: Directory,
}

/// One entry that was named as a source.
#[derive(Debug)]
pub(super) struct CopyItem {
    /// The directory that holds it; it itself for one without a name, like `.`.
    pub(super) parent: Directory,
    /// Its name there.
    pub(super) name: Option<OsString>,
    pub(super) stat: FileStat,
    /// The name of its copy; `None` if its entries become entries of the target (`SRC/.`).
    pub(super) target_name: Option<OsString>,
    pub(super) path: PathBuf,
    /// Its absolute path, without links on the way. Numbers of devices and inodes change when a
    /// disk is plugged in again, and for some file systems with each mount.
    pub(super) real_path: PathBuf,
}

impl CopyPlan {
    /// The directory that gets the copies.
    #[must_use]
    pub fn into_path(&self) -> &Path {
        self.into.path()
    }

    /// The copies' names, for messages.
    #[must_use]
    pub fn target_paths(&self) -> Vec<PathBuf> {
        let path = |item: &CopyItem| match &item.target_name {
            Some(name) => self.into.path().join(name),
            None => self.into.path().to_owned(),
        };
        self.items.iter().map(path).collect()
    }
}

/// Resolves what is to be copied.
///
/// # Errors
/// `Usage` where it makes no sense: nothing there, a target inside of its source, one file under
/// two names, two sources of one name.
pub fn plan(request: &CopyRequest) -> Result<CopyPlan> {
    let mut items =
        request.sources.iter().map(|source| item(source)).collect::<Result<Vec<_>>>()?;
    let target = &request.target;
    let found = match std::fs::metadata(target) {
        Ok(about) => Some(about.is_dir()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(usage("use", sys::plain_reason(&error), target)),
    };
    let into = if found == Some(true) && !is_placed_copy(target, &items) {
        for item in &mut items {
            if item.target_name.is_none() && !ends_with_dot(&item.path) {
                item.target_name = real_name(&item.path);
            }
        }
        Directory::open(target).map_err(|error| failed("open the directory", &error))?
    } else {
        into_new(target, &mut items, found == Some(false))?
    };
    check(&items, &into, target)?;
    Ok(CopyPlan { items, into })
}

/// Whether the target is the copy itself, of an earlier run that ended when it had its name: the
/// same command goes on then, and copies nothing into it.
fn is_placed_copy(target: &Path, items: &[CopyItem]) -> bool {
    let ([only], Some(name)) = (items, target.file_name()) else { return false };
    only.stat.kind == InodeKind::Directory
        && Directory::open(parent_of(target))
            .is_ok_and(|parent| staging::was_placed(&parent, &only.real_path, name))
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The directory of a target that is no directory yet: the only source gets the target's name.
fn into_new(target: &Path, items: &mut [CopyItem], exists: bool) -> Result<Directory> {
    let [only] = items else {
        let why = "it is not a directory, and there are several sources";
        return Err(usage("copy to", why.to_owned(), target));
    };
    if exists && only.stat.kind == InodeKind::Directory {
        return Err(usage("copy a directory to", "it is not a directory".to_owned(), target));
    }
    let ends_with_slash = target.as_os_str().as_bytes().ends_with(b"/");
    if ends_with_slash && only.stat.kind != InodeKind::Directory {
        return Err(usage("copy to", "there is no such directory".to_owned(), target));
    }
    let Some(name) = target.file_name() else {
        return Err(usage("copy to", "it has no name".to_owned(), target));
    };
    only.target_name = Some(name.to_owned());
    Directory::open(parent_of(target)).map_err(|error| usage("copy to", error.to_string(), target))
}

/// A source, found.
fn item(source: &Path) -> Result<CopyItem> {
    let absent = |error: sys::Error| {
        let failed = error.kind == sys::ErrorKind::Device;
        let kind = if failed { ErrorKind::Failed } else { ErrorKind::Usage };
        Error::new(kind, "copy", sys::plain_reason(&error.source)).at(source)
    };
    let text = source.as_os_str().as_bytes();
    // A link with a slash behind it stands for its target.
    let is_itself = text.ends_with(b"/") || ends_with_dot(source);
    let last = source.components().next_back();
    let named = match last {
        Some(Component::Normal(name)) if !is_itself => Some(name.to_owned()),
        _ => None,
    };
    let Some(name) = named else {
        let parent = Directory::open(source).map_err(absent)?;
        let stat = FileStat::of(parent.file()).map_err(absent)?;
        let target_name = if ends_with_dot(source) { None } else { real_name(source) };
        let path = source.to_owned();
        let real_path = real_path_of(parent.path());
        return Ok(CopyItem { parent, name: None, stat, target_name, path, real_path });
    };
    let parent = Directory::open(parent_of(source)).map_err(absent)?;
    let stat = parent.stat(&name).map_err(absent)?;
    let target_name = Some(name.clone());
    let (path, real_path) = (source.to_owned(), real_path_of(parent.path()).join(&name));
    Ok(CopyItem { parent, name: Some(name), stat, target_name, path, real_path })
}

/// The absolute path of a directory; as it is if it cannot be found again.
fn real_path_of(directory: &Path) -> PathBuf {
    directory.canonicalize().unwrap_or_else(|_| directory.to_owned())
}

/// Whether the entries of the directory are meant, and not the directory.
fn ends_with_dot(path: &Path) -> bool {
    let text = path.as_os_str().as_bytes();
    text == b"." || text.ends_with(b"/.") || text == b"./"
}

/// What a directory without a plain name (`..`, `/`) is called.
fn real_name(path: &Path) -> Option<OsString> {
    path.canonicalize().ok()?.file_name().map(OsStr::to_owned)
}

fn check(items: &[CopyItem], into: &Directory, target: &Path) -> Result<()> {
    for (at, item) in items.iter().enumerate() {
        let same = |other: &&CopyItem| {
            other.target_name.is_some() && other.target_name == item.target_name
        };
        if let Some(other) = items[..at].iter().find(same) {
            let why = format!("{} gets the same name", other.path.display());
            return Err(usage("copy", why, &item.path));
        }
        let existing = match &item.target_name {
            Some(name) => into.stat(name).ok(),
            None => FileStat::of(into.file()).ok(),
        };
        if existing.is_some_and(|existing| existing.is_same_inode(&item.stat)) {
            return Err(usage(
                "copy",
                "source and target are the same file".to_owned(),
                &item.path,
            ));
        }
        if item.stat.kind == InodeKind::Directory && is_inside(into, &item.stat)? {
            let why = format!("the target {} is inside of it", target.display());
            return Err(usage("copy", why, &item.path));
        }
    }
    Ok(())
}

/// Whether `directory` is the inode `above` or below it.
fn is_inside(directory: &Directory, above: &FileStat) -> Result<bool> {
    let unknown = |error: std::io::Error| usage("use", sys::plain_reason(&error), directory.path());
    let path = directory.path().canonicalize().map_err(unknown)?;
    for ancestor in path.ancestors() {
        let Ok(about) = std::fs::metadata(ancestor) else { continue };
        use std::os::unix::fs::MetadataExt;
        if (about.dev(), about.ino()) == (above.device, above.inode) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn usage(operation: &'static str, why: String, path: &Path) -> Error {
    Error::new(ErrorKind::Usage, operation, why).at(path)
}

fn failed(operation: &'static str, error: &sys::Error) -> Error {
    Error::new(ErrorKind::Impossible, operation, error.to_string())
}
