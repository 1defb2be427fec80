//! The disks of a guest: files of this process, behind a socket, that take a modelled time.
//!
//! Each connection of QEMU is one disk with two threads. One receives requests and notes when each
//! came, the other serves them in line: a request starts when it has come and the one before is
//! done, and is answered when its service time is over by the clock, so that late wake-ups do not
//! add up.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use model::random::mix;
use serde_json::{Value, json};
use serve::nbd::protocol::{negotiate, read_request, reply};
use serve::nbd::{Export, ExportFeatures, NbdCommand, NbdRequest};
use testkit::TrueSize;
use testkit::disk_model::{self, DiskModel, RequestKind};
use testkit::write_cache::{SECTOR, Stored, WriteCache};

use super::streams::Event;
use crate::error::Error;

/// What the way from the guest to here and back takes anyhow under emulation, seen as 0.2 to 0.4
/// ms. Taken off the wait, not off the service time: the guest sees the model's rate at a depth of
/// one.
const TRANSPORT: Duration = Duration::from_micros(300);

/// The end of a wait, which is not slept.
const WATCHED: Duration = Duration::from_micros(150);

/// Requests received ahead of the one being served: enough to know when the next one came.
const AHEAD: usize = 1;

const EIO: u32 = 5;
const EINVAL: u32 = 22;

/// One disk.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) name: String,
    pub(super) len_bytes: u64,
    file: File,
    /// Less than `len_bytes`, if it is a fake.
    true_size: Option<TrueSize>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    model: Option<DiskModel>,
    counts: Counts,
    cache: Option<WriteCache>,
    /// `None` unless it was asked for.
    log: Option<RequestLog>,
    /// Boots that have ended: a request of one of them that comes late is refused.
    ended: u64,
}

/// What a power cut left of what a disk had not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remains {
    pub(super) kept_sectors: usize,
    pub(super) sectors: usize,
}

/// Each request that reached a disk, in the order in which they were served.
#[derive(Debug)]
struct RequestLog {
    started: Instant,
    lines: String,
}

/// What reached a disk.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    write_bytes: u64,
    flushes: u64,
    service_ns: u64,
}

impl Disk {
    /// A disk in the first `len_bytes` bytes of `file`.
    pub(super) fn new(name: &str, file: File, len_bytes: u64, model: Option<DiskModel>) -> Self {
        let state = State { model, counts: Counts::default(), cache: None, log: None, ended: 0 };
        Self { name: name.to_owned(), len_bytes, file, true_size: None, state: Mutex::new(state) }
    }

