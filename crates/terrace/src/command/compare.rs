//! `terrace compare`: surveys or recordings of two sides are read, compared, and the result is
//! delivered; with `--fail-if` the exit status says whether the second is worse.

use super::page::{Charts, Compared};
use super::{kept, must_exist, open_recording, open_recording_of, page};
use crate::args::When;
use crate::args::compare::{Align, CompareArgs, Gate};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{self, OutputTarget, Page, compare, json};
use explain::comparison::{self, NotAligned, SteadyRun};
use explain::recording::{Window, explain};
use model::compared::{Comparison, WorkAlignment};
use model::explanation::Explanation;
use model::survey::{SCHEMA, Survey};
use std::io::Read;
use std::path::{Path, PathBuf};

/// No survey is longer: the largest seen has 60 KB.
const LONGEST_SURVEY: u64 = 16 << 20;

/// More runs of one side are refused: a comparison is no archive.
const MOST_RUNS: usize = 1000;

/// One side as it was read.
enum Runs {
    Surveys(Vec<Survey>),
    Recordings(Vec<Explanation>, Vec<SteadyRun>),
}

/// Compares, and delivers.
///
/// # Errors
/// When a file cannot be read, the two sides are not of one sort, or have no work in common.
pub fn compare(args: &CompareArgs, color: When) -> Result<Exit> {
    let target = OutputTarget::of(args.output.as_deref())?;
    let html = page::target(args.html.as_deref(), !args.no_redact)?;
    let page = Page::of(&target, color);
    let (first, second) = match &args.files[..] {
        [first, second] => (std::slice::from_ref(first), std::slice::from_ref(second)),
        _ => (&args.first[..], &args.second[..]),
    };
    let compared = compared(first, second, &args.align)?;
    let comparison = &compared.comparison;
    let text = if args.json {
        json::render(comparison)?
    } else if args.markdown {
        compare::markdown(comparison)
    } else {
        compare::page(comparison, page)
    };
    if let Some(html) = html {
        html.write_data(&page::of_comparison(&compared, !args.no_redact)?)?;
    }
    target.write(&text)?;
    Ok(args.fail_if.map_or(Exit::Done, |gate| judged(comparison, gate)))
}

/// Compares two sides.
///
/// # Errors
/// As [`compare()`].
pub fn compared(first: &[PathBuf], second: &[PathBuf], align: &Align) -> Result<Compared> {
    let (mut comparison, charts) = match (side(first)?, side(second)?) {
        (Runs::Surveys(_), Runs::Surveys(_)) if *align != Align::Time => {
            return Err(Error::usage("--align is for recordings"));
        }
        (Runs::Surveys(a), Runs::Surveys(b)) => {
            let kept = a.first().map(kept::of_machine).unwrap_or_default();
            let comparison = comparison::surveys(&a, &b, &kept);
            (comparison, Charts::Surveys([a, b, kept]))
        }
        (Runs::Recordings(a, steady_a), Runs::Recordings(b, steady_b)) => {
            let pair = [&first[middle(&a)], &second[middle(&b)]];
            let comparison = Comparison {
                aligned: match align {
                    Align::Time => None,
                    Align::Progress(series) => Some(aligned(pair, series.as_deref())?),
                },
                // Of what runs on the recorder chose the length.
                ..if steady_a.len() == a.len() && steady_b.len() == b.len() {
                    comparison::rates((&a, &steady_a), (&b, &steady_b))
                } else {
                    comparison::recordings(&a, &b)
                }
            };
            (comparison, Charts::Recordings(pair.map(PathBuf::clone)))
        }
        _ => return Err(Error::usage("a survey cannot be compared with a recording")),
    };
    let names = |files: &[PathBuf]| files.iter().map(|file| file.display().to_string()).collect();
    comparison.first.files = names(first);
    comparison.second.files = names(second);
    Ok(Compared { comparison, charts })
}

/// The runs of one side, all of one sort.
fn side(files: &[PathBuf]) -> Result<Runs> {
    if files.len() > MOST_RUNS {
        return Err(Error::usage(format!("a side has at most {MOST_RUNS} runs")));
    }
    let surveys = files.iter().map(|file| survey(file)).collect::<Result<Vec<_>>>()?;
    let count = surveys.iter().flatten().count();
    if count == files.len() {
        return Ok(Runs::Surveys(surveys.into_iter().flatten().collect()));
    }
    if count > 0 {
        return Err(Error::usage("a side has surveys and recordings"));
    }
    // One at a time: a recording may be a thousand times as large as its explanation.
    let (mut explained, mut steady) = (Vec::new(), Vec::new());
    for file in files {
        let recording = open_recording(file)?;
        explained.push(explain(&recording, Window::default()));
        steady.extend(comparison::steady_run(&recording));
    }
    Ok(Runs::Recordings(explained, steady))
}

/// The survey in `file`; `None` when it is no JSON at all.
fn survey(file: &Path) -> Result<Option<Survey>> {
    must_exist(file)?;
    if !file.is_file() {
        return Ok(None);
    }
    let wrong = |why: &str| Error::usage(format!("{} is no survey: {why}", file.display()));
    let failed = |error| sys::Error::new("read", error).at(file);
    let mut opened = sys::file::open_input(file)?.take(LONGEST_SURVEY);
    let mut bytes = vec![0];
    if opened.read(&mut bytes).map_err(failed)? == 0 || bytes[0] != b'{' {
        return Ok(None);
    }
    opened.read_to_end(&mut bytes).map_err(failed)?;
    let value: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|error| wrong(&error.to_string()))?;
    if value["schema"] != SCHEMA {
        return Err(wrong(&format!("its schema is not {SCHEMA}")));
    }
    let survey = serde_json::from_value(value).map_err(|error| wrong(&error.to_string()));
    survey.map(Some)
}

/// The run in the middle by its wall time.
fn middle(runs: &[Explanation]) -> usize {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|&run| runs[run].wall_ns);
    order[(order.len() - 1) / 2]
}

fn aligned([first, second]: [&PathBuf; 2], series: Option<&str>) -> Result<WorkAlignment> {
    let recordings = (open_recording_of(first, 2)?, open_recording_of(second, 2)?);
    comparison::aligned(&recordings.0, &recordings.1, series).map_err(|why| {
        let file = |is_second| if is_second { second } else { first };
        match why {
            NotAligned::NoWork { second, series } => {
                let file = file(second).display();
                Error::usage(format!("{file}: {series} does not grow in it"))
            }
            NotAligned::Level(series) => {
                Error::usage(format!("{series} is a level, not a counter"))
            }
            NotAligned::NothingUsual => {
                Error::usage("neither tells of progress, or reads and writes")
            }
        }
        .hint("--align progress:SERIES names a counter; `terrace export` shows which there are")
    })
}

/// What the gate says, and the status that it means.
fn judged(comparison: &Comparison, gate: Gate) -> Exit {
    match comparison::worse(comparison) {
        Some((what, share)) if share > gate.worse => {
            let allowed = gate.worse * 100.0;
            let text = format!("{what}, more than {allowed} %");
            output::complain(&Error::new(Exit::Worse, text).during("compare"))
        }
        _ => Exit::Done,
    }
}
