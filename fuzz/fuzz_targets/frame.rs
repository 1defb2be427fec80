//! Fuzzes the frames of every store.
//!
//! The first byte is the number of bytes of fields, the rest a file of frames, read as it is and
//! once more with its checksums made right. What is read is sealed again and has the same bytes.
//! Nothing may panic or take memory without bound.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::frame::{Damage, Layout, strip_checksum};

const PAYLOAD_BYTES_MAX: usize = 4096;

/// Reads all frames, and seals each anew.
fn walk(layout: Layout, mut bytes: &[u8]) -> Result<(), Damage> {
    while let Some((frame, rest)) = layout.split(bytes)? {
        let mut sealed = vec![0; layout.header_bytes()];
        sealed.extend_from_slice(frame.payload);
        let fill = |fields: &mut [u8]| fields.copy_from_slice(frame.fields);
        layout.seal(frame.head, fill, &mut sealed)?;
        assert_eq!(sealed, bytes[..bytes.len() - rest.len()]);
        bytes = rest;
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let _ = strip_checksum(data);
    let Some((field_bytes, file)) = data.split_first() else {
        return;
    };
    let layout = Layout::new(usize::from(*field_bytes), PAYLOAD_BYTES_MAX);
    let _ = walk(layout, file);
    let mut sealed = file.to_vec();
    layout.reseal(&mut sealed);
    assert_ne!(walk(layout, &sealed), Err(Damage::Checksum));
});
