//! How long a disk takes for a request: a hard disk, a USB stick, an SD card.
//!
//! The idea: a disk has one head (or one flash channel), so it serves one request at a time and
//! only the place of the last one matters for the next. The model gives the service time; the
//! server of the requests (a network block device, a file system) queues them and waits. Pure: no
//! clock, no I/O.
//!
//! The figures are those of common devices of each kind, not of one product. No write cache is
//! modelled: a write takes its time at once, and a flush only that of a command.

mod flash;

use std::fmt;
use std::str::FromStr;

use flash::{BurstArea, OpenBlock};
use model::bytes::Bytes;

use crate::Random;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Bytes from the disk.
    Read,
    /// Bytes to the disk.
    Write,
    /// Make durable what was written; has no place.
    Flush,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRequest {
    /// What it does.
    pub kind: RequestKind,
    /// Its first byte, from the start of the disk.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
}

/// A head that must travel to where a request begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head {
    /// To the next track.
    pub seek_min_ms: f64,
    /// Across the whole disk. In between, the time grows with the square root of the distance.
    pub seek_max_ms: f64,
    /// One turn of the platter; waiting takes anything from nothing to this.
    pub turn_ms: f64,
}

/// The parts that a service time is made of.
///
/// As text: `hdd`, `usb` or `sd`, then any field changed, as in
/// `usb,read_ms=1.5,write_bps=5000000,burst_bytes=64M,burst_bps=60000000,erase_bytes=4M`.
/// None of the three kinds has a burst or erase blocks unless they are asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Each read, wherever it is.
    pub read_ms: f64,
    /// Each write, wherever it is; also each flush.
    pub write_ms: f64,
    /// Added to a read that does not begin where the last request ended.
    pub jump_read_ms: f64,
    /// Added to such a write, unless the disk has erase blocks: then it takes what those cost.
    pub jump_write_ms: f64,
    /// Bytes a second, reading.
    pub read_bps: f64,
    /// Bytes a second, writing, for as long as one likes.
    pub write_bps: f64,
    /// Writes go at `burst_bps` until so many bytes were written, then at `write_bps`. While the
    /// disk is idle, room for new ones comes back at `write_bps`. 0: no burst.
    pub burst_bytes: u64,
    /// Bytes a second, writing, while there is room for a burst. Set with `burst_bytes`.
    pub burst_bps: f64,
    /// The size of an erase block. A write that does not begin where the last one ended makes the
    /// controller copy the rest of the block that was being written, and what lies before the write
    /// in its own block: read at `read_bps`, written at `write_bps`. 0: none is modelled.
    pub erase_bytes: u64,
    /// Added to a read for each end of an erase block inside of it.
    pub cross_read_ms: f64,
    /// The moving head, for disks that have one.
    pub head: Option<Head>,
}

/// A 3.5 inch disk of 7200 turns a minute: 8.33 ms a turn, about 13 ms for a random read.
const HDD: Timing = Timing {
    read_ms: 0.1,
    write_ms: 0.1,
    jump_read_ms: 0.0,
    jump_write_ms: 0.0,
    read_bps: 150e6,
    write_bps: 150e6,
    burst_bytes: 0,
    burst_bps: 0.0,
    erase_bytes: 0,
    cross_read_ms: 0.0,
    head: Some(Head { seek_min_ms: 1.0, seek_max_ms: 15.5, turn_ms: 8.33 }),
};

/// A cheap USB stick: random writes make its controller copy whole erase blocks.
const USB: Timing = Timing {
    read_ms: 0.8,
    write_ms: 1.0,
    jump_read_ms: 0.0,
    jump_write_ms: 8.0,
    read_bps: 25e6,
    write_bps: 7e6,
    burst_bytes: 0,
    burst_bps: 0.0,
    erase_bytes: 0,
    cross_read_ms: 0.3,
    head: None,
};

/// An SD card of the common class A1.
const SD: Timing = Timing {
    read_ms: 0.6,
    write_ms: 1.0,
    jump_read_ms: 0.0,
    jump_write_ms: 4.0,
    read_bps: 40e6,
    write_bps: 15e6,
    burst_bytes: 0,
    burst_bps: 0.0,
    erase_bytes: 0,
    cross_read_ms: 0.3,
    head: None,
};

