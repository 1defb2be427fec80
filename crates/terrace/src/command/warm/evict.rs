//! `terrace warm evict`: evicts a file, a tree or a process from memory, and reports what stayed.
//! It does not ask for confirmation: what was evicted is slow once and never lost.

use crate::args::warm::EvictArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output;
use machine::Root;
use place::workingset::evict::{self, EvictTarget};
use std::path::Path;

/// Evicts, and reports what went.
///
/// # Errors
/// When the victim is not there, or may not be evicted.
pub fn evict(args: &EvictArgs) -> Result<Exit> {
    let evicted = evict::evict(&Root::system(), &victim(&args.victim))?;
    let whose = args.victim.display().to_string();
    let shown = output::show(&output::warm::evicted(&evicted, &whose));
    if sys::interrupt::requested() {
        output::announce("warm evict", "interrupted: the rest is as it was");
        return Ok(Exit::Partial);
    }
    Ok(shown)
}

/// A number is a process; every other word is a path.
fn victim(word: &Path) -> EvictTarget {
    match word.to_str().and_then(|text| text.parse().ok()) {
        Some(pid) => EvictTarget::Process(pid),
        None => EvictTarget::Path(word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_process_and_with_a_directory_it_is_a_file() {
        assert_eq!(victim(Path::new("12")), EvictTarget::Process(12));
        for path in ["./12", "12a", "-1", "99999999999"] {
            assert_eq!(victim(Path::new(path)), EvictTarget::Path(path.into()));
        }
    }
}
