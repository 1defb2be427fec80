//! Fuzzes the reader of the manifests of RAM disks, as they are unpacked.
//!
//! The input is a manifest, read as it is and once more with its last line made right. Nothing may
//! panic, and what was read is written and read the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use place::ramdisk::{Manifest, seal};

fuzz_target!(|data: &[u8]| {
    let _ = Manifest::from_text(data);
    let mut sealed = data.to_vec();
    seal(&mut sealed);
    if let Ok(manifest) = Manifest::from_text(&sealed) {
        assert_eq!(Manifest::from_text(&manifest.to_text()).as_ref(), Ok(&manifest));
    }
});
