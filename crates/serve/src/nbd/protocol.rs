//! The server's half of the NBD protocol: fixed newstyle handshake, then requests with simple or
//! structured replies; the numbers are those of `doc/proto.md` of the NBD project.
//!
//! Pure over any stream: no file, no clock. What an export offers is its own choice
//! ([`ExportFeatures`]); what was not offered is not understood. A client that breaks the protocol,
//! or asks for more than the limits, gets an error and loses its connection.

use std::io::{self, ErrorKind, IoSlice, Read, Write};

/// The most bytes of one request: QEMU's own limit, and more than the kernel asks for.
pub const LEN_MAX: u32 = 32 << 20;

/// An option holds a name of at most 4096 bytes and a few numbers.
const OPTION_LEN_MAX: u32 = 8 << 10;

/// A client that knows what it wants needs two or three.
const OPTIONS_MAX: usize = 32;

const MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Fixed newstyle, and no 124 zero bytes after the old way of choosing an export.
const HANDSHAKE_FLAGS: u16 = 0b11;
/// "Has flags", "flush is understood", and "so is a write that is durable at once" (FUA).
const BASE_FLAGS: u16 = 0b1101;
const TRIM_FLAG: u16 = 1 << 5;
const ZEROES_FLAG: u16 = 1 << 6;
/// The client may ask for a structured reply in one piece (`DF`).
const WHOLE_FLAG: u16 = 1 << 7;

/// Of a request: it is durable when it is answered (`FUA`).
const DURABLE: u16 = 1;
/// Of a block status: the first extent is enough (`REQ_ONE`).
const ONE_EXTENT: u16 = 1 << 3;

const OPTION_EXPORT_NAME: u32 = 1;
const OPTION_ABORT: u32 = 2;
const OPTION_LIST: u32 = 3;
const OPTION_INFO: u32 = 6;
const OPTION_GO: u32 = 7;
const OPTION_STRUCTURED: u32 = 8;
const OPTION_LIST_CONTEXTS: u32 = 9;
const OPTION_SET_CONTEXTS: u32 = 10;

const REPLY_ACK: u32 = 1;
const REPLY_SERVER: u32 = 2;
const REPLY_INFO: u32 = 3;
const REPLY_CONTEXT: u32 = 4;
const REPLY_UNSUPPORTED: u32 = (1 << 31) + 1;
const REPLY_INVALID: u32 = (1 << 31) + 3;
const REPLY_UNKNOWN: u32 = (1 << 31) + 6;

const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_BYTES: u16 = 3;

/// The only metadata context, and its number here.
const ALLOCATION: &[u8] = b"base:allocation";
const ALLOCATION_ID: u32 = 1;

const CHUNK_DONE: u16 = 1;
const CHUNK_NONE: u16 = 0;
const CHUNK_DATA: u16 = 1;
const CHUNK_STATUS: u16 = 5;
const CHUNK_ERROR: u16 = (1 << 15) + 1;
/// An extent is a hole, and reads as zeros.
const HOLE: u32 = 0b11;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NbdCommand {
    /// Bytes.
    Read,
    /// Store bytes.
    Write,
    /// Make durable what was written.
    Flush,
    /// Give up a range; what is read of it is not defined.
    Trim,
    /// Store zeros.
    WriteZeroes,
    /// Say which parts are holes.
    BlockStatus,
    /// The client leaves; there is no answer.
    Disconnect,
    /// Something that does not exist; answered with an error.
    Unknown,
}

/// One request, without the bytes that a write brings.
#[derive(Debug, PartialEq, Eq)]
pub struct NbdRequest {
    /// What is asked.
    pub command: NbdCommand,
    /// It is to be durable when it is answered.
    pub is_durable: bool,
    /// Of a block status: one extent is enough.
    pub wants_one: bool,
    /// The client's own mark, returned with the reply.
    pub cookie: u64,
    /// The first byte.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
}

/// What an export offers beyond reads, writes and flushes. Nothing, by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportFeatures {
    /// [`NbdCommand::Trim`].
    pub trim: bool,
    /// [`NbdCommand::WriteZeroes`].
    pub write_zeroes: bool,
    /// Structured replies, and with them [`NbdCommand::BlockStatus`].
    pub structured: bool,
    /// The unit of requests in bytes, for clients that ask.
    pub block_bytes: Option<u32>,
}

