//! `terrace proof`: reads two recordings and writes the card of a claim about them.
//! `explain` decides what belongs on it.

use super::open_recording_of;
use crate::args::recordings::ProofArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{OutputTarget, proof};
use explain::comparison::{self, Asked};

/// Makes the card, and delivers it.
///
/// # Errors
/// If a recording cannot be read, or neither has a requested counter.
pub fn proof(args: &ProofArgs) -> Result<Exit> {
    // The card has no names of processes, paths or hosts, and is made to be shared.
    let output = args.html.as_deref().or(args.output.as_deref());
    let target = OutputTarget::of_redacted(output, true)?;
    let first = open_recording_of(&args.first, 2)?;
    let second = open_recording_of(&args.second, 2)?;
    for name in &args.counters {
        if first.series(name).or(second.series(name)).is_none() {
            let error = Error::usage(format!("neither recording has a counter `{name}`"));
            return Err(error.hint("`terrace export` shows which there are"));
        }
    }
    let asked = Asked { claim: args.claim.clone(), counters: args.counters.clone() };
    let mut card = comparison::card(&first, &second, &asked);
    card.first.file = super::name_of(&args.first);
    card.second.file = super::name_of(&args.second);
    match args.html {
        Some(_) => target.write_data(&proof::html(&card))?,
        None => target.write(&proof::markdown(&card))?,
    };
    Ok(Exit::Done)
}
