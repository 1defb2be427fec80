//! Loads an object: its types, its maps and its programs, each by one command to the kernel.
//!
//! `aya-obj` reads the object and relocates it. Its companion `aya` would do the rest too, but
//! reads all types of the kernel (150,000) in doing so and tries twelve features out, which is
//! half of the time that loading may take; the programs are verified beside each other here.

use super::kernel_types::KernelTypes;
use super::{Attachment, Constant, LOAD, command, failed, owned_descriptor};
use crate::error::{Error, Result};
use aya_obj::btf::{BtfFeatures, BtfKind};
use aya_obj::generated::bpf_insn;
use aya_obj::{EbpfSectionKind, Function, Map, Object};
use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Mutex;

/// Commands of linux/bpf.h.
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const PROGRAM_LOAD: libc::c_long = 5;
const TYPES_LOAD: libc::c_long = 18;
const MAP_FREEZE: libc::c_long = 22;

/// Kinds of programs, and what those of the first kind are attached to.
const TRACING: u32 = 26;
const PERF_EVENT: u32 = 7;
const TRACE_TRACEPOINT: u32 = 23;
pub(super) const TRACE_ITER: u32 = 28;

/// A kind of map that takes no types for its keys and values.
const MAP_RING: u32 = 27;

/// How often loading is begun anew where a signal cut it off, as libbpf does.
const LOAD_ATTEMPTS: usize = 5;

/// Names in the kernel, with the zero byte that ends them.
const NAME_BYTES: usize = 16;

/// The kinds of types that every kernel with these programs knows: others are replaced.
const KNOWN_KINDS: BtfFeatures =
    BtfFeatures::new(true, false, true, false, false, false, false, false);

/// An object whose maps are made; its programs are loaded on demand.
#[derive(Debug)]
pub(super) struct Loader {
    object: Object,
    kernel: KernelTypes,
    /// The object's own types, as the kernel knows them.
    types: OwnedFd,
}

impl Loader {
    /// Reads the object, sets its constants, and makes its maps, by name.
    pub(super) fn open(
        object: &[u8],
        kernel_types: &[u8],
        constants: &[(&str, Constant)],
    ) -> Result<(Self, HashMap<String, OwnedFd>)> {
        let unknown = || Error::invalid(LOAD, "the kernel's types have another form");
        let kernel = KernelTypes::read(kernel_types).ok_or_else(unknown)?;
        let mut object = Object::parse(object).map_err(|error| failed(LOAD, &error))?;
        let sizes: HashMap<&str, u32> = constants
            .iter()
            .filter_map(|(name, constant)| match constant {
                Constant::Entries(entries) => Some((*name, *entries)),
                _ => None,
            })
            .collect();
        let values = constants
            .iter()
            .filter(|(name, _)| !sizes.contains_key(name))
            .map(|(name, constant)| (*name, (constant.bytes(), true)));
        object.patch_map_data(values.collect()).map_err(|error| failed(LOAD, &error))?;
        let described = object.fixup_and_sanitize_btf(&KNOWN_KINDS);
        let own = described.map_err(|error| failed(LOAD, &error))?;
        let own_types = own.ok_or_else(|| Error::invalid(LOAD, "the object describes no types"))?;
        let types = load_types(&own_types.to_bytes())?;
        object.relocate_btf(&kernel.btf).map_err(|error| failed(LOAD, &error))?;
        let maps = make_maps(&mut object, &types, &sizes)?;
        Ok((Self { object, kernel, types }, maps))
    }

