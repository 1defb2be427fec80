//! Opens the browser of this session, if there is one.
//!
//! Every user of the machine can read command lines. So the browser opens a file that only this
//! user may read, and that file leads to the page. It is removed once the page was fetched or its
//! server ends; the next server removes the file of a killed one. Root's browser is never opened:
//! the display that root finds usually belongs to another user.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use sys::directory::Directory;
use sys::lock::{self, LockMode};

/// What leads to a screen.
const SCREENS: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

/// Around the number of the process in the name of the file. It begins with no dot: browsers in a
/// sandbox see no hidden files.
const PREFIX: &str = "view-";
const SUFFIX: &str = ".html";

/// Only its owner may read it.
const MODE: u32 = 0o600;

/// The file that leads the browser to a page; removed when dropped.
#[derive(Debug)]
pub struct Signpost {
    directory: Directory,
    name: String,
    /// Locked while the server lives, however it ends.
    _locked: File,
}

/// Opens the browser at `address`. `None` without a display, as root, or without a directory that
/// only this user can change.
pub fn open(address: &str) -> Option<Signpost> {
    let has_screen =
        SCREENS.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if !has_screen || sys::process::effective_uid() == 0 {
        return None;
    }
    let directory = record::run_directory::own().ok()?;
    remove_stale(&directory);
    let signpost = Signpost::create(directory, address).ok()?;
    let url = file_url(&signpost.directory.path().join(&signpost.name));
    // In a group of its own, so that Ctrl-C ends the server and not the browser. Whether it
    // worked is not asked.
    let started = Command::new("xdg-open")
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    started.is_ok().then_some(signpost)
}

impl Signpost {
    fn create(directory: Directory, address: &str) -> crate::error::Result<Self> {
        let name = format!("{PREFIX}{}{SUFFIX}", std::process::id());
        let file = directory.create_new(OsStr::new(&name), MODE)?;
        let signpost = Self { directory, name, _locked: file };
        let file = &signpost._locked;
        lock::try_take(file, LockMode::Exclusive)?;
        let written = (&*file).write_all(html(address).as_bytes());
        written.map_err(|error| sys::Error::new("write", error))?;
        Ok(signpost)
    }
}

impl Drop for Signpost {
    fn drop(&mut self) {
        // If it is gone already, that was the aim.
        let _ = self.directory.remove(OsStr::new(&self.name));
    }
}

/// Removes the files of servers that were killed: those that are not locked.
fn remove_stale(directory: &Directory) {
    let names = directory.names().unwrap_or_default();
    for name in names.iter().filter(|name| is_ours(name)) {
        let file = directory.open_own(name);
        let is_stale =
            file.is_ok_and(|file| lock::try_take(&file, LockMode::Exclusive).is_ok_and(|it| it));
        if is_stale {
            let _ = directory.remove(name);
        }
    }
}

/// Whether a file has a name that [`Signpost::create`] gives.
fn is_ours(name: &OsStr) -> bool {
    let name = name.to_str().unwrap_or_default();
    let number = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit()))
}

/// A page that goes to `address`, which is made of this program's own letters.
fn html(address: &str) -> String {
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\">\n<title>terrace view</title>\n\
         <p><a href=\"{address}\">Open the page</a></p>\n"
    )
}

/// `path` as the address of a file.
fn file_url(path: &std::path::Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let letter = |byte: &u8| match byte {
        b'/' | b'.' | b'-' | b'_' => char::from(*byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let path: String = path.as_os_str().as_bytes().iter().map(letter).collect();
    format!("file://{path}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use testkit::TempDir;

    fn directory(folder: &TempDir) -> Directory {
        Directory::create_private(&folder.join("terrace")).unwrap()
    }

    #[test]
    fn the_file_is_its_owner_s_alone_and_goes_with_its_server() {
        let folder = TempDir::new();
        let signpost = Signpost::create(directory(&folder), "http://127.0.0.1:1/ab/").unwrap();
        let path = folder.join("terrace").join(&signpost.name);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("content=\"0; url=http://127.0.0.1:1/ab/\""), "{text}");
        // A second server leaves the file of one that lives.
        remove_stale(&directory(&folder));
        assert!(path.exists());
        drop(signpost);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_server_left_is_removed_and_nothing_else() {
        let folder = TempDir::new();
        let directory = directory(&folder);
        let others = ["view-.html", "view-1x.html", "view-1.html.bak", "1.html"];
        for name in others.iter().chain(&["view-17.html"]) {
            directory.create_new(OsStr::new(name), MODE).unwrap();
        }
        remove_stale(&directory);
        let mut expected: Vec<&OsStr> = others.iter().map(OsStr::new).collect();
        expected.sort();
        assert_eq!(directory.names().unwrap(), expected);
    }

    #[test]
    fn a_path_with_any_bytes_is_an_address() {
        let path = std::path::Path::new("/run/user/7/a b%\"<é");
        assert_eq!(file_url(path), "file:///run/user/7/a%20b%25%22%3C%C3%A9");
    }
}
