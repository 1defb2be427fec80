//! What a browser asked: the head of a request, read within bounds and checked.
//!
//! Pure but for the reading. Everything that is not exactly what the page needs is refused with
//! a status and a line: any other method, a foreign `Host` (a name that was made to point to
//! this machine), a head that is too long or comes too slowly.

use std::io::{ErrorKind, Read};
use std::time::Instant;

/// A browser's head has less than 2 KiB; the path of the page less than 100 bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Whether only the head of the answer is wanted.
    pub(super) head_only: bool,
    /// The path without what follows a question mark.
    pub(super) path: String,
    /// What follows the question mark.
    pub(super) query: String,
    /// The last event that a returning page has seen.
    pub(super) last_event: Option<String>,
}

/// Why nothing is given: a status and a line of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) &'static str, pub(super) &'static str);

const TOO_SLOW: Refusal = Refusal("408 Request Timeout", "the request came too slowly");
const TOO_LONG: Refusal = Refusal("431 Request Header Fields Too Large", "the request is too long");
const NONSENSE: Refusal = Refusal("400 Bad Request", "the request makes no sense");
const READ_ONLY: Refusal =
    Refusal("405 Method Not Allowed", "there is only something to read here");
const FOREIGN_HOST: Refusal =
    Refusal("421 Misdirected Request", "this server has another name: 127.0.0.1");

/// Reads a head from `source`, whose reads end by themselves after a while, before `deadline`.
/// `None` when nothing was asked.
pub(super) fn read_head(
    source: &mut impl Read,
    deadline: Instant,
) -> Result<Option<String>, Refusal> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 2048];
    loop {
        if Instant::now() >= deadline {
            return if bytes.is_empty() { Ok(None) } else { Err(TOO_SLOW) };
        }
        match source.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if is_pause(error.kind()) => continue,
            Err(_) => return Ok(None),
        }
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            bytes.truncate(end);
            return String::from_utf8(bytes).map(Some).map_err(|_| NONSENSE);
        }
        if bytes.len() > HEAD_BYTES_MAX {
            return Err(TOO_LONG);
        }
    }
}

fn is_pause(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// What the head asks for, of a server at this port.
pub(super) fn parse(head: &str, port: u16) -> Result<Request, Refusal> {
    let mut lines = head.split("\r\n");
    let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = first[..] else {
        return Err(NONSENSE);
    };
    if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
        return Err(NONSENSE);
    }
    let head_only = match method {
        "GET" => false,
        "HEAD" => true,
        _ => return Err(READ_ONLY),
    };
    let mut hosts = Vec::new();
    let mut last_event = None;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(NONSENSE)?;
        match name.to_ascii_lowercase().as_str() {
            "host" => hosts.push(value.trim()),
            "last-event-id" => last_event = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    match hosts[..] {
        [host] if is_own(host, port) => {}
        [_] => return Err(FOREIGN_HOST),
        _ => return Err(NONSENSE),
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Request { head_only, path: path.to_owned(), query: query.to_owned(), last_event })
}

/// Whether `host` names this machine by a name that others cannot assign.
fn is_own(host: &str, port: u16) -> bool {
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| *host == format!("{name}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn asked(head: &str) -> Result<Request, Refusal> {
        parse(&head.replace('\n', "\r\n"), 80)
    }

    #[test]
    fn a_request_of_the_page_is_understood() {
        let head = "GET /a/events?from=1 HTTP/1.1\nHOST: 127.0.0.1:80\nLast-Event-ID: 7\nX: y: z";
        let expected = Request {
            head_only: false,
            path: "/a/events".to_owned(),
            query: "from=1".to_owned(),
            last_event: Some("7".to_owned()),
        };
        assert_eq!(asked(head), Ok(expected));
        for host in ["localhost:80", "[::1]:80"] {
            let request = asked(&format!("HEAD / HTTP/1.0\nHost: {host}")).unwrap();
            assert!(request.head_only, "{host}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        let host = "Host: 127.0.0.1:80";
        for (head, expected) in [
            ("POST / HTTP/1.1\nHost: 127.0.0.1:80".to_owned(), READ_ONLY),
            ("GET / HTTP/1.1\nHost: evil.example:80".to_owned(), FOREIGN_HOST),
            ("GET / HTTP/1.1\nHost: 127.0.0.1:81".to_owned(), FOREIGN_HOST),
            ("GET / HTTP/1.1\nHost: localhost".to_owned(), FOREIGN_HOST),
            ("GET / HTTP/1.1".to_owned(), NONSENSE),
            (format!("GET / HTTP/1.1\n{host}\n{host}"), NONSENSE),
            (format!("GET / HTTP/1.1\n{host}\n folded"), NONSENSE),
            (format!("GET http://127.0.0.1/ HTTP/1.1\n{host}"), NONSENSE),
            (format!("GET / HTTP/2\n{host}"), NONSENSE),
            (format!("GET /\n{host}"), NONSENSE),
            (String::new(), NONSENSE),
        ] {
            assert_eq!(asked(&head), Err(expected), "{head}");
        }
    }

    #[test]
    fn a_head_is_bounded_in_bytes_and_time() {
        let soon = || Instant::now() + Duration::from_secs(60);
        let read = |bytes: &[u8]| read_head(&mut &*bytes, soon());
        assert_eq!(read(b"a\r\nb\r\n\r\nbody"), Ok(Some("a\r\nb".to_owned())));
        assert_eq!(read(&[b'a'; 1 << 20]), Err(TOO_LONG));
        assert_eq!(read(b"a\xff\r\n\r\n"), Err(NONSENSE));
        assert_eq!(read(b"half"), Ok(None));
        struct Slow;
        impl Read for Slow {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                buffer[0] = b'a';
                Ok(1)
            }
        }
        let deadline = Instant::now() + Duration::from_millis(1);
        let slow = read_head(&mut Slow, deadline);
        assert!(slow == Err(TOO_SLOW) || slow == Err(TOO_LONG), "{slow:?}");
    }
}
