//! The loopback server: one page and its stream of events, for a browser of this machine.
//!
//! It listens on 127.0.0.1 only, at a port that the kernel picks, and answers `GET` and `HEAD` of
//! paths that begin with a secret. A thread serves one connection and one request, and everything
//! is bounded: connections, bytes of a request, time to ask and to be answered. It is written here
//! because a general server bounds none of these.

mod reply;
mod request;
mod visitors;

use crate::live::PagePosition;
use reply::{Body, Reply};
use request::{Refusal, Request};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use visitors::{Visit, Visitors};

/// The most time to ask; a browser takes a millisecond.
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// How long one reading waits, so that the limit above is noticed.
const READ_PAUSE: Duration = Duration::from_millis(250);

/// How often a stream without news sends a comment: a failed send shows that the page has gone.
const SILENCE: Duration = Duration::from_secs(5);

/// The least time between two questions for news, also of a site that does not wait for them.
const NEWS_PAUSE: Duration = Duration::from_millis(100);

/// How long a page waits before it asks for the stream again.
const RETRY_MS: u32 = 1_000;

/// What a server shows.
pub trait Site: Send + Sync {
    /// The page; `None` where it cannot be made now.
    fn page(&self) -> Option<Arc<String>>;

    /// The next event of a page that has all before `place`, and its place afterwards. Waits a
    /// while for news; `None` if none came.
    fn event(&self, place: PagePosition) -> Option<(String, PagePosition)>;

    /// Whether no event will follow after `place`.
    fn has_ended(&self, place: PagePosition) -> bool;
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    port: u16,
    secret: String,
    was_fetched: Arc<AtomicBool>,
}

impl Server {
    /// Listens. A client that knows `secret` gets the page.
    ///
    /// # Errors
    /// When the kernel has no port.
    pub fn listen(secret: String) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        Ok(Self {
            port: listener.local_addr()?.port(),
            listener,
            secret,
            was_fetched: Arc::default(),
        })
    }

    /// The address of the page.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.secret)
    }

    /// Becomes true once a client has asked for the page with the secret.
    #[must_use]
    pub fn was_fetched(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.was_fetched)
    }

    /// Serves `site` until the process ends.
    pub fn serve(self, site: Arc<dyn Site>) {
        let server = Arc::new(self);
        let visitors = Arc::new(Visitors::default());
        loop {
            let Ok((stream, _)) = server.listener.accept() else {
                // No descriptors left, most likely: others will be closed.
                std::thread::sleep(READ_PAUSE);
                continue;
            };
            let Some(visit) = visitors.admit(&stream) else {
                continue;
            };
            let (server, site) = (Arc::clone(&server), Arc::clone(&site));
            let name = "viewer".to_owned();
            // Without a thread the connection is dropped, and with it closed.
            let _ = std::thread::Builder::new()
                .name(name)
                .spawn(move || server.attend(&stream, &*site, &visit));
        }
    }

    /// One connection: a request and its answer.
    fn attend(&self, stream: &TcpStream, site: &dyn Site, visit: &Visit) {
        // A stream that cannot be bounded is not served.
        if stream.set_read_timeout(Some(READ_PAUSE)).is_err() {
            return;
        }
        let deadline = Instant::now() + ASK_LIMIT;
        let head = request::read_head(&mut &*stream, deadline);
        let request = match head {
            Ok(None) => return,
            Ok(Some(head)) => request::parse(&head, self.port),
            Err(refusal) => Err(refusal),
        };
        let answer = request.and_then(|request| self.answer(&request, stream, site, visit));
        if let Err(Refusal(status, why)) = answer {
            visit.is_refused();
            // A client that has gone does not need the refusal.
            let _ = Reply::new(status, Body::Line(why)).send(stream, false);
        }
    }

    fn answer(
        &self,
        request: &Request,
        stream: &TcpStream,
        site: &dyn Site,
        visit: &Visit,
    ) -> Result<(), Refusal> {
        const NOT_HERE: Refusal = Refusal("404 Not Found", "nothing is here");
        let path = request.path.trim_start_matches('/');
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        if !is_same(first, &self.secret) || !request.path.starts_with('/') {
            return Err(NOT_HERE);
        }
        visit.is_known();
        // A client that goes away in the middle of its answer is no fault of ours.
        let _ = match rest {
            "" if request.path.ends_with('/') => {
                let page = site.page().ok_or(NO_PAGE)?;
                self.was_fetched.store(true, Ordering::Relaxed);
                Reply::new("200 OK", Body::Page(&page)).send(stream, request.head_only)
            }
            "events" => stream_events(request, stream, site),
            _ => return Err(NOT_HERE),
        };
        Ok(())
    }
}

/// The path that a request asks a server at `port` for; `None` when nothing was asked. The fuzzer
/// calls this in place of a connection.
///
/// # Errors
/// The status of the refusal.
pub fn path_asked(mut source: impl io::Read, port: u16) -> Result<Option<String>, &'static str> {
    let head = request::read_head(&mut source, Instant::now() + ASK_LIMIT);
    let asked = head.and_then(|head| head.map(|head| request::parse(&head, port)).transpose());
    asked.map(|request| request.map(|request| request.path)).map_err(|Refusal(status, _)| status)
}

const NO_PAGE: Refusal = Refusal("500 Internal Server Error", "the page cannot be made");

/// Sends events until there are no more, or the page has gone. Where nothing will follow, an
/// empty answer makes a browser not ask again.
fn stream_events(request: &Request, stream: &TcpStream, site: &dyn Site) -> io::Result<()> {
    let asked = request.query.strip_prefix("from=");
    let mut place: PagePosition = request
        .last_event
        .as_deref()
        .or(asked)
        .and_then(|place| place.parse().ok())
        .unwrap_or_default();
    // The end itself is an event of a recording that was followed.
    if site.has_ended(place) && site.event(place).is_none() {
        return Reply::new("204 No Content", Body::Nothing).send(stream, request.head_only);
    }
    let reply = Reply::new("200 OK", Body::Stream);
    reply.send(stream, request.head_only)?;
    if request.head_only {
        return Ok(());
    }
    reply::write_all(stream, format!("retry: {RETRY_MS}\n\n").as_bytes())?;
    let mut silent_since = Instant::now();
    loop {
        let asked = Instant::now();
        let event = site.event(place);
        let has_news = event.is_some();
        if let Some((event, after)) = event {
            let text = format!("id: {after}\ndata: {event}\n\n");
            reply::write_all(stream, text.as_bytes())?;
            (place, silent_since) = (after, Instant::now());
        }
        if site.has_ended(place) {
            return Ok(());
        }
        if has_news {
            continue;
        }
        if silent_since.elapsed() >= SILENCE {
            reply::write_all(stream, b":\n\n")?;
            silent_since = Instant::now();
        }
        std::thread::sleep(NEWS_PAUSE.saturating_sub(asked.elapsed()));
    }
}

/// Whether two words are the same, found out in the same time wherever they differ.
fn is_same(word: &str, secret: &str) -> bool {
    let pairs = word.bytes().zip(secret.bytes());
    let differences = pairs.fold(0, |all, (one, other)| all | (one ^ other));
    word.len() == secret.len() && differences == 0
}
