//! Serves a volume over one connection, several requests at a time.
//!
//! Each thread reads the next request, has the volume do it and answers; reading and answering are
//! taken in turn. So requests are answered in any order, as the protocol allows.

use super::protocol::{
    NbdCommand, NbdRequest, Negotiated, read_request, reply, reply_data, reply_end, reply_status,
};
use crate::volume::{INVALID, UNSUPPORTED, Volume, VolumeResult, is_within};
use model::engine::ErrorNumber;
use std::io::{self, BufReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// What a thread reads into and writes from; only a longer request needs more memory.
const ROOM: usize = 256 << 10;
/// What that is filled with. Not 0: memory of zeros has no pages before they are touched, and then
/// memory may be short.
const FILL: u8 = 1;

/// Extents in one answer at most.
const EXTENTS_MAX: usize = 64;
/// The numbers of errors that the protocol knows; others are an `EIO`.
const KNOWN_ERRORS: [i32; 7] = [1, 12, 22, 28, 75, 95, 108];

/// Serves `volume` until the client leaves, with `threads` requests at a time: whether it said so.
/// The handshake is over; the kernel's client has none. The stream is ready to be closed then, and
/// no request of it is under way.
///
/// # Errors
/// `InvalidData` for a broken protocol; otherwise what the stream met.
pub fn serve<S>(
    stream: &S,
    volume: &dyn Volume,
    agreed: Negotiated,
    threads: usize,
    close: impl Fn(&S) + Sync,
) -> io::Result<bool>
where
    S: Sync,
    for<'a> &'a S: Read + Write,
{
    let connection =
        Connection { input: Mutex::new(BufReader::new(stream)), output: Mutex::new(stream) };
    let run = || {
        let served = connection.serve(volume, agreed);
        // The other threads wait for what does not come any more.
        close(stream);
        served
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.max(1)).map(|_| scope.spawn(run)).collect();
        let first = run();
        let panicked = |_| Err(io::Error::other("a thread of the server panicked"));
        let results = others.into_iter().map(|thread| thread.join().unwrap_or_else(panicked));
        let all: Vec<io::Result<bool>> = std::iter::once(first).chain(results).collect();
        // One of the threads reads the last word of the client, the others meet a closed stream.
        let has_left = all.iter().any(|ended| matches!(ended, Ok(true)));
        if has_left { Ok(true) } else { all.into_iter().fold(Ok(false), io::Result::and) }
    })
}

struct Connection<'a, S> {
    input: Mutex<BufReader<&'a S>>,
    output: Mutex<&'a S>,
}

impl<S> Connection<'_, S>
where
    for<'a> &'a S: Read + Write,
{
    /// Whether the client said that it leaves.
    fn serve(&self, volume: &dyn Volume, agreed: Negotiated) -> io::Result<bool> {
        let (mut data, mut found) = (vec![FILL; ROOM], Vec::new());
        loop {
            let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
            let next = read_request(&mut *input, &mut data);
            drop(input);
            let Some(request) = next? else { return Ok(false) };
            if request.command == NbdCommand::Disconnect {
                return Ok(true);
            }
            let performed = catch_unwind(AssertUnwindSafe(|| match request.command {
                NbdCommand::BlockStatus if !agreed.has_block_status => Err(INVALID),
                _ => perform(volume, &request, &mut data, &mut found),
            }));
            let done = performed.unwrap_or(Err(ErrorNumber::EIO)).map_err(number);
            let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            let cookie = request.cookie;
            match (request.command, done) {
                (NbdCommand::BlockStatus, Ok(())) => reply_status(&mut *output, cookie, &found)?,
                (NbdCommand::Read, Ok(())) if agreed.is_structured => {
                    reply_data(&mut *output, cookie, request.offset, &data)?;
                }
                (NbdCommand::Read, done) if !agreed.is_structured => {
                    reply(&mut *output, cookie, done.map(|()| data.as_slice()))?;
                }
                (_, done) if agreed.is_structured => reply_end(&mut *output, cookie, done)?,
                (_, done) => reply(&mut *output, cookie, done.map(|()| [].as_slice()))?,
            }
        }
    }
}

