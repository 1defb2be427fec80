//! The connections that are open: two bounded pools, so that clients without the secret never keep
//! out one that has it.
//!
//! A connection begins as unknown. It becomes known with a request that has the secret. In either
//! pool the oldest connection is closed where a new one finds it full; among the unknown those that
//! were refused go first, and one that has not asked yet has [`GRACE`] to do so.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// More connections than one page and a few streams ever need.
const KNOWN_MAX: usize = 32;

/// Each costs a thread with a small stack until it has asked or is refused.
const UNKNOWN_MAX: usize = 64;

/// How long a new connection may take to ask when others want its place. A browser needs a
/// millisecond; this many connections at once come every 20 ms at most.
const GRACE: Duration = Duration::from_millis(20);

/// The connections that are open now.
#[derive(Debug, Default)]
pub(super) struct Visitors(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    next: u64,
    /// In the order in which they came.
    unknown: Vec<Entry>,
    /// In the order in which they showed the secret.
    known: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    since: Instant,
    is_refused: bool,
    stream: TcpStream,
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub(super) struct Visit {
    visitors: Arc<Visitors>,
    number: u64,
}

impl Visitors {
    /// Counts `stream` as unknown, and closes another one where there are too many. Waits
    /// until that one had its time to ask.
    pub(super) fn admit(self: &Arc<Self>, stream: &TcpStream) -> Option<Visit> {
        let stream = stream.try_clone().ok()?;
        loop {
            let Some(pause) = self.list().make_room() else {
                break;
            };
            std::thread::sleep(pause);
        }
        let mut list = self.list();
        let number = list.next;
        list.next += 1;
        list.unknown.push(Entry { number, since: Instant::now(), is_refused: false, stream });
        Some(Visit { visitors: Arc::clone(self), number })
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List {
    /// Makes room for one unknown connection, or returns how long to wait before there can be.
    fn make_room(&mut self) -> Option<Duration> {
        if self.unknown.len() < UNKNOWN_MAX {
            return None;
        }
        let refused = self.unknown.iter().position(|entry| entry.is_refused);
        if refused.is_none() {
            let age = self.unknown[0].since.elapsed();
            if let Some(rest) = GRACE.checked_sub(age).filter(|rest| !rest.is_zero()) {
                return Some(rest);
            }
        }
        close(self.unknown.remove(refused.unwrap_or(0)));
        None
    }
}

impl Visit {
    /// The request has the secret: from now on it is closed only for others that have it too.
    pub(super) fn is_known(&self) {
        let mut list = self.visitors.list();
        let mut unknown = list.unknown.iter();
        let Some(at) = unknown.position(|entry| entry.number == self.number) else {
            return;
        };
        let entry = list.unknown.remove(at);
        if list.known.len() >= KNOWN_MAX {
            close(list.known.remove(0));
        }
        list.known.push(entry);
    }

    /// The request was refused: its place is the first that others get.
    pub(super) fn is_refused(&self) {
        let mut list = self.visitors.list();
        let mut unknown = list.unknown.iter_mut();
        if let Some(entry) = unknown.find(|entry| entry.number == self.number) {
            entry.is_refused = true;
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut list = self.visitors.list();
        let is_other = |entry: &Entry| entry.number != self.number;
        list.unknown.retain(is_other);
        list.known.retain(is_other);
    }
}

/// Ends a connection; its thread then finds the end, and goes.
fn close(entry: Entry) {
    let _ = entry.stream.shutdown(Shutdown::Both);
}
