//! `terrace mark`: a note in every recording that runs now.
//! Nobody who records is no success: the mark would be lost without a word.

use crate::args::mark::MarkArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output;

/// Puts the mark.
///
/// # Errors
/// `Impossible` where nothing is being recorded.
pub fn mark(args: &MarkArgs) -> Result<Exit> {
    let recordings = record::capture::mark(&args.text.join(" "))?;
    if recordings == 0 {
        let error = Error::new(Exit::Impossible, "no recording of yours runs now");
        return Err(error.hint("start one: terrace record -o FILE.trec, or terrace run -- CMD"));
    }
    let noun = if recordings == 1 {
        "recording"
    } else {
        "recordings"
    };
    Ok(output::show(&format!("marked {recordings} {noun}\n")))
}
