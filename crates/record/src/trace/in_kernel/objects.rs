//! The object with the programs, its maps, and the layout of what they hold: the one place that
//! knows both `bpf/*.h` and the nouns of this side.

use crate::collect::{TREE_FIGURES, counts_block_waits};
use crate::run_directory::KERNEL_TYPES as KERNEL_TYPES_FILE;
use crate::trace::Family;
use crate::trace::accesses::{AccessMaps, RING_BYTES};
use crate::trace::block::{CLASS_COUNT, RequestSums, RequestTotals};
use crate::trace::event::{Io, Sleep, State};
use crate::trace::hits::HitSums;
use crate::trace::returns::{DISTANCE_CLASSES, KINDS, ReturnSums};
use crate::trace::stack::kept;
use machine::Root;
use model::recording::ProcessFigure;
use std::collections::BTreeSet;
use sys::bpf::{Constant, Numbers, PerProcessor, Programs, Records, Set, Table, Words};

/// The programs, built from C by `cargo xtask bpf`.
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("../../../bpf/recorder.bpf.o"));

/// A loader reads it in words.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);

/// The types of the kernel that `bpf/kernel.h` names.
const KERNEL_TYPES: &[&str] = &[
    "address_space",
    "bio",
    "bio_vec",
    "block_device",
    "bpf_iter__task",
    "bpf_iter_meta",
    "bvec_iter",
    "cred",
    "dentry",
    "folio",
    "gendisk",
    "hlist_head",
    "hlist_node",
    "inode",
    "kuid_t",
    "mm_rss_stat",
    "mm_struct",
    "page",
    "pageflags",
    "percpu_counter",
    "qstr",
    "queue_limits",
    "req_flag_bits",
    "request",
    "request_queue",
    "sched_entity",
    "sched_info",
    "seq_file",
    "signal_struct",
    "super_block",
    "task_delay_info",
    "task_io_accounting",
    "task_struct",
];
/// How the kernel describes the events that programs are attached to.
const EVENTS: &[&str] = &[
    "bpf_iter_task",
    "btf_trace_balance_dirty_pages",
    "btf_trace_block_bio_queue",
    "btf_trace_block_io_start",
    "btf_trace_block_rq_complete",
    "btf_trace_block_rq_issue",
    "btf_trace_block_rq_requeue",
    "btf_trace_mm_compaction_begin",
    "btf_trace_mm_compaction_end",
    "btf_trace_mm_filemap_add_to_page_cache",
    "btf_trace_mm_filemap_delete_from_page_cache",
    "btf_trace_mm_filemap_fault",
    "btf_trace_mm_filemap_get_pages",
    "btf_trace_mm_vmscan_direct_reclaim_begin",
    "btf_trace_mm_vmscan_direct_reclaim_end",
    "btf_trace_mm_vmscan_memcg_reclaim_begin",
    "btf_trace_mm_vmscan_memcg_reclaim_end",
    "btf_trace_mm_vmscan_throttled",
    "btf_trace_sched_process_fork",
    "btf_trace_sched_switch",
    "btf_trace_sched_wakeup_new",
    "btf_trace_sched_waking",
    "btf_trace_writeback_dirty_folio",
];

/// Kernel time is counted in units of 16 ns.
pub const TICK_NS: u64 = 16;
/// States of the kernel side: first the one of a new thread, then those of [`State::index`].
pub const STATES: usize = 32;
const _: () = assert!(State::COUNT < STATES);
/// What is counted by processor.
pub const COUNTS: usize = 20;
/// Figures of a process.
pub const FIGURES: usize = ProcessFigure::COUNT;
/// Words of the sums of one processor.
pub const SUMS_WORDS: usize = 2 + 2 * STATES + COUNTS + FIGURES;
/// What all threads together used, and how many there are (`struct totals`).
pub const TOTALS: usize = TREE_FIGURES + 3;
/// Words of the wall: counts, since when, four sums.
pub const WALL_WORDS: usize = 6;
/// Words of `struct returns`.
pub const RETURN_WORDS: usize = 2 * KINDS * (1 + DISTANCE_CLASSES);
/// Words of `struct hits`.
pub const HIT_WORDS: usize = 2 * DISTANCE_CLASSES + 2;
/// `SLOTS` of returns.h: pages in memory that are followed, where hits are.
const SLOTS: u32 = 1 << 20;
/// Frames of a stack.
pub const FRAMES: usize = 32;

const NAME_BYTES: usize = 16;
const THREAD_BYTES: usize = 56 + 8 * FIGURES;
const STACK_BYTES: usize = 16 + 8 * FRAMES;
const SHORT_KEY_BYTES: usize = 4 + NAME_BYTES;
const SHORT_VALUE_BYTES: usize = 8 + 8 * FIGURES;
const DEVICE_BYTES: usize = 8 * (4 + CLASS_COUNT);
/// `struct file_key`.
pub const FILE_KEY_BYTES: usize = 16;
/// Names of a path, its own first, and the bytes of each.
pub const FILE_NAMES: (usize, usize) = (7, 48);
/// `struct file_value`.
pub const FILE_VALUE_BYTES: usize = 32 + FILE_NAMES.0 * FILE_NAMES.1;

