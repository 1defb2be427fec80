//! Fuzzes the reader of snapshots.
//!
//! The input is a file, read as it is and once more with its checksum made right, and then the
//! lines inside of one, packed here, because no fuzzer guesses a zstd frame. Nothing may panic
//! or take memory without bound, and what was read is written and read the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use place::workingset::snapshot::{decode, encode, reseal};

const HEADER: &[u8] = b"terrace snapshot 1\n";

fuzz_target!(|data: &[u8]| {
    let _ = decode(data);
    let mut sealed = data.to_vec();
    reseal(&mut sealed);
    let _ = decode(&sealed);
    let mut packed = HEADER.to_vec();
    packed.extend(zstd::bulk::compress(data, 1).unwrap_or_default());
    packed.extend([0; 4]);
    reseal(&mut packed);
    if let Ok(snapshot) = decode(&packed) {
        // One that lists ranges twice in a row for the same file is read as one and may not be
        // in order, so it need not be writable; if it is, it comes back.
        if let Ok(bytes) = encode(&snapshot) {
            assert_eq!(decode(&bytes).as_ref(), Ok(&snapshot));
        }
    }
});
