//! Fuzzes what clients of an export send.
//!
//! The first byte chooses: a request of FUSE, whose length is made right once more; the handshake
//! of NBD; requests of NBD. What is read as a write has the bytes that it says. Nothing may panic
//! or take memory beyond what arrives.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serve::fuse::protocol::{FileRequestKind, init_body, parse};
use serve::nbd::protocol::{Export, ExportFeatures, negotiate, read_request};
use std::io::{self, Cursor, Read, Write};

/// A client that has sent everything already, and hears nothing.
struct Client<'a>(Cursor<&'a [u8]>);

impl Read for Client<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Client<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn fuse(bytes: &[u8]) {
    match parse(bytes).map(|request| request.kind) {
        Ok(FileRequestKind::Init(init)) => drop(init_body(init, 128)),
        Ok(FileRequestKind::Write { data, .. }) => assert!(data.len() + 80 == bytes.len()),
        _ => {}
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else {
        return;
    };
    match kind {
        0 => {
            fuse(bytes);
            let mut whole = bytes.to_vec();
            if let Some(length) = whole.first_chunk_mut() {
                *length = (bytes.len() as u32).to_ne_bytes();
            }
            fuse(&whole);
        }
        1 => {
            let features = [ExportFeatures::default(), ExportFeatures::all(512)];
            let exports = features.map(|features| Export { name: "a", bytes: 1 << 20, features });
            for export in &exports {
                let _ = negotiate(&mut Client(Cursor::new(bytes)), std::slice::from_ref(export));
            }
        }
        _ => {
            let mut stream = Cursor::new(bytes);
            let mut data = Vec::new();
            while let Ok(Some(_)) = read_request(&mut stream, &mut data) {
                assert!(data.len() <= bytes.len());
            }
        }
    }
});
