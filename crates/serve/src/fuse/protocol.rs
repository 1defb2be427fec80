//! The server's half of FUSE: requests as the kernel numbers them and lays them out, and the bodies
//! of answers (`linux/fuse.h`, version 7.41 of Linux 6.12). Pure: no file, no clock.
//!
//! [`parse`] reads what the server of one file is asked. It takes any bytes: a request that is
//! shorter than its kind says is [`Malformed`]. A server of a whole directory takes fields by
//! itself, with [`number32`] and [`number64`].

/// The newest version that is spoken here; the older one of both sides counts.
const MAJOR: u32 = 7;
const MINOR_MAX: u32 = 41;

/// The most bytes of one request: what the kernel allows at most.
pub const DATA_BYTES_MAX: usize = 1 << 20;
const PAGES_MAX: u16 = 256;
/// Room for the header of the largest request.
const HEADER_ROOM: usize = 4096;
/// Room for any request.
pub const REQUEST_ROOM: usize = HEADER_ROOM + DATA_BYTES_MAX;
/// `struct fuse_in_header`; the body of a request is behind it.
pub const HEADER_IN: usize = 40;
/// `struct fuse_out_header`.
pub const HEADER_OUT: usize = 16;
/// Where the data of a write begin.
pub const WRITE_DATA: usize = HEADER_IN + 40;
/// Where length and number of a request are.
const UNIQUE_AT: usize = 8;

/// Requests, as the kernel numbers them.
#[allow(missing_docs, reason = "the names of linux/fuse.h")]
pub mod opcode {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const SETATTR: u32 = 4;
    pub const READLINK: u32 = 5;
    pub const SYMLINK: u32 = 6;
    pub const MKNOD: u32 = 8;
    pub const MKDIR: u32 = 9;
    pub const UNLINK: u32 = 10;
    pub const RMDIR: u32 = 11;
    pub const RENAME: u32 = 12;
    pub const LINK: u32 = 13;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FSYNC: u32 = 20;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const READDIR: u32 = 28;
    pub const RELEASEDIR: u32 = 29;
    pub const FSYNCDIR: u32 = 30;
    pub const CREATE: u32 = 35;
    pub const INTERRUPT: u32 = 36;
    pub const DESTROY: u32 = 38;
    pub const BATCH_FORGET: u32 = 42;
    pub const FALLOCATE: u32 = 43;
    pub const RENAME2: u32 = 45;
}

/// Error numbers of Linux.
#[allow(missing_docs, reason = "the names of errno(3)")]
pub mod errno {
    pub const EPERM: i32 = 1;
    pub const ENOENT: i32 = 2;
    pub const EIO: i32 = 5;
    pub const EEXIST: i32 = 17;
    pub const ENODEV: i32 = 19;
    pub const EINVAL: i32 = 22;
    pub const EPROTO: i32 = 71;
    pub const ENOSPC: i32 = 28;
    /// No such request is served; the kernel does without.
    pub const ENOSYS: i32 = 38;
    pub const EOPNOTSUPP: i32 = 95;
}

/// `FUSE_ASYNC_DIO`, `FUSE_BIG_WRITES`, `FUSE_MAX_PAGES`: the kernel may have several requests of
/// direct I/O under way, writes larger than a page, and 256 pages in one. `FUSE_AUTO_INVAL_DATA`: a
/// file whose time changed is read anew.
const FLAGS: u64 = 1 << 15 | 1 << 5 | 1 << 22 | 1 << 12;
/// From here on error numbers are the kernel's own.
const ERRORS_END: i32 = 512;
/// `FUSE_INIT_EXT`: there are flags beyond 32 bits.
const EXTENDED: u64 = 1 << 30;
/// `FUSE_HAS_RESEND` (Linux 6.9): what was not answered can be sent again.
const RESEND: u64 = 1 << 39;
/// `FUSE_UNIQUE_RESEND`: the number of a request that is sent again has this bit.
const RESENT: u64 = 1 << 63;

/// `FUSE_NOTIFY_RESEND`.
const NOTIFY_RESEND: i32 = 7;

/// `FOPEN_DIRECT_IO`: nothing of an open file is kept in the page cache.
pub const OPEN_DIRECT: u32 = 1;
/// `FOPEN_PARALLEL_DIRECT_WRITES`: writes of one file may be under way together.
pub const OPEN_PARALLEL_WRITES: u32 = 1 << 6;

/// Of `FALLOCATE`: the file keeps its size, a hole, zeros.
const KEEP_SIZE: u32 = 1;
const PUNCH_HOLE: u32 = 2;
const ZERO_RANGE: u32 = 16;

/// A request that is shorter than its kind says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A request to the server of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRequest<'a> {
    /// Names it in its answer.
    pub unique: u64,
    /// What is asked.
    pub kind: FileRequestKind<'a>,
}

