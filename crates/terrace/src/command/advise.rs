//! `terrace advise`: what more memory, a stick or an SSD would have spared of the waits in
//! recordings, or in the time that is recorded for it. The crate `explain` judges; this file reads
//! and records.

use super::page as page_file;
use super::record::accesses_kept;
use super::record_options::{self, of_advise};
use super::traces;
use crate::args::When;
use crate::args::advise::AdviseArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::progress::Progress;
use crate::output::prose::long_time;
use crate::output::{OutputTarget, Page, advise as shown, json};
use explain::advice::{
    AdviceRequest, BlockAccess, BlockReads, CacheDevice, DiskTime, Observation, advise as judge,
    clash, observe, observe_trace,
};
use model::Bytes;
use model::advice::Advice;
use model::probe::SERVED_BY_DEVICE;
use model::recording::Recording;
use record::capture::{self, RecordOptions};
use record::file::{AccessReader, KeptBytes};
use record::redact::redact;
use record::{AccessBatch, DeviceRequest, RequestKind};
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// No qualification is longer.
const LONGEST_QUALIFICATION: u64 = 4 << 20;

/// What is shorter says nothing, as of a recording.
const SHORTEST: Duration = Duration::from_secs(10);

/// The most memory that the accesses take while this machine is recorded; of more a share is kept.
const ACCESS_BYTES: Bytes = Bytes(64 << 20);

/// More reads of one recording are left out: each takes 32 bytes.
const READS_MAX: usize = 2 << 20;

/// What was seen, and the same without names if a page is to be shared.
struct Seen {
    all: Vec<Observation>,
    redacted: Vec<Observation>,
}

/// Judges, and delivers the advice.
///
/// # Errors
/// If a recording cannot be read, or none can be made.
pub fn advise(args: &AdviseArgs, color: When) -> Result<Exit> {
    let target = OutputTarget::of(args.output.as_deref())?;
    let html = page_file::target(args.page.as_deref(), !args.no_redact)?;
    let page = Page::of(&target, color);
    let (devices, disk) = devices(args.with.as_deref())?;
    let request = AdviceRequest {
        more_bytes: args.ram.clone(),
        flash_bytes: args.flash.iter().map(|bytes| bytes.0).collect(),
        devices,
    };
    let is_redacted = html.is_some() && !args.no_redact;
    let seen = match args.record {
        Some(duration) => {
            let is_less_asked = args.ram.iter().any(|bytes| *bytes < 0);
            recorded(duration, is_less_asked, is_redacted)?
        }
        None => read(args, disk.as_ref(), is_redacted)?,
    };
    if let Some(why) = clash(&seen.all) {
        return Err(Error::usage(why));
    }
    let advice = judge(&seen.all, &request);
    if let Some(html) = html {
        let shown = if is_redacted { seen.redacted(&advice, &request) } else { advice.clone() };
        html.write_data(&viewer::advise_page(json::render(&shown)?))?;
    }
    let text = if args.json { json::render(&advice)? } else { shown::page(&advice, page) };
    target.write(&text)?;
    Ok(Exit::Done)
}

/// One at a time: a recording may be a thousand times as large as what is kept of it.
fn read(args: &AdviseArgs, disk: Option<&DiskTime>, is_redacted: bool) -> Result<Seen> {
    let mut seen = Seen { all: Vec::new(), redacted: Vec::new() };
    for (at, file) in args.files.iter().enumerate() {
        if !file.is_dir() && traces::is_trace(file)? {
            if args.files[..at].contains(file) {
                let text = format!("{}: its seconds would count twice", file.display());
                return Err(Error::usage(text));
            }
            seen.all.push(observe_trace(traces::trace_reads(file)?, disk));
            continue;
        }
        if !file.is_dir() && !traces::is_recording(file)? {
            return Err(traces::neither(file));
        }
        let recording = super::open_recording(file)?;
        let reads = if file.is_dir() { None } else { block_reads(AccessReader::open(file)?) };
        seen.add(recording, reads, is_redacted);
    }
    Ok(seen)
}

