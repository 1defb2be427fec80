//! The words of the page for slices, and the labels of its charts of states, are those of
//! `model`, which text and terminal show too.

use model::explanation::TimeSlice;

/// `web/words.js` as it must be.
fn words_js() -> String {
    let mut text = "// The words for a slice of time, by its id: those of `TimeSlice` in crates/model. \
                    tests/words.rs\n// compares both and prints this file if they differ.\n\
                    export const WORDS = /** @type {Record<string, {short: string, long: string}>} */ ({\n"
        .to_owned();
    for slice in TimeSlice::ALL {
        let (short, long) = slice.words();
        let id = slice.id();
        text.push_str(&format!("  {id}: {{ short: \"{short}\", long: \"{long}\" }},\n"));
    }
    text + "});\n"
}

#[test]
fn the_page_has_the_words_of_the_model() {
    let page = include_str!("../web/words.js");
    assert!(page == words_js(), "web/words.js must be:\n{}", words_js());
}

#[test]
fn charts_of_states_have_the_words_of_the_bars() {
    let questions = viewer::questions::questions().expect("web/questions.json is read");
    let mut charts = questions.iter().flat_map(|question| &question.charts);
    let states = charts.find(|chart| chart.id == "states");
    let labels: Vec<&str> =
        states.iter().flat_map(|chart| &chart.series).map(|series| series.label.as_str()).collect();
    let slices = [TimeSlice::Run, TimeSlice::Queue, TimeSlice::BlockIo];
    assert_eq!(labels, slices.map(|slice| slice.words().1));
}