    /// Loads programs, each on a processor of its own as far as there are some: the answers of the
    /// kernel by name.
    pub(super) fn load(&self, wanted: &[(&str, Attachment)]) -> HashMap<String, Result<OwnedFd>> {
        // The long ones first, so that none of them is the last.
        let mut rest = wanted.to_vec();
        rest.sort_by_key(|(name, _)| self.function(name).map_or(0, |it| it.instructions.len()));
        let rest = Mutex::new(rest);
        let next = || rest.lock().ok().and_then(|mut rest| rest.pop());
        let work = || {
            let taken = std::iter::from_fn(next);
            let loaded = taken.map(|(name, to)| (name.to_owned(), self.load_one(name, to)));
            loaded.collect::<Vec<_>>()
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let others = 1..processors.min(wanted.len());
            // Where no thread can be made, this one does all the work.
            let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let helpers: Vec<_> = others.filter_map(spawn).collect();
            let own = work();
            let theirs = helpers.into_iter().filter_map(|helper| helper.join().ok());
            own.into_iter().chain(theirs.flatten()).collect()
        })
    }

    fn function(&self, name: &str) -> Option<&Function> {
        let program = self.object.programs.get(name)?;
        self.object.functions.get(&program.function_key())
    }

    fn load_one(&self, name: &str, to: Attachment) -> Result<OwnedFd> {
        let missing = || Error::invalid(LOAD, "the object has no such one").at(name);
        let function = self.function(name).ok_or_else(missing)?;
        let license = &self.object.programs.get(name).ok_or_else(missing)?.license;
        let (kind, attach_type, target) = match to {
            Attachment::Tracepoint(event) => {
                let types_of = self.type_of(&format!("btf_trace_{event}"), BtfKind::Typedef)?;
                (TRACING, TRACE_TRACEPOINT, types_of)
            }
            Attachment::Tasks => {
                (TRACING, TRACE_ITER, self.type_of("bpf_iter_task", BtfKind::Func)?)
            }
            Attachment::PerfEvent => (PERF_EVENT, 0, 0),
        };
        let program = ProgramText { name, license, function, kind, attach_type, target };
        program.load(&self.types).map_err(|error| Error::new(LOAD, error).at(name))
    }

    fn type_of(&self, name: &str, kind: BtfKind) -> Result<u32> {
        let absent = || Error::new(LOAD, std::io::Error::from_raw_os_error(libc::ENOENT)).at(name);
        self.kernel.place_in_kernel(name, kind).ok_or_else(absent)
    }
}

/// Makes all maps, those in `sizes` with so many entries, fills those that hold constants, and lets
/// the programs name them.
fn make_maps(
    object: &mut Object,
    types: &OwnedFd,
    sizes: &HashMap<&str, u32>,
) -> Result<HashMap<String, OwnedFd>> {
    let declared: Vec<(String, Map)> = object.maps.drain().collect();
    let mut made = HashMap::new();
    for (name, map) in &declared {
        let entries = sizes.get(name.as_str()).copied().unwrap_or_else(|| map.max_entries());
        let descriptor = make_map(name, map, entries, types);
        made.insert(name.clone(), descriptor.map_err(|error| Error::new(LOAD, error).at(name))?);
    }
    let text = object.functions.keys().map(|(section, _)| *section).collect();
    let named = declared
        .iter()
        .filter_map(|(name, map)| Some((name.as_str(), made.get(name)?.as_raw_fd(), map)));
    object.relocate_maps(named, &text).map_err(|error| failed(LOAD, &error))?;
    object.relocate_calls(&text).map_err(|error| failed(LOAD, &error))?;
    Ok(made)
}

fn make_map(name: &str, map: &Map, entries: u32, types: &OwnedFd) -> std::io::Result<OwnedFd> {
    /// The first fields of `union bpf_attr` for this command.
    #[repr(C)]
    #[derive(Default)]
    struct Create {
        kind: u32,
        key_bytes: u32,
        value_bytes: u32,
        entries: u32,
        flags: u32,
        inner: u32,
        node: u32,
        name: [u8; NAME_BYTES],
        interface: u32,
        types: u32,
        key_type: u32,
        value_type: u32,
    }
    let mut create = Create {
        kind: map.map_type(),
        key_bytes: map.key_size(),
        value_bytes: map.value_size(),
        entries,
        flags: map.map_flags(),
        name: short_name(name),
        ..Create::default()
    };
    if let (Map::Btf(typed), true) = (map, map.map_type() != MAP_RING) {
        create.types = types.as_raw_fd().unsigned_abs();
        create.key_type = typed.def.btf_key_type_id;
        create.value_type = typed.def.btf_value_type_id;
    }
    // SAFETY: `Create` is the kernel's layout, all of it set.
    let descriptor = unsafe { command(MAP_CREATE, &mut create) }?;
    // SAFETY: the kernel has just given this descriptor, which has no other owner.
    let made = unsafe { owned_descriptor(descriptor) };
    if !map.data().is_empty() {
        fill(&made, map.data())?;
    }
    if map.section_kind() == EbpfSectionKind::Rodata {
        freeze(&made)?;
    }
    Ok(made)
}

