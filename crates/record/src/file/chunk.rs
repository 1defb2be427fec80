//! The chunks of a recording: frames of [`model::frame`] whose payload may be compressed, with
//! the time range of what is in them.
//!
//! Every byte of a chunk but its checksum is under the checksum, so a flipped bit anywhere is seen
//! before anything in the chunk is believed. `docs/recording.md` draws it byte by byte.

pub(super) use model::frame::FILE_HEADER_BYTES;
use model::frame::{Damage, FileHeader, Head, Layout, reseal_file_header};
use std::io::{Read, Seek, SeekFrom};

/// The first eight bytes. The first one is not ASCII, and a line end of either kind follows
/// the name, so that a transfer as text is seen at once (the idea is PNG's).
pub const MAGIC: [u8; 8] = *b"\x89TREC\r\n\x1a";

/// A reader refuses files with a larger major version.
pub const VERSION_MAJOR: u16 = 1;

/// Grows when something was added that an older reader may skip.
pub const VERSION_MINOR: u16 = 3;

/// The most bytes of one payload before compression. A chunk of 100 rows of 1,300 values
/// has about 50 KB, the largest one that the writer makes 12 MB; more is no recording but
/// an attempt to fill the reader's memory.
pub const MAX_RAW_BYTES: usize = 16 << 20;

/// The first bytes of every file.
pub(super) const FILE_HEADER: FileHeader =
    FileHeader { magic: MAGIC, major: VERSION_MAJOR, minor: VERSION_MINOR };

/// The fields of a chunk: the length before compression, and the time range.
const FIELD_BYTES: usize = 20;
const LAYOUT: Layout = Layout::new(FIELD_BYTES, MAX_RAW_BYTES);

/// Bytes before each payload.
pub(super) const HEADER_BYTES: usize = LAYOUT.header_bytes();

/// The bit of the flags that says: the payload is one zstd frame.
const FLAG_ZSTD: u8 = 1;

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkKind {
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
    /// Processes and files, before the first rows that name them.
    Identities,
    /// What processes used, and did with files.
    Growths,
    /// Single requests to block devices and events of pages; read apart from all else.
    Accesses,
    /// One that a later version knows; it is skipped.
    Unknown(u8),
}

impl ChunkKind {
    fn code(self) -> u8 {
        match self {
            ChunkKind::Facts => 1,
            ChunkKind::Schema => 2,
            ChunkKind::Samples => 3,
            ChunkKind::Spans => 4,
            ChunkKind::Tasks => 5,
            ChunkKind::Outcome => 6,
            ChunkKind::Row => 7,
            ChunkKind::Identities => 8,
            ChunkKind::Growths => 9,
            ChunkKind::Accesses => 10,
            ChunkKind::Unknown(code) => code,
        }
    }

    /// Whether it is JSON.
    pub(super) fn is_text(self) -> bool {
        use ChunkKind::{Facts, Outcome, Schema, Spans, Tasks};
        matches!(self, Facts | Schema | Spans | Tasks | Outcome)
    }

    fn of(code: u8) -> Self {
        match code {
            1 => ChunkKind::Facts,
            2 => ChunkKind::Schema,
            3 => ChunkKind::Samples,
            4 => ChunkKind::Spans,
            5 => ChunkKind::Tasks,
            6 => ChunkKind::Outcome,
            7 => ChunkKind::Row,
            8 => ChunkKind::Identities,
            9 => ChunkKind::Growths,
            10 => ChunkKind::Accesses,
            other => ChunkKind::Unknown(other),
        }
    }
}

/// Makes every checksum in `file` right, as far as its chunks can be walked: for fuzzing,
/// which would never guess one and so never get past them.
pub fn reseal(file: &mut [u8]) {
    if let Some(chunks) = reseal_file_header(file) {
        LAYOUT.reseal(chunks);
    }
}

/// What stands before a payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) kind: ChunkKind,
    pub(super) is_zstd: bool,
    pub(super) payload_bytes: usize,
    pub(super) raw_bytes: usize,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

