//! A recording that is shown while it is written: reads what is appended, sends it to the open
//! pages, and explains it again from time to time.
//!
//! Explaining is expensive: at most once a second, and at most one part in [`SHARE`] of a
//! processor, for a recording of any length.

use crate::command::page::{meaning, must_fit};
use crate::command::{must_exist, name_of};
use crate::error::Result;
use explain::recording::{RECORDING_WAS_CUT, Window, explain};
use model::explanation::Explanation;
use record::file::Follower;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use viewer::live::{LiveState, PagePosition, event};
use viewer::recording::recording_page;
use viewer::who::WhoPosition;
use viewer::{Meanings, Site, View};

/// The least time between two explanations.
const EXPLAIN_EVERY: Duration = Duration::from_secs(1);

/// What explaining may take of a processor: one part of so many.
const SHARE: u32 = 50;

/// How long a page waits for news before it is asked whether it is still there.
const NEWS_LIMIT: Duration = Duration::from_millis(500);

/// A recording that is being made.
#[derive(Debug)]
pub struct LiveRecording {
    name: String,
    meanings: Meanings,
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug)]
struct State {
    follower: Follower,
    explanation: Explanation,
    explanations: u64,
    /// Samples that are explained; `None` before the first time.
    explained: Option<usize>,
    /// Not before this is it explained anew, unless it is over.
    next: Instant,
    has_ended: bool,
}

impl LiveRecording {
    /// Reads what there is of the recording at `path`.
    ///
    /// # Errors
    /// When it cannot be read or is no recording.
    pub fn open(path: &Path) -> Result<Self> {
        must_exist(path)?;
        let live = Self {
            name: name_of(path),
            meanings: Meanings::documented(),
            state: Mutex::new(State {
                follower: Follower::open(path)?,
                explanation: Explanation::default(),
                explanations: 0,
                explained: None,
                next: Instant::now(),
                has_ended: false,
            }),
            news: Condvar::new(),
        };
        live.look();
        Ok(live)
    }

    /// Reads what was appended, and explains it where its turn has come.
    pub fn look(&self) {
        let mut state = self.state();
        if state.has_ended {
            return;
        }
        let read = state.follower.advance();
        let explained = state.explain_in_turn();
        state.has_ended = state.follower.is_over();
        drop(state);
        if read || explained {
            self.news.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether it was explained anew.
    fn explain_in_turn(&mut self) -> bool {
        let recording = self.follower.recording();
        let is_over = self.follower.is_over();
        let samples = recording.ticks.len();
        let is_due = Instant::now() >= self.next && self.explained != Some(samples);
        if !is_over && !is_due {
            return false;
        }
        let started = Instant::now();
        self.explanation = explain(recording, Window::default());
        if !is_over {
            let doubts = &mut self.explanation.doubts;
            doubts.retain(|doubt| doubt != RECORDING_WAS_CUT);
        }
        self.explanations += 1;
        self.explained = Some(samples);
        let now = Instant::now();
        self.next = now + EXPLAIN_EVERY.max((now - started) * SHARE);
        true
    }

    fn now(&self) -> LiveState<'_> {
        LiveState {
            recording: self.follower.recording(),
            explanation: &self.explanation,
            explanations: self.explanations,
            has_ended: self.has_ended,
        }
    }

    /// The place of a page that knows all that was read.
    fn place(&self) -> PagePosition {
        let recording = self.follower.recording();
        PagePosition {
            samples: recording.ticks.len(),
            series: recording.series.len(),
            spans: recording.spans.len(),
            explanation: self.explanations,
            who: WhoPosition::end_of(&recording.who),
        }
    }
}

impl Site for LiveRecording {
    fn page(&self) -> Option<Arc<String>> {
        let state = self.state();
        let recording = state.follower.recording();
        must_fit(recording).ok()?;
        let explanation = state.explanation.clone();
        let view = View::new(&self.name, recording, explanation, meaning(&self.meanings));
        let events = format!("events?from={}", state.place());
        drop(state);
        recording_page(vec![view], None, Some(&events)).ok().map(Arc::new)
    }

    fn event(&self, place: PagePosition) -> Option<(String, PagePosition)> {
        let news = |state: &State| event(&state.now(), place, meaning(&self.meanings)).ok()?;
        let state = self.state();
        if let Some(event) = news(&state) {
            return Some(event);
        }
        let waited = self.news.wait_timeout(state, NEWS_LIMIT);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        news(&state)
    }

    fn has_ended(&self, place: PagePosition) -> bool {
        let state = self.state();
        state.has_ended && place == state.place()
    }
}
