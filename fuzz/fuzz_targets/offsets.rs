//! Fuzzes the reader of the offsets up to which large files of a copy are durable.
//!
//! The input is such a file, read as it is and once more with its checksums made right. Nothing may
//! panic, and what was read is written and read the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use place::copy::{offset_record, reseal_offsets, stored_offsets};

fuzz_target!(|data: &[u8]| {
    let _ = stored_offsets(data);
    let mut sealed = data.to_vec();
    reseal_offsets(&mut sealed);
    for fields in stored_offsets(&sealed) {
        let record = offset_record(&fields).expect("a record has all of its fields");
        assert_eq!(stored_offsets(&record), [fields]);
    }
});
