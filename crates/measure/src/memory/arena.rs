//! Memory to measure in: of one kind of page, resident before anything is timed,
//! verified in smaps, and never more than the machine and its control group bear.

use super::SkippedMethod;
use crate::{Budget, Error, ErrorKind, Result};
use machine::Root;
use model::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use sys::memory::{Mapping, Pages};

/// The share of usable memory that one probe takes at most. Picked: the rest is
/// for page tables, the page cache of others and their growth while it runs.
const USABLE_SHARE: f64 = 0.75;

/// Touched between two looks at the budget: up to 10 s where the host must first
/// find the memory (5 to 9 ms for 2 MiB were measured), 0.1 s where it need not.
const TOUCH_BYTES: usize = 64 << 20;

/// The kind of page that backs a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PageKind {
    /// 4 KiB pages, huge ones refused.
    #[serde(rename = "4k")]
    Base,
    /// Transparent huge pages, asked for by madvise.
    #[serde(rename = "thp")]
    Transparent,
    /// 2 MiB pages from the reserved pool.
    #[serde(rename = "hugetlb")]
    Huge,
}

impl PageKind {
    /// All kinds.
    pub const ALL: [PageKind; 3] = [PageKind::Base, PageKind::Transparent, PageKind::Huge];

    /// The word used on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            PageKind::Base => "4k",
            PageKind::Transparent => "thp",
            PageKind::Huge => "hugetlb",
        }
    }

    fn pages(self) -> Pages {
        match self {
            PageKind::Base => Pages::Base,
            PageKind::Transparent => Pages::Transparent,
            PageKind::Huge => Pages::Huge,
        }
    }
}

impl fmt::Display for PageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PageKind {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        PageKind::ALL
            .into_iter()
            .find(|kind| kind.name() == text.to_ascii_lowercase())
            .ok_or_else(|| format!("unknown page size `{text}`: use 4k, thp or hugetlb"))
    }
}

/// What smaps says of a buffer after it was touched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PagesGranted {
    /// What was asked for.
    pub asked: PageKind,
    /// The buffer's size.
    pub bytes: u64,
    /// How much of it huge pages back; `None` where smaps cannot be read.
    pub huge_bytes: Option<u64>,
}

impl PagesGranted {
    /// The share that is of the kind asked for, 0 to 1.
    pub fn share(&self) -> Option<f64> {
        let huge = self.huge_bytes? as f64 / self.bytes as f64;
        Some(match self.asked {
            PageKind::Base => 1.0 - huge,
            PageKind::Transparent | PageKind::Huge => huge,
        })
    }
}

/// A resident buffer.
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
    pages: PageKind,
    granted: PagesGranted,
}

/// The most that one probe may take here, and what sets the limit.
///
/// From `MemAvailable` and every control group above this process; `None` where
/// neither can be read.
pub fn most_bytes(root: &Root) -> Option<(u64, String)> {
    let usable = machine::memory::usable(root)?;
    let most = usable.bytes.0 as f64 * USABLE_SHARE;
    Some((most as u64, usable.bound_by))
}

/// Those of `sizes` that fit into memory with all their buffers, which have `bytes_of` a size,
/// ascending, each once. The others are added to `left_out`.
pub(super) fn fitting(
    sizes: &[u64],
    bytes_of: impl Fn(u64) -> u64,
    root: &Root,
    left_out: &mut Vec<SkippedMethod>,
) -> Vec<u64> {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.retain(|&size| {
        let refused = check_fits(root, bytes_of(size)).err();
        let reason = |error: &Error| error.reason.clone().unwrap_or_default();
        let skipped = |reason| SkippedMethod { name: Bytes(size).to_string(), reason };
        left_out.extend(refused.as_ref().map(reason).map(skipped));
        refused.is_none()
    });
    sizes
}

/// Says whether `bytes` fit, in one line that names what does not let them.
pub fn check_fits(root: &Root, bytes: u64) -> Result<()> {
    match most_bytes(root) {
        Some((most, bound_by)) if bytes > most => Err(Error::new(
            ErrorKind::Impossible,
            format!("use {} of memory", Bytes(bytes)),
            format!(
                "only {} may be taken here (three quarters of what is available; limit: {bound_by})",
                Bytes(most)
            ),
        )),
        _ => Ok(()),
    }
}

impl Arena {
    /// Maps and touches `bytes`, so that no first touch is left for the trials.
    ///
    /// Fails when the memory does not fit, when huge pages are absent, or when
    /// the budget ends while the host still looks for memory.
    pub fn resident(bytes: usize, pages: PageKind, root: &Root, budget: &Budget) -> Result<Self> {
        check_fits(root, bytes as u64)?;
        let mut mapping = Mapping::anonymous(bytes, pages.pages()).map_err(|source| {
            let operation = format!("get {} of {pages} pages", Bytes(bytes as u64));
            Error::caused(ErrorKind::Impossible, operation, source)
        })?;
        for chunk in mapping.as_mut_slice().chunks_mut(TOUCH_BYTES) {
            if budget.over() {
                return Err(Error::new(
                    ErrorKind::Impossible,
                    format!("touch {} of memory", Bytes(bytes as u64)),
                    "the budget ended first",
                ));
            }
            touch(chunk);
        }
        let granted = granted(root, &mapping, pages);
        Ok(Self { mapping, pages, granted })
    }

    /// The kind of page that was asked for.
    pub fn pages(&self) -> PageKind {
        self.pages
    }

    /// What was granted, from smaps.
    pub fn granted(&self) -> PagesGranted {
        self.granted
    }

    /// The bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.mapping.as_mut_slice()
    }

    /// Two halves, each 2 MiB aligned where the buffer is 4 MiB or larger.
    pub fn halves_mut(&mut self) -> (&mut [u8], &mut [u8]) {
        let middle = self.mapping.len() / 2;
        self.mapping.as_mut_slice().split_at_mut(middle)
    }
}

/// The target and the source of a copy of `bytes` in `memory`: the target at its start, the source
/// at the next boundary of 2 MiB behind the target. How far apart they are depends on their size
/// alone, so two probes measure the same copy: a copy of 128 MiB was seen to take 0.8 times as long
/// with another distance.
///
/// `memory` has room for both.
pub(super) fn pair(memory: &mut [u8], bytes: usize) -> (&mut [u8], &mut [u8]) {
    let (target, source) = memory.split_at_mut(bytes.next_multiple_of(PAIR_BOUNDARY));
    (&mut target[..bytes], &mut source[..bytes])
}

/// A huge page, so that target and source share none.
const PAIR_BOUNDARY: usize = 2 << 20;

/// Writes one byte in each page.
fn touch(chunk: &mut [u8]) {
    for byte in chunk.iter_mut().step_by(sys::process::page_bytes()) {
        // black_box: the zero is there already, as far as the compiler knows.
        *std::hint::black_box(byte) = 0;
    }
}

fn granted(root: &Root, mapping: &Mapping, asked: PageKind) -> PagesGranted {
    let seen = machine::smaps::of_range(root, mapping.address(), mapping.len());
    PagesGranted {
        asked,
        bytes: mapping.len() as u64,
        huge_bytes: seen.map(|g| (g.anon_huge.0 + g.hugetlb.0).min(mapping.len() as u64)),
    }
}
