//! A recording as `terrace export --to json` gives it, and how its series grew. What the series
//! mean is the matter of each part of the suite.

use serde_json::Value;

use super::LIMIT;
use crate::bench::peer::Peer;
use crate::error::Error;

/// The recording in `file`.
pub(super) fn read(terrace: &Peer, file: &str) -> Result<Value, Error> {
    let json = terrace.run(&["export", file, "--to", "json"], LIMIT)?.stdout;
    serde_json::from_str(&json).map_err(|error| malformed(error.to_string()))
}

/// The steps of the series `name`: from which sample on, which value. `None` if it is absent.
pub(super) fn steps(recording: &Value, name: &str) -> Option<Vec<(usize, f64)>> {
    let series = recording["series"].as_array()?.iter().find(|one| one["name"] == *name)?;
    let step = |step: &Value| Some((step[0].as_u64()? as usize, step[1].as_f64()?));
    Some(series["steps"].as_array()?.iter().filter_map(step).collect())
}

/// By how much the counter `name` grew from the first to the last sample; `None` if it is absent.
pub(super) fn growth(recording: &Value, name: &str) -> Option<f64> {
    let steps = steps(recording, name)?;
    Some(steps.last()?.1 - steps.first()?.1)
}

/// The last value of `name`; `None` if it is absent.
pub(super) fn last(recording: &Value, name: &str) -> Option<f64> {
    steps(recording, name)?.last().map(|(_, value)| *value)
}

/// The names of all series.
pub(super) fn names(recording: &Value) -> impl Iterator<Item = &str> {
    let series = recording["series"].as_array().map_or(&[][..], Vec::as_slice);
    series.iter().filter_map(|one| one["name"].as_str())
}

/// An error about a recording.
pub(super) fn malformed(why: String) -> Error {
    Error::Malformed { what: "a recording", why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_grows_and_an_absent_one_is_none() {
        let json = r#"{"series": [{"name": "a", "steps": [[0, 5.0], [3, 9.0]]},
                                  {"name": "b", "steps": []}]}"#;
        let recording = serde_json::from_str(json).unwrap();
        assert_eq!((growth(&recording, "a"), last(&recording, "a")), (Some(4.0), Some(9.0)));
        assert_eq!((growth(&recording, "b"), last(&recording, "c")), (None, None));
        assert_eq!(names(&recording).collect::<Vec<_>>(), ["a", "b"]);
    }
}
