//! A device and buffers for the simulation of an engine (`model::engine`): no file, no clock.
//!
//! The device has a volatile write cache, as `write_cache` describes it: a power cut keeps for each
//! sector of 512 bytes what had been flushed or any version since, by seed. It can vanish, lose
//! flushes, be full, have less than it claims, flip bits, and give back what a sector held before.

use std::collections::BTreeMap;

use model::engine::{BufferId, BufferRange, Buffers, ErrorNumber, IoResult, Operation};

use crate::Random;
use crate::write_cache::{SECTOR, WriteCache};

const EIO: ErrorNumber = ErrorNumber(5);
const ENOSPC: ErrorNumber = ErrorNumber(28);
const ENODEV: ErrorNumber = ErrorNumber(19);

/// Versions of a sector that a device can give back.
const OLDER_MAX: usize = 4;

/// What is wrong with a device. Nothing, by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediumFaults {
    /// It is not there: every request fails.
    pub is_gone: bool,
    /// Every write fails for want of room.
    pub is_full: bool,
    /// Reads fail.
    pub fails_reads: bool,
    /// Writes and flushes fail, and may have taken effect.
    pub fails_writes: bool,
    /// A flush is reported and stores nothing.
    pub loses_flushes: bool,
    /// It cannot be revoked.
    pub fails_revokes: bool,
    /// It has only so many bytes; what is written behind them is dropped and read as zeros.
    pub true_bytes: Option<u64>,
}

/// A device in memory.
#[derive(Clone, Debug)]
pub struct SimulatedDevice {
    stored: Vec<u8>,
    cache: WriteCache,
    /// Former contents of sectors, the oldest first.
    older: BTreeMap<u64, Vec<[u8; SECTOR]>>,
    /// Whether former contents are kept.
    keeps_older: bool,
    /// What is wrong with it.
    pub faults: MediumFaults,
    writes: u64,
}

impl SimulatedDevice {
    /// A device of zeros; with `keeps_older` it can give back former contents.
    #[must_use]
    pub fn new(bytes: usize, keeps_older: bool) -> Self {
        Self {
            stored: vec![0; bytes],
            cache: WriteCache::default(),
            older: BTreeMap::new(),
            keeps_older,
            faults: MediumFaults::default(),
            writes: 0,
        }
    }

