//! A performance engineer measures one machine three times. Seen: three intervals of one number
//! that did not overlap, a survey that said 10.5 GB/s where the probe said 12.8, a latency without
//! its pace, L2 called L1, and sizes of caches that changed from survey to survey.
//!
//! Judged are overlaps, names and sentences; no time is. A machine that is busy in one attempt and
//! idle in the next differs for real, so what compares two runs may be tried again.

use super::support::{probe_csv, probe_json, terrace};
use crate::machine_alone;
use serde_json::Value;
use testkit::TempDir;

/// Attempts at what compares several runs of this machine.
const ATTEMPTS: usize = 3;

/// Both ends of the interval of an estimate.
fn interval(estimate: &Value) -> (f64, f64) {
    let end = |name: &str| estimate[name].as_f64().unwrap_or_else(|| panic!("{estimate}"));
    (end("low"), end("high"))
}

fn overlap(a: (f64, f64), b: (f64, f64)) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

/// Larger copies take longer than a test may.
const LARGEST: u64 = 128 << 20;

/// The rate of `memcpy` at this size.
fn memcpy(size_bytes: u64) -> Value {
    let json = probe_json("memcpy", &format!("memcpy --size {size_bytes} --budget 30s"));
    let rate = json["result"]["rows"][0]["bytes_per_s"].clone();
    assert_eq!(rate["covers"], "between_runs", "{rate}");
    assert!(rate["runs"].as_u64().unwrap() >= 6, "{json}");
    rate
}

#[test]
fn three_measurements_of_one_method_overlap() {
    let _alone = machine_alone();
    let is_one_machine = || {
        let rates = [LARGEST; 3].map(memcpy);
        println!("{rates:?}");
        let of = |at: usize| interval(&rates[at]);
        overlap(of(0), of(1)) && overlap(of(1), of(2)) && overlap(of(0), of(2))
    };
    assert!((0..ATTEMPTS).any(|_| is_one_machine()));
}

#[test]
fn a_survey_and_the_probe_agree_on_the_same_size() {
    let _alone = machine_alone();
    let directory = TempDir::new();
    let agree = || {
        let line = format!("survey --quick --json --path {}", directory.path().display());
        let survey: Value = serde_json::from_str(&terrace(&line).done()).unwrap();
        let curves = survey["curves"]["copies"].as_array().unwrap();
        let curve = curves.iter().find(|curve| curve["method"] == "memcpy");
        let points = curve.map_or(&[][..], |curve| curve["points"].as_array().unwrap());
        let size = |point: &Value| point["size_bytes"].as_u64().unwrap();
        // Main memory, or the last cache where it is so large that memory beyond it is too.
        let Some(point) = points.iter().rfind(|point| size(point) <= LARGEST) else {
            return false;
        };
        let (surveyed, probed) = (&point["bytes_per_s"], memcpy(size(point)));
        assert_eq!(surveyed["covers"], "within_run");
        println!("survey {surveyed}, probe {probed}");
        // A few trials of a quick survey have no interval. What a survey says of them is
        // their spread, so that is what is to meet the interval of the probe.
        let median = surveyed["median"].as_f64().unwrap();
        let margin = median * surveyed["spread"].as_f64().unwrap_or(0.0);
        let has_interval = !surveyed["low"].is_null();
        let found =
            if has_interval { interval(surveyed) } else { (median - margin, median + margin) };
        overlap(found, interval(&probed))
    };
    assert!((0..ATTEMPTS).any(|_| agree()));
}

#[test]
fn each_table_of_copies_has_an_error_column() {
    let _alone = machine_alone();
    let one = terrace("measure memcpy memcpy --size 64k --budget 2s").done();
    let methods = if cfg!(target_arch = "x86_64") { "memcpy,rep-movsb" } else { "memcpy,neon" };
    let many = terrace(&format!("measure memcpy {methods} --size 16k,64k --budget 2s")).done();
    for page in [&one, &many] {
        let head = page.lines().find(|line| line.contains("copy ")).unwrap();
        assert!(head.contains("+-"), "{page}");
        assert!(page.contains("+- is between "), "{page}");
    }
    let quick = terrace("measure memcpy memcpy --size 64k --budget 2s --quick").done();
    assert!(quick.contains("+- is within this run"), "{quick}");
    let header = terrace("measure memcpy memcpy --size 64k --budget 1s --csv").done();
    assert!(header.lines().next().unwrap().contains("covers,runs"), "{header}");
    // One second holds one run alone where the machine is slow.
    let rows = probe_csv("memcpy", "memcpy --size 64k --budget 4s");
    assert!(rows[0].iter().any(|field| field == "between_runs"), "{rows:?}");
}