/// What is asked of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRequestKind<'a> {
    /// The connection begins.
    Init(Init),
    /// Size and mode.
    Attributes,
    /// It is opened.
    Open,
    /// Bytes of it.
    Read {
        /// The first byte.
        offset: u64,
        /// How many.
        len: u32,
    },
    /// Bytes for it.
    Write {
        /// The first byte.
        offset: u64,
        /// The bytes.
        data: &'a [u8],
    },
    /// Zeros in a range of it, as a hole or otherwise.
    Zero {
        /// The first byte.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// All that was written is to be durable.
    Sync,
    /// Room on the file system.
    StatFs,
    /// Closed, released: nothing to do but to say so.
    Acknowledge,
    /// Has no answer.
    Unanswered,
    /// Is not served.
    Unknown,
}

/// What the kernel offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Init {
    /// Its version behind the 7.
    pub minor: u32,
    /// Bytes that it reads ahead.
    pub readahead_bytes: u32,
    /// What it can do.
    pub flags: u64,
}

impl Init {
    /// Whether the kernel can send again what was not answered (Linux 6.9): without that, what a
    /// killed server had under way waits for good.
    #[must_use]
    pub fn has_resend(&self) -> bool {
        self.flags & EXTENDED != 0 && self.flags & RESEND != 0
    }
}

/// Reads a request of the kernel to the server of one file.
///
/// # Errors
/// [`Malformed`] for bytes that no kernel sends.
pub fn parse(request: &[u8]) -> Result<FileRequest<'_>, Malformed> {
    if request.len() < HEADER_IN || number32(request, 0) as usize != request.len() {
        return Err(Malformed);
    }
    let body = &request[HEADER_IN..];
    let least = |bytes: usize| if body.len() >= bytes { Ok(()) } else { Err(Malformed) };
    let kind = match number32(request, 4) {
        opcode::INIT => FileRequestKind::Init(parse_init(body)?),
        opcode::GETATTR => FileRequestKind::Attributes,
        opcode::OPEN => FileRequestKind::Open,
        opcode::READ => {
            least(40)?;
            FileRequestKind::Read { offset: number64(body, 8), len: number32(body, 16) }
        }
        opcode::WRITE => {
            least(40)?;
            let data = &body[40..];
            if data.len() != number32(body, 16) as usize {
                return Err(Malformed);
            }
            FileRequestKind::Write { offset: number64(body, 8), data }
        }
        opcode::FALLOCATE => {
            least(32)?;
            match number32(body, 24) & !KEEP_SIZE {
                PUNCH_HOLE | ZERO_RANGE => {
                    FileRequestKind::Zero { offset: number64(body, 8), len: number64(body, 16) }
                }
                _ => FileRequestKind::Unknown,
            }
        }
        opcode::FSYNC => FileRequestKind::Sync,
        opcode::STATFS => FileRequestKind::StatFs,
        opcode::RELEASE | opcode::FLUSH | opcode::DESTROY => FileRequestKind::Acknowledge,
        opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT => FileRequestKind::Unanswered,
        _ => FileRequestKind::Unknown,
    };
    Ok(FileRequest { unique: number64(request, UNIQUE_AT), kind })
}

/// The fields of an `INIT`; kernels before 5.17 send only the first four.
fn parse_init(body: &[u8]) -> Result<Init, Malformed> {
    if body.len() < 16 {
        return Err(Malformed);
    }
    let low = u64::from(number32(body, 12));
    let high = if low & EXTENDED == 0 { 0 } else { u64::from(number32(body, 16)) };
    let flags = low | high << 32;
    Ok(Init { minor: number32(body, 4), readahead_bytes: number32(body, 8), flags })
}

/// The number that names a request in its answer; 0 for bytes that are none.
#[must_use]
pub fn unique(request: &[u8]) -> u64 {
    number64(request, UNIQUE_AT)
}

/// Whether the kernel sends the request with this number again.
#[must_use]
pub fn is_resent(unique: u64) -> bool {
    unique & RESENT != 0
}

/// The header of an answer whose body has `body_bytes`; `error` is 0 or a positive error number.
#[must_use]
pub fn answer_header(unique: u64, error: i32, body_bytes: usize) -> [u8; HEADER_OUT] {
    let mut header = [0; HEADER_OUT];
    header[..4].copy_from_slice(&((HEADER_OUT + body_bytes) as u32).to_ne_bytes());
    header[4..8].copy_from_slice(&(-error).to_ne_bytes());
    header[8..].copy_from_slice(&unique.to_ne_bytes());
    header
}

