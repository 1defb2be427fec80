//! The page of one recording, of two sides, or of three or four recordings over each other: read,
//! made to fit, without what is personal where others are to see it, explained. It is drawn by
//! `viewer`, delivered by `view` and `compare`.

use super::{moments, open_recording_of};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{OutputTarget, json};
use explain::recording::{Window, explain};
use model::compared::{Comparison, Side};
use model::recording::Recording;
use model::survey::Survey;
use record::redact;
use std::path::{Path, PathBuf};
use viewer::overlay;
use viewer::recording::recording_page;
use viewer::who::bytes_in_page;
use viewer::{Meanings, View};

/// The most bytes of names, texts and changes that a page holds: more takes a browser's memory
/// away. An hour of a busy machine has 4 MiB. Less than what a reader takes of names alone, so that
/// a recording that was cut for its names is refused and not drawn.
const PAGE_BYTES_MAX: usize = 64 << 20;

/// A comparison, and what a page draws of the two sides.
pub struct Compared {
    /// What `--json` prints.
    pub comparison: Comparison,
    /// What is drawn.
    pub charts: Charts,
}

/// What is drawn of each side.
pub enum Charts {
    /// All surveys, and those that their noise was learnt from: the first of each side is drawn.
    Surveys([Vec<Survey>; 3]),
    /// The recording in the middle by wall time.
    Recordings([PathBuf; 2]),
}

/// The target of a page that is written in addition to the printed result, if requested.
///
/// # Errors
/// If that is not a file, or cannot be written.
pub fn target(html: Option<&Path>, is_redacted: bool) -> Result<Option<OutputTarget>> {
    let target = html.map(|path| OutputTarget::of_redacted(Some(path), is_redacted));
    match target.transpose()? {
        Some(OutputTarget::Standard) => {
            Err(Error::usage("the page goes to a file; standard output is for the text"))
        }
        target => Ok(target),
    }
}

/// The page of two sides over each other, with what differs.
///
/// # Errors
/// As [`of_recordings`].
pub fn of_comparison(compared: &Compared, is_redacted: bool) -> Result<String> {
    let comparison = &compared.comparison;
    match &compared.charts {
        Charts::Recordings([first, second]) => {
            of_recordings([&**first, second], is_redacted, Some(comparison))
        }
        Charts::Surveys(surveys) if is_redacted => {
            let mut surveys = surveys.clone();
            let mut all: Vec<&mut Survey> = surveys.iter_mut().flatten().collect();
            redact::redact_surveys(&mut all, &[]);
            let [first, second, kept] = &surveys;
            let comparison = explain::comparison::surveys(first, second, kept);
            of_surveys(&surveys, &comparison)
        }
        Charts::Surveys(surveys) => of_surveys(surveys, comparison),
    }
}

/// The page of the recordings in `files`, one or two, and of what differs between them.
///
/// # Errors
/// When one cannot be read, or its page would be too long or could not be written.
pub fn of_recordings<const N: usize>(
    files: [&Path; N],
    is_redacted: bool,
    comparison: Option<&Comparison>,
) -> Result<String> {
    let meanings = Meanings::documented();
    let mut views = Vec::new();
    for (number, path) in (1..).zip(files) {
        let mut recording = open_recording_of(path, N)?;
        must_fit(&recording).map_err(|error| too_long(path, error))?;
        let mut name = super::name_of(path);
        if is_redacted {
            redact::redact(&mut recording);
            name = format!("recording {number}");
        }
        let mut explanation = explain(&recording, Window::default());
        moments::add_shown(&mut explanation, path, &recording, is_redacted);
        views.push(View::new(&name, &recording, explanation, meaning(&meanings)));
    }
    let comparison = match (comparison, &views[..]) {
        (Some(comparison), [first, second]) if is_redacted => {
            Some(json::render(&without_names(comparison, [first, second]))?)
        }
        (comparison, _) => comparison.map(json::render).transpose()?,
    };
    recording_page(views, comparison, None).map_err(not_made)
}

