//! An independent witness: what the threads of the command did, by the kernel's own trace.
//!
//! It shares nothing with the program but the kernel: other buffers, the text that the kernel
//! prints, queues from the notice of the waker (`sched_waking`), and block I/O by the name
//! `io_schedule` in the stack of a thread that leaves; it has left when its stack is told, as
//! looking at that (3 us) is the witness's doing. Lives begin when the command is executed.
//!
//! Kernels were seen that trace nothing in some threads and in one processor's idle task: who
//! comes after one of those is not told to have come (the program hears of it in another
//! way). [`inferred`] puts that right from how long the kernel says that it ran.

use std::collections::{HashMap, HashSet};
use testkit::KernelTrace;

const EVENTS: &[&str] = &[
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_process_fork",
    "sched/sched_process_exec",
    "sched/sched_stat_runtime",
];

/// Adds its stack to each switch that leaves a thread in uninterruptible sleep.
const STACKS: (&str, &str) = ("sched/sched_switch", "stacktrace if prev_state & 2");

/// The four states of which the bars tell, in this order.
pub const STATES: [&str; 4] = ["run", "queue", "block_io", "sleep"];

/// Nanoseconds in each of [`STATES`].
pub type Times = [u64; STATES.len()];

/// What a command did.
#[derive(Default)]
pub struct Lives {
    /// All threads together.
    pub threads: Times,
    /// The clock: each instant belongs to the first state that some thread is in.
    pub wall: Times,
}

/// A thread's state by its place in [`STATES`].
const RUN: usize = 0;
const QUEUE: usize = 1;
const BLOCK_IO: usize = 2;
const SLEEP: usize = 3;

/// Begins to look.
pub fn start() -> Result<KernelTrace, String> {
    KernelTrace::start(EVENTS, &[STACKS])
}

/// What the command that `recorder` (the recorder's process) started did, and all its
/// children.
///
/// # Errors
/// The trace, which may lose events, has no such command.
pub fn lives(trace: &str, recorder: u32) -> Result<Lives, String> {
    let mut traced = parse(trace);
    traced.extend(inferred(&traced));
    traced.sort_by_key(|traced| traced.time_ns);
    let (first, command) = command(&traced, recorder).ok_or("the trace has no such command")?;
    let mut threads = Threads { now_ns: traced[first].time_ns, ..Threads::default() };
    threads.begin(command, RUN);
    for TraceLine { time_ns, what } in &traced[first..] {
        threads.pass_until(*time_ns);
        match what {
            What::Switch { from, state, in_io, to, .. } => {
                let left = match state.as_str() {
                    "X" | "Z" => None,
                    "R" | "R+" => Some(QUEUE),
                    "D" if *in_io => Some(BLOCK_IO),
                    _ => Some(SLEEP),
                };
                threads.put(*from, left);
                threads.put(*to, Some(RUN));
            }
            What::Come(thread) => threads.put(*thread, Some(RUN)),
            What::Wake(thread) if threads.is_asleep(*thread) => {
                threads.put(*thread, Some(QUEUE));
            }
            What::Fork { parent, child } if threads.known.contains_key(parent) => {
                threads.begin(*child, QUEUE);
            }
            What::Wake(_) | What::Fork { .. } | What::Exec(_) | What::Ran { .. } => {}
        }
    }
    Ok(threads.lives)
}

/// The command's threads that live: the state of each, and since when.
#[derive(Default)]
struct Threads {
    known: HashMap<u32, (usize, u64)>,
    now_ns: u64,
    lives: Lives,
}

impl Threads {
    /// Lets time pass; the command is over when its last thread is.
    fn pass_until(&mut self, time_ns: u64) {
        let states = self.known.values().map(|(state, _)| *state);
        if let Some(first) = states.min() {
            self.lives.wall[first] += time_ns - self.now_ns;
        }
        self.now_ns = time_ns;
    }

    fn begin(&mut self, thread: u32, state: usize) {
        self.known.insert(thread, (state, self.now_ns));
    }

    /// Brings a known thread to another state, or to its end.
    fn put(&mut self, thread: u32, state: Option<usize>) {
        if let Some((before, since_ns)) = self.known.remove(&thread) {
            self.lives.threads[before] += self.now_ns - since_ns;
            let now_ns = self.now_ns;
            self.known.extend(state.map(|state| (thread, (state, now_ns))));
        }
    }

    fn is_asleep(&self, thread: u32) -> bool {
        let state = self.known.get(&thread).map(|(state, _)| *state);
        state.is_some_and(|state| state == BLOCK_IO || state == SLEEP)
    }
}

/// One event.
struct TraceLine {
    time_ns: u64,
    what: What,
}

