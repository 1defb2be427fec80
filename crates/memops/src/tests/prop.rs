//! The properties of copy, read and write, once, and every method that must have them, by name.
//!
//! `every_method_is_instantiated` fails for a method of the registry that is missing from the lists
//! at the end. Where the CPU lacks a method, its test says so and passes.

use proptest::prelude::*;

use super::naive;
use crate::{Chase, Method, Operation, Width, copy_strided, find, methods};

/// Every length up to here is tried: past two blocks of the widest loop (256 bytes) and an
/// alignment.
const LEN_EXHAUSTIVE: usize = 600;
/// Offsets from a 64-byte boundary: aligned, odd, one vector, one off a line.
const OFFSETS: [usize; 5] = [0, 1, 16, 33, 63];
/// Bytes before and behind a target that must stay as they were.
const GUARD_BYTES: usize = 128;
const GUARD: u8 = 0xa5;

/// A buffer whose byte `GUARD_BYTES + offset` is `offset` behind a 64-byte boundary.
struct Guarded {
    bytes: Vec<u8>,
    begin: usize,
    len: usize,
}

impl Guarded {
    fn new(len: usize, offset: usize, fill: u8) -> Self {
        let mut bytes = vec![GUARD; len + 2 * GUARD_BYTES + 128];
        let begin = GUARD_BYTES + bytes.as_ptr().align_offset(64) + offset;
        bytes[begin..begin + len].fill(fill);
        Guarded { bytes, begin, len }
    }

    fn of(content: &[u8], offset: usize) -> Self {
        let mut guarded = Guarded::new(content.len(), offset, 0);
        guarded.slice_mut().copy_from_slice(content);
        guarded
    }

    fn slice(&self) -> &[u8] {
        &self.bytes[self.begin..self.begin + self.len]
    }

    fn slice_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.begin..self.begin + self.len]
    }

    fn guards_untouched(&self) -> bool {
        let (before, rest) = self.bytes.split_at(self.begin);
        before.iter().chain(&rest[self.len..]).all(|byte| *byte == GUARD)
    }
}

fn check_copy(method: &Method, len: usize, target_offset: usize, source_offset: usize) {
    let content = naive::pattern(len, 0x3c);
    let source = Guarded::of(&content, source_offset);
    let mut target = Guarded::new(len, target_offset, 0xff);
    method.copy(target.slice_mut(), source.slice());
    let at = format!("{}: {len} bytes, offsets {target_offset}, {source_offset}", method.name());
    assert!(target.slice() == content, "{at}: wrong copy");
    assert!(source.slice() == content, "{at}: source changed");
    assert!(target.guards_untouched(), "{at}: wrote outside the target");
}

fn check_read(method: &Method, content: &[u8], offset: usize) {
    let source = Guarded::of(content, offset);
    let (sum, expected) = (method.read(source.slice()), naive::sum(content));
    assert_eq!(sum, expected, "{}: {} bytes, offset {offset}", method.name(), content.len());
}

fn check_write(method: &Method, len: usize, offset: usize) {
    let mut target = Guarded::new(len, offset, 0xff);
    method.write(target.slice_mut());
    let at = format!("{}: {len} bytes, offset {offset}", method.name());
    assert!(target.slice().iter().all(|byte| *byte == 0), "{at}: not all zero");
    assert!(target.guards_untouched(), "{at}: wrote outside the target");
}

fn exhaust(method: &Method) {
    for len in 0..=LEN_EXHAUSTIVE {
        for target_offset in OFFSETS {
            match method.operation() {
                Operation::Copy => {
                    OFFSETS
                        .iter()
                        .for_each(|offset| check_copy(method, len, target_offset, *offset));
                }
                Operation::Read => check_read(method, &naive::pattern(len, 0x3c), target_offset),
                Operation::Write => check_write(method, len, target_offset),
            }
        }
    }
}

/// The method if it runs here.
fn present(name: &str) -> Option<&'static Method> {
    let method = find(name).unwrap();
    if let Some(reason) = method.absent() {
        println!("skipped: {name} {reason}");
        return None;
    }
    Some(method)
}

macro_rules! properties {
    ($($module:ident: $name:literal,)*) => {
        /// Every method that the properties below are checked for.
        const INSTANTIATED: &[&str] = &[$($name),*];

        $(mod $module {
            use super::*;

            #[test]
            fn any_short_length_at_any_alignment() {
                let Some(method) = present($name) else { return };
                exhaust(method);
            }

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(64))]
                #[test]
                fn any_length(len in 0usize..70_000, target_offset in 0usize..64, source_offset in 0usize..64, salt: u8) {
                    let Some(method) = present($name) else { return Ok(()) };
                    match method.operation() {
                        Operation::Copy => check_copy(method, len, target_offset, source_offset),
                        Operation::Read => check_read(method, &naive::pattern(len, salt), source_offset),
                        Operation::Write => check_write(method, len, target_offset),
                    }
                }
            }
        })*
    };
}

#[test]
fn every_method_is_instantiated() {
    let known: Vec<&str> = methods().iter().map(Method::name).collect();
    assert_eq!(known, INSTANTIATED);
}

