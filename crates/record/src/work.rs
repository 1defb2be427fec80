//! What a server or program has done, by a counter of its own: transactions, commands, requests.
//!
//! A thread of its own reads the counter once a second and whenever a sample asks for it, so a
//! server that hangs never holds up the sampler: its value is then absent. A source that cannot be
//! read at the start is an error before anything is recorded. Which sources there are is in `spec`;
//! how each is read is in the files beside it.

mod command;
mod number;
mod postgres;
mod socket;
mod spec;

pub use spec::WorkSpec;

use crate::registry::{ABSENT, Registry, Row};
use crate::{Error, ErrorKind, Result};
use command::CommandSource;
use model::recording::SeriesKind;
use postgres::Postgres;
use spec::WorkSource;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The names of all series of work start so.
pub(crate) const WORK: &str = "work.";

/// How often the counter is read.
const PERIOD: Duration = Duration::from_secs(1);

/// A server gets so long for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// The first answer, with the connection, may take so long.
const START_LIMIT: Duration = Duration::from_secs(5);

/// The first and the last sample wait so long for a fresh value.
const FRESH_LIMIT: Duration = Duration::from_millis(300);

/// A value that was read longer ago than this is absent.
const STALE_NS: u64 = 3_500_000_000;

/// A command that is being killed gets so long.
const END_LIMIT: Duration = Duration::from_millis(300);

/// The longest text of a server that becomes part of an error.
const LONGEST_ANSWER: usize = 200;

/// What the thread has read last.
#[derive(Debug)]
struct Latest {
    value: AtomicI64,
    read_ns: AtomicU64,
    fault: Mutex<Option<String>>,
    is_ending: AtomicBool,
}

/// A counter of work that is being read.
#[derive(Debug)]
pub(crate) struct WorkCounter {
    series: String,
    source: &'static str,
    latest: Arc<Latest>,
    requests: Option<Sender<()>>,
    answers: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

/// Reads a counter again and again.
trait WorkReader: Send {
    /// Its value now; in words why it cannot be read.
    fn read(&mut self, is_ending: &AtomicBool) -> std::result::Result<i64, String>;
}

impl WorkCounter {
    /// Starts to read; returns when the first value has been read. With `may_appear` a file that
    /// does not exist counts 0: the command that is to be run makes it.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`], in one line, when it cannot be read.
    pub fn start(spec: &WorkSpec, may_appear: bool) -> Result<Self> {
        let failed = |why: String| {
            Error::new(ErrorKind::Usage, format!("read the work of --work {}", spec.word()), why)
        };
        let latest = Arc::new(Latest {
            value: AtomicI64::new(ABSENT),
            read_ns: AtomicU64::new(0),
            fault: Mutex::default(),
            is_ending: AtomicBool::new(false),
        });
        let (requests, asked) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let (first, ready) = mpsc::channel();
        let (of_thread, shared) = (spec.source().clone(), Arc::clone(&latest));
        let body = move || {
            let mut reader = reader(of_thread, may_appear);
            let read = read_once(reader.as_mut(), &shared);
            // A caller that waited too long takes no answer.
            let _ = first.send(read);
            keep_reading(reader.as_mut(), &shared, &asked, &answer);
        };
        let named = std::thread::Builder::new().name("work".to_owned());
        let thread = named.spawn(body).map_err(|error| failed(sys::plain_reason(&error)))?;
        let counter = Self {
            series: format!("{WORK}{}", spec.name()),
            source: spec.source().words(),
            latest,
            requests: Some(requests),
            answers,
            thread: Some(thread),
        };
        match ready.recv_timeout(START_LIMIT) {
            Ok(Ok(())) => Ok(counter),
            Ok(Err(why)) => Err(failed(why)),
            Err(_) => {
                let limit = START_LIMIT.as_secs();
                Err(failed(format!("{} gave no answer within {limit} s", spec.source().words())))
            }
        }
    }

    /// The number of its series.
    pub fn register(&self, registry: &mut Registry) -> Option<u32> {
        registry.id(&self.series, "count", SeriesKind::Counter, self.source)
    }

    /// Notes the value that was read last; with `is_fresh` waits a moment for one of now.
    pub fn sample(&self, is_fresh: bool, id: u32, row: &mut Row) {
        if is_fresh && let Some(requests) = &self.requests {
            while self.answers.try_recv().is_ok() {}
            // A thread that is gone has left its last value.
            let _ = requests.send(());
            let _ = self.answers.recv_timeout(FRESH_LIMIT);
        }
        let read_ns = self.latest.read_ns.load(Ordering::Acquire);
        let is_stale = sys::clock::now_ns().saturating_sub(read_ns) > STALE_NS;
        let value = self.latest.value.load(Ordering::Acquire);
        row.set(id, if is_stale { ABSENT } else { value });
    }

    /// Why it could not be read at some time, in words.
    pub fn fault(&self) -> Option<String> {
        self.latest.fault.lock().ok()?.clone()
    }
}

impl Drop for WorkCounter {
    /// Ends the thread and a command that it runs; a server that hangs is not waited for.
    fn drop(&mut self) {
        self.latest.is_ending.store(true, Ordering::Release);
        self.requests = None;
        let Some(thread) = self.thread.take() else { return };
        let until = Instant::now() + END_LIMIT;
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn reader(source: WorkSource, may_appear: bool) -> Box<dyn WorkReader> {
    match source {
        WorkSource::Postgres { column } => Box::new(Postgres::new(column)),
        WorkSource::Redis { field, server } => Box::new(socket::Redis { field, server }),
        WorkSource::Nginx { address, host, path } => {
            Box::new(socket::Nginx { address, host, path })
        }
        WorkSource::File { path, key } => Box::new(number::FileSource { path, key, may_appear }),
        WorkSource::Mysql { variable } => Box::new(CommandSource::of_mysql(&variable)),
        WorkSource::Command { line } => Box::new(CommandSource::new(line)),
    }
}

fn read_once(reader: &mut dyn WorkReader, latest: &Latest) -> std::result::Result<(), String> {
    let read = reader.read(&latest.is_ending).map_err(|why| cleaned(&why));
    latest.value.store(*read.as_ref().unwrap_or(&ABSENT), Ordering::Release);
    latest.read_ns.store(sys::clock::now_ns(), Ordering::Release);
    let why = read.map(drop);
    if let (Err(why), Ok(mut fault)) = (&why, latest.fault.lock()) {
        *fault = Some(why.clone());
    }
    why
}

/// Reads once a second, and at each request, until the counter is dropped.
fn keep_reading(
    reader: &mut dyn WorkReader,
    latest: &Latest,
    asked: &Receiver<()>,
    answer: &Sender<()>,
) {
    let mut due = Instant::now() + PERIOD;
    loop {
        match asked.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Disconnected) => return,
            request => {
                let _ = read_once(reader, latest);
                if request.is_ok() {
                    let _ = answer.send(());
                } else {
                    due = (due + PERIOD).max(Instant::now());
                }
            }
        }
    }
}

/// A text of another program in one line without control characters, and not longer than an error.
fn cleaned(text: &str) -> String {
    let is_unsafe =
        |letter: char| letter.is_control() || ('\u{202a}'..='\u{202e}').contains(&letter);
    let plain: String = text.chars().map(|it| if is_unsafe(it) { ' ' } else { it }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ").chars().take(LONGEST_ANSWER).collect()
}

#[cfg(test)]
mod tests;
