//! Programs inside of the kernel: loaded from one object, attached to events, read through maps.
//!
//! The object is relocated to the types of the running kernel, so one object fits all. Everything
//! that was loaded ends with this process, however it ends: programs live as long as the
//! descriptors that hold them. What the programs do, and what their numbers mean, is not known
//! here. Keys and values are words of the machine's order.

mod kernel_types;
mod object;

use crate::error::{Error, Result};
use aya::maps::{Array, HashMap as Hash, Map, MapData, PerCpuArray, PerCpuValues, RingBuf};
use object::{Loader, TRACE_ITER};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// What an operation on programs is called in errors.
const LOAD: &str = "load a program into the kernel";
const READ: &str = "read what a program in the kernel has counted";

/// Commands of linux/bpf.h.
const TRACEPOINT_OPEN: libc::c_long = 17;
const LOOKUP_BATCH: libc::c_long = 24;
const LOOKUP_AND_DELETE_BATCH: libc::c_long = 25;
const LINK_CREATE: libc::c_long = 28;
const ITER_CREATE: libc::c_long = 33;

/// Which form [`kernel_types`] gives: what is kept of another one is not to be used.
pub const KERNEL_TYPES_FORM: u32 = kernel_types::FORM;

/// The kernel's own description of the types, tracepoints and functions with these names, for
/// [`Programs::open`]. It holds until the machine starts anew.
///
/// # Errors
/// `NotFound` where the kernel does not describe them, `Invalid` where it does in another form.
pub fn kernel_types(names: &[&str]) -> Result<Vec<u8>> {
    const FILE: &str = "/sys/kernel/btf/vmlinux";
    let all = std::fs::read(FILE).map_err(|error| Error::new("read", error).at(FILE))?;
    let reduced = kernel_types::reduce(&all, names);
    reduced.ok_or_else(|| Error::invalid("understand", "it has another form").at(FILE))
}

/// The names of all programs in the kernel, cut after 15 bytes.
///
/// # Errors
/// `Denied` without the right to ask.
pub fn loaded() -> Result<Vec<String>> {
    let name = |info: aya::programs::ProgramInfo| info.name_as_str().unwrap_or_default().to_owned();
    let infos = aya::programs::loaded_programs().map(|info| info.map(name));
    infos.collect::<std::result::Result<_, _>>().map_err(|error| failed(READ, &error))
}

/// Whether the kernel takes any program of this process: a program of two instructions is loaded
/// and given up again, attached to nothing.
///
/// # Errors
/// `Denied` without `CAP_BPF` and `CAP_PERFMON`, or in a user namespace; `Unsupported` where the
/// kernel or a filter has no such call.
pub fn examine_right() -> Result<()> {
    object::load_smallest().map_err(|error| Error::new(LOAD, error))
}

/// What a program may be attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// A tracepoint, by its name without its group.
    Tracepoint(&'static str),
    /// Nothing: it runs over all tasks when it is read.
    Tasks,
    /// Events of [`crate::perf`], by [`crate::perf::Event::run`].
    PerfEvent,
}

/// A constant of the programs, set before they are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// 32 bits.
    Short(u32),
    /// 64 bits.
    Long(u64),
    /// No constant: the map of this name is made with so many entries, or a ring of so many bytes.
    Entries(u32),
}

impl Constant {
    fn bytes(&self) -> &[u8] {
        let (start, length) = match self {
            Self::Short(number) => (std::ptr::from_ref(number).cast::<u8>(), size_of::<u32>()),
            Self::Long(number) => (std::ptr::from_ref(number).cast::<u8>(), size_of::<u64>()),
            Self::Entries(_) => return &[],
        };
        // SAFETY: these are the bytes of a number that lives as long as `self`.
        unsafe { std::slice::from_raw_parts(start, length) }
    }
}

