//! Who is connected: a bounded number, and who has not asked yet makes room for who comes.
//!
//! Programs that connect and say nothing could keep a browser out; so the longest of them that waits
//! is closed when all places are taken.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More connections than one page and a few streams ever need.
const PLACES: usize = 32;

/// The connections that are served now.
#[derive(Debug, Default)]
pub(super) struct Visitors(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    next: u64,
    /// In the order in which they came; with the connection while nothing was asked.
    present: Vec<(u64, Option<TcpStream>)>,
}

/// A place that is taken until this goes.
#[derive(Debug)]
pub(super) struct Visit {
    visitors: Arc<Visitors>,
    number: u64,
}

impl Visitors {
    /// A place for `stream`; `None` where all are taken by others that are being answered.
    pub(super) fn admit(self: &Arc<Self>, stream: &TcpStream) -> Option<Visit> {
        let waiting = stream.try_clone().ok()?;
        let mut list = self.list();
        if list.present.len() >= PLACES {
            let mut present = list.present.iter();
            let oldest = present.position(|(_, waiting)| waiting.is_some())?;
            if let (_, Some(waiting)) = list.present.remove(oldest) {
                // Its thread then finds the end of the connection, and goes.
                let _ = waiting.shutdown(Shutdown::Both);
            }
        }
        let number = list.next;
        list.next += 1;
        list.present.push((number, Some(waiting)));
        Some(Visit {
            visitors: Arc::clone(self),
            number,
        })
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visit {
    /// From now on it is being answered, and is not closed for others.
    pub(super) fn has_asked(&self) {
        let mut list = self.visitors.list();
        let mut present = list.present.iter_mut();
        if let Some((_, waiting)) = present.find(|(number, _)| *number == self.number) {
            *waiting = None;
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut list = self.visitors.list();
        list.present.retain(|(number, _)| *number != self.number);
    }
}
