//! How many bytes a sample takes while a compiler keeps the counters moving. A machine at
//! rest would flatter the format.

use std::fs;
use std::process::Command;

use super::LIMIT;
use super::running;
use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::error::Error;

/// Compiles one file again and again.
const COMPILE: &str = "while :; do cc -O2 -c \"$0\" -o /dev/null; done";

/// Measures the bytes of a sample.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let Session { request, terrace, directory, record, .. } = session;
    let functions: String = (0..3000)
        .map(|n| format!("int f{n}(int a) {{ int s = {n}; while (a-- > 0) s ^= a * {n} + (s >> 2); return s; }}\n"))
        .collect();
    let source = directory.write("source.c", functions)?;
    let mut values = Vec::new();
    let mut columns = 0;
    for _ in 0..request.alternations {
        let mut command = Command::new("sh");
        command.args(["-c", COMPILE, &source]);
        let _compiler = running::start("cc", command)?;
        let file = directory.file("size.trec");
        let args = ["record", "--for", "60s", "--force", "-o", &file];
        terrace.run(&args, LIMIT)?;
        let bytes = fs::metadata(&file).map_or(0, |facts| facts.len());
        let csv = terrace.run(&["export", &file, "--to", "csv"], LIMIT)?.stdout;
        let samples = csv.lines().count().saturating_sub(1);
        columns = csv.lines().next().map_or(0, |header| header.split(',').count());
        values.push(bytes as f64 / samples.max(1) as f64);
    }
    record.command("terrace record --for 60s -o size.trec".to_owned());
    record.notes.push(format!("size: {columns} columns, while cc compiles"));
    let series = Series::new("terrace", &values);
    let target = Some(Target::AtMost(220.0));
    record.add_alone("size of a sample while cc runs", "B", series, target)
}
