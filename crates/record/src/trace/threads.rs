//! What the threads of the subject do: a state each, and the time spent in every state.
//!
//! The idea: no thread keeps a clock. Each state counts its threads, and its sum grows with that
//! count. So at any instant the sums of all states are exactly the lives of all threads, and the
//! wall's four sums are exactly the time since the start. Events come in order; a late one counts
//! from the latest instant seen.

use super::event::{Event, EventKind, Leave, Sleep, State};
use std::collections::HashMap;

/// The wall's states, in order of precedence.
pub const WALL: [&str; 4] = ["run", "queue", "block_io", "asleep"];

/// One thread.
#[derive(Clone, Copy, Debug)]
struct TracedThread {
    process: u32,
    state: State,
    /// Whether the tracepoint has reported that it leaves, and the notice that it has left is to
    /// come.
    is_leaving: bool,
    /// Whether the kernel has reported a switch of it, or its birth. Seen: kernels that report the
    /// wake-ups of some threads and never their switches. Those would be runnable for ever.
    is_reported: bool,
}

impl TracedThread {
    fn is_asleep(&self) -> bool {
        !matches!(self.state, State::Run | State::Queue)
    }
}

/// What the subject's threads did, as sums.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadSums {
    /// Thread time by [`State::index`].
    pub states_ns: [u64; State::COUNT],
    /// The clock's time by [`WALL`].
    pub wall_ns: [u64; WALL.len()],
    /// Times that a thread of the subject left a processor.
    pub switches: u64,
    /// Times that one began to wait for a block device.
    pub block_io_waits: u64,
    /// Waits of any kind that were over.
    pub waits: u64,
    /// Of them, those without a reported wake-up: the thread just came.
    pub untold_wakeups: u64,
    /// Threads that belonged to the subject.
    pub seen: u64,
    /// Time of waits whose state is that of an earlier wait of their thread.
    pub sampled_ns: u64,
}

/// How many threads hold a state, and for how long threads have.
#[derive(Clone, Copy, Debug, Default)]
struct StateTime {
    count: u64,
    since_ns: u64,
    sum_ns: u64,
}

impl StateTime {
    fn settle(&mut self, now_ns: u64) {
        self.sum_ns += self.count * now_ns.saturating_sub(self.since_ns);
        self.since_ns = now_ns;
    }
}

/// The threads of the subject.
#[derive(Debug)]
pub struct Threads {
    /// Whether every process belongs to the subject.
    everyone: bool,
    /// Its processes, with how many threads of theirs are known.
    processes: HashMap<u32, u32>,
    threads: HashMap<u32, TracedThread>,
    clock_ns: u64,
    states: [StateTime; State::COUNT],
    /// Threads by index in [`WALL`].
    wall_counts: [u64; WALL.len()],
    wall_ns: [u64; WALL.len()],
    switches: u64,
    block_io_waits: u64,
    waits: u64,
    untold_wakeups: u64,
    seen: u64,
}

impl Threads {
    /// No threads yet; later those of `processes` and their children, or all.
    pub fn new(everyone: bool) -> Self {
        Self {
            everyone,
            processes: HashMap::new(),
            threads: HashMap::new(),
            clock_ns: 0,
            states: [StateTime::default(); State::COUNT],
            wall_counts: [0; WALL.len()],
            wall_ns: [0; WALL.len()],
            switches: 0,
            block_io_waits: 0,
            waits: 0,
            untold_wakeups: 0,
            seen: 0,
        }
    }

    /// Adds a process whose threads will be seen.
    pub fn expect(&mut self, process: u32) {
        self.processes.entry(process).or_insert(0);
    }

    /// Whether the process belongs to the subject; the idle task never does.
    pub fn includes(&self, process: u32) -> bool {
        process != 0 && (self.everyone || self.processes.contains_key(&process))
    }

    /// Whether everyone belongs.
    pub fn is_everyone(&self) -> bool {
        self.everyone
    }

