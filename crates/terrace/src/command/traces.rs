//! Traces of requests for blocks: those of other tools, and the accesses of a recording, as one
//! iterator of requests, whatever the form. `policy` decodes; this file opens, undoes zstd, and
//! finds the form out by the content. `export --to oracle-general` writes any of them, `advise`
//! judges those of other tools.

use super::must_exist;
use crate::args::recordings::ExportArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{self, OutputTarget};
use explain::advice::TraceReads;
use policy::trace::{TraceForm, TraceReader, TraceRequest, block_key, oracle_general_records};
use record::file::{AccessReader, MAGIC};
use record::{AccessBatch, AccessShifts, RequestKind};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The blocks that requests are counted in.
pub const BLOCK_BYTES: u64 = 4096;

const SECTOR_BYTES: u64 = 512;
/// What is read in one go, and what the form is found out by.
const PIECE_BYTES: usize = 64 << 10;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The most memory that zstd may take for its window, as a power of two.
const ZSTD_WINDOW_LOG: u32 = 27;
const ORACLE_RECORD_BYTES: usize = 24;
/// The most requests of an export: 20 bytes of memory each, for the next request of each block.
const EXPORTED_MAX: usize = 16 << 20;

const KNOWN_FORMS: &str = "known are recordings, and as text or packed with zstd oracleGeneral, MSR CSV, \
                           the lines of blkparse, and fio's iolog 2 and 3";

/// Requests of one trace, in order of time; after an error there are none.
pub struct Trace {
    source: TraceSource,
    ready: VecDeque<TraceRequest>,
    failure: Option<Error>,
    path: PathBuf,
    block_bytes: u64,
    shifts: AccessShifts,
    lost: u64,
}

enum TraceSource {
    Other(Box<dyn Read>, Box<TraceReader>),
    /// With the number of each device, in the order in which they appear.
    Recording(Box<AccessReader<BufReader<File>>>, BTreeMap<(u32, u32), u64>),
    Ended,
}

/// Opens a trace of another tool, or a recording with accesses, as requests for blocks of
/// `block_bytes` bytes. Of a recording these are the reads and writes of block devices.
///
/// # Errors
/// If it cannot be opened, or is none of them.
pub fn open_trace(path: &Path, block_bytes: u64) -> Result<Trace> {
    open_as(path, block_bytes, |form| form)
}

fn open_as(path: &Path, block_bytes: u64, form: fn(TraceForm) -> TraceForm) -> Result<Trace> {
    must_exist(path)?;
    let mut shifts = AccessShifts::default();
    let source = if is_recording(path)? {
        shifts = smallest_shares(AccessReader::open(path)?);
        TraceSource::Recording(Box::new(AccessReader::open(path)?), BTreeMap::new())
    } else {
        let (text, found) = unpacked(path)?;
        let found = found.ok_or_else(|| {
            let unknown = format!("{} is no trace of a known form", path.display());
            Error::new(Exit::Impossible, unknown).hint(KNOWN_FORMS)
        })?;
        TraceSource::Other(text, Box::new(TraceReader::new(form(found), block_bytes)))
    };
    Ok(Trace {
        source,
        ready: VecDeque::new(),
        failure: None,
        path: path.to_owned(),
        block_bytes,
        shifts,
        lost: 0,
    })
}

/// Whether a file begins as a recording does.
///
/// # Errors
/// If it cannot be read.
pub fn is_recording(path: &Path) -> Result<bool> {
    let file = sys::file::open_input(path).map_err(|error| unreadable(path, &error.source))?;
    let mut begin = Vec::new();
    let read = file.take(MAGIC.len() as u64).read_to_end(&mut begin);
    read.map_err(|error| unreadable(path, &error))?;
    Ok(begin == MAGIC)
}

/// A file as it was before zstd packed it, and what trace that is; `None` for another file.
fn unpacked(path: &Path) -> Result<(Box<dyn BufRead>, Option<TraceForm>)> {
    let failed = |error: &io::Error| unreadable(path, error);
    let file = sys::file::open_input(path).map_err(|error| failed(&error.source))?;
    let mut plain = BufReader::with_capacity(PIECE_BYTES, file);
    let packed_begin = plain.fill_buf().map_err(|error| failed(&error))?;
    let mut text: Box<dyn BufRead> = if packed_begin.starts_with(&ZSTD_MAGIC) {
        let decoder = zstd::stream::read::Decoder::with_buffer(plain);
        let mut unpacked = decoder.map_err(|error| failed(&error))?;
        unpacked.window_log_max(ZSTD_WINDOW_LOG).map_err(|error| failed(&error))?;
        Box::new(BufReader::with_capacity(PIECE_BYTES, unpacked))
    } else {
        Box::new(plain)
    };
    let begin = text.fill_buf().map_err(|error| {
        let why = format!("record 1: cannot be read: {}", sys::plain_reason(&error));
        Error::new(Exit::Impossible, format!("{}: {why}", path.display()))
    })?;
    let form = form_of(begin);
    Ok((text, form))
}

