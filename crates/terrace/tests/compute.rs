//! `terrace measure compute`: the forms of its result, and Ctrl-C. That a step takes the
//! time of its arithmetic is tested in `measure`.

mod support;

use support::{assert_interrupted, probe_csv, probe_json, signalled, terrace};

#[test]
fn a_step_takes_a_time_and_many_take_as_many() {
    let json = probe_json("compute", "--iterations 1m --budget 500ms");
    let step = json["result"]["step_ns"]["median"].as_f64().unwrap();
    let seconds = json["result"]["seconds"].as_f64().unwrap();
    assert!((seconds - step * 1e6 / 1e9).abs() < seconds * 0.01, "{json}");
}

#[test]
fn the_row_is_csv() {
    assert_eq!(probe_csv("compute", "--budget 2s").len(), 1);
}

#[test]
fn the_page_has_the_figures_of_2001() {
    let page = terrace("measure compute --budget 2s").done();
    assert!(page.contains("4.065, 4.087, 4.300"), "{page}");
}

#[test]
fn it_runs_where_it_is_pinned() {
    terrace("measure compute --budget 2s --cpu 0").done();
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    let ran = signalled("measure compute --budget 1h", &[], "INT", "3");
    assert_interrupted(&ran, "a step");
}
