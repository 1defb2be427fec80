//! The frame of the file: its first 16 bytes, and the 32 bytes before each payload.
//!
//! Every byte of a chunk but its checksum is under the checksum, so a flipped bit anywhere
//! is seen before anything in the chunk is believed. All numbers are little-endian.

use std::io::{Read, Seek, SeekFrom};

/// The first eight bytes. The first one is not ASCII, and a line end of either kind follows
/// the name, so that a transfer as text is seen at once (the idea is PNG's).
pub const MAGIC: [u8; 8] = *b"\x89TREC\r\n\x1a";

/// A reader refuses files with a larger major version.
pub const VERSION_MAJOR: u16 = 1;

/// Grows when something was added that an older reader may skip.
pub const VERSION_MINOR: u16 = 1;

/// The most bytes of one payload before compression. A chunk of 100 rows of 1,300 values
/// has about 50 KB, the largest one that the writer makes 12 MB; more is no recording but
/// an attempt to fill the reader's memory.
pub const MAX_RAW_BYTES: usize = 16 << 20;

/// Bytes of the file's header.
pub(super) const FILE_HEADER_BYTES: usize = 16;

/// Bytes before each payload.
pub(super) const HEADER_BYTES: usize = 32;

/// What the checksum of a chunk's header covers: all before itself.
const COVERED_BYTES: usize = 28;

/// The bit of the flags that says: the payload is one zstd frame.
const FLAG_ZSTD: u8 = 1;

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The facts, JSON; a later one replaces an earlier one.
    Facts,
    /// Series, one JSON object a line, in the order of their ids.
    Schema,
    /// Rows of values by columns.
    Samples,
    /// Spans, one JSON object a line.
    Spans,
    /// Tasks, one JSON object a line.
    Tasks,
    /// The outcome, JSON; the last chunk of a recording that was not cut.
    Outcome,
    /// The last row before it: reading may begin here.
    Row,
    /// One that a later version knows; it is skipped.
    Unknown(u8),
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Facts => 1,
            Kind::Schema => 2,
            Kind::Samples => 3,
            Kind::Spans => 4,
            Kind::Tasks => 5,
            Kind::Outcome => 6,
            Kind::Row => 7,
            Kind::Unknown(code) => code,
        }
    }

    fn of(code: u8) -> Self {
        match code {
            1 => Kind::Facts,
            2 => Kind::Schema,
            3 => Kind::Samples,
            4 => Kind::Spans,
            5 => Kind::Tasks,
            6 => Kind::Outcome,
            7 => Kind::Row,
            other => Kind::Unknown(other),
        }
    }
}

