//! `measure iolat --iodepth N`: random reads with several requests in flight, past the
//! page cache.
//!
//! The same target, scratch file and witnesses as with one request at a time; what only
//! makes sense one at a time (pauses, warm-up, writes, the cache) is refused.

use crate::args::iolat::IolatArgs;
use crate::error::{Error, Result};
use crate::output::report::RandomResult;
use machine::Root;
use measure::storage::iolat::{DEFAULT_REGION, LARGEST_REQUEST};
use measure::storage::served::{Direction, Watch};
use measure::storage::stream::{Mode, Stream};
use measure::storage::{Target, fill, random_read};
use measure::{Budget, ErrorKind};
use model::Bytes;
use model::bytes::MIB;
use std::fs::File;

/// The buffers of all requests in flight together: as much as the largest request alone.
const MOST_BUFFERS: Bytes = LARGEST_REQUEST;

/// The share of the budget that filling the file may take: one over this.
const FILL_SHARE: u32 = 3;

/// Requests that fill the file: enough to keep a disk busy, and no more.
const FILL_BLOCK: u64 = MIB;
const FILL_DEPTH: u32 = 4;

/// How many requests to keep in flight, where the command line asks for that way.
///
/// # Errors
/// `Usage` for options that belong to one request at a time.
pub fn depth(args: &IolatArgs) -> Result<Option<u32>> {
    let depth = match args.iodepth {
        Some(depth) if depth > 1 || args.direct => depth,
        _ => return Ok(None),
    };
    let one_at_a_time = [
        (args.write, "-W"),
        (args.cached, "-C"),
        (args.interval.is_some_and(|pause| !pause.is_zero()), "-i"),
        (args.count.is_some(), "-c"),
        (args.warmup.is_some(), "-a"),
    ];
    if let Some((_, option)) = one_at_a_time.iter().find(|(given, _)| *given) {
        return Err(Error::usage(format!(
            "--iodepth keeps direct random reads in flight until the time ends: {option} cannot go with it"
        )));
    }
    let buffers = Bytes(args.size.0.saturating_mul(u64::from(depth)));
    if buffers > MOST_BUFFERS {
        return Err(Error::usage(format!(
            "--iodepth {depth}: the buffers of its requests may take {MOST_BUFFERS}, not {buffers}"
        )));
    }
    Ok(Some(depth))
}

/// Measures at `depth`.
///
/// # Errors
/// `Usage` and `Impossible` as [`Target::open`], without direct I/O or io_uring; `Failed`
/// if the scratch file cannot be filled. A failing request is in the result.
pub fn measure(
    args: &IolatArgs,
    depth: u32,
    budget: &Budget,
    root: &Root,
) -> measure::Result<RandomResult> {
    measure::memory::arena::check_fits(root, args.size.0 * u64::from(depth))?;
    let target = Target::open(&args.path, root)?;
    let file = target.direct()?;
    check_alignment(&file, args)?;
    let mut notes = Vec::new();
    let region_bytes = if target.is_own() {
        let share = budget.part(budget.left() / FILL_SHARE);
        let wanted = args.working_set.unwrap_or(DEFAULT_REGION.max(args.size));
        let (fitted, note) = target.fit(root, wanted, args.size)?;
        notes.extend(note);
        fill_region(&target, &file, fitted, &share)?
    } else {
        let there = target.bytes()?;
        args.working_set.map_or(there, |asked| asked.0.min(there))
    };
    let watch = Watch::start(root, &target);
    let mut random = random_read(&file, region_bytes, depth, args.size.0, budget)?;
    random.failure = random.failure.map(|error| error.at(&args.path));
    Ok(RandomResult {
        quiet: args.quiet,
        served: watch.finish(Direction::Read, random.requests * args.size.0),
        target: target.facts(root)?,
        region_bytes,
        random,
        notes,
    })
}

/// Fills the scratch file with data that no layer can shrink: reads of unwritten extents
/// never reach a disk. The bytes that the budget allowed.
fn fill_region(target: &Target, file: &File, size: Bytes, budget: &Budget) -> measure::Result<u64> {
    let cannot = |source: sys::Error| {
        let operation = "fill a test file in";
        measure::Error::caused(ErrorKind::Failed, operation, source).at(target.path())
    };
    let seed = sys::random::seed().map_err(cannot)?;
    let whole = size.0.next_multiple_of(fill::BLOCK_BYTES as u64);
    let mut stream = Stream::new(file, Mode::Direct, FILL_BLOCK, FILL_DEPTH, seed)?;
    let moved = stream.write(0..whole, budget);
    if let Some(error) = moved.failure {
        return Err(error.at(target.path()));
    }
    sys::file::sync_data(target.file()).map_err(cannot)?;
    Ok(moved.whole_until.min(size.0))
}

/// Direct requests must be whole multiples of what the file system says.
fn check_alignment(file: &File, args: &IolatArgs) -> measure::Result<()> {
    let alignment = sys::file::direct_alignment(file).ok().flatten();
    let unit = alignment.map_or(1, |told| u64::from(told.read_offset.unwrap_or(told.offset)));
    if unit > 1 && !args.size.0.is_multiple_of(unit) {
        let reason = format!("direct requests there are multiples of {}", Bytes(unit));
        return Err(measure::Error::new(ErrorKind::Usage, "measure", reason).at(&args.path));
    }
    Ok(())
}
