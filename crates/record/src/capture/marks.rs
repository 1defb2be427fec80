//! Marks: texts that a user or a script puts into the recordings that run now.
//!
//! Each recorder receives on a datagram socket in the user's run directory, and a mark is sent to
//! all of them. Only the user can write to that directory, so no other user can send marks. A
//! socket whose recorder was killed is removed by the next sender.

use crate::run_directory;
use crate::{Error, ErrorKind, Result};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use sys::directory::Directory;

/// The longest text of a mark: one datagram, and more than a chart shows.
pub const MAX_MARK_BYTES: usize = 4096;
/// The most recorders that one mark is sent to: more than that is a directory gone wrong.
const MAX_RECORDERS: usize = 1024;
/// Marks taken in one go, so that a flood of them cannot hold up the samples.
const MAX_AT_ONCE: usize = 64;

/// How often a mark is sent again to a recorder whose queue is full. The recorder empties it at
/// once unless it, or its machine, is stopped.
const FULL_TRIES: u32 = 40;
/// Between two tries.
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// Distinguishes the recorders of one process.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The socket on which a recorder receives marks; removed on drop.
#[derive(Debug)]
pub(super) struct MarkSocket {
    socket: UnixDatagram,
    directory: Directory,
    name: OsString,
    buffer: Vec<u8>,
}

impl MarkSocket {
    /// Listens in the run directory of this user.
    pub fn open() -> Result<Self> {
        Self::open_in(run_directory::own()?)
    }

    fn open_in(directory: Directory) -> Result<Self> {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!("rec-{}-{number}.sock", std::process::id()));
        // One of this name is left over from a process that had our number before.
        let _ = directory.remove(&name);
        // By its path, which no other user can exchange: the directory is private.
        let path = directory.path().join(&name);
        let fault = |error| Error::io("listen for marks at", &path, error);
        let socket = UnixDatagram::bind(&path).map_err(fault)?;
        socket.set_nonblocking(true).map_err(fault)?;
        Ok(Self { socket, buffer: vec![0; MAX_MARK_BYTES], directory, name })
    }

    /// What to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes what has arrived, as far as a limit.
    pub fn take(&mut self, mut each: impl FnMut(String)) {
        for _ in 0..MAX_AT_ONCE {
            match self.socket.recv(&mut self.buffer) {
                Ok(bytes) => each(String::from_utf8_lossy(&self.buffer[..bytes]).into_owned()),
                Err(_) => return,
            }
        }
    }
}

impl Drop for MarkSocket {
    fn drop(&mut self) {
        // It may be gone already: /run was cleaned.
        let _ = self.directory.remove(&self.name);
    }
}

/// Puts a mark into every recording of this user that runs now; returns how many there were.
///
/// # Errors
/// [`ErrorKind::Usage`] for a text that is empty or longer than [`MAX_MARK_BYTES`]; when a recorder
/// could not be reached.
pub fn mark(text: &str) -> Result<usize> {
    must_be_a_mark(text)?;
    let directory = run_directory::existing()?;
    directory.map_or(Ok(0), |directory| send_in(&directory, text))
}

fn must_be_a_mark(text: &str) -> Result<()> {
    if text.trim().is_empty() || text.len() > MAX_MARK_BYTES {
        let why = format!("its text must have 1 to {MAX_MARK_BYTES} bytes");
        return Err(Error::new(ErrorKind::Usage, "set a mark", why));
    }
    Ok(())
}

fn send_in(directory: &Directory, text: &str) -> Result<usize> {
    let names = directory.names()?;
    let socket = UnixDatagram::unbound()
        .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
        .map_err(|error| Error::io("set a mark in", directory.path(), error))?;
    let sockets = names.iter().filter(|name| is_mark_socket(directory, name));
    let (mut reached, mut fault) = (0, None);
    for name in sockets.take(MAX_RECORDERS) {
        match send_to(&socket, directory, name, text) {
            Ok(is_alive) => reached += usize::from(is_alive),
            // The other recorders still get the mark.
            Err(error) => fault = Some(error),
        }
    }
    match fault {
        None => Ok(reached),
        Some(error) => Err(error),
    }
}

/// The sockets in `directory` that no recorder listens on any more; with `remove`, those that
/// could be removed.
pub(super) fn of_the_dead(directory: &Directory, remove: bool) -> Vec<PathBuf> {
    let names = directory.names().unwrap_or_default().into_iter();
    let dead = names
        .filter(|name| is_mark_socket(directory, name) && is_dead(&directory.path().join(name)));
    let found = dead.filter(|name| !remove || directory.remove(name).is_ok());
    found.map(|name| directory.path().join(name)).collect()
}