enum What {
    Switch {
        processor: u32,
        from: u32,
        /// As the kernel's letters say it: `R+`, `S`, `D`.
        state: String,
        in_io: bool,
        to: u32,
    },
    Come(u32),
    Wake(u32),
    Fork {
        parent: u32,
        child: u32,
    },
    Exec(u32),
    /// It ran for so long since the last such event.
    Ran {
        thread: u32,
        ns: u64,
    },
}

/// Where the first program begins that a child of the recorder becomes, and in whom.
fn command(traced: &[TraceLine], recorder: u32) -> Option<(usize, u32)> {
    let mut descendants = HashSet::new();
    for (index, TraceLine { what, .. }) in traced.iter().enumerate() {
        match what {
            What::Fork { parent, child } if *parent == recorder || descendants.contains(parent) => {
                descendants.insert(*child);
            }
            What::Exec(thread) if descendants.contains(thread) => return Some((index, *thread)),
            _ => {}
        }
    }
    None
}

/// The comings of threads that leave a processor which, by the trace, another one had: as long ago
/// as the kernel says that they ran.
fn inferred(traced: &[TraceLine]) -> Vec<TraceLine> {
    let mut processors: HashMap<u32, u32> = HashMap::new();
    // How long a thread has run since it left last, and when that was said.
    let mut ran: HashMap<u32, (u64, u64)> = HashMap::new();
    let mut found = Vec::new();
    for TraceLine { time_ns, what } in traced {
        match what {
            What::Switch { processor, from, to, .. } => {
                let ran = ran.remove(from);
                let other = processors.insert(*processor, *to);
                if other.is_some_and(|other| other != *from) {
                    found.extend(ran.map(|(ns, said_ns)| TraceLine {
                        time_ns: said_ns - ns,
                        what: What::Come(*from),
                    }));
                }
            }
            What::Ran { thread, ns } => {
                let (sum_ns, said_ns) = ran.entry(*thread).or_default();
                *sum_ns += ns;
                *said_ns = *time_ns;
            }
            _ => {}
        }
    }
    found
}

/// All lines. A stack comes some lines after its switch, and names the thread again.
fn parse(trace: &str) -> Vec<TraceLine> {
    let mut traced: Vec<TraceLine> = Vec::new();
    let mut last_switch: HashMap<u32, usize> = HashMap::new();
    let mut stack_of: Option<usize> = None;
    for line in trace.lines().filter(|line| !line.starts_with('#')) {
        if let Some(function) = line.strip_prefix(" => ") {
            if let Some(index) = stack_of.filter(|_| function.starts_with("io_schedule"))
                && let What::Switch { in_io, .. } = &mut traced[index].what
            {
                *in_io = true;
            }
            continue;
        }
        if line.ends_with(": <stack trace>") {
            stack_of = current(line).and_then(|thread| last_switch.get(&thread).copied());
            continue;
        }
        let Some(event) = event(line) else {
            continue;
        };
        if let What::Switch { from, .. } = &event.what {
            last_switch.insert(*from, traced.len());
        }
        traced.push(event);
    }
    traced
}

/// The thread before the processor: `  dd-11886   [001] d..2.   622.694498: ...`.
fn current(line: &str) -> Option<u32> {
    let (task, _) = line.split_once(" [")?;
    task.trim_end().rsplit_once('-')?.1.parse().ok()
}

fn processor(line: &str) -> Option<u32> {
    line.split_once(" [")?.1.split_once(']')?.0.parse().ok()
}

fn event(line: &str) -> Option<TraceLine> {
    let (time_ns, traced) = stamp(line)?;
    let fields = traced.strip_prefix("sched_")?;
    let text = |name: &str| -> Option<&str> {
        let (_, rest) = fields.split_once(&format!(" {name}="))?;
        rest.split_whitespace().next()
    };
    let number = |name: &str| text(name)?.parse().ok();
    let what = match fields.split_once(':')?.0 {
        "switch" => What::Switch {
            processor: processor(line)?,
            from: number("prev_pid")?,
            state: text("prev_state")?.to_owned(),
            in_io: false,
            to: number("next_pid")?,
        },
        "waking" | "wakeup" => What::Wake(number("pid")?),
        "process_fork" => What::Fork { parent: number("pid")?, child: number("child_pid")? },
        "process_exec" => What::Exec(number("pid")?),
        "stat_runtime" => What::Ran { thread: number("pid")?, ns: number("runtime")?.into() },
        _ => return None,
    };
    Some(TraceLine { time_ns, what })
}

/// The time and the event: `... d..2.   622.694498: sched_switch: ...`.
fn stamp(line: &str) -> Option<(u64, &str)> {
    let (head, traced) = line.split_once(": ")?;
    let (seconds, micros) = head.rsplit_once(' ')?.1.split_once('.')?;
    let (seconds, micros): (u64, u64) = (seconds.parse().ok()?, micros.parse().ok()?);
    Some((seconds * 1_000_000_000 + micros * 1_000, traced))
}
