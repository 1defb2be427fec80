//! Requests to block devices, from issue to completion, for the whole machine.
//!
//! A request is known by device, sector and direction. What a device does in parts is one request
//! that shrinks. The table is bounded: when it is full, requests whose completion was never
//! reported make room.
//!
//! A request is misaligned if it begins or ends inside of a block that its medium writes as a
//! whole: a write then makes the device read first.

use super::event::{BlockRequest, Direction, Event, EventKind};
use std::collections::HashMap;

/// The most requests in flight that are remembered; more than all queues of a machine hold.
const IN_FLIGHT_MAX: usize = 16_384;
/// No request takes longer; older ones were lost from sight.
const AGE_NS_MAX: u64 = 120_000_000_000;
/// A full table is searched for them at most so often.
const SEARCH_NS: u64 = 1_000_000_000;
/// The most devices that have figures of their own.
const DEVICES_MAX: usize = 64;
/// Classes of latency: up to 2^4 us, 2^5 us, ... 2^23 us (8.4 s).
pub const CLASSES: std::ops::Range<u32> = 4..24;
/// How many classes there are.
pub const CLASS_COUNT: usize = (CLASSES.end - CLASSES.start) as usize;

/// A request that its device works on.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    issued_ns: u64,
    /// Its first sector, which moves as parts of it are done.
    sector: u64,
    bytes: u32,
    /// Of them, what is not done yet.
    left: u32,
}

/// Requests that were completed in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletedRequests {
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their latencies.
    pub latency_ns: u64,
    /// How many there were in each of [`CLASSES`].
    pub classes: [u64; CLASS_COUNT],
    /// Of them, those that do not begin and end with blocks of the medium.
    pub misaligned: u64,
}

/// RequestSums by direction: reads, writes, flushes.
pub type RequestSums = [CompletedRequests; 3];

/// A device that has figures of its own.
#[derive(Debug)]
pub struct DeviceRequests {
    /// The kernel's number.
    pub number: u32,
    /// What was completed.
    pub sums: RequestSums,
    block_bytes: Option<u64>,
}

/// What all devices did.
#[derive(Debug, Default)]
pub struct RequestTotals {
    /// Reads, writes and flushes that were issued, whether or not their completion was reported.
    pub issued: u64,
    /// All devices together.
    pub all: RequestSums,
    /// Each device by the kernel's number, in the order of their first completion.
    pub devices: Vec<DeviceRequests>,
}

/// Requests of all devices, from events.
#[derive(Debug)]
pub struct Requests {
    in_flight: HashMap<BlockRequest, InFlight>,
    searched_ns: u64,
    totals: RequestTotals,
    block_bytes: fn(u32) -> Option<u64>,
}

impl Requests {
    /// None yet; `block_bytes` gives the unit that the medium of a device writes.
    pub fn new(block_bytes: fn(u32) -> Option<u64>) -> Self {
        Self {
            in_flight: HashMap::new(),
            searched_ns: 0,
            totals: RequestTotals::default(),
            block_bytes,
        }
    }

    /// Takes what an event says of a request.
    pub fn take(&mut self, event: &Event) {
        match event.what {
            EventKind::Issue { request, bytes } => self.issue(request, bytes, event.time_ns),
            EventKind::Complete { request, bytes } => self.complete(request, bytes, event.time_ns),
            EventKind::Requeue { request } => self.requeue(request),
            _ => {}
        }
    }

    /// Forgets the requests that are in flight.
    pub fn forget_begun(&mut self) {
        self.in_flight.clear();
    }

    /// A request goes to its device.
    pub fn issue(&mut self, request: BlockRequest, bytes: u32, time_ns: u64) {
        self.totals.issued += u64::from(request.direction != Direction::Other);
        let is_full = self.in_flight.len() >= IN_FLIGHT_MAX;
        if is_full && time_ns.saturating_sub(self.searched_ns) >= SEARCH_NS {
            self.searched_ns = time_ns;
            let oldest_ns = time_ns.saturating_sub(AGE_NS_MAX);
            self.in_flight.retain(|_, entry| entry.issued_ns > oldest_ns);
        }
        if self.in_flight.len() < IN_FLIGHT_MAX {
            let entry = InFlight { issued_ns: time_ns, sector: request.sector, bytes, left: bytes };
            self.in_flight.insert(request, entry);
        }
    }

    /// The device did `bytes` of a request.
    pub fn complete(&mut self, request: BlockRequest, bytes: u32, time_ns: u64) {
        let Some(mut entry) = self.in_flight.remove(&request) else {
            return;
        };
        if bytes > 0 && bytes < entry.left {
            entry.left -= bytes;
            let rest = BlockRequest { sector: request.sector + u64::from(bytes / 512), ..request };
            self.in_flight.insert(rest, entry);
            return;
        }
        let index = match request.direction {
            Direction::Read => 0,
            Direction::Write => 1,
            Direction::Flush => 2,
            Direction::Other => return,
        };
        let latency_ns = time_ns.saturating_sub(entry.issued_ns);
        self.totals.all[index].add(entry.bytes, latency_ns);
        if let Some(device) = self.totals.device(request.device, self.block_bytes) {
            let ends = [entry.sector * 512, u64::from(entry.bytes)];
            let fits = |block: u64| ends.iter().all(|end| end.is_multiple_of(block));
            let is_misaligned = device.block_bytes.is_some_and(|block| !fits(block));
            device.sums[index].add(entry.bytes, latency_ns);
            device.sums[index].misaligned += u64::from(is_misaligned);
        }
    }