/// The first bytes of every file: magic, version, and a checksum of both.
pub(super) fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut bytes = [0; FILE_HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION_MAJOR.to_le_bytes());
    bytes[10..12].copy_from_slice(&VERSION_MINOR.to_le_bytes());
    let sum = crc32c::crc32c(&bytes[..12]);
    bytes[12..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Checks the first bytes of a file.
///
/// # Errors
/// Why it cannot be read, in words.
pub(super) fn check_file_header(bytes: &[u8; FILE_HEADER_BYTES]) -> Result<(), String> {
    if bytes[..8] != MAGIC {
        return Err("it is not a recording of Terrace".to_owned());
    }
    if crc32c::crc32c(&bytes[..12]) != number_u32(&bytes[12..]) {
        return Err("its first 16 bytes are damaged".to_owned());
    }
    let major = u16::from_le_bytes([bytes[8], bytes[9]]);
    if major > VERSION_MAJOR {
        return Err(format!(
            "it was written by a newer Terrace (format {major}, this program reads up to \
             {VERSION_MAJOR}); read it with that version"
        ));
    }
    if major == 0 {
        return Err("its version is 0, which never was".to_owned());
    }
    Ok(())
}

/// Makes every checksum in `file` right, as far as its chunks can be walked: for fuzzing,
/// which would never guess one and so never get past them.
pub fn reseal(file: &mut [u8]) {
    let Some((start, mut rest)) = file.split_at_mut_checked(FILE_HEADER_BYTES) else {
        return;
    };
    let sum = crc32c::crc32c(&start[..12]);
    start[12..].copy_from_slice(&sum.to_le_bytes());
    while let Some((header, after)) = rest.split_at_mut_checked(HEADER_BYTES) {
        let length = number_u32(&header[4..8]) as usize;
        let Some((payload, next)) = after.split_at_mut_checked(length) else {
            return;
        };
        let sum = checksum(&header[..COVERED_BYTES], payload);
        header[COVERED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        rest = next;
    }
}

/// What stands before a payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) is_zstd: bool,
    pub(super) payload_bytes: usize,
    pub(super) raw_bytes: usize,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

impl Header {
    /// Writes header and checksum into the first [`HEADER_BYTES`] of `chunk`, whose payload
    /// follows them already.
    pub(super) fn seal(&self, chunk: &mut [u8]) {
        let (header, payload) = chunk.split_at_mut(HEADER_BYTES);
        header.fill(0);
        header[0] = self.kind.code();
        header[1] = if self.is_zstd { FLAG_ZSTD } else { 0 };
        header[4..8].copy_from_slice(&(self.payload_bytes as u32).to_le_bytes());
        header[8..12].copy_from_slice(&(self.raw_bytes as u32).to_le_bytes());
        header[12..20].copy_from_slice(&self.first_ns.to_le_bytes());
        header[20..28].copy_from_slice(&self.last_ns.to_le_bytes());
        let sum = checksum(&header[..COVERED_BYTES], payload);
        header[COVERED_BYTES..].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads a header; nothing in it is believed yet but the lengths, within their limits.
    ///
    /// # Errors
    /// What is impossible in it, in words.
    fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, String> {
        let header = Self {
            kind: Kind::of(bytes[0]),
            is_zstd: bytes[1] & FLAG_ZSTD != 0,
            payload_bytes: number_u32(&bytes[4..8]) as usize,
            raw_bytes: number_u32(&bytes[8..12]) as usize,
            first_ns: number_u64(&bytes[12..20]),
            last_ns: number_u64(&bytes[20..28]),
        };
        // The writer stores a payload as it is where zstd does not make it smaller.
        if header.raw_bytes > MAX_RAW_BYTES || header.payload_bytes > header.raw_bytes {
            return Err("its length is impossible".to_owned());
        }
        Ok(header)
    }
}

/// Reads chunks one after the other.
#[derive(Debug)]
pub(super) struct Chunks<R> {
    source: R,
    /// Where the next chunk starts.
    pub(super) offset: u64,
    payload: Vec<u8>,
    raw: Vec<u8>,
    unpack: Unpack,
}

/// The context of decompression, made once.
struct Unpack(zstd::bulk::Decompressor<'static>);

impl std::fmt::Debug for Unpack {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Unpack")
    }
}

impl<R: Read> Chunks<R> {
    /// `source` stands behind the file's header.
    pub(super) fn new(source: R) -> std::io::Result<Self> {
        Ok(Self {
            source,
            offset: FILE_HEADER_BYTES as u64,
            payload: Vec::new(),
            raw: Vec::new(),
            unpack: Unpack(zstd::bulk::Decompressor::new()?),
        })
    }

    /// The next chunk, its checksum right; `None` at the end of the file.
    ///
    /// # Errors
    /// What is wrong with it, in words. Nothing that follows can be trusted then.
    pub(super) fn next(&mut self) -> Result<Option<(Header, &[u8])>, String> {
        let Some((bytes, header)) = self.header()? else {
            return Ok(None);
        };
        let raw = self.payload(&bytes, &header)?;
        Ok(Some((header, raw)))
    }

    fn header(&mut self) -> Result<Option<([u8; HEADER_BYTES], Header)>, String> {
        let mut bytes = [0; HEADER_BYTES];
        match fill(&mut self.source, &mut bytes)? {
            0 => Ok(None),
            HEADER_BYTES => Ok(Some((bytes, Header::parse(&bytes)?))),
            _ => Err("the file ends in it".to_owned()),
        }
    }

    /// What follows this header, its checksum right.
    fn payload(&mut self, bytes: &[u8; HEADER_BYTES], header: &Header) -> Result<&[u8], String> {
        self.payload.clear();
        // Grows with what is really there, so a length alone takes no memory.
        let mut limited = (&mut self.source).take(header.payload_bytes as u64);
        let read = limited.read_to_end(&mut self.payload);
        read.map_err(|error| format!("it cannot be read ({error})"))?;
        if self.payload.len() < header.payload_bytes {
            return Err("the file ends in it".to_owned());
        }
        if checksum(&bytes[..COVERED_BYTES], &self.payload) != number_u32(&bytes[COVERED_BYTES..]) {
            return Err("its checksum is wrong".to_owned());
        }
        self.offset += (HEADER_BYTES + header.payload_bytes) as u64;
        self.unpacked(header)
    }

    /// The payload before compression; never more than the header declares.
    fn unpacked(&mut self, header: &Header) -> Result<&[u8], String> {
        let length = if header.is_zstd {
            self.raw.clear();
            self.raw.reserve(header.raw_bytes);
            let unpacked = self
                .unpack
                .0
                .decompress_to_buffer(&self.payload, &mut self.raw);
            unpacked.map_err(|_| "it cannot be decompressed".to_owned())?
        } else {
            std::mem::swap(&mut self.raw, &mut self.payload);
            self.raw.len()
        };
        if length != header.raw_bytes {
            return Err("its length is wrong".to_owned());
        }
        Ok(&self.raw)
    }
}

impl<R: Read + Seek> Chunks<R> {
    /// As [`Chunks::next`], of a file that grows and has `length` bytes now; `None` while the chunk
    /// is not whole.
    ///
    /// # Errors
    /// As [`Chunks::next`], and when the file is shorter than what was read of it.
    pub(super) fn next_whole(&mut self, length: u64) -> Result<Option<(Header, &[u8])>, String> {
        let Some(left) = length.checked_sub(self.offset) else {
            return Err("the file was cut before it".to_owned());
        };
        // What was read ahead may have been written anew since: it is asked for again.
        self.go_to(self.offset)?;
        if left < HEADER_BYTES as u64 {
            return Ok(None);
        }
        let Some((bytes, header)) = self.header()? else {
            return Ok(None);
        };
        if left < (HEADER_BYTES + header.payload_bytes) as u64 {
            return Ok(None);
        }
        let raw = self.payload(&bytes, &header)?;
        Ok(Some((header, raw)))
    }

    /// As [`Chunks::next`], without what the chunk holds where `is_wanted` says so: nothing
    /// of its header is checked then.
    ///
    /// # Errors
    /// As [`Chunks::next`], and when the source cannot be moved.
    pub(super) fn next_wanted(
        &mut self,
        is_wanted: impl Fn(Kind) -> bool,
    ) -> Result<Option<(Header, &[u8])>, String> {
        let Some((bytes, header)) = self.header()? else {
            return Ok(None);
        };
        if is_wanted(header.kind) {
            let raw = self.payload(&bytes, &header)?;
            return Ok(Some((header, raw)));
        }
        self.go_to(self.offset + (HEADER_BYTES + header.payload_bytes) as u64)?;
        Ok(Some((header, &[])))
    }

    /// Goes on with the chunk at `offset`.
    ///
    /// # Errors
    /// When the source cannot be moved.
    pub(super) fn go_to(&mut self, offset: u64) -> Result<(), String> {
        let moved = self.source.seek(SeekFrom::Start(offset));
        moved.map_err(|error| format!("it cannot be read ({error})"))?;
        self.offset = offset;
        Ok(())
    }
}

/// Reads until `buffer` is full or the source ends; how many bytes there were.
pub(super) fn fill(source: &mut impl Read, buffer: &mut [u8]) -> Result<usize, String> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("it cannot be read ({error})")),
        }
    }
    Ok(filled)
}

fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(header), payload)
}

fn number_u32(bytes: &[u8]) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[..4]);
    u32::from_le_bytes(number)
}

fn number_u64(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(number)
}