/// Sets the one value of a map.
fn fill(map: &OwnedFd, value: &[u8]) -> std::io::Result<()> {
    #[repr(C)]
    struct Update {
        map: u32,
        padding: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let first = 0u32;
    let mut update = Update {
        map: map.as_raw_fd().unsigned_abs(),
        padding: 0,
        key: std::ptr::from_ref(&first) as u64,
        value: value.as_ptr() as u64,
        flags: 0,
    };
    // SAFETY: `Update` is the kernel's layout; the map's value is as long as its data, by the
    // object, and both outlive the call.
    unsafe { command(MAP_UPDATE, &mut update) }.map(drop)
}

/// Lets the verifier take the values of a map as constants.
fn freeze(map: &OwnedFd) -> std::io::Result<()> {
    let mut number = map.as_raw_fd().unsigned_abs();
    // SAFETY: the command takes the descriptor alone.
    unsafe { command(MAP_FREEZE, &mut number) }.map(drop)
}

fn load_types(types: &[u8]) -> Result<OwnedFd> {
    #[repr(C)]
    struct Load {
        types: u64,
        log: u64,
        types_bytes: u32,
        log_bytes: u32,
        log_level: u32,
        padding: u32,
    }
    let mut load = Load {
        types: types.as_ptr() as u64,
        log: 0,
        types_bytes: types.len() as u32,
        log_bytes: 0,
        log_level: 0,
        padding: 0,
    };
    // SAFETY: `Load` is the kernel's layout; the types outlive the call.
    let descriptor = unsafe { command(TYPES_LOAD, &mut load) };
    // SAFETY: the kernel has just given this descriptor, which has no other owner.
    let owned = descriptor.map(|number| unsafe { owned_descriptor(number) });
    owned.map_err(|error| Error::new(LOAD, error))
}

/// Loads a program of two instructions for a perf event, and gives it up again.
pub(super) fn load_smallest() -> std::io::Result<()> {
    /// `r0 = 0; exit`, as linux/bpf.h encodes it on either order of bytes.
    const INSTRUCTIONS: [[u8; 8]; 2] = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    /// The first fields of `union bpf_attr` for this command.
    #[repr(C)]
    struct Load {
        kind: u32,
        instruction_count: u32,
        instructions: u64,
        license: u64,
    }
    let mut load = Load {
        kind: PERF_EVENT,
        instruction_count: INSTRUCTIONS.len() as u32,
        instructions: INSTRUCTIONS.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
    };
    // SAFETY: `Load` is the kernel's layout; what it points to outlives the call.
    let descriptor = unsafe { command(PROGRAM_LOAD, &mut load) }?;
    // SAFETY: the kernel has just given this descriptor, which has no other owner.
    drop(unsafe { owned_descriptor(descriptor) });
    Ok(())
}

/// A program, ready to be loaded.
struct ProgramText<'a> {
    name: &'a str,
    license: &'a CStr,
    function: &'a Function,
    kind: u32,
    attach_type: u32,
    /// The kernel's type of what it is attached to; 0 for none.
    target: u32,
}

impl ProgramText<'_> {
    fn load(&self, types: &OwnedFd) -> std::io::Result<OwnedFd> {
        /// The first fields of `union bpf_attr` for this command.
        #[repr(C)]
        #[derive(Default)]
        struct Load {
            kind: u32,
            instruction_count: u32,
            instructions: u64,
            license: u64,
            log_level: u32,
            log_bytes: u32,
            log: u64,
            kernel_version: u32,
            flags: u32,
            name: [u8; NAME_BYTES],
            interface: u32,
            attach_type: u32,
            types: u32,
            function_info_bytes: u32,
            function_info: u64,
            function_info_count: u32,
            line_info_bytes: u32,
            line_info: u64,
            line_info_count: u32,
            attach_target: u32,
        }
        let instructions: &[bpf_insn] = &self.function.instructions;
        let info = self.function.func_info.func_info_bytes();
        let mut load = Load {
            kind: self.kind,
            instruction_count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            license: self.license.as_ptr() as u64,
            name: short_name(self.name),
            attach_type: self.attach_type,
            types: types.as_raw_fd().unsigned_abs(),
            function_info_bytes: self.function.func_info_rec_size as u32,
            function_info: info.as_ptr() as u64,
            function_info_count: self.function.func_info.len() as u32,
            attach_target: self.target,
            ..Load::default()
        };
        let mut attempts = LOAD_ATTEMPTS;
        loop {
            attempts -= 1;
            // SAFETY: `Load` is the kernel's layout; what it points to outlives the call.
            match unsafe { command(PROGRAM_LOAD, &mut load) } {
                // SAFETY: the kernel has just given this descriptor, which has no other owner.
                Ok(descriptor) => return Ok(unsafe { owned_descriptor(descriptor) }),
                Err(error) if attempts > 0 && error.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A name as the kernel keeps it: cut, and ended by a zero byte.
fn short_name(name: &str) -> [u8; NAME_BYTES] {
    let mut short = [0; NAME_BYTES];
    // The kernel allows letters, digits, `_` and `.` alone: what the object's names are made of.
    short.iter_mut().take(NAME_BYTES - 1).zip(name.bytes()).for_each(|(to, byte)| *to = byte);
    short
}
