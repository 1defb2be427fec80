//! Kernel events for a reader that polls: switches, forks, tracepoints, counts.
//!
//! The idea: one ring of memory per processor, shared by every event of that processor, so
//! that its records come in one order. All samples have one layout, whatever
//! their event, so that a ring is read without looking events up. Times are of the clock of
//! [`crate::clock`]. What the records mean is not known here.
//!
//! Closing the last event of a tracepoint waits for the kernel to come to rest: 40 ms for
//! each. Let a [`Holder`] do that.

mod holder;
mod record;
mod ring;

pub use holder::{Holder, wait_until_left};
pub use record::{Record, Sample, Switch, Task};
pub use ring::Ring;

use crate::error::{Error, Result, check, owned};
use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// `PERF_FLAG_FD_CLOEXEC`, from linux/perf_event.h, as the rest here.
const FLAG_CLOEXEC: libc::c_ulong = 8;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const SOFTWARE_CPU_CLOCK: u64 = 0;
const SOFTWARE_PAGE_FAULTS: u64 = 2;
const SOFTWARE_DUMMY: u64 = 9;
const IOCTL_ENABLE: libc::c_ulong = 0x2400;
const IOCTL_DISABLE: libc::c_ulong = 0x2401;
const IOCTL_SET_OUTPUT: libc::c_ulong = 0x2405;
const IOCTL_SET_FILTER: libc::c_ulong = 0x4008_2406;
const IOCTL_SET_BPF: libc::c_ulong = 0x4004_2408;
const IOCTL_ID: libc::c_ulong = 0x8008_2407;

/// What an event reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSource {
    /// Nothing by itself: it carries the notices of [`Attributes`].
    Notices,
    /// Page faults, to be counted.
    PageFaults,
    /// A tick of a processor's clock each so many ns, while it is not idle: a sample with its
    /// stack if that has frames, else for [`Event::run`].
    ProcessorClock(u64),
    /// The tracepoint of this number, each passing a sample with its raw data.
    Tracepoint(u64),
}

/// How an event is opened. It starts switched off.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// What it reports.
    pub source: EventSource,
    /// Notices of every switch of the processor, also from and to its idle task.
    pub switches: bool,
    /// Notices of threads that begin and end, and of programs that begin in one.
    pub tasks: bool,
    /// Frames of the kernel's stack to add to each sample; 0 for none.
    pub stack_frames: u16,
    /// Whether what happens in the kernel is left out.
    pub user_only: bool,
    /// Whether later children of the task are counted with it.
    pub inherit: bool,
}

impl Attributes {
    /// An event of `source` and nothing more.
    #[must_use]
    pub fn new(source: EventSource) -> Self {
        Self {
            source,
            switches: false,
            tasks: false,
            stack_frames: 0,
            user_only: false,
            inherit: false,
        }
    }
}

/// `struct perf_event_attr` up to and with `sample_max_stack` (`PERF_ATTR_SIZE_VER5`).
#[repr(C)]
#[derive(Default)]
struct RawAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branches: u64,
    registers: u64,
    user_stack: u32,
    clock: i32,
    interrupt_registers: u64,
    aux_watermark: u32,
    stack_frames: u16,
    reserved: u16,
}

/// The bits of `RawAttributes::flags`.
mod flag {
    pub const DISABLED: u64 = 1 << 0;
    pub const INHERIT: u64 = 1 << 1;
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub const EXCLUDE_IDLE: u64 = 1 << 7;
    pub const COMM: u64 = 1 << 9;
    pub const TASK: u64 = 1 << 13;
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub const NO_KERNEL_STACK: u64 = 1 << 21;
    pub const NO_USER_STACK: u64 = 1 << 22;
    pub const COMM_EXEC: u64 = 1 << 24;
    pub const USE_CLOCK: u64 = 1 << 25;
    pub const CONTEXT_SWITCH: u64 = 1 << 26;
}

impl RawAttributes {
    fn of(attributes: &Attributes) -> Self {
        let (kind, config) = match attributes.source {
            EventSource::Notices => (TYPE_SOFTWARE, SOFTWARE_DUMMY),
            EventSource::PageFaults => (TYPE_SOFTWARE, SOFTWARE_PAGE_FAULTS),
            EventSource::ProcessorClock(_) => (TYPE_SOFTWARE, SOFTWARE_CPU_CLOCK),
            EventSource::Tracepoint(id) => (TYPE_TRACEPOINT, id),
        };
        let sample_period = match attributes.source {
            EventSource::ProcessorClock(period_ns) => period_ns,
            _ => u64::from(kind == TYPE_TRACEPOINT),
        };
        let mut flags = flag::DISABLED | flag::NO_USER_STACK | flag::USE_CLOCK;
        let mut set = |wanted: bool, bits: u64| flags |= if wanted { bits } else { 0 };
        set(attributes.inherit, flag::INHERIT);
        set(attributes.user_only, flag::EXCLUDE_KERNEL);
        set(attributes.switches, flag::CONTEXT_SWITCH);
        set(attributes.tasks, flag::TASK | flag::COMM | flag::COMM_EXEC);
        let is_clock = matches!(attributes.source, EventSource::ProcessorClock(_));
        // A program takes the stack itself.
        set(attributes.stack_frames == 0 && !is_clock, flag::NO_KERNEL_STACK);
        set(is_clock, flag::EXCLUDE_IDLE);
        let counted = attributes.source == EventSource::PageFaults
            || (is_clock && attributes.stack_frames == 0);
        set(!counted, flag::SAMPLE_ID_ALL);
        Self {
            kind,
            size: size_of::<Self>() as u32,
            config,
            sample_period,
            sample_type: if counted { 0 } else { record::SAMPLE_TYPE },
            flags,
            clock: libc::CLOCK_MONOTONIC,
            stack_frames: attributes.stack_frames,
            ..Self::default()
        }
    }
}

