//! `terrace export`: a recording in a form that other programs read, redacted unless that is switched off.
//! It goes out piece by piece, so that a recording of a day needs no memory for its text.

use super::recording;
use crate::args::export::{ExportArgs, Form};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Target;

/// Exports.
///
/// # Errors
/// When the recording cannot be read, or the text did not arrive whole.
pub fn export(args: &ExportArgs) -> Result<Exit> {
    let target = Target::of_redacted(args.output.as_deref(), !args.no_redact)?;
    let mut recording = recording::open(&args.file)?;
    if !args.no_redact {
        record::redact::redact(&mut recording);
    }
    target.stream(|sink| match args.to {
        Form::Csv => Ok(record::export::csv(&recording, sink)?),
        Form::Json => Ok(record::export::json(&recording, sink)?),
        Form::Trec => Ok(record::export::recording(&recording, sink)?),
        Form::Perfetto => Ok(record::export::perfetto(&recording, sink)?),
        Form::Openmetrics => Ok(record::export::openmetrics(&recording, sink)?),
    })?;
    Ok(Exit::Done)
}
