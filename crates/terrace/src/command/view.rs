//! `terrace view`: serves the page of one recording to four to a browser of this machine, or writes
//! it as one file. [`super::page`] makes the page.

mod browser;
mod live;

use super::compare::compared;
use super::{page, recorder_ring};
use crate::args::recordings::ViewArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::OutputTarget;
use crate::output::progress::Progress;
use live::LiveRecording;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use viewer::live::PagePosition;
use viewer::{Server, Site};

/// The pause between two reads of a growing file.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Serves the page, or writes it.
///
/// # Errors
/// When a recording cannot be read, or its page would be too long or could not be written.
pub fn view(args: &ViewArgs) -> Result<Exit> {
    let file = recorder_ring::named_or_found(args.file.as_deref())?;
    if let Some(out) = &args.html {
        let target = OutputTarget::of_redacted(Some(out), args.is_redacted())?;
        target.write_data(&page(args, &file)?)?;
        return Ok(Exit::Done);
    }
    if !args.live {
        let page = Arc::new(page(args, &file)?);
        return serve(args, Arc::new(Still(page)), || {});
    }
    let live = Arc::new(LiveRecording::open(&file)?);
    let site = Arc::clone(&live);
    serve(args, site, || live.look())
}

/// Serves `site` until Ctrl-C; `meanwhile` is done again and again.
fn serve(args: &ViewArgs, site: Arc<dyn Site>, meanwhile: impl Fn()) -> Result<Exit> {
    let server =
        Server::listen(secret()?).map_err(|error| sys::Error::new("listen on 127.0.0.1", error))?;
    let was_fetched = server.was_fetched();
    let mut signpost = if args.no_browser { None } else { browser::open(&server.address()) };
    OutputTarget::standard().write(&format!("{}\n", server.address()))?;
    let progress = Progress::new();
    progress.step("terrace view: Ctrl-C ends it");
    // Its threads hold nothing that outlives the process.
    std::thread::spawn(move || server.serve(site));
    while !sys::interrupt::requested() {
        meanwhile();
        // The browser knows the way now.
        signpost = signpost.filter(|_| !was_fetched.load(Ordering::Relaxed));
        // A pause that a signal ends.
        let _ = sys::poll::readable([None], Some(LOOK_EVERY.as_nanos() as u64));
    }
    Ok(Exit::Done)
}

/// 128 random bits, which cannot be guessed.
fn secret() -> Result<String> {
    let (one, other) = (sys::random::seed()?, sys::random::seed()?);
    Ok(format!("{one:016x}{other:016x}"))
}

/// The page of all recordings that were named; of two with how they differ.
fn page(args: &ViewArgs, file: &Path) -> Result<String> {
    let Some(second) = &args.second else {
        return page::of_recordings([file], args.is_redacted(), None);
    };
    if !args.more.is_empty() {
        let paths = [file, second].into_iter().chain(args.more.iter().map(PathBuf::as_path));
        let files: Vec<(String, &Path)> = paths.map(|file| (super::name_of(file), file)).collect();
        return page::of_many_recordings(&files, args.is_redacted());
    }
    let compared = compared(&[file.to_owned()], std::slice::from_ref(second), &args.align)?;
    page::of_comparison(&compared, args.is_redacted())
}

/// A page that does not change.
#[derive(Debug)]
struct Still(Arc<String>);

impl Site for Still {
    fn page(&self) -> Option<Arc<String>> {
        Some(Arc::clone(&self.0))
    }

    fn event(&self, _: PagePosition) -> Option<(String, PagePosition)> {
        None
    }

    fn has_ended(&self, _: PagePosition) -> bool {
        true
    }
}
