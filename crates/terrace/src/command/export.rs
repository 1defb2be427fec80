//! `terrace export`: a recording in a form that other programs read, redacted unless that is
//! switched off. It goes out piece by piece, so that a recording of a day needs no memory for its
//! text.

use super::recording;
use crate::args::export::ExportArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::OutputTarget;

/// Exports a recording.
///
/// # Errors
/// If the recording cannot be read, or the text is not written whole.
pub fn export(args: &ExportArgs) -> Result<Exit> {
    let target = OutputTarget::of_redacted(args.output.as_deref(), !args.no_redact)?;
    let mut recording = recording::open(&args.file)?;
    if !args.no_redact {
        record::redact::redact(&mut recording);
    }
    target.stream(|sink| Ok(args.to.export(&recording, sink)?))?;
    Ok(Exit::Done)
}