/// Does what is asked with `data`, which what is read replaces; extents are in `found`.
fn perform(
    volume: &dyn Volume,
    request: &NbdRequest,
    data: &mut Vec<u8>,
    found: &mut Vec<(u32, bool)>,
) -> VolumeResult {
    let (offset, len) = (request.offset, u64::from(request.len));
    if request.command != NbdCommand::Flush && !is_within(volume.bytes(), offset, len) {
        return Err(INVALID);
    }
    match request.command {
        NbdCommand::Read => {
            data.resize(request.len as usize, 0);
            volume.read(offset, data)
        }
        NbdCommand::Write => volume.write(offset, data),
        NbdCommand::Flush => volume.flush(),
        NbdCommand::Trim => match volume.discard(offset, len) {
            // It is a hint, and who cannot follow it has done no wrong.
            Err(UNSUPPORTED) => Ok(()),
            done => done,
        },
        NbdCommand::WriteZeroes => volume.write_zeroes(offset, len),
        NbdCommand::BlockStatus if len > 0 => {
            *found = extents(volume, request);
            Ok(())
        }
        NbdCommand::BlockStatus | NbdCommand::Disconnect | NbdCommand::Unknown => Err(INVALID),
    }?;
    let changes =
        matches!(request.command, NbdCommand::Write | NbdCommand::Trim | NbdCommand::WriteZeroes);
    if request.is_durable && changes { volume.flush() } else { Ok(()) }
}

/// The extents of a range, from its start, at most [`EXTENTS_MAX`].
fn extents(volume: &dyn Volume, request: &NbdRequest) -> Vec<(u32, bool)> {
    let most = if request.wants_one { 1 } else { EXTENTS_MAX };
    let (mut at, mut left) = (request.offset, request.len);
    let mut found = Vec::new();
    while left > 0 && found.len() < most {
        let (len, is_hole) = volume.extent(at, left.into());
        let len = (len.max(1)).min(left.into()) as u32;
        found.push((len, is_hole));
        at += u64::from(len);
        left -= len;
    }
    found
}