/// Whether no recorder listens: a socket that is bound never refuses.
fn is_dead(path: &Path) -> bool {
    let socket = UnixDatagram::unbound();
    let connected = socket.and_then(|socket| socket.connect(path));
    connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// As much of a text as a mark holds.
pub(super) fn clipped(text: &str) -> &str {
    let mut end = text.len().min(MAX_MARK_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Whether it is a socket with a name that [`MarkSocket`] gives.
fn is_mark_socket(directory: &Directory, name: &OsStr) -> bool {
    let found = directory.metadata(name);
    if !found.is_ok_and(|found| found.file_type().is_socket()) {
        return false;
    }
    let name = name.to_str();
    let middle = name.and_then(|name| name.strip_prefix("rec-")?.strip_suffix(".sock"));
    middle.is_some_and(|middle| {
        let mut digits = middle.bytes().filter(|byte| *byte != b'-');
        digits.all(|byte| byte.is_ascii_digit())
    })
}

/// Sends to one recorder; false if its process is gone.
fn send_to(socket: &UnixDatagram, directory: &Directory, name: &OsStr, text: &str) -> Result<bool> {
    let path = &directory.path().join(name);
    let mut sent = socket.send_to(text.as_bytes(), path);
    for _ in 0..FULL_TRIES {
        if !matches!(&sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            break;
        }
        std::thread::sleep(FULL_PAUSE);
        sent = socket.send_to(text.as_bytes(), path);
    }
    match sent {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // Its owner was killed: a socket that is bound never refuses.
            let _ = directory.remove(name);
            Ok(false)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("tell the recorder at", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    fn held(directory: &TempDir) -> Directory {
        Directory::open_private(directory.path()).unwrap()
    }

    fn taken(socket: &mut MarkSocket) -> Vec<String> {
        let mut texts = Vec::new();
        socket.take(|text| texts.push(text));
        texts
    }

    #[test]
    fn every_recorder_hears_it_once() {
        let directory = TempDir::new();
        let mut sockets = [0, 1].map(|_| MarkSocket::open_in(held(&directory)).unwrap());
        assert_eq!(send_in(&held(&directory), "phase two").unwrap(), 2);
        for socket in &mut sockets {
            assert_eq!(taken(socket), ["phase two"]);
            assert!(taken(socket).is_empty());
        }
        drop(sockets);
        assert!(directory.names().is_empty());
        assert_eq!(send_in(&held(&directory), "no one listens").unwrap(), 0);
    }

    #[test]
    fn what_the_dead_left_is_removed_and_other_files_are_not() {
        let directory = TempDir::new();
        let dead = directory.join("rec-7-0.sock");
        drop(UnixDatagram::bind(&dead).unwrap());
        std::fs::write(directory.join("rec-8-0.sock"), "no socket").unwrap();
        assert_eq!(send_in(&held(&directory), "hello").unwrap(), 0);
        assert_eq!(directory.names(), ["rec-8-0.sock"]);
    }

    #[test]
    fn sockets_of_the_dead_are_named_and_removed_and_others_stay() {
        let directory = TempDir::new();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(directory.path(), mode).unwrap();
        let (dead, alive) = ("rec-7-0.sock", MarkSocket::open_in(held(&directory)).unwrap());
        drop(UnixDatagram::bind(directory.join(dead)).unwrap());
        std::fs::write(directory.join("rec-8-0.sock"), "no socket").unwrap();
        for remove in [false, true] {
            let found = of_the_dead(&held(&directory), remove);
            assert_eq!(found, [directory.join(dead)]);
        }
        assert!(of_the_dead(&held(&directory), true).is_empty());
        assert_eq!(directory.names().len(), 2);
        drop(alive);
    }

    #[test]
    fn a_text_has_its_limits() {
        let directory = TempDir::new();
        let mut socket = MarkSocket::open_in(held(&directory)).unwrap();
        let longest = "x".repeat(MAX_MARK_BYTES);
        assert_eq!(send_in(&held(&directory), &longest).unwrap(), 1);
        assert_eq!(taken(&mut socket), [longest.as_str()]);
        for text in ["", "  ", &format!("{longest}y")] {
            assert_eq!(must_be_a_mark(text).unwrap_err().kind, ErrorKind::Usage);
        }
    }

    #[test]
    fn a_text_is_cut_between_letters() {
        let long = "ü".repeat(MAX_MARK_BYTES);
        assert_eq!(clipped(&long).len(), MAX_MARK_BYTES);
        let odd = format!("x{long}");
        assert_eq!(clipped(&odd).len(), MAX_MARK_BYTES - 1);
        assert_eq!(clipped("short"), "short");
    }
}
