//! `terrace mark`: adds a mark to every running recording of this user.
//! Without any it fails: otherwise the mark would be lost silently.

use crate::args::MarkArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output;

/// Adds the mark.
///
/// # Errors
/// `Impossible` if no recording runs.
pub fn mark(args: &MarkArgs) -> Result<Exit> {
    let recordings = record::capture::mark(&args.text.join(" "))?;
    if recordings == 0 {
        let error = Error::new(Exit::Impossible, "no recording of yours runs now");
        return Err(error.hint("start one: terrace record -o FILE.trec, or terrace run -- CMD"));
    }
    let noun = if recordings == 1 { "recording" } else { "recordings" };
    Ok(output::show(&format!("marked {recordings} {noun}\n")))
}
