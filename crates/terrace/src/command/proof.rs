//! `terrace proof`: two recordings are read, and the card of a claim about them is delivered.
//! What belongs on it is decided in `explain`.

use super::recording;
use crate::args::proof::ProofArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{Target, proof};
use explain::comparison::{self, Asked};
use std::path::Path;

/// Makes the card, and delivers it.
///
/// # Errors
/// When a recording cannot be read, or neither has a counter that was asked for.
pub fn proof(args: &ProofArgs) -> Result<Exit> {
    // It holds no names of processes, paths or hosts, and is made to be shown.
    let output = args.html.as_deref().or(args.output.as_deref());
    let target = Target::of_redacted(output, true)?;
    let first = recording::open(&args.first)?;
    let second = recording::open(&args.second)?;
    for name in &args.counters {
        if first.series(name).or(second.series(name)).is_none() {
            let error = Error::usage(format!("neither recording has a counter `{name}`"));
            return Err(error.hint("`terrace export` shows which there are"));
        }
    }
    let asked = Asked {
        claim: args.claim.clone(),
        counters: args.counters.clone(),
    };
    let mut card = comparison::card(&first, &second, &asked);
    card.first.file = name(&args.first);
    card.second.file = name(&args.second);
    let text = match args.html {
        Some(_) => proof::html(&card),
        None => proof::markdown(&card),
    };
    target.write(&text)?;
    Ok(Exit::Done)
}

/// A file's name without where it lies: a card is made to be shown.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
