//! The sampling thread as its caller sees it: it is started (the first sample has been taken by
//! then), given marks, asked for the last sample, and closed.
//!
//! `thread` has what the thread does. A fault of the recording ends the sampling and nothing else:
//! the thread then only waits until the caller asks for the recording.

mod joiners;
mod recorder;
mod thread;
mod whole_microseconds;

use super::{RecordOptions, marks};
use crate::collect::Scope;
use crate::sink::RecordSink;
use crate::tasks::TaskScope;
use crate::work::WorkCounter;
use crate::{Error, ErrorKind, Result};
use model::recording::{Ending, Facts, Recording, ServerFacts, Usage};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;
use thread::SamplerThread;

/// What a sampler is to do.
#[derive(Debug)]
pub(super) struct Assignment {
    /// How to watch.
    pub watch: RecordOptions,
    /// What is known so far; the sources add to it.
    pub facts: Facts,
    /// Whom to watch.
    pub watched: Watched,
    /// The counter of its work, if there is one.
    pub work: Option<WorkCounter>,
    /// What the recording is for.
    pub purpose: RecordingPurpose,
    /// CPU time that this process had used before it began to prepare.
    pub cpu_before_ns: u64,
}

/// Whose counters, events and tasks are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    /// For the collectors.
    pub scope: Scope,
    /// For delay accounting; `None` if it is not wanted.
    pub tree: Option<TaskScope>,
    /// For events: the processes at the top, `None` for all. A group may have none yet.
    pub traced: Option<Vec<u32>>,
}

/// What a recording is for, as far as the sampler has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordingPurpose {
    /// The verdict on a command, which must run on whatever happens to the recording.
    Command,
    /// A file: the recording ends when its file was removed.
    File,
    /// A viewer in this process: takes no marks, so it leaves no socket however it ends.
    Viewer,
    /// A probe of this process, whose memory and processors must stay as they are, and whose CPU
    /// time is not the recorder's.
    Probe,
}

/// How the subject ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended {
    /// Why.
    pub ending: Ending,
    /// When it was noticed, by the steady clock; the last sample where absent.
    pub at_ns: Option<u64>,
    /// The process that ended, and when it began, by the steady clock. The kernel's own time of its
    /// end may be long before it was noticed.
    pub process: Option<(u32, u64)>,
    /// What `wait4` reported.
    pub usage: Option<Usage>,
}

/// What the caller asks of the thread.
#[derive(Debug)]
enum SamplerRequest {
    Mark(String),
    /// How much of its work the subject has done, in words.
    Progress(String),
    /// The servers of the command.
    Servers(Vec<ServerFacts>),
    /// To be answered when it has been taken.
    LastSample(SyncSender<()>),
    Close(Box<Ended>),
    /// Nothing was recorded: the file goes.
    Discard,
}

/// What the thread reports while it works.
#[derive(Debug)]
enum News {
    /// For a person.
    Text(String),
    /// Nothing more is recorded.
    Stopped,
}

/// A sampler at work.
#[derive(Debug)]
pub(super) struct Sampler {
    requests: Sender<SamplerRequest>,
    wake: UnixStream,
    news: Receiver<News>,
    /// How often the thread has gone round its loop.
    turns: Arc<AtomicU64>,
    /// Gives the recording, unless it is discarded; `None` once it was asked to end.
    thread: Option<JoinHandle<Option<Recording>>>,
}