/// An open event; it ends with this value.
#[derive(Debug)]
pub struct Event {
    descriptor: File,
}

impl Event {
    /// Opens it for everything that happens on one processor.
    ///
    /// # Errors
    /// `Denied` for those who may not watch the machine, `NotFound` for a processor that is
    /// off or an event that the kernel lacks, `Invalid` from kernels that are too old.
    pub fn on_processor(attributes: &Attributes, processor: u32) -> Result<Self> {
        let processor = libc::c_int::try_from(processor)
            .map_err(|_| Error::invalid("watch kernel events", "no such processor"))?;
        Self::open(attributes, -1, processor)
    }

    /// Opens it for one thread, wherever it runs.
    ///
    /// # Errors
    /// As [`Event::on_processor`]; `Other` (ESRCH) for a thread that is gone.
    pub fn on_thread(attributes: &Attributes, thread: u32) -> Result<Self> {
        let thread = libc::pid_t::try_from(thread)
            .map_err(|_| Error::invalid("watch kernel events", "no such thread"))?;
        Self::open(attributes, thread, -1)
    }

    fn open(attributes: &Attributes, thread: libc::pid_t, processor: libc::c_int) -> Result<Self> {
        let mut raw = RawAttributes::of(attributes);
        // SAFETY: `raw` has the kernel's layout and states its own size; the rest are numbers.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw mut raw,
                thread,
                processor,
                -1 as libc::c_int,
                FLAG_CLOEXEC,
            )
        };
        let descriptor: OwnedFd = owned("watch kernel events", answer)?;
        Ok(Self { descriptor: descriptor.into() })
    }

    /// Switches it on.
    ///
    /// # Errors
    /// Only where a filter forbids the call.
    pub fn enable(&self) -> Result<()> {
        self.control("start a kernel event", IOCTL_ENABLE, 0)
    }

    /// Switches it off; what was recorded can still be read.
    ///
    /// # Errors
    /// Only where a filter forbids the call.
    pub fn disable(&self) -> Result<()> {
        self.control("stop a kernel event", IOCTL_DISABLE, 0)
    }

    /// Sends its records to the ring of `other`, which is of the same processor.
    ///
    /// # Errors
    /// `Invalid` if it is of another one.
    pub fn share_ring_of(&self, other: &Event) -> Result<()> {
        let descriptor = other.descriptor.as_raw_fd();
        self.control("share a ring of kernel events", IOCTL_SET_OUTPUT, descriptor as libc::c_ulong)
    }

    /// Lets only those passings of its tracepoint make a sample whose fields fulfil `condition`,
    /// in the language of the kernel's event filters.
    ///
    /// # Errors
    /// `Invalid` for a condition that the kernel does not understand.
    pub fn filter(&self, condition: &CStr) -> Result<()> {
        // SAFETY: this ioctl reads a C string, which lives through the call.
        let answer = unsafe {
            libc::ioctl(self.descriptor.as_raw_fd(), IOCTL_SET_FILTER as _, condition.as_ptr())
        };
        check("filter a kernel event", answer)?;
        Ok(())
    }

    /// Runs a loaded program of [`crate::bpf`] at each of its samples.
    ///
    /// # Errors
    /// `Denied` without the right to; `Invalid` for a program of another kind.
    pub fn run(&self, program: BorrowedFd<'_>) -> Result<()> {
        let number = program.as_raw_fd() as libc::c_ulong;
        self.control("run a program at a kernel event", IOCTL_SET_BPF, number)
    }

    /// The number that its samples carry.
    ///
    /// # Errors
    /// Only where a filter forbids the call.
    pub fn id(&self) -> Result<u64> {
        let mut id = 0u64;
        // SAFETY: this ioctl stores one 64-bit number; `id` is live and writable.
        let answer =
            unsafe { libc::ioctl(self.descriptor.as_raw_fd(), IOCTL_ID as _, &raw mut id) };
        check("read the number of a kernel event", answer)?;
        Ok(id)
    }

    /// How often it has happened, children included where they inherit it.
    ///
    /// # Errors
    /// `Invalid` if the kernel answers with something else.
    pub fn count(&self) -> Result<u64> {
        const OPERATION: &str = "read a kernel count";
        let mut word = [0; 8];
        let mut descriptor = &self.descriptor;
        descriptor.read_exact(&mut word).map_err(|source| Error::new(OPERATION, source))?;
        Ok(u64::from_ne_bytes(word))
    }

    fn control(
        &self,
        operation: &'static str,
        request: libc::c_ulong,
        argument: libc::c_ulong,
    ) -> Result<()> {
        // SAFETY: these requests take a number and touch no memory of ours.
        let answer = unsafe { libc::ioctl(self.descriptor.as_raw_fd(), request as _, argument) };
        check(operation, answer)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