    /// Writes and flushes that were done.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Reads what was written last.
    ///
    /// # Errors
    /// As its faults say.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> IoResult {
        if self.faults.is_gone {
            return Err(ENODEV);
        }
        if self.faults.fails_reads {
            return Err(EIO);
        }
        let start = offset as usize;
        data.copy_from_slice(&self.stored[start..start + data.len()]);
        self.cache.overlay(offset, data);
        Ok(())
    }

    /// Writes to the volatile cache.
    ///
    /// # Errors
    /// As its faults say.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> IoResult {
        if self.faults.is_gone {
            return Err(ENODEV);
        }
        if self.faults.is_full {
            return Err(ENOSPC);
        }
        self.writes += 1;
        let room = self.faults.true_bytes.unwrap_or(u64::MAX).saturating_sub(offset);
        let kept = &data[..data.len().min(room as usize)];
        self.keep_older(offset, kept.len());
        for (at, sector) in self.cache.write(offset, kept) {
            self.store(at, &sector);
        }
        if self.faults.fails_writes { Err(EIO) } else { Ok(()) }
    }

    /// Gives up the content of a range: it holds junk then.
    ///
    /// # Errors
    /// As its faults say.
    pub fn discard(&mut self, offset: u64, len: u64) -> IoResult {
        let mut junk = vec![0; len as usize];
        Random(offset ^ self.writes).fill(&mut junk);
        self.write(offset, &junk)
    }

    /// Removes all that it holds, for good.
    ///
    /// # Errors
    /// As its faults say.
    pub fn revoke(&mut self) -> IoResult {
        if self.faults.fails_revokes {
            return Err(EIO);
        }
        self.replace(vec![0; self.stored.len()]);
        Ok(())
    }

    /// Does an operation of an engine with the bytes of its buffers.
    ///
    /// # Errors
    /// As its faults say.
    pub fn perform(&mut self, operation: Operation, buffers: &mut SimulatedBuffers) -> IoResult {
        match operation {
            Operation::Read { offset, data } => self.read(offset, buffers.device_bytes(data)),
            Operation::Write { offset, data } => self.write(offset, buffers.device_bytes(data)),
            Operation::Discard { offset, len } => self.discard(offset, len),
            Operation::WriteZeroes { offset, len } => self.write(offset, &vec![0; len as usize]),
            Operation::Flush => self.flush(),
            Operation::Revoke => self.revoke(),
        }
    }

    /// Makes all writes durable.
    ///
    /// # Errors
    /// As its faults say.
    pub fn flush(&mut self) -> IoResult {
        if self.faults.is_gone {
            return Err(ENODEV);
        }
        self.writes += 1;
        if self.faults.fails_writes {
            return Err(EIO);
        }
        if !self.faults.loses_flushes {
            for (at, sector) in self.cache.flush() {
                self.store(at, &sector);
            }
        }
        Ok(())
    }

    /// Cuts the power: what was not flushed survives by sector, by the seed.
    pub fn cut(&mut self, seed: u64) {
        for (at, sector) in self.cache.cut(seed) {
            self.store(at, &sector);
        }
    }

    /// Flips a bit of some stored sectors.
    pub fn flip_bits(&mut self, random: &mut Random, count: u64) {
        let _ = self.flush();
        for _ in 0..count {
            let at = random.below(self.stored.len() as u64) as usize;
            self.stored[at] ^= 1 << random.below(8);
        }
    }

    /// Gives some sectors, or whole runs of `run` sectors, what they held some writes ago.
    pub fn return_older(&mut self, random: &mut Random, count: u64, run: u64) {
        let sectors = (self.stored.len() / SECTOR) as u64;
        let all = self.cache.flush();
        for (at, sector) in all {
            self.store(at, &sector);
        }
        for _ in 0..count {
            let first = random.below(sectors) / run * run;
            let back = random.below(OLDER_MAX as u64) as usize;
            for sector in first..(first + run).min(sectors) {
                let older = self.older.get(&sector);
                let version = older.and_then(|all| all.iter().rev().nth(back)).copied();
                if let Some(version) = version {
                    self.store(sector * SECTOR as u64, &version);
                }
            }
        }
    }

    /// All that it holds, as it is read.
    #[must_use]
    pub fn contents(&self) -> Vec<u8> {
        let mut all = self.stored.clone();
        self.cache.overlay(0, &mut all);
        all
    }

    /// Replaces all that it holds, durably.
    pub fn replace(&mut self, contents: Vec<u8>) {
        let _ = self.cache.flush();
        self.stored = contents;
    }

    fn keep_older(&mut self, offset: u64, len: usize) {
        if !self.keeps_older {
            return;
        }
        let mut now = [0; SECTOR];
        for at in (offset..offset + len as u64).step_by(SECTOR) {
            let start = at as usize;
            now.copy_from_slice(&self.stored[start..start + SECTOR]);
            self.cache.overlay(at, &mut now);
            let all = self.older.entry(at / SECTOR as u64).or_default();
            all.push(now);
            if all.len() > OLDER_MAX {
                all.remove(0);
            }
        }
    }

    fn store(&mut self, at: u64, sector: &[u8; SECTOR]) {
        let start = at as usize;
        self.stored[start..start + SECTOR].copy_from_slice(sector);
    }
}

/// Buffers of an engine that is simulated. They may not be touched while an operation names them.
#[derive(Clone, Debug, Default)]
pub struct SimulatedBuffers {
    all: Vec<Buffer>,
}