/// The number as the protocol knows it.
fn number(error: ErrorNumber) -> u32 {
    if KNOWN_ERRORS.contains(&error.0) { error.0 as u32 } else { ErrorNumber::EIO.0 as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbd::protocol::{Export, ExportFeatures, negotiate};
    use crate::volume::DeviceVolume;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use testkit::MemoryDevice;

    const BYTES: u64 = 1 << 20;

    /// Serves a volume of zeros to `client`, after a handshake.
    fn with_client(greeting: &[u8], client: impl FnOnce(&mut UnixStream)) {
        let volume = DeviceVolume::new(MemoryDevice::new(BYTES as usize)).unwrap();
        with_client_of(&volume, greeting, client);
    }

    fn with_client_of(volume: &dyn Volume, greeting: &[u8], client: impl FnOnce(&mut UnixStream)) {
        let (mut outer, mut inner) = UnixStream::pair().unwrap();
        outer.write_all(greeting).unwrap();
        let exports = [Export { name: "a", bytes: BYTES, features: ExportFeatures::all(512) }];
        let agreed = negotiate(&mut inner, &exports).unwrap().unwrap();
        std::thread::scope(|scope| {
            let close = |stream: &UnixStream| drop(stream.shutdown(Shutdown::Both));
            let served = &inner;
            let server = scope.spawn(move || serve(served, volume, agreed, 3, close));
            client(&mut outer);
            outer.shutdown(Shutdown::Both).unwrap();
            server.join().unwrap().unwrap();
        });
    }

    fn request(flags: u16, command: u16, offset: u64, len: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend(9u64.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(len.to_be_bytes());
        bytes.extend(data);
        bytes
    }

    /// Sends a request and takes its simple reply: the error number, then `len` bytes.
    fn ask(client: &mut UnixStream, request: &[u8], len: usize) -> (u32, Vec<u8>) {
        client.write_all(request).unwrap();
        let mut head = [0; 16];
        client.read_exact(&mut head).unwrap();
        assert_eq!((&head[..4], head[15]), (&[0x67, 0x44, 0x66, 0x98][..], 9));
        let mut data = vec![1; len];
        client.read_exact(&mut data).unwrap();
        (u32::from_be_bytes([head[4], head[5], head[6], head[7]]), data)
    }

    /// Flags, then the old way to choose the export `a`.
    const CHOOSE: &[u8] = b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x01a";

    #[test]
    fn all_requests_are_served_and_none_outside() {
        with_client(CHOOSE, |client| {
            client.read_exact(&mut [0; 28]).unwrap();
            let (none, bytes) = (Vec::new(), BYTES);
            assert_eq!(ask(client, &request(1, 1, 4096, 3, b"abc"), 0), (0, none.clone()));
            assert_eq!(ask(client, &request(0, 0, 4095, 5, &[]), 5), (0, b"\0abc\0".to_vec()));
            assert_eq!(ask(client, &request(1, 6, 4097, 1, &[]), 0), (0, none.clone()));
            assert_eq!(ask(client, &request(0, 0, 4096, 3, &[]), 3), (0, b"a\0c".to_vec()));
            assert_eq!(ask(client, &request(0, 4, 4096, 4096, &[]), 0), (0, none.clone()));
            assert_eq!(ask(client, &request(0, 3, 0, 0, &[]), 0), (0, none.clone()));
            for (command, offset) in [(0, bytes), (4, bytes), (6, u64::MAX), (7, 0), (9, 0)] {
                let refused = ask(client, &request(0, command, offset, 1, &[]), 0);
                assert_eq!(refused, (22, none.clone()), "{command} at {offset}");
            }
        });
    }

    /// Flags, structured replies with block status, then the export `a`.
    fn structured_greeting() -> Vec<u8> {
        let option = |number: u32, data: &[u8]| {
            [&b"IHAVEOPT"[..], &number.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data]
                .concat()
        };
        let contexts = [&b"\0\0\0\x01a\0\0\0\x01\0\0\0\x0f"[..], b"base:allocation"].concat();
        [&[0, 0, 0, 3][..], &option(8, &[]), &option(10, &contexts), &option(1, b"a")].concat()
    }

    /// Greeting, two acknowledgements, a context, the export.
    const STRUCTURED_ANSWER: usize = 18 + 20 + 39 + 20 + 10;

    /// Sends a request and takes its structured reply: the kind, then `len` bytes.
    fn ask_structured(client: &mut UnixStream, request: &[u8], len: usize) -> (u16, Vec<u8>) {
        client.write_all(request).unwrap();
        let mut reply = vec![0; 20 + len];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(reply[..6], [0x66, 0x8e, 0x33, 0xef, 0, 1]);
        (u16::from_be_bytes([reply[6], reply[7]]), reply[20..].to_vec())
    }

    #[test]
    fn structured_replies_and_block_status_are_served() {
        with_client(&structured_greeting(), |client| {
            client.read_exact(&mut [0; STRUCTURED_ANSWER]).unwrap();
            let mut ask = |sent: &[u8], len: usize| ask_structured(client, sent, len);
            assert_eq!(ask(&request(0, 1, 0, 1, b"x"), 0), (0, vec![]));
            assert_eq!(ask(&request(0, 0, 0, 1, &[]), 9), (1, b"\0\0\0\0\0\0\0\0x".to_vec()));
            let whole = [1, 4096, 0].map(u32::to_be_bytes).concat();
            assert_eq!(ask(&request(8, 7, 0, 4096, &[]), 12), (5, whole));
            let (kind, error) = ask(&request(0, 0, BYTES, 1, &[]), 6);
            assert_eq!((kind, error[3]), (32769, 22));
            assert_eq!(ask(&request(0, 7, 0, 0, &[]), 6).0, 32769);
        });
    }

    /// A volume that cannot give up a range, and panics where it is asked for holes.
    struct Plain;

    impl Volume for Plain {
        fn bytes(&self) -> u64 {
            BYTES
        }

        fn read(&self, _offset: u64, _buffer: &mut [u8]) -> VolumeResult {
            Ok(())
        }

        fn write(&self, _offset: u64, _data: &[u8]) -> VolumeResult {
            Ok(())
        }

        fn flush(&self) -> VolumeResult {
            Ok(())
        }

        fn extent(&self, _offset: u64, _len: u64) -> (u64, bool) {
            panic!("a fault of the volume");
        }
    }

    #[test]
    fn a_panic_over_holes_is_an_error_of_that_request() {
        with_client_of(&Plain, &structured_greeting(), |client| {
            client.read_exact(&mut [0; STRUCTURED_ANSWER]).unwrap();
            let (kind, error) = ask_structured(client, &request(0, 7, 0, 512, &[]), 6);
            assert_eq!((kind, error[3]), (32769, 5));
            assert_eq!(ask_structured(client, &request(0, 1, 0, 1, b"x"), 0), (0, vec![]));
        });
    }

    #[test]
    fn a_trim_that_a_device_cannot_follow_is_no_error() {
        with_client_of(&Plain, CHOOSE, |client| {
            client.read_exact(&mut [0; 28]).unwrap();
            assert_eq!(ask(client, &request(0, 4, 0, 512, &[]), 0).0, 0);
            assert_eq!(ask(client, &request(0, 4, BYTES, 512, &[]), 0).0, 22);
            // Zeros are no hint.
            assert_eq!(ask(client, &request(0, 6, 0, 512, &[]), 0).0, 95);
        });
    }

    #[test]
    fn numbers_that_the_protocol_lacks_are_io_errors() {
        assert_eq!([28, 61, 5, 1].map(|it| number(ErrorNumber(it))), [28, 5, 5, 1]);
    }
}
