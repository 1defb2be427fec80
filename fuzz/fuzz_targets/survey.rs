//! Fuzzes what is done with surveys that were read: they are compared, and the result written.
//!
//! The input is one survey as JSON, or two with a zero byte between them. Nothing may panic, and
//! a comparison can be written.

#![no_main]

use explain::comparison::surveys;
use libfuzzer_sys::fuzz_target;
use model::survey::Survey;

fuzz_target!(|data: &[u8]| {
    let read = |part| serde_json::from_slice::<Survey>(part).ok();
    let mut sides = data.splitn(2, |byte| *byte == 0).filter_map(read);
    let Some(first) = sides.next() else { return };
    let second = sides.next().unwrap_or_else(|| first.clone());
    let (first, second) = ([first], [second]);
    for kept in [&[][..], &first] {
        let comparison = surveys(&first, &second, kept);
        serde_json::to_string(&comparison).expect("a comparison is written");
    }
    let same = [&first[0], &first[0], &first[0], &first[0]].map(Clone::clone);
    let _ = surveys(&same, &second, &[]);
});
