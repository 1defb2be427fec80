//! The cache with devices that answer at once: what it decides, and what it does with a medium and
//! a journal that another program wrote.

#![allow(clippy::unwrap_used, reason = "a test whose engine does not start must fail")]

mod behaviour;
mod hostile;
mod trust;

use cache::{Cache, ChangeProof, Geometry, Limits, Setup, Witness};
use model::engine::{Input, Request};
use testkit::{Random, SimulatedBuffers, SimulatedDevice, SimulatedDriver};

const VOLUME: u64 = 256 << 10;
const FRAME: u32 = 4096;

fn geometry() -> Geometry {
    Geometry {
        volume_bytes: VOLUME,
        frame_bytes: FRAME,
        segment_bytes: 32 << 10,
        segments: 8,
        region_bytes: 16 << 10,
    }
}

fn volume() -> Vec<u8> {
    let mut bytes = vec![0; VOLUME as usize];
    for (number, frame) in bytes.chunks_exact_mut(FRAME as usize).enumerate() {
        Random(number as u64).fill(&mut frame[..FRAME as usize / (1 + number % 3)]);
    }
    bytes
}

/// What a cache is attached with; the salt is the caller's.
fn setup(salt: u8) -> Setup {
    Setup {
        geometry: geometry(),
        volume_id: [1; 16],
        key: [2; 32],
        salt: [salt; 32],
        new_cache_id: [salt; 16],
        witnesses: vec![Witness { offset: 0, bytes: volume()[..512].to_vec() }],
        proof: ChangeProof::Always,
        may_format: true,
        // What is read twice is cached, as in a cache that is half full.
        limits: Limits { io_buffers: 4, first_reads_percent: 0, ..Limits::fit(&geometry()) },
    }
}

/// Attaches to these bytes.
fn attach(medium: &[u8], journal: &[u8], salt: u8) -> SimulatedDriver<Cache> {
    attach_with(&setup(salt), medium, journal)
}

fn attach_with(setup: &Setup, medium: &[u8], journal: &[u8]) -> SimulatedDriver<Cache> {
    attach_to(setup, medium, journal, |_| {})
}

/// Attaches to devices that `change` makes faulty first.
fn attach_to(
    setup: &Setup,
    medium: &[u8],
    journal: &[u8],
    change: impl Fn(&mut [SimulatedDevice; 3]),
) -> SimulatedDriver<Cache> {
    let mut buffers = SimulatedBuffers::default();
    for (bytes, count) in Cache::buffers(&setup.geometry, &setup.limits) {
        buffers.add(bytes, count);
    }
    let engine = Cache::attach(setup, journal, &mut buffers).unwrap();
    let medium_bytes = u64::from((setup.geometry.segments + 1) * setup.geometry.segment_bytes);
    let journal_bytes = cache::journal_bytes(&setup.geometry);
    let mut devices = [VOLUME, medium_bytes, journal_bytes]
        .map(|bytes| SimulatedDevice::new(bytes as usize, false));
    devices[0].replace(volume());
    let mut padded = medium.to_vec();
    padded.resize(medium_bytes as usize, 0);
    devices[1].replace(padded);
    let mut padded = journal.to_vec();
    padded.resize(journal_bytes as usize, 0);
    devices[2].replace(padded);
    change(&mut devices);
    SimulatedDriver::new(engine, buffers, devices)
}

fn read_all(driver: &mut SimulatedDriver<Cache>, seed: u64) {
    let volume = volume();
    let mut frames: Vec<u64> = (0..VOLUME / u64::from(FRAME)).collect();
    Random(seed).shuffle(&mut frames);
    for frame in frames {
        let start = frame * u64::from(FRAME);
        let read = driver.read(start, FRAME).unwrap();
        assert!(read == volume[start as usize..][..FRAME as usize], "frame {frame}");
    }
}

/// A medium and its journal after use and a proved detach.
fn used() -> (Vec<u8>, Vec<u8>) {
    let mut driver = attach(&[], &[], 1);
    for offset in (0..VOLUME / 2).step_by(FRAME as usize) {
        driver.request(Request::Prefetch { offset, len: u64::from(FRAME) }).unwrap();
    }
    driver.input(Input::Detach);
    (driver.medium.contents(), driver.journal.contents())
}
