//! The status socket of a resident command: one line of JSON for each connection, then its end.
//!
//! The socket is in the run directory of this user, which no other user can enter. The loop that
//! does the work answers, so an answer also shows that the loop turns. Clients of one turn are
//! limited, and one that does not read gets nothing: an answer never waits.

use crate::error::Result;
use machine::Root;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use sys::directory::Directory;

/// Connections that one turn answers: a flood of them must not delay the work.
const MAX_AT_ONCE: usize = 8;

/// What a connection gets, `terrace.status/1`.
#[derive(Debug, Serialize)]
pub struct Status<'a> {
    schema: &'static str,
    pid: u32,
    command: &'a str,
    /// What it works on: a file or a directory.
    target: &'a str,
    /// Seconds since it was ready.
    ready_s: u64,
    /// The last line that it sent to the service manager.
    text: &'a str,
    cost: Cost,
}

/// What the process itself has used since its start; absent where the kernel does not say.
#[derive(Debug, Serialize)]
struct Cost {
    cpu_ms: Option<u64>,
    max_resident_bytes: Option<u64>,
    written_bytes: Option<u64>,
}

impl<'a> Status<'a> {
    /// The status of this process now.
    pub fn now(command: &'a str, target: &'a str, ready_s: u64, text: &'a str) -> Self {
        let usage = sys::usage::process().ok();
        Self {
            schema: "terrace.status/1",
            pid: std::process::id(),
            command,
            target,
            ready_s,
            text,
            cost: Cost {
                cpu_ms: usage.map(|usage| usage.cpu_ns() / 1_000_000),
                max_resident_bytes: usage.map(|usage| usage.max_rss_bytes),
                written_bytes: machine::process_io::read(&Root::system()).map(|io| io.write_bytes),
            },
        }
    }
}

/// A listening socket, removed on drop.
#[derive(Debug)]
pub struct StatusSocket {
    listener: UnixListener,
    directory: Directory,
    name: OsString,
}

impl StatusSocket {
    /// Listens in the run directory of this user, where sockets of killed processes are removed.
    ///
    /// # Errors
    /// If that directory is not this user's alone, or the socket cannot be made.
    pub fn open() -> Result<Self> {
        Ok(Self::open_in(record::run_directory::own()?)?)
    }

    fn open_in(directory: Directory) -> record::Result<Self> {
        dead_sockets(&directory, true);
        let name = OsString::from(format!("status-{}.sock", std::process::id()));
        // Left by a process that had this number before.
        let _ = directory.remove(&name);
        // By its path, which no other user can exchange: the directory is private.
        let path = directory.path().join(&name);
        let fault = |error| record::Error::io("listen at", &path, error);
        let listener = UnixListener::bind(&path).map_err(fault)?;
        listener.set_nonblocking(true).map_err(fault)?;
        Ok(Self { listener, directory, name })
    }

    /// Answers the clients that have connected; never waits.
    pub fn answer(&self, status: impl FnOnce() -> Vec<u8>) {
        let clients: Vec<UnixStream> =
            std::iter::from_fn(|| Some(self.listener.accept().ok()?.0)).take(MAX_AT_ONCE).collect();
        if clients.is_empty() {
            return;
        }
        let line = status();
        for mut client in clients {
            // The line fits into the socket's buffer; a client that has gone does not need it.
            let _ = client.set_nonblocking(true).and_then(|()| client.write_all(&line));
        }
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        // It may be gone already: /run was cleaned.
        let _ = self.directory.remove(&self.name);
    }
}

/// The status sockets of this user on which no process listens; with `remove`, those that could
/// be removed.
pub fn leftovers(remove: bool) -> Vec<PathBuf> {
    let directory = record::run_directory::existing().ok().flatten();
    directory.map_or_else(Vec::new, |directory| dead_sockets(&directory, remove))
}

fn dead_sockets(directory: &Directory, remove: bool) -> Vec<PathBuf> {
    let names = directory.names().unwrap_or_default();
    names
        .into_iter()
        .filter(|name| name.to_str().is_some_and(is_status_name) && is_dead(directory, name))
        .filter(|name| !remove || directory.remove(name).is_ok())
        .map(|name| directory.path().join(name))
        .collect()
}

/// Whether it is a socket on which no process listens.
fn is_dead(directory: &Directory, name: &OsStr) -> bool {
    let found = directory.metadata(name);
    found.is_ok_and(|found| found.file_type().is_socket())
        && UnixStream::connect(directory.path().join(name))
            .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

fn is_status_name(name: &str) -> bool {
    name.strip_prefix("status-")
        .and_then(|rest| rest.strip_suffix(".sock"))
        .is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use testkit::TempDir;

    fn private(directory: &TempDir) -> Directory {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(directory.path(), mode).unwrap();
        Directory::open_private(directory.path()).unwrap()
    }

    fn line() -> Vec<u8> {
        let mut line = serde_json::to_vec(&Status::now("record", "/ring", 3, "records")).unwrap();
        line.push(b'\n');
        line
    }

    #[test]
    fn every_client_gets_one_line_and_the_end() {
        let directory = TempDir::new();
        let socket = StatusSocket::open_in(private(&directory)).unwrap();
        let path = directory.join(&socket.name);
        let clients = [0, 1].map(|_| UnixStream::connect(&path).unwrap());
        socket.answer(line);
        for mut client in clients {
            let mut text = String::new();
            client.read_to_string(&mut text).unwrap();
            let status: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
            assert_eq!(status["schema"], "terrace.status/1");
            assert_eq!(status["target"], "/ring");
            assert!(status["cost"]["max_resident_bytes"].as_u64() > Some(1 << 20));
        }
        drop(socket);
        assert!(directory.names().is_empty());
    }

    #[test]
    fn a_flood_of_clients_is_answered_in_turns() {
        let directory = TempDir::new();
        let socket = StatusSocket::open_in(private(&directory)).unwrap();
        let path = directory.join(&socket.name);
        let clients: Vec<_> =
            (0..MAX_AT_ONCE + 1).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let mut calls = 0;
        for _ in 0..3 {
            socket.answer(|| {
                calls += 1;
                line()
            });
        }
        assert_eq!(calls, 2, "two turns for {} clients, none for none", clients.len());
    }

    #[test]
    fn sockets_of_killed_processes_are_removed_and_other_files_are_not() {
        let directory = TempDir::new();
        let held = private(&directory);
        drop(UnixListener::bind(directory.join("status-7.sock")).unwrap());
        std::fs::write(directory.join("status-8.sock"), "not a socket").unwrap();
        drop(UnixListener::bind(directory.join("status-x.sock")).unwrap());
        let alive = UnixListener::bind(directory.join("status-9.sock")).unwrap();
        let dead = [directory.join("status-7.sock")];
        for remove in [false, true] {
            assert_eq!(dead_sockets(&held, remove), dead);
        }
        let mut names = directory.names();
        names.sort();
        assert_eq!(names, ["status-8.sock", "status-9.sock", "status-x.sock"]);
        drop(alive);
    }
}
