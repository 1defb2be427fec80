//! Helper processes: this program again, by a hidden command, with one JSON document a line in
//! each direction.
//!
//! [`Helper`] is the caller's side. It starts `/proc/self/exe`, which is this program's own code
//! even if its file was replaced or removed since. The helper may be put into a control group
//! before its first message, and is killed and reaped on drop. [`Caller`] is the helper's side:
//! it ends with the thread that started it.
//!
//! A helper does nothing before its first message arrives: only from then on is it in its group.
//! Lines are bounded, and no read waits longer than the caller permits.

use crate::error::{Error, Result};
use crate::{parent, poll, process};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The code of the running program, by the kernel's own link to it.
pub const OWN_PROGRAM: &str = "/proc/self/exe";
/// Longer lines are refused: a thousand paths of the longest kind, each character escaped.
pub const MAX_LINE_BYTES: usize = 32 << 20;
/// The end of the standard error that is kept.
const MAX_ERROR_BYTES: usize = 4096;
/// What is read at once: the usual capacity of a pipe.
const READ_BYTES: usize = 64 << 10;
const START: &str = "start a helper process";
const SEND: &str = "send to the helper process";
const RECEIVE: &str = "receive from the helper process";

/// A hidden command of this program, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenCommand(Vec<OsString>);

impl HiddenCommand {
    /// The command `words`, without the program.
    pub fn new<W: Into<OsString>>(words: impl IntoIterator<Item = W>) -> Self {
        Self(words.into_iter().map(Into::into).collect())
    }

    /// Its words, without the program.
    #[must_use]
    pub fn words(&self) -> &[OsString] {
        &self.0
    }

    /// The program and its words, for a process that is not a [`Helper`]. Such a process calls
    /// [`process::take_own_name`].
    #[must_use]
    pub fn command_line(&self) -> Vec<OsString> {
        let program = OsString::from(OWN_PROGRAM);
        std::iter::once(program).chain(self.0.clone()).collect()
    }
}

/// What [`Helper::receive`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received<T> {
    /// The next message.
    Message(T),
    /// No whole line within the limit, or a signal arrived first.
    Pending,
    /// The helper has closed its output, as it does by ending.
    Ended,
}

/// How a helper ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// Its exit status.
    pub status: ExitStatus,
    /// The last line of its standard error, without the program's name before it.
    pub error_text: Option<String>,
}

/// A running helper; killed and reaped on drop. It is also killed when the thread that started
/// it ends.
#[derive(Debug)]
pub struct Helper {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    /// Output that is not returned yet.
    unread: Vec<u8>,
    /// So much of `unread` has no line end.
    searched: usize,
    error_text: Vec<u8>,
}

impl Helper {
    /// Starts this program with `command`; its three streams are pipes.
    ///
    /// # Errors
    /// The kernel's reason where no process can be made.
    pub fn start(command: &HiddenCommand) -> Result<Self> {
        let mut child = Command::new(OWN_PROGRAM)
            .args(&command.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Error::new(START, error))?;
        Ok(Self {
            input: child.stdin.take(),
            output: child.stdout.take(),
            errors: child.stderr.take(),
            child,
            unread: Vec::new(),
            searched: 0,
            error_text: Vec::new(),
        })
    }

