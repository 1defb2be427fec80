//! Frames: a file as pieces that are each checked before anything in them is believed.
//!
//! A file is a [`FileHeader`] and then frames. A frame is a header and its payload; all numbers
//! are little-endian, and the checksum covers the header before it and the payload:
//!
//! ```text
//! kind u8 | flags u8 | version u16 | payload bytes u32 | fields | CRC-32C u32 | payload
//! 0         1          2             4                   8        n - 4         n
//! ```
//!
//! A file that is cut at any byte gives every whole frame before the cut. This reads and writes
//! bytes in memory; what kinds, flags and fields mean is each store's own.

use std::fmt;

#[cfg(test)]
mod tests;

/// Bytes of a [`FileHeader`].
pub const FILE_HEADER_BYTES: usize = 16;
/// What the checksum of a file's header covers.
const FILE_COVERED_BYTES: usize = 12;
/// Bytes before the fields of a frame's header.
const HEAD_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 4;

/// The first bytes of a file: magic, version, and a checksum of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The magic bytes that identify the format.
    pub magic: [u8; 8],
    /// Grows when an older reader would misread the file. The first is 1.
    pub major: u16,
    /// Grows when something was added that an older reader may skip.
    pub minor: u16,
}

impl FileHeader {
    /// The header as it is written.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.magic);
        bytes[8..10].copy_from_slice(&self.major.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.minor.to_le_bytes());
        append_checksum_at(&mut bytes, FILE_COVERED_BYTES);
        bytes
    }

    /// Checks the first bytes of a file that should be a `noun` no newer than this header.
    ///
    /// # Errors
    /// Why the file cannot be read, as a sentence.
    pub fn check(&self, bytes: &[u8; FILE_HEADER_BYTES], noun: &str) -> Result<(), String> {
        if bytes[..8] != self.magic {
            return Err(format!("it is not a {noun} of Terrace"));
        }
        if crc32c::crc32c(&bytes[..FILE_COVERED_BYTES]) != number(&bytes[FILE_COVERED_BYTES..]) {
            return Err(format!("its first {FILE_HEADER_BYTES} bytes are damaged"));
        }
        match u16::from_le_bytes([bytes[8], bytes[9]]) {
            0 => Err("its version is 0, which never was".to_owned()),
            major if major > self.major => Err(format!(
                "it was written by a newer Terrace (format {major}, this program reads up to \
                 {}); read it with that version",
                self.major
            )),
            _ => Ok(()),
        }
    }
}

/// Makes the checksum of a file's header right, for tests and fuzzing; returns the frames.
pub fn reseal_file_header(file: &mut [u8]) -> Option<&mut [u8]> {
    let (header, frames) = file.split_at_mut_checked(FILE_HEADER_BYTES)?;
    append_checksum_at(header, FILE_COVERED_BYTES);
    Some(frames)
}

/// The frames of one store: how many bytes of fields each has, and how long a payload may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    field_bytes: usize,
    payload_bytes_max: usize,
}

/// What the header of every frame says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// What the payload holds.
    pub kind: u8,
    /// How it is held, for instance compressed.
    pub flags: u8,
    /// The version of the payload's form.
    pub version: u16,
    /// Bytes of the payload.
    pub payload_bytes: usize,
}

/// A frame whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'b> {
    /// What its header says.
    pub head: Head,
    /// The fields of the store.
    pub fields: &'b [u8],
    /// The payload.
    pub payload: &'b [u8],
}

/// Why a frame cannot be read. Nothing after it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The bytes end in it: the file was cut, or is still being written.
    Cut,
    /// It says that its payload is longer than the store permits.
    Length,
    /// Its checksum is wrong.
    Checksum,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Cut => "the file ends in it",
            Self::Length => "its length is impossible",
            Self::Checksum => "its checksum is wrong",
        })
    }
}

impl std::error::Error for Damage {}

impl From<Damage> for String {
    fn from(damage: Damage) -> Self {
        damage.to_string()
    }
}

impl Layout {
    /// Frames with `field_bytes` bytes of fields and payloads of at most `payload_bytes_max`.
    #[must_use]
    pub const fn new(field_bytes: usize, payload_bytes_max: usize) -> Self {
        assert!(payload_bytes_max <= u32::MAX as usize, "the length is a u32");
        Self { field_bytes, payload_bytes_max }
    }

