//! Traces of other tools: bytes in, requests for blocks out.
//!
//! A trace is read in pieces of any size, so that it need not fit into memory; nothing here opens
//! a file or undoes compression. What cannot be right ends it with the number of the record: a cut
//! record, a time before the one above, an offset that no disk has. Records that are no requests
//! (opens, flushes, summaries) are skipped. [`encode_oracle_general`] writes what libCacheSim and
//! others read.

use std::collections::BTreeMap;

mod blkparse;
mod iolog;
mod msr;
mod oracle_general;

pub use oracle_general::{encode_oracle_general, oracle_general_records};

/// Offsets from here on are taken for damage: no disk has an exbibyte.
const OFFSET_END: u64 = 1 << 60;

/// A longer request is taken for damage: sizes are 32 bits in the kernel and in most forms.
const REQUEST_BYTES_MAX: u64 = 1 << 32;

/// Smaller blocks than a sector do not exist; with this the number of a file fits above the
/// number of a block.
const BLOCK_BYTES_MIN: u64 = SECTOR_BYTES;

const SECTOR_BYTES: u64 = 512;

/// The bits of a key that number the block within its file or disk.
const BLOCK_BITS: u32 = OFFSET_END.ilog2() - BLOCK_BYTES_MIN.ilog2();

/// Files and disks of one trace: what the bits of a key above the block can tell apart.
const FILES_MAX: usize = 1 << (64 - BLOCK_BITS);

/// A longer line is no line of these forms; names are paths.
const LINE_BYTES_MAX: usize = 8192;

/// What a trace looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceForm {
    /// libCacheSim's records of 24 bytes; the id names an object, whatever its size.
    OracleGeneral,
    /// The same where ids are sectors of 512 bytes of one disk: requests are split into blocks.
    OracleSectors,
    /// The lines of the block traces of Microsoft Research, Cambridge: seven fields with commas.
    Msr,
    /// What `blkparse` prints in its default form; requests are counted where they are queued.
    Blkparse,
    /// The same, counted where the disk has completed them, with the time since their issue.
    BlkparseCompleted,
    /// What `fio --write_iolog` writes, version 2 or 3.
    Iolog,
}

impl TraceForm {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::OracleGeneral | Self::OracleSectors => "oracleGeneral",
            Self::Msr => "MSR CSV",
            Self::Blkparse | Self::BlkparseCompleted => "blkparse",
            Self::Iolog => "fio iolog",
        }
    }
}

/// One request for one or more blocks that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// Nanoseconds since the first record that has a time.
    pub at_ns: u64,
    /// The key of its first block; the others follow by one.
    pub first_key: u64,
    /// How many blocks it touches, at least one.
    pub blocks: u32,
    /// Whether it writes.
    pub is_write: bool,
    /// What the disk took for it, if the record says so.
    pub latency_ns: Option<u64>,
}

impl TraceRequest {
    /// The keys of its blocks.
    pub fn keys(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.first_key;
        (0..u64::from(self.blocks)).map(move |block| first.wrapping_add(block))
    }
}

/// Why a trace ends before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The number of the record or line, from 1.
    pub record: u64,
    /// What is wrong with it.
    pub why: String,
}

impl std::fmt::Display for TraceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "record {}: {}", self.record, self.why)
    }
}

impl std::error::Error for TraceError {}

/// A request as a record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RawRequest<'t> {
    /// Nanoseconds since any start.
    at_ns: u64,
    /// What it goes to: a disk or a file.
    file: &'t str,
    place: RawPlace,
    is_write: bool,
    latency_ns: Option<u64>,
}

/// What a record asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RawPlace {
    Object(u64),
    Range { offset: u64, bytes: u64 },
}

/// The key of a block of a file or disk, as [`TraceReader`] numbers both; `None` beyond their
/// largest numbers.
pub fn block_key(file: u64, block: u64) -> Option<u64> {
    let is_known = file < FILES_MAX as u64 && block >> BLOCK_BITS == 0;
    is_known.then_some(file << BLOCK_BITS | block)
}

