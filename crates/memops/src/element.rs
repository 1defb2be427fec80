//! The element-wise copy loops of 2001: one load and one store per element and iteration, in
//! assembly.
//!
//! A compiler can neither vectorise these nor see a `memcpy` in them, so they still measure what
//! they say. Each width has a sequential loop, a method of the registry, and a strided one that
//! walks the columns of a matrix.

use std::ffi::{c_int, c_long, c_short};

use crate::kernel::Kernel;

/// The element types of 2001, as wide as the C compiler of this machine makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Width {
    /// `char`, 1 byte.
    Byte,
    /// `short`, 2 bytes.
    Short,
    /// `int`, 4 bytes.
    Int,
    /// `long`: 8 bytes on 64-bit Linux, 4 on the systems of 2001.
    Long,
    /// `__int64`, 8 bytes.
    Int64,
    /// `double`, 8 bytes, moved through a floating-point register.
    Double,
}

impl Width {
    /// All widths, narrow first, in the order of the methods 1 to 6 of 2001.
    pub const ALL: [Width; 6] =
        [Width::Byte, Width::Short, Width::Int, Width::Long, Width::Int64, Width::Double];

    /// Bytes of one element.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Width::Byte => 1,
            Width::Short => size_of::<c_short>(),
            Width::Int => size_of::<c_int>(),
            Width::Long => size_of::<c_long>(),
            Width::Int64 | Width::Double => 8,
        }
    }

    fn strided_loop(self) -> StridedLoop {
        match self {
            Width::Byte => loops::byte_strided,
            Width::Short => loops::short_strided,
            Width::Int => loops::int_strided,
            Width::Long | Width::Int64 => loops::quad_strided,
            Width::Double => loops::double_strided,
        }
    }
}

/// Copies `elements` elements that are `step_bytes` apart, in the target as in the source.
///
/// Caller guarantees: at least one element; every element lies in both areas, and these do not
/// overlap.
type StridedLoop = unsafe extern "C" fn(*mut u8, *const u8, usize, usize);

/// Copies `source` to `target` in the order of a walk down the columns of a matrix of `stride`
/// columns.
///
/// For each column `c` in `0..stride` the elements `c`, `c + stride`, `c + 2 * stride`, ... are
/// copied, so every element exactly once; bytes behind the last whole element follow at the end.
/// Stride 0 or 1 is sequential.
///
/// # Panics
/// If the lengths differ.
pub fn copy_strided(width: Width, target: &mut [u8], source: &[u8], stride: usize) {
    assert_eq!(target.len(), source.len(), "a copy needs a target as long as its source");
    let element_bytes = width.bytes();
    let elements = source.len() / element_bytes;
    // More columns than elements is one row, which is a sequential walk of single elements.
    let columns = stride.clamp(1, elements.max(1));
    let run = width.strided_loop();
    for column in 0..columns.min(elements) {
        let rows = (elements - column).div_ceil(columns);
        let offset = column * element_bytes;
        // SAFETY: the last element is `column + (rows - 1) * columns < elements`, in both slices,
        // of which one is `&mut`, so they do not overlap; `column < elements` makes `rows` at least
        // 1.
        unsafe {
            run(
                target.as_mut_ptr().add(offset),
                source.as_ptr().add(offset),
                rows,
                columns * element_bytes,
            );
        }
    }
    let tail = elements * element_bytes;
    target[tail..].copy_from_slice(&source[tail..]);
}

pub(crate) const CHAR: Kernel = sequential(loops::byte, Width::Byte);
pub(crate) const SHORT: Kernel = sequential(loops::short, Width::Short);
pub(crate) const INT: Kernel = sequential(loops::int, Width::Int);
pub(crate) const LONG: Kernel = sequential(loops::quad, Width::Long);
pub(crate) const INT64: Kernel = sequential(loops::quad, Width::Int64);
pub(crate) const DOUBLE: Kernel = sequential(loops::double, Width::Double);

