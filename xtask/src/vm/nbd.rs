//! The server's half of the NBD protocol, as far as QEMU speaks it with a plain disk.
//!
//! Fixed newstyle handshake, then reads, writes and flushes with simple replies; the numbers are
//! those of `doc/proto.md` of the NBD project. Pure over any stream: no file, no clock. A client
//! that breaks the protocol, or asks for more than the limits, gets an error and loses its
//! connection.

use std::io::{self, ErrorKind, Read, Write};

/// QEMU's own limit of a request; a longer one is not QEMU's.
pub(super) const LEN_MAX: u32 = 32 << 20;

/// An option holds a name of at most 4096 bytes and a few numbers.
const OPTION_LEN_MAX: u32 = 8 << 10;

/// A client that knows what it wants needs two or three.
const OPTIONS_MAX: usize = 32;

const MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;

/// Fixed newstyle, and no 124 zero bytes after the old way of choosing an export.
const HANDSHAKE_FLAGS: u16 = 0b11;
/// "Has flags", "flush is understood", and "so is a write that is durable at once" (FUA).
const EXPORT_FLAGS: u16 = 0b1101;
/// Of a write: it is durable when it is answered (FUA).
const DURABLE: u16 = 1;

const OPTION_EXPORT_NAME: u32 = 1;
const OPTION_ABORT: u32 = 2;
const OPTION_INFO: u32 = 6;
const OPTION_GO: u32 = 7;

const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;
const REPLY_UNSUPPORTED: u32 = (1 << 31) + 1;
const REPLY_INVALID: u32 = (1 << 31) + 3;
const REPLY_UNKNOWN: u32 = (1 << 31) + 6;

const INFO_EXPORT: u16 = 0;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Read,
    Write,
    Flush,
    /// Something that was not offered; answered with an error.
    Unknown,
}

/// One request; `data` is what is to be written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NbdRequest {
    pub(super) command: Command,
    /// Of a write: it is to be durable when it is answered.
    pub(super) is_durable: bool,
    /// The client's own mark, returned with the reply.
    pub(super) cookie: u64,
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) data: Vec<u8>,
}

/// A disk that can be chosen: its name and its size in bytes.
pub(super) type Export<'a> = (&'a str, u64);

/// Greets a client and lets it choose; gives the number of the export, `None` if the client left.
///
/// # Errors
/// `InvalidData` for a broken protocol; otherwise what the stream met.
pub(super) fn negotiate(
    stream: &mut (impl Read + Write),
    exports: &[Export],
) -> io::Result<Option<usize>> {
    let mut greeting = Vec::new();
    greeting.extend(MAGIC.to_be_bytes());
    greeting.extend(OPTION_MAGIC.to_be_bytes());
    greeting.extend(HANDSHAKE_FLAGS.to_be_bytes());
    stream.write_all(&greeting)?;
    let client_flags = u32::from_be_bytes(take(stream)?);
    let wants_zeroes = client_flags & 0b10 == 0;
    for _ in 0..OPTIONS_MAX {
        check(u64::from_be_bytes(take(stream)?) == OPTION_MAGIC, "option")?;
        let option = u32::from_be_bytes(take(stream)?);
        let len = u32::from_be_bytes(take(stream)?);
        check(len <= OPTION_LEN_MAX, "length of an option")?;
        let data = take_bytes(stream, len)?;
        let find = |name: &[u8]| exports.iter().position(|(own, _)| own.as_bytes() == name);
        match option {
            OPTION_EXPORT_NAME => {
                let chosen = find(&data).ok_or_else(|| invalid("name of an export"))?;
                let mut reply = export_facts(exports[chosen]);
                reply.extend(vec![0; if wants_zeroes { 124 } else { 0 }]);
                stream.write_all(&reply)?;
                return Ok(Some(chosen));
            }
            OPTION_ABORT => {
                // The client may be gone already.
                let _ = reply_option(stream, option, REPLY_ACK, &[]);
                return Ok(None);
            }
            OPTION_INFO | OPTION_GO => match wanted_name(&data).map(find) {
                None => reply_option(stream, option, REPLY_INVALID, &[])?,
                Some(None) => reply_option(stream, option, REPLY_UNKNOWN, &[])?,
                Some(Some(chosen)) => {
                    let mut info = INFO_EXPORT.to_be_bytes().to_vec();
                    info.extend(export_facts(exports[chosen]));
                    reply_option(stream, option, REPLY_INFO, &info)?;
                    reply_option(stream, option, REPLY_ACK, &[])?;
                    if option == OPTION_GO {
                        return Ok(Some(chosen));
                    }
                }
            },
            _ => reply_option(stream, option, REPLY_UNSUPPORTED, &[])?,
        }
    }
    Err(invalid("number of options"))
}

