//! The element loops of 2001 as plain source: what today's compiler makes of them is the
//! measurement.
//!
//! `*target++ = *source++` over typed elements, and the assignment of a 64-byte struct. As in C,
//! nothing tells the compiler that the two areas do not overlap: it may check that at run time and
//! use vectors (seen with Rust 1.95), of the width that the whole program is built for.
//! [`crate::Method::disassemble`] shows what it did. The loops that it must not touch are in
//! `element`.

use std::slice;

use crate::kernel::Kernel;

/// An element at any address: C's pointer loops on unaligned buffers, without undefined behaviour.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned<T>(T);

/// One cache line, assigned as a whole: the "struct assignment" technique.
#[derive(Clone, Copy)]
#[repr(C)]
struct Line {
    _words: [u64; 8],
}

macro_rules! compiled_loop {
    ($name:ident, $kernel:ident, $element:ty) => {
        /// Caller guarantees: as [`crate::kernel::CopyBlocks`].
        unsafe extern "C" fn $name(target: *mut u8, source: *const u8, elements: usize) {
            // SAFETY: the caller of a `CopyBlocks` vouches for both areas, an element being a
            // block, and `Unaligned` has alignment 1 and no invalid bit pattern.
            let (target, source) = unsafe {
                (
                    slice::from_raw_parts_mut(target.cast::<Unaligned<$element>>(), elements),
                    slice::from_raw_parts(source.cast::<Unaligned<$element>>(), elements),
                )
            };
            // `copy_from_slice` would be `memcpy`; the question is what becomes of a loop.
            #[allow(clippy::manual_memcpy)]
            for (to, from) in target.iter_mut().zip(source) {
                *to = *from;
            }
        }

        pub(crate) const $kernel: Kernel =
            Kernel::Copy { run: $name, block_bytes: size_of::<$element>(), align_bytes: 1 };
    };
}

compiled_loop!(char_loop, CHAR, u8);
compiled_loop!(short_loop, SHORT, u16);
compiled_loop!(int_loop, INT, u32);
compiled_loop!(long_loop, LONG, std::ffi::c_long);
compiled_loop!(int64_loop, INT64, i64);
compiled_loop!(double_loop, DOUBLE, f64);
compiled_loop!(struct_loop, STRUCT, Line);
