//! Redis and nginx, asked anew for each reading: both answer a line of text with a text.
//!
//! An answer is bounded in bytes and time, also one that comes a byte at a time.

use super::number::{LONGEST_TEXT, after_key, parsed};
use super::spec::ServerAddress;
use super::{ANSWER_LIMIT, WorkReader};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// One read waits so long, so that the limit of the whole answer is kept.
const READ_LIMIT: Duration = Duration::from_millis(100);

/// The password that redis-cli takes.
const REDIS_PASSWORD: &str = "REDISCLI_AUTH";

/// A field of Redis.
#[derive(Debug)]
pub(super) struct Redis {
    pub field: String,
    pub server: ServerAddress,
}

/// The requests of nginx.
#[derive(Debug)]
pub(super) struct Nginx {
    pub address: SocketAddr,
    pub host: String,
    pub path: String,
}

/// A connection that can be read and written.
pub(super) trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl WorkReader for Redis {
    fn read(&mut self, _is_ending: &AtomicBool) -> Result<i64, String> {
        let words = |error: std::io::Error| format!("Redis: {}", sys::plain_reason(&error));
        let mut stream = connect(&self.server).map_err(words)?;
        let mut asked = Vec::new();
        if let Ok(password) = std::env::var(REDIS_PASSWORD) {
            let length = password.len();
            asked.extend(format!("*2\r\n$4\r\nAUTH\r\n${length}\r\n{password}\r\n").bytes());
        }
        asked.extend(b"INFO\r\nQUIT\r\n");
        stream.write_all(&asked).map_err(words)?;
        let text = all_of(&mut stream).map_err(words)?;
        if let Some(found) = after_key(&text, &self.field) {
            return Ok(found);
        }
        let refusal = text.lines().find_map(|line| line.strip_prefix('-'));
        match refusal {
            Some(why) => Err(format!("Redis: {why} ({REDIS_PASSWORD} holds the password)")),
            None => Err(format!("Redis: INFO has no number {}", self.field)),
        }
    }
}

impl WorkReader for Nginx {
    fn read(&mut self, _is_ending: &AtomicBool) -> Result<i64, String> {
        let words = |error: std::io::Error| format!("nginx: {}", sys::plain_reason(&error));
        let mut stream = connect(&ServerAddress::Tcp(self.address)).map_err(words)?;
        let (path, host) = (&self.path, &self.host);
        let asked = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(asked.as_bytes()).map_err(words)?;
        let text = all_of(&mut stream).map_err(words)?;
        requests(&text)
    }
}

/// The third number of the line after `server accepts handled requests`.
fn requests(answer: &str) -> Result<i64, String> {
    let status = answer.lines().next().unwrap_or_default();
    if status.split_whitespace().nth(1) != Some("200") {
        return Err(format!("nginx answered {status}"));
    }
    let mut lines = answer.lines().skip_while(|line| !line.starts_with("server accepts"));
    let numbers = lines.nth(1).unwrap_or_default();
    let found = numbers.split_whitespace().nth(2).and_then(parsed);
    found.ok_or_else(|| "nginx: this is not the page of stub_status".to_owned())
}

fn connect(server: &ServerAddress) -> std::io::Result<Box<dyn Stream>> {
    match server {
        ServerAddress::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, ANSWER_LIMIT)?;
            stream.set_read_timeout(Some(READ_LIMIT))?;
            stream.set_write_timeout(Some(ANSWER_LIMIT))?;
            Ok(Box::new(stream))
        }
        ServerAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(READ_LIMIT))?;
            stream.set_write_timeout(Some(ANSWER_LIMIT))?;
            Ok(Box::new(stream))
        }
    }
}

/// Everything until the other end closes, as text.
fn all_of(stream: &mut dyn Stream) -> std::io::Result<String> {
    let until = Instant::now() + ANSWER_LIMIT;
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut part) {
            Ok(0) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Ok(read) => bytes.extend_from_slice(&part[..read]),
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
        if bytes.len() as u64 > LONGEST_TEXT {
            return Err(std::io::Error::other("its answer has more than 1 MiB"));
        }
        if Instant::now() >= until {
            let limit = ANSWER_LIMIT.as_secs();
            return Err(std::io::Error::other(format!("no answer within {limit} s")));
        }
    }
}

pub(super) fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::requests;

    #[test]
    fn only_the_page_of_stub_status_has_requests() {
        let page = "HTTP/1.1 200 OK\r\nServer: x\r\n\r\nActive connections: 2\nserver accepts \
                    handled requests\n 16 16 31 \nReading: 0 Writing: 1 Waiting: 1\n";
        assert_eq!(requests(page), Ok(31));
        assert!(requests("HTTP/1.1 404 Not Found\r\n\r\n").unwrap_err().contains("404"));
        assert!(requests("HTTP/1.1 200 OK\r\n\r\n<html>").is_err());
        assert!(requests("").is_err());
    }
}