impl Seen {
    /// The advice without names. Of a trace only the subject has one, so nothing is judged again.
    fn redacted(&self, advice: &Advice, request: &AdviceRequest) -> Advice {
        let mut nameless: Vec<String> =
            self.all.iter().filter_map(Observation::nameless_trace).collect();
        if nameless.is_empty() {
            return judge(&self.redacted, request);
        }
        nameless.dedup();
        Advice { subject: nameless.join("; "), ..advice.clone() }
    }

    fn add(&mut self, mut recording: Recording, reads: Option<BlockReads>, is_redacted: bool) {
        let with_reads = |observed: Observation, reads: Option<BlockReads>| match reads {
            Some(reads) => observed.with_reads(reads),
            None => observed,
        };
        let observed = observe(&recording);
        if is_redacted {
            redact(&mut recording);
            self.redacted.push(with_reads(observe(&recording), reads.clone()));
        }
        self.all.push(with_reads(observed, reads));
    }
}

/// The block reads of a recording; `None` if it kept no accesses.
fn block_reads(batches: impl Iterator<Item = record::Result<AccessBatch>>) -> Option<BlockReads> {
    let mut reads: Option<BlockReads> = None;
    // What is whole of a damaged file is read, as of its other chunks.
    for batch in batches {
        let AccessBatch { shifts, lost, requests, .. } = match batch {
            Ok(batch) => batch,
            Err(error) => {
                // Also before the first batch: it may have kept some.
                let all = reads.get_or_insert_with(BlockReads::default);
                all.damage = Some(error.to_string());
                break;
            }
        };
        let all = reads.get_or_insert_with(BlockReads::default);
        all.lost = all.lost.saturating_add(lost.requests);
        if shifts.requests > all.shift {
            all.shift = shifts.requests;
        }
        let kept = requests.iter().filter(|one| one.kind == RequestKind::Read);
        all.reads.extend(kept.filter(|one| one.is_followed(all.shift)).map(access));
        if all.reads.len() > READS_MAX {
            all.shift += 1;
            let shift = all.shift;
            all.reads.retain(|one| is_followed(one, shift));
        }
    }
    if let Some(all) = &mut reads {
        let shift = all.shift;
        all.reads.retain(|one| is_followed(one, shift));
        all.reads.sort_by_key(|one| one.at_ns);
    }
    reads
}

fn access(one: &DeviceRequest) -> BlockAccess {
    BlockAccess {
        at_ns: one.at_ns,
        disk: one.device.0 << 20 | one.device.1,
        sector: one.sector,
        sectors: one.sectors,
        latency_ns: one.latency_ns,
    }
}

/// Shares are nested: what an earlier batch kept is thinned to the smallest one.
fn is_followed(one: &BlockAccess, shift: u8) -> bool {
    let request = DeviceRequest {
        at_ns: one.at_ns,
        latency_ns: one.latency_ns,
        device: (one.disk >> 20, one.disk & 0xf_ffff),
        sector: one.sector,
        sectors: one.sectors,
        kind: RequestKind::Read,
    };
    request.is_followed(shift)
}