/// Loaded programs with their maps.
#[derive(Debug)]
pub struct Programs {
    /// What programs are loaded from; `None` once all are.
    loader: Option<Loader>,
    /// Maps that were not asked for yet.
    maps: HashMap<String, OwnedFd>,
    /// What the kernel answered for programs that are not attached yet.
    answers: HashMap<String, Result<OwnedFd>>,
    programs: HashMap<String, OwnedFd>,
    /// What holds programs at their tracepoints.
    links: Vec<OwnedFd>,
}

impl Programs {
    /// Creates the maps of `object` and sets its constants; no program is loaded yet. `types` is
    /// what [`kernel_types`] gave for the types that the programs name.
    ///
    /// # Errors
    /// `Denied` without the right to, `Unsupported` where the kernel has no such maps.
    pub fn open(object: &[u8], types: &[u8], constants: &[(&str, Constant)]) -> Result<Self> {
        let (loader, maps) = Loader::open(object, types, constants)?;
        let (answers, programs) = (HashMap::new(), HashMap::new());
        Ok(Self { loader: Some(loader), maps, answers, programs, links: Vec::new() })
    }

    /// Loads programs beside each other, which is faster than by [`Programs::attach`] alone. What
    /// the kernel answers is said there.
    pub fn load(&mut self, wanted: &[(&str, Attachment)]) {
        if let Some(loader) = &self.loader {
            self.answers.extend(loader.load(wanted));
        }
    }

    /// Attaches the program `name`, and loads it before if need be. What it runs over tasks is
    /// given back.
    ///
    /// # Errors
    /// `NotFound` where the kernel has no such event, `Denied` where it refuses the program.
    pub fn attach(&mut self, name: &str, to: Attachment) -> Result<Option<TaskReport>> {
        if !self.answers.contains_key(name) && !self.programs.contains_key(name) {
            self.load(&[(name, to)]);
        }
        let loaded = self.answers.remove(name).transpose()?;
        self.programs.extend(loaded.map(|program| (name.to_owned(), program)));
        let program = self.descriptor(name)?;
        match to {
            Attachment::Tracepoint(_) => {
                let link = open_tracepoint(program).map_err(|error| Error::new(LOAD, error))?;
                self.links.push(link);
                Ok(None)
            }
            Attachment::Tasks => {
                let report = TaskReport::of(program);
                report.map(Some).map_err(|error| Error::new(LOAD, error).at(name))
            }
            Attachment::PerfEvent => Ok(None),
        }
    }

    /// Says that no more is loaded: gives back the memory that loading needs.
    pub fn seal(&mut self) {
        self.loader = None;
    }

