//! Removes everything below a directory, of any depth, by few descriptors. Only for directories
//! that this user alone can change: what has a name there is what was made there.

use super::{MOST_OPEN_DIRECTORIES, TreeWalk, WalkEvent, WalkLimits};
use std::ffi::OsStr;
use sys::attributes;
use sys::directory::{Directory, DirectoryStack};
use sys::file_stat::InodeKind;

/// What an owner needs to list a directory and to remove what is in it.
const OWNER_ALL: u32 = 0o700;

/// Removes everything below `top`, and not `top` itself.
///
/// # Errors
/// Where something cannot be removed; what was removed until then is gone.
pub(crate) fn remove_below(top: &Directory) -> sys::Result<()> {
    let mut walk = TreeWalk::below(top.reopen()?, WalkLimits::default())?;
    // The walk comes back to a directory through the one that is being removed, so it is not asked
    // for the directory above.
    let mut above = DirectoryStack::new(top.reopen()?, MOST_OPEN_DIRECTORIES);
    while let Some(event) = walk.next() {
        match event {
            WalkEvent::Entry(entry) if entry.stat.kind == InodeKind::Directory => {
                if entry.stat.mode & OWNER_ALL != OWNER_ALL {
                    // As it is opened next, its own error says what is wrong.
                    let _ = attributes::set_mode(&entry.directory.hold(entry.name)?, OWNER_ALL);
                }
            }
            WalkEvent::Entry(entry) | WalkEvent::OtherFileSystem(entry) => {
                entry.directory.remove(entry.name)?;
            }
            WalkEvent::Enter(directory) if directory.depth > 0 => {
                above.enter(name_of(directory.directory))?;
            }
            WalkEvent::Leave(directory) if directory.depth > 0 => {
                let name = name_of(directory.directory).to_owned();
                above.leave()?;
                above.current()?.remove_directory(&name)?;
            }
            WalkEvent::Enter(_) | WalkEvent::Leave(_) => {}
            WalkEvent::Refused(path, error) => return Err(error.at(path)),
        }
    }
    Ok(())
}

fn name_of(directory: Option<&Directory>) -> &OsStr {
    directory.and_then(|held| held.path().file_name()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use testkit::TempDir;

    #[test]
    fn everything_below_goes_and_what_links_lead_to_stays() {
        let (parent, outside) = (TempDir::new(), TempDir::new());
        std::fs::write(outside.join("kept"), "x").unwrap();
        std::fs::create_dir_all(parent.join("top/a/b")).unwrap();
        std::fs::create_dir_all(parent.join("top/closed/c")).unwrap();
        std::os::unix::fs::symlink(outside.path(), parent.join("top/a/link")).unwrap();
        for at in 0..2000 {
            std::fs::write(parent.join(format!("top/a/{at}")), "").unwrap();
        }
        for (name, mode) in [("top/closed", 0o000), ("top/a", 0o555)] {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(parent.join(name), mode).unwrap();
        }
        let mut deep = Directory::open(&parent.join("top")).unwrap();
        for _ in 0..600 {
            deep = deep.create_subdirectory(OsStr::new("a-rather-long-name"), 0o700).unwrap();
            deep.create_new(OsStr::new("file"), 0o600).unwrap();
        }
        let top = Directory::open(&parent.join("top")).unwrap();
        remove_below(&top).unwrap();
        assert_eq!(top.names().unwrap().len(), 0);
        assert!(outside.join("kept").exists());
    }
}