/// Records this machine, in memory.
fn recorded(duration: Duration, is_less_asked: bool, is_redacted: bool) -> Result<Seen> {
    if duration < SHORTEST {
        return Err(Error::usage("--record: at least 10 s are needed"));
    }
    if sys::process::effective_uid() != 0 {
        let text = "what leaves memory is seen by root alone";
        return Err(Error::new(Exit::Impossible, text)
            .hint("`sudo terrace advise --record 1h`; `terrace doctor` says why"));
    }
    let for_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let progress = Progress::new();
    progress.step(&format!(
        "terrace advise: records this machine for {}, Ctrl-C ends it earlier",
        long_time(for_ns)
    ));
    let target = record_options::machine();
    let kept = KeptBytes::default();
    let mut options =
        RecordOptions { kept_bytes: Some(Arc::clone(&kept)), ..of_advise(is_less_asked) };
    record_options::keep_accesses(&mut options, ACCESS_BYTES)?;
    let captured = capture::watch(&target, Some(for_ns), &options)?;
    drop(progress);
    let mut seen = Seen { all: Vec::new(), redacted: Vec::new() };
    let accesses = kept.get().map(|bytes| AccessReader::new(Cursor::new(bytes))).transpose()?;
    // None of a recording that follows requests is an answer, and has a reason.
    let absent = accesses_kept(&captured.recording).err();
    let missing = || BlockReads { absent, ..BlockReads::default() };
    let reads = accesses.and_then(block_reads).unwrap_or_else(missing);
    seen.add(captured.recording, Some(reads), is_redacted);
    Ok(seen)
}

/// A stick, measured or usual, and a usual SSD; and the disk that was measured beside the stick.
fn devices(qualification: Option<&Path>) -> Result<(Vec<CacheDevice>, Option<DiskTime>)> {
    let (stick, disk) = match qualification {
        Some(path) => qualified(path)?,
        None => (CacheDevice::usual_stick(), None),
    };
    Ok((vec![stick, CacheDevice::usual_ssd()], disk))
}

/// The times of the stick, and of the disk if there, in the JSON of `boost qualify`.
fn qualified(path: &Path) -> Result<(CacheDevice, Option<DiskTime>)> {
    super::must_exist(path)?;
    let refused = |why: &str| Error::usage(format!("{}: {why}", path.display()));
    let mut text = String::new();
    let file = sys::file::open_input(path).map_err(|error| refused(&error.to_string()))?;
    let read = file.take(LONGEST_QUALIFICATION).read_to_string(&mut text);
    read.map_err(|error| refused(&error.to_string()))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|_| refused("it is not the JSON of boost qualify"))?;
    let result = value.get("result").unwrap_or(&value);
    let word = |path: &str| result.pointer(path).and_then(serde_json::Value::as_str);
    if word("/capacity/outcome") == Some("refused") {
        return Err(refused("this stick does not hold what is written to it"));
    }
    let figure = |path: &str| result.pointer(path).and_then(serde_json::Value::as_f64);
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let read_ns = figure("/random_read/mean_ns")
        .filter(|ns| positive(*ns))
        .ok_or_else(|| refused("it has no time of a random read"))?;
    let bytes_per_s = figure("/sequential_read/bytes_per_s/median")
        .filter(|rate| positive(*rate))
        .ok_or_else(|| refused("it has no rate of sequential reads"))?;
    for (figures, what) in [("random_read", "random"), ("sequential_read", "sequential")] {
        let served_by = word(&format!("/{figures}/served_by")).unwrap_or_default();
        if served_by != SERVED_BY_DEVICE {
            let by = if served_by.is_empty() { "no counter says what" } else { served_by };
            let why = format!("its {what} reads do not count: {by} served them");
            return Err(refused(&why));
        }
    }
    let is_of_disk = word("/disk/random_read/served_by") == Some(SERVED_BY_DEVICE);
    let disk_ns = figure("/disk/random_read/mean_ns").filter(|ns| positive(*ns) && is_of_disk);
    let disk = disk_ns.map(|read_ns| DiskTime {
        read_ns,
        name: word("/disk/disk").unwrap_or("the disk").to_owned(),
    });
    let stick = CacheDevice {
        kind: "stick".to_owned(),
        read_ns,
        bytes_per_s,
        times_from: format!(
            "measured by boost qualify: {:.2} ms a random read, {:.0} MB/s",
            read_ns / 1e6,
            bytes_per_s / 1e6
        ),
        is_assumed: false,
    };
    Ok((stick, disk))
}
