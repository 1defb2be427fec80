//! The page of `view` attacked over its port: mutants of requests, and connections that stay.
//!
//! One mutant is one server with a row of hostile requests: it must answer nothing but HTTP, show
//! the page to the secret alone, live on, and still serve a good request at the end.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use testkit::Random;

use super::mutate::{self, chance, pick};
use super::recording::plain;
use super::stage::{
    AttackStage, Held, PATIENCE, Stop, as_other_user, bad, ensure, give_away, need, need_admin,
    text, wait_until, words,
};
use crate::process::Running;

/// Requests of one mutant.
const REQUESTS: u64 = 20;
/// The page of the smallest fixture is longer.
const PAGE_BYTES_MIN: usize = 20_000;
/// An answer that does not come in this time does not come.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Connections without the secret that stay open: more than the server has places.
const HOLDERS: usize = 64;

/// A `view` that serves a page.
#[derive(Debug)]
struct Server {
    running: Running,
    port: u16,
    secret: String,
}

impl Server {
    fn start(stage: &AttackStage, directory: &Path) -> io::Result<Self> {
        let path = plain(stage, directory, "hog_beside")?;
        let mut command = stage.terrace(&["view", "--no-browser", text(&path)]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = Running::start(command)?;
        let mut line = String::new();
        if let Some(stdout) = running.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let address = line.trim().strip_prefix("http://127.0.0.1:");
        let parts = address.and_then(|address| address.split_once('/'));
        let port = parts.and_then(|(port, _)| port.parse().ok());
        let mut server = Self {
            running,
            port: port.unwrap_or(0),
            secret: parts.map_or_else(String::new, |(_, path)| path.trim_matches('/').to_owned()),
        };
        if server.running.is_alive() && server.port != 0 {
            Ok(server)
        } else {
            Err(io::Error::other(format!("view printed no address: {line:?}")))
        }
    }

    /// The request that gets the page.
    fn good(&self) -> Vec<u8> {
        let (secret, port) = (&self.secret, self.port);
        format!("GET /{secret}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: x\r\n\r\n")
            .into_bytes()
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        Ok(stream)
    }

    /// The whole answer; what came until the connection was cut.
    fn answer(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        let mut stream = self.connect()?;
        // The server may answer and close before it has read a request that is too long.
        if stream.write_all(request).is_ok() {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Ok(answer)
    }

    fn serves_the_page(&self) -> bool {
        self.answer(&self.good()).is_ok_and(|answer| is_page(&answer))
    }

    /// Processor time of the server so far, in ticks of a hundredth second.
    fn processor_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.running.pid()))
            .unwrap_or_default();
        let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
        let fields = after.split_whitespace().skip(11).take(2);
        fields.filter_map(|field| field.parse::<u64>().ok()).sum()
    }
}

fn is_page(answer: &[u8]) -> bool {
    answer.starts_with(b"HTTP/1.1 200") && answer.len() > PAGE_BYTES_MIN
}

/// One server, a row of changed requests.
pub(super) fn attack(stage: &AttackStage, random: &mut Random, directory: &Path) -> Held {
    let mut server = Server::start(stage, directory)?;
    let bad = |why: &str, request: &[u8]| {
        Err(bad(why, &format!("view, then the request b\"{}\"", request.escape_ascii())))
    };
    for _ in 0..REQUESTS {
        let request = request(&server, random);
        let answer = server.answer(&request)?;
        if !(answer.is_empty() || answer.starts_with(b"HTTP/1.1 ")) {
            return bad("an answer that is not HTTP", &request);
        }
        let has_secret =
            request.windows(server.secret.len()).any(|part| part == server.secret.as_bytes());
        if is_page(&answer) && !has_secret {
            return bad("the page without the secret", &request);
        }
        if answer.windows(27).any(|part| part.eq_ignore_ascii_case(b"access-control-allow-origin"))
        {
            return bad("leave for pages of others", &request);
        }
        if !server.running.is_alive() {
            return bad("the server ended", &request);
        }
    }
    if server.serves_the_page() {
        Ok(())
    } else {
        bad("a good request got no page any more", &server.good())
    }
}

/// A good request changed, or one of those that are wrong in a known way.
fn request(server: &Server, random: &mut Random) -> Vec<u8> {
    let (secret, port) = (&server.secret, server.port);
    if chance(random, 60) {
        let mut request = server.good();
        mutate::bytes(random, &mut request);
        request.extend(b"\r\n\r\n");
        return request;
    }
    let method = *pick(random, &["GET", "HEAD", "POST", "PUT", "TRACE", "get", "CONNECT", ""]);
    let paths = [
        "/".to_owned(),
        "/wrong/".to_owned(),
        format!("//{secret}/"),
        format!("/{secret}/../../../../etc/passwd"),
        format!("/{secret}/%2e%2e/etc/passwd"),
        format!("http://127.0.0.1:{port}/{secret}/"),
        format!("/{}", "a".repeat(100_000)),
    ];
    let path = pick(random, &paths);
    let hosts = ["evil.example".to_owned(), format!("127.0.0.1:{port}"), String::new()];
    let host = pick(random, &hosts);
    let lines = "X: a\r\n".repeat(*pick(random, &[0, 1, 3000]));
    let version = *pick(random, &["HTTP/1.1", "HTTP/0.9", "HTTP/2.0", ""]);
    format!("{method} {path} {version}\r\nHost: {host}\r\n{lines}\r\n").into_bytes()
}