    /// As a plain disk, whose requests are reads, writes and flushes alone.
    fn export(&self) -> Export<'_> {
        let features = ExportFeatures::default();
        Export { name: &self.name, bytes: self.len_bytes, features }
    }

    /// The same disk, of which there is only so much.
    pub(super) fn with_true_size(mut self, true_size: TrueSize) -> Self {
        self.true_size = Some(true_size);
        self
    }

    /// The same disk with a volatile write cache.
    pub(super) fn with_write_cache(self) -> Self {
        self.state().cache = Some(WriteCache::default());
        self
    }

    /// The same disk; it notes each request.
    pub(super) fn with_request_log(self) -> Self {
        self.state().log = Some(RequestLog { started: Instant::now(), lines: String::new() });
        self
    }

    /// The requests so far, one a line; empty unless they were to be noted.
    pub(super) fn requests(&self) -> String {
        self.state().log.as_ref().map_or_else(String::new, |log| log.lines.clone())
    }

    /// Ends its use by this boot: what is cached is stored.
    ///
    /// # Errors
    /// When the file takes it not.
    pub(super) fn end_boot(&self) -> io::Result<()> {
        let mut state = self.state();
        state.ended += 1;
        let stored = state.cache.as_mut().map(WriteCache::flush);
        self.store(&stored.unwrap_or_default())
    }

    /// Ends it by a power cut: what is cached is stored in part, by the seed. `None` without a
    /// cache.
    ///
    /// # Errors
    /// When the file takes it not.
    pub(super) fn cut(&self, seed: u64) -> io::Result<Option<Remains>> {
        let mut state = self.state();
        state.ended += 1;
        let Some(cache) = &mut state.cache else { return Ok(None) };
        let sectors = cache.unstored_sectors();
        // Two disks lose different parts.
        let own_seed = self.name.bytes().fold(seed, |hash, byte| mix(hash ^ u64::from(byte)));
        let kept = cache.cut(own_seed);
        self.store(&kept)?;
        Ok(Some(Remains { kept_sectors: kept.len(), sectors }))
    }

    /// What reached it so far; `service_ns` is the model's time, 0 without a model.
    pub(super) fn counts(&self) -> Value {
        let counts = self.state().counts;
        json!({
            "reads": counts.reads,
            "read_bytes": counts.read_bytes,
            "writes": counts.writes,
            "write_bytes": counts.write_bytes,
            "flushes": counts.flushes,
            "service_ns": counts.service_ns,
        })
    }

    /// Does what is asked; what was read, or an error number. `boot` is the number of boots that
    /// had ended when the client came.
    fn perform(&self, request: &NbdRequest, data: &[u8], boot: u64) -> Result<Vec<u8>, u32> {
        let is_inside = request
            .offset
            .checked_add(u64::from(request.len))
            .is_some_and(|end| end <= self.len_bytes);
        let mut state = self.state();
        if state.ended != boot {
            return Err(EIO);
        }
        let outcome = match request.command {
            NbdCommand::Read if is_inside => {
                let len = request.len as usize;
                self.read(state.cache.as_ref(), request.offset, len)
            }
            NbdCommand::Write if is_inside => {
                self.write(state.cache.as_mut(), request, data).map(|()| Vec::new())
            }
            // Without a cache every byte is in the file already, which ends with this machine's
            // power.
            NbdCommand::Flush => {
                let stored = state.cache.as_mut().map(WriteCache::flush);
                self.store(&stored.unwrap_or_default()).map(|()| Vec::new())
            }
            _ => return Err(EINVAL),
        };
        outcome.map_err(|error| number(&error))
    }

    /// Reads whole sectors around the range, because that is what is cached.
    fn read(&self, cache: Option<&WriteCache>, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let before = if cache.is_some() { (offset % SECTOR as u64) as usize } else { 0 };
        let around = if cache.is_some() { (before + len).next_multiple_of(SECTOR) } else { len };
        let mut data = vec![0; around];
        self.read_file(&mut data, offset - before as u64)?;
        if let Some(cache) = cache {
            cache.overlay(offset - before as u64, &mut data);
        }
        data.drain(..before);
        data.truncate(len);
        Ok(data)
    }

    fn write(
        &self,
        cache: Option<&mut WriteCache>,
        request: &NbdRequest,
        data: &[u8],
    ) -> io::Result<()> {
        let offset = request.offset;
        let Some(cache) = cache else {
            return self.write_file(data, offset);
        };
        // QEMU writes whole sectors; another client need not.
        let before = (offset % SECTOR as u64) as usize;
        let around = (before + data.len()).next_multiple_of(SECTOR);
        let first = offset - before as u64;
        let mut whole = self.read(Some(cache), first, around)?;
        whole[before..before + data.len()].copy_from_slice(data);
        if request.is_durable {
            cache.forget(first, around);
            return self.write_file(&whole, first);
        }
        self.store(&cache.write(first, &whole))
    }

    fn store(&self, sectors: &[Stored]) -> io::Result<()> {
        sectors.iter().try_for_each(|(offset, data)| self.write_file(data, *offset))
    }

    fn read_file(&self, data: &mut [u8], offset: u64) -> io::Result<()> {
        let mut rest = data;
        for (place, len) in self.places(offset, rest.len()) {
            let (part, behind) = rest.split_at_mut(len as usize);
            match place {
                Some(at) => self.file.read_exact_at(part, at)?,
                None => part.fill(0),
            }
            rest = behind;
        }
        Ok(())
    }

    fn write_file(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut rest = data;
        for (place, len) in self.places(offset, data.len()) {
            let (part, behind) = rest.split_at(len as usize);
            if let Some(at) = place {
                self.file.write_all_at(part, at)?;
            }
            rest = behind;
        }
        Ok(())
    }

    /// Where a range is in the file, as [`TrueSize::places`].
    fn places(&self, offset: u64, len: usize) -> Vec<(Option<u64>, u64)> {
        let whole = || vec![(Some(offset), len as u64)];
        self.true_size.map_or_else(whole, |size| size.places(offset, len as u64))
    }

    /// Counts a request that was done, before which the disk was idle for `idle`; how long the disk
    /// is busy with it, `None` without a model.
    fn account(&self, came: Instant, idle: Duration, request: &NbdRequest) -> Option<Duration> {
        let len = u64::from(request.len);
        let mut state = self.state();
        let State { model, counts, log, .. } = &mut *state;
        let kind = match request.command {
            NbdCommand::Read => {
                counts.reads += 1;
                counts.read_bytes += len;
                RequestKind::Read
            }
            NbdCommand::Write => {
                counts.writes += 1;
                counts.write_bytes += len;
                RequestKind::Write
            }
            _ => {
                counts.flushes += 1;
                RequestKind::Flush
            }
        };
        let modelled = disk_model::DiskRequest { kind, offset: request.offset, len };
        let service_ns = model.as_mut().map(|model| {
            model.idle(idle.as_nanos() as u64);
            model.service_ns(modelled)
        });
        if let Some(log) = log {
            let came_us = came.saturating_duration_since(log.started).as_micros();
            let (name, offset) = (&self.name, request.offset);
            let service_us = service_ns.unwrap_or(0) / 1000;
            // Writing to a string cannot fail.
            let _ = writeln!(log.lines, "{name} {kind:?} {offset} {len} {came_us} {service_us}");
        }
        counts.service_ns += service_ns?;
        service_ns.map(Duration::from_nanos)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Plain numbers: a thread that panicked elsewhere leaves no half of them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the socket `path` and serves one connection for each disk, in threads.
///
/// # Errors
/// When the socket cannot be made.
pub(super) fn listen(
    path: &Path,
    disks: &[Arc<Disk>],
    events: &Sender<Event>,
) -> Result<(), Error> {
    let listener = UnixListener::bind(path).map_err(Error::io("make", path))?;
    let (disks, events) = (disks.to_vec(), events.clone());
    thread::spawn(move || {
        for stream in listener.incoming().take(disks.len()).flatten() {
            // Nobody listens any more when the guest has ended.
            let _ = events.send(Event::Connected);
            let disks = disks.clone();
            thread::spawn(move || {
                // A connection that QEMU loses is an error in the guest, and seen there.
                let _ = serve(stream, &disks);
            });
        }
    });
    Ok(())
}

/// Serves one connection to its end; the client chooses the disk.
fn serve(mut stream: UnixStream, disks: &[Arc<Disk>]) -> io::Result<()> {
    let exports: Vec<_> = disks.iter().map(|disk| disk.export()).collect();
    let Some(agreed) = negotiate(&mut stream, &exports)? else {
        return Ok(());
    };
    let chosen = agreed.export;
    let boot = disks[chosen].state().ended;
    let incoming = stream.try_clone()?;
    let (sender, receiver) = mpsc::sync_channel(AHEAD);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(incoming, sender));
        let served = answer(&mut stream, &disks[chosen], boot, receiver);
        // Ends the receiver too, whoever of the two met the error.
        let _ = stream.shutdown(std::net::Shutdown::Both);
        let received =
            receiving.join().unwrap_or_else(|_| Err(io::Error::other("the receiver panicked")));
        served.and(received)
    })
}

