//! `terrace boost explain`: which device answers a read of a place or of a file, and why the flash
//! does not.

use super::control::{self, Question};
use super::engine::SharedCache;
use super::fill_order::{BatchLimits, batches};
use super::volume_files::{VolumeFile, VolumeFiles};
use crate::args::When;
use crate::args::boost::CacheExplainArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::boost::CacheStatus;
use crate::output::boost_explain::{FileCoverage, NothingNew};
use crate::output::{self, OutputTarget, Page};
use cache::FillRoom;
use model::Bytes;
use place::ranges;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;

/// Of one question: its line is short, and the engine is held up for some milliseconds at most.
const QUESTION: BatchLimits = BatchLimits { bytes: 4 << 30, parts: 1000 };
/// Bytes that are looked at before other requests have a turn.
const TURN_BYTES: u64 = 16 << 20;
/// Parts of a file, 16 bytes each.
const PARTS_MAX: usize = 1 << 20;

/// What of some parts of a volume is cached, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartsCoverage {
    /// In the cache.
    pub(super) cached_bytes: u64,
    /// Not there, but read once lately.
    pub(super) read_once_bytes: u64,
    /// Why nothing new is cached now.
    pub(super) nothing_new: Option<NothingNew>,
}

/// Looks at the engine, a bounded part at a time.
pub(super) fn coverage(cache: &SharedCache, parts: &[(u64, u64)]) -> PartsCoverage {
    let mut all = PartsCoverage {
        nothing_new: match cache.lock().fill_room() {
            FillRoom::BudgetUsed => Some(NothingNew::Budget),
            FillRoom::Off => Some(NothingNew::Off),
            FillRoom::Ready | FillRoom::Busy => None,
        },
        ..PartsCoverage::default()
    };
    let ranges: Vec<Range<u64>> =
        parts.iter().map(|(offset, len)| *offset..offset.saturating_add(*len)).collect();
    let limits = BatchLimits { bytes: TURN_BYTES, parts: 1000 };
    for turn in batches(&ranges, limits) {
        let cache = cache.lock();
        for part in turn {
            let of = cache.coverage(part.start, part.end - part.start);
            all.cached_bytes += of.cached_bytes;
            all.read_once_bytes += of.read_once_bytes;
        }
    }
    all
}

/// Says which device answers.
///
/// # Errors
/// `Usage` for a name that is not attached, a place behind the end, and what is no file of the
/// mounted file system; `Impossible` where it is not known where files are.
pub(super) fn explain(args: &CacheExplainArgs, color: When) -> Result<Exit> {
    let offset = args.place.to_str().and_then(|place| place.parse::<Bytes>().ok());
    match offset {
        Some(offset) => explain_place(&args.name, offset.0),
        None => explain_file(&args.name, Path::new(&args.place), color),
    }
}

fn explain_place(name: &str, at: u64) -> Result<Exit> {
    let is_cached: Option<bool> = control::ask(name, Question::IsCached(at))?;
    let Some(is_cached) = is_cached else {
        return Err(Error::usage(format!("byte {at} is behind the end of the volume")));
    };
    let text = if is_cached {
        format!("Byte {at} is in the cache: a read of it is answered from the flash.\n")
    } else {
        format!(
            "Byte {at} is not in the cache: a read of it goes to the disk. It is cached when it \
             is read twice within what the cache remembers, and not in a long run.\n"
        )
    };
    Ok(output::show(&text))
}

fn explain_file(name: &str, path: &Path, color: When) -> Result<Exit> {
    let status: CacheStatus = control::ask(name, Question::Status)?;
    let files = VolumeFiles::of(&status)?;
    let VolumeFile { file, bytes, parts } =
        files.parts_of(path, PARTS_MAX).map_err(Error::usage)?;
    let mut found = PartsCoverage::default();
    for batch in batches(&parts, QUESTION) {
        if sys::interrupt::requested() {
            return Err(Error::new(Exit::Partial, "interrupted"));
        }
        let asked = batch.iter().map(|part| (part.start, part.end - part.start)).collect();
        let of: PartsCoverage = control::ask(name, Question::Coverage(asked))?;
        found.cached_bytes += of.cached_bytes;
        found.read_once_bytes += of.read_once_bytes;
        found.nothing_new = of.nothing_new;
    }
    let whole = 0..bytes;
    let coverage = FileCoverage {
        path: path.display().to_string(),
        bytes,
        placed_bytes: ranges::total(&parts).min(bytes),
        parts: parts.len() as u64,
        memory_bytes: place::cached::bytes_of(&file, &whole).map(|there| there.min(bytes)),
        cached_bytes: found.cached_bytes,
        read_once_bytes: found.read_once_bytes,
        nothing_new: found.nothing_new,
        off: status.off,
    };
    let target = OutputTarget::of(None)?;
    target.write(&coverage.page(Page::of(&target, color)))?;
    Ok(Exit::Done)
}
