//! `terrace export`: a recording in a form that other programs read, redacted unless that is
//! switched off. It goes out piece by piece, so that a recording of a day needs no memory for its
//! text. `terrace import`: the output of another tool as a recording; `record` parses it.

use super::traces::export_oracle_general;
use super::{must_exist, open_recording};
use crate::args::recordings::{ExportArgs, ExportForm, ImportArgs};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{self, OutputTarget};
use record::export::{Exporter, Trec};
use record::import::{ImportOptions, MAX_BYTES, form_of, import as import_text};
use std::io::{self, Read};
use std::path::Path;

/// Exports a recording.
///
/// # Errors
/// If the recording cannot be read, or the text is not written whole.
pub fn export(args: &ExportArgs) -> Result<Exit> {
    let ExportForm::Recording(form) = args.to else {
        return export_oracle_general(args);
    };
    let target = OutputTarget::of_redacted(args.output.as_deref(), !args.no_redact)?;
    let of_columns = (!args.columns.is_empty())
        .then(|| {
            let columns = args.columns.iter().map(|name| name.trim().to_owned()).collect();
            let refusal = || Error::usage("only `--to csv` has --columns");
            form.with_columns(columns).ok_or_else(refusal)
        })
        .transpose()?;
    let exporter = of_columns.as_deref().unwrap_or(form);
    let mut recording = open_recording(&args.file)?;
    if !args.no_redact {
        record::redact::redact(&mut recording);
    }
    target.stream(|sink| Ok(exporter.export(&recording, sink)?))?;
    Ok(Exit::Done)
}

/// Imports a text.
///
/// # Errors
/// If the text cannot be read or recognised, has no report, or the recording cannot be written.
pub fn import(args: &ImportArgs) -> Result<Exit> {
    let target = OutputTarget::of(Some(&args.output))?;
    let text = read_text(&args.file)?;
    let form = match args.from {
        Some(form) => form,
        None => form_of(&text).ok_or_else(|| {
            let unknown = format!("{} is not the output of a known tool", args.file.display());
            Error::new(Exit::Impossible, unknown)
                .hint("name the tool: --from sadf, fio, fio-log, vmstat or iostat")
        })?,
    };
    let options = ImportOptions { interval: args.interval, name: args.file.display().to_string() };
    let recording = import_text(&text, form, &options).map_err(|error| error.at(&args.file))?;
    target.stream(|sink| Ok(Trec.export(&recording, sink)?))?;
    let said = format!(
        "{} series, {} reports over {:.0} s: terrace explain {}",
        recording.series.len(),
        recording.ticks.len() - 1,
        recording.wall_ns() as f64 / 1e9,
        args.output.display()
    );
    // The recording itself may be on standard output.
    output::announce("import", &said);
    Ok(Exit::Done)
}

/// The whole text, at most [`MAX_BYTES`].
fn read_text(path: &Path) -> Result<String> {
    let failed = |error: io::Error| {
        let why = format!("cannot read {}: {}", path.display(), sys::plain_reason(&error));
        Error::new(Exit::Impossible, why)
    };
    let mut text = String::new();
    let limit = MAX_BYTES + 1;
    let read = if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_string(&mut text)
    } else {
        must_exist(path)?;
        let file = sys::file::open_input(path).map_err(|error| {
            let pipe = (error.kind == sys::ErrorKind::Invalid)
                .then_some("to read from another program, use standard input: FILE is -");
            let error = failed(error.source);
            pipe.into_iter().fold(error, Error::hint)
        })?;
        file.take(limit).read_to_string(&mut text)
    };
    if read.map_err(failed)? as u64 > MAX_BYTES {
        let why = format!("{} is longer than {} MiB", path.display(), MAX_BYTES >> 20);
        return Err(Error::new(Exit::Impossible, why));
    }
    Ok(text)
}