/// Reads one trace.
#[derive(Clone, Debug)]
pub struct TraceReader {
    form: TraceForm,
    block_bytes: u64,
    /// The begin of a record whose end was not read yet.
    pending: Vec<u8>,
    records: u64,
    iolog: iolog::State,
    issued: blkparse::Issued,
    first_ns: Option<u64>,
    last_ns: u64,
    files: BTreeMap<String, u64>,
}

impl TraceReader {
    /// A reader of `form` that counts in blocks of `block_bytes` bytes, at least 512.
    pub fn new(form: TraceForm, block_bytes: u64) -> Self {
        Self {
            form,
            block_bytes: block_bytes.max(BLOCK_BYTES_MIN),
            pending: Vec::new(),
            records: 0,
            iolog: iolog::State::default(),
            issued: blkparse::Issued::default(),
            first_ns: None,
            last_ns: 0,
            files: BTreeMap::new(),
        }
    }

    /// What it reads.
    pub fn form(&self) -> TraceForm {
        self.form
    }

    /// How many records were read, with those that are no requests.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Reads the next piece and appends its requests.
    ///
    /// # Errors
    /// What is wrong with a record; the requests before it were appended.
    pub fn read(
        &mut self,
        mut piece: &[u8],
        requests: &mut Vec<TraceRequest>,
    ) -> Result<(), TraceError> {
        if !self.pending.is_empty() {
            let missing = self.record_end(piece, self.pending.len());
            self.pending.extend_from_slice(&piece[..missing.unwrap_or(piece.len())]);
            piece = &piece[missing.unwrap_or(piece.len())..];
            if missing.is_some() {
                let record = std::mem::take(&mut self.pending);
                self.record(&record, requests)?;
            }
        }
        while let Some(end) = self.record_end(piece, 0) {
            self.record(&piece[..end], requests)?;
            piece = &piece[end..];
        }
        self.pending.extend_from_slice(piece);
        if self.pending.len() > LINE_BYTES_MAX {
            return Err(self.wrong(format!("a line of more than {LINE_BYTES_MAX} bytes")));
        }
        Ok(())
    }

    /// Reads what has no end yet: the last line. Gives the number of records.
    ///
    /// # Errors
    /// As [`TraceReader::read`]; a record of fixed length that is cut.
    pub fn finish(mut self, requests: &mut Vec<TraceRequest>) -> Result<u64, TraceError> {
        if !self.pending.is_empty() {
            let record = std::mem::take(&mut self.pending);
            self.record(&record, requests)?;
        }
        Ok(self.records)
    }

    /// Where the record ends that `piece` goes on with, `before` bytes of which were read already.
    fn record_end(&self, piece: &[u8], before: usize) -> Option<usize> {
        match self.form {
            TraceForm::OracleGeneral | TraceForm::OracleSectors => {
                let missing = oracle_general::RECORD_BYTES - before;
                (piece.len() >= missing).then_some(missing)
            }
            _ => piece.iter().position(|&byte| byte == b'\n').map(|at| at + 1),
        }
    }

    fn wrong(&self, why: String) -> TraceError {
        TraceError { record: self.records + 1, why }
    }

    fn record(&mut self, bytes: &[u8], out: &mut Vec<TraceRequest>) -> Result<(), TraceError> {
        let read = match self.form {
            TraceForm::OracleGeneral => oracle_general::decode(bytes, false).map(Some),
            TraceForm::OracleSectors => oracle_general::decode(bytes, true).map(Some),
            _ => self.line(bytes),
        };
        let request = match read.map_err(|why| self.wrong(why))? {
            Some(raw) => self.request(raw)?,
            None => None,
        };
        self.records += 1;
        out.extend(request);
        Ok(())
    }

