//! `terrace measure faults`: each way and phase is there, in each form, also after Ctrl-C
//! in the midst of the wait.

mod support;

use support::{assert_interrupted, probe_csv, probe_json, signalled, terrace};

#[test]
fn every_way_and_phase_has_its_series() {
    let json = probe_json("faults", "--limit 16m --wait 0 --budget 10s");
    let series = json["result"]["series"].as_array().unwrap();
    for way in ["4k", "thp", "populate"] {
        for phase in ["first", "again"] {
            let found = series.iter().any(|s| s["way"] == way && s["phase"] == phase);
            assert!(found, "{way} {phase}");
        }
    }
    let base = series.iter().find(|s| s["way"] == "4k").unwrap();
    assert!(base["p50_ns"].as_f64().unwrap() > 50.0, "{base}");
}

#[test]
fn the_table_is_rectangular_csv() {
    assert_eq!(probe_csv("faults", "--limit 8m --wait 0 --way 4k --over 0")[0][0], "4k");
}

#[test]
fn the_page_has_a_histogram() {
    let page = terrace("measure faults --limit 8m --wait 0 --way 4k --quick").done();
    assert!(page.contains("again at once") && page.contains("###"), "{page}");
}

#[test]
fn ctrl_c_during_the_wait_prints_what_was_measured() {
    let ran =
        signalled("measure faults --limit 8m --wait 30min --way 4k --budget 1h", &[], "INT", "3");
    assert_interrupted(&ran, "new");
}
