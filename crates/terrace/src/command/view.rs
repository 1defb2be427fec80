//! `terrace view`: the page of one recording or two, served to a browser of this machine or written
//! as one file. What is drawn is made by `viewer`; here is reading before it and delivery after it.

mod browser;
mod live;

use super::{name_of, recording};
use crate::args::view::ViewArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::Target;
use crate::output::progress::Progress;
use explain::recording::{Window, explain};
use live::Live;
use model::recording::Recording;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use viewer::live::Place;
use viewer::recording::recording_page;
use viewer::{Meanings, Server, Site, View};

/// The most bytes of names, texts and changes that a page holds: more takes a browser's memory away.
/// An hour of a busy machine has 4 MiB.
const PAGE_BYTES_MAX: usize = 128 << 20;

/// How long nothing is done between two looks at a file that grows.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Serves the page, or writes it.
///
/// # Errors
/// When a recording cannot be read, or its page would be too long or could not be written.
pub fn view(args: &ViewArgs) -> Result<Exit> {
    if let Some(out) = &args.html {
        let target = Target::of(Some(out))?;
        target.write(&page(args)?)?;
        return Ok(Exit::Done);
    }
    if !args.live {
        let page = Arc::new(page(args)?);
        return serve(args, Arc::new(Still(page)), || {});
    }
    let live = Arc::new(Live::open(&args.file)?);
    let site = Arc::clone(&live);
    serve(args, site, || live.look())
}

/// Serves `site` until Ctrl-C; `meanwhile` is done again and again.
fn serve(args: &ViewArgs, site: Arc<dyn Site>, meanwhile: impl Fn()) -> Result<Exit> {
    let server = Server::listen(secret()?, secret()?)
        .map_err(|error| sys::Error::new("listen on 127.0.0.1", error))?;
    Target::standard().write(&format!("{}\n", server.address()))?;
    if !args.no_browser {
        browser::open(&server);
    }
    let progress = Progress::new();
    progress.step("terrace view: Ctrl-C ends it");
    // Its threads hold nothing that outlives the process.
    std::thread::spawn(move || server.serve(site));
    while !sys::interrupt::requested() {
        meanwhile();
        // A pause that a signal ends.
        let _ = sys::poll::readable([None], Some(LOOK_EVERY.as_nanos() as u64));
    }
    Ok(Exit::Done)
}

/// 128 bits that nobody can guess.
fn secret() -> Result<String> {
    let (one, other) = (sys::random::seed()?, sys::random::seed()?);
    Ok(format!("{one:016x}{other:016x}"))
}

/// The page of all recordings that were named.
fn page(args: &ViewArgs) -> Result<String> {
    let files = [Some(&args.file), args.second.as_ref()];
    let meanings = Meanings::documented();
    let mut views = Vec::new();
    for (number, path) in (1..).zip(files.into_iter().flatten()) {
        let mut recording = recording::open(path)?;
        must_fit(&recording).map_err(|error| too_long(path, error))?;
        let mut name = name_of(path);
        if args.is_redacted() {
            record::redact::redact(&mut recording);
            name = format!("recording {number}");
        }
        let explanation = explain(&recording, Window::default());
        views.push(View::new(
            &name,
            &recording,
            explanation,
            meaning(&meanings),
        ));
    }
    recording_page(views, None).map_err(not_made)
}

/// What a series of this name means; nothing for one that is not documented.
fn meaning(meanings: &Meanings) -> impl Fn(&str) -> String {
    |name| meanings.of(name).unwrap_or_default().to_owned()
}

/// Refuses what would not fit into a page, with its size, before the page is made.
fn must_fit(recording: &Recording) -> std::result::Result<(), usize> {
    let series = recording.series.iter().map(|series| {
        let schema = &series.schema;
        schema.name.len() + schema.source.len() + schema.unit.len() + series.steps.len()
    });
    let spans = recording.spans.iter();
    let spans = spans.map(|span| span.kind.len() + span.text.len());
    let bytes = series.chain(spans).sum();
    if bytes > PAGE_BYTES_MAX {
        Err(bytes)
    } else {
        Ok(())
    }
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

/// A page that does not change.
#[derive(Debug)]
struct Still(Arc<String>);

impl Site for Still {
    fn page(&self) -> Option<Arc<String>> {
        Some(Arc::clone(&self.0))
    }

    fn event(&self, _: Place) -> Option<(String, Place)> {
        None
    }

    fn has_ended(&self, _: Place) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever adds a series says in docs/counters.md what it means.
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
            for series in recording::open(&path).unwrap().series {
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