    fn line<'t>(&mut self, bytes: &'t [u8]) -> Result<Option<RawRequest<'t>>, String> {
        if bytes.len() > LINE_BYTES_MAX {
            return Err(format!("a line of more than {LINE_BYTES_MAX} bytes"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?.trim();
        match self.form {
            _ if text.is_empty() => Ok(None),
            TraceForm::Msr => msr::decode(text).map(Some),
            TraceForm::Blkparse => blkparse::queued(text),
            TraceForm::BlkparseCompleted => self.issued.completed(text),
            _ => self.iolog.decode(text),
        }
    }

    /// Checks a request and numbers its blocks; `None` if it touches none.
    fn request(&mut self, raw: RawRequest<'_>) -> Result<Option<TraceRequest>, TraceError> {
        let first_ns = *self.first_ns.get_or_insert(raw.at_ns);
        if raw.at_ns < first_ns.max(self.last_ns) {
            let late_s = (first_ns.max(self.last_ns) - raw.at_ns) as f64 / 1e9;
            return Err(self.wrong(format!("its time is {late_s} s before the one above")));
        }
        self.last_ns = raw.at_ns;
        let (first_key, blocks) = match raw.place {
            RawPlace::Object(id) => (id, 1),
            RawPlace::Range { bytes: 0, .. } => return Ok(None),
            RawPlace::Range { offset, bytes } => self.range(raw.file, offset, bytes)?,
        };
        let at_ns = raw.at_ns - first_ns;
        let RawRequest { is_write, latency_ns, .. } = raw;
        Ok(Some(TraceRequest { at_ns, first_key, blocks, is_write, latency_ns }))
    }

    fn range(&mut self, file: &str, offset: u64, bytes: u64) -> Result<(u64, u32), TraceError> {
        if bytes > REQUEST_BYTES_MAX {
            return Err(self.wrong(format!("a request of {bytes} bytes")));
        }
        let end = offset.checked_add(bytes).filter(|&end| end <= OFFSET_END);
        let Some(end) = end else {
            return Err(self.wrong(format!("its offset {offset} is beyond any disk")));
        };
        let number = self.file_number(file)?;
        let first = offset / self.block_bytes;
        // At most 2^32 / 512 blocks and one.
        let blocks = ((end - 1) / self.block_bytes - first + 1) as u32;
        Ok((number << BLOCK_BITS | first, blocks))
    }

    fn file_number(&mut self, file: &str) -> Result<u64, TraceError> {
        if let Some(&number) = self.files.get(file) {
            return Ok(number);
        }
        let number = self.files.len() as u64;
        if self.files.len() == FILES_MAX {
            return Err(self.wrong(format!("more than {FILES_MAX} files or disks")));
        }
        self.files.insert(file.to_owned(), number);
        Ok(number)
    }
}

/// The place of `bytes` bytes from a sector of 512 bytes on, or what is wrong with it.
fn sectors(first: u64, bytes: u64) -> Result<RawPlace, String> {
    let offset = first.checked_mul(SECTOR_BYTES);
    let place = offset.map(|offset| RawPlace::Range { offset, bytes });
    place.ok_or_else(|| format!("its sector {first} is beyond any disk"))
}

/// The number in `field`, or what is wrong with it.
fn number(field: Option<&str>, what: &str) -> Result<u64, String> {
    let text = field.ok_or_else(|| format!("its {what} is missing"))?;
    text.parse().map_err(|_| format!("its {what} is no number: {:?}", shortened(text)))
}

/// The begin of a text that is shown in an error.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// The requests as (milliseconds, first key, blocks, whether it writes).
    fn read(form: TraceForm, bytes: &[u8]) -> Result<Vec<(u64, u64, u32, bool)>, String> {
        let mut requests = Vec::new();
        let mut reader = TraceReader::new(form, 4096);
        let read = reader.read(bytes, &mut requests).and_then(|()| reader.finish(&mut requests));
        read.map_err(|error| error.to_string())?;
        let short = |at: TraceRequest| (at.at_ns / 1_000_000, at.first_key, at.blocks, at.is_write);
        Ok(requests.into_iter().map(short).collect())
    }

    /// The requests of a trace that is read so many bytes at a time, and the record that ended it.
    fn in_pieces(form: TraceForm, bytes: &[u8], piece: usize) -> (Vec<TraceRequest>, Option<u64>) {
        let (mut reader, mut requests) = (TraceReader::new(form, 4096), Vec::new());
        let pieces = bytes.chunks(piece).try_for_each(|part| reader.read(part, &mut requests));
        let ended = pieces.and_then(|()| reader.finish(&mut requests));
        (requests, ended.err().map(|error| error.record))
    }

    fn error(form: TraceForm, text: &str) -> String {
        read(form, text.as_bytes()).unwrap_err()
    }

    #[test]
    fn msr_lines_are_split_into_blocks() {
        let text = "128166372003061629,hm,0,Read,383496192,32768,113736\n\
                    128166372003061629,hm,1,Write,4095,2,10\r\n\n\
                    128166372013061629,hm,0,Read,0,1,10";
        let disk = 1 << BLOCK_BITS;
        let expected = [(0, 383496192 / 4096, 8, false), (0, disk, 2, true), (1000, 0, 1, false)];
        assert_eq!(read(TraceForm::Msr, text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn blkparse_counts_queued_requests() {
        let text = "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n\
                    \u{20} 8,0    3        2     0.000001829   697  P   R [kjournald]\n\
                    \u{20} 8,0    3        3     0.000002197   697  Q   W 223488 + 16 [kjournald]\n\
                    259,10   0        4     1.500000000     0  Q  RA 8 + 8 [a name]\n\
                    \u{20} 8,0    3        5     1.500000000   697  Q FWS [kjournald]\n\
                    \u{20} 8,0    3        6     1.500000000   697  Q  DS 0 + 8 [fstrim]\n\
                    CPU0 (8,0):\n Reads Queued:           0,        0KiB\n";
        let disk = 1 << BLOCK_BITS;
        let expected = [(0, 223488 / 8, 2, true), (1499, disk + 1, 1, false)];
        assert_eq!(read(TraceForm::Blkparse, text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn fio_writes_two_versions() {
        let third = "fio version 3 iolog\n24 f add\n358 f open\n366 f read 0 4096\n\
                     9219 f write 28672 4096\n9219 f datasync 0 0\n14517 f close\n";
        let expected = [(0, 0, 1, false), (8, 7, 1, true)];
        assert_eq!(read(TraceForm::Iolog, third.as_bytes()).unwrap(), expected);
        let second = "fio version 2 iolog\n/dev/sdb add\n/dev/sdb open\n/dev/sdb read 0 8192\n\
                      /dev/sdb wait 5000 0\n/dev/sdb write 4096 4096\n/dev/sdb trim 0 4096\n";
        let expected = [(0, 0, 2, false), (5, 1, 1, true)];
        assert_eq!(read(TraceForm::Iolog, second.as_bytes()).unwrap(), expected);
        assert_eq!(
            error(TraceForm::Iolog, "fio version 4 iolog\n"),
            "record 1: it does not begin with \"fio version 2 iolog\" or 3"
        );
    }

    /// Of each form: cut, unsorted, and from 2^60 bytes on.
    #[test]
    fn each_form_says_which_record_cannot_be_right() {
        use TraceForm::{Blkparse, BlkparseCompleted, Iolog, Msr, OracleGeneral, OracleSectors};
        const FAR: u64 = 1 << 60;
        let far = format!("record 2: its offset {FAR} is beyond any disk");
        let msr = |last: &str| error(Msr, &format!("5,hm,0,Read,0,512,1\n{last}"));
        assert_eq!(msr("5,hm,0,Read,0,512"), "record 2: its response time is missing");
        assert_eq!(
            msr("4,hm,0,Read,0,512,1"),
            "record 2: its time is 0.0000001 s before the one above"
        );
        assert_eq!(msr(&format!("5,hm,0,Read,{FAR},512,1")), far);
        for (form, action) in [(Blkparse, "Q"), (BlkparseCompleted, "C")] {
            let line =
                |last: &str| error(form, &format!("8,0 3 1 5.0 697 {action} R 8 + 8 [x]\n{last}"));
            assert_eq!(line("8,0 3 1 5.0"), "record 2: it is cut before its action");
            let cut = format!("8,0 3 1 5.0 697 {action} R 8 +");
            assert_eq!(line(&cut), "record 2: its number of sectors is missing");
            let late = format!("8,0 3 1 4.5 697 {action} R 8 + 8 [x]");
            assert_eq!(line(&late), "record 2: its time is 0.5 s before the one above");
            let place = format!("8,0 3 1 5.0 697 {action} R {} + 8 [x]", FAR / 512);
            assert_eq!(line(&place), far);
        }
        let third = |last: &str| error(Iolog, &format!("fio version 3 iolog\n{last}"));
        assert_eq!(third("9 f rea"), "record 2: its action is unknown: \"rea\"");
        assert_eq!(third("9 f"), "record 2: its action is missing");
        assert_eq!(third(&format!("9 f read {FAR} 512")), far);
        let late = third("9 f read 0 512\n8 f read 0 512");
        assert_eq!(late, "record 3: its time is 0.000001 s before the one above");
        // Version 2 has waits alone: its time never runs backwards.
        let second = |last: &str| error(Iolog, &format!("fio version 2 iolog\n{last}"));
        assert_eq!(second("f wait"), "record 2: its wait is missing");
        assert_eq!(second("f read 0"), "record 2: its length is missing");
        assert_eq!(second(&format!("f write {FAR} 512")), far);
        let late = encode_oracle_general(&[(5, 7), (4, 8)], 512);
        for form in [OracleGeneral, OracleSectors] {
            let unsorted = read(form, &late).unwrap_err();
            assert_eq!(unsorted, "record 2: its time is 1 s before the one above");
            let cut = read(form, &late[..25]).unwrap_err();
            assert_eq!(cut, "record 2: it is cut after 1 of 24 bytes");
        }
        // An object may have any number.
        assert!(read(OracleGeneral, &encode_oracle_general(&[(5, 7), (5, FAR)], 512)).is_ok());
        let place = encode_oracle_general(&[(5, 7), (5, FAR / 512)], 512);
        assert_eq!(read(OracleSectors, &place).unwrap_err(), far);
    }

    #[test]
    fn blkparse_has_the_time_from_issue_to_completion() {
        let text = "8,0 3 1 1.000 697 Q R 8 + 8 [x]\n8,0 3 1 1.001 697 D R 8 + 8 [x]\n\
                    8,0 3 1 1.002 697 D W 8 + 8 [x]\n8,0 3 1 1.009 0 C R 8 + 8 [0]\n\
                    8,0 3 1 1.010 0 C R 800 + 8 [0]\n8,0 3 1 1.022 0 C W 8 + 8 [0]\n\
                    8,0 3 1 1.022 0 C WS 0 [0]\n8,0 3 1 1.022 0 C FF [0]\n";
        let mut requests = Vec::new();
        let mut reader = TraceReader::new(TraceForm::BlkparseCompleted, 4096);
        reader.read(text.as_bytes(), &mut requests).unwrap();
        let latencies: Vec<_> = requests.iter().map(|at| (at.is_write, at.latency_ns)).collect();
        assert_eq!(latencies, [(false, Some(8_000_000)), (false, None), (true, Some(20_000_000))]);
        let msr = "5,hm,0,Read,0,512,113736\n";
        let mut reader = TraceReader::new(TraceForm::Msr, 4096);
        reader.read(msr.as_bytes(), &mut requests).unwrap();
        assert_eq!(requests[3].latency_ns, Some(11_373_600));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let requests: [(u32, u64); 5] = [(1, 7), (1, u64::MAX), (3, 7), (4, 8), (4, 7)];
        let bytes = encode_oracle_general(&requests, 4096);
        assert_eq!(bytes.len(), 5 * 24);
        let (times, keys) = (requests.map(|at| at.0), requests.map(|at| at.1));
        let records: Vec<u8> = oracle_general_records(&times, &keys, 4096).flatten().collect();
        assert_eq!(records, bytes);
        let next =
            bytes.chunks(24).map(|record| i64::from_le_bytes(record[16..].try_into().unwrap()));
        assert_eq!(next.collect::<Vec<_>>(), [3, -1, 5, -1, -1], "numbered from 1");
        let read = read(TraceForm::OracleGeneral, &bytes).unwrap();
        let keys = requests.map(|(at_s, key)| (u64::from(at_s - 1) * 1000, key, 1, false));
        assert_eq!(read, keys);
    }

    #[test]
    fn sectors_become_blocks() {
        let bytes = encode_oracle_general(&[(0, 7), (0, 8)], 1024);
        assert_eq!(
            read(TraceForm::OracleSectors, &bytes).unwrap(),
            [(0, 0, 2, false), (0, 1, 1, false)]
        );
        let far = encode_oracle_general(&[(0, 1), (0, 1 << 56)], 512);
        assert_eq!(
            read(TraceForm::OracleSectors, &far).unwrap_err(),
            "record 2: its sector 72057594037927936 is beyond any disk"
        );
    }

    #[test]
    fn an_error_names_its_record() {
        use TraceForm::{Blkparse, Iolog, Msr, OracleGeneral};
        let cut = encode_oracle_general(&[(0, 7), (0, 8)], 512);
        assert_eq!(
            read(OracleGeneral, &cut[..30]).unwrap_err(),
            "record 2: it is cut after 6 of 24 bytes"
        );
        let line = "1,hm,0,Read,0,512,1\n";
        let cases = [
            (
                Msr,
                format!("{line}1,hm,0,Read,1152921504606846976,512,1"),
                "record 2: its offset 1152921504606846976 is beyond any disk",
            ),
            (
                Msr,
                format!("{line}1,hm,0,Read,18446744073709551615,512,1"),
                "record 2: its offset 18446744073709551615 is beyond any disk",
            ),
            (
                Msr,
                format!("{line}1,hm,0,Read,0,4294967297,1"),
                "record 2: a request of 4294967297 bytes",
            ),
            (
                Msr,
                format!("{line}0,hm,0,Read,0,512,1"),
                "record 2: its time is 0.0000001 s before the one above",
            ),
            (
                Msr,
                format!("{line}2,hm,0,Verify,0,512,1"),
                "record 2: its type is neither Read nor Write: \"Verify\"",
            ),
            (Msr, format!("{line}2,hm,0,Read,0"), "record 2: its size is missing"),
            (Msr, "x".repeat(9000), "record 1: a line of more than 8192 bytes"),
            (
                Blkparse,
                "8,0 3 3 0.5 697 Q W 223488 + many [x]".to_owned(),
                "record 1: its number of sectors is no number: \"many\"",
            ),
            (
                Blkparse,
                "8,0 3 3 soon 697 Q W 8 + 8 [x]".to_owned(),
                "record 1: its time is no number of seconds: \"soon\"",
            ),
            (
                Iolog,
                "fio version 3 iolog\n5 f read 0\n".to_owned(),
                "record 2: its length is missing",
            ),
            (
                Iolog,
                "fio version 3 iolog\n5 f leap 0 1\n".to_owned(),
                "record 2: its action is unknown: \"leap\"",
            ),
        ];
        for (form, text, expected) in cases {
            assert_eq!(error(form, &text), expected);
        }
        assert_eq!(read(Msr, b"\xff\xff\n").unwrap_err(), "record 1: it is not text");
    }

    #[test]
    fn files_have_numbers_of_their_own() {
        let lines: String =
            (0..=FILES_MAX).map(|disk| format!("1,hm,{disk},Read,0,1,1\n")).collect();
        let text = error(TraceForm::Msr, &lines);
        assert_eq!(text, format!("record {}: more than {FILES_MAX} files or disks", FILES_MAX + 1));
        let last = format!("1,hm,0,Read,{},1,1", OFFSET_END - 1);
        let read = read(TraceForm::Msr, last.as_bytes()).unwrap();
        assert_eq!(read[0].1, OFFSET_END / 4096 - 1);
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same(
            sizes in prop::collection::vec(1_usize..70, 1..20),
            offsets in prop::collection::vec(0_u64..MIB, 1..20),
        ) {
            let lines: String = offsets.iter().map(|at| format!("1,hm,0,Read,{at},4096,1\n")).collect();
            let keys: Vec<(u32, u64)> = offsets.iter().map(|&at| (0, at)).collect();
            let cases = [
                (TraceForm::Msr, lines.into_bytes()),
                (TraceForm::OracleGeneral, encode_oracle_general(&keys, 512)),
            ];
            for (form, bytes) in cases {
                let whole = read(form, &bytes).unwrap();
                let mut reader = TraceReader::new(form, 4096);
                let (mut requests, mut rest) = (Vec::new(), &bytes[..]);
                for size in sizes.iter().cycle() {
                    let (piece, after) = rest.split_at((*size).min(rest.len()));
                    reader.read(piece, &mut requests).unwrap();
                    rest = after;
                    if rest.is_empty() {
                        break;
                    }
                }
                prop_assert_eq!(reader.finish(&mut requests).unwrap(), offsets.len() as u64);
                let firsts: Vec<u64> = requests.iter().map(|at| at.first_key).collect();
                prop_assert_eq!(firsts, whole.iter().map(|at| at.1).collect::<Vec<_>>());
            }
        }

        /// As the fuzz target does, from a seed of each form: some bytes are changed or moved.
        #[test]
        fn changed_traces_are_the_same_in_one_piece_and_in_many(
            changes in prop::collection::vec(
                (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 0..5
            ),
            piece in 1_usize..70,
        ) {
            let oracle = encode_oracle_general(&[(1, 7), (1, 9), (3, 7), (4, 8)], 4096);
            let msr = "1,hm,0,Read,0,32768,1\n2,hm,1,Write,4095,2,10\r\n\n9,hm,0,Read,0,1,10";
            let blkparse = "  8,0 3 1 0.000001829 697 P R [k]\n8,0 3 3 0.1 697 Q W 223488 + 16 [k]\n\
                            259,10 0 4 1.5 0 Q RA 8 + 8 [a name]\nCPU0 (8,0):\n";
            let iolog = "fio version 3 iolog\n24 f add\n366 f read 0 4096\n9219 f write 28672 4096\n";
            let seeds = [
                (TraceForm::OracleGeneral, &oracle[..]),
                (TraceForm::OracleSectors, &oracle[..]),
                (TraceForm::Msr, msr.as_bytes()),
                (TraceForm::Blkparse, blkparse.as_bytes()),
                (TraceForm::BlkparseCompleted, blkparse.as_bytes()),
                (TraceForm::Iolog, iolog.as_bytes()),
            ];
            for (form, seed) in seeds {
                let mut bytes = seed.to_vec();
                for (at, from, byte) in &changes {
                    let copied = bytes[from.index(seed.len())];
                    bytes[at.index(seed.len())] = if byte % 2 == 0 { *byte } else { copied };
                }
                let whole = in_pieces(form, &bytes, usize::MAX);
                prop_assert_eq!(in_pieces(form, &bytes, piece), whole);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            for form in [TraceForm::OracleGeneral, TraceForm::OracleSectors, TraceForm::Msr,
                         TraceForm::Blkparse, TraceForm::BlkparseCompleted, TraceForm::Iolog] {
                let _ = read(form, &bytes);
                let _ = read(form, &[b"fio version 3 iolog\n", &bytes[..]].concat());
            }
        }
    }
}