impl ExportFeatures {
    /// All that is understood here, with requests in units of `block_bytes`.
    #[must_use]
    pub const fn all(block_bytes: u32) -> Self {
        Self { trim: true, write_zeroes: true, structured: true, block_bytes: Some(block_bytes) }
    }

    /// The transmission flags of such an export.
    #[must_use]
    pub fn flags(self) -> u16 {
        let extra = [
            (self.trim, TRIM_FLAG),
            (self.write_zeroes, ZEROES_FLAG),
            (self.structured, WHOLE_FLAG),
        ];
        extra.iter().filter(|(is_on, _)| *is_on).fold(BASE_FLAGS, |flags, (_, flag)| flags | flag)
    }
}

/// A volume that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its length in bytes.
    pub bytes: u64,
    /// What it offers.
    pub features: ExportFeatures,
}

/// What client and server agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// The number of the export that was chosen.
    pub export: usize,
    /// Replies are structured.
    pub is_structured: bool,
    /// Block status may be asked for.
    pub has_block_status: bool,
}

/// Greets a client and lets it choose; `None` if the client left.
///
/// # Errors
/// `InvalidData` for a broken protocol; otherwise what the stream met.
pub fn negotiate(
    stream: &mut (impl Read + Write),
    exports: &[Export],
) -> io::Result<Option<Negotiated>> {
    let mut greeting = Vec::new();
    greeting.extend(MAGIC.to_be_bytes());
    greeting.extend(OPTION_MAGIC.to_be_bytes());
    greeting.extend(HANDSHAKE_FLAGS.to_be_bytes());
    stream.write_all(&greeting)?;
    let client_flags = u32::from_be_bytes(take(stream)?);
    let wants_zeroes = client_flags & 0b10 == 0;
    let mut agreed = Negotiated::default();
    for _ in 0..OPTIONS_MAX {
        check(u64::from_be_bytes(take(stream)?) == OPTION_MAGIC, "option")?;
        let option = u32::from_be_bytes(take(stream)?);
        let len = u32::from_be_bytes(take(stream)?);
        check(len <= OPTION_LEN_MAX, "length of an option")?;
        let data = take_bytes(stream, len)?;
        match option {
            OPTION_EXPORT_NAME => {
                let chosen = find(exports, &data).ok_or_else(|| invalid("name of an export"))?;
                let mut reply = export_facts(exports[chosen]);
                reply.extend(vec![0; if wants_zeroes { 124 } else { 0 }]);
                stream.write_all(&reply)?;
                return Ok(Some(Negotiated { export: chosen, ..agreed }));
            }
            OPTION_ABORT => {
                // The client may be gone already.
                let _ = reply_option(stream, option, REPLY_ACK, &[]);
                return Ok(None);
            }
            OPTION_INFO | OPTION_GO => {
                if let Some(chosen) = describe(stream, option, &data, exports)?
                    && option == OPTION_GO
                {
                    return Ok(Some(Negotiated { export: chosen, ..agreed }));
                }
            }
            OPTION_LIST if data.is_empty() => list(stream, exports)?,
            OPTION_STRUCTURED if exports.iter().any(|export| export.features.structured) => {
                agreed.is_structured |= data.is_empty();
                let kind = if data.is_empty() { REPLY_ACK } else { REPLY_INVALID };
                reply_option(stream, option, kind, &[])?;
            }
            OPTION_LIST_CONTEXTS | OPTION_SET_CONTEXTS if agreed.is_structured => {
                let found = contexts(stream, option, &data, exports)?;
                if option == OPTION_SET_CONTEXTS {
                    agreed.has_block_status = found;
                }
            }
            _ => reply_option(stream, option, REPLY_UNSUPPORTED, &[])?,
        }
    }
    Err(invalid("number of options"))
}

fn find(exports: &[Export], name: &[u8]) -> Option<usize> {
    exports.iter().position(|export| export.name.as_bytes() == name)
}