/// The error number of a request that failed with `number`: `EIO` for what the kernel takes for no
/// error of a program. It would refuse such an answer, and the request would stay open.
#[must_use]
pub fn error_number(number: i32) -> i32 {
    if (1..ERRORS_END).contains(&number) { number } else { errno::EIO }
}

/// The message that asks for all requests that were not answered.
#[must_use]
pub fn resend_message() -> [u8; HEADER_OUT] {
    answer_header(0, -NOTIFY_RESEND, 0)
}

/// `struct fuse_init_out`. The kernel may have `background` requests under way that no program
/// waits for, as those of a loop device are; 0 is the kernel's own limit of 12.
#[must_use]
pub fn init_body(init: Init, background: u16) -> [u8; 64] {
    // The high half counts only with its own flag.
    let offered = if init.flags & EXTENDED == 0 { 0 } else { EXTENDED | RESEND };
    let flags = FLAGS | init.flags & offered;
    let mut body = [0; 64];
    let mut put = |at: usize, bytes: &[u8]| body[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &words(MAJOR, init.minor.min(MINOR_MAX)));
    put(8, &init.readahead_bytes.to_ne_bytes());
    put(12, &(flags as u32).to_ne_bytes());
    put(16, &background.to_ne_bytes());
    put(18, &(background / 4 * 3).to_ne_bytes());
    put(20, &(DATA_BYTES_MAX as u32).to_ne_bytes());
    put(24, &1u32.to_ne_bytes());
    put(28, &PAGES_MAX.to_ne_bytes());
    put(32, &((flags >> 32) as u32).to_ne_bytes());
    body
}

/// `struct fuse_attr_out` of a regular file that only its owner uses.
#[must_use]
pub fn attributes_body(bytes: u64, valid_s: u64) -> [u8; 104] {
    let mut body = [0; 104];
    let mut put = |at: usize, bytes: &[u8]| body[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &valid_s.to_ne_bytes());
    put(16, &1u64.to_ne_bytes());
    put(24, &bytes.to_ne_bytes());
    put(32, &bytes.div_ceil(512).to_ne_bytes());
    put(76, &words(0o100_600, 1));
    put(96, &BLOCK_BYTES.to_ne_bytes());
    body
}

/// What a loop device takes as the unit of what it gives up.
const BLOCK_BYTES: u32 = 4096;

/// `struct fuse_statfs_out` of a file system that the file fills.
#[must_use]
pub fn statfs_body(bytes: u64) -> [u8; 80] {
    let mut body = [0; 80];
    let mut put = |at: usize, bytes: &[u8]| body[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &bytes.div_ceil(u64::from(BLOCK_BYTES)).to_ne_bytes());
    put(24, &1u64.to_ne_bytes());
    put(40, &words(BLOCK_BYTES, 255));
    put(48, &BLOCK_BYTES.to_ne_bytes());
    body
}

/// `struct fuse_open_out`.
#[must_use]
pub fn open_body(flags: u32) -> [u8; 16] {
    let mut body = [0; 16];
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    body
}

/// Two numbers of 32 bits.
#[must_use]
pub fn words(first: u32, second: u32) -> [u8; 8] {
    let mut both = [0; 8];
    both[..4].copy_from_slice(&first.to_ne_bytes());
    both[4..].copy_from_slice(&second.to_ne_bytes());
    both
}

/// The number at `at`; 0 where the bytes end before.
#[must_use]
pub fn number32(bytes: &[u8], at: usize) -> u32 {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk);
    field.copied().map(u32::from_ne_bytes).unwrap_or_default()
}