/// The page of three or four recordings over each other: of each what is drawn there.
///
/// # Errors
/// As [`of_recordings`].
pub fn of_many_recordings(files: &[(String, &Path)], is_redacted: bool) -> Result<String> {
    let meanings = Meanings::documented();
    let mut views = Vec::new();
    for (number, (name, path)) in (1..).zip(files) {
        let mut recording = open_recording_of(path, files.len())?;
        must_fit(&recording).map_err(|error| too_long(path, error))?;
        let mut name = name.clone();
        if is_redacted {
            redact::redact(&mut recording);
            name = format!("recording {number}");
        }
        let explanation = explain(&recording, Window::default());
        overlay::reduce(&mut recording);
        views.push(View::new(&name, &recording, explanation, meaning(&meanings)));
    }
    recording_page(views, None, None).map_err(not_made)
}

/// The documented meaning of a series; empty if it has none.
pub fn meaning(meanings: &Meanings) -> impl Fn(&str) -> String {
    |name| meanings.of(name).unwrap_or_default().to_owned()
}

/// Refuses a recording that does not fit into a page, with its size, before the page is made.
pub fn must_fit(recording: &Recording) -> std::result::Result<(), usize> {
    let series = recording.series.iter().map(|series| {
        let schema = &series.schema;
        schema.name.len() + schema.source.len() + schema.unit.len() + series.steps.bytes()
    });
    let spans = recording.spans.iter().map(|span| span.kind.len() + span.text.len());
    let bytes = series.chain(spans).sum::<usize>() + bytes_in_page(&recording.who);
    if bytes > PAGE_BYTES_MAX { Err(bytes) } else { Ok(()) }
}

/// `comparison` with the stand-ins of what is drawn, and without the names of files.
fn without_names(comparison: &Comparison, [first, second]: [&View; 2]) -> Comparison {
    let side = |side: &Side, view: &View| Side {
        name: view.contents.explain.subject.clone(),
        files: Vec::new(),
        runs: side.runs,
    };
    Comparison {
        first: side(&comparison.first, first),
        second: side(&comparison.second, second),
        ..comparison.clone()
    }
}

/// The page of the first survey of each side, over each other.
fn of_surveys([first, second, _]: &[Vec<Survey>; 3], comparison: &Comparison) -> Result<String> {
    let sides = [json::render(&first[0])?, json::render(&second[0])?];
    Ok(viewer::surveys_page(sides, json::render(comparison)?))
}

fn too_long(path: &Path, bytes: usize) -> Error {
    let (bytes, most) = (bytes >> 20, PAGE_BYTES_MAX >> 20);
    let text = format!(
        "{} is too long for a page: {bytes} MiB of names and changes, at most {most} MiB fit",
        path.display()
    );
    Error::new(Exit::Impossible, text).hint("`terrace explain --from T --to T` reads a part of it")
}

fn not_made(error: serde_json::Error) -> Error {
    Error::new(Exit::Partial, format!("cannot make the page: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::open_recording;

    /// A new series is documented in docs/counters.md.
    #[test]
    fn every_series_of_the_fixtures_has_a_meaning() {
        let meanings = Meanings::documented();
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recordings");
        let mut count = 0;
        for entry in std::fs::read_dir(fixtures).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "trec") {
                continue;
            }
            for series in open_recording(&path).unwrap().series {
                let name = series.schema.name;
                assert!(meanings.of(&name).is_some(), "{name}");
                count += 1;
            }
        }
        assert!(count > 1_000, "{count}");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_size() {
        let mut recording = Recording::default();
        assert_eq!(must_fit(&recording), Ok(()));
        recording.spans.push(model::recording::Span {
            kind: "mark".to_owned(),
            text: "x".repeat(PAGE_BYTES_MAX),
            start_ns: 0,
            end_ns: 0,
        });
        assert_eq!(must_fit(&recording), Err(PAGE_BYTES_MAX + 4));
    }
}