    /// The device sent it back; it will be issued again.
    pub fn requeue(&mut self, request: BlockRequest) {
        if self.in_flight.remove(&request).is_some() {
            self.totals.issued -= u64::from(request.direction != Direction::Other);
        }
    }

    /// The sums so far.
    pub fn totals(&self) -> &RequestTotals {
        &self.totals
    }
}

impl RequestTotals {
    /// The figures of a device, new ones if it has none yet; `None` for too many devices.
    pub fn device(
        &mut self,
        number: u32,
        block_bytes: impl FnOnce(u32) -> Option<u64>,
    ) -> Option<&mut DeviceRequests> {
        let mut devices = self.devices.iter();
        let found = devices.position(|device| device.number == number);
        let index = match found {
            Some(index) => index,
            None if self.devices.len() < DEVICES_MAX => {
                self.devices.push(DeviceRequests {
                    number,
                    sums: RequestSums::default(),
                    block_bytes: block_bytes(number).filter(|bytes| *bytes > 0),
                });
                self.devices.len() - 1
            }
            None => return None,
        };
        Some(&mut self.devices[index])
    }
}

impl CompletedRequests {
    fn add(&mut self, bytes: u32, latency_ns: u64) {
        self.requests += 1;
        self.bytes += u64::from(bytes);
        self.latency_ns += latency_ns;
        let class = CLASSES.clone().position(|power| latency_ns <= 1000 << power);
        if let Some(class) = class {
            self.classes[class] += 1;
        }
    }
}

/// The direction in the kernel's letters: `WS`, `FWS`, `FF`, `RA`.
pub fn direction(letters: &[u8]) -> Direction {
    // A leading F is a flush before the request itself, if there is one.
    let letter = match letters {
        [b'F', next @ (b'R' | b'W' | b'D' | b'N'), ..] => next,
        [first, ..] => first,
        [] => return Direction::Other,
    };
    match letter {
        b'R' => Direction::Read,
        b'W' => Direction::Write,
        b'F' => Direction::Flush,
        _ => Direction::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(sector: u64) -> BlockRequest {
        BlockRequest { device: 7, sector, direction: Direction::Read }
    }

    #[test]
    fn a_request_counts_when_all_of_it_is_done() {
        let mut requests = Requests::new(|_| None);
        requests.issue(request(8), 8192, 1000);
        requests.complete(request(8), 4096, 5000);
        assert_eq!(requests.totals().all[0], CompletedRequests::default(), "half of it");
        requests.complete(request(16), 4096, 101_000);
        let read = requests.totals().all[0];
        assert_eq!((read.requests, read.bytes, read.latency_ns), (1, 8192, 100_000));
        // 100 us lie in the class up to 128 us, the fourth.
        assert_eq!(read.classes.iter().position(|count| *count == 1), Some(3));
        assert_eq!(requests.totals().devices[0].sums, requests.totals().all);
        assert!(requests.in_flight.is_empty());
    }

    #[test]
    fn requests_that_begin_or_end_inside_a_block_are_misaligned() {
        let mut requests = Requests::new(|device| (device == 7).then_some(4096));
        // By sectors of 512 bytes: one that fits, one too short, one that begins inside.
        for (sector, bytes) in [(8, 8192), (24, 512), (33, 4096)] {
            requests.issue(request(sector), bytes, 1);
            requests.complete(request(sector), bytes, 2);
        }
        let elsewhere = BlockRequest { device: 8, ..request(1) };
        requests.issue(elsewhere, 512, 1);
        requests.complete(elsewhere, 512, 2);
        let misaligned = requests.totals().devices.iter().map(|d| d.sums[0].misaligned);
        assert_eq!(misaligned.collect::<Vec<_>>(), [2, 0]);
    }

    #[test]
    fn requests_that_never_end_do_not_fill_the_table() {
        let mut requests = Requests::new(|_| None);
        for sector in 0..2 * IN_FLIGHT_MAX as u64 {
            requests.issue(request(sector), 512, 1);
        }
        assert_eq!(requests.in_flight.len(), IN_FLIGHT_MAX);
        assert_eq!(requests.totals().issued, 2 * IN_FLIGHT_MAX as u64);
        requests.issue(request(u64::MAX), 512, 2 * AGE_NS_MAX);
        assert_eq!(requests.in_flight.len(), 1);
        requests.requeue(request(u64::MAX));
        assert!(requests.in_flight.is_empty());
        assert_eq!(requests.totals().issued, 2 * IN_FLIGHT_MAX as u64, "it went back");
        requests.complete(request(3), 512, 9);
        assert_eq!(requests.totals().all[0].requests, 0, "its issue was not seen");
    }

    #[test]
    fn letters_tell_the_direction() {
        let cases: [(&[u8], Direction); 8] = [
            (b"R\0", Direction::Read),
            (b"RA\0", Direction::Read),
            (b"WS", Direction::Write),
            (b"FWFS", Direction::Write),
            (b"FF", Direction::Flush),
            (b"F\0", Direction::Flush),
            (b"DS", Direction::Other),
            (b"", Direction::Other),
        ];
        for (letters, expected) in cases {
            assert_eq!(direction(letters), expected, "{letters:?}");
        }
    }
}
