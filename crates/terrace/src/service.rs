//! The frame of a resident command: readiness and watchdog for its service manager, and a status
//! socket for its users.
//!
//! - Readiness, a line of status, the watchdog and the end are datagrams to the socket that
//!   `NOTIFY_SOCKET` names (`sd_notify(3)`). Without a service manager nothing is sent.
//! - `status` answers on a socket with the same line, and with what the process has cost so far.
//! - Both are served by the loop that does the work, so a hang of that loop is noticed.
//! - The lock belongs to what the command works on (a flight recorder locks its directory), so
//!   that the same directory is refused to a second one however it was started.

mod status;

use crate::error::Error;
pub use status::leftovers;
use status::{Status, StatusSocket};
use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// A resident command: notifies its service manager, of its end too, and answers on its socket.
#[derive(Debug)]
pub struct Service {
    command: &'static str,
    target: String,
    manager: Option<ServiceManager>,
    socket: Option<StatusSocket>,
    ready_since: Instant,
    text: String,
}

impl Service {
    /// Of `command`, which works on `target`. Without a status socket if that cannot be made: the
    /// work is worth more than its status, and the second value says why. From now on freed memory
    /// goes back to the kernel where the C library can be asked for that.
    pub fn start(command: &'static str, target: String) -> (Self, Option<Error>) {
        sys::allocator::return_large_blocks();
        let (socket, fault) = match StatusSocket::open() {
            Ok(socket) => (Some(socket), None),
            Err(error) => (None, Some(error)),
        };
        let service = Self {
            command,
            target,
            manager: ServiceManager::from_environment(),
            socket,
            ready_since: Instant::now(),
            text: String::new(),
        };
        (service, fault)
    }

    /// Reports that the work has begun, with a line of status.
    pub fn ready(&mut self, text: &str) {
        self.ready_since = Instant::now();
        self.text = one_line(text);
        self.notify(&format!("READY=1\nSTATUS={}", self.text));
    }

    /// Replaces the line of status.
    pub fn status(&mut self, text: &str) {
        self.text = one_line(text);
        self.notify(&format!("STATUS={}", self.text));
    }

    /// Reports that the work is about to end, with a last line of status.
    pub fn stopping(&mut self, text: &str) {
        self.text = one_line(text);
        self.notify(&format!("STOPPING=1\nSTATUS={}", self.text));
    }

    /// Feeds the watchdog if it is time, and answers status requests. To be called by the loop
    /// that does the work.
    pub fn turn(&mut self) {
        if let Some(manager) = &mut self.manager {
            manager.feed_watchdog();
        }
        if let Some(socket) = &self.socket {
            socket.answer(|| self.status_line());
        }
    }

    fn status_line(&self) -> Vec<u8> {
        let ready_s = self.ready_since.elapsed().as_secs();
        let status = Status::now(self.command, &self.target, ready_s, &self.text);
        // It is made of numbers and strings, which JSON always holds.
        let mut line = serde_json::to_vec(&status).unwrap_or_default();
        line.push(b'\n');
        line
    }

    fn notify(&self, text: &str) {
        if let Some(manager) = &self.manager {
            manager.send(text);
        }
    }
}

/// How long a message waits for a service manager whose queue is full. Picked: less than any
/// watchdog allows. Without a limit a manager that had stopped reading held up the command's end.
const SEND_LIMIT: Duration = Duration::from_millis(100);

/// The service manager's socket.
#[derive(Debug)]
struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
    /// Half of what the watchdog waits, if it is on.
    feed_every: Option<Duration>,
    last_fed: Option<Instant>,
}

impl ServiceManager {
    /// The service manager that started this process; `None` without one.
    fn from_environment() -> Option<Self> {
        let address = address(std::env::var_os("NOTIFY_SOCKET")?)?;
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_for_us = match std::env::var_os("WATCHDOG_PID") {
            Some(_) => number("WATCHDOG_PID") == Some(u64::from(std::process::id())),
            None => true,
        };
        let limit_us = number("WATCHDOG_USEC").filter(|limit| is_for_us && *limit > 0);
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_write_timeout(Some(SEND_LIMIT)).ok()?;
        Some(Self {
            socket,
            address,
            feed_every: limit_us.map(|limit| Duration::from_micros(limit / 2)),
            last_fed: None,
        })
    }

    fn feed_watchdog(&mut self) {
        let Some(every) = self.feed_every else { return };
        if self.last_fed.is_none_or(|last| last.elapsed() >= every) {
            self.last_fed = Some(Instant::now());
            self.send("WATCHDOG=1");
        }
    }

    fn send(&self, text: &str) {
        // A service manager that does not listen must neither end the work nor hold it up.
        let _ = self.socket.send_to_addr(text.as_bytes(), &self.address);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.notify("STOPPING=1");
    }
}

/// Reports for a process without a [`Service`] that the work has begun, to the service manager that
/// started it or its parent.
pub fn report_ready(text: &str) {
    if let Some(manager) = ServiceManager::from_environment() {
        manager.send(&format!("READY=1\nSTATUS={}", one_line(text)));
    }
}

/// A path, or a name in the abstract namespace after `@`.
fn address(name: OsString) -> Option<SocketAddr> {
    match name.as_bytes() {
        [b'@', abstract_name @ ..] => SocketAddr::from_abstract_name(abstract_name).ok(),
        [b'/', ..] => SocketAddr::from_pathname(name).ok(),
        _ => None,
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_a_path_or_an_abstract_name() {
        assert!(address("/run/notify".into()).is_some());
        assert!(address("@name".into()).is_some());
        for other in ["", "name", "vsock:2:9"] {
            assert!(address(other.into()).is_none(), "{other}");
        }
    }
}
