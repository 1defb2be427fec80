//! Every method that this crate knows, on whatever architecture it is compiled for, in the order of
//! a report.
//!
//! A row whose loop is for another architecture stays in the list without one, so that a report can
//! name it as absent.

use crate::cpu::Need;
use crate::kernel::Kernel;
use crate::method::{Family, Method, Operation, Traffic};
use crate::{compiled, element, libc, word};

#[cfg(target_arch = "aarch64")]
use crate::neon;
#[cfg(target_arch = "x86_64")]
use crate::x86_64::{
    clzero, string,
    vector::{avx2, avx512, sse2},
};

/// All methods, absent ones included, in a stable order: copies, reads, writes.
#[must_use]
pub fn methods() -> &'static [Method] {
    METHODS
}

/// The method of this name, absent or not.
#[must_use]
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// The loop of a row that only x86-64 has.
#[cfg(target_arch = "x86_64")]
macro_rules! x86_64 {
    ($kernel:expr) => {
        Some($kernel)
    };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! x86_64 {
    ($kernel:expr) => {
        None
    };
}

/// The loop of a row that only aarch64 has.
#[cfg(target_arch = "aarch64")]
macro_rules! aarch64 {
    ($kernel:expr) => {
        Some($kernel)
    };
}
#[cfg(not(target_arch = "aarch64"))]
macro_rules! aarch64 {
    ($kernel:expr) => {
        None
    };
}

const fn row(
    name: &'static str,
    operation: Operation,
    family: Family,
    traffic: Traffic,
    need: Need,
    kernel: Option<Kernel>,
    describe: &'static str,
) -> Method {
    Method { name, describe, operation, family, traffic, need, kernel }
}

use Family::{Avx2, Avx512, CacheLine, Classic, Compiler, Libc, Neon, Sse2, StringInstruction};
use Operation::{Copy, Read, Write};
use Traffic::{CopyAllocate, CopyStreamed, WriteAllocate, WriteStreamed};

// One row a line, so that the table can be read down its columns.
#[rustfmt::skip]
static METHODS: &[Method] = &[
    row("char", Copy, Classic, CopyAllocate, Need::Nothing, Some(element::CHAR), "1 byte at a time"),
    row("short", Copy, Classic, CopyAllocate, Need::Nothing, Some(element::SHORT), "2 bytes at a time"),
    row("int", Copy, Classic, CopyAllocate, Need::Nothing, Some(element::INT), "4 bytes at a time"),
    row("long", Copy, Classic, CopyAllocate, Need::Nothing, Some(element::LONG), "one C long at a time: 8 bytes on 64-bit Linux"),
    row("int64", Copy, Classic, CopyAllocate, Need::Nothing, Some(element::INT64), "8 bytes at a time"),
    row("double", Copy, Classic, CopyAllocate, Need::Nothing, Some(element::DOUBLE), "8 bytes at a time by a floating-point register"),

    row("char-compiled", Copy, Compiler, CopyAllocate, Need::Nothing, Some(compiled::CHAR), "*target++ = *source++ on bytes, as compiled"),
    row("short-compiled", Copy, Compiler, CopyAllocate, Need::Nothing, Some(compiled::SHORT), "*target++ = *source++ on 2-byte elements, as compiled"),
    row("int-compiled", Copy, Compiler, CopyAllocate, Need::Nothing, Some(compiled::INT), "*target++ = *source++ on 4-byte elements, as compiled"),
    row("long-compiled", Copy, Compiler, CopyAllocate, Need::Nothing, Some(compiled::LONG), "*target++ = *source++ on C longs, as compiled"),
    row("int64-compiled", Copy, Compiler, CopyAllocate, Need::Nothing, Some(compiled::INT64), "*target++ = *source++ on 8-byte elements, as compiled"),
    row("double-compiled", Copy, Compiler, CopyAllocate, Need::Nothing, Some(compiled::DOUBLE), "*target++ = *source++ on doubles, as compiled"),
    row("struct", Copy, Compiler, CopyAllocate, Need::Nothing, Some(compiled::STRUCT), "assignment of 64-byte structs, as compiled"),

    row("memcpy", Copy, Libc, CopyAllocate, Need::Nothing, Some(libc::COPY), "the C library's memcpy"),

    row("rep-movsb", Copy, StringInstruction, CopyStreamed, Need::X86_64, x86_64!(string::MOVSB), "the string instruction on bytes"),
    row("rep-movsq", Copy, StringInstruction, CopyStreamed, Need::X86_64, x86_64!(string::MOVSQ), "the string instruction on 8-byte words"),

    row("sse2", Copy, Sse2, CopyAllocate, Need::X86_64, x86_64!(sse2::COPY), "4 vectors of 16 bytes an iteration"),
    row("sse2-nt", Copy, Sse2, CopyStreamed, Need::X86_64, x86_64!(sse2::COPY_NT), "4 vectors of 16 bytes an iteration, non-temporal stores"),
    row("sse2-nt-prefetch", Copy, Sse2, CopyStreamed, Need::X86_64, x86_64!(sse2::COPY_NT_PREFETCH), "4 vectors of 16 bytes an iteration, non-temporal stores, prefetchnta 256 bytes ahead"),
    row("sse2-nt-prefetcht0", Copy, Sse2, CopyStreamed, Need::X86_64, x86_64!(sse2::COPY_NT_PREFETCHT0), "4 vectors of 16 bytes an iteration, non-temporal stores, prefetcht0 256 bytes ahead"),
    row("avx2", Copy, Avx2, CopyAllocate, Need::Avx2, x86_64!(avx2::COPY), "4 vectors of 32 bytes an iteration"),
    row("avx2-nt", Copy, Avx2, CopyStreamed, Need::Avx2, x86_64!(avx2::COPY_NT), "4 vectors of 32 bytes an iteration, non-temporal stores"),
    row("avx2-nt-prefetch", Copy, Avx2, CopyStreamed, Need::Avx2, x86_64!(avx2::COPY_NT_PREFETCH), "4 vectors of 32 bytes an iteration, non-temporal stores, prefetchnta 256 bytes ahead"),
    row("avx2-nt-prefetcht0", Copy, Avx2, CopyStreamed, Need::Avx2, x86_64!(avx2::COPY_NT_PREFETCHT0), "4 vectors of 32 bytes an iteration, non-temporal stores, prefetcht0 256 bytes ahead"),
    row("avx512", Copy, Avx512, CopyAllocate, Need::Avx512f, x86_64!(avx512::COPY), "2 vectors of 64 bytes an iteration"),
    row("avx512-nt", Copy, Avx512, CopyStreamed, Need::Avx512f, x86_64!(avx512::COPY_NT), "2 vectors of 64 bytes an iteration, non-temporal stores"),
    row("avx512-nt-prefetch", Copy, Avx512, CopyStreamed, Need::Avx512f, x86_64!(avx512::COPY_NT_PREFETCH), "2 vectors of 64 bytes an iteration, non-temporal stores, prefetchnta 256 bytes ahead"),
    row("avx512-nt-prefetcht0", Copy, Avx512, CopyStreamed, Need::Avx512f, x86_64!(avx512::COPY_NT_PREFETCHT0), "2 vectors of 64 bytes an iteration, non-temporal stores, prefetcht0 256 bytes ahead"),

    row("neon", Copy, Neon, CopyAllocate, Need::Aarch64, aarch64!(neon::COPY), "4 vectors of 16 bytes an iteration"),
    row("neon-nt", Copy, Neon, CopyStreamed, Need::Aarch64, aarch64!(neon::COPY_NT), "4 vectors of 16 bytes an iteration, non-temporal loads and stores (hints)"),
    row("neon-prefetch", Copy, Neon, CopyAllocate, Need::Aarch64, aarch64!(neon::COPY_PREFETCH), "4 vectors of 16 bytes an iteration, prefetched 256 bytes ahead"),

    row("read-u64", Read, Classic, Traffic::Read, Need::Nothing, Some(word::READ), "4 words of 8 bytes an iteration"),
    row("read-sse2", Read, Sse2, Traffic::Read, Need::X86_64, x86_64!(sse2::READ), "4 vectors of 16 bytes an iteration"),
    row("read-avx2", Read, Avx2, Traffic::Read, Need::Avx2, x86_64!(avx2::READ), "4 vectors of 32 bytes an iteration"),
    row("read-avx512", Read, Avx512, Traffic::Read, Need::Avx512f, x86_64!(avx512::READ), "4 vectors of 64 bytes an iteration"),
    row("read-neon", Read, Neon, Traffic::Read, Need::Aarch64, aarch64!(neon::READ), "4 vectors of 16 bytes an iteration"),

    row("memset", Write, Libc, WriteStreamed, Need::Nothing, Some(libc::WRITE), "the C library's memset, which uses rep stosb where that is fast"),
    row("rep-stosb", Write, StringInstruction, WriteStreamed, Need::X86_64, x86_64!(string::STOSB), "the string instruction on bytes"),
    row("rep-stosq", Write, StringInstruction, WriteStreamed, Need::X86_64, x86_64!(string::STOSQ), "the string instruction on 8-byte words"),
    row("write-u64", Write, Classic, WriteAllocate, Need::Nothing, Some(word::WRITE), "4 words of 8 bytes an iteration"),
    row("write-sse2", Write, Sse2, WriteAllocate, Need::X86_64, x86_64!(sse2::WRITE), "4 vectors of 16 bytes an iteration"),
    row("write-sse2-nt", Write, Sse2, WriteStreamed, Need::X86_64, x86_64!(sse2::WRITE_NT), "4 vectors of 16 bytes an iteration, non-temporal stores"),
    row("write-avx2", Write, Avx2, WriteAllocate, Need::Avx2, x86_64!(avx2::WRITE), "4 vectors of 32 bytes an iteration"),
    row("write-avx2-nt", Write, Avx2, WriteStreamed, Need::Avx2, x86_64!(avx2::WRITE_NT), "4 vectors of 32 bytes an iteration, non-temporal stores"),
    row("write-avx512", Write, Avx512, WriteAllocate, Need::Avx512f, x86_64!(avx512::WRITE), "2 vectors of 64 bytes an iteration"),
    row("write-avx512-nt", Write, Avx512, WriteStreamed, Need::Avx512f, x86_64!(avx512::WRITE_NT), "2 vectors of 64 bytes an iteration, non-temporal stores"),
    row("write-neon", Write, Neon, WriteAllocate, Need::Aarch64, aarch64!(neon::WRITE), "4 vectors of 16 bytes an iteration"),
    row("clzero", Write, CacheLine, WriteStreamed, Need::Clzero, x86_64!(clzero::WRITE), "one cache line at a time, never fetched"),
];
