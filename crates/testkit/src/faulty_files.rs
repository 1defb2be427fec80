//! A directory whose files fail by a plan: a file system in user space that mirrors a directory of
//! the test, with faults in between. Needs root and /dev/fuse.
//!
//! 1. A thread takes each request from the kernel. Reads, writes and fsync of files are judged by
//!    the [`FaultPlan`] first; everything else is only refused after [`FaultyFiles::unplug`].
//! 2. What is served is done to the real directory (`tree`). It must not be on this mount, nor
//!    on a device above it: the server would wait for itself.
//! 3. A request that hangs waits in a thread of its own; others are served meanwhile.
//!
//! No links, special files or extended attributes can be made, as on FAT.

use crate::TempDir;
use crate::cut_disk::DiskChange;
use crate::disk_model::{DiskRequest, RequestKind};
use crate::fault_plan::{FaultPlan, FileFault, Judgement};
use crate::fuse_leftovers::remove_leftovers;
use crate::fuse_mount::{mount, unmount};
use serve::fuse::channel::RootKind;
use serve::fuse::protocol::{
    FileRequestKind, HEADER_IN, REQUEST_ROOM, WRITE_DATA, errno, init_body, number32, number64,
    opcode, parse, unique,
};
use serve::fuse::{Channel, Received};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tree::Tree;

mod tree;

/// How the kernel treats open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// As of any file system.
    PageCache,
    /// Each request of a program arrives here as it is.
    Never,
}

/// The mirror of a directory; unmounted on drop, also on a panic.
#[derive(Debug)]
pub struct FaultyFiles {
    point: PathBuf,
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
    directory: Option<TempDir>,
}

impl FaultyFiles {
    /// Mounts a mirror of `real`, a directory that stays the caller's.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn over(real: &Path, plan: FaultPlan) -> Result<Self, String> {
        Self::mount(TempDir::new(), real, plan, Caching::PageCache)
    }

    /// Mounts one in `directory`, where `real` may be too.
    pub(crate) fn mount(
        directory: TempDir,
        real: &Path,
        plan: FaultPlan,
        caching: Caching,
    ) -> Result<Self, String> {
        if !crate::is_root() {
            return Err("root".to_owned());
        }
        remove_leftovers();
        let point = directory.join("faulty");
        std::fs::create_dir(&point).map_err(|error| format!("a mount point: {error}"))?;
        let channel = Channel::open().map_err(|error| error.to_string())?;
        mount(&channel, &point, RootKind::Directory)?;
        let server = Arc::new(Server::new(channel, Tree::new(real, caching), plan));
        let serving = Arc::clone(&server);
        // From here on `Drop` unmounts.
        let mut files = Self { point, server, thread: None, directory: Some(directory) };
        let thread = std::thread::Builder::new()
            .name("faulty-files".to_owned())
            .spawn(move || serving.serve())
            .map_err(|error| format!("a thread: {error}"))?;
        files.thread = Some(thread);
        Ok(files)
    }

    /// Where the mirror is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// Replaces the plan, and gives the one before. Numbers of requests count from here, and what
    /// the plan removed is there again.
    pub fn set_plan(&self, plan: FaultPlan) -> FaultPlan {
        let mut state = self.server.state();
        state.removed = false;
        state.requests.clear();
        std::mem::replace(&mut state.plan, plan)
    }

    pub(crate) fn plan(&self) -> FaultPlan {
        self.server.state().plan.clone()
    }

    /// From now on every request fails with `ENODEV`, until [`Self::plug`].
    pub fn unplug(&self) {
        self.server.state().removed = true;
    }

    /// Requests are served again.
    pub fn plug(&self) {
        self.server.state().removed = false;
    }

    /// Serves all requests that hang.
    pub fn release(&self) {
        let mut state = self.server.state();
        state.releases += 1;
        self.server.released.notify_all();
    }

    /// Waits up to `limit` until a request hangs; whether one does.
    #[must_use]
    pub fn wait_for_hang(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while self.server.state().hanging == 0 {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// All reads, writes and flushes since the plan was set, in order, also those that failed.
    #[must_use]
    pub fn requests(&self) -> Vec<DiskRequest> {
        self.server.state().requests.clone()
    }
}

impl FaultyFiles {
    /// From now on writes and flushes are kept.
    pub(crate) fn record(&self) {
        self.server.state().recorded = Some(Vec::new());
    }

    /// How many were kept.
    pub(crate) fn recorded_changes(&self) -> usize {
        self.server.state().recorded.as_ref().map_or(0, Vec::len)
    }

    /// What was kept; nothing is any more.
    pub(crate) fn take_recorded(&self) -> Vec<DiskChange> {
        self.server.state().recorded.take().unwrap_or_default()
    }

    /// A path in the directory of the mount point, which goes with it.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.point.with_file_name(name)
    }

    /// Whether requests hang as the plan says. If not, those that do are served.
    pub(crate) fn may_hang(&self, may: bool) {
        self.server.state().may_hang = may;
        self.server.released.notify_all();
    }
}

impl Drop for FaultyFiles {
    fn drop(&mut self) {
        self.may_hang(false);
        if unmount(&self.point) {
            // The kernel has closed the connection, so the thread ends.
            let _ = self.thread.take().map(JoinHandle::join);
        } else {
            // To remove it would remove the real files through the mirror.
            std::mem::forget(self.directory.take());
        }
    }
}

#[derive(Debug)]
struct Server {
    channel: Channel,
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug)]
struct State {
    tree: Tree,
    plan: FaultPlan,
    requests: Vec<DiskRequest>,
    /// Writes and flushes that were done, if they are kept.
    recorded: Option<Vec<DiskChange>>,
    removed: bool,
    /// Requests hang as the plan says.
    may_hang: bool,
    hanging: u64,
    releases: u64,
}