    /// The processes that are known.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.processes.keys().copied()
    }

    /// The threads that are known.
    pub fn known(&self) -> impl Iterator<Item = u32> {
        self.threads.keys().copied()
    }

    /// Lets one event happen.
    pub fn apply(&mut self, event: &Event) {
        self.advance(event.time_ns);
        match event.what {
            EventKind::Start => self.restart(),
            EventKind::Seen { process, thread, state } if self.includes(process) => {
                self.put(process, thread, state.unwrap_or(State::Run));
            }
            EventKind::Fork { process, thread, parent }
                if self.includes(parent) || self.includes(process) =>
            {
                self.put(process, thread, State::Queue);
                self.mark_reported(thread);
            }
            EventKind::Exit { thread } => self.remove(thread),
            EventKind::Exec { process, thread } => self.exec(process, thread),
            EventKind::Switch { thread, leave, next } => {
                match leave {
                    Leave::Ready => self.leave(thread, State::Queue, true),
                    Leave::Waits(state) => self.leave(thread, state, true),
                    Leave::Ended => self.remove(thread),
                }
                self.come(next);
            }
            EventKind::Out { thread, is_preempted } => self.notice_left(thread, is_preempted),
            EventKind::In { thread } => self.come(thread),
            EventKind::Wakeup { thread } => {
                let woken = self.threads.get(&thread);
                if woken.is_some_and(|thread| thread.is_reported && thread.is_asleep()) {
                    self.waits += 1;
                    self.change(thread, State::Queue);
                }
            }
            _ => {}
        }
    }

    /// Brings all sums to this instant.
    pub fn settle(&mut self, now_ns: u64) {
        self.advance(now_ns);
        for state in &mut self.states {
            state.settle(self.clock_ns);
        }
    }

    /// The sums as of the last [`Threads::settle`].
    pub fn sums(&self) -> ThreadSums {
        ThreadSums {
            states_ns: self.states.map(|state| state.sum_ns),
            wall_ns: self.wall_ns,
            switches: self.switches,
            block_io_waits: self.block_io_waits,
            waits: self.waits,
            untold_wakeups: self.untold_wakeups,
            seen: self.seen,
            // Each wait is looked at.
            sampled_ns: 0,
        }
    }

    /// Moves the clock on; it never goes back.
    fn advance(&mut self, now_ns: u64) {
        if self.clock_ns == 0 {
            self.clock_ns = now_ns;
        }
        let passed_ns = now_ns.saturating_sub(self.clock_ns);
        // A subject without threads is asleep.
        let first = self.wall_counts.iter().position(|count| *count > 0);
        self.wall_ns[first.unwrap_or(WALL.len() - 1)] += passed_ns;
        self.clock_ns += passed_ns;
    }

    /// Lets time pass that counts for nothing: what threads did meanwhile is not known.
    pub fn skip_until(&mut self, now_ns: u64) {
        for state in &mut self.states {
            state.settle(self.clock_ns);
            state.since_ns = now_ns;
        }
        self.clock_ns = now_ns;
    }

    fn restart(&mut self) {
        for state in &mut self.states {
            state.settle(self.clock_ns);
            state.sum_ns = 0;
        }
        self.wall_ns = [0; WALL.len()];
        (self.switches, self.block_io_waits) = (0, 0);
        (self.waits, self.untold_wakeups) = (0, 0);
        self.seen = self.threads.len() as u64;
    }

    /// Counts one thread more (or less) in a state from now on.
    fn count(&mut self, state: State, comes: bool) {
        let time = &mut self.states[state.index()];
        time.settle(self.clock_ns);
        let on_wall = &mut self.wall_counts[wall_index(state)];
        if comes {
            time.count += 1;
            *on_wall += 1;
        } else {
            time.count -= 1;
            *on_wall -= 1;
        }
    }

    fn put(&mut self, process: u32, thread: u32, state: State) {
        if self.threads.contains_key(&thread) {
            return self.change(thread, state);
        }
        let new = TracedThread { process, state, is_leaving: false, is_reported: false };
        self.threads.insert(thread, new);
        *self.processes.entry(process).or_insert(0) += 1;
        self.seen += 1;
        self.count(state, true);
    }

    fn mark_reported(&mut self, thread: u32) {
        if let Some(known) = self.threads.get_mut(&thread) {
            known.is_reported = true;
        }
    }

    fn remove(&mut self, thread: u32) {
        let Some(gone) = self.threads.remove(&thread) else {
            return;
        };
        self.count(gone.state, false);
        if let Some(threads) = self.processes.get_mut(&gone.process) {
            *threads = threads.saturating_sub(1);
            // The number may be given to a process that does not belong.
            if *threads == 0 {
                self.processes.remove(&gone.process);
            }
        }
    }

    fn change(&mut self, thread: u32, state: State) {
        let Some(known) = self.threads.get_mut(&thread) else {
            return;
        };
        let before = std::mem::replace(&mut known.state, state);
        if before != state {
            self.count(before, false);
            self.count(state, true);
        }
    }

    fn come(&mut self, thread: u32) {
        let Some(known) = self.threads.get_mut(&thread) else {
            return;
        };
        let is_unreported = known.is_reported && known.is_asleep();
        (known.is_reported, known.is_leaving) = (true, false);
        self.waits += u64::from(is_unreported);
        self.untold_wakeups += u64::from(is_unreported);
        self.change(thread, State::Run);
    }

    /// The notice that a thread has left. If the tracepoint reported it before, the thread may have
    /// been woken since, so the notice is skipped.
    fn notice_left(&mut self, thread: u32, is_preempted: bool) {
        let Some(known) = self.threads.get_mut(&thread) else {
            return;
        };
        if std::mem::take(&mut known.is_leaving) {
            return;
        }
        let state = if is_preempted { State::Queue } else { State::Sleep(Sleep::Unknown) };
        self.leave(thread, state, false);
    }

    fn leave(&mut self, thread: u32, state: State, is_leaving: bool) {
        let Some(known) = self.threads.get_mut(&thread) else {
            return;
        };
        (known.is_reported, known.is_leaving) = (true, is_leaving);
        self.switches += 1;
        self.block_io_waits += u64::from(matches!(state, State::BlockIo(_)));
        self.change(thread, state);
    }

    /// A new program takes the number of its process; all other threads are gone.
    fn exec(&mut self, process: u32, thread: u32) {
        if !self.includes(process) {
            return;
        }
        let is_other =
            |(id, other): &(&u32, &TracedThread)| other.process == process && **id != thread;
        let others: Vec<u32> = self.threads.iter().filter(is_other).map(|(id, _)| *id).collect();
        self.put(process, thread, State::Run);
        self.change(thread, State::Run);
        for other in others {
            self.remove(other);
        }
    }
}