/// Whether this is the trace of another tool, and none that `terrace` recorded.
///
/// # Errors
/// If it cannot be read.
pub fn is_trace(path: &Path) -> Result<bool> {
    must_exist(path)?;
    Ok(!is_recording(path)? && unpacked(path)?.1.is_some())
}

/// The refusal of what is neither.
pub fn neither(path: &Path) -> Error {
    let text = format!("{} is neither a recording nor a trace of a known form", path.display());
    Error::new(Exit::Impossible, text).hint(KNOWN_FORMS)
}

/// The reads of the trace of another tool, with what the disk took for each if it says so.
///
/// # Errors
/// What is wrong with it, with the number of the record.
pub fn trace_reads(path: &Path) -> Result<TraceReads> {
    // Of blkparse requests are counted where they are completed, which has a time, if it is there.
    let is_completed = |form| match form {
        TraceForm::Blkparse => TraceForm::BlkparseCompleted,
        form => form,
    };
    let trace = open_as(path, BLOCK_BYTES, is_completed)?;
    let counts_completions = trace.form() == Some(TraceForm::BlkparseCompleted);
    let timed = reads_of(path, trace)?;
    if timed.has_times() || !counts_completions {
        return Ok(timed);
    }
    reads_of(path, open_trace(path, BLOCK_BYTES)?)
}

fn reads_of(path: &Path, trace: Trace) -> Result<TraceReads> {
    let form = trace.form().unwrap_or(TraceForm::OracleGeneral);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut reads = TraceReads::new(&name, form);
    for request in trace {
        reads.add(&request?);
    }
    Ok(reads)
}

/// The smallest share of each class in a recording, as far as it can be read: larger ones contain
/// it, so that the whole recording can be taken as one of this share.
fn smallest_shares(batches: impl Iterator<Item = record::Result<AccessBatch>>) -> AccessShifts {
    batches.map_while(record::Result::ok).fold(AccessShifts::default(), |smallest, batch| {
        let AccessShifts { requests, moves, touched } = batch.shifts;
        AccessShifts {
            requests: smallest.requests.max(requests),
            moves: smallest.moves.max(moves),
            touched: smallest.touched.max(touched),
        }
    })
}

impl Iterator for Trace {
    type Item = Result<TraceRequest>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(request) = self.ready.pop_front() {
                return Some(Ok(request));
            }
            if let Some(error) = self.failure.take() {
                return Some(Err(error));
            }
            if matches!(self.source, TraceSource::Ended) {
                return None;
            }
            // What was right before an error comes first.
            self.failure = self.fill().err();
        }
    }
}

impl Trace {
    /// The shares of a recording, the smallest that it ever kept; a trace of another tool has all.
    pub fn shifts(&self) -> AccessShifts {
        self.shifts
    }

    /// Requests that the recorder lost, until now.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Of the trace of another tool; `None` of a recording, and at the end.
    fn form(&self) -> Option<TraceForm> {
        match &self.source {
            TraceSource::Other(_, reader) => Some(reader.form()),
            _ => None,
        }
    }