impl Header {
    /// Writes header and checksum into the first [`HEADER_BYTES`] of `chunk`, whose payload follows
    /// them already.
    ///
    /// # Errors
    /// [`Damage::Length`] for a payload above [`MAX_RAW_BYTES`].
    pub(super) fn seal(&self, chunk: &mut [u8]) -> Result<(), Damage> {
        let head = Head {
            kind: self.kind.code(),
            flags: if self.is_zstd { FLAG_ZSTD } else { 0 },
            ..Head::default()
        };
        let fill = |fields: &mut [u8]| {
            fields[..4].copy_from_slice(&(self.raw_bytes as u32).to_le_bytes());
            fields[4..12].copy_from_slice(&self.first_ns.to_le_bytes());
            fields[12..20].copy_from_slice(&self.last_ns.to_le_bytes());
        };
        LAYOUT.seal(head, fill, chunk)
    }

    /// Reads a header; nothing in it is believed yet but the lengths, within their limits.
    ///
    /// # Errors
    /// What is impossible in it, in words.
    fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, String> {
        let head = LAYOUT.head(bytes)?;
        let header = Self {
            kind: ChunkKind::of(head.kind),
            is_zstd: head.flags & FLAG_ZSTD != 0,
            payload_bytes: head.payload_bytes,
            raw_bytes: number_u32(&bytes[8..12]) as usize,
            first_ns: number_u64(&bytes[12..20]),
            last_ns: number_u64(&bytes[20..28]),
        };
        // The writer stores a payload as it is where zstd does not make it smaller.
        if header.raw_bytes > MAX_RAW_BYTES || header.payload_bytes > header.raw_bytes {
            return Err(Damage::Length.into());
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
        let raw = self.payload_unless_accesses(&bytes, &header)?;
        Ok(Some((header, raw)))
    }

    fn header(&mut self) -> Result<Option<([u8; HEADER_BYTES], Header)>, String> {
        let mut bytes = [0; HEADER_BYTES];
        match fill(&mut self.source, &mut bytes)? {
            0 => Ok(None),
            HEADER_BYTES => Ok(Some((bytes, Header::parse(&bytes)?))),
            _ => Err(Damage::Cut.into()),
        }
    }

    /// What follows this header, its checksum right. Accesses are read apart from all else, so
    /// they are not unpacked.
    fn payload_unless_accesses(
        &mut self,
        bytes: &[u8; HEADER_BYTES],
        header: &Header,
    ) -> Result<&[u8], String> {
        self.read_payload(bytes, header)?;
        if header.kind == ChunkKind::Accesses { Ok(&[]) } else { self.unpacked(header) }
    }

    /// What follows this header, its checksum right.
    fn payload(&mut self, bytes: &[u8; HEADER_BYTES], header: &Header) -> Result<&[u8], String> {
        self.read_payload(bytes, header)?;
        self.unpacked(header)
    }

    fn read_payload(&mut self, bytes: &[u8; HEADER_BYTES], header: &Header) -> Result<(), String> {
        self.payload.clear();
        // Grows with what is really there, so a length alone takes no memory.
        let mut limited = (&mut self.source).take(header.payload_bytes as u64);
        let read = limited.read_to_end(&mut self.payload);
        read.map_err(|error| format!("it cannot be read ({error})"))?;
        LAYOUT.check(bytes, &self.payload)?;
        self.offset += (HEADER_BYTES + header.payload_bytes) as u64;
        Ok(())
    }

    /// The payload before compression; never more than the header declares.
    fn unpacked(&mut self, header: &Header) -> Result<&[u8], String> {
        let length = if header.is_zstd {
            self.raw.clear();
            self.raw.reserve(header.raw_bytes);
            let unpacked = self.unpack.0.decompress_to_buffer(&self.payload, &mut self.raw);
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
        let raw = self.payload_unless_accesses(&bytes, &header)?;
        Ok(Some((header, raw)))
    }

    /// As [`Chunks::next`], without what the chunk holds where `is_wanted` says so: nothing
    /// of its header is checked then.
    ///
    /// # Errors
    /// As [`Chunks::next`], and when the source cannot be moved.
    pub(super) fn next_wanted(
        &mut self,
        is_wanted: impl Fn(ChunkKind) -> bool,
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