/// `struct user_key`.
pub const USER_KEY_BYTES: usize = 12;
/// `struct user_sums`.
pub const USER_BYTES: usize = 8 * (3 + CLASS_COUNT);

const KIND_END: u32 = 1;
const KIND_STACK: u32 = 2;
const KIND_CPU: u32 = 3;
const KIND_USE: u32 = 4;
const FLAG_KERNEL: u32 = 1;
const FLAG_ENDED: u32 = 2;

/// The maps of the programs.
#[derive(Debug)]
pub struct Maps {
    pub members: Set,
    pub sums: PerProcessor<SUMS_WORDS>,
    pub report_sums: Words<SUMS_WORDS>,
    pub living: Words<TOTALS>,
    pub ended: PerProcessor<TOTALS>,
    pub wall: Words<WALL_WORDS>,
    pub news: Records,
    pub stack_states: Numbers,
    pub stack_ticks: Words<1>,
    pub devices: Table<8, DEVICE_BYTES>,
    pub short: Table<SHORT_KEY_BYTES, SHORT_VALUE_BYTES>,
    pub files: Table<FILE_KEY_BYTES, FILE_VALUE_BYTES>,
    pub device_users: Table<USER_KEY_BYTES, USER_BYTES>,
    pub returns: Words<RETURN_WORDS>,
    pub hits: Words<HIT_WORDS>,
    /// Taken by what keeps them.
    pub accesses: Option<AccessMaps>,
}

/// What a state is called in the kernel.
pub fn kernel_state(state: State) -> u32 {
    state.index() as u32 + 1
}

/// Makes the maps; no program is loaded yet.
pub fn open(
    epoch_ns: u64,
    everyone: bool,
    families: &BTreeSet<Family>,
) -> sys::Result<(Programs, Maps)> {
    let mut constants = vec![
        ("epoch_ns", Constant::Long(epoch_ns)),
        ("everyone", Constant::Short(u32::from(everyone))),
        ("counts_delays", Constant::Short(u32::from(counts_block_waits(&Root::system())))),
        ("page_shift", Constant::Short(sys::process::page_bytes().ilog2())),
        ("first_block", Constant::Short(kernel_state(State::BlockIo(Io::Read)))),
        ("first_sleep", Constant::Short(kernel_state(State::Sleep(Sleep::Timer)))),
        ("block_unknown", Constant::Short(kernel_state(State::BlockIo(Io::Other)))),
        ("sleep_unknown", Constant::Short(kernel_state(State::Sleep(Sleep::Unknown)))),
    ];
    if families.contains(&Family::Accesses) {
        constants.push(("accesses", Constant::Entries(RING_BYTES)));
    }
    if families.contains(&Family::Hits) {
        constants.push(("pages_in", Constant::Entries(SLOTS)));
    }
    let names: Vec<&str> = [KERNEL_TYPES, EVENTS].concat();
    let make = || sys::bpf::kernel_types(&names);
    let rules = (sys::bpf::KERNEL_TYPES_FORM, &names);
    let types = kept::bytes_of_kernel(KERNEL_TYPES_FILE, &rules, make)?;
    let mut programs = Programs::open(&OBJECT.0, &types, &constants)?;
    let maps = Maps {
        members: programs.set("members")?,
        sums: programs.per_processor("sums")?,
        report_sums: programs.words("report_sums")?,
        living: programs.words("living")?,
        ended: programs.per_processor("ended")?,
        wall: programs.words("walls")?,
        news: programs.ring("news")?,
        stack_states: programs.numbers("stack_states")?,
        stack_ticks: programs.words("stack_ticks")?,
        devices: programs.table("devices")?,
        short: programs.table("short_processes")?,
        files: programs.table("files")?,
        device_users: programs.table("device_users")?,
        returns: programs.words("returns")?,
        hits: programs.words("hits")?,
        accesses: Some(AccessMaps {
            records: programs.ring("accesses")?,
            masks: programs.numbers("access_masks")?,
            losses: programs.words("access_losses")?,
        }),
    };
    Ok((programs, maps))
}

/// What a thread used since it was last reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadRecord {
    pub process: u32,
    pub parent: u32,
    pub user: u32,
    pub is_kernel: bool,
    /// Whether its process has ended.
    pub has_ended: bool,
    pub started_ns: u64,
    pub memory_bytes: u64,
    pub name: String,
    /// By [`ProcessFigure::ALL`], in its units.
    pub figures: [u64; FIGURES],
}

/// Short-lived processes of one name and parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortRecord {
    pub parent: u32,
    pub name: String,
    pub processes: u64,
    pub figures: [u64; FIGURES],
}

/// What the programs report at once.
#[derive(Debug)]
pub enum News<F> {
    Used(ThreadRecord),
    Stack { id: u32, is_block: bool, frames: F },
    Cpu { of: Sampled, frames: F },
}

/// Which process a sample met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    pub process: u32,
    pub parent: u32,
    pub name: String,
    pub is_kernel_thread: bool,
}

