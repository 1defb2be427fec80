//! One way to copy, read or zero memory: its name, what it costs on the bus, whether it runs here,
//! and running it.
//!
//! The rows themselves are in `registry`, the loops in the files of their instruction sets.

use crate::cpu::{self, Need};
use crate::disassemble::{self, DisassembleError, Instruction};
use crate::kernel::{self, Kernel};
use crate::libc;

/// What a method does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Moves every byte of a source to a target.
    Copy,
    /// Loads every byte of a source.
    Read,
    /// Sets every byte of a target to zero.
    Write,
}

/// The family that a method belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Element by element, in assembly: the pointer loops of 2001 and their 64-bit word
    /// counterparts.
    Classic,
    /// The same source as the classic loops, as today's compiler optimises it.
    Compiler,
    /// The C library's own function.
    Libc,
    /// `rep movs` and `rep stos`.
    StringInstruction,
    /// 16-byte vectors on x86-64.
    Sse2,
    /// 32-byte vectors on x86-64.
    Avx2,
    /// 64-byte vectors on x86-64.
    Avx512,
    /// 16-byte vectors on aarch64.
    Neon,
    /// Instructions that act on a whole cache line: `clzero`.
    CacheLine,
}

/// Which transfers between cache and RAM one operated byte causes, for buffers far larger than the
/// caches.
///
/// A store that misses the caches first fetches its line (a read for ownership), unless it is
/// non-temporal or the CPU can claim whole lines unread. For `rep movs` and `rep stos` the latter
/// is inferred from measured rates on CPUs with ERMS or FSRM, not promised by an architecture
/// manual; without ERMS the fetch is assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Traffic {
    /// The source is read.
    Read,
    /// The target is written, its lines never fetched.
    WriteStreamed,
    /// The target is fetched and written back.
    WriteAllocate,
    /// The source is read and the target written.
    CopyStreamed,
    /// The source is read, the target fetched and written back.
    CopyAllocate,
}

impl Traffic {
    /// Bytes on the memory bus for each byte operated on: 1.0 to 3.0.
    #[must_use]
    pub const fn factor(self) -> f64 {
        match self {
            Traffic::Read | Traffic::WriteStreamed => 1.0,
            Traffic::WriteAllocate | Traffic::CopyStreamed => 2.0,
            Traffic::CopyAllocate => 3.0,
        }
    }
}

/// One way to copy, read or zero memory. Get one from [`crate::methods`] or [`crate::find`].
#[derive(Debug)]
pub struct Method {
    pub(crate) name: &'static str,
    pub(crate) describe: &'static str,
    pub(crate) operation: Operation,
    pub(crate) family: Family,
    pub(crate) traffic: Traffic,
    pub(crate) need: Need,
    /// The loop, where this architecture has one.
    pub(crate) kernel: Option<Kernel>,
}

impl Method {
    /// The unique name that a person types, as `avx2-nt`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// One line on how the method moves its bytes.
    #[must_use]
    pub fn describe(&self) -> &'static str {
        self.describe
    }

    /// Whether it copies, reads or writes.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The family that it belongs to.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Which bus transfers it causes when the buffers are far larger than the caches, on this CPU.
    ///
    /// For the C library's `memcpy` this is what its loop does below its own non-temporal
    /// threshold.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let by_string_instruction =
            self.family == Family::StringInstruction || self.family == Family::Libc;
        match self.traffic {
            Traffic::CopyStreamed if by_string_instruction && !cpu::has_fast_strings() => {
                Traffic::CopyAllocate
            }
            Traffic::WriteStreamed if by_string_instruction && !cpu::has_fast_strings() => {
                Traffic::WriteAllocate
            }
            traffic => traffic,
        }
    }

    /// Bytes on the memory bus for each byte operated on: [`Traffic::factor`] of
    /// [`Method::traffic`].
    #[must_use]
    pub fn traffic_factor(&self) -> f64 {
        self.traffic().factor()
    }

    /// Why this machine cannot run the method, as `needs avx512f`; `None` when it can.
    #[must_use]
    pub fn absent(&self) -> Option<&'static str> {
        self.need.missing()
    }

    /// Copies `source` to `target`, of any length and alignment.
    ///
    /// Fewer bytes than one block and one alignment at each end are moved by other code.
    ///
    /// # Panics
    /// If the lengths differ, the method does not copy, or it is [`Method::absent`].
    pub fn copy(&self, target: &mut [u8], source: &[u8]) {
        let Kernel::Copy { run, block_bytes, align_bytes } = self.present_kernel() else {
            panic!("{} does not copy", self.name);
        };
        // SAFETY: `present_kernel` found what the loop needs, and the sizes come from the same
        // kernel.
        unsafe { kernel::copy(run, block_bytes, align_bytes, target, source) };
    }

    /// Loads every byte of `source` and returns the wrapping sum of its little-endian `u64` words,
    /// counted from the start of the slice; a last partial word is extended with zero bytes.
    ///
    /// # Panics
    /// If the method does not read, or it is [`Method::absent`].
    #[must_use]
    pub fn read(&self, source: &[u8]) -> u64 {
        let Kernel::Read { run, block_bytes } = self.present_kernel() else {
            panic!("{} does not read", self.name);
        };
        // SAFETY: as in `copy`: the kernel is present, and the sizes are its own.
        unsafe { kernel::read(run, block_bytes, source) }
    }

    /// Sets every byte of `target` to zero: the only value that every method can write (`clzero`).
    ///
    /// # Panics
    /// If the method does not write, or it is [`Method::absent`].
    pub fn write(&self, target: &mut [u8]) {
        let Kernel::Write { run, block_bytes, align_bytes } = self.present_kernel() else {
            panic!("{} does not write", self.name);
        };
        // SAFETY: as in `copy`: the kernel is present, and the sizes are its own.
        unsafe { kernel::write(run, block_bytes, align_bytes, target) };
    }

    /// The method's code as it is in memory, decoded from its first instruction on. An absent
    /// method can be shown too, as long as its code is for this architecture.
    ///
    /// For the C library's functions this is the variant that the library picked for this CPU.
    ///
    /// # Errors
    /// [`DisassembleError`] where the architecture has no decoder here or the method has no code on
    /// it.
    pub fn disassemble(&self) -> Result<Vec<Instruction>, DisassembleError> {
        let entry = self.entry().ok_or(DisassembleError::NoCode { method: self.name })?;
        // SAFETY: the entry is that of a function of this program or of the C library, both loaded
        // for its whole life.
        unsafe { disassemble::live_function(self.name, entry) }
    }

    /// The address of its first instruction, from which [`Instruction::offset`] counts; `None`
    /// where it has no code on this architecture.
    #[must_use]
    pub fn address(&self) -> Option<usize> {
        self.entry().map(|entry| entry as usize)
    }

    fn entry(&self) -> Option<*const u8> {
        let kernel = self.kernel?;
        Some(match (self.family, self.operation) {
            (Family::Libc, Operation::Copy) => libc::memcpy_entry(),
            (Family::Libc, Operation::Write) => libc::memset_entry(),
            _ => kernel.entry(),
        })
    }

    fn present_kernel(&self) -> Kernel {
        if let Some(reason) = self.absent() {
            panic!("{} cannot run here: {reason}", self.name);
        }
        // A need that is met implies the architecture, and every row of an architecture has its
        // loop there.
        self.kernel.expect("a method that is not absent has a loop")
    }
}