const fn sequential(run: crate::kernel::CopyBlocks, width: Width) -> Kernel {
    Kernel::Copy { run, block_bytes: width.bytes(), align_bytes: 1 }
}

#[cfg(target_arch = "x86_64")]
mod loops {
    use std::arch::naked_asm;

    /// `$load` and `$store` are the instructions around the address: the loop is the same for every
    /// width.
    macro_rules! element_loops {
        ($sequential:ident, $strided:ident, $bytes:literal, $load:literal, $store:literal, $register:literal) => {
            /// Caller guarantees: as [`crate::kernel::CopyBlocks`].
            #[unsafe(naked)]
            pub(super) unsafe extern "C" fn $sequential(
                target: *mut u8,
                source: *const u8,
                elements: usize,
            ) {
                // The index runs from -elements to 0, so that one addition also ends the loop.
                naked_asm!(
                    concat!("lea rdi, [rdi + ", $bytes, "*rdx]"),
                    concat!("lea rsi, [rsi + ", $bytes, "*rdx]"),
                    "neg rdx",
                    ".p2align 4",
                    "2:",
                    concat!($load, " [rsi + ", $bytes, "*rdx]"),
                    concat!($store, " [rdi + ", $bytes, "*rdx], ", $register),
                    "add rdx, 1",
                    "jnz 2b",
                    "ret",
                )
            }

            /// Caller guarantees: as [`crate::kernel::CopyBlocks`].
            #[unsafe(naked)]
            pub(super) unsafe extern "C" fn $strided(
                target: *mut u8,
                source: *const u8,
                elements: usize,
                step_bytes: usize,
            ) {
                naked_asm!(
                    ".p2align 4",
                    "2:",
                    concat!($load, " [rsi]"),
                    concat!($store, " [rdi], ", $register),
                    "add rsi, rcx",
                    "add rdi, rcx",
                    "dec rdx",
                    "jnz 2b",
                    "ret",
                )
            }
        };
    }

    element_loops!(byte, byte_strided, "1", "movzx eax, byte ptr", "mov byte ptr", "al");
    element_loops!(short, short_strided, "2", "movzx eax, word ptr", "mov word ptr", "ax");
    element_loops!(int, int_strided, "4", "mov eax, dword ptr", "mov dword ptr", "eax");
    element_loops!(quad, quad_strided, "8", "mov rax, qword ptr", "mov qword ptr", "rax");
    element_loops!(double, double_strided, "8", "movsd xmm0, qword ptr", "movsd qword ptr", "xmm0");
}

#[cfg(not(target_arch = "x86_64"))]
mod loops {
    /// Volatile accesses, for they can be neither merged nor widened; arrays of bytes, for they
    /// need no alignment.
    macro_rules! element_loops {
        ($sequential:ident, $strided:ident, $element:ty) => {
            /// Caller guarantees: as [`crate::kernel::CopyBlocks`].
            pub(super) unsafe extern "C" fn $sequential(
                target: *mut u8,
                source: *const u8,
                elements: usize,
            ) {
                // SAFETY: passed on from the caller, an element being a block.
                unsafe { $strided(target, source, elements, size_of::<$element>()) }
            }

            /// Caller guarantees: as [`crate::kernel::CopyBlocks`].
            pub(super) unsafe extern "C" fn $strided(
                target: *mut u8,
                source: *const u8,
                elements: usize,
                step_bytes: usize,
            ) {
                #[derive(Clone, Copy)]
                #[repr(C, packed)]
                struct Unaligned($element);
                for row in 0..elements {
                    // SAFETY: the caller vouches for `elements` elements `step_bytes` apart in both
                    // areas.
                    unsafe {
                        let value =
                            source.add(row * step_bytes).cast::<Unaligned>().read_volatile();
                        target.add(row * step_bytes).cast::<Unaligned>().write_volatile(value);
                    }
                }
            }
        };
    }

    element_loops!(byte, byte_strided, u8);
    element_loops!(short, short_strided, u16);
    element_loops!(int, int_strided, u32);
    element_loops!(quad, quad_strided, u64);
    element_loops!(double, double_strided, f64);
}