    /// The descriptor of an attached program, for what else it can be attached to.
    ///
    /// # Errors
    /// `Invalid` where it is not attached.
    pub fn descriptor(&self, name: &str) -> Result<BorrowedFd<'_>> {
        let program = self.programs.get(name).map(AsFd::as_fd);
        program.ok_or_else(|| Error::invalid(LOAD, "it is not attached").at(name))
    }

    /// An array of one value for each processor, `N` words each.
    ///
    /// # Errors
    /// `Invalid` where the object has no such map.
    pub fn per_processor<const N: usize>(&mut self, name: &str) -> Result<PerProcessor<N>> {
        PerCpuArray::try_from(Map::PerCpuArray(self.map(name)?))
            .map(PerProcessor)
            .map_err(|error| failed(LOAD, &error).at(name))
    }

    /// An array of values of `N` words.
    ///
    /// # Errors
    /// As [`Programs::per_processor`].
    pub fn words<const N: usize>(&mut self, name: &str) -> Result<Words<N>> {
        let array = Array::try_from(Map::Array(self.map(name)?));
        array.map(Words).map_err(|error| failed(LOAD, &error).at(name))
    }

    /// An array of numbers of 32 bits.
    ///
    /// # Errors
    /// As [`Programs::per_processor`].
    pub fn numbers(&mut self, name: &str) -> Result<Numbers> {
        let array = Array::try_from(Map::Array(self.map(name)?));
        array.map(Numbers).map_err(|error| failed(LOAD, &error).at(name))
    }

    /// A set of numbers of 32 bits.
    ///
    /// # Errors
    /// As [`Programs::per_processor`].
    pub fn set(&mut self, name: &str) -> Result<Set> {
        let set = Hash::try_from(Map::HashMap(self.map(name)?));
        set.map(Set).map_err(|error| failed(LOAD, &error).at(name))
    }

    /// A table of `K` bytes to values of `V` bytes, to be emptied or read.
    ///
    /// # Errors
    /// As [`Programs::per_processor`].
    pub fn table<const K: usize, const V: usize>(&mut self, name: &str) -> Result<Table<K, V>> {
        let is_of = |map: &MapData| {
            let info = map.info().ok();
            info.is_some_and(|info| (info.key_size(), info.value_size()) == (K as u32, V as u32))
        };
        let map = self.map(name)?;
        if is_of(&map) {
            Ok(Table::new(map))
        } else {
            Err(Error::invalid(LOAD, "its entries have another form").at(name))
        }
    }

    /// A ring of records.
    ///
    /// # Errors
    /// As [`Programs::per_processor`].
    pub fn ring(&mut self, name: &str) -> Result<Records> {
        let ring = RingBuf::try_from(Map::RingBuf(self.map(name)?));
        ring.map(Records).map_err(|error| failed(LOAD, &error).at(name))
    }

    fn map(&mut self, name: &str) -> Result<MapData> {
        let missing = || Error::invalid(LOAD, "the object has no such map").at(name);
        let map = self.maps.remove(name).ok_or_else(missing)?;
        MapData::from_fd(map).map_err(|error| failed(LOAD, &error).at(name))
    }
}

/// Attaches a program to the tracepoint that it was loaded for.
fn open_tracepoint(program: BorrowedFd<'_>) -> std::io::Result<OwnedFd> {
    #[repr(C)]
    struct Open {
        name: u64,
        program: u32,
        padding: u32,
    }
    let number = program.as_raw_fd().unsigned_abs();
    let mut open = Open { name: 0, program: number, padding: 0 };
    // SAFETY: `Open` is the kernel's layout, all of it set.
    let descriptor = unsafe { command(TRACEPOINT_OPEN, &mut open) }?;
    // SAFETY: the kernel has just given this descriptor, which has no other owner.
    Ok(unsafe { owned_descriptor(descriptor) })
}

/// A program that runs over all tasks, once for each reading.
#[derive(Debug)]
pub struct TaskReport {
    link: OwnedFd,
}

impl TaskReport {
    fn of(program: BorrowedFd<'_>) -> std::io::Result<Self> {
        /// The first fields of the kernel's `union bpf_attr` for this command.
        #[repr(C)]
        struct Link {
            program: u32,
            target: u32,
            attach_type: u32,
            flags: u32,
        }
        let number = program.as_raw_fd().unsigned_abs();
        let mut link = Link { program: number, target: 0, attach_type: TRACE_ITER, flags: 0 };
        // SAFETY: `Link` is the kernel's layout, all of it set.
        let descriptor = unsafe { command(LINK_CREATE, &mut link) }?;
        // SAFETY: the kernel has just given this descriptor, which has no other owner.
        Ok(Self { link: unsafe { owned_descriptor(descriptor) } })
    }

    /// Runs it over all tasks; what it wrote replaces `into`.
    ///
    /// # Errors
    /// `NoMemory`, or what the program made of it.
    pub fn read(&self, into: &mut Vec<u8>) -> Result<()> {
        #[repr(C)]
        struct Iteration {
            link: u32,
            flags: u32,
        }
        into.clear();
        let mut iteration = Iteration { link: self.link.as_raw_fd().unsigned_abs(), flags: 0 };
        // SAFETY: `Iteration` is the kernel's layout, all of it set.
        let descriptor = unsafe { command(ITER_CREATE, &mut iteration) };
        // SAFETY: the kernel has just given this descriptor, which has no other owner.
        let opened = descriptor.map(|number| File::from(unsafe { owned_descriptor(number) }));
        let read = opened.and_then(|mut file| file.read_to_end(into));
        read.map(drop).map_err(|error| Error::new(READ, error))
    }
}

