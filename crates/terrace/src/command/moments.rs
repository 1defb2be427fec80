//! What the moments were about that stood out: the part of each is read and explained by itself.
//!
//! A long recording is thinned until it fits into memory, and rows of its processes become longer;
//! a part of it is read with all that was recorded. So the verdict that is printed for a moment is
//! the one that `--at` prints.

use explain::recording::{Window, explain, moments};
use model::explanation::{Explanation, StandingOut};
use model::recording::Recording;
use record::file::RecordingOutline;
use std::path::Path;

/// Adds the moments of the recording at `path` that stood out; `recording` is what was read of it.
/// Only what is cleared in each of them stays cleared of the whole, of which they may be a small
/// part.
pub fn add_to(explanation: &mut Explanation, path: &Path, recording: Recording) {
    let found = moments::find(&recording);
    let started_unix_ns = recording.facts.started_unix_ns;
    // A part takes memory, too: what was read whole is not needed where parts can be read.
    match RecordingOutline::open(path).is_none().then_some(recording) {
        Some(whole) => describe(explanation, found, |window| Some(explain(&whole, window))),
        None => {
            describe(explanation, found, |window| explained_part(path, window, started_unix_ns));
        }
    }
}

/// The same beside a recording that is shown. One without the names of others has all that may be
/// said of it.
pub fn add_shown(
    explanation: &mut Explanation,
    path: &Path,
    recording: &Recording,
    is_redacted: bool,
) {
    let found = moments::find(recording);
    let started_unix_ns = recording.facts.started_unix_ns;
    if is_redacted || RecordingOutline::open(path).is_none() {
        return describe(explanation, found, |window| Some(explain(recording, window)));
    }
    describe(explanation, found, |window| explained_part(path, window, started_unix_ns));
}

/// Says what each was about.
fn describe(
    explanation: &mut Explanation,
    mut found: Vec<StandingOut>,
    verdict_of: impl Fn(Window) -> Option<Explanation>,
) {
    for (window, moment) in moments::windows_before(&found).into_iter().zip(&mut found) {
        // Without one all that was found is of the moment.
        let before = window.and_then(&verdict_of).unwrap_or_default();
        if let Some(verdict) = verdict_of(moments::window_of(moment)) {
            moments::describe(moment, &verdict, &before);
            let is_cleared = |id: &str| verdict.cleared.iter().any(|one| one.id == id);
            explanation.cleared.retain(|suspect| is_cleared(&suspect.id));
        }
    }
    explanation.moments = found;
}

/// The verdict of a part that is read alone.
fn explained_part(path: &Path, window: Window, started_unix_ns: u64) -> Option<Explanation> {
    let outline = RecordingOutline::open(path)?;
    // The oldest segment of a ring may have gone since all of it was read.
    let later_ns = outline.recording().facts.started_unix_ns.saturating_sub(started_unix_ns);
    let moved = |ns: u64| ns.saturating_sub(later_ns);
    let (from_ns, to_ns) = (moved(window.from_ns?), moved(window.to_ns?));
    let part = outline.part(from_ns, to_ns)?;
    Some(explain(&part, Window { from_ns: Some(from_ns), to_ns: Some(to_ns) }))
}
