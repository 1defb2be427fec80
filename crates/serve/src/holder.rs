//! A process that keeps open files for the successor of another: what must not be closed when a
//! server is killed is also open here.
//!
//! Server and holder talk over a pair of sockets that keep the bounds of messages. A message is a
//! verb and a name, with the file attached: `keep NAME`, `forget NAME`, `all`. The answer to `all`
//! is one message for each file, with its name, and `.` at the end; to the others `.` alone, or `!`
//! where nothing was done. The holder does nothing else, so that nothing ends it.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use sys::descriptors::{receive, send};
use sys::{Error, Result};

/// Files that are kept at most: more would be a fault of the server.
const FILES_MAX: usize = 256;
/// A message has a verb and a short name.
const MESSAGE_BYTES: usize = 128;
const END: &[u8] = b".";
/// Instead of [`END`]: nothing was done.
const REFUSED: &[u8] = b"!";

/// What is kept.
#[derive(Debug, Default)]
pub struct Holder {
    kept: Vec<(String, OwnedFd)>,
}

impl Holder {
    /// Answers one server until it closes its end of `socket`, also by being killed.
    ///
    /// # Errors
    /// When the socket fails; a message that is not understood is refused and changes nothing.
    pub fn answer(&mut self, socket: BorrowedFd<'_>) -> Result<()> {
        let mut room = [0; MESSAGE_BYTES];
        loop {
            let (length, descriptor) = match receive(socket, &mut room) {
                Err(error) if is_closed(&error) => return Ok(()),
                received => received?,
            };
            let message = String::from_utf8_lossy(&room[..length]);
            let (verb, name) = message.split_once(' ').unwrap_or((&message, ""));
            let answered = match (verb, descriptor) {
                ("keep", Some(descriptor)) => {
                    let is_kept = self.keep(name, descriptor);
                    send(socket, if is_kept { END } else { REFUSED }, None)
                }
                ("all", _) => self.send_all(socket),
                ("forget", _) => {
                    self.kept.retain(|(kept, _)| kept != name);
                    send(socket, END, None)
                }
                // Also for a file that the kernel dropped on its way, for want of a descriptor. A
                // length of 0 is an empty message, or the end: then the answer meets a closed
                // socket.
                _ => send(socket, REFUSED, None),
            };
            match answered {
                Err(error) if is_closed(&error) => return Ok(()),
                answered => answered?,
            }
        }
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether it is kept.
    fn keep(&mut self, name: &str, descriptor: OwnedFd) -> bool {
        self.kept.retain(|(kept, _)| kept != name);
        let is_kept = is_name(name) && self.kept.len() < FILES_MAX;
        if is_kept {
            self.kept.push((name.to_owned(), descriptor));
        }
        is_kept
    }

    fn send_all(&self, socket: BorrowedFd<'_>) -> Result<()> {
        for (name, descriptor) in &self.kept {
            send(socket, name.as_bytes(), Some(descriptor.as_fd()))?;
        }
        send(socket, END, None)
    }
}

/// Whether a file may be called so: its messages are whole, and not taken for the end of an answer.
fn is_name(name: &str) -> bool {
    let is_short = name.len() < MESSAGE_BYTES - "forget ".len();
    is_short && !name.is_empty() && ![END, REFUSED].contains(&name.as_bytes())
}

/// Whether the other end is gone: reset or a broken pipe.
fn is_closed(error: &Error) -> bool {
    matches!(error.number(), Some(104 | 32))
}

/// The server's side.
#[derive(Debug)]
pub struct HolderClient<'a> {
    socket: BorrowedFd<'a>,
}

impl<'a> HolderClient<'a> {
    /// Talks to the holder at the other end of `socket`.
    #[must_use]
    pub fn new(socket: BorrowedFd<'a>) -> Self {
        Self { socket }
    }

    /// Has a copy of an open file kept, in place of one of the same name. It is kept when this
    /// returns.
    ///
    /// # Errors
    /// When the holder is gone, has no room or descriptor for it, or the name is empty or too long.
    pub fn keep(&self, name: &str, descriptor: BorrowedFd<'_>) -> Result<()> {
        send(self.socket, format!("keep {name}").as_bytes(), Some(descriptor))?;
        self.wait_for_end(drop)
    }

    /// Has the file of this name closed, if it is kept.
    ///
    /// # Errors
    /// When the holder is gone.
    pub fn forget(&self, name: &str) -> Result<()> {
        send(self.socket, format!("forget {name}").as_bytes(), None)?;
        self.wait_for_end(drop)
    }

