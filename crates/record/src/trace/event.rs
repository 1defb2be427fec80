//! What one kernel record says, in few bytes: records of all processors are brought into one
//! order as these before anything is made of them.
//!
//! Stacks are reduced to a [`State`] at once, so that nothing of variable size is kept.

use super::cpu::Seen;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is on a processor.
    Run,
    /// It could be.
    Queue,
    /// It waits for children of its own.
    Children,
    /// It waits for a block device.
    BlockIo(Io),
    /// It waits for something else.
    Sleep(Sleep),
}

/// How a thread leaves its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It could go on.
    Ready,
    /// It waits for this.
    Waits(State),
    /// It has ended.
    Ended,
}

/// Why a thread waits for a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// It reads through the page cache.
    Read,
    /// It writes through the page cache, or for reclaim.
    Write,
    /// It may not make more pages dirty for now.
    Dirty,
    /// It wants data to be durable.
    Flush,
    /// A swapped page comes back.
    SwapIn,
    /// It goes past the page cache.
    Direct,
    /// The file system reads its own data: inode tables, directories, maps of blocks.
    Metadata,
    /// A journal is committed.
    Journal,
    /// Pages are being written, and are wanted.
    Writeback,
    /// A device below another one: device mapper, RAID, loop.
    Lower,
    /// The stack says none of these.
    Other,
}

/// What a sleeping thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// A time that it named.
    Timer,
    /// A lock of the program.
    Lock,
    /// The other end of a pipe.
    Pipe,
    /// The other end of a socket.
    Socket,
    /// One of several descriptors.
    Poll,
    /// A signal, or to be continued.
    Signal,
    /// A lock on a file that a program asked for.
    FileLock,
    /// The inside of a file system: its own locks, its journal's room, its server.
    File,
    /// A journal, to be durable.
    Flush,
    /// Memory that others free.
    Reclaim,
    /// A lock on the way to a page.
    Fault,
    /// Something in the kernel that has no class.
    Kernel,
    /// The stack was not seen.
    Unknown,
}

impl Io {
    /// All of them, in the order of their numbers.
    pub const ALL: [(Io, &str); 11] = [
        (Io::Read, "read"),
        (Io::Write, "write"),
        (Io::Dirty, "dirty"),
        (Io::Flush, "flush"),
        (Io::SwapIn, "swap_in"),
        (Io::Direct, "direct"),
        (Io::Metadata, "metadata"),
        (Io::Journal, "journal"),
        (Io::Writeback, "writeback"),
        (Io::Lower, "lower"),
        (Io::Other, "other"),
    ];
}

impl Sleep {
    /// All of them, in the order of their numbers.
    pub const ALL: [(Sleep, &str); 13] = [
        (Sleep::Timer, "timer"),
        (Sleep::Lock, "lock"),
        (Sleep::Pipe, "pipe"),
        (Sleep::Socket, "socket"),
        (Sleep::Poll, "poll"),
        (Sleep::Signal, "signal"),
        (Sleep::FileLock, "file_lock"),
        (Sleep::File, "file"),
        (Sleep::Flush, "flush"),
        (Sleep::Reclaim, "reclaim"),
        (Sleep::Fault, "fault"),
        (Sleep::Kernel, "kernel"),
        (Sleep::Unknown, "unknown"),
    ];
}

impl State {
    /// How many there are.
    pub const COUNT: usize = 3 + Io::ALL.len() + Sleep::ALL.len();

    /// Its number, below [`State::COUNT`].
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            State::Run => 0,
            State::Queue => 1,
            State::Children => 2,
            State::BlockIo(io) => 3 + io as usize,
            State::Sleep(sleep) => 3 + Io::ALL.len() + sleep as usize,
        }
    }
}

/// A request's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Data comes from the device.
    Read,
    /// Data goes to it.
    Write,
    /// Its cache is made durable.
    Flush,
    /// Anything else: discards, commands.
    Other,
}

/// Which request on which device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRequest {
    /// The kernel's number of the device.
    pub device: u32,
    /// Its first sector of 512 bytes.
    pub sector: u64,
    /// Its direction.
    pub direction: Direction,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, on the clock of [`sys::clock`].
    pub time_ns: u64,
    /// What.
    pub what: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The sums start at 0 here.
    Start,
    /// /proc shows this thread in this state; `None`: it runs or could run.
    Seen { process: u32, thread: u32, state: Option<State> },
    /// A thread began.
    Fork { process: u32, thread: u32, parent: u32 },
    /// A thread ended.
    Exit { thread: u32 },
    /// A process began a new program, with this its only thread.
    Exec { process: u32, thread: u32 },
    /// A processor begins to change its thread. Reported before the stack was read, so the time
    /// that this takes is part of the wait.
    Switch { thread: u32, leave: Leave, next: u32 },
    /// A thread has left; reported even if [`EventKind::Switch`] is not.
    Out { thread: u32, is_preempted: bool },
    /// A thread has come; reported even if [`EventKind::Switch`] is not.
    In { thread: u32 },
    /// It may run again.
    Wakeup { thread: u32 },
    /// A thread began (or ended) to free memory for itself.
    Reclaim { process: u32, thread: u32, begins: bool },
    /// A thread began (or ended) to compact memory.
    Compaction { process: u32, thread: u32, begins: bool },
    /// A thread was made to wait by reclaim, for so long, until now.
    Throttled { process: u32, delay_ns: u64 },
    /// A writer is made to wait for write-back, for so long, from now on.
    DirtyWait { process: u32, pause_ns: u64 },
    /// A request went to its device.
    Issue { request: BlockRequest, bytes: u32 },
    /// The device did so much of it.
    Complete { request: BlockRequest, bytes: u32 },
    /// The device sent it back.
    Requeue { request: BlockRequest },
    /// A processor was looked at that ran this process.
    Sampled { process: u32, seen: Seen },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_different_numbers_below_the_count() {
        let mut seen = [false; State::COUNT];
        let ios = Io::ALL.map(|(io, _)| State::BlockIo(io));
        let sleeps = Sleep::ALL.map(|(sleep, _)| State::Sleep(sleep));
        let plain = [State::Run, State::Queue, State::Children];
        for state in plain.iter().chain(&ios).chain(&sleeps) {
            assert!(!std::mem::replace(&mut seen[state.index()], true), "{state:?}");
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}
