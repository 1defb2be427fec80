//! The frame of a resident command as its service manager sees it: `sd_notify(3)`.
//!
//! Readiness, a line of status, the watchdog and the end are datagrams to the socket that
//! `NOTIFY_SOCKET` names. The watchdog is fed from the loop that does the work, so a hang of that
//! loop is noticed. Without a service manager nothing is sent.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// The service manager's socket; it gets `STOPPING=1` on drop.
#[derive(Debug)]
pub struct Service {
    socket: UnixDatagram,
    address: SocketAddr,
    /// Half of what the watchdog waits, if it is on.
    beat_every: Option<Duration>,
    last_beat: Option<Instant>,
}

impl Service {
    /// The service manager that started this process; `None` without one.
    #[must_use]
    pub fn from_environment() -> Option<Self> {
        let address = address(std::env::var_os("NOTIFY_SOCKET")?)?;
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_for_us = match std::env::var_os("WATCHDOG_PID") {
            Some(_) => number("WATCHDOG_PID") == Some(u64::from(std::process::id())),
            None => true,
        };
        let limit_us = number("WATCHDOG_USEC").filter(|limit| is_for_us && *limit > 0);
        Some(Self {
            socket: UnixDatagram::unbound().ok()?,
            address,
            beat_every: limit_us.map(|limit| Duration::from_micros(limit / 2)),
            last_beat: None,
        })
    }

    /// Reports that the work has begun, with a line of status.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// Replaces the line of status.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={}", one_line(status)));
    }

    /// Feeds the watchdog if it is time. To be called by the loop that does the work.
    pub fn beat(&mut self) {
        let Some(every) = self.beat_every else { return };
        if self.last_beat.is_none_or(|last| last.elapsed() >= every) {
            self.last_beat = Some(Instant::now());
            self.send("WATCHDOG=1");
        }
    }

    fn send(&self, text: &str) {
        // A service manager that does not listen must not end the work.
        let _ = self.socket.send_to_addr(text.as_bytes(), &self.address);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.send("STOPPING=1");
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