impl Timing {
    /// Sets the field called `key`; the error says which there are or what is wrong with the value.
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let size = match key {
            "burst_bytes" => Some(&mut self.burst_bytes),
            "erase_bytes" => Some(&mut self.erase_bytes),
            _ => None,
        };
        if let Some(size) = size {
            *size = value.parse::<Bytes>().map_err(|error| format!("{key}: {error}"))?.0;
            return Ok(());
        }
        let is_rate = key.ends_with("_bps");
        let least = if is_rate { 1.0 } else { 0.0 };
        let number = value
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite() && *number >= least)
            .ok_or_else(|| format!("bad {key} {value:?}"))?;
        *self.field(key)? = number;
        Ok(())
    }

    fn field(&mut self, key: &str) -> Result<&mut f64, String> {
        match (key, &mut self.head) {
            ("read_ms", _) => Ok(&mut self.read_ms),
            ("write_ms", _) => Ok(&mut self.write_ms),
            ("jump_read_ms", _) => Ok(&mut self.jump_read_ms),
            ("jump_write_ms", _) => Ok(&mut self.jump_write_ms),
            ("read_bps", _) => Ok(&mut self.read_bps),
            ("write_bps", _) => Ok(&mut self.write_bps),
            ("burst_bps", _) => Ok(&mut self.burst_bps),
            ("cross_read_ms", _) => Ok(&mut self.cross_read_ms),
            ("seek_min_ms", Some(head)) => Ok(&mut head.seek_min_ms),
            ("seek_max_ms", Some(head)) => Ok(&mut head.seek_max_ms),
            ("turn_ms", Some(head)) => Ok(&mut head.turn_ms),
            _ => Err(format!(
                "no key {key:?}; there are read_ms, write_ms, jump_read_ms, jump_write_ms, read_bps, \
                 write_bps, burst_bytes, burst_bps, erase_bytes, cross_read_ms, and of an hdd \
                 seek_min_ms, seek_max_ms, turn_ms"
            )),
        }
    }

    /// What no single field shows to be wrong.
    fn check(self) -> Result<Self, String> {
        if (self.burst_bytes > 0) == (self.burst_bps > 0.0) {
            Ok(self)
        } else {
            Err("burst_bytes and burst_bps go together".to_owned())
        }
    }
}

impl FromStr for Timing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let mut timing = match parts.next() {
            Some("hdd") => HDD,
            Some("usb") => USB,
            Some("sd") => SD,
            other => {
                let name = other.unwrap_or_default();
                return Err(format!("no model {name:?}; there are hdd, usb, sd"));
            }
        };
        for part in parts {
            let (key, value) =
                part.split_once('=').ok_or_else(|| format!("{part:?} is not KEY=VALUE"))?;
            timing.set(key, value)?;
        }
        timing.check()
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bps: f64| bps / 1e6;
        write!(f, "read {} ms", self.read_ms + self.jump_read_ms)?;
        write!(f, " + {} MB/s", megabytes(self.read_bps))?;
        let jump_write_ms = if self.erase_bytes > 0 { 0.0 } else { self.jump_write_ms };
        write!(f, ", write {} ms", self.write_ms + jump_write_ms)?;
        write!(f, " + {} MB/s", megabytes(self.write_bps))?;
        if self.burst_bytes > 0 {
            write!(f, " after {} at", Bytes(self.burst_bytes))?;
            write!(f, " {} MB/s", megabytes(self.burst_bps))?;
        }
        if self.erase_bytes > 0 {
            write!(f, ", erase blocks of {}", Bytes(self.erase_bytes))?;
        }
        match self.head {
            None => Ok(()),
            Some(head) => write!(
                f,
                ", seek {} to {} ms, turn {} ms",
                head.seek_min_ms, head.seek_max_ms, head.turn_ms
            ),
        }
    }
}

/// A disk: its timing, and where its last request ended.
#[derive(Clone, Debug)]
pub struct DiskModel {
    timing: Timing,
    len_bytes: u64,
    /// Where the last request ended.
    position: u64,
    burst: BurstArea,
    open_block: OpenBlock,
    /// Where the platter stands when the head arrives. From a fixed seed: a run can be repeated.
    random: Random,
}

