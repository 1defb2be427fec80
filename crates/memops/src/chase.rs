//! Pointer chases: a cycle through all cache lines of a buffer, each load needing the result of the
//! one before.
//!
//! The links live in the buffer itself, so a chase needs no memory beside it that could disturb its
//! caches:
//! 1. lines start at the first multiple of the line size in the buffer, and each holds the address
//!    of the next;
//! 2. `random` shuffles all links in place by Sattolo's algorithm, which yields one single cycle;
//! 3. `in_page` visits the pages in random order, and within a page its lines in random order: one
//!    TLB miss a page.

use model::random::Random;
use std::marker::PhantomData;

/// A cycle of dependent loads through a buffer that it borrows, and its place in it.
#[derive(Debug)]
pub struct Chase<'a> {
    /// The first line; all others follow it.
    first: *mut u8,
    line_bytes: usize,
    lines: usize,
    /// The line whose link the next load reads.
    at: *const u8,
    buffer: PhantomData<&'a mut [u8]>,
}

impl<'a> Chase<'a> {
    /// Links the lines of `buffer` into one cycle, in a random order that `seed` determines.
    ///
    /// Overwrites the first pointer of every line. `None` if fewer than two lines fit, or if
    /// `line_bytes` is not a power of two or smaller than a pointer.
    #[must_use]
    pub fn random(buffer: &'a mut [u8], line_bytes: usize, seed: u64) -> Option<Self> {
        let mut chase = Self::over(buffer, line_bytes)?;
        chase.link_all(&mut Random(seed));
        Some(chase)
    }

    /// As [`Chase::random`], but the lines of a page come in a random order before those of the
    /// next page, which is a random one; pages begin at multiples of their size in memory.
    ///
    /// `None` also if `page_bytes` is not a power of two or smaller than a line.
    #[must_use]
    pub fn in_page(
        buffer: &'a mut [u8],
        line_bytes: usize,
        page_bytes: usize,
        seed: u64,
    ) -> Option<Self> {
        if !page_bytes.is_power_of_two() || page_bytes < line_bytes {
            return None;
        }
        let mut chase = Self::over(buffer, line_bytes)?;
        chase.link_by_page(page_bytes, &mut Random(seed));
        Some(chase)
    }

    /// The lines of `buffer`, not linked yet.
    fn over(buffer: &'a mut [u8], line_bytes: usize) -> Option<Self> {
        if !line_bytes.is_power_of_two() || line_bytes < size_of::<*const u8>() {
            return None;
        }
        let skipped = buffer.as_ptr().addr().wrapping_neg() % line_bytes;
        let lines = buffer.len().checked_sub(skipped)? / line_bytes;
        if lines < 2 {
            return None;
        }
        let first = buffer[skipped..].as_mut_ptr();
        Some(Chase { first, line_bytes, lines, at: first, buffer: PhantomData })
    }

    /// Performs exactly `loads` loads, each dependent on the one before, from where the last walk
    /// stopped.
    pub fn walk(&mut self, loads: u64) {
        // SAFETY: `at` is a line of the buffer, which this chase borrows exclusively, and every
        // line holds the address of another since it was linked.
        self.at = unsafe { follow(self.at, loads) };
    }

    /// Lines in the cycle: this many loads lead back to the start.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // a chase of no lines does not exist
    pub fn len(&self) -> usize {
        self.lines
    }

    /// The index of the line that the next load reads, in the order of addresses.
    #[must_use]
    pub fn position(&self) -> usize {
        (self.at.addr() - self.first.addr()) / self.line_bytes
    }

    fn link_all(&mut self, random: &mut Random) {
        for line in 0..self.lines {
            self.set_link(line, self.line(line));
        }
        // Sattolo: exchanging with a strictly lower line, never with itself, is what makes it one
        // cycle.
        for line in (1..self.lines).rev() {
            let other = random.below(line as u64) as usize;
            let (link, other_link) = (self.link(line), self.link(other));
            self.set_link(line, other_link);
            self.set_link(other, link);
        }
    }

    fn link_by_page(&mut self, page_bytes: usize, random: &mut Random) {
        // The first page may begin before the first line; counting from its start keeps real page
        // boundaries.
        let lines_a_page = page_bytes / self.line_bytes;
        let missing = self.first.addr() % page_bytes / self.line_bytes;
        let mut pages: Vec<usize> = (0..(missing + self.lines).div_ceil(lines_a_page)).collect();
        random.shuffle(&mut pages);

        let mut order = Vec::with_capacity(lines_a_page.min(self.lines));
        let mut entry = None;
        let mut last = 0;
        for page in pages {
            let begin = (page * lines_a_page).saturating_sub(missing);
            let end = ((page + 1) * lines_a_page - missing).min(self.lines);
            order.clear();
            order.extend(begin..end);
            random.shuffle(&mut order);
            for &line in &order {
                match entry {
                    None => entry = Some(line),
                    Some(_) => self.set_link(last, self.line(line)),
                }
                last = line;
            }
        }
        let entry = entry.unwrap_or(0);
        self.set_link(last, self.line(entry));
        self.at = self.line(entry);
    }

    fn line(&self, line: usize) -> *mut u8 {
        debug_assert!(line < self.lines);
        // SAFETY: `line < lines`, and `new` counted only lines that lie in the buffer.
        unsafe { self.first.add(line * self.line_bytes) }
    }

    fn link(&self, line: usize) -> *mut u8 {
        // SAFETY: the line is in the buffer, borrowed exclusively, and aligned to `line_bytes`, so
        // to a pointer.
        unsafe { self.line(line).cast::<*mut u8>().read() }
    }

    fn set_link(&mut self, line: usize, next: *mut u8) {
        // SAFETY: as in `link`, and `self` is borrowed mutably.
        unsafe { self.line(line).cast::<*mut u8>().write(next) }
    }
}

/// Follows `loads` links from `start` on and returns the address that the last one led to.
///
/// Caller guarantees: `start` and every address on the way hold the address of another.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn follow(start: *const u8, loads: u64) -> *const u8 {
    // 16 loads an iteration: the loop's own instructions run beside the loads and cost nothing that
    // could be seen.
    std::arch::naked_asm!(
        "mov rax, rdi",
        "mov rcx, rsi",
        "shr rcx, 4",
        "jz 3f",
        ".p2align 5",
        "2:",
        ".rept 16",
        "mov rax, qword ptr [rax]",
        ".endr",
        "dec rcx",
        "jnz 2b",
        "3:",
        "and esi, 15",
        "jz 5f",
        "4:",
        "mov rax, qword ptr [rax]",
        "dec esi",
        "jnz 4b",
        "5:",
        "ret",
    )
}

/// As on x86-64; a volatile load can be neither removed nor moved.
/// Caller guarantees: `start` is a line of a chase, whose links lead to lines only.
#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" fn follow(start: *const u8, loads: u64) -> *const u8 {
    let mut at = start;
    for _ in 0..loads {
        // SAFETY: the caller vouches for every address on the way.
        at = unsafe { at.cast::<*const u8>().read_volatile() };
    }
    at
}
