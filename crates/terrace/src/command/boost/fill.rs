//! `terrace boost fill`: asks a served cache to bring ranges of its volume, the most wanted first.
//!
//! All that is wanted is found out before anything is asked. The ranges stay here: a service that
//! is killed meanwhile has a successor, which goes on with the batch that was not answered.

use super::control::{self, FilledBefore, LINE_BYTES, Question, SUCCESSION};
use super::fill_list::{ListEntry, read_list};
use super::fill_order::{BatchLimits, RankedParts, blocks_once};
use super::filling::{FillOpening, FillStep};
use super::volume_files::VolumeFiles;
use crate::args::When;
use crate::args::boost::FillArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::boost::CacheStatus;
use crate::output::boost_fill::{FillEnd, FillReceipt};
use crate::output::progress::Progress;
use crate::output::{OutputTarget, Page, json};
use model::Progress as Amount;
use model::progress::ProgressSink;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The first sweep: the most wanted is there after a second or two of most disks.
const FIRST_SWEEP_BYTES: u64 = 1 << 20;
/// The largest sweep where each part costs a jump. Each is twice the one before.
const SWEEP_BYTES_MAX: u64 = 16 << 20;
/// Parts of a batch: its line is short.
const BATCH_PARTS: usize = 512;
/// Ranges of a list that are kept, 16 bytes each, and 64 more while they are put in order.
const PARTS_MAX: usize = 1 << 20;
/// How often Ctrl-C is looked for while the service works.
const TURN: Duration = Duration::from_millis(100);
/// How long the service may take to end a batch after Ctrl-C.
const END_WAIT: Duration = Duration::from_secs(10);
/// How long services may end one after another without an answer.
const SUCCESSOR_WAIT: Duration = Duration::from_secs(60);
/// How often a successor is looked for.
const SUCCESSOR_TURN: Duration = Duration::from_millis(50);

/// What is to be filled, the most wanted first.
struct WantedParts {
    source: &'static str,
    parts: Vec<Range<u64>>,
    files: Option<u64>,
    notes: Vec<String>,
}

/// Fills, and shows the receipt.
///
/// # Errors
/// `Usage` for a name that is not attached and for the first bad line of a list, before anything
/// is done; `Impossible` where it is not known where files are.
pub(super) fn fill(args: &FillArgs, color: When) -> Result<Exit> {
    let status: CacheStatus = control::ask(&args.name, Question::Status)?;
    let target = OutputTarget::of(None)?;
    let receipt = {
        let progress = Progress::new();
        let mut display = progress.display("boost fill");
        let wanted = match &args.list {
            Some(list) => listed(list, &status)?,
            None => from_page_cache(&status, &mut display)?,
        };
        run(&args.name, &status, wanted, &mut display)?
    };
    let text =
        if args.json { json::render(&receipt)? } else { receipt.page(Page::of(&target, color)) };
    target.write(&text)?;
    Ok(receipt.exit())
}

/// What the lines of a list ask for.
fn listed(list: &Path, status: &CacheStatus) -> Result<WantedParts> {
    let shown = if list == Path::new("-") { "standard input" } else { "the list" };
    let bad = |why: String| Error::usage(format!("{shown}: {why}"));
    let reader: Box<dyn BufRead> = if list == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(sys::file::open_input(list)?))
    };
    let (mut parts, mut files) = (Vec::new(), None);
    let take = |entry: ListEntry<'_>| {
        let room = PARTS_MAX - parts.len();
        match entry {
            ListEntry::Range(range) if room > 0 => parts.push(range),
            ListEntry::File(path) if room > 0 => {
                // Only a list with paths needs a file system that is mounted.
                if files.is_none() {
                    files = Some(VolumeFiles::of(status).map_err(|error| error.to_string())?);
                }
                if let Some(files) = &files {
                    let found = files.parts_of(path, room)?;
                    parts.extend(found.parts);
                }
            }
            _ => return Err(format!("with it there are more than {PARTS_MAX} ranges")),
        }
        Ok(())
    };
    read_list(reader, status.volume_bytes, take).map_err(bad)?;
    Ok(WantedParts { source: "list", parts, files: None, notes: Vec::new() })
}

fn from_page_cache(status: &CacheStatus, progress: &mut ProgressSink<'_>) -> Result<WantedParts> {
    let found = VolumeFiles::of(status)?.cached_parts(progress)?;
    Ok(WantedParts {
        source: "page_cache",
        parts: found.parts,
        files: Some(found.files),
        notes: found.notes,
    })
}

