//! The loopback server against clients that it is not meant for: wrong paths, names, methods, sizes
//! and idlers are refused with one line, and the page is still there afterwards.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use viewer::live::PagePosition;
use viewer::{Server, Site};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const PAGE: &str = "<!doctype html><title>the page</title>";

/// A page, and the requested number of events.
struct Made {
    events: u64,
}

impl Site for Made {
    fn page(&self) -> Option<Arc<String>> {
        Some(Arc::new(PAGE.to_owned()))
    }

    fn event(&self, place: PagePosition) -> Option<(String, PagePosition)> {
        let samples = place.samples + 1;
        Some((format!("{{\"from_sample\":{}}}", place.samples), PagePosition { samples, ..place }))
    }

    fn has_ended(&self, place: PagePosition) -> bool {
        place.samples as u64 >= self.events
    }
}

/// The port of a server of its own, whose stream ends after `events` events.
fn served(events: u64) -> u16 {
    serving(Made { events })
}

/// The port of a server of its own that shows `site`.
fn serving(site: impl Site + 'static) -> u16 {
    let server = Server::listen(SECRET.to_owned()).unwrap();
    let address = server.address();
    std::thread::spawn(move || server.serve(Arc::new(site)));
    let rest = address.strip_prefix("http://127.0.0.1:").unwrap();
    let (port, path) = rest.split_once('/').unwrap();
    assert_eq!(path, format!("{SECRET}/"));
    port.parse().unwrap()
}

/// Sends `request` and reads to the end.
fn answer(port: u16, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn get(port: u16, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    answer(port, head.as_bytes())
}

fn page_is_there(port: u16) {
    let text = get(port, &format!("/{SECRET}/"));
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.ends_with(PAGE), "{text}");
}

/// A refusal: this status, and one line of words that begins with the program's name.
#[track_caller]
fn refused(text: &str, status: &str) {
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
    assert!(body.starts_with("terrace: ") && body.ends_with('\n'), "{text}");
    assert_eq!(body.lines().count(), 1, "{text}");
    assert!(!text.contains("the page"), "{text}");
}

#[test]
fn the_page_comes_with_what_protects_it() {
    let port = served(0);
    let text = get(port, &format!("/{SECRET}/"));
    for header in [
        "Content-Security-Policy: default-src 'none';",
        "frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer",
        "Cache-Control: no-store",
        "X-Frame-Options: DENY",
    ] {
        assert!(text.contains(header), "{header}: {text}");
    }
    assert!(!text.contains("Access-Control-Allow"), "{text}");
    let head = format!("HEAD /{SECRET}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n");
    let text = answer(port, head.as_bytes());
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n"), "{text}");
    assert!(text.contains(&format!("Content-Length: {}\r\n", PAGE.len())), "{text}");
}

#[test]
fn requests_without_the_secret_are_refused() {
    let port = served(0);
    let wrong = SECRET.replace('0', "1");
    for path in [
        "/".to_owned(),
        "/favicon.ico".to_owned(),
        format!("/{wrong}/"),
        format!("/{}/", &SECRET[1..]),
        format!("/{SECRET}"),
        format!("/{SECRET}/other"),
        format!("/{SECRET}/../../../etc/passwd"),
        format!("/{SECRET}/..%2f..%2fetc/passwd"),
        format!("//{SECRET}/../x"),
        "/../../etc/passwd".to_owned(),
        "/events".to_owned(),
        format!("/{wrong}/events"),
    ] {
        refused(&get(port, &path), "404");
    }
    page_is_there(port);
}

#[test]
fn foreign_names_other_methods_and_nonsense_are_refused() {
    let port = served(0);
    let own = format!("Host: 127.0.0.1:{port}");
    let path = format!("/{SECRET}/");
    for (request, status) in [
        (format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "421"),
        (format!("GET {path} HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"), "421"),
        (format!("GET {path} HTTP/1.1\r\n\r\n"), "400"),
        (format!("POST {path} HTTP/1.1\r\n{own}\r\nContent-Length: 4\r\n\r\nbody"), "405"),
        (format!("DELETE {path} HTTP/1.1\r\n{own}\r\n\r\n"), "405"),
        (format!("OPTIONS {path} HTTP/1.1\r\n{own}\r\n\r\n"), "405"),
        ("\u{16}\u{3}\u{1}\r\n\r\n".to_owned(), "400"),
        (format!("GET {path} HTTP/1.1\r\n{own}\r\nX: {}\r\n\r\n", "a".repeat(1 << 20)), "431"),
        ("a".repeat(1 << 20), "431"),
    ] {
        refused(&answer(port, request.as_bytes()), status);
    }
    page_is_there(port);
}