#[derive(Clone, Debug)]
struct Buffer {
    bytes: Vec<u8>,
    is_taken: bool,
    /// Operations that name it.
    operations: u32,
}

impl SimulatedBuffers {
    /// Adds buffers of one size.
    pub fn add(&mut self, bytes: u32, count: u32) {
        for _ in 0..count {
            let bytes = vec![0; bytes as usize];
            self.all.push(Buffer { bytes, is_taken: false, operations: 0 });
        }
    }

    /// An operation that names the buffer begins.
    pub fn begin(&mut self, range: BufferRange) {
        self.all[range.buffer.0 as usize].operations += 1;
    }

    /// The operation has ended.
    pub fn end(&mut self, range: BufferRange) {
        self.all[range.buffer.0 as usize].operations -= 1;
    }

    /// The bytes, for the device that does the operation.
    pub fn device_bytes(&mut self, range: BufferRange) -> &mut [u8] {
        let start = range.start as usize;
        &mut self.all[range.buffer.0 as usize].bytes[start..start + range.len as usize]
    }

    /// Forgets what was taken and what is under way: the engine is gone.
    pub fn reset(&mut self) {
        for buffer in &mut self.all {
            buffer.is_taken = false;
            buffer.operations = 0;
        }
    }
}

impl Buffers for SimulatedBuffers {
    fn take(&mut self, bytes: u32) -> Option<BufferId> {
        let fits = |buffer: &Buffer| !buffer.is_taken && buffer.bytes.len() == bytes as usize;
        let at = self.all.iter().position(fits)?;
        self.all[at].is_taken = true;
        Some(BufferId(at as u32))
    }

    fn give_back(&mut self, buffer: BufferId) {
        self.all[buffer.0 as usize].is_taken = false;
    }

    fn bytes(&self, range: BufferRange) -> &[u8] {
        let buffer = &self.all[range.buffer.0 as usize];
        let start = range.start as usize;
        &buffer.bytes[start..start + range.len as usize]
    }

    /// # Panics
    /// If an operation names the buffer.
    fn bytes_mut(&mut self, range: BufferRange) -> &mut [u8] {
        let buffer = &self.all[range.buffer.0 as usize];
        assert_eq!(buffer.operations, 0, "{range:?} is changed while an operation uses it");
        self.device_bytes(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_keeps_what_was_flushed_and_a_lost_flush_does_not() {
        for is_lost in [false, true] {
            let mut device = SimulatedDevice::new(64 << 10, false);
            device.faults.loses_flushes = is_lost;
            device.write(0, &[1; 64 << 10]).unwrap();
            device.flush().unwrap();
            device.cut(3);
            let kept = device.contents().iter().filter(|byte| **byte == 1).count();
            assert_eq!(kept == 64 << 10, !is_lost, "{kept}");
        }
    }

    #[test]
    fn older_sectors_come_back_and_a_false_size_forgets() {
        let mut device = SimulatedDevice::new(1024, true);
        device.write(0, &[1; 1024]).unwrap();
        device.write(0, &[2; 1024]).unwrap();
        let mut random = Random(1);
        (0..40).for_each(|_| device.return_older(&mut random, 1, 1));
        assert!(device.contents().iter().all(|byte| *byte < 2));
        device.faults.true_bytes = Some(512);
        device.write(0, &[3; 1024]).unwrap();
        assert_eq!((device.contents()[511], device.contents()[512] < 2), (3, true));
        device.faults.is_gone = true;
        assert!(device.read(0, &mut [0; 512]).is_err() && device.write(0, &[0; 512]).is_err());
    }

    #[test]
    #[should_panic(expected = "while an operation uses it")]
    fn a_buffer_in_use_is_not_changed() {
        let mut buffers = SimulatedBuffers::default();
        buffers.add(512, 1);
        let range = BufferRange::first(buffers.take(512).unwrap(), 512);
        buffers.begin(range);
        buffers.bytes_mut(range);
    }
}