/// Values of `N` words, one for each processor.
pub struct PerProcessor<const N: usize>(PerCpuArray<MapData, [u64; N]>);

impl<const N: usize> PerProcessor<N> {
    /// The values of all processors that there can be.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn read(&self) -> Result<impl Deref<Target = [[u64; N]]> + use<N>> {
        struct Values<const N: usize>(PerCpuValues<[u64; N]>);
        impl<const N: usize> Deref for Values<N> {
            type Target = [[u64; N]];
            fn deref(&self) -> &[[u64; N]] {
                &self.0
            }
        }
        self.0.get(&0, 0).map(Values).map_err(|error| failed(READ, &error))
    }
}

/// An array of values of `N` words.
pub struct Words<const N: usize>(Array<MapData, [u64; N]>);

impl<const N: usize> Words<N> {
    /// One value.
    ///
    /// # Errors
    /// `NotFound` beyond its end.
    pub fn get(&self, index: u32) -> Result<[u64; N]> {
        self.0.get(&index, 0).map_err(|error| failed(READ, &error))
    }
}

/// An array of numbers.
pub struct Numbers(Array<MapData, u32>);

impl Numbers {
    /// Sets one of them.
    ///
    /// # Errors
    /// `NotFound` beyond its end.
    pub fn put(&mut self, index: u32, number: u32) -> Result<()> {
        self.0.set(index, number, 0).map_err(|error| failed("instruct a program", &error))
    }
}

/// A set of numbers.
pub struct Set(Hash<MapData, u32, u32>);

impl Set {
    /// Adds a number.
    ///
    /// # Errors
    /// `NoMemory`, or `Other` (E2BIG) where it is full.
    pub fn insert(&mut self, number: u32) -> Result<()> {
        self.0.insert(number, 1, 0).map_err(|error| failed("instruct a program", &error))
    }

    /// Takes a number out.
    ///
    /// # Errors
    /// `NotFound` where it is not in the set.
    pub fn remove(&mut self, number: u32) -> Result<()> {
        self.0.remove(&number).map_err(|error| failed("instruct a program", &error))
    }
}

/// A table that a program fills.
#[derive(Debug)]
pub struct Table<const K: usize, const V: usize> {
    map: MapData,
    keys: Vec<[u8; K]>,
    values: Vec<[u8; V]>,
}

/// What one call takes out of a table: more than share one place in it.
const BATCH: usize = 256;

/// `struct bpf_attr` of the commands for many entries.
#[repr(C)]
struct Batch {
    from: u64,
    next: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    entry_flags: u64,
    flags: u64,
}

impl<const K: usize, const V: usize> Table<K, V> {
    fn new(map: MapData) -> Self {
        Self { map, keys: vec![[0; K]; BATCH], values: vec![[0; V]; BATCH] }
    }

    /// Hands every entry to `take`; the table keeps them.
    ///
    /// # Errors
    /// `Denied`, where the right to was given up; `Invalid` before Linux 5.6.
    pub fn each(&mut self, take: impl FnMut(&[u8; K], &[u8; V])) -> Result<()> {
        self.walk(LOOKUP_BATCH, take)
    }

    /// Takes every entry out of the table and hands it to `take`. What a program adds meanwhile is
    /// in this walk or in the next one, whole.
    ///
    /// # Errors
    /// As [`Table::each`].
    pub fn drain(&mut self, take: impl FnMut(&[u8; K], &[u8; V])) -> Result<()> {
        self.walk(LOOKUP_AND_DELETE_BATCH, take)
    }

