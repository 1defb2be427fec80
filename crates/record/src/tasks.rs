//! Delay accounting: what the kernel charged to every thread, told by it when the thread
//! ends, asked of it for those that still run.

use model::recording::{Sight, Task};

/// Whose tasks are kept.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The processes at the top; a task belongs if its chain of parents leads to one of
    /// them. Empty: every task.
    pub processes: Vec<u32>,
    /// The process that orphans of the tree are given to, where the recorder is that.
    pub reaper: Option<u32>,
}

/// A listener to the ends of threads.
#[derive(Debug)]
pub struct Listener {}

/// All that was heard and asked.
#[derive(Debug, Default)]
pub struct Heard {
    /// The threads, or sums of many of one name.
    pub tasks: Vec<Task>,
    /// Processes of the subject.
    pub processes: u64,
    /// Ends that were lost.
    pub lost: u64,
}

impl Listener {
    /// Starts to listen; what was charged to threads of the tree that run already is
    /// subtracted later. The sights are `exits` and `delay_accounting`.
    pub fn open(_started_ns: u64) -> (Option<Self>, Vec<(String, Sight)>) {
        (None, Vec::new())
    }

    /// Notes whose tasks are kept; as soon as the subject is known.
    pub fn watch(&mut self, _tree: &Tree) {}

    /// Takes what has been told until now; never waits.
    pub fn read(&mut self) {}

    /// Asks about those that still run, and gives everything.
    #[must_use]
    pub fn finish(self, _now_ns: u64) -> Heard {
        Heard::default()
    }
}
