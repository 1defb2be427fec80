//! The lab's experiment on a whole machine: the guest, whose memory and disk are its own.
//! What the lab keeps comes out of the guest beside the lines.

use std::fs::OpenOptions;
use std::io::Write;

use serde_json::{Value, json};

use crate::files::Mounted;
use crate::system::{failed, run};
use crate::{Outcome, write_result};

/// Where the lab's results and recordings go.
const KEPT: &str = "/out/lab";

/// `applications` separated by commas, each way once; the hogs `repeat` times.
pub(crate) fn scene(applications: &str, repeat: &str, limit: &str) -> Outcome<()> {
    let _disk = Mounted::new()?;
    add_user()?;
    let text = run(&[
        "terrace",
        "lab",
        "run",
        "recovery-2012",
        "--whole-machine",
        "--json",
        "--runs",
        "1",
        "--disk",
        "/mnt",
        "--out",
        KEPT,
        "--app",
        applications,
        "--repeat",
        repeat,
        "--limit",
        limit,
    ])?;
    let printed: Value = serde_json::from_str(&text).map_err(failed("the lab's result"))?;
    let result = &printed["result"];
    let seconds = |ns: &Value| ns.as_f64().map(|ns| ns / 1e9);
    let trials = result["trials"].as_array().ok_or("the lab tells no trials")?;
    for trial in trials {
        write_result(&json!({
            "way": trial["way"],
            "application": trial["application"],
            "working_set_bytes": result["working_set_bytes"],
            "memory_bytes": result["memory_bytes"],
            "usual_p99_s": seconds(&trial["usual_p99_ns"]),
            "pushed_out_bytes": trial["pushed_out_bytes"],
            "way_s": seconds(&trial["way_ns"]),
            "restored_bytes": trial["restored_bytes"],
            "restore_stop": trial["restore_stop"],
            "recovered_s": seconds(&trial["recovered_ns"]),
            "quiet_s": seconds(&trial["quiet_ns"]),
            "cached_s": seconds(&trial["cached_ns"]),
            "requests": trial["requests"],
            "wrong": trial["wrong"],
        }))?;
    }
    Ok(())
}

/// The user that Debian's packages make for PostgreSQL; the guest's were only unpacked.
fn add_user() -> Outcome<()> {
    let path = "/etc/passwd";
    let mut file = OpenOptions::new().append(true).open(path).map_err(failed(path))?;
    writeln!(file, "postgres:x:70:70::/mnt:/bin/sh").map_err(failed(path))
}
