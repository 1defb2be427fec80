//! `terrace export`: a recording in a form that other programs read, redacted unless that is
//! switched off. It goes out piece by piece, so that a recording of a day needs no memory for its
//! text.

use super::recording;
use crate::args::export::{ExportArgs, Form};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Target;
use record::export::{Csv, Exporter, Json, OpenMetrics, Perfetto, Trec};

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
    let exporter: &dyn Exporter = match args.to {
        Form::Csv => &Csv,
        Form::Json => &Json,
        Form::Trec => &Trec,
        Form::Perfetto => &Perfetto,
        Form::Openmetrics => &OpenMetrics,
    };
    target.stream(|sink| Ok(exporter.export(&recording, sink)?))?;
    Ok(Exit::Done)
}
