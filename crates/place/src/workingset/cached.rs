//! Which parts of an open file are in the page cache.
//!
//! The idea: `cachestat` counts a window in one call; only a window that is partly there is
//! mapped and asked page by page (`mincore`). A window bounds the memory that a file of any
//! length costs.

use super::ranges;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use sys::cachestat;
use sys::window::Window;

/// How much is asked at once: 16 Ki pages, so 16 KiB of answers.
const WINDOW_BYTES: u64 = 64 << 20;

/// The ranges of `within` that are in the page cache, whole pages, ascending, merged; `None`
/// where the kernel does not say, or would not say the truth: to an ordinary user about files
/// of others, and before Linux 6.5 to all but the owner and root.
#[must_use]
pub fn ranges_of(file: &File, within: &Range<u64>) -> Option<Vec<Range<u64>>> {
    let page_bytes = sys::process::page_bytes() as u64;
    let mut start = within.start / page_bytes * page_bytes;
    let end = within.end.checked_next_multiple_of(page_bytes)?;
    let mut found = Vec::new();
    while start < end {
        let window = start..end.min(start.saturating_add(WINDOW_BYTES));
        let all = (window.end - window.start) / page_bytes;
        match counted(file, &window)? {
            Some(0) => {}
            Some(pages) if pages >= all => ranges::push(&mut found, window.clone()),
            _ => {
                for part in resident_of(file, &window)? {
                    ranges::push(&mut found, part);
                }
            }
        }
        start = window.end;
    }
    Some(found)
}

/// How many bytes of `ranges` are in the page cache; `None` as for [`ranges_of`].
#[must_use]
pub fn bytes_of(file: &File, within: &Range<u64>) -> Option<u64> {
    match counted(file, within)? {
        Some(pages) => Some(pages * sys::process::page_bytes() as u64),
        None => Some(ranges::total(&ranges_of(file, within)?)),
    }
}

/// `Some(None)` where the kernel cannot count and can be asked page by page instead.
fn counted(file: &File, window: &Range<u64>) -> Option<Option<u64>> {
    match cachestat::of(file, window.start, window.end - window.start) {
        Ok(stat) if stat.cached == 0 && may_be_stacked(file) && is_told_the_truth(file) => {
            Some(None)
        }
        Ok(stat) => Some(Some(stat.cached)),
        Err(error) if error.kind == sys::Kind::Unsupported && is_told_the_truth(file) => Some(None),
        Err(_) => None,
    }
}

/// On overlayfs (Linux 6.12) `cachestat` counts nothing: the pages belong to the file below, which is what
/// a mapping maps. Such file systems have no block device, and so no major number, of their own.
fn may_be_stacked(file: &File) -> bool {
    let device = file.metadata().map(|metadata| metadata.dev());
    device.is_ok_and(|device| sys::block::device_numbers(device).0 == 0)
}

/// `mincore` answers "all there" to who neither owns the file nor is root.
fn is_told_the_truth(file: &File) -> bool {
    let user = sys::process::effective_uid();
    user == 0 || file.metadata().is_ok_and(|metadata| metadata.uid() == user)
}

/// The ranges of `within`, of whole pages, that are in memory by `mincore`'s word, which is true
/// only for the owner and root; `None` where the kernel does not say.
pub(super) fn resident_of(file: &File, within: &Range<u64>) -> Option<Vec<Range<u64>>> {
    let page_bytes = sys::process::page_bytes() as u64;
    let mut found = Vec::new();
    for start in within.clone().step_by(WINDOW_BYTES as usize) {
        let bytes = WINDOW_BYTES.min(within.end - start);
        let told = Window::map(file, start, bytes).ok()?.resident().ok()?;
        for (index, _) in told.iter().enumerate().filter(|(_, there)| **there) {
            let page = start + index as u64 * page_bytes;
            ranges::push(&mut found, page..page + page_bytes);
        }
    }
    Some(found)
}