impl DiskModel {
    /// A disk of `len_bytes` bytes with its head at the start.
    #[must_use]
    pub fn new(timing: Timing, len_bytes: u64) -> Self {
        Self {
            timing,
            len_bytes: len_bytes.max(1),
            position: 0,
            burst: BurstArea::default(),
            open_block: OpenBlock::default(),
            random: Random(1),
        }
    }

    /// A hard disk of 7200 turns a minute.
    #[must_use]
    pub fn hdd(len_bytes: u64) -> Self {
        Self::new(HDD, len_bytes)
    }

    /// A cheap USB stick.
    #[must_use]
    pub fn usb(len_bytes: u64) -> Self {
        Self::new(USB, len_bytes)
    }

    /// An SD card.
    #[must_use]
    pub fn sd(len_bytes: u64) -> Self {
        Self::new(SD, len_bytes)
    }

    /// What its times are made of.
    #[must_use]
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// The disk has waited so long for the next request; a server says so before it asks for the
    /// time of that. Without it a disk is never idle.
    pub fn idle(&mut self, idle_ns: u64) {
        self.burst.empty(idle_ns, self.timing.write_bps);
    }

    /// How long the disk is busy with this request, in nanoseconds, given all that came before it.
    pub fn service_ns(&mut self, request: DiskRequest) -> u64 {
        let timing = self.timing;
        let is_jump = request.offset != self.position;
        let service_ms = match request.kind {
            RequestKind::Read => {
                let jump_ms = if is_jump { timing.jump_read_ms } else { 0.0 };
                timing.read_ms + jump_ms + self.read_transfer_ms(request)
            }
            RequestKind::Write => {
                let has_blocks = timing.erase_bytes > 0;
                let jump_ms = if is_jump && !has_blocks { timing.jump_write_ms } else { 0.0 };
                timing.write_ms + jump_ms + self.write_transfer_ms(request)
            }
            RequestKind::Flush => return nanoseconds(timing.write_ms),
        };
        let bps = match request.kind {
            RequestKind::Read => timing.read_bps,
            _ => timing.write_bps,
        };
        let travel_ms = if is_jump { self.travel_ms(request.offset, bps) } else { 0.0 };
        self.position = request.offset.saturating_add(request.len);
        nanoseconds(service_ms + travel_ms)
    }

    fn read_transfer_ms(&self, request: DiskRequest) -> f64 {
        let Timing { read_bps, erase_bytes, cross_read_ms, .. } = self.timing;
        let crossed = match erase_bytes {
            0 => 0,
            _ => flash::block_ends_within(request.offset, request.len, erase_bytes),
        };
        transfer_ms(request.len as f64, read_bps) + crossed as f64 * cross_read_ms
    }

    fn write_transfer_ms(&mut self, request: DiskRequest) -> f64 {
        let Timing { read_bps, write_bps, burst_bytes, burst_bps, erase_bytes, .. } = self.timing;
        let (mut burst, mut copied) = (0.0, 0);
        if burst_bytes > 0 {
            burst = self.burst.take(request.len, burst_bytes);
        }
        if erase_bytes > 0 {
            copied = self.open_block.write(request.offset, request.len, erase_bytes);
        }
        let burst_ms = if burst > 0.0 { transfer_ms(burst, burst_bps) } else { 0.0 };
        let copy_ms = transfer_ms(copied as f64, read_bps) + transfer_ms(copied as f64, write_bps);
        burst_ms + transfer_ms(request.len as f64 - burst, write_bps) + copy_ms
    }

    /// How long the head takes to stand over `target`.
    fn travel_ms(&mut self, target: u64, bps: f64) -> f64 {
        let Some(head) = self.timing.head else {
            return 0.0;
        };
        let gap = self.position.abs_diff(target);
        let share = (gap as f64 / self.len_bytes as f64).min(1.0).sqrt();
        let seek_ms = head.seek_min_ms + (head.seek_max_ms - head.seek_min_ms) * share;
        let turned = self.random.below(1 << 32) as f64 / (1u64 << 32) as f64;
        let travel_ms = seek_ms + head.turn_ms * turned;
        // What lies a little ahead comes under the head by itself.
        if target > self.position { travel_ms.min(transfer_ms(gap as f64, bps)) } else { travel_ms }
    }
}

fn transfer_ms(bytes: f64, bps: f64) -> f64 {
    bytes / bps * 1e3
}

