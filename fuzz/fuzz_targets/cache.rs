//! Fuzzes what a cache finds when it is attached.
//!
//! The first two bytes say how long the journal is; it follows, then the medium. Nothing may panic,
//! and each byte that is read is one of the volume: no medium and no journal can give another.

#![no_main]

use cache::{Cache, ChangeProof, Geometry, Limits, Setup, Witness};
use libfuzzer_sys::fuzz_target;
use model::engine::Input;
use testkit::{SimulatedBuffers, SimulatedDevice, SimulatedDriver};

const VOLUME: usize = 128 << 10;
const FRAME: u32 = 4096;
const MEDIUM: usize = 5 * (32 << 10);

fn setup() -> Setup {
    let geometry = Geometry {
        volume_bytes: VOLUME as u64,
        frame_bytes: FRAME,
        segment_bytes: 32 << 10,
        segments: 4,
        region_bytes: 16 << 10,
    };
    Setup {
        geometry,
        volume_id: [1; 16],
        key: [2; 32],
        salt: [3; 32],
        new_cache_id: [4; 16],
        witnesses: vec![Witness { offset: 0, bytes: vec![7; 512] }],
        proof: ChangeProof::Always,
        may_format: true,
        limits: Limits { io_buffers: 4, ..Limits::fit(&geometry) },
    }
}

fn device(content: &[u8], bytes: usize) -> SimulatedDevice {
    let mut device = SimulatedDevice::new(bytes, false);
    let mut padded = content[..content.len().min(bytes)].to_vec();
    padded.resize(bytes, 0);
    device.replace(padded);
    device
}

fuzz_target!(|data: &[u8]| {
    let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
    let (journal, medium) = rest.split_at(rest.len().min(u16::from_le_bytes(*length).into()));
    let _ = (cache::newer_version(journal), cache::newer_version(medium));
    let setup = setup();
    let _ = (setup.start(journal), setup.owns_medium(journal, medium));
    let mut buffers = SimulatedBuffers::default();
    for (bytes, count) in Cache::buffers(&setup.geometry, &setup.limits) {
        buffers.add(bytes, count);
    }
    let Ok(engine) = Cache::attach(&setup, journal, &mut buffers) else { return };
    let devices = [
        device(&[7; VOLUME], VOLUME),
        device(medium, MEDIUM),
        device(journal, cache::journal_bytes(&setup.geometry) as usize),
    ];
    let mut driver = SimulatedDriver::new(engine, buffers, devices);
    for round in 1..=2 {
        for at in (0..VOLUME as u64).step_by(FRAME as usize) {
            let read = driver.read(at, FRAME).expect("a volume without errors is read");
            assert!(read.iter().all(|byte| *byte == 7), "byte {at} in round {round}");
        }
        driver.input(Input::Tick { now_ns: round * 1_000_000_000 });
    }
    driver.input(Input::Detach);
});
