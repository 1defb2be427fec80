//! An answer: its head with what keeps a page from being used by others, its body, within bounds
//! of time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Headers of every answer: no caching, no type sniffing, no framing, no referrer.
const SECURITY: &str = "Cache-Control: no-store\r\n\
    Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Referrer-Policy: no-referrer\r\n\
    X-Content-Type-Options: nosniff\r\n\
    X-Frame-Options: DENY\r\n";

/// The most time for one piece, and for a whole body: a browser of this machine takes a second for
/// the largest page.
const PIECE_LIMIT: Duration = Duration::from_secs(10);
const BODY_LIMIT: Duration = Duration::from_secs(120);

/// What is handed to the kernel at once.
const PIECE_BYTES: usize = 256 << 10;

/// After an answer what the client still says is listened to for so long and so far: closing on
/// unread bytes would take the answer away from it.
const FAREWELL: Duration = Duration::from_secs(1);
const FAREWELL_BYTES: usize = 4 << 20;

/// What an answer holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body<'a> {
    /// The page.
    Page(&'a str),
    /// A line of plain words.
    Line(&'a str),
    /// Nothing.
    Nothing,
    /// Events, which follow as they happen.
    Stream,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    status: &'static str,
    body: Body<'a>,
}

impl<'a> Reply<'a> {
    pub(super) fn new(status: &'static str, body: Body<'a>) -> Self {
        Self { status, body }
    }

    /// Sends it, or its head alone; the connection ends with it unless it is a stream.
    pub(super) fn send(&self, stream: &TcpStream, head_only: bool) -> io::Result<()> {
        let line;
        let body = match self.body {
            Body::Page(text) => text,
            Body::Line(words) => {
                line = format!("terrace: {words}\n");
                &line
            }
            Body::Nothing | Body::Stream => "",
        };
        write_all(stream, self.head(body.len()).as_bytes())?;
        if !head_only {
            write_all(stream, body.as_bytes())?;
        }
        match self.body {
            Body::Stream => Ok(()),
            _ => farewell(stream),
        }
    }

    fn head(&self, length: usize) -> String {
        let own = match self.body {
            Body::Page(_) => {
                format!("Content-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n")
            }
            Body::Line(_) => format!(
                "Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
                 Allow: GET, HEAD\r\n"
            ),
            Body::Nothing => String::new(),
            Body::Stream => "Content-Type: text/event-stream\r\n".to_owned(),
        };
        format!("HTTP/1.1 {}\r\n{own}{SECURITY}Connection: close\r\n\r\n", self.status)
    }
}

/// Writes all of `bytes` within the limits.
pub(super) fn write_all(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    let deadline = Instant::now() + BODY_LIMIT;
    stream.set_write_timeout(Some(PIECE_LIMIT))?;
    for piece in bytes.chunks(PIECE_BYTES) {
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.write_all(piece)?;
    }
    Ok(())
}

fn farewell(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let deadline = Instant::now() + FAREWELL;
    let mut buffer = [0; 16 << 10];
    let mut heard = 0;
    while Instant::now() < deadline && heard < FAREWELL_BYTES {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => heard += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
