//! Fuzzes the reader of rings.
//!
//! The input is the segments one after the other, each begun by the magic of a recording; they
//! are read from a directory, with their checksums made right. Nothing may panic or take memory
//! without bound.

#![no_main]

use libfuzzer_sys::fuzz_target;
use record::file::{MAGIC, read_ring, reseal};

/// A ring has few segments; files take most of the time.
const MOST_SEGMENTS: usize = 4;

fuzz_target!(|data: &[u8]| {
    let name = format!("terrace-fuzz-ring-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir(&directory).expect("the directory of the ring is made");
    let found = data.windows(MAGIC.len()).enumerate();
    let mut starts = found.filter(|(_, bytes)| *bytes == MAGIC).map(|(at, _)| at);
    let mut start = starts.next();
    for number in 1..=MOST_SEGMENTS {
        let Some(from) = start else { break };
        start = starts.next();
        let mut segment = data[from..start.unwrap_or(data.len())].to_vec();
        reseal(&mut segment);
        let file = directory.join(format!("terrace-{number:020}.trec"));
        std::fs::write(file, segment).expect("the segment is written");
    }
    let _ = read_ring(&directory);
    let _ = std::fs::remove_dir_all(&directory);
});