fn run(
    name: &str,
    status: &CacheStatus,
    wanted: WantedParts,
    progress: &mut ProgressSink<'_>,
) -> Result<FillReceipt> {
    let WantedParts { source, parts, files, notes } = wanted;
    let mut connection = FillConnection::open(name, FilledBefore::default())?;
    let block = u64::from(cache::BLOCK_BYTES);
    let ordered = blocks_once(parts, block, status.volume_bytes);
    let wanted_bytes = ordered.iter().map(|part| part.end - part.start).sum();
    let mut receipt = FillReceipt {
        schema: "terrace.boost_fill/1",
        name: name.to_owned(),
        source,
        files,
        wanted_bytes,
        filled_bytes: 0,
        known_bytes: 0,
        failed_bytes: 0,
        left_bytes: wanted_bytes,
        stored_bytes: 0,
        room_bytes: connection.opening.room_bytes,
        end: FillEnd::All,
        notes,
    };
    let (mut left, mut sweep_bytes) = (RankedParts::new(ordered), FIRST_SWEEP_BYTES);
    let mut is_dense = true;
    while !left.is_empty() && receipt.end == FillEnd::All {
        let room = room(&receipt) / block * block;
        let is_first = sweep_bytes == FIRST_SWEEP_BYTES;
        // The room only shrinks, and what fits is then farther apart.
        is_dense &= room > SWEEP_BYTES_MAX;
        let gap_bytes_max = connection.opening.gap_bytes_max;
        let dense = (is_dense && !is_first).then(|| left.take_dense(room, gap_bytes_max)).flatten();
        is_dense &= is_first || dense.is_some();
        let limits = BatchLimits { bytes: sweep_bytes, parts: usize::MAX };
        let sweep = dense.unwrap_or_else(|| left.take(limits));
        sweep_bytes = (2 * sweep_bytes).min(SWEEP_BYTES_MAX);
        for batch in sweep.chunks(BATCH_PARTS) {
            let step = if sys::interrupt::requested() {
                connection.ended(FillEnd::Cancelled)
            } else {
                connection.fill(batch)
            };
            receipt.filled_bytes += step.filled_bytes;
            receipt.known_bytes += step.known_bytes;
            receipt.failed_bytes += step.failed_bytes;
            receipt.stored_bytes = connection.before.stored_bytes + step.stored_bytes;
            let done = receipt.filled_bytes + receipt.known_bytes + receipt.failed_bytes;
            receipt.left_bytes = wanted_bytes.saturating_sub(done);
            if let Some(end) = step.end {
                receipt.end = end;
                break;
            }
            let _ = progress(Amount::bytes("filling", done, Some(wanted_bytes)));
        }
    }
    Ok(receipt)
}

/// Bytes of the volume that the cache has room for, if they compress as those before did.
fn room(receipt: &FillReceipt) -> u64 {
    let left = receipt.room_bytes.saturating_sub(receipt.stored_bytes);
    let ratio = receipt.filled_bytes as f64 / receipt.stored_bytes.max(1) as f64;
    if receipt.stored_bytes == 0 { left } else { (left as f64 * ratio) as u64 }
}

/// A connection to the service that fills.
struct FillConnection<'n> {
    name: &'n str,
    stream: UnixStream,
    opening: FillOpening,
    /// What services brought that ended since.
    before: FilledBefore,
    /// What this service brought.
    own: FilledBefore,
}

impl<'n> FillConnection<'n> {
    fn open(name: &'n str, before: FilledBefore) -> Result<Self> {
        let stream = control::connect(name, SUCCESSION)?;
        let failed = |error: io::Error| control::unanswered(name, &sys::plain_reason(&error));
        stream.set_read_timeout(Some(TURN)).map_err(failed)?;
        send(&stream, &Question::Fill(before)).map_err(failed)?;
        let opening: FillOpening = receive(&stream, END_WAIT).map_err(failed)?;
        if let Some(why) = &opening.refused {
            let why = why.clone();
            return Err(Error::new(Exit::Impossible, why));
        }
        Ok(Self { name, stream, opening, before, own: FilledBefore::default() })
    }

    /// Has a batch filled, by a successor if the service ends meanwhile.
    fn fill(&mut self, batch: &[Range<u64>]) -> FillStep {
        let line: Vec<(u64, u64)> =
            batch.iter().map(|part| (part.start, part.end - part.start)).collect();
        let give_up = Instant::now() + SUCCESSOR_WAIT;
        loop {
            let answer: io::Result<FillStep> =
                send(&self.stream, &line).and_then(|()| receive(&self.stream, END_WAIT));
            if let Ok(step) = answer {
                self.own = FilledBefore { stored_bytes: step.stored_bytes, frames: step.frames };
                return step;
            }
            let before = FilledBefore {
                stored_bytes: self.before.stored_bytes + self.own.stored_bytes,
                frames: self.before.frames + self.own.frames,
            };
            *self = loop {
                if sys::interrupt::requested() {
                    return self.ended(FillEnd::Cancelled);
                }
                match Self::open(self.name, before) {
                    Ok(next) => break next,
                    // The socket of the one that was killed may still have taken it.
                    Err(error) if error.exit == Exit::Partial && Instant::now() < give_up => {
                        std::thread::sleep(SUCCESSOR_TURN);
                    }
                    Err(_) => return self.ended(FillEnd::Gone),
                }
            };
        }
    }

    fn ended(&self, end: FillEnd) -> FillStep {
        FillStep { end: Some(end), stored_bytes: self.own.stored_bytes, ..FillStep::default() }
    }
}

fn send(mut stream: &UnixStream, said: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// The next line of the service. After Ctrl-C the service is asked to end, within `patience`.
fn receive<A: DeserializeOwned>(stream: &UnixStream, patience: Duration) -> io::Result<A> {
    let mut line = Vec::new();
    let mut end = None;
    loop {
        let room = LINE_BYTES.saturating_sub(line.len() as u64);
        match BufReader::new(stream).take(room).read_until(b'\n', &mut line) {
            Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof)),
            Ok(_) if line.ends_with(b"\n") => return Ok(serde_json::from_slice(&line)?),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        if end.is_none() && sys::interrupt::requested() {
            let _ = stream.shutdown(Shutdown::Write);
            end = Some(Instant::now() + patience);
        }
        if end.is_some_and(|end| Instant::now() > end) {
            return Err(io::Error::from(ErrorKind::TimedOut));
        }
    }
}