fn nanoseconds(milliseconds: f64) -> u64 {
    (milliseconds.max(0.0) * 1e6) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn read(offset: u64, len: u64) -> DiskRequest {
        DiskRequest { kind: RequestKind::Read, offset, len }
    }

    fn write(offset: u64, len: u64) -> DiskRequest {
        DiskRequest { kind: RequestKind::Write, offset, len }
    }

    /// Requests a second, one after another, at random places.
    fn random_iops(mut disk: DiskModel, kind: RequestKind) -> f64 {
        let mut random = Random(9);
        let count = 2000;
        let total_ns: u64 = (0..count)
            .map(|_| {
                let offset = random.below(disk.len_bytes / 4096) * 4096;
                disk.service_ns(DiskRequest { kind, offset, len: 4096 })
            })
            .sum();
        f64::from(count) * 1e9 / total_ns as f64
    }

    #[test]
    fn random_requests_come_at_the_rate_of_their_kind_of_disk() {
        let expect = |disk, kind, low: f64, high: f64| {
            let iops = random_iops(disk, kind);
            assert!((low..high).contains(&iops), "{iops}");
        };
        // 8.73 ms of seek, 4.17 ms of turn, 0.13 ms of command and transfer.
        expect(DiskModel::hdd(4 * GIB), RequestKind::Read, 74.0, 80.0);
        expect(DiskModel::hdd(4 * GIB), RequestKind::Write, 74.0, 80.0);
        expect(DiskModel::usb(GIB), RequestKind::Read, 1030.0, 1045.0);
        expect(DiskModel::usb(GIB), RequestKind::Write, 100.0, 110.0);
        expect(DiskModel::sd(GIB), RequestKind::Read, 1400.0, 1450.0);
        expect(DiskModel::sd(GIB), RequestKind::Write, 185.0, 195.0);
    }

    #[test]
    fn a_sequential_request_takes_only_its_command_and_its_transfer() {
        let mut disk = DiskModel::hdd(GIB);
        assert_eq!(disk.service_ns(read(0, 1_500_000)), 10_100_000);
        assert_eq!(disk.service_ns(write(1_500_000, 1_500_000)), 10_100_000);
        let mut stick = DiskModel::usb(GIB);
        assert_eq!(stick.service_ns(write(0, 7000)), 2_000_000);
        assert_eq!(stick.service_ns(write(0, 7000)), 10_000_000);
        assert_eq!(stick.service_ns(read(0, 25_000)), 1_800_000);
    }

    #[test]
    fn a_seek_grows_with_the_distance_and_a_short_gap_ahead_is_waited_out() {
        let timing: Timing = "hdd,turn_ms=0".parse().unwrap();
        let after_seek = |from: u64, to: u64| {
            let mut disk = DiskModel::new(timing, GIB);
            disk.service_ns(read(from, 0));
            disk.service_ns(read(to, 0))
        };
        assert_eq!(after_seek(0, GIB), 15_600_000);
        assert_eq!(after_seek(0, GIB / 4), 8_350_000);
        assert_eq!(after_seek(GIB, 0), 15_600_000);
        assert_eq!(after_seek(0, 150_000), 1_100_000, "1 ms of passing under");
        assert!(after_seek(150_000, 0) > 1_100_000, "never backwards");
    }

    #[test]
    fn a_burst_ends_and_comes_back_while_idle() {
        let timing = "usb,write_ms=0,write_bps=5000000,burst_bytes=4MB,burst_bps=40000000";
        let mut stick = DiskModel::new(timing.parse().unwrap(), GIB);
        let mut at = 0;
        let mut write_ms = |stick: &mut DiskModel, len: u64| {
            at += len;
            stick.service_ns(write(at - len, len)) as f64 / 1e6
        };
        assert_eq!(write_ms(&mut stick, 2_000_000), 50.0);
        assert_eq!(write_ms(&mut stick, 3_000_000), 50.0 + 200.0, "the last third is late");
        assert_eq!(write_ms(&mut stick, 1_000_000), 200.0);
        stick.service_ns(read(0, 25_000_000));
        assert_eq!(write_ms(&mut stick, 1_000_000), 8.0 + 200.0, "reading is not idle");
        stick.idle(100_000_000);
        assert_eq!(write_ms(&mut stick, 1_000_000), 12.5 + 100.0);
        stick.idle(60_000_000_000);
        assert_eq!(write_ms(&mut stick, 5_000_000), 100.0 + 200.0);
    }

    #[test]
    fn a_write_inside_of_an_erase_block_copies_what_the_block_holds() {
        let timing = "usb,erase_bytes=1MB,read_bps=20000000,write_bps=10000000";
        let stick = || DiskModel::new(timing.parse().unwrap(), GIB);
        let mut sequential = stick();
        assert_eq!(sequential.service_ns(write(0, 500_000)), 51_000_000);
        assert_eq!(sequential.service_ns(write(500_000, 500_000)), 51_000_000);
        assert_eq!(sequential.service_ns(write(7_000_000, 1_000_000)), 101_000_000, "a whole one");
        // 0.2 MB are read in 10 ms and written in 20.
        assert_eq!(sequential.service_ns(write(2_200_000, 0)), 31_000_000);
        // At random places a block is copied for each: 50 + 100 ms.
        let iops = random_iops(stick(), RequestKind::Write);
        assert!((6.4..6.8).contains(&iops), "{iops}");
    }

    #[test]
    fn a_read_across_the_end_of_an_erase_block_takes_longer() {
        let timing = "usb,erase_bytes=1M,cross_read_ms=0.5,read_bps=1e9";
        let mut stick = DiskModel::new(timing.parse().unwrap(), GIB);
        let mut read_ns = |offset| stick.service_ns(read(offset, 8192));
        let (before, across) = (read_ns((5 << 20) - 8192), read_ns((5 << 20) - 4096));
        assert_eq!(across, before + 500_000);
        assert_eq!(read_ns(5 << 20), before);
        assert_eq!(read_ns((5 << 19) - 4096), before, "the middle of a block");
    }

    #[test]
    fn a_flush_moves_nothing() {
        let mut disk = DiskModel::hdd(GIB);
        disk.service_ns(read(0, 4096));
        let flush = DiskRequest { kind: RequestKind::Flush, offset: 0, len: 0 };
        assert_eq!(disk.service_ns(flush), 100_000);
        assert_eq!(disk.service_ns(read(4096, 0)), 100_000);
    }

    #[test]
    fn a_run_repeats() {
        let run = || random_iops(DiskModel::hdd(GIB), RequestKind::Read).to_bits();
        assert_eq!(run(), run());
    }

    #[test]
    fn a_model_is_read_with_its_changes_and_shown() {
        let timing: Timing = "usb,read_ms=2,write_bps=5000000".parse().unwrap();
        assert_eq!(timing.to_string(), "read 2 ms + 25 MB/s, write 9 ms + 5 MB/s");
        let mut disk = DiskModel::new(timing, GIB);
        assert_eq!(disk.service_ns(read(0, 0)), 2_000_000);
        assert_eq!("hdd".parse(), Ok(DiskModel::hdd(1).timing()));
        let stick: Timing = "sd,burst_bytes=64M,burst_bps=6e7,erase_bytes=4M".parse().unwrap();
        let shown = "read 0.6 ms + 40 MB/s, write 1 ms + 15 MB/s after 64 MiB at 60 MB/s, erase \
                     blocks of 4 MiB";
        assert_eq!(stick.to_string(), shown);
    }

    #[test]
    fn what_is_no_model_is_refused() {
        let error = |text: &str| text.parse::<Timing>().unwrap_err();
        assert_eq!(error("tape"), "no model \"tape\"; there are hdd, usb, sd");
        assert_eq!(error("hdd,read_ms=-1"), "bad read_ms \"-1\"");
        assert_eq!(error("hdd,read_bps=0"), "bad read_bps \"0\"");
        assert_eq!(error("hdd,turn_ms=inf"), "bad turn_ms \"inf\"");
        assert_eq!(error("sd,fast"), "\"fast\" is not KEY=VALUE");
        assert!(error("usb,turn_ms=3").starts_with("no key \"turn_ms\""));
        assert!(error("usb,erase_bytes=4X").starts_with("erase_bytes: unknown unit"));
        for half in ["usb,burst_bytes=4M", "usb,burst_bps=1e7", "usb,burst_bytes=0,burst_bps=1"] {
            assert_eq!(error(half), "burst_bytes and burst_bps go together");
        }
    }
}