    /// Reads on, a piece or a batch; after an error there is no source any more.
    fn fill(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.source, TraceSource::Ended) {
            TraceSource::Other(source, reader) => self.fill_from_other(source, reader),
            TraceSource::Recording(mut batches, mut devices) => {
                if let Some(batch) = batches.next() {
                    self.add_batch(&batch?, &mut devices)?;
                    self.source = TraceSource::Recording(batches, devices);
                }
                Ok(())
            }
            TraceSource::Ended => Ok(()),
        }
    }

    fn fill_from_other(
        &mut self,
        mut source: Box<dyn Read>,
        mut reader: Box<TraceReader>,
    ) -> Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut requests = Vec::new();
        let length = source.read(&mut piece).map_err(|error| {
            let why = sys::plain_reason(&error);
            self.trace_error(&format!("record {}: cannot be read: {why}", reader.records() + 1))
        })?;
        let read = match length {
            0 => reader.finish(&mut requests).map(drop),
            _ => {
                let read = reader.read(&piece[..length], &mut requests);
                if read.is_ok() {
                    self.source = TraceSource::Other(source, reader);
                }
                read
            }
        };
        self.ready.extend(requests);
        read.map_err(|error| self.trace_error(&error.to_string()))
    }

    /// Adds the reads and writes of a batch, those of the share that all batches have.
    fn add_batch(
        &mut self,
        batch: &AccessBatch,
        devices: &mut BTreeMap<(u32, u32), u64>,
    ) -> Result<()> {
        self.lost = self.lost.saturating_add(batch.lost.requests);
        for request in &batch.requests {
            let is_kept = request.is_followed(self.shifts.requests);
            if !is_kept || request.kind == RequestKind::Discard || request.sectors == 0 {
                continue;
            }
            let next = devices.len() as u64;
            let device = *devices.entry(request.device).or_insert(next);
            let place = request.sector.checked_mul(SECTOR_BYTES).and_then(|first| {
                let last = first.checked_add(u64::from(request.sectors) * SECTOR_BYTES - 1)?;
                let first_key = block_key(device, first / self.block_bytes)?;
                let blocks = last / self.block_bytes - first / self.block_bytes + 1;
                Some((first_key, u32::try_from(blocks).ok()?))
            });
            let (first_key, blocks) = place.ok_or_else(|| {
                self.trace_error(&format!("its sector {} is beyond any disk", request.sector))
            })?;
            self.ready.push_back(TraceRequest {
                at_ns: request.at_ns,
                first_key,
                blocks,
                is_write: request.kind == RequestKind::Write,
                latency_ns: Some(request.latency_ns),
            });
        }
        Ok(())
    }

    fn trace_error(&self, why: &str) -> Error {
        Error::new(Exit::Impossible, format!("{}: {why}", self.path.display()))
    }
}

