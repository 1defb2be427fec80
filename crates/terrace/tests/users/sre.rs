//! An engineer who keeps a flight recorder running and asks it afterwards: what stood out, what was
//! it, and who did it? She does not know the times.

use crate::day::{self, DAY_S, Density, Incident, SECOND_NS};
use crate::machine_alone;
use crate::support::{print_figure, terrace};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testkit::TempDir;

/// So many moments that are none of the incidents may be listed of a day.
const MOST_FALSE: usize = 2;

/// The explanation of the ring at `path`, as JSON.
fn explained(path: &Path, more: &str) -> Value {
    let text = terrace(&format!("explain {} --json {more}", path.display())).done();
    serde_json::from_str(&text).unwrap()
}

/// A moment of the list: from, to, the claim and who it was.
#[derive(Debug)]
struct Listed {
    from_s: f64,
    to_s: f64,
    at: String,
    who: String,
}

fn listed(explained: &Value) -> Vec<Listed> {
    let moments = explained["moments"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let seconds = |value: &Value| value.as_f64().unwrap() / SECOND_NS as f64;
    let one = |moment: &Value| Listed {
        from_s: seconds(&moment["from_ns"]),
        to_s: seconds(&moment["to_ns"]),
        at: text(&moment["at"]),
        who: moment["who"].to_string(),
    };
    moments.iter().map(one).collect()
}

/// What the moments of a made day say of its incidents.
struct Judged {
    /// Incidents that are listed with the name of who did it.
    found: usize,
    /// Moments that are none of them.
    others: usize,
    /// What is wrong.
    complaints: Vec<String>,
}

fn judge(incidents: &[Incident], moments: &[Listed]) -> Judged {
    let mut judged = Judged { found: 0, others: moments.len(), complaints: Vec::new() };
    for incident in incidents {
        let (start, end) = (incident.when.start as f64, incident.when.end as f64);
        let mut at = moments.iter().filter(|one| one.from_s < end && one.to_s > start);
        let found = at.next();
        judged.others -= usize::from(found.is_some()) + at.count();
        let is_right = found.is_some_and(|found| {
            found.from_s >= start - 15.0
                && found.to_s <= end + 15.0
                && found.who.contains(incident.kind.program())
        });
        judged.found += usize::from(is_right);
        if !is_right {
            judged.complaints.push(format!("{:?}: {found:?}", incident.kind));
        }
    }
    judged
}

#[test]
fn three_minutes_of_a_made_day_are_found_with_their_names() {
    let _alone = machine_alone();
    for seed in 1..=3 {
        let directory = TempDir::new();
        let path = directory.join("flight");
        let incidents = day::three_incidents(seed);
        day::write(&path, seed, &incidents, Density::SPARSE);
        let moments = listed(&explained(&path, ""));
        let judged = judge(&incidents, &moments);
        print_figure("made_found", judged.found as f64);
        print_figure("made_false", judged.others as f64);
        assert!(judged.complaints.is_empty(), "seed {seed}: {:?}", judged.complaints);
        assert!(judged.others <= MOST_FALSE, "seed {seed}: {moments:#?}");
        let page = terrace(&format!("explain {}", path.display())).done();
        for moment in &moments {
            let command = format!("terrace explain {} --at {}\n", path.display(), moment.at);
            assert!(page.contains(&command), "{command}{page}");
        }
        assert!(page.contains("moments stood out against the usual level of these 24"), "{page}");
        assert!(DAY_S as f64 > moments.last().unwrap().to_s);
    }
}

/// Not a test of its own: `cargo xtask bench days` measures what explaining such a day takes, with
/// the program that it gives.
#[test]
#[ignore = "writes a day of 10 samples a second, which takes minutes"]
fn full_day_is_explained_by_a_program_that_is_given() {
    let Some(program) = std::env::var_os("TERRACE_OF_BENCH") else {
        return testkit::skip("TERRACE_OF_BENCH, a program");
    };
    let directory = TempDir::new();
    let path = directory.join("flight");
    let incidents = day::three_incidents(4);
    day::write(&path, 4, &incidents, Density::FULL);
    let bytes: u64 =
        path.read_dir().unwrap().map(|one| one.unwrap().metadata().unwrap().len()).sum();
    print_figure("full_day_bytes", bytes as f64);
    for _ in 0..3 {
        let (seconds, peak_bytes, text) = measured(&program, &path);
        let moments = listed(&serde_json::from_str(&text).unwrap());
        let judged = judge(&incidents, &moments);
        print_figure("full_day_s", seconds);
        print_figure("full_day_peak_bytes", peak_bytes);
        print_figure("full_day_found", judged.found as f64);
        print_figure("full_day_false", judged.others as f64);
    }
}

/// Explains the ring at `path`: seconds, the most memory, and the JSON.
fn measured(program: &OsStr, path: &Path) -> (f64, f64, String) {
    let mut explain = Command::new(program);
    explain.arg("explain").arg(path).arg("--json").stdout(Stdio::piped()).stdin(Stdio::null());
    let started = Instant::now();
    let mut child = explain.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let is_over = Arc::new(AtomicBool::new(false));
    let watcher = {
        let is_over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            let mut peak_kib = 0.0_f64;
            while !is_over.load(Ordering::Relaxed) {
                let text = std::fs::read_to_string(&status).unwrap_or_default();
                let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
                peak_kib = peak_kib.max(kib.unwrap_or(0.0));
                std::thread::sleep(Duration::from_millis(20));
            }
            peak_kib * 1024.0
        })
    };
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let seconds = started.elapsed().as_secs_f64();
    is_over.store(true, Ordering::Relaxed);
    (seconds, watcher.join().unwrap(), text)
}