/// The number at `at`; 0 where the bytes end before.
#[must_use]
pub fn number64(bytes: &[u8], at: usize) -> u64 {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk);
    field.copied().map(u64::from_ne_bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request with the right length in its header.
    fn request(opcode: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_IN];
        bytes[..4].copy_from_slice(&((HEADER_IN + body.len()) as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&opcode.to_ne_bytes());
        bytes[8..16].copy_from_slice(&77u64.to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn kind(opcode: u32, body: &[u8]) -> Result<FileRequestKind<'static>, Malformed> {
        let bytes: &'static [u8] = request(opcode, body).leak();
        parse(bytes).map(|parsed| {
            assert_eq!(parsed.unique, 77);
            parsed.kind
        })
    }

    /// `struct fuse_write_in` and `fuse_read_in` alike: handle, offset, size, and more.
    fn transfer(offset: u64, len: u32) -> Vec<u8> {
        let mut body = vec![0; 40];
        body[8..16].copy_from_slice(&offset.to_ne_bytes());
        body[16..20].copy_from_slice(&len.to_ne_bytes());
        body
    }

    fn allocate(offset: u64, len: u64, mode: u32) -> Vec<u8> {
        [0u64.to_ne_bytes(), offset.to_ne_bytes(), len.to_ne_bytes(), words(mode, 0)].concat()
    }

    #[test]
    fn an_error_is_one_that_the_kernel_takes() {
        let answered = [1, 95, 511, 0, -5, 512, i32::MAX, i32::MIN].map(error_number);
        assert_eq!(answered, [1, 95, 511, 5, 5, 5, 5, 5]);
    }

    #[test]
    fn what_the_kernel_asks_is_read() {
        let read = kind(opcode::READ, &transfer(4096, 512)).unwrap();
        assert_eq!(read, FileRequestKind::Read { offset: 4096, len: 512 });
        let body = [transfer(u64::MAX, 3), b"abc".to_vec()].concat();
        let write = kind(opcode::WRITE, &body).unwrap();
        assert_eq!(write, FileRequestKind::Write { offset: u64::MAX, data: b"abc" });
        for mode in [3, 2, 16, 17] {
            let zero = kind(opcode::FALLOCATE, &allocate(5, 6, mode)).unwrap();
            assert_eq!(zero, FileRequestKind::Zero { offset: 5, len: 6 }, "{mode}");
        }
        // To reserve room, to collapse, to insert.
        for mode in [0, 1, 8, 32, 64 | 1] {
            let other = kind(opcode::FALLOCATE, &allocate(5, 6, mode)).unwrap();
            assert_eq!(other, FileRequestKind::Unknown, "{mode}");
        }
        for (number, expected) in [
            (opcode::GETATTR, FileRequestKind::Attributes),
            (opcode::OPEN, FileRequestKind::Open),
            (opcode::FSYNC, FileRequestKind::Sync),
            (opcode::STATFS, FileRequestKind::StatFs),
            (opcode::DESTROY, FileRequestKind::Acknowledge),
            (opcode::FORGET, FileRequestKind::Unanswered),
            (opcode::RENAME2, FileRequestKind::Unknown),
            (u32::MAX, FileRequestKind::Unknown),
        ] {
            assert_eq!(kind(number, &[]), Ok(expected));
        }
    }

    #[test]
    fn hostile_requests_are_malformed_and_never_a_panic() {
        let short = |opcode, bytes: usize| kind(opcode, &vec![0xff; bytes]);
        for (opcode, least) in [(opcode::READ, 40), (opcode::FALLOCATE, 32), (opcode::INIT, 16)] {
            assert_eq!(short(opcode, least - 1), Err(Malformed), "{opcode}");
            assert!(short(opcode, least).is_ok(), "{opcode}");
        }
        // A write that has more or less than it says.
        for (said, has) in [(4, 3), (3, 4), (u32::MAX, 0)] {
            let body = [transfer(0, said), vec![0; has]].concat();
            assert_eq!(kind(opcode::WRITE, &body), Err(Malformed));
        }
        let whole = request(opcode::READ, &transfer(0, 1));
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), Err(Malformed), "cut at {length}");
        }
        let longer = [whole, vec![0]].concat();
        assert_eq!(parse(&longer), Err(Malformed));
    }

    #[test]
    fn an_answer_offers_what_both_sides_can() {
        let field = |body: &[u8; 64], at| number32(body, at);
        let old = init_body(Init { minor: 31, readahead_bytes: 9, flags: RESEND }, 0);
        assert_eq!((field(&old, 4), field(&old, 8), field(&old, 32)), (31, 9, 0));
        let flags = EXTENDED | RESEND | 1 << 50;
        let new = init_body(Init { minor: 99, readahead_bytes: 0, flags }, 64);
        assert_eq!((field(&new, 4), field(&new, 16)), (MINOR_MAX, 48 << 16 | 64));
        assert_eq!(field(&new, 12), (FLAGS | EXTENDED) as u32);
        assert_eq!(field(&new, 32), (RESEND >> 32) as u32);
        let mut body = [0; 20];
        body[12..16].copy_from_slice(&(EXTENDED as u32).to_ne_bytes());
        body[16..].copy_from_slice(&128u32.to_ne_bytes());
        let FileRequestKind::Init(init) = kind(opcode::INIT, &body).unwrap() else { panic!() };
        assert_eq!(init.flags, EXTENDED | RESEND);
        let has_resend = |flags| Init { minor: 41, readahead_bytes: 0, flags }.has_resend();
        assert_eq!([flags, RESEND, EXTENDED, 0].map(has_resend), [true, false, false, false]);
        assert!(is_resent(1 << 63 | 4) && !is_resent(4));
    }

    #[test]
    fn headers_carry_negative_errors_and_notices_positive_codes() {
        let header = answer_header(3, errno::EIO, 8);
        assert_eq!((number32(&header, 0), number64(&header, 8)), (24, 3));
        assert_eq!(number32(&header, 4) as i32, -5);
        assert_eq!(number32(&resend_message(), 4), 7);
    }
}
