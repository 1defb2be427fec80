//! Pinned threads that work in step, each on a state of its own.
//!
//! The calling thread is the first member, so one thread needs no other and n
//! need no n + 1st processor. Members spin between trials instead of sleeping:
//! waking a thread takes tens of microseconds, which would be part of the trial.
//! A member that waits longer than `SPIN_NS` sleeps until the next task.

use crate::disturbance::{Bracket, Disturbance};
use crate::{Error, ErrorKind, Result};
use machine::Root;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How long a member spins before it sleeps: longer than any pause between two
/// trials of one pass, short enough not to burn a core in other phases.
const SPIN_NS: u64 = 20_000_000;

/// What members are asked to do.
enum Task<W> {
    /// Work in step; this is what is timed.
    Work(Arc<dyn Fn(&mut W) + Send + Sync>),
    /// Read the counters, before a trial.
    Mark,
    /// Read them again, and add what happened to the board.
    Report,
}

impl<W> Clone for Task<W> {
    fn clone(&self) -> Self {
        match self {
            Task::Work(work) => Task::Work(Arc::clone(work)),
            Task::Mark => Task::Mark,
            Task::Report => Task::Report,
        }
    }
}

/// What members share.
struct Board<W> {
    /// Grows with each task; members watch it.
    posted: AtomicU64,
    /// How many members, the first one not counted, have done the posted task.
    done: AtomicU64,
    /// The worst that happened to any member between the last mark and report.
    disturbance: Mutex<Disturbance>,
    /// Whether a member panicked: it is not waited for.
    broken: AtomicBool,
    task: Mutex<Option<Task<W>>>,
    /// Wakes members that sleep; holds whether the team is dismissed.
    dismissed: Mutex<bool>,
    wake: Condvar,
}

/// The members; lives inside [`with`].
pub struct Team<'t, W> {
    first: W,
    others: usize,
    first_cpu: Option<usize>,
    board: &'t Board<W>,
}

impl<W> std::fmt::Debug for Team<'_, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Team")
            .field("members", &(self.others + 1))
            .field("first_cpu", &self.first_cpu)
            .finish_non_exhaustive()
    }
}

/// Gathers `members` threads, pinned to as many processors, and calls `work`.
///
/// `make` builds each member's state on its own thread and processor, so that the memory it touches
/// is near. The calling thread stays pinned until `work` is done; then its old set of processors is
/// restored. More members than allowed processors are refused: they would measure the scheduler.
pub fn with<W: Send, R>(
    members: usize,
    first_cpu: Option<usize>,
    root: &Root,
    make: impl Fn(usize) -> Result<W> + Sync,
    work: impl FnOnce(&mut Team<'_, W>) -> Result<R>,
) -> Result<R> {
    let cpus = processors(members, first_cpu)?;
    let allowed = sys::affinity::allowed().ok();
    let board = Board {
        posted: AtomicU64::new(0),
        done: AtomicU64::new(0),
        disturbance: Mutex::new(Disturbance::default()),
        broken: AtomicBool::new(false),
        task: Mutex::new(None),
        dismissed: Mutex::new(false),
        wake: Condvar::new(),
    };
    let result = std::thread::scope(|scope| {
        let _dismiss = Dismiss(&board);
        let joined: Vec<_> = cpus[1..]
            .iter()
            .enumerate()
            .map(|(i, &cpu)| {
                let (make, board) = (&make, &board);
                scope.spawn(move || member(i + 1, cpu, root, make, board))
            })
            .collect();
        pin(cpus[0])?;
        let first = make(0)?;
        // Wait until every member is made, or one could not be.
        while board.done.load(Ordering::Acquire) < joined.len() as u64
            && !joined.iter().any(|handle| handle.is_finished())
        {
            std::thread::yield_now();
        }
        if let Some(failed) = joined.iter().position(|handle| handle.is_finished()) {
            let handle = joined.into_iter().nth(failed);
            return Err(failure(handle.and_then(|h| h.join().ok())));
        }
        let mut team =
            Team { first, others: joined.len(), first_cpu: Some(cpus[0]), board: &board };
        work(&mut team)
    });
    if let Some(allowed) = allowed {
        // Best effort: the process works on with one processor too.
        let _ = sys::affinity::set(&allowed);
    }
    result
}

/// Pins the calling thread alone, and calls `work` with its bracket; the old set of
/// processors is restored afterwards.
pub fn alone<R>(
    cpu: Option<usize>,
    root: &Root,
    work: impl FnOnce(&mut Bracket) -> Result<R>,
) -> Result<R> {
    with(
        1,
        cpu,
        root,
        |_| Ok(()),
        |team| work(&mut Bracket::for_this_thread(root, team.first_cpu())),
    )
}

impl<W> Team<'_, W> {
    /// The processor of the calling thread.
    pub fn first_cpu(&self) -> Option<usize> {
        self.first_cpu
    }

    /// How many members.
    pub fn members(&self) -> usize {
        self.others + 1
    }

    /// All members do `task` at once; returns when the last has done it.
    pub fn run(&mut self, task: impl Fn(&mut W) + Send + Sync + 'static) {
        if self.others == 0 {
            return task(&mut self.first);
        }
        let task = Arc::new(task);
        self.post(Task::Work(task.clone()));
        task(&mut self.first);
        self.wait_for_others();
    }

    /// The other members read their counters: the beginning of a trial.
    pub fn mark(&mut self) {
        if self.others > 0 {
            *lock(&self.board.disturbance) = Disturbance::default();
            self.post(Task::Mark);
            self.wait_for_others();
        }
    }

    /// What disturbed the other members since [`Team::mark`], at worst.
    pub fn others_disturbed(&mut self) -> Disturbance {
        if self.others > 0 {
            self.post(Task::Report);
            self.wait_for_others();
        }
        *lock(&self.board.disturbance)
    }

    fn post(&mut self, task: Task<W>) {
        self.board.done.store(0, Ordering::Release);
        *lock(&self.board.task) = Some(task);
        self.board.posted.fetch_add(1, Ordering::Release);
        self.board.wake.notify_all();
    }

    /// A member that panicked never answers; its panic goes on when the team is joined.
    fn wait_for_others(&self) {
        while self.board.done.load(Ordering::Acquire) < self.others as u64
            && !self.board.broken.load(Ordering::Acquire)
        {
            std::hint::spin_loop();
        }
    }

    /// Asks the first member alone.
    pub fn first<R>(&mut self, question: impl FnOnce(&mut W) -> R) -> R {
        question(&mut self.first)
    }
}