/// L1: one connection to the events of a page that is not live took a processor as long as it
/// stayed.
pub(super) fn idle_events(stage: &AttackStage) -> Held {
    let directory = stage.scratch("idle-events")?;
    let server = Server::start(stage, &directory)?;
    let mut stream = server.connect()?;
    let (secret, port) = (&server.secret, server.port);
    stream.write_all(
        format!("GET /{secret}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").as_bytes(),
    )?;
    thread::sleep(Duration::from_millis(500));
    let before = server.processor_ticks();
    thread::sleep(Duration::from_secs(2));
    let ticks = server.processor_ticks() - before;
    ensure(ticks < 30, || {
        format!("{ticks} hundredths of processor time in 2 s for one idle connection")
    })
}

/// L2: connections without the secret that got their 404 and stayed kept the browser out.
pub(super) fn refused_connections(stage: &AttackStage) -> Held {
    let directory = stage.scratch("refused")?;
    let server = Server::start(stage, &directory)?;
    let is_over = AtomicBool::new(false);
    let served = thread::scope(|scope| {
        for _ in 0..HOLDERS {
            scope.spawn(|| hold(&server, &is_over));
        }
        thread::sleep(Duration::from_millis(500));
        let served = (0..10).filter(|_| serves_at_once(&server)).count();
        is_over.store(true, Ordering::Relaxed);
        served
    });
    ensure(served >= 8, || format!("only {served} of 10 good requests were served"))?;
    ensure(wait_until(PATIENCE, || server.serves_the_page()), || {
        "the page is not served any more afterwards".to_owned()
    })
}

/// Whether a good request is answered, asked once: the server may close what waits.
fn serves_at_once(server: &Server) -> bool {
    let Ok(stream) = server.connect() else {
        return false;
    };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let mut stream = stream;
    let mut answer = Vec::new();
    stream.write_all(&server.good()).is_ok()
        && stream.read_to_end(&mut answer).is_ok()
        && is_page(&answer)
}

/// Asks for what is not there, takes the answer and stays, again and again.
fn hold(server: &Server, is_over: &AtomicBool) {
    let request = format!("GET /x HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", server.port);
    while !is_over.load(Ordering::Relaxed) {
        if let Ok(mut stream) = server.connect() {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(3)));
            let _ = stream.write_all(request.as_bytes());
            let _ = stream.read_to_end(&mut Vec::new());
            thread::sleep(Duration::from_secs(1));
        }
    }
}

/// M5: the address on the browser's command line served the first user who read it.
pub(super) fn browser_ticket(stage: &AttackStage) -> Held {
    need_admin()?;
    need(&["setpriv"])?;
    let directory = stage.scratch("ticket")?;
    give_away(&directory)?;
    let path = plain(stage, &directory, "hog_beside")?;
    give_away(&path)?;
    let (browser, seen) = (directory.join("xdg-open"), directory.join("seen"));
    let script =
        format!("#!/bin/sh\nprintf %s \"$1\" > {0}.new; mv {0}.new {0}; sleep 30\n", text(&seen));
    std::fs::write(&browser, script)?;
    std::fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let runtime = directory.join("runtime");
    std::fs::create_dir(&runtime)?;
    std::fs::set_permissions(&runtime, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    give_away(&runtime)?;
    let mut command = as_other_user(text(&stage.binary));
    command.args(words(["view", text(&path)]).iter().map(OsString::as_os_str));
    command.env("PATH", format!("{}:/usr/bin:/bin", text(&directory)));
    command.env("DISPLAY", ":0").env("HOME", &directory).env("XDG_RUNTIME_DIR", &runtime);
    let mut view = Running::silent(command)?;
    if !wait_until(PATIENCE, || seen.exists()) {
        let alive = view.is_alive();
        return Err(Stop::Failed(format!("no browser was started; view runs: {alive}")));
    }
    // What the browser was given is what every user can read on its command line.
    let address = std::fs::read_to_string(&seen)?;
    if let Some(path) = address.strip_prefix("file://") {
        let facts = std::fs::symlink_metadata(path)?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&facts.permissions()) & 0o777;
        return ensure(mode == 0o600, || format!("the browser's file has mode {mode:o}"));
    }
    let page = fetch(&address)?;
    ensure(!is_page(&page), || {
        format!("the address on the browser's command line, {address}, gives the page to anybody")
    })
}

/// Gets an address as a browser does, one redirection included.
fn fetch(address: &str) -> io::Result<Vec<u8>> {
    let rest = address.strip_prefix("http://").unwrap_or(address);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let get = |path: &str| -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.write_all(format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())?;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Ok(answer)
    };
    let answer = get(path)?;
    let head = String::from_utf8_lossy(&answer).into_owned();
    let target = head.lines().find_map(|line| line.strip_prefix("Location: "));
    match target {
        Some(target) => get(target
            .trim()
            .rsplit_once(host)
            .map_or(target.trim(), |(_, path)| path)
            .trim_start_matches('/')),
        None => Ok(answer),
    }
}