#[test]
fn idlers_make_room_for_who_asks() {
    let port = served(0);
    let connect = |_| TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut idle: Vec<TcpStream> = (0..200).map(connect).collect();
    for stream in &mut idle[100..] {
        // Half a request is no better than none; the connection may be closed already.
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: ");
    }
    page_is_there(port);
    drop(idle);
    page_is_there(port);
}

/// 404s lock out no client: 200 clients without the secret ask, are refused, stay as long as they
/// can and come back at once. Half of them never ask.
#[test]
fn clients_without_the_secret_keep_out_none_that_has_it() {
    const CLIENTS: usize = 200;
    const GOOD: usize = 40;
    let port = served(0);
    let is_over = Arc::new(AtomicBool::new(false));
    let refusals = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (is_over, refusals) = (Arc::clone(&is_over), Arc::clone(&refusals));
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let linger = |mut stream: TcpStream| -> std::io::Result<()> {
                        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
                        if number % 2 == 0 {
                            let head = format!("GET /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
                            stream.write_all(head.as_bytes())?;
                        }
                        let mut answer = [0; 4096];
                        // Until the server ends it; the client never does.
                        while stream.read(&mut answer)? > 0 {
                            refusals.fetch_add(1, Ordering::Relaxed);
                        }
                        std::thread::sleep(Duration::from_millis(100));
                        Ok(())
                    };
                    let _ = TcpStream::connect(("127.0.0.1", port)).and_then(linger);
                }
            })
        })
        .collect();
    while refusals.load(Ordering::Relaxed) < CLIENTS {
        std::thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..GOOD {
        page_is_there(port);
    }
    is_over.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().unwrap());
}

/// A page that is not live has no events: what asks for them is answered and goes.
#[test]
fn a_stream_that_has_nothing_to_say_ends_at_once() {
    struct Still;
    impl Site for Still {
        fn page(&self) -> Option<Arc<String>> {
            Some(Arc::new(PAGE.to_owned()))
        }
        fn event(&self, _: PagePosition) -> Option<(String, PagePosition)> {
            None
        }
        fn has_ended(&self, _: PagePosition) -> bool {
            true
        }
    }
    let port = serving(Still);
    let text = get(port, &format!("/{SECRET}/events"));
    assert!(text.starts_with("HTTP/1.1 204 "), "{text}");
    page_is_there(port);
}

/// Also a site that does not wait for news, as it should, costs no processor.
#[test]
fn a_stream_without_news_asks_for_them_with_pauses() {
    struct Silent(Arc<AtomicUsize>);
    impl Site for Silent {
        fn page(&self) -> Option<Arc<String>> {
            None
        }
        fn event(&self, _: PagePosition) -> Option<(String, PagePosition)> {
            self.0.fetch_add(1, Ordering::Relaxed);
            None
        }
        fn has_ended(&self, _: PagePosition) -> bool {
            false
        }
    }
    let asked = Arc::new(AtomicUsize::new(0));
    let port = serving(Silent(Arc::clone(&asked)));
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head = format!("GET /{SECRET}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let started = Instant::now();
    std::thread::sleep(Duration::from_secs(1));
    let most = started.elapsed().as_millis() / 100 + 2;
    let asked = asked.load(Ordering::Relaxed);
    assert!((1..=most).contains(&(asked as u128)), "{asked}");
}

#[test]
fn a_stream_tells_each_event_with_its_place_and_goes_on_from_one() {
    let port = served(3);
    let text = get(port, &format!("/{SECRET}/events?from=1.0.0.0.0.0.0.0"));
    assert!(text.contains("\r\nContent-Type: text/event-stream\r\n"), "{text}");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("data: ")).collect();
    assert_eq!(lines, ["data: {\"from_sample\":1}", "data: {\"from_sample\":2}"]);
    assert!(text.contains("id: 3.0.0.0.0.0.0.0\n"), "{text}");
    let back = format!(
        "GET /{SECRET}/events?from=0.0.0.0.0.0.0.0 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nLast-Event-ID: 2.0.0.0.0.0.0.0\r\n\r\n"
    );
    let text = answer(port, back.as_bytes());
    assert_eq!(text.matches("data: ").count(), 1, "{text}");
}

/// A page that is closed costs nothing for long: its place is given to others.
#[test]
fn streams_that_are_not_read_free_their_places() {
    let port = served(u64::MAX);
    for _ in 0..100 {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let head = format!("GET /{SECRET}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut first = String::new();
        BufReader::new(&stream).read_line(&mut first).unwrap();
        assert_eq!(first, "HTTP/1.1 200 OK\r\n");
    }
    page_is_there(port);
}
