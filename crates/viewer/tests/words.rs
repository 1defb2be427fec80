//! The labels of the page's charts of states are the words of `model` for slices, which text and
//! terminal show too.

use model::explanation::TimeSlice;

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
