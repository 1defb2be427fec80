//! The thread that finds the groups with a limit of their own, and looks at what they count.
//!
//! It walks and looks by the `GroupSearch` until the sampler is gone, and reports what it found.
//! Its priority is that of any program: what the sampler reads never waits for it, but for a
//! moment at the last sample.

use super::LimitedPaths;
use super::counts::{HeldBack, KINDS};
use super::search::GroupSearch;
use machine::cgroup::{self, CgroupVersion, LimitKind};
use machine::{Root, mounts};
use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks at the counts, and what the last one may take.
const LOOK: Duration = Duration::from_secs(1);
const LAST_LOOK: Duration = Duration::from_millis(300);

/// A walk for each so many looks.
const LOOKS_PER_WALK: u32 = 2;

/// What the thread found.
#[derive(Debug)]
pub(super) enum FinderNews {
    /// A group was held back and gets series from now on.
    Reached(ReachedGroup),
    /// The group of this number is gone, or was not held back for long.
    Ended(u32),
    /// The sums, after each look.
    Totals(GroupTotals),
}

/// A group that gets series.
#[derive(Debug)]
pub(super) struct ReachedGroup {
    /// `N` in the names of its series.
    pub number: u32,
    /// Whose files it has.
    pub version: CgroupVersion,
    /// Its directory, with a border between the mount point and the path.
    pub directory: String,
    /// What is limited.
    pub kinds: Vec<LimitKind>,
    /// The texts of its counters from which its series count.
    pub first: HashMap<&'static str, Vec<u8>>,
}

/// Sums over groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupTotals {
    /// Groups with a limit of their own.
    pub limited: u64,
    /// Groups beyond the bound, which were not looked at.
    pub unwatched: u64,
    /// Groups whose counts could not be read.
    pub unreadable: u64,
    /// Groups that were held back and got no series.
    pub others: u64,
    /// What those counted, by [`LimitKind`].
    pub held_others: [HeldBack; KINDS],
}

/// The thread, as the sampler sees it. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Finder {
    /// Asks for a look now, answered when it was made.
    requests: Option<Sender<SyncSender<()>>>,
    news: Receiver<FinderNews>,
    thread: Option<JoinHandle<()>>,
}

impl Finder {
    /// Starts it; `None` if there is no hierarchy with limits, or no thread can be started.
    pub fn start(root: &Root, paths: LimitedPaths) -> Option<Self> {
        let hierarchies = cgroup::hierarchies(&mounts::read(root));
        if hierarchies.is_empty() {
            return None;
        }
        let (requests, received) = mpsc::channel();
        let (report, news) = mpsc::channel();
        let mut search = GroupSearch::new(root.clone(), hierarchies, paths);
        let body = move || run(&mut search, &received, &report);
        let thread = std::thread::Builder::new().name("groups".to_owned()).spawn(body).ok()?;
        Some(Self { requests: Some(requests), news, thread: Some(thread) })
    }

    /// What was found since the last call.
    pub fn news(&self) -> impl Iterator<Item = FinderNews> + '_ {
        self.news.try_iter()
    }

    /// Has the groups looked at now; returns when that is done, or takes too long.
    pub fn look(&self) {
        let (tell, looked) = mpsc::sync_channel(1);
        if self.requests.as_ref().is_some_and(|requests| requests.send(tell).is_ok()) {
            let _ = looked.recv_timeout(LAST_LOOK);
        }
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        self.requests = None;
        // It ends after the walk or look that it is at.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn run(search: &mut GroupSearch, requests: &Receiver<SyncSender<()>>, report: &Sender<FinderNews>) {
    let mut tell = |news| {
        // A sampler that is gone also closes the requests.
        let _ = report.send(news);
    };
    let mut looks = 0u32;
    loop {
        let next = Instant::now() + LOOK;
        if looks.is_multiple_of(LOOKS_PER_WALK) {
            search.walk(&mut tell);
        }
        search.look(&mut tell);
        looks = looks.wrapping_add(1);
        loop {
            match requests.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(done) => {
                    search.look(&mut tell);
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}
