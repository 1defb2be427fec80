//! The kernel's delay accounting over generic netlink: queried about one thread, or notified of
//! every thread that ends.
//!
//! The family's number is looked up at each opening. A [`Connection`] either asks or
//! listens; its buffer is reused. What a record holds is in [`parse`]. Listening needs
//! CAP_NET_ADMIN in the first user and PID namespaces.

pub mod parse;

pub use parse::Stats;

use crate::error::{Error, ErrorKind, Result, check, count};
use parse::{Message, attribute, header};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A socket that speaks to the kernel about tasks.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    /// What the kernel calls the family since it started.
    family: u16,
    sequence: u32,
    buffer: Vec<u8>,
}

/// Ends wait here until they are read: about 10,000 of them, a second of `fork` in a loop.
/// Only what waits takes memory.
const RECEIVE_BYTES: libc::c_int = 32 << 20;

/// Room for one message; a record has 600 bytes, and two come together at the end of a
/// process.
const BUFFER_BYTES: usize = 16 << 10;

/// Commands and attributes of the kernel's interface, by `linux/taskstats.h` and
/// `linux/genetlink.h`.
const CONTROL_FAMILY: u16 = 16;
const CONTROL_GET_FAMILY: u8 = 3;
const CONTROL_ATTRIBUTE_ID: u16 = 1;
const CONTROL_ATTRIBUTE_NAME: u16 = 2;
const TASKSTATS_GET: u8 = 1;
const ATTRIBUTE_PID: u16 = 1;
const ATTRIBUTE_REGISTER: u16 = 3;

impl Connection {
    /// Opens a socket and finds the family.
    ///
    /// # Errors
    /// `NotFound` where the kernel has no task accounting; `Unsupported` or `Other` where a
    /// filter forbids such sockets.
    pub fn open() -> Result<Self> {
        Self::of_family("open the kernel's task accounting", b"TASKSTATS\0")
    }

