//! Fuzzes the readers of other tools' traces of requests.
//!
//! The first byte chooses the form and the size of the pieces. Nothing may panic or take memory
//! without bound, and the requests are the same in one piece and in many.

#![no_main]

use libfuzzer_sys::fuzz_target;
use policy::trace::{TraceError, TraceForm, TraceReader, TraceRequest};

const FORMS: [TraceForm; 6] = [
    TraceForm::OracleGeneral,
    TraceForm::OracleSectors,
    TraceForm::Msr,
    TraceForm::Blkparse,
    TraceForm::BlkparseCompleted,
    TraceForm::Iolog,
];

fn read(form: TraceForm, bytes: &[u8], piece: usize) -> (Vec<TraceRequest>, Option<TraceError>) {
    let mut reader = TraceReader::new(form, 4096);
    let mut requests = Vec::new();
    let pieces = bytes.chunks(piece).try_for_each(|part| reader.read(part, &mut requests));
    let ended = pieces.and_then(|()| reader.finish(&mut requests));
    (requests, ended.err())
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else {
        return;
    };
    let form = FORMS[usize::from(choice) % FORMS.len()];
    let whole = read(form, bytes, usize::MAX);
    let pieces = read(form, bytes, usize::from(choice) + 1);
    assert_eq!(whole.0, pieces.0);
    assert_eq!(whole.1.map(|error| error.record), pieces.1.map(|error| error.record));
});
