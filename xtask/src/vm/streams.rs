//! What comes out of a guest: two streams to show, its status line by line, one archive to unpack.
//!
//! One socket and one thread for each. A thread waits for QEMU to connect, says so, and ends when
//! QEMU does. The console and QEMU's own words are kept instead, to say why a guest died.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use super::files;
use crate::error::Error;
use crate::process;

/// The guest's ports that carry a stream of their own name.
pub(super) const PORTS: [&str; 4] = ["stdout", "stderr", "status", "out"];

/// The socket of QEMU's monitor.
pub(super) const MONITOR: &str = "monitor";

/// Connections that QEMU makes for all these.
pub(super) const COUNT: usize = PORTS.len() + 1;

/// A kernel that repeats itself on its console is cut off.
const KEPT_BYTES_MAX: u64 = 16 << 20;

/// A guest that writes nonsense to its status port is not listened to for ever.
const STATUS_BYTES_MAX: u64 = 1 << 20;

/// An event that a thread reports.
#[derive(Debug)]
pub(super) enum Event {
    /// QEMU has opened one more socket.
    Connected,
    /// That of its monitor.
    Monitor(UnixStream),
    /// A line from the guest's own programs.
    Line(String),
    /// QEMU is gone.
    Gone,
}

/// The streams to be waited for.
pub(super) struct Streams {
    shown: [JoinHandle<Option<()>>; 2],
    unpacked: JoinHandle<Option<Result<(), Error>>>,
}

impl Streams {
    /// Makes all sockets in `work`; /out of the guest goes to the folder `out`.
    ///
    /// # Errors
    /// When a socket or the folder cannot be made.
    pub(super) fn listen(
        work: &Path,
        out: Option<&Path>,
        events: &Sender<Event>,
    ) -> Result<Self, Error> {
        let [stdout, stderr, status, archive] = PORTS;
        if let Some(out) = out {
            files::make_folder(out)?;
        }
        let out = out.map(Path::to_owned);
        let (lines, monitors) = (events.clone(), events.clone());
        let connected = |events: &Sender<Event>| {
            let events = events.clone();
            // Nobody listens any more when the guest has ended; likewise below.
            move || drop(events.send(Event::Connected))
        };
        let streams = Self {
            shown: [
                on_connection(&work.join(stdout), connected(events), |stream| {
                    show(stream, io::stdout());
                })?,
                on_connection(&work.join(stderr), connected(events), |stream| {
                    show(stream, io::stderr());
                })?,
            ],
            unpacked: on_connection(&work.join(archive), connected(events), move |stream| {
                out.map_or(Ok(()), |out| unpack(stream, &out))
            })?,
        };
        on_connection(&work.join(status), connected(events), move |stream| {
            let lines_of = BufReader::new(stream.take(STATUS_BYTES_MAX)).lines();
            for line in lines_of.map_while(Result::ok) {
                let _ = lines.send(Event::Line(line));
            }
        })?;
        on_connection(
            &work.join(MONITOR),
            || (),
            move |stream| {
                let _ = monitors.send(Event::Monitor(stream));
            },
        )?;
        Ok(streams)
    }

    /// Waits until everything that came is shown and unpacked. QEMU must have connected and be
    /// gone.
    ///
    /// # Errors
    /// When the archive could not be unpacked.
    pub(super) fn end(self) -> Result<(), Error> {
        for shown in self.shown {
            let _ = shown.join();
        }
        let panicked = |_| Error::Failed("unpacking /out panicked".to_owned());
        self.unpacked.join().map_err(panicked)?.unwrap_or(Ok(()))
    }
}

/// Keeps the output of a pipe of QEMU, up to a limit; sends `at_end` at its end.
pub(super) fn keep(
    pipe: Option<impl Read + Send + 'static>,
    at_end: Option<Sender<Event>>,
) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let kept = pipe.map(|pipe| process::keep(pipe, KEPT_BYTES_MAX).join());
        if let Some(events) = at_end {
            let _ = events.send(Event::Gone);
        }
        kept.and_then(Result::ok).unwrap_or_default()
    })
}

/// Makes the socket `path`; once something connects, calls `connected` and then `serve`, in a
/// thread.
fn on_connection<T: Send + 'static>(
    path: &Path,
    connected: impl FnOnce() + Send + 'static,
    serve: impl FnOnce(UnixStream) -> T + Send + 'static,
) -> Result<JoinHandle<Option<T>>, Error> {
    let listener = UnixListener::bind(path).map_err(Error::io("make", path))?;
    Ok(thread::spawn(move || {
        let (stream, _) = listener.accept().ok()?;
        connected();
        Some(serve(stream))
    }))
}

/// Hands on what comes, as it comes.
fn show(mut stream: UnixStream, mut target: impl Write) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(len @ 1..) = stream.read(&mut buffer) {
        // A reader that has left is no reason to stop the command.
        let _ = target.write_all(&buffer[..len]);
        let _ = target.flush();
    }
}

/// Unpacks a tar archive into `folder`; one without a byte holds nothing.
fn unpack(stream: UnixStream, folder: &Path) -> Result<(), Error> {
    let failed = |what: String| Error::Program {
        program: "tar".to_owned(),
        what: format!("{}: {what}", folder.display()),
    };
    let status = Command::new("tar")
        .args(["-x", "--no-same-owner", "-C"])
        .arg(folder)
        .stdin(Stdio::from(OwnedFd::from(stream)))
        .status()
        .map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(()) } else { Err(failed(status.to_string())) }
}