    /// Its process number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Puts it into the control group whose directory is `group`, of either version. To be called
    /// before the first message.
    ///
    /// # Errors
    /// The kernel's reason, with `group`.
    pub fn join(&self, group: &Path) -> Result<()> {
        std::fs::write(group.join("cgroup.procs"), self.pid().to_string())
            .map_err(|error| Error::new("put a process into the group", error).at(group))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// `Invalid` for one that is too long; `Other` (broken pipe) if the helper has ended.
    pub fn send<T: Serialize>(&mut self, message: &T) -> Result<()> {
        match &mut self.input {
            Some(input) => write_line(input, message).map_err(|error| Error::new(SEND, error)),
            None => Err(Error::new(SEND, io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Closes its input: it receives what was sent, and then the end.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Its next message, waited for at most `limit`. Collects its standard error meanwhile, so
    /// that it never waits for a reader of that.
    ///
    /// # Errors
    /// `Invalid` for a line that is too long or is not such a message.
    pub fn receive<T: DeserializeOwned>(&mut self, limit: Duration) -> Result<Received<T>> {
        let start = Instant::now();
        let mut is_last_read = false;
        loop {
            if let Some(line) = self.take_line() {
                return parse(&line).map(Received::Message);
            }
            if self.output.is_none() {
                return Ok(Received::Ended);
            }
            if self.unread.len() > MAX_LINE_BYTES {
                return Err(Error::invalid(RECEIVE, "its line is too long"));
            }
            let left = limit.saturating_sub(start.elapsed());
            if is_last_read || !self.read(left)? {
                return Ok(Received::Pending);
            }
            is_last_read = left.is_zero();
        }
    }

    /// Whether it has ended. What it sent before can still be received.
    ///
    /// # Errors
    /// None on Linux for a process that is not reaped.
    pub fn has_ended(&mut self) -> Result<bool> {
        let status = self.child.try_wait();
        status
            .map(|status| status.is_some())
            .map_err(|error| Error::new("wait for the helper process", error))
    }

    /// Asks it to end, as Ctrl-C asks this process.
    ///
    /// # Errors
    /// The kernel's reason; none for a helper that has ended and is not reaped.
    pub fn interrupt(&self) -> Result<()> {
        let pid = i32::try_from(self.pid()).ok().and_then(rustix::process::Pid::from_raw);
        let Some(pid) = pid else { return Ok(()) };
        // Not SIGINT: a shell without job control lets what it starts ignore that.
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .map_err(|errno| Error::new("end the helper process", errno.into()))
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
    }

    /// Closes its input and waits for its end. Messages that were not received are lost.
    ///
    /// # Errors
    /// As [`Helper::receive`].
    pub fn wait(&mut self) -> Result<Ending> {
        self.close_input();
        while self.output.is_some() || self.errors.is_some() {
            self.read(Duration::MAX)?;
            self.unread.clear();
            self.searched = 0;
        }
        let status =
            self.child.wait().map_err(|error| Error::new("wait for the helper process", error))?;
        let text = String::from_utf8_lossy(&self.error_text);
        let last =
            text.lines().next_back().map(|line| line.strip_prefix("terrace: ").unwrap_or(line));
        Ok(Ending { status, error_text: last.map(str::to_owned) })
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let unsearched = &self.unread[self.searched..];
        let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.unread.len();
            return None;
        };
        let rest = self.unread.split_off(self.searched + end + 1);
        self.searched = 0;
        Some(std::mem::replace(&mut self.unread, rest))
    }

    /// Reads what there is, waited for at most `limit`; whether anything was read or closed.
    fn read(&mut self, limit: Duration) -> Result<bool> {
        let sources =
            [self.output.as_ref().map(AsFd::as_fd), self.errors.as_ref().map(AsFd::as_fd)];
        let limit_ns = u64::try_from(limit.as_nanos()).ok();
        let [output, errors] = poll::readable(sources, limit_ns);
        if output {
            read_available(&mut self.output, &mut self.unread)?;
        }
        if errors {
            read_available(&mut self.errors, &mut self.error_text)?;
            let excess = self.error_text.len().saturating_sub(MAX_ERROR_BYTES);
            self.error_text.drain(..excess);
        }
        Ok(output || errors)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

/// Appends one read of `source` to `bytes`; closes it at its end.
fn read_available(source: &mut Option<impl Read>, bytes: &mut Vec<u8>) -> Result<()> {
    let Some(open) = source else { return Ok(()) };
    let mut chunk = [0; READ_BYTES];
    match open.read(&mut chunk) {
        Ok(0) => *source = None,
        Ok(read) => bytes.extend_from_slice(&chunk[..read]),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
        Err(error) => return Err(Error::new(RECEIVE, error)),
    }
    Ok(())
}

/// The caller as its helper sees it: messages in, messages out.
#[derive(Debug)]
pub struct Caller<R, W> {
    input: R,
    output: W,
}

impl<R: BufRead, W: Write + AsFd> Caller<R, W> {
    /// Connects a helper with its caller by its standard input and output. From here on the
    /// helper is killed when the thread that started it ends; it carries this program's name.
    ///
    /// # Errors
    /// `Other` if the caller has ended already.
    pub fn connect(input: R, output: W) -> Result<Self> {
        parent::die_with_it()?;
        // A caller that ended before the line above is not noticed by it, but holds no pipe.
        if poll::is_hung_up(output.as_fd()) {
            return Err(Error::new(SEND, io::ErrorKind::BrokenPipe.into()));
        }
        process::take_own_name()?;
        Ok(Self::new(input, output))
    }
}

impl<R: BufRead, W: Write> Caller<R, W> {
    /// A caller at the other end of these.
    pub fn new(input: R, output: W) -> Self {
        Self { input, output }
    }

    /// The next message, waited for without limit; `None` once the caller sends no more.
    ///
    /// # Errors
    /// `Invalid` for a line that is too long, is cut or is not such a message.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        const OPERATION: &str = "receive from the calling process";
        let mut line = Vec::new();
        let mut bounded = (&mut self.input).take(MAX_LINE_BYTES as u64 + 1);
        let read = bounded.read_until(b'\n', &mut line);
        match read.map_err(|error| Error::new(OPERATION, error))? {
            0 => Ok(None),
            _ if line.last() == Some(&b'\n') => parse(&line).map(Some),
            _ => Err(Error::invalid(OPERATION, "its line is cut or too long")),
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// `Invalid` for one that is too long; `Other` (broken pipe) if the caller has ended.
    pub fn send<T: Serialize>(&mut self, message: &T) -> Result<()> {
        write_line(&mut self.output, message)
            .map_err(|error| Error::new("send to the calling process", error))
    }
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T> {
    serde_json::from_slice(line).map_err(|error| {
        let invalid = io::Error::new(io::ErrorKind::InvalidData, error);
        Error::new("read a message", invalid)
    })
}

fn write_line<T: Serialize>(output: &mut impl Write, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    if line.len() >= MAX_LINE_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message is too long"));
    }
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}
