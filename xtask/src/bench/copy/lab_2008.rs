//! `terrace lab run file-copy-2008` where it belongs: a guest with 2 GB of memory and two hard
//! disks with the times of a model.
//!
//! The page, `result.json` and the recordings are kept in the target directory, as `lab-2008`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::guest::{GuestCopies, HARD_DISKS, run};
use crate::bench::Session;
use crate::bench::guest;
use crate::bench::record::Series;
use crate::error::Error;

/// As in 2008.
const MEMORY: &str = "2G";
/// All files together, as in 2008.
const SIZE: &str = "2600000000";
const KEPT: &str = "lab-2008";

/// A field of a copy in `result.json`, and its row.
struct Figure {
    field: &'static str,
    row: &'static str,
    unit: &'static str,
    /// How much of the field is one of the unit.
    divisor: f64,
}

const FIGURES: [Figure; 6] = [
    Figure { field: "full_speed_ns", row: "until full write speed", unit: "s", divisor: 1e9 },
    Figure { field: "done_ns", row: "until it said done", unit: "s", divisor: 1e9 },
    Figure { field: "durable_ns", row: "until all was on the disk", unit: "s", divisor: 1e9 },
    Figure {
        field: "cache_dropped_bytes",
        row: "file pages taken back meanwhile",
        unit: "MiB",
        divisor: 1048576.0,
    },
    Figure {
        field: "target_cached_bytes",
        row: "of the copy in the cache after it",
        unit: "MiB",
        divisor: 1048576.0,
    },
    Figure { field: "first_read_ns", row: "a first read of the copy", unit: "s", divisor: 1e9 },
];

/// Runs the experiment once: it compares three copiers itself.
///
/// # Errors
/// When the guest fails, or leaves no results.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let words = vec!["lab-2008.sh".to_owned(), SIZE.to_owned()];
    run(session, &GuestCopies { disks: &HARD_DISKS, memory: MEMORY, words })?;
    let lab = guest::out(session).join("lab");
    let result = lab.join("result.json");
    let text = fs::read_to_string(&result).map_err(Error::io("read", &result))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
    let copies = value["result"]["copies"].as_array();
    for copy in copies.ok_or_else(|| malformed("no copies".to_owned()))? {
        add(session, copy)?;
    }
    let kept = session.target.join(KEPT);
    keep(&lab, &kept)?;
    eprintln!("the page is {}", kept.join("page.html").display());
    Ok(())
}

/// The rows of one copy; what is unproven has none.
fn add(session: &mut Session, copy: &Value) -> Result<(), Error> {
    let copier = match copy["copier"].as_str().unwrap_or_default() {
        "default" => "terrace copy",
        other => other,
    };
    for figure in &FIGURES {
        let what = format!("69 files, 2.6 GB, memory of 2 GiB: {}, {copier}", figure.row);
        let Some(value) = copy[figure.field].as_f64() else {
            session.record.note(format!("{what}: unproven"));
            continue;
        };
        let series = Series::new(copier, &[value / figure.divisor]);
        session.record.add_alone(&what, figure.unit, series, None)?;
    }
    let lines = copy["lines"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for line in lines {
        session.record.note(format!("{copier}: {line}"));
    }
    Ok(())
}

/// Copies all files of a directory to a new one, in place of that of an earlier run.
fn keep(from: &Path, to: &Path) -> Result<(), Error> {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).map_err(Error::io("make", to))?;
    for entry in fs::read_dir(from).map_err(Error::io("read", from))? {
        let entry = entry.map_err(Error::io("read", from))?;
        let target = to.join(entry.file_name());
        fs::copy(entry.path(), &target).map_err(Error::io("write", &target))?;
    }
    Ok(())
}

fn malformed(why: String) -> Error {
    Error::Malformed { what: "the results of the experiment", why }
}
