//! Fuzzes the reader of recordings, and what is done with one that was read.
//!
//! The input is a file. It is read as it is, and once more with its checksums made right,
//! because no fuzzer guesses those. Nothing may panic or take memory without bound.

#![no_main]

use libfuzzer_sys::fuzz_target;
use record::export::{Csv, Exporter, Json, Perfetto, Trec};
use record::{file, redact};
use std::io::Cursor;

fuzz_target!(|data: &[u8]| {
    let _ = file::read(data);
    let mut sealed = data.to_vec();
    file::reseal(&mut sealed);
    let part = file::Outline::read(Cursor::new(&sealed)).and_then(|outline| {
        let middle_ns = outline.recording().wall_ns() / 2;
        outline.part(middle_ns, middle_ns)
    });
    // A part is told only of a recording, whatever else is wrong with it.
    assert!(part.is_none() || file::read(&sealed[..]).is_ok());
    if let Ok(accesses) = file::AccessReader::new(Cursor::new(&sealed)) {
        for batch in accesses.flatten() {
            assert!(batch.requests.is_sorted_by_key(|request| request.at_ns));
            assert!(batch.pages.is_sorted_by_key(|event| event.at_ns));
        }
    }
    if let Ok(mut recording) = file::read(&sealed[..]) {
        let who = &recording.who;
        let (processes, files) = (who.processes.len(), who.files.len());
        assert!(who.rows.iter().all(|row| (row.process as usize) < processes));
        let is_known = |process: u32, file: u32| {
            (process as usize) < processes && (file as usize) < files
        };
        assert!(who.file_rows.iter().all(|row| is_known(row.process, row.file)));
        assert!(who.samples.iter().all(|row| (row.process as usize) < processes));
        assert!(who.requests.iter().all(|row| (row.process as usize) < processes));
        redact::redact(&mut recording);
        let _ = Csv.export(&recording, &mut std::io::sink());
        let _ = Json.export(&recording, &mut std::io::sink());
        let _ = Perfetto.export(&recording, &mut std::io::sink());
        // Only one that is whole may be copied.
        let _ = Trec.export(&recording, &mut std::io::sink());
    }
});