/// A request, when it came, and what it writes.
type Received = (Instant, NbdRequest, Vec<u8>);

/// Hands over each request with the time at which it came.
fn receive(mut stream: UnixStream, sender: SyncSender<Received>) -> io::Result<()> {
    let mut data = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut data)? {
        let has_left = request.command == NbdCommand::Disconnect;
        if has_left || sender.send((Instant::now(), request, std::mem::take(&mut data))).is_err() {
            break;
        }
    }
    Ok(())
}

fn answer(
    stream: &mut UnixStream,
    disk: &Disk,
    boot: u64,
    requests: Receiver<Received>,
) -> io::Result<()> {
    let mut idle_from = Instant::now();
    for (came, request, data) in requests {
        let outcome = disk.perform(&request, &data, boot);
        if outcome.is_ok()
            && let Some(service) =
                disk.account(came, came.saturating_duration_since(idle_from), &request)
        {
            idle_from = idle_from.max(came) + service;
            let answer_at = idle_from.checked_sub(TRANSPORT).unwrap_or(idle_from);
            wait_until(answer_at);
        }
        let data = outcome.as_deref().map_err(|error| *error);
        reply(stream, request.cookie, data)?;
    }
    Ok(())
}

/// Sleeps, and for the end of it looks at the clock: to a sleep the kernel adds its slack of 50 us
/// and a wake-up, a third of what a disk takes for the next 32 KiB.
fn wait_until(end: Instant) {
    let rest = || end.saturating_duration_since(Instant::now());
    thread::sleep(rest().saturating_sub(WATCHED));
    while !rest().is_zero() {
        std::hint::spin_loop();
    }
}