/// The form of a trace by its first bytes; `None` for one that is not known.
fn form_of(begin: &[u8]) -> Option<TraceForm> {
    let line_end = begin.iter().position(|byte| *byte == b'\n').unwrap_or(begin.len());
    let line = std::str::from_utf8(&begin[..line_end]).ok().map(str::trim);
    if let Some(line) = line.filter(|line| !line.contains(char::is_control)) {
        if line.starts_with("fio version ") {
            return Some(TraceForm::Iolog);
        }
        let fields: Vec<&str> = line.split(',').collect();
        if fields.len() == 7 && matches!(fields[3], "Read" | "Write") {
            return Some(TraceForm::Msr);
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.len() >= 6 && is_device(words[0]) && words[3].contains('.') {
            return Some(TraceForm::Blkparse);
        }
    }
    is_oracle_general(begin).then_some(TraceForm::OracleGeneral)
}

/// `major,minor`, as blkparse begins its lines.
fn is_device(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once(',').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// Whether the first records can be such: a size, and a next record that is later, or none.
fn is_oracle_general(begin: &[u8]) -> bool {
    let (records, _) = begin.as_chunks::<ORACLE_RECORD_BYTES>();
    let is_one = |(number, record): (i64, &[u8; ORACLE_RECORD_BYTES])| {
        let next = record[16..].try_into().map_or(0, i64::from_le_bytes);
        record[12..16] != [0; 4] && (next == -1 || next > number)
    };
    !records.is_empty() && (0..).zip(records).all(is_one)
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let why = format!("cannot read {}: {}", path.display(), sys::plain_reason(error));
    Error::new(Exit::Impossible, why)
}

/// Exports a trace, or the accesses of a recording, in the form of libCacheSim.
///
/// # Errors
/// If the trace cannot be read, has no request, or is not written whole.
pub fn export_oracle_general(args: &ExportArgs) -> Result<Exit> {
    if !args.columns.is_empty() {
        return Err(Error::usage("only `--to csv` has --columns"));
    }
    let target = OutputTarget::of_redacted(args.output.as_deref(), !args.no_redact)?;
    let mut trace = open_trace(&args.file, BLOCK_BYTES)?;
    let is_recording = matches!(trace.source, TraceSource::Recording(..));
    let (mut times_s, mut keys) = (Vec::new(), Vec::new());
    let mut damage = None;
    while let Some(request) = trace.next() {
        let request = match request {
            Ok(request) => request,
            // What is whole of a damaged recording is exported.
            Err(error) if is_recording && !keys.is_empty() => {
                damage = Some(error);
                break;
            }
            Err(error) => return Err(error),
        };
        let at_s = u32::try_from(request.at_ns / 1_000_000_000).unwrap_or(u32::MAX);
        if keys.len() + request.blocks as usize > EXPORTED_MAX {
            let why = format!("it has more than {EXPORTED_MAX} requests for blocks");
            return Err(trace.trace_error(&why));
        }
        keys.extend(request.keys());
        times_s.resize(keys.len(), at_s);
    }
    if keys.is_empty() {
        let none = trace.trace_error("it has no request for a block");
        return Err(none.hint("terrace record --accesses keeps them, as root"));
    }
    target.stream(|sink| {
        let records = oracle_general_records(&times_s, &keys, BLOCK_BYTES as u32);
        for record in records {
            sink.write_all(&record).map_err(|error| unwritable(&error))?;
        }
        Ok(())
    })?;
    if let Some(said) = missing(trace.shifts().requests, trace.lost()) {
        output::announce("export", &said);
    }
    match damage {
        None => Ok(Exit::Done),
        Some(error) => {
            let why = format!("{error}: only what is before it was exported");
            Err(Error::new(Exit::Partial, why))
        }
    }
}

/// What a recording did not keep of its requests.
fn missing(shift: u8, lost: u64) -> Option<String> {
    let share = 1_u64 << shift.min(63);
    let kept = format!("requests to one in {share} regions of 1 MiB were kept");
    match (shift, lost) {
        (0, 0) => None,
        (0, _) => Some(format!("{lost} requests were lost")),
        (_, 0) => Some(format!("only {kept}")),
        _ => Some(format!("only {kept}, and {lost} of these were lost")),
    }
}

fn unwritable(error: &io::Error) -> Error {
    Error::new(Exit::Partial, format!("cannot write: {}", sys::plain_reason(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::recordings::ExportForm;
    use model::recording::{Facts, RecordingOutcome};
    use record::DeviceRequest;
    use record::file::Writer;
    use std::io::Write;
    use testkit::TempDir;

    const MSR: &str = "128166372003061629,hm,0,Read,383496192,32768,113736\n\
                       128166372003061630,hm,1,Write,4095,2,10\n";
    const BLKPARSE: &str = "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [x]\n\
                            \u{20} 8,0    3        2     0.000002197   697  Q   R 8 + 16 [x]\n";
    const IOLOG_2: &str =
        "fio version 2 iolog\n/dev/sdb add\n/dev/sdb open\n/dev/sdb read 0 8192\n";
    const IOLOG_3: &str = "fio version 3 iolog\n5 /dev/sdb add\n9 /dev/sdb write 4096 4096\n";

    fn of_bytes(bytes: &[u8]) -> Result<Vec<TraceRequest>> {
        let directory = TempDir::new();
        let path = directory.join("trace");
        std::fs::write(&path, bytes).unwrap();
        open_trace(&path, BLOCK_BYTES)?.collect()
    }

    fn refusal(bytes: &[u8]) -> String {
        let error = of_bytes(bytes).unwrap_err();
        assert_eq!(error.exit, Exit::Impossible);
        let text = error.to_string();
        assert!(!text.contains('\n'), "{text}");
        text.rsplit_once("trace").unwrap().1.to_owned()
    }

    fn oracle() -> Vec<u8> {
        oracle_general_records(&[1, 1, 3], &[7, 8, 7], 512).flatten().collect()
    }

    #[test]
    fn forms_are_known_by_their_content() {
        let blocks = |bytes: &[u8]| -> Vec<u32> {
            of_bytes(bytes).unwrap().iter().map(|request| request.blocks).collect()
        };
        assert_eq!(blocks(MSR.as_bytes()), [8, 2]);
        assert_eq!(blocks(BLKPARSE.as_bytes()), [2]);
        assert_eq!(blocks(IOLOG_2.as_bytes()), [2]);
        assert_eq!(blocks(IOLOG_3.as_bytes()), [1]);
        assert_eq!(blocks(&oracle()), [1, 1, 1]);
        let mut packed = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        packed.write_all(&oracle()).unwrap();
        assert_eq!(of_bytes(&packed.finish().unwrap()).unwrap(), of_bytes(&oracle()).unwrap());
    }

    #[test]
    fn a_share_that_fell_holds_for_the_whole_recording() {
        const REGION_SECTORS: u64 = 1 << 11;
        let batch = |second: u64, requests| {
            let at_ns = second * 1_000_000_000;
            let request = |region: u64| DeviceRequest {
                at_ns,
                latency_ns: 1000,
                device: (8, 0),
                sector: region * REGION_SECTORS,
                sectors: 8,
                kind: RequestKind::Read,
            };
            let shifts = AccessShifts { requests, ..AccessShifts::default() };
            let kept = (0..64).map(request).filter(|request| request.is_followed(requests));
            let (from_ns, to_ns) = (at_ns, at_ns + 1_000_000_000);
            AccessBatch { from_ns, to_ns, shifts, requests: kept.collect(), ..Default::default() }
        };
        let facts = Facts::default();
        let mut writer = Writer::new(Vec::new(), &facts).unwrap();
        for (second, shift) in [(0, 0), (1, 3)] {
            writer.accesses(&batch(second, shift)).unwrap();
        }
        let bytes = writer.finish(&facts, &RecordingOutcome::default()).unwrap();
        let all = of_bytes(&bytes).unwrap();
        let keys = |second: u64| -> Vec<u64> {
            let of_second = all.iter().filter(|request| request.at_ns == second * 1_000_000_000);
            of_second.map(|request| request.first_key).collect()
        };
        assert_eq!(keys(0).len(), 64 / 8);
        assert_eq!(keys(0), keys(1));
    }

    #[test]
    fn what_is_wrong_is_one_line_with_the_number_of_the_record() {
        let far = format!("{MSR}128166372003061631,hm,0,Read,1152921504606846976,512,1\n");
        assert!(refusal(far.as_bytes()).starts_with(": record 3: its offset"));
        let late = format!("{MSR}128166372003061628,hm,0,Read,0,512,1\n");
        assert!(refusal(late.as_bytes()).starts_with(": record 3: its time"));
        assert_eq!(refusal(&oracle()[..50]), ": record 3: it is cut after 2 of 24 bytes");
        let packed = zstd::stream::encode_all(&oracle()[..], 3).unwrap();
        let cut = refusal(&packed[..packed.len() - 4]);
        assert!(cut.starts_with(": record ") && cut.contains("cannot be read"), "{cut}");
        for unknown in [&b""[..], b"hello\n", &[0; 48], b"\x28\xb5\x2f\xfdxxxxxxxxxxxx"] {
            assert!(of_bytes(unknown).is_err());
        }
    }

    #[test]
    fn what_is_missing_of_a_recording_is_said() {
        let said = |shift, lost| missing(shift, lost).unwrap_or_default();
        assert_eq!((said(0, 0), said(0, 7)), (String::new(), "7 requests were lost".to_owned()));
        assert_eq!(said(2, 0), "only requests to one in 4 regions of 1 MiB were kept");
        assert!(said(1, 7).ends_with("were kept, and 7 of these were lost"));
    }

    /// The last chunk of accesses is damaged: what is before it is exported, and it says so.
    #[test]
    fn what_is_whole_of_a_damaged_recording_is_exported() {
        let batch = |second: u64| {
            let at_ns = second * 1_000_000_000;
            let request = |number: u64| DeviceRequest {
                at_ns,
                latency_ns: 1000,
                device: (8, 0),
                sector: number * number * 800,
                sectors: 8,
                kind: RequestKind::Read,
            };
            let requests = (0..64).map(request).collect();
            let (from_ns, to_ns) = (at_ns, at_ns + 1_000_000_000);
            AccessBatch { from_ns, to_ns, requests, ..Default::default() }
        };
        let facts = Facts::default();
        let mut writer = Writer::new(Vec::new(), &facts).unwrap();
        writer.accesses(&batch(0)).unwrap();
        let first_end = writer.bytes();
        writer.accesses(&batch(1)).unwrap();
        let mut bytes = writer.finish(&facts, &RecordingOutcome::default()).unwrap();
        let middle = usize::try_from(first_end).unwrap() + 40;
        bytes[middle] ^= 0xff;
        let directory = TempDir::new();
        let [file, exported] = ["a.trec", "exported"].map(|name| directory.join(name));
        std::fs::write(&file, bytes).unwrap();
        let args = ExportArgs {
            file,
            to: ExportForm::OracleGeneral,
            columns: Vec::new(),
            redact: false,
            no_redact: true,
            output: Some(exported.clone()),
        };
        let error = export_oracle_general(&args).unwrap_err();
        assert_eq!(error.exit, Exit::Partial);
        assert!(error.to_string().contains("only what is before it was exported"), "{error}");
        assert_eq!(std::fs::read(exported).unwrap().len(), 64 * ORACLE_RECORD_BYTES);
    }

    #[test]
    fn requests_before_an_error_are_given() {
        let directory = TempDir::new();
        let path = directory.join("trace");
        std::fs::write(&path, format!("{MSR}nonsense\n")).unwrap();
        let all: Vec<bool> = open_trace(&path, 4096).unwrap().map(|it| it.is_ok()).collect();
        assert_eq!(all, [true, true, false]);
    }
}