    /// Bytes before each payload.
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        HEAD_BYTES + self.field_bytes + CHECKSUM_BYTES
    }

    /// Writes the header into the first [`Layout::header_bytes`] of `frame`, whose payload follows
    /// them already. `fill` writes the fields. The length is that of the payload, whatever `head`
    /// says.
    ///
    /// # Errors
    /// [`Damage::Length`] for a payload that no reader would take, [`Damage::Cut`] without room.
    pub fn seal(
        &self,
        head: Head,
        fill: impl FnOnce(&mut [u8]),
        frame: &mut [u8],
    ) -> Result<(), Damage> {
        let parts = frame.split_at_mut_checked(self.header_bytes());
        let (header, payload) = parts.ok_or(Damage::Cut)?;
        if payload.len() > self.payload_bytes_max {
            return Err(Damage::Length);
        }
        header.fill(0);
        header[0] = head.kind;
        header[1] = head.flags;
        header[2..4].copy_from_slice(&head.version.to_le_bytes());
        header[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        fill(&mut header[HEAD_BYTES..HEAD_BYTES + self.field_bytes]);
        self.write_checksum(header, payload);
        Ok(())
    }

    /// The head of a header of [`Layout::header_bytes`]. Nothing in it is checked but its length.
    ///
    /// # Errors
    /// [`Damage::Length`], [`Damage::Cut`] for too few bytes.
    pub fn head(&self, header: &[u8]) -> Result<Head, Damage> {
        if header.len() < self.header_bytes() {
            return Err(Damage::Cut);
        }
        let head = Head {
            kind: header[0],
            flags: header[1],
            version: u16::from_le_bytes([header[2], header[3]]),
            payload_bytes: number(&header[4..8]) as usize,
        };
        if head.payload_bytes > self.payload_bytes_max {
            return Err(Damage::Length);
        }
        Ok(head)
    }

    /// Checks that `header` and `payload` are as they were sealed.
    ///
    /// # Errors
    /// [`Damage::Checksum`], [`Damage::Cut`] for too few bytes.
    pub fn check(&self, header: &[u8], payload: &[u8]) -> Result<(), Damage> {
        if payload.len() < self.head(header)?.payload_bytes {
            return Err(Damage::Cut);
        }
        let (covered, sum) = header.split_at(self.header_bytes() - CHECKSUM_BYTES);
        if checksum(covered, payload) != number(sum) {
            return Err(Damage::Checksum);
        }
        Ok(())
    }

    /// The frame that `bytes` begin with, and what follows it; `None` for no bytes.
    ///
    /// # Errors
    /// The damage of the frame.
    pub fn split<'b>(&self, bytes: &'b [u8]) -> Result<Option<(Frame<'b>, &'b [u8])>, Damage> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let parts = bytes.split_at_checked(self.header_bytes());
        let (header, rest) = parts.ok_or(Damage::Cut)?;
        let head = self.head(header)?;
        let parts = rest.split_at_checked(head.payload_bytes);
        let (payload, rest) = parts.ok_or(Damage::Cut)?;
        self.check(header, payload)?;
        let fields = &header[HEAD_BYTES..HEAD_BYTES + self.field_bytes];
        let frame = Frame { head, fields, payload };
        Ok(Some((frame, rest)))
    }

    /// Makes every checksum in `frames` right, as far as they can be walked: for tests and for
    /// fuzzing, which would never guess one.
    pub fn reseal(&self, mut frames: &mut [u8]) {
        while let Some((header, rest)) = frames.split_at_mut_checked(self.header_bytes()) {
            let payload_bytes = number(&header[4..8]) as usize;
            let Some((payload, next)) = rest.split_at_mut_checked(payload_bytes) else {
                return;
            };
            self.write_checksum(header, payload);
            frames = next;
        }
    }

    fn write_checksum(&self, header: &mut [u8], payload: &[u8]) {
        let (covered, sum) = header.split_at_mut(self.header_bytes() - CHECKSUM_BYTES);
        sum.copy_from_slice(&checksum(covered, payload).to_le_bytes());
    }
}

/// Appends the CRC-32C of all before it, for a file that is one piece.
pub fn append_checksum(file: &mut Vec<u8>) {
    let covered_bytes = file.len();
    file.extend_from_slice(&[0; CHECKSUM_BYTES]);
    append_checksum_at(file, covered_bytes);
}

/// What [`append_checksum`] was called on; `None` if the checksum is wrong.
#[must_use]
pub fn strip_checksum(file: &[u8]) -> Option<&[u8]> {
    let covered_bytes = file.len().checked_sub(CHECKSUM_BYTES)?;
    let (covered, sum) = file.split_at(covered_bytes);
    (crc32c::crc32c(covered) == number(sum)).then_some(covered)
}

/// Makes the checksum at the end of `file` right, for tests and fuzzing.
pub fn reseal_end(file: &mut [u8]) {
    if let Some(covered_bytes) = file.len().checked_sub(CHECKSUM_BYTES) {
        append_checksum_at(file, covered_bytes);
    }
}

/// Writes the checksum of the first bytes behind them.
fn append_checksum_at(bytes: &mut [u8], covered_bytes: usize) {
    let (covered, sum) = bytes.split_at_mut(covered_bytes);
    sum.copy_from_slice(&crc32c::crc32c(covered).to_le_bytes());
}

fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(header), payload)
}

fn number(bytes: &[u8]) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[..4]);
    u32::from_le_bytes(number)
}