/// Answers INFO and GO: the number of the export that was named, if there is one.
fn describe(
    stream: &mut impl Write,
    option: u32,
    data: &[u8],
    exports: &[Export],
) -> io::Result<Option<usize>> {
    let Some((name, rest)) = split_name(data) else {
        return reply_option(stream, option, REPLY_INVALID, &[]).map(|()| None);
    };
    let Some(chosen) = find(exports, name) else {
        return reply_option(stream, option, REPLY_UNKNOWN, &[]).map(|()| None);
    };
    let mut info = INFO_EXPORT.to_be_bytes().to_vec();
    info.extend(export_facts(exports[chosen]));
    reply_option(stream, option, REPLY_INFO, &info)?;
    // Behind the name: how many facts are asked for, then which.
    let mut asked = rest.get(2..).unwrap_or_default().chunks_exact(2);
    if let Some(block_bytes) = exports[chosen].features.block_bytes
        && asked.any(|kind| kind == INFO_BLOCK_BYTES.to_be_bytes())
    {
        let mut sizes = INFO_BLOCK_BYTES.to_be_bytes().to_vec();
        // Least, preferred, most.
        for bytes in [block_bytes, block_bytes.max(4096), LEN_MAX] {
            sizes.extend(bytes.to_be_bytes());
        }
        reply_option(stream, option, REPLY_INFO, &sizes)?;
    }
    reply_option(stream, option, REPLY_ACK, &[])?;
    Ok(Some(chosen))
}

/// Names all exports.
fn list(stream: &mut impl Write, exports: &[Export]) -> io::Result<()> {
    for export in exports {
        let mut entry = (export.name.len() as u32).to_be_bytes().to_vec();
        entry.extend(export.name.as_bytes());
        reply_option(stream, OPTION_LIST, REPLY_SERVER, &entry)?;
    }
    reply_option(stream, OPTION_LIST, REPLY_ACK, &[])
}

/// Answers a question for metadata contexts; whether block status was among them.
fn contexts(
    stream: &mut impl Write,
    option: u32,
    data: &[u8],
    exports: &[Export],
) -> io::Result<bool> {
    let Some((name, queries)) = split_name(data).and_then(|(name, rest)| {
        let (count, mut rest) = rest.split_first_chunk::<4>()?;
        let mut queries = Vec::new();
        // Each has at least four bytes, so the data bound their number.
        for _ in 0..u32::from_be_bytes(*count) {
            let (query, behind) = split_name(rest)?;
            queries.push(query);
            rest = behind;
        }
        rest.is_empty().then_some((name, queries))
    }) else {
        return reply_option(stream, option, REPLY_INVALID, &[]).map(|()| false);
    };
    if find(exports, name).is_none() {
        return reply_option(stream, option, REPLY_UNKNOWN, &[]).map(|()| false);
    }
    let lists_all = option == OPTION_LIST_CONTEXTS
        && (queries.is_empty() || queries.iter().any(|query| *query == b"base:"));
    let found = lists_all || queries.contains(&ALLOCATION);
    if found {
        let mut context = ALLOCATION_ID.to_be_bytes().to_vec();
        context.extend(ALLOCATION);
        reply_option(stream, option, REPLY_CONTEXT, &context)?;
    }
    reply_option(stream, option, REPLY_ACK, &[])?;
    Ok(found)
}

/// The next request; `None` when the client has left without a word. `data` becomes what is to be
/// written: nothing but for a write.
///
/// # Errors
/// `InvalidData` for a broken protocol or a request that is too long; otherwise what the stream
/// met.
pub fn read_request(stream: &mut impl Read, data: &mut Vec<u8>) -> io::Result<Option<NbdRequest>> {
    data.clear();
    let magic = match take(stream) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        magic => u32::from_be_bytes(magic?),
    };
    check(magic == REQUEST_MAGIC, "request")?;
    let flags = u16::from_be_bytes(take(stream)?);
    let command = u16::from_be_bytes(take(stream)?);
    let cookie = u64::from_be_bytes(take(stream)?);
    let offset = u64::from_be_bytes(take(stream)?);
    let len = u32::from_be_bytes(take(stream)?);
    let command = match command {
        0 => NbdCommand::Read,
        1 => NbdCommand::Write,
        2 => NbdCommand::Disconnect,
        3 => NbdCommand::Flush,
        4 => NbdCommand::Trim,
        6 => NbdCommand::WriteZeroes,
        7 => NbdCommand::BlockStatus,
        _ => NbdCommand::Unknown,
    };
    let moves = matches!(command, NbdCommand::Read | NbdCommand::Write);
    check(!moves || len <= LEN_MAX, "length of a request")?;
    if command == NbdCommand::Write {
        fill(stream, len, data)?;
    }
    let (is_durable, wants_one) = (flags & DURABLE != 0, flags & ONE_EXTENT != 0);
    Ok(Some(NbdRequest { command, is_durable, wants_one, cookie, offset, len }))
}