/// The next request; `None` when the client says that it leaves, or has left.
///
/// # Errors
/// `InvalidData` for a broken protocol or a request that is too long; otherwise what the stream
/// met.
pub(super) fn read_request(stream: &mut impl Read) -> io::Result<Option<NbdRequest>> {
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
        0 => Command::Read,
        1 => Command::Write,
        2 => return Ok(None),
        3 => Command::Flush,
        _ => Command::Unknown,
    };
    let moves = matches!(command, Command::Read | Command::Write);
    check(!moves || len <= LEN_MAX, "length of a request")?;
    let data = match command {
        Command::Write => take_bytes(stream, len)?,
        _ => Vec::new(),
    };
    let is_durable = flags & DURABLE != 0;
    Ok(Some(NbdRequest { command, is_durable, cookie, offset, len, data }))
}

/// Answers the request with this cookie: with what was read, or with an error number of Linux.
///
/// # Errors
/// What the stream met.
pub(super) fn reply(
    stream: &mut impl Write,
    cookie: u64,
    outcome: Result<&[u8], u32>,
) -> io::Result<()> {
    let mut reply = Vec::with_capacity(16 + outcome.map_or(0, <[u8]>::len));
    reply.extend(REPLY_MAGIC.to_be_bytes());
    reply.extend(outcome.err().unwrap_or(0).to_be_bytes());
    reply.extend(cookie.to_be_bytes());
    reply.extend(outcome.unwrap_or_default());
    stream.write_all(&reply)
}

/// Size and flags, as both ways of choosing an export tell them.
fn export_facts((_, len_bytes): Export) -> Vec<u8> {
    let mut facts = len_bytes.to_be_bytes().to_vec();
    facts.extend(EXPORT_FLAGS.to_be_bytes());
    facts
}

