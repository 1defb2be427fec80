//! `measure iolat --iodepth N`: random reads with several requests in flight, past the
//! page cache.
//!
//! The same target, scratch file and witnesses as with one request at a time; what only
//! makes sense one at a time (pauses, warm-up, writes, the cache) is refused.

use crate::args::measure::IolatArgs;
use crate::error::{Error, Result};
use crate::output::report::RandomResult;
use machine::Root;
use measure::Budget;
use measure::runs::Runs;
use measure::storage::iolat::{DEFAULT_REGION, LARGEST_REQUEST, fill_own};
use measure::storage::served::{Direction, ServedWatch};
use measure::storage::{StorageTarget, random_read};
use model::Bytes;

/// The buffers of all requests in flight together: as much as the largest request alone.
const MOST_BUFFERS: Bytes = LARGEST_REQUEST;

/// The share of the budget that filling the file may take: one over this.
const FILL_SHARE: u32 = 3;

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
/// `Usage` and `Impossible` as [`StorageTarget::open`], without direct I/O or io_uring; `Failed`
/// if the scratch file cannot be filled. A failing request is in the result.
pub fn measure(
    args: &IolatArgs,
    depth: u32,
    budget: &Budget,
    root: &Root,
) -> measure::Result<RandomResult> {
    measure::memory::arena::check_fits(root, args.size.0 * u64::from(depth))?;
    let target = StorageTarget::open(&args.path, root)?;
    let file = target.direct()?;
    target.check_direct(&file, args.size, false)?;
    let mut notes = Vec::new();
    let region_bytes = if target.is_own() {
        let share = budget.part(budget.left() / FILL_SHARE);
        let wanted = args.working_set.unwrap_or(DEFAULT_REGION.max(args.size));
        let (fitted, note) = target.fit(root, wanted, args.size)?;
        notes.extend(note);
        fill_own(&target, fitted, target.draw_seed()?, &share)?
    } else {
        let there = target.bytes()?;
        args.working_set.map_or(there, |asked| asked.0.min(there))
    };
    let written_bytes = if target.is_own() { region_bytes } else { 0 };
    let watch = ServedWatch::start(root, &target);
    let mut random = random_read(&file, region_bytes, depth, args.size.0, budget)?;
    random.failure = random.failure.map(|error| error.at(&args.path));
    Ok(RandomResult {
        quiet: args.quiet,
        served: watch.finish(Direction::Read, random.requests * args.size.0),
        target: target.facts(root)?,
        region_bytes,
        random,
        written_bytes,
        runs: Runs::default(),
        notes,
    })
}
