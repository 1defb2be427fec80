//! Fuzzes the reader of what a browser asks of the loopback server.
//!
//! The input is the head of a request. Nothing may panic, and a path that is understood begins
//! with a slash and holds no question mark.

#![no_main]

use libfuzzer_sys::fuzz_target;
use viewer::server::path_asked;

fuzz_target!(|data: &[u8]| {
    if let Ok(Some(path)) = path_asked(data, 80) {
        assert!(path.starts_with('/') && !path.contains('?'));
    }
});