impl Sampler {
    /// Starts the thread with the sink that `open` makes; returns when the first sample has been
    /// taken.
    ///
    /// # Errors
    /// When the recording cannot be made.
    pub fn start<S: RecordSink>(
        assignment: Assignment,
        open: impl FnOnce(&Facts) -> Result<S> + Send + 'static,
    ) -> Result<Self> {
        let words = |error: std::io::Error| {
            Error::new(ErrorKind::Failed, "start the recorder", sys::plain_reason(&error))
        };
        let (wake, woken) = UnixStream::pair().map_err(words)?;
        woken.set_nonblocking(true).map_err(words)?;
        let (requests, received) = mpsc::channel();
        let (report, news) = mpsc::channel();
        let (tell, ready) = mpsc::sync_channel(1);
        let turns = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&turns);
        let body = move || match SamplerThread::prepare(assignment, open, report) {
            Ok(thread) => {
                let _ = tell.send(Ok(()));
                let requests = received;
                thread.run(&Inbox { requests, woken }, &counter)
            }
            Err(error) => {
                let _ = tell.send(Err(error));
                None
            }
        };
        let named = std::thread::Builder::new().name("sampler".to_owned());
        let thread = named.spawn(body).map_err(words)?;
        ready.recv().map_err(|_| gone())??;
        Ok(Self { requests, wake, news, turns, thread: Some(thread) })
    }

    /// Puts a mark into the recording.
    pub fn mark(&self, text: &str) {
        self.tell(SamplerRequest::Mark(marks::clipped(text).to_owned()));
    }

    /// Notes how much work is done. Wakes nothing: it is written with the next sample, the last one
    /// of a second.
    pub fn progress(&self, text: String) {
        // A thread that is gone is noticed when the recording is closed.
        let _ = self.requests.send(SamplerRequest::Progress(text));
    }

    /// Adds the servers of the command to the facts.
    pub fn note_servers(&self, servers: Vec<ServerFacts>) {
        self.tell(SamplerRequest::Servers(servers));
    }

    /// Takes the last sample; returns when it has been taken.
    pub fn take_last_sample(&self) {
        let (tell, taken) = mpsc::sync_channel(1);
        self.tell(SamplerRequest::LastSample(tell));
        // A thread that failed lets go of its end, too.
        let _ = taken.recv();
    }

    /// Ends the recording and gives it.
    ///
    /// # Errors
    /// Only when the thread failed.
    pub fn close(mut self, ended: Ended) -> Result<Recording> {
        self.end(SamplerRequest::Close(Box::new(ended))).ok_or_else(gone)
    }

    /// Ends a recording of nothing, and removes its file.
    pub fn discard(mut self) {
        self.end(SamplerRequest::Discard);
    }

    fn end(&mut self, request: SamplerRequest) -> Option<Recording> {
        let thread = self.thread.take()?;
        self.tell(request);
        thread.join().ok().flatten()
    }

    /// Hands on what the thread has to say; whether it still records.
    pub fn hear(&self, mut each: impl FnMut(&str)) -> bool {
        let mut is_recording = true;
        for news in self.news.try_iter() {
            match news {
                News::Text(text) => each(&text),
                News::Stopped => is_recording = false,
            }
        }
        is_recording
    }

    /// How often the thread has gone round its loop: it grows with each sample, and stops growing
    /// where the thread hangs.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Whether the thread is gone without a word.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    fn tell(&self, request: SamplerRequest) {
        // A thread that is gone is noticed when the recording is closed.
        let _ = self.requests.send(request);
        let _ = (&self.wake).write(b"w");
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end(SamplerRequest::Close(Box::default()));
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Failed, "record", "the recorder's thread failed")
}

/// Where the thread receives requests.
#[derive(Debug)]
struct Inbox {
    requests: Receiver<SamplerRequest>,
    woken: UnixStream,
}

impl Inbox {
    /// The next request, if there is one. A caller that is gone wants the recording closed.
    fn next(&self) -> Option<SamplerRequest> {
        match self.requests.try_recv() {
            Ok(request) => Some(request),
            Err(mpsc::TryRecvError::Empty) => None,
            Err(mpsc::TryRecvError::Disconnected) => Some(SamplerRequest::Close(Box::default())),
        }
    }

    fn clear(&self) {
        let mut bytes = [0; 64];
        while (&self.woken).read(&mut bytes).is_ok_and(|read| read == bytes.len()) {}
    }
}