/// The value behind a lock; one whose holder panicked is still whole, because every
/// change to it is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the first member when this one ends by a panic.
struct Breaks<'b>(&'b AtomicBool);

impl Drop for Breaks<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Release);
        }
    }
}

/// Dismisses the members even when `work` fails or panics.
struct Dismiss<'b, W>(&'b Board<W>);

impl<W> Drop for Dismiss<'_, W> {
    fn drop(&mut self) {
        *lock(&self.0.dismissed) = true;
        self.0.posted.fetch_add(1, Ordering::Release);
        self.0.wake.notify_all();
    }
}

fn member<W>(
    index: usize,
    cpu: usize,
    root: &Root,
    make: &(impl Fn(usize) -> Result<W> + Sync),
    board: &Board<W>,
) -> Result<()> {
    pin(cpu)?;
    let mut state = make(index)?;
    let mut bracket = Bracket::for_this_thread(root, Some(cpu));
    let mut before = bracket.read();
    let mut seen = 0;
    let _breaks = Breaks(&board.broken);
    board.done.fetch_add(1, Ordering::AcqRel);
    while await_task(board, &mut seen) {
        let task = lock(&board.task).clone();
        match task {
            Some(Task::Work(work)) => work(&mut state),
            // The counters are read apart from the work: reading them takes microseconds,
            // which the first member's clock would count as the trial's.
            Some(Task::Mark) => before = bracket.read(),
            Some(Task::Report) => {
                let own = Disturbance::between(&before, &bracket.read());
                let mut worst = lock(&board.disturbance);
                *worst = worst.or_worse(&own);
            }
            None => {}
        }
        board.done.fetch_add(1, Ordering::AcqRel);
    }
    Ok(())
}

/// Returns true with a new task, false when the team is dismissed.
fn await_task<W>(board: &Board<W>, seen: &mut u64) -> bool {
    let start = sys::clock::now_ns();
    while board.posted.load(Ordering::Acquire) == *seen {
        if sys::clock::now_ns() - start < SPIN_NS {
            std::hint::spin_loop();
            continue;
        }
        let guard = lock(&board.dismissed);
        if board.posted.load(Ordering::Acquire) == *seen {
            // A timeout, because a task is posted without this lock.
            let nap = std::time::Duration::from_millis(1);
            drop(board.wake.wait_timeout(guard, nap));
        }
    }
    *seen = board.posted.load(Ordering::Acquire);
    !*lock(&board.dismissed)
}