/// The name within the data of INFO and GO: its length, then it; `None` if cut short.
fn wanted_name(data: &[u8]) -> Option<&[u8]> {
    let (len, rest) = data.split_first_chunk::<4>()?;
    rest.get(..usize::try_from(u32::from_be_bytes(*len)).ok()?)
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

/// Memory grows only with what arrives, not with what a client announces.
fn take_bytes(stream: &mut impl Read, len: u32) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(u64::from(len)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == u64::from(len) {
        Ok(bytes)
    } else {
        Err(ErrorKind::UnexpectedEof.into())
    }
}

fn check(holds: bool, what: &str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(invalid(what)) }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("NBD: bad {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const EXPORTS: &[Export] = &[("a", 4096), ("disk", 1 << 30)];

    /// A client that has sent everything already; keeps what it receives.
    struct Client {
        says: Cursor<Vec<u8>>,
        hears: Vec<u8>,
    }

    impl Client {
        fn new(parts: &[&[u8]]) -> Self {
            Self { says: Cursor::new(parts.concat()), hears: Vec::new() }
        }
    }

    impl Read for Client {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.says.read(buffer)
        }
    }

    impl Write for Client {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.hears.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const FLAGS: &[u8] = &[0, 0, 0, 3];

    fn option(number: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"IHAVEOPT".to_vec();
        bytes.extend(number.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        bytes
    }

    /// The data of INFO and GO: a name and no wishes.
    fn named(name: &str) -> Vec<u8> {
        let mut data = (name.len() as u32).to_be_bytes().to_vec();
        data.extend(name.as_bytes());
        data.extend([0, 0]);
        data
    }

    fn request(command: u16, offset: u64, len: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(command.to_be_bytes());
        bytes.extend(77u64.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(len.to_be_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn go_chooses_a_disk_after_options_that_are_not_known() {
        let structured_replies = option(8, &[]);
        let mut client = Client::new(&[
            FLAGS,
            &structured_replies,
            &option(OPTION_GO, &named("nothing")),
            &option(OPTION_GO, &named("disk")),
        ]);
        assert_eq!(negotiate(&mut client, EXPORTS).unwrap(), Some(1));
        let sent = &client.hears[18..];
        assert_eq!(sent[12..16], REPLY_UNSUPPORTED.to_be_bytes());
        assert_eq!(sent[32..36], REPLY_UNKNOWN.to_be_bytes());
        let facts = &sent[40..][20..32];
        assert_eq!(facts, [0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 13]);
        assert_eq!(sent[72..][12..16], REPLY_ACK.to_be_bytes());
    }

    #[test]
    fn the_old_way_of_choosing_has_zeroes_unless_declined() {
        for (flags, len) in [([0, 0, 0, 3], 10), ([0, 0, 0, 1], 134)] {
            let mut client = Client::new(&[&flags, &option(OPTION_EXPORT_NAME, b"a")]);
            assert_eq!(negotiate(&mut client, EXPORTS).unwrap(), Some(0));
            assert_eq!(client.hears.len() - 18, len);
        }
    }

    #[test]
    fn a_client_may_leave_instead() {
        let mut client = Client::new(&[FLAGS, &option(OPTION_ABORT, &[])]);
        assert_eq!(negotiate(&mut client, EXPORTS).unwrap(), None);
        assert_eq!(read_request(&mut Cursor::new([])).unwrap(), None);
        let leave = request(2, 0, 0, &[]);
        assert_eq!(read_request(&mut Cursor::new(leave)).unwrap(), None);
    }

    #[test]
    fn a_hostile_greeting_is_refused() {
        let refused = |parts: &[&[u8]]| {
            let error = negotiate(&mut Client::new(parts), EXPORTS).unwrap_err();
            error.to_string()
        };
        assert_eq!(refused(&[FLAGS, &[0; 16]]), "NBD: bad option");
        let too_long = [&b"IHAVEOPT"[..], &[0, 0, 0, 7], &[255; 4]].concat();
        assert_eq!(refused(&[FLAGS, &too_long]), "NBD: bad length of an option");
        let endless = option(99, &[]).repeat(100);
        assert_eq!(refused(&[FLAGS, &endless]), "NBD: bad number of options");
        let unknown = option(OPTION_EXPORT_NAME, b"x");
        assert_eq!(refused(&[FLAGS, &unknown]), "NBD: bad name of an export");
        let cut = negotiate(&mut Client::new(&[FLAGS, b"IHAVE"]), EXPORTS).unwrap_err();
        assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_name_longer_than_its_option_is_answered_with_an_error() {
        let lie = [&u32::MAX.to_be_bytes()[..], b"disk"].concat();
        let parts = [FLAGS, &option(OPTION_GO, &lie), &option(OPTION_ABORT, &[])];
        let mut client = Client::new(&parts);
        assert_eq!(negotiate(&mut client, EXPORTS).unwrap(), None);
        assert_eq!(client.hears[18..][12..16], REPLY_INVALID.to_be_bytes());
    }

    #[test]
    fn requests_are_read_one_after_another() {
        let bytes =
            [request(1, 8192, 3, b"xyz"), request(3, 0, 0, &[]), request(4, 0, u32::MAX, &[])];
        let mut stream = Cursor::new(bytes.concat());
        let write = read_request(&mut stream).unwrap().unwrap();
        assert_eq!((write.command, write.cookie), (Command::Write, 77));
        assert_eq!((write.offset, write.data.as_slice()), (8192, &b"xyz"[..]));
        assert!(!write.is_durable);
        let flush = read_request(&mut stream).unwrap().unwrap();
        assert_eq!(flush.command, Command::Flush);
        let trim = read_request(&mut stream).unwrap().unwrap();
        assert_eq!(trim.command, Command::Unknown);
    }

    #[test]
    fn a_hostile_request_is_refused() {
        let refused = |bytes: Vec<u8>| read_request(&mut Cursor::new(bytes)).unwrap_err();
        assert_eq!(refused(vec![0; 28]).to_string(), "NBD: bad request");
        for command in [0, 1] {
            let error = refused(request(command, 0, LEN_MAX + 1, &[]));
            assert_eq!(error.to_string(), "NBD: bad length of a request");
        }
        let cut = refused(request(1, 0, LEN_MAX, b"little"));
        assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_reply_carries_the_cookie_and_either_data_or_an_error() {
        let sent = |outcome| {
            let mut bytes = Vec::new();
            reply(&mut bytes, 5, outcome).unwrap();
            bytes
        };
        let head = [0x67, 0x44, 0x66, 0x98];
        let good = [&head[..], &[0; 4], &[0, 0, 0, 0, 0, 0, 0, 5], b"ab"].concat();
        assert_eq!(sent(Ok(b"ab")), good);
        assert_eq!(sent(Err(22))[4..8], [0, 0, 0, 22]);
    }
}
