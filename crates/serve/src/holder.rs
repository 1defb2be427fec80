//! A process that keeps open files for the successor of another: what must not be closed when a
//! server is killed is also open here.
//!
//! Server and holder talk over a pair of sockets that keep the bounds of messages. A message is a
//! verb and a name, with the file attached: `keep NAME`, `forget NAME`, `all`. The answer to `all`
//! is one message for each file, with its name, and `.` at the end; to the others `.` alone. The
//! holder does nothing else, so that nothing ends it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use sys::descriptors::{receive, send};
use sys::{Error, Result};

/// Files that are kept at most: more would be a fault of the server.
const FILES_MAX: usize = 256;
/// A message has a verb and a short name.
const MESSAGE_BYTES: usize = 128;
const END: &[u8] = b".";

/// What is kept.
#[derive(Debug, Default)]
pub struct Holder {
    kept: Vec<(String, OwnedFd)>,
}

impl Holder {
    /// Answers one server until it closes its end of `socket`, also by being killed.
    ///
    /// # Errors
    /// When the socket fails; a message that is not understood is answered and changes nothing.
    pub fn answer(&mut self, socket: BorrowedFd<'_>) -> Result<()> {
        let mut room = [0; MESSAGE_BYTES];
        loop {
            let (length, descriptor) = match receive(socket, &mut room) {
                Ok((0, _)) => return Ok(()),
                Err(error) if is_closed(&error) => return Ok(()),
                received => received?,
            };
            let message = String::from_utf8_lossy(&room[..length]);
            let (verb, name) = message.split_once(' ').unwrap_or((&message, ""));
            let answered = match (verb, descriptor) {
                ("keep", Some(descriptor)) => {
                    self.keep(name, descriptor);
                    send(socket, END, None)
                }
                ("all", _) => self.send_all(socket),
                ("forget", _) => {
                    self.kept.retain(|(kept, _)| kept != name);
                    send(socket, END, None)
                }
                _ => send(socket, END, None),
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

    fn keep(&mut self, name: &str, descriptor: OwnedFd) {
        self.kept.retain(|(kept, _)| kept != name);
        if self.kept.len() < FILES_MAX {
            self.kept.push((name.to_owned(), descriptor));
        }
    }

    fn send_all(&self, socket: BorrowedFd<'_>) -> Result<()> {
        for (name, descriptor) in &self.kept {
            send(socket, name.as_bytes(), Some(descriptor.as_fd()))?;
        }
        send(socket, END, None)
    }
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
    /// When the holder is gone.
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
    /// When the holder is gone.
    pub fn take_all(&self) -> Result<Vec<(String, OwnedFd)>> {
        send(self.socket, b"all", None)?;
        let mut files = Vec::new();
        self.wait_for_end(|file| files.push(file))?;
        Ok(files)
    }

    /// Passes each file that comes to `each`, up to the end of the answer.
    fn wait_for_end(&self, mut each: impl FnMut((String, OwnedFd))) -> Result<()> {
        let mut room = [0; MESSAGE_BYTES];
        loop {
            let (length, descriptor) = receive(self.socket, &mut room)?;
            match (&room[..length], descriptor) {
                ([], _) => {
                    let gone = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                    return Err(Error::new("talk to the holder", gone));
                }
                (name, Some(file)) => each((String::from_utf8_lossy(name).into_owned(), file)),
                (_, None) => return Ok(()),
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
                    send(inner.as_fd(), b"nonsense", None).unwrap();
                    client.wait_for_end(drop).unwrap();
                }
                let found = contents(client.take_all().unwrap());
                let expected = [("b", "two"), ("a", "one")].map(|(a, b)| (a.into(), b.into()));
                assert_eq!(found, expected);
                drop(inner);
            });
        }
        assert!(!holder.is_empty());
    }
}