properties! {
    char: "char",
    short: "short",
    int: "int",
    long: "long",
    int64: "int64",
    double: "double",
    char_compiled: "char-compiled",
    short_compiled: "short-compiled",
    int_compiled: "int-compiled",
    long_compiled: "long-compiled",
    int64_compiled: "int64-compiled",
    double_compiled: "double-compiled",
    structs: "struct",
    memcpy: "memcpy",
    rep_movsb: "rep-movsb",
    rep_movsq: "rep-movsq",
    sse2: "sse2",
    sse2_nt: "sse2-nt",
    sse2_nt_prefetch: "sse2-nt-prefetch",
    sse2_nt_prefetcht0: "sse2-nt-prefetcht0",
    avx2: "avx2",
    avx2_nt: "avx2-nt",
    avx2_nt_prefetch: "avx2-nt-prefetch",
    avx2_nt_prefetcht0: "avx2-nt-prefetcht0",
    avx512: "avx512",
    avx512_nt: "avx512-nt",
    avx512_nt_prefetch: "avx512-nt-prefetch",
    avx512_nt_prefetcht0: "avx512-nt-prefetcht0",
    neon: "neon",
    neon_nt: "neon-nt",
    neon_prefetch: "neon-prefetch",
    read_u64: "read-u64",
    read_sse2: "read-sse2",
    read_avx2: "read-avx2",
    read_avx512: "read-avx512",
    read_neon: "read-neon",
    memset: "memset",
    rep_stosb: "rep-stosb",
    rep_stosq: "rep-stosq",
    write_u64: "write-u64",
    write_sse2: "write-sse2",
    write_sse2_nt: "write-sse2-nt",
    write_avx2: "write-avx2",
    write_avx2_nt: "write-avx2-nt",
    write_avx512: "write-avx512",
    write_avx512_nt: "write-avx512-nt",
    write_neon: "write-neon",
    clzero: "clzero",
}

/// The positions of one full cycle; ends where it began, or the test fails.
fn cycle(chase: &mut Chase<'_>) -> Vec<usize> {
    let start = chase.position();
    let positions = (0..chase.len())
        .map(|_| {
            let position = chase.position();
            chase.walk(1);
            position
        })
        .collect();
    assert_eq!(chase.position(), start, "the cycle does not close");
    positions
}

proptest! {
    #[test]
    fn strided_copy_is_a_copy(
        width in 0usize..Width::ALL.len(), len in 0usize..5_000, stride in 0usize..700,
        target_offset in 0usize..64, source_offset in 0usize..64,
    ) {
        let width = Width::ALL[width];
        let content = naive::pattern(len, 0x55);
        let source = Guarded::of(&content, source_offset);
        let mut target = Guarded::new(len, target_offset, 0xff);
        copy_strided(width, target.slice_mut(), source.slice(), stride);
        prop_assert!(target.slice() == content && source.slice() == content && target.guards_untouched());

        let mut order = naive::strided_order(len / width.bytes(), stride);
        order.sort_unstable();
        prop_assert!(order.into_iter().eq(0..len / width.bytes()), "each element exactly once");
    }

    #[test]
    fn a_random_chase_visits_every_line_once(len in 0usize..20_000, skip in 0usize..64, log_line in 3u32..9, seed: u64) {
        let line_bytes = 1usize << log_line;
        let mut buffer = vec![0u8; len + skip];
        let slice = &mut buffer[skip..];
        let fitting = slice.len().saturating_sub(slice.as_ptr().align_offset(line_bytes)) / line_bytes;
        let Some(mut chase) = Chase::random(slice, line_bytes, seed) else {
            prop_assert!(fitting < 2);
            return Ok(());
        };
        prop_assert_eq!(chase.len(), fitting);
        let mut positions = cycle(&mut chase);
        positions.sort_unstable();
        prop_assert!(positions.into_iter().eq(0..fitting));
    }

    #[test]
    fn a_chase_in_pages_leaves_a_page_only_when_it_is_done(len in 128usize..40_000, skip in 0usize..512, log_page in 6u32..13, seed: u64) {
        let page_bytes = 1usize << log_page;
        let mut buffer = vec![0u8; len + skip];
        let slice = &mut buffer[skip..];
        let first_line = slice.as_ptr().addr().next_multiple_of(64);
        let Some(mut chase) = Chase::in_page(slice, 64, page_bytes, seed) else {
            return Ok(());
        };
        let positions = cycle(&mut chase);
        let pages: Vec<usize> = positions.iter().map(|line| (first_line + line * 64) / page_bytes).collect();
        let mut runs = pages.clone();
        runs.dedup();
        let mut distinct = pages;
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(runs.len(), distinct.len(), "a page was entered twice");
        let mut lines = positions;
        lines.sort_unstable();
        prop_assert!(lines.into_iter().eq(0..chase.len()));
    }

    #[test]
    fn a_walk_makes_exactly_its_loads(first in 0u64..200, second in 0u64..200, seed: u64) {
        let (mut at_once, mut by_one) = (vec![0u8; 64 * 61], vec![0u8; 64 * 61]);
        let offset = |buffer: &[u8]| buffer.as_ptr().align_offset(64);
        let (skip, other_skip) = (offset(&at_once), offset(&by_one));
        let lines = 60 * 64;
        let mut chase = Chase::random(&mut at_once[skip..][..lines], 64, seed).unwrap();
        let mut steps = Chase::random(&mut by_one[other_skip..][..lines], 64, seed).unwrap();
        chase.walk(first);
        chase.walk(second);
        (0..first + second).for_each(|_| steps.walk(1));
        prop_assert_eq!(chase.position(), steps.position());
    }
}