    fn walk(
        &mut self,
        command_number: libc::c_long,
        mut take: impl FnMut(&[u8; K], &[u8; V]),
    ) -> Result<()> {
        // Where the walk is, in the kernel's own form.
        let mut place = [0u64; 2];
        let mut is_first = true;
        loop {
            let at = place.as_mut_ptr() as u64;
            let mut batch = Batch {
                from: if is_first { 0 } else { at },
                next: at,
                keys: self.keys.as_mut_ptr() as u64,
                values: self.values.as_mut_ptr() as u64,
                count: BATCH as u32,
                map: self.map.fd().as_fd().as_raw_fd().unsigned_abs(),
                entry_flags: 0,
                flags: 0,
            };
            // SAFETY: `Batch` is the kernel's layout; keys and values have room for `count`
            // entries of the map's own sizes, which were checked when it was opened.
            let answer = unsafe { command(command_number, &mut batch) };
            let is_last = match answer {
                Ok(_) => false,
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
                Err(error) => return Err(Error::new(READ, error)),
            };
            let entries = self.keys.iter().zip(&self.values);
            entries.take(batch.count as usize).for_each(|(key, value)| take(key, value));
            if is_last {
                return Ok(());
            }
            is_first = false;
        }
    }
}

/// A ring of records, each whole.
pub struct Records(RingBuf<MapData>);

impl Records {
    /// Hands every record that is there to `take`, oldest first.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        while let Some(record) = self.0.next() {
            take(&record);
        }
    }
}

/// The loader's maps do not print themselves.
macro_rules! named_debug {
    ($($map:ty $(, $size:ident)?);* $(;)?) => {$(
        impl$(<const $size: usize>)? std::fmt::Debug for $map {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(stringify!($map))
            }
        }
    )*};
}

named_debug! {
    PerProcessor<N>, N;
    Words<N>, N;
    Numbers;
    Set;
    Records;
}

/// An error of the loader as one of this crate: the kernel's own answer, if it is the reason.
fn failed(operation: &'static str, error: &(dyn std::error::Error + 'static)) -> Error {
    let mut reasons = std::iter::successors(Some(error), |error| error.source());
    let number = reasons.find_map(|reason| {
        reason.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error)
    });
    let source = match number {
        Some(number) => std::io::Error::from_raw_os_error(number),
        None => std::io::Error::other(error.to_string()),
    };
    Error::new(operation, source)
}

/// One command to the kernel with its part of `union bpf_attr`.
///
/// # Safety
/// `attributes` has the kernel's layout of the command, and what it points to is as the command
/// demands.
unsafe fn command<T>(number: libc::c_long, attributes: &mut T) -> std::io::Result<libc::c_long> {
    // SAFETY: the caller's; the size is that of what is passed.
    let answer = unsafe {
        libc::syscall(libc::SYS_bpf, number, std::ptr::from_mut(attributes), size_of::<T>())
    };
    if answer < 0 { Err(std::io::Error::last_os_error()) } else { Ok(answer) }
}

/// # Safety
/// `number` is a descriptor that the kernel has just given and that nothing else owns.
unsafe fn owned_descriptor(number: libc::c_long) -> OwnedFd {
    use std::os::fd::FromRawFd;
    // SAFETY: the caller's; descriptors are small numbers.
    unsafe { OwnedFd::from_raw_fd(number as libc::c_int) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::process::as_user;

    #[test]
    fn the_smallest_program_is_taken_from_root_and_refused_to_others() {
        if !testkit::is_admin() {
            return testkit::skip("CAP_SYS_ADMIN");
        }
        match examine_right() {
            Ok(()) => {}
            Err(error) => return testkit::skip(format!("programs in the kernel: {error}")),
        }
        let refused = as_user(65_534, 65_534, examine_right).unwrap().unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Denied, "{refused}");
    }
}
