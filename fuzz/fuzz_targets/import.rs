//! Fuzzes the readers of other tools' texts.
//!
//! The input is a text, read as what it looks like and, by its first byte, as each of the
//! forms. Nothing may panic or take memory without bound, and what was read can be written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use record::export::{Exporter, Trec};
use record::import::{Form, ImportOptions, form_of, import};

const FORMS: [Form; 5] = [Form::Sadf, Form::Fio, Form::FioLog, Form::Vmstat, Form::Iostat];

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let options = ImportOptions { interval: None, name: "x_bw.1.log".to_owned() };
    let chosen = data.first().map_or(0, |byte| usize::from(*byte)) % FORMS.len();
    for form in form_of(&text).into_iter().chain([FORMS[chosen]]) {
        if let Ok(recording) = import(&text, form, &options) {
            let _ = Trec.export(&recording, &mut std::io::sink());
        }
    }
});
