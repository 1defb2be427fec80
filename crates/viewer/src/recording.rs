//! The page of one recording to four: which elements hold what, as docs/view.md names them. What is
//! in them is made by [`crate::view`].

use crate::assets::{RECORDING_MODULES, RECORDING_STYLE};
use crate::page::{PageData, page};
use crate::questions::QUESTIONS;
use crate::view::View;
use model::explanation::TimeSlice;
use serde_json::{Map, Value, json};

/// The most recordings of one page.
pub const MOST_RECORDINGS: usize = 4;

/// The elements of each recording.
const IDS: [[&str; 2]; MOST_RECORDINGS] = [
    ["view", "columns"],
    ["view-2", "columns-2"],
    ["view-3", "columns-3"],
    ["view-4", "columns-4"],
];

/// The page of the recordings in `views`, at most [`MOST_RECORDINGS`]. `comparison` is
/// `terrace.compare/1` of two as it is printed, `events` the path of the stream of what is recorded
/// after them.
///
/// # Errors
/// If a value cannot be written as JSON.
pub fn recording_page(
    views: Vec<View>,
    comparison: Option<String>,
    events: Option<&str>,
) -> serde_json::Result<String> {
    let names: Vec<String> = views.iter().map(|view| view.contents.name.clone()).collect();
    let mut data = vec![
        PageData::Json("questions", QUESTIONS.to_owned()),
        PageData::Json("words", words().to_string()),
    ];
    for (view, [contents, columns]) in views.into_iter().zip(IDS) {
        data.push(PageData::Json(contents, serde_json::to_string(&view.contents)?));
        data.push(PageData::Bytes(columns, view.columns));
    }
    data.extend(comparison.map(|json| PageData::Json("compare", json)));
    if let Some(path) = events {
        let live = json!({ "events": path });
        data.push(PageData::Json("live", live.to_string()));
    }
    let title = format!("{} - Terrace", names.join(" and "));
    Ok(page(&title, RECORDING_STYLE, RECORDING_MODULES, &data))
}

/// The words for a slice of time, by its id.
fn words() -> Value {
    let word = |slice: &TimeSlice| {
        let (short, long) = slice.words();
        (slice.id().to_owned(), json!({ "short": short, "long": long }))
    };
    TimeSlice::ALL.iter().map(word).collect::<Map<String, Value>>().into()
}