impl Server {
    fn new(channel: Channel, tree: Tree, plan: FaultPlan) -> Self {
        let state = State {
            tree,
            plan,
            requests: Vec::new(),
            recorded: None,
            removed: false,
            may_hang: true,
            hanging: 0,
            releases: 0,
        };
        Self { channel, state: Mutex::new(state), released: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A request that panicked was answered with an error; the next one finds what it left.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers until the file system is unmounted.
    fn serve(self: &Arc<Self>) {
        let mut room = vec![0; REQUEST_ROOM];
        loop {
            match self.channel.receive(&mut room) {
                Received::Request(request) if request.len() >= HEADER_IN => {
                    self.answer_or_fail(request);
                }
                Received::Nothing => {}
                Received::Request(_) | Received::Ended => return,
            }
        }
    }

    /// A program must not wait for a server that panicked.
    fn answer_or_fail(self: &Arc<Self>, request: &[u8]) {
        let answered = std::panic::catch_unwind(AssertUnwindSafe(|| self.answer(request)));
        if answered.is_err() {
            self.channel.answer(unique(request), errno::EIO, &[]);
        }
    }

    fn answer(self: &Arc<Self>, request: &[u8]) {
        let unique = unique(request);
        let mut state = self.state();
        let outcome = match number32(request, 4) {
            // These have no answer.
            opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT => return,
            opcode::INIT => init(request),
            kind @ (opcode::RELEASE | opcode::RELEASEDIR) => state.tree.perform(kind, request),
            _ if state.removed => Err(errno::ENODEV),
            kind @ (opcode::READ | opcode::WRITE | opcode::FSYNC) => {
                match state.judge(kind, request) {
                    Verdict::Done(outcome) => outcome,
                    Verdict::Hang => {
                        state.hanging += 1;
                        let seen = state.releases;
                        drop(state);
                        self.answer_later(request.to_vec(), seen);
                        return;
                    }
                }
            }
            kind => state.tree.perform(kind, request),
        };
        drop(state);
        match outcome {
            Ok(body) => self.channel.answer(unique, 0, &body),
            Err(error) => self.channel.answer(unique, error, &[]),
        }
    }

    /// Answers a request once the test has released it.
    fn answer_later(self: &Arc<Self>, request: Vec<u8>, seen: u64) {
        let server = Arc::clone(self);
        std::thread::spawn(move || {
            let waits = |state: &mut State| state.releases == seen && state.may_hang;
            let waited = server.released.wait_while(server.state(), waits);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            state.hanging -= 1;
            let outcome = if state.removed {
                Err(errno::ENODEV)
            } else {
                state.serve_data(number32(&request, 4), &request, None)
            };
            drop(state);
            let (error, body) = outcome.map_or_else(|e| (e, Vec::new()), |body| (0, body));
            server.channel.answer(unique(&request), error, &body);
        });
    }
}

/// The answer to the first request.
fn init(request: &[u8]) -> Result<Vec<u8>, i32> {
    match parse(request).map(|request| request.kind) {
        Ok(FileRequestKind::Init(init)) => Ok(init_body(init, 0).to_vec()),
        _ => Err(errno::EIO),
    }
}

/// What becomes of a read, write or flush.
enum Verdict {
    Done(Result<Vec<u8>, i32>),
    Hang,
}

impl State {
    fn judge(&mut self, kind: u32, request: &[u8]) -> Verdict {
        let (offset, len) = match kind {
            opcode::FSYNC => (0, 0),
            _ => (number64(request, HEADER_IN + 8), number32(request, HEADER_IN + 16).into()),
        };
        let kind_of = match kind {
            opcode::READ => RequestKind::Read,
            opcode::WRITE => RequestKind::Write,
            _ => RequestKind::Flush,
        };
        let asked = DiskRequest { kind: kind_of, offset, len };
        self.requests.push(asked);
        let path = self.tree.path_of(request).to_string_lossy().into_owned();
        let fault = match self.plan.judge(&path, asked) {
            Judgement::Serve => return Verdict::Done(self.serve_data(kind, request, None)),
            Judgement::Short(_) if self.tree.is_disk() => {
                return Verdict::Done(Err(errno::ENOSPC));
            }
            Judgement::Short(room) => {
                return Verdict::Done(self.serve_data(kind, request, Some(room)));
            }
            Judgement::Fault(fault) => fault,
        };
        let prepared = match fault {
            FileFault::Fail(error) => Err(error),
            FileFault::Hang => return Verdict::Hang,
            FileFault::Shrink(bytes) => self.tree.shrink(request, bytes),
            FileFault::Change => self.tree.change(request),
            FileFault::Remove => {
                self.removed = true;
                Err(errno::ENODEV)
            }
        };
        Verdict::Done(prepared.and_then(|()| self.serve_data(kind, request, None)))
    }

    /// Does a read, write or flush; of a write at most `room` bytes.
    fn serve_data(&mut self, kind: u32, request: &[u8], room: Option<u64>) -> Result<Vec<u8>, i32> {
        let done = match kind {
            opcode::READ => return self.tree.read(request, &self.plan),
            opcode::WRITE => self.tree.write(request, &self.plan, room)?,
            _ => self.tree.flush(request)?,
        };
        if let Some(recorded) = &mut self.recorded {
            recorded.push(match kind {
                opcode::WRITE => DiskChange::Write {
                    offset: number64(request, HEADER_IN + 8),
                    data: request[WRITE_DATA..].to_vec(),
                },
                _ => DiskChange::Flush,
            });
        }
        Ok(done)
    }
}