/// Reads one record of the ring; `None` for one that is not whole.
pub fn news(record: &[u8]) -> Option<News<impl Iterator<Item = u64> + Clone>> {
    let kind = number(record, 0)?;
    if kind == KIND_END || kind == KIND_USE {
        return thread(record).map(News::Used);
    }
    let stack = record.get(16..STACK_BYTES)?;
    let first = number(record, 4)?;
    let second = number(record, 8)?;
    let count = if kind == KIND_CPU { number(record, 12)? as usize } else { FRAMES };
    let (words, _) = stack.as_chunks::<8>();
    let addresses = words.iter().take(count).map(|word| u64::from_ne_bytes(*word));
    let frames = addresses.take_while(|frame| *frame != 0);
    match kind {
        KIND_STACK => Some(News::Stack { id: first, is_block: second != 0, frames }),
        KIND_CPU => {
            let of = Sampled {
                process: first,
                parent: number(record, STACK_BYTES)?,
                name: text(record.get(STACK_BYTES + 4..STACK_BYTES + 4 + NAME_BYTES)?),
                is_kernel_thread: second != 0,
            };
            Some(News::Cpu { of, frames })
        }
        _ => None,
    }
}

/// The records that a walk over the tasks wrote.
pub fn threads(records: &[u8]) -> impl Iterator<Item = ThreadRecord> {
    records.chunks_exact(THREAD_BYTES).filter_map(thread)
}

fn thread(record: &[u8]) -> Option<ThreadRecord> {
    let flags = number(record, 20)?;
    Some(ThreadRecord {
        process: number(record, 4)?,
        parent: number(record, 12)?,
        user: number(record, 16)?,
        is_kernel: flags & FLAG_KERNEL != 0,
        has_ended: flags & FLAG_ENDED != 0,
        started_ns: word(record, 24)?,
        memory_bytes: word(record, 32)? * sys::process::page_bytes() as u64,
        name: text(record.get(40..56)?),
        figures: figures(record.get(56..)?)?,
    })
}

/// Reads one entry of the short-lived processes.
pub fn short(key: &[u8; SHORT_KEY_BYTES], value: &[u8; SHORT_VALUE_BYTES]) -> ShortRecord {
    ShortRecord {
        parent: number(key, 0).unwrap_or_default(),
        name: text(&key[4..]),
        processes: word(value, 0).unwrap_or_default(),
        figures: figures(&value[8..]).unwrap_or_default(),
    }
}

/// Reads the figures of all devices.
pub fn read_devices(
    devices: &mut Table<8, DEVICE_BYTES>,
    totals: &mut RequestTotals,
) -> sys::Result<()> {
    let mut all = RequestSums::default();
    devices.each(|key, value| {
        let (Some(number), Some(direction)) = (number(key, 0), number(key, 4)) else {
            return;
        };
        let direction = direction as usize;
        let (Some(sum), Some(device)) = (all.get_mut(direction), totals.device(number, |_| None))
        else {
            return;
        };
        let word = |index: usize| word(value, 8 * index).unwrap_or_default();
        let done = &mut device.sums[direction];
        (done.requests, done.bytes, done.latency_ns) = (word(0), word(1), word(2));
        done.misaligned = word(3);
        for (class, count) in done.classes.iter_mut().enumerate() {
            *count = word(4 + class);
        }
        sum.requests += done.requests;
        sum.bytes += done.bytes;
        sum.latency_ns += done.latency_ns;
    })?;
    totals.all = all;
    Ok(())
}

/// Pages that left memory and came back, as the kernel has them.
pub fn returns(maps: &Maps) -> sys::Result<ReturnSums> {
    let words = maps.returns.get(0)?;
    let (totals, classes) = words.split_at(2 * KINDS);
    let mut sums = ReturnSums::default();
    sums.left.copy_from_slice(&totals[..KINDS]);
    sums.came_back.copy_from_slice(&totals[KINDS..]);
    sums.classes.as_flattened_mut().as_flattened_mut().copy_from_slice(classes);
    Ok(sums)
}

/// Pages that were used again, as the kernel has them.
pub fn hits(maps: &Maps) -> sys::Result<HitSums> {
    let words = maps.hits.get(0)?;
    let mut sums = HitSums::default();
    let classes = sums.0.as_flattened_mut();
    classes.copy_from_slice(&words[..classes.len()]);
    Ok(sums)
}

/// Figures of a process; the first four are times, counted in ticks.
pub fn figures(words: &[u8]) -> Option<[u64; FIGURES]> {
    let mut figures = [0; FIGURES];
    for figure in ProcessFigure::ALL {
        // Below 0 where another processor was ahead of the report.
        let value = word(words, 8 * figure as usize)?.cast_signed().max(0).cast_unsigned();
        let unit = if figure.unit() == "ns" { TICK_NS } else { 1 };
        figures[figure as usize] = value.wrapping_mul(unit);
    }
    Some(figures)
}

/// 32 bits at an offset.
pub fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// 64 bits at an offset.
pub fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// A text that ends with a zero byte.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