fn wall_index(state: State) -> usize {
    match state {
        State::Run => 0,
        State::Queue => 1,
        State::BlockIo(_) => 2,
        State::Children | State::Sleep(_) => 3,
    }
}

/// Decides for every [`EventKind::Seen`] thread that ran or could run which of the two it was:
/// if the next switch brings it to a processor, it waited for one. Events are in order.
pub fn settle_seen(events: &mut [Event]) {
    let unknown = |event: &&Event| matches!(event.what, EventKind::Seen { state: None, .. });
    let Some(first) = events.iter().position(|event| unknown(&event)) else {
        return;
    };
    let mut next_is_in: HashMap<u32, bool> = HashMap::new();
    for event in events[first..].iter_mut().rev() {
        match &mut event.what {
            EventKind::In { thread } => {
                next_is_in.insert(*thread, true);
            }
            EventKind::Out { thread, .. } => {
                next_is_in.insert(*thread, false);
            }
            EventKind::Switch { thread, next, .. } => {
                next_is_in.insert(*thread, false);
                next_is_in.insert(*next, true);
            }
            EventKind::Seen { thread, state, .. } if state.is_none() => {
                let waited = next_is_in.get(thread).copied().unwrap_or(false);
                *state = Some(if waited { State::Queue } else { State::Run });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
