//! Reading back a recording that has just been written, and completing what could not be written.
//!
//! The verdict after a run and a later one of the file cannot differ, because both come from the
//! same bytes. Only the end is taken from memory: a full disk must not change how a command ended.

use super::reader::{Limits, read_within};
use crate::{Error, ErrorKind, Result};
use model::recording::{Facts, Recording, RecordingOutcome};
use std::fs::File;
use std::io::{BufReader, Seek};

/// Reads what was written to an open file, from its start.
pub(super) fn read_back(mut file: File, limits: Limits) -> Result<Recording> {
    file.rewind().map_err(|error| {
        let reason = sys::plain_reason(&error);
        Error::new(ErrorKind::Failed, "read the recording", reason)
    })?;
    read_within(BufReader::new(file), limits)
}

/// What was read back, with the facts and the outcome that the caller knows.
pub(super) fn with_end(
    recording: Recording,
    ended: Result<RecordingOutcome>,
    facts: &Facts,
    outcome: &RecordingOutcome,
) -> Recording {
    let (written, ended) = match ended {
        Ok(written) => (Some(written), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let mut recording = with_lost_end(recording, ended, facts, outcome);
    recording.facts = facts.clone();
    recording.outcome = written.or(recording.outcome);
    recording
}

/// What was read back; if the end could not be written, with the end that the caller knows.
pub(super) fn with_lost_end(
    mut recording: Recording,
    ended: Result<()>,
    facts: &Facts,
    outcome: &RecordingOutcome,
) -> Recording {
    if let Err(error) = ended {
        recording.damage.push(error.to_string());
        let mut started_unix_ns = recording.facts.started_unix_ns;
        if started_unix_ns == 0 {
            // Not even the first chunk could be written.
            started_unix_ns = facts.started_unix_ns;
        }
        // A ring starts where its oldest segment does.
        let earlier_ns = facts.started_unix_ns.saturating_sub(started_unix_ns);
        recording.facts = Facts { started_unix_ns, ..facts.clone() };
        let outcome = recording.outcome.insert(outcome.clone());
        outcome.ended_ns = outcome.ended_ns.saturating_add(earlier_ns);
        outcome.stopped_early.get_or_insert(error.source.to_string());
    }
    recording
}