/// Answers the request with this cookie by a simple reply: with what was read, or with an error
/// number of Linux.
///
/// # Errors
/// What the stream met.
pub fn reply(stream: &mut impl Write, cookie: u64, outcome: Result<&[u8], u32>) -> io::Result<()> {
    let mut head = [0; 16];
    head[..4].copy_from_slice(&REPLY_MAGIC.to_be_bytes());
    head[4..8].copy_from_slice(&outcome.err().unwrap_or(0).to_be_bytes());
    head[8..].copy_from_slice(&cookie.to_be_bytes());
    send(stream, &head, outcome.unwrap_or_default())
}

/// Answers a read by a structured reply of one piece.
///
/// # Errors
/// What the stream met.
pub fn reply_data(
    stream: &mut impl Write,
    cookie: u64,
    offset: u64,
    data: &[u8],
) -> io::Result<()> {
    reply_chunk(stream, cookie, CHUNK_DATA, &offset.to_be_bytes(), data)
}

/// Answers any other request by a structured reply.
///
/// # Errors
/// What the stream met.
pub fn reply_end(stream: &mut impl Write, cookie: u64, outcome: Result<(), u32>) -> io::Result<()> {
    let Err(error) = outcome else {
        return reply_chunk(stream, cookie, CHUNK_NONE, &[], &[]);
    };
    // Behind the number: the length of a text, of which there is none.
    reply_chunk(stream, cookie, CHUNK_ERROR, &error.to_be_bytes(), &[0, 0])
}

/// Answers a block status: for each extent its length and whether it is a hole of zeros.
///
/// # Errors
/// What the stream met.
pub fn reply_status(
    stream: &mut impl Write,
    cookie: u64,
    extents: &[(u32, bool)],
) -> io::Result<()> {
    let mut payload = ALLOCATION_ID.to_be_bytes().to_vec();
    for (len, is_hole) in extents {
        payload.extend(len.to_be_bytes());
        payload.extend((if *is_hole { HOLE } else { 0 }).to_be_bytes());
    }
    reply_chunk(stream, cookie, CHUNK_STATUS, &[], &payload)
}

/// The only chunk of a structured reply: up to eight bytes of its own, then data.
fn reply_chunk(
    stream: &mut impl Write,
    cookie: u64,
    kind: u16,
    own: &[u8],
    data: &[u8],
) -> io::Result<()> {
    const HEAD: usize = 20;
    let mut head = [0; HEAD + 8];
    head[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
    head[4..6].copy_from_slice(&CHUNK_DONE.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..HEAD].copy_from_slice(&((own.len() + data.len()) as u32).to_be_bytes());
    head[HEAD..HEAD + own.len()].copy_from_slice(own);
    send(stream, &head[..HEAD + own.len()], data)
}

/// Both parts, in one call where the stream takes them at once, and without a copy.
fn send(stream: &mut impl Write, head: &[u8], data: &[u8]) -> io::Result<()> {
    let mut sent = 0;
    while sent < head.len() + data.len() {
        let rest = &head[sent.min(head.len())..];
        let parts = [rest, &data[sent.saturating_sub(head.len())..]].map(IoSlice::new);
        match stream.write_vectored(&parts) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(bytes) => sent += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Size and flags, as both ways of choosing an export tell them.
fn export_facts(export: Export) -> Vec<u8> {
    let mut facts = export.bytes.to_be_bytes().to_vec();
    facts.extend(export.features.flags().to_be_bytes());
    facts
}

/// A name with its length in front, and what is behind; `None` if cut short.
fn split_name(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = data.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)
}

fn reply_option(stream: &mut impl Write, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let mut reply = OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
    reply.extend(option.to_be_bytes());
    reply.extend(kind.to_be_bytes());
    reply.extend((data.len() as u32).to_be_bytes());
    reply.extend(data);
    stream.write_all(&reply)
}

fn take<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn take_bytes(stream: &mut impl Read, len: u32) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fill(stream, len, &mut bytes)?;
    Ok(bytes)
}

/// Memory grows only with what arrives, not with what a client announces.
fn fill(stream: &mut impl Read, len: u32, bytes: &mut Vec<u8>) -> io::Result<()> {
    stream.take(u64::from(len)).read_to_end(bytes)?;
    let is_whole = bytes.len() as u64 == u64::from(len);
    if is_whole { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

fn check(holds: bool, what: &str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(invalid(what)) }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("NBD: bad {what}"))
}

#[cfg(test)]
mod tests;