/// Its default pace made a disk look four times slower than every peer, and nothing said why.
#[test]
fn a_latency_says_its_pace_first() {
    let _alone = machine_alone();
    let directory = TempDir::new();
    let path = directory.path().display();
    let page = terrace(&format!("measure iolat {path} -S 8m -w 4s -q")).done();
    let first = page.lines().next().unwrap();
    assert!(first.contains("back to back, then one request each 10 ms"), "{page}");
    let page = terrace(&format!("measure iolat {path} -S 8m -w 500ms -q -i 10ms --quick")).done();
    assert!(page.lines().next().unwrap().contains("one request each 10 ms"), "{page}");
}

/// 64 KiB fit no L1: what climbs there is L2, and sizes far apart tell of no cache at all.
#[test]
fn no_cache_gets_the_name_of_a_smaller_one() {
    let _alone = machine_alone();
    for sizes in ["64k,16m", "64k,128k,256k,512k,1m,2m,4m,8m,16m"] {
        let line = format!("--size {sizes} --pages thp --pattern random --quick --budget 8s");
        let json = probe_json("memlat", &line);
        let caches = json["result"]["caches"].as_array().unwrap();
        let is_smaller =
            |cache: &&Value| cache["sysfs_bytes"].as_u64().is_some_and(|bytes| bytes < 64 << 10);
        for cache in caches.iter().filter(is_smaller) {
            assert!(cache["measured"].is_null(), "{sizes}: {cache}");
        }
        for edge in caches.iter().map(|cache| &cache["measured"]).filter(|edge| !edge.is_null()) {
            let end = |name: &str| edge[name].as_u64().unwrap();
            assert!(end("spills_bytes") <= 2 * end("fits_bytes"), "{sizes}: {edge}");
        }
    }
}

/// Two surveys of the same machine: no figure may be proven to differ, and no search that saw an
/// edge once may call the kernel wrong.
#[test]
fn two_quick_surveys_of_one_machine_prove_no_difference() {
    let _alone = machine_alone();
    let directory = TempDir::new();
    let survey = |name: &str| {
        let path = directory.path().display();
        let file = directory.join(name);
        terrace(&format!("survey --quick --json --path {path} -o {}", file.display())).done();
        let survey: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        for cache in survey["curves"]["caches"].as_array().unwrap() {
            let is_seen_once = cache["searches"]["found"].as_u64().unwrap_or(1) < 2;
            let is_of_it = |finding: &&Value| {
                let level = format!("L{} cache", cache["level"]);
                finding["id"] == "cache_size_differs" && finding["tier"] == level.as_str()
            };
            for finding in survey["findings"].as_array().unwrap().iter().filter(is_of_it) {
                let (claim, _) = finding["claim"].as_str().unwrap().split_once(" wrong").unwrap();
                let blames = claim.contains("sysfs") || claim.contains("CPUID");
                assert!(!(is_seen_once && blames), "{cache} {finding}");
            }
        }
        file.display().to_string()
    };
    let is_same = || {
        let (first, second) = (survey("a.json"), survey("b.json"));
        let text = terrace(&format!("compare {first} {second} --json")).done();
        let compared: Value = serde_json::from_str(&text).unwrap();
        let items = compared["items"].as_array().unwrap();
        let proven: Vec<&Value> =
            items.iter().filter(|item| item["verdict"] != "unproven").collect();
        println!("{proven:?}");
        proven.is_empty()
    };
    assert!((0..ATTEMPTS).any(|_| is_same()));
}