fn number(error: &io::Error) -> u32 {
    error.raw_os_error().and_then(|number| u32::try_from(number).ok()).unwrap_or(EIO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use testkit::Beyond;

    /// Connects to a disk of 1 MiB, does `talk`, and gives the disk back.
    fn with_disk(model: Option<DiskModel>, talk: impl FnOnce(&mut UnixStream)) -> Arc<Disk> {
        let disk = Arc::new(new_disk(model).with_request_log());
        talk_to(&disk, talk);
        disk
    }

    fn new_disk(model: Option<DiskModel>) -> Disk {
        let folder = testkit::TempDir::new();
        let path = folder.join("disk");
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(path).unwrap();
        file.set_len(1 << 20).unwrap();
        Disk::new("d", file, 1 << 20, model)
    }

    fn talk_to(disk: &Arc<Disk>, talk: impl FnOnce(&mut UnixStream)) {
        let disks = [Arc::clone(disk)];
        let (mut client, server) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| serve(server, &disks));
            client.write_all(&[0, 0, 0, 3]).unwrap();
            client.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\x01d").unwrap();
            client.read_exact(&mut [0; 28]).unwrap();
            talk(&mut client);
            drop(client);
        });
    }

    fn send(client: &mut UnixStream, command: u16, offset: u64, len: u32, data: &[u8]) {
        send_flagged(client, 0, command, offset, len, data);
    }

    fn send_flagged(
        client: &mut UnixStream,
        flags: u16,
        command: u16,
        offset: u64,
        len: u32,
        data: &[u8],
    ) {
        let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(len.to_be_bytes());
        bytes.extend(data);
        client.write_all(&bytes).unwrap();
    }

    /// The error number of the next reply, after which `data` is filled.
    fn hear(client: &mut UnixStream, data: &mut [u8]) -> u32 {
        let mut head = [0; 16];
        client.read_exact(&mut head).unwrap();
        client.read_exact(data).unwrap();
        u32::from_be_bytes([head[4], head[5], head[6], head[7]])
    }

    #[test]
    fn what_was_written_is_read_and_counted() {
        let disk = with_disk(None, |client| {
            send(client, 1, 4096, 3, b"abc");
            assert_eq!(hear(client, &mut []), 0);
            send(client, 3, 0, 0, &[]);
            assert_eq!(hear(client, &mut []), 0);
            let mut data = [9; 5];
            send(client, 0, 4095, 5, &[]);
            assert_eq!(hear(client, &mut data), 0);
            assert_eq!(&data, b"\0abc\0");
        });
        assert!(disk.requests().starts_with("d Write 4096 3 "), "{}", disk.requests());
        let counts = disk.counts();
        assert_eq!((&counts["writes"], &counts["write_bytes"]), (&1.into(), &3.into()));
        assert_eq!((&counts["reads"], &counts["flushes"]), (&1.into(), &1.into()));
    }

    #[test]
    fn a_fake_disk_forgets_or_wraps_and_says_nothing() {
        for (beyond, has_cache) in [
            (Beyond::Dropped, false),
            (Beyond::Dropped, true),
            (Beyond::Wraps, false),
            (Beyond::Wraps, true),
        ] {
            let fake = new_disk(None).with_true_size(TrueSize { bytes: 8192, beyond });
            let disk = Arc::new(if has_cache { fake.with_write_cache() } else { fake });
            talk_to(&disk, |client| {
                for (offset, data) in [(8191, b"ba"), (16384, b"cd")] {
                    send(client, 1, offset, 2, data);
                    assert_eq!(hear(client, &mut []), 0);
                }
                send(client, 3, 0, 0, &[]);
                assert_eq!(hear(client, &mut []), 0);
                let mut read = |offset| {
                    let mut data = [9; 2];
                    send(client, 0, offset, 2, &[]);
                    assert_eq!(hear(client, &mut data), 0);
                    data
                };
                let (across, start, behind) = match beyond {
                    Beyond::Dropped => (b"b\0", b"\0\0", b"\0\0"),
                    Beyond::Wraps => (b"bc", b"cd", b"cd"),
                };
                assert_eq!((&read(8191), &read(0), &read(16384)), (across, start, behind));
            });
        }
    }

    #[test]
    fn a_burst_comes_back_while_the_disk_waits_for_requests() {
        let timing =
            "usb,write_ms=0,jump_write_ms=0,write_bps=1e6,burst_bytes=4096,burst_bps=1e9".parse();
        let model = DiskModel::new(timing.unwrap(), 1 << 20);
        let disk = with_disk(Some(model), |client| {
            for _ in 0..2 {
                send(client, 1, 0, 4096, &[7; 4096]);
                assert_eq!(hear(client, &mut []), 0);
                thread::sleep(Duration::from_millis(20));
            }
        });
        // Each takes 4 us; without its room the second would take 4 ms.
        let service_ns = disk.counts()["service_ns"].as_u64().unwrap();
        assert!(service_ns < 1_000_000, "{service_ns} ns");
    }

    #[test]
    fn what_lies_outside_is_an_error_and_not_the_end() {
        let disk = with_disk(None, |client| {
            for offset in [(1 << 20) - 1, u64::MAX] {
                send(client, 0, offset, 2, &[]);
                assert_eq!(hear(client, &mut []), EINVAL);
            }
            send(client, 9, 0, 0, &[]);
            assert_eq!(hear(client, &mut []), EINVAL);
            send(client, 0, 0, 1, &[]);
            assert_eq!(hear(client, &mut [0]), 0);
        });
        assert_eq!(disk.counts()["reads"], 1);
    }

    /// The bytes in the file, at the start of each of the first five pages.
    fn stored(disk: &Disk) -> [u8; 5] {
        std::array::from_fn(|page| {
            let mut byte = [0];
            disk.file.read_exact_at(&mut byte, page as u64 * 4096).unwrap();
            byte[0]
        })
    }

    #[test]
    fn what_was_flushed_or_written_through_survives_every_cut_and_the_rest_some() {
        let mut remains = Vec::new();
        for seed in 0..20 {
            let disk = Arc::new(new_disk(None).with_write_cache());
            talk_to(&disk, |client| {
                let mut done = |flags, command, page: u64, byte| {
                    let data = if command == 1 { vec![byte; 4096] } else { Vec::new() };
                    send_flagged(client, flags, command, page << 12, data.len() as u32, &data);
                    assert_eq!(hear(client, &mut []), 0);
                };
                done(0, 1, 0, 1);
                done(0, 3, 0, 0);
                done(0, 1, 1, 2);
                done(1, 1, 2, 3);
                // Older than the write through, which it must not replace.
                done(0, 1, 3, 4);
                done(1, 1, 3, 5);
                assert_eq!(stored(&disk), [1, 0, 3, 5, 0]);
                let mut data = [0; 2];
                send(client, 0, 8191, 2, &[]);
                assert_eq!(hear(client, &mut data), 0);
                assert_eq!(data, [2, 3]);
            });
            let left = disk.cut(seed).unwrap().unwrap();
            let [flushed, cached, through, twice, _] = stored(&disk);
            assert_eq!((flushed, through, twice), (1, 3, 5));
            assert!(cached == 0 || cached == 2);
            assert_eq!(left.sectors, 8);
            remains.push(left.kept_sectors);
        }
        assert!(remains.contains(&0) && remains.contains(&8), "{remains:?}");
        assert!(remains.iter().any(|kept| (1..8).contains(kept)), "{remains:?}");
    }

    #[test]
    fn without_a_cut_all_is_kept_and_a_late_request_is_refused() {
        let disk = Arc::new(new_disk(None).with_write_cache());
        talk_to(&disk, |client| {
            send(client, 1, 5, 3, b"abc");
            assert_eq!(hear(client, &mut []), 0);
            disk.end_boot().unwrap();
            send(client, 1, 5, 3, b"xyz");
            assert_eq!(hear(client, &mut []), EIO);
        });
        talk_to(&disk, |client| {
            let mut data = [0; 4];
            send(client, 0, 5, 4, &[]);
            assert_eq!(hear(client, &mut data), 0);
            assert_eq!(&data, b"abc\0");
        });
    }

    #[test]
    fn requests_that_come_together_are_served_in_line() {
        let timing = "sd,read_ms=20".parse().unwrap();
        let model = DiskModel::new(timing, 1 << 20);
        let disk = with_disk(Some(model), |client| {
            let started = Instant::now();
            for _ in 0..5 {
                send(client, 0, 0, 1, &[]);
            }
            for _ in 0..5 {
                assert_eq!(hear(client, &mut [0]), 0);
            }
            // The least that the model demands; a busy machine may take longer.
            assert!(started.elapsed() + TRANSPORT >= Duration::from_millis(100));
        });
        let service_ns = disk.counts()["service_ns"].as_u64().unwrap();
        assert!((100_000_000..101_000_000).contains(&service_ns));
    }
}