    /// Copies of all files that are kept, with their names, in the order in which they came.
    ///
    /// # Errors
    /// When the holder is gone, or this process has no descriptor for one of them.
    pub fn take_all(&self) -> Result<Vec<(String, OwnedFd)>> {
        send(self.socket, b"all", None)?;
        let mut files = Vec::new();
        self.wait_for_end(|file| files.push(file))?;
        Ok(files)
    }

    /// Passes each file that comes to `each`, up to the end of the answer, also if one is missing.
    fn wait_for_end(&self, mut each: impl FnMut((String, OwnedFd))) -> Result<()> {
        let failed = |source| Err(Error::new("talk to the holder", source));
        let mut room = [0; MESSAGE_BYTES];
        let mut is_whole = true;
        loop {
            let (length, descriptor) = receive(self.socket, &mut room)?;
            match (&room[..length], descriptor) {
                ([], _) => return failed(ErrorKind::UnexpectedEof.into()),
                (name, Some(file)) => each((String::from_utf8_lossy(name).into_owned(), file)),
                (END, None) if is_whole => return Ok(()),
                (END, None) => return failed(io::Error::other("a file was lost on its way")),
                (REFUSED, None) => return failed(io::Error::other("it refused")),
                (_, None) => is_whole = false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use sys::descriptors::socket_pair;

    fn file(content: &str) -> File {
        let mut file = sys::shared_memory::file().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        file
    }

    /// Name and content of each.
    fn contents(files: Vec<(String, OwnedFd)>) -> Vec<(String, String)> {
        let read = |(name, descriptor): (String, OwnedFd)| {
            let (mut file, mut text) = (File::from(descriptor), String::new());
            file.rewind().unwrap();
            file.read_to_string(&mut text).unwrap();
            (name, text)
        };
        files.into_iter().map(read).collect()
    }

    #[test]
    fn a_successor_gets_what_the_first_left() {
        let mut holder = Holder::default();
        for round in 0..2 {
            let (inner, outer) = socket_pair().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| holder.answer(outer.as_fd()).unwrap());
                let client = HolderClient::new(inner.as_fd());
                if round == 0 {
                    client.keep("a", file("old").as_fd()).unwrap();
                    client.keep("b", file("two").as_fd()).unwrap();
                    client.keep("a", file("one").as_fd()).unwrap();
                    client.keep("c", file("three").as_fd()).unwrap();
                    client.forget("c").unwrap();
                    // Nonsense, nothing, and a file that was lost on its way.
                    for message in [&b"nonsense"[..], b"", b"keep b"] {
                        send(inner.as_fd(), message, None).unwrap();
                        assert!(client.wait_for_end(drop).is_err());
                    }
                }
                let found = contents(client.take_all().unwrap());
                let expected = [("b", "two"), ("a", "one")].map(|(a, b)| (a.into(), b.into()));
                assert_eq!(found, expected);
                drop(inner);
            });
        }
        assert!(!holder.is_empty());
    }

    #[test]
    fn what_is_not_kept_is_an_error() {
        let mut holder = Holder::default();
        let (inner, outer) = socket_pair().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| holder.answer(outer.as_fd()).unwrap());
            let client = HolderClient::new(inner.as_fd());
            let file = file("");
            let keep = |name: &str| client.keep(name, file.as_fd());
            for name in ["", ".", "!", "n".repeat(MESSAGE_BYTES).as_str()] {
                assert!(keep(name).is_err(), "{name}");
            }
            (0..FILES_MAX).for_each(|number| keep(&number.to_string()).unwrap());
            assert!(keep("one more").is_err());
            keep("0").unwrap();
            client.forget("1").unwrap();
            keep("one more").unwrap();
            drop(inner);
        });
        assert_eq!(holder.kept.len(), FILES_MAX);
    }

    #[test]
    fn a_file_that_is_lost_on_its_way_is_not_the_end() {
        let (inner, outer) = socket_pair().unwrap();
        for (message, descriptor) in [("a", None), ("b", Some(outer.as_fd())), (".", None)] {
            send(outer.as_fd(), message.as_bytes(), descriptor).unwrap();
        }
        let mut names = Vec::new();
        let client = HolderClient::new(inner.as_fd());
        assert!(client.wait_for_end(|(name, _)| names.push(name)).is_err());
        assert_eq!(names, ["b"]);
    }
}