    /// Opens a socket for another family of generic netlink; its name ends with a zero.
    pub(crate) fn of_family(operation: &'static str, name: &[u8]) -> Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes numbers; touches no memory of ours.
        let answer = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_GENERIC) };
        let number = check(operation, answer)?;
        // SAFETY: the call succeeded, so it is open and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(number) };
        let mut connection =
            Self { socket, family: CONTROL_FAMILY, sequence: 0, buffer: vec![0; BUFFER_BYTES] };
        let name = attribute(CONTROL_ATTRIBUTE_NAME, name);
        connection.send(operation, CONTROL_GET_FAMILY, &name)?;
        let bytes = connection.receive(operation)?.unwrap_or(0);
        let answer = connection.buffer.get(..bytes).unwrap_or_default();
        connection.family = family_of(operation, answer)?;
        // The acknowledgement follows the answer; left there, it would pass for the next.
        while connection.receive(operation)?.is_some() {}
        Ok(connection)
    }

    /// Sends a command of the family: the attributes of the answer, if it has any.
    pub(crate) fn command(
        &mut self,
        operation: &'static str,
        command: u8,
        attributes: &[u8],
    ) -> Result<Vec<(u16, Vec<u8>)>> {
        self.send(operation, command, attributes)?;
        let mut answer = Vec::new();
        while let Some(bytes) = self.receive(operation)? {
            for (kind, body) in parse::bodies(&self.buffer[..bytes]) {
                if kind == parse::KIND_ERROR {
                    refused(operation, parse::error_number(body))?;
                    continue;
                }
                let attributes = body.get(parse::GENERIC_HEADER_BYTES..).unwrap_or_default();
                answer.extend(parse::attributes(attributes).map(|(id, it)| (id, it.to_vec())));
            }
        }
        Ok(answer)
    }

    /// From now on the kernel notifies this socket of every thread that ends, on whichever of
    /// the processors `cpus` (`0-7`).
    ///
    /// # Errors
    /// `Denied` without CAP_NET_ADMIN, `Invalid` in a PID or user namespace.
    pub fn listen(&mut self, cpus: &str) -> Result<()> {
        const OPERATION: &str = "listen to the ends of threads";
        self.enlarge();
        let mut text = cpus.trim().as_bytes().to_vec();
        text.push(0);
        let mask = attribute(ATTRIBUTE_REGISTER, &text);
        self.send(OPERATION, TASKSTATS_GET, &mask)?;
        // Threads that ended in the meantime may come before the answer; the caller does not expect
        // them yet.
        while let Some(bytes) = self.receive(OPERATION)? {
            for message in parse::messages(&self.buffer[..bytes]) {
                if let Message::Error(number) = message {
                    return refused(OPERATION, number);
                }
            }
        }
        let silent = io::Error::other("the kernel does not answer");
        Err(Error::new(OPERATION, silent))
    }

    /// What the kernel charged to the thread `tid` until now; `None` if it does not exist.
    ///
    /// # Errors
    /// `Denied` without CAP_NET_ADMIN.
    pub fn ask(&mut self, tid: u32) -> Result<Option<Stats>> {
        const OPERATION: &str = "ask what a thread was charged";
        let pid = attribute(ATTRIBUTE_PID, &tid.to_ne_bytes());
        self.send(OPERATION, TASKSTATS_GET, &pid)?;
        let mut stats = None;
        // The answer is there when `send` returns, and before it the acknowledgement or not.
        while let Some(bytes) = self.receive(OPERATION)? {
            for message in parse::messages(&self.buffer[..bytes]) {
                match message {
                    Message::Thread(record) => stats = Some(*record),
                    Message::Error(number) if number == libc::ESRCH => {}
                    Message::Error(number) => refused(OPERATION, number)?,
                    Message::Other => {}
                }
            }
        }
        Ok(stats)
    }

    /// Passes every ended thread that was notified to `each`; never waits. Returns whether some
    /// were lost since the last call, because they were not read fast enough.
    ///
    /// # Errors
    /// Only where the socket is broken.
    pub fn drain(&mut self, mut each: impl FnMut(Stats)) -> Result<bool> {
        const OPERATION: &str = "read the ends of threads";
        let mut lost = false;
        loop {
            match self.receive(OPERATION) {
                Ok(None) => return Ok(lost),
                Ok(Some(bytes)) => {
                    for message in parse::messages(&self.buffer[..bytes]) {
                        if let Message::Thread(record) = message {
                            each(*record);
                        }
                    }
                }
                Err(error) if error.number() == Some(libc::ENOBUFS) => lost = true,
                Err(error) => return Err(error),
            }
        }
    }

    /// How many messages the kernel could not put into this socket since it was opened;
    /// `None` where it does not say (before Linux 4.12).
    #[must_use]
    pub fn dropped(&self) -> Option<u64> {
        /// `SO_MEMINFO` of `asm-generic/socket.h`; `SK_MEMINFO_DROPS` is its last number.
        const SO_MEMINFO: libc::c_int = 55;
        const NUMBERS: usize = 9;
        let mut numbers = [0u32; NUMBERS];
        let mut bytes = libc::socklen_t::try_from(size_of_val(&numbers)).ok()?;
        // SAFETY: `numbers` is room for `bytes` bytes, and the call stores no more.
        let answer = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                SO_MEMINFO,
                numbers.as_mut_ptr().cast(),
                &raw mut bytes,
            )
        };
        let complete = answer == 0 && bytes as usize == size_of_val(&numbers);
        complete.then(|| u64::from(numbers[NUMBERS - 1]))
    }

    /// Asks for a queue beyond the limit, then for what the limit gives.
    fn enlarge(&self) {
        let bytes = RECEIVE_BYTES;
        for option in [libc::SO_RCVBUF, libc::SO_RCVBUFFORCE] {
            // SAFETY: passes one live number of the size that is named. A refusal leaves
            // the queue as it was, which loses ends sooner and is counted.
            unsafe {
                libc::setsockopt(
                    self.socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw const bytes).cast(),
                    size_of::<libc::c_int>() as libc::socklen_t,
                )
            };
        }
    }

    fn send(&mut self, operation: &'static str, command: u8, attributes: &[u8]) -> Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = header(self.family, command, self.sequence, attributes);
        count(operation, || {
            // SAFETY: the descriptor is open and `message` is alive for its whole length. A
            // netlink socket that is not connected sends to the kernel.
            unsafe {
                libc::send(self.socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0)
            }
        })
        .map(drop)
    }

    /// The next message into the buffer; `None` where none waits.
    fn receive(&mut self, operation: &'static str) -> Result<Option<usize>> {
        let got = count(operation, || {
            // SAFETY: the descriptor is open and the buffer is room for its whole length.
            unsafe {
                libc::recv(
                    self.socket.as_raw_fd(),
                    self.buffer.as_mut_ptr().cast(),
                    self.buffer.len(),
                    0,
                )
            }
        });
        match got {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.number() == Some(libc::EAGAIN) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The family's number in the control family's answer.
fn family_of(operation: &'static str, answer: &[u8]) -> Result<u16> {
    for (kind, body) in parse::bodies(answer) {
        if kind == parse::KIND_ERROR {
            let number = parse::error_number(body);
            if number == libc::ENOENT {
                break;
            }
            refused(operation, number)?;
        }
        let attributes = body.get(parse::GENERIC_HEADER_BYTES..).unwrap_or_default();
        for (id, value) in parse::attributes(attributes) {
            if let (CONTROL_ATTRIBUTE_ID, Some(bytes)) = (id, value.first_chunk::<2>()) {
                return Ok(u16::from_ne_bytes(*bytes));
            }
        }
    }
    let why = io::Error::new(io::ErrorKind::NotFound, "this kernel has none");
    Err(Error::new(operation, why))
}

/// An error number of the kernel's; 0 is an acknowledgement.
fn refused(operation: &'static str, number: i32) -> Result<()> {
    if number == 0 {
        return Ok(());
    }
    let error = Error::new(operation, io::Error::from_raw_os_error(number));
    debug_assert!(error.kind != ErrorKind::Interrupted, "netlink never waits here");
    Err(error)
}

#[cfg(test)]
mod tests;