/// `members` distinct processors, the wanted one first.
fn processors(members: usize, first: Option<usize>) -> Result<Vec<usize>> {
    let operation = "pin the measuring threads";
    let mut allowed = sys::affinity::allowed()
        .map_err(|source| Error::caused(ErrorKind::Impossible, operation, source))?;
    if let Some(first) = first {
        let Some(place) = allowed.iter().position(|&cpu| cpu == first) else {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("use processor {first}"),
                format!("this process may use {allowed:?}"),
            ));
        };
        allowed.swap(0, place);
    }
    if members > allowed.len() {
        return Err(Error::new(
            ErrorKind::Impossible,
            format!("use {members} threads"),
            format!("this process may use {} processors", allowed.len()),
        ));
    }
    allowed.truncate(members.max(1));
    Ok(allowed)
}

fn pin(cpu: usize) -> Result<()> {
    sys::affinity::pin(cpu).map_err(|source| {
        Error::caused(ErrorKind::Impossible, format!("pin to processor {cpu}"), source)
    })
}

fn failure(joined: Option<Result<()>>) -> Error {
    match joined {
        Some(Err(error)) => error,
        _ => {
            Error::new(ErrorKind::Failed, "start the measuring threads", "one of them ended early")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_or_skip() -> bool {
        if sys::affinity::allowed().map_or(0, |cpus| cpus.len()) < 2 {
            println!("skipped: needs 2 processors");
            return false;
        }
        true
    }

    #[test]
    fn members_work_in_step_on_their_own_state() {
        if !two_or_skip() {
            return;
        }
        let before = sys::affinity::allowed().unwrap();
        let sums = with(
            2,
            None,
            &Root::system(),
            |index| Ok((index as u64, 0_u64)),
            |team| {
                for round in 0..100_u64 {
                    team.run(move |(index, sum)| *sum += round * (*index + 1));
                }
                let totals = Arc::new(Mutex::new(Vec::new()));
                let out = Arc::clone(&totals);
                team.run(move |(_, sum)| out.lock().unwrap().push(*sum));
                let mut totals = totals.lock().unwrap().clone();
                totals.sort_unstable();
                Ok(totals)
            },
        )
        .unwrap();
        assert_eq!(sums, [4950, 9900]);
        assert_eq!(sys::affinity::allowed().unwrap(), before);
    }

    /// A spinning thread on the second member's processor is seen by the first.
    #[test]
    fn what_disturbs_a_member_is_reported() {
        if !two_or_skip() {
            return;
        }
        let root = Root::system();
        let stop = AtomicBool::new(false);
        let disturbed = std::thread::scope(|scope| {
            let (cpu, stop) = (processors(2, None).unwrap()[1], &stop);
            scope.spawn(move || {
                pin(cpu).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let disturbed = with(
                2,
                None,
                &root,
                |_| Ok(()),
                |team| {
                    team.mark();
                    team.run(|_| {
                        let start = sys::scheduling::thread_cpu_ns();
                        while sys::scheduling::thread_cpu_ns() - start < 100_000_000 {}
                    });
                    Ok(team.others_disturbed())
                },
            );
            stop.store(true, Ordering::Relaxed);
            disturbed.unwrap()
        });
        assert!(disturbed.waited_ns.unwrap() > 4_000_000, "{disturbed:?}");
    }

    #[test]
    fn a_member_that_cannot_be_made_ends_it() {
        if !two_or_skip() {
            return;
        }
        let made = with(
            2,
            None,
            &Root::system(),
            |index| match index {
                1 => Err(Error::new(ErrorKind::Impossible, "make it", "on purpose")),
                _ => Ok(()),
            },
            |_| Ok(()),
        );
        assert_eq!(made.unwrap_err().reason.as_deref(), Some("on purpose"));
    }

    #[test]
    fn too_many_threads_are_refused() {
        let many = sys::affinity::allowed().unwrap().len() + 1;
        let error = with(many, None, &Root::system(), |_| Ok(()), |_| Ok(())).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Impossible);
        let error = with(1, Some(99_999), &Root::system(), |_| Ok(()), |_| Ok(())).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
    }
}
