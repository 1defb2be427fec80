//! Checks that the commands in README and CONTRIBUTING exist.
//!
//! Now: each `cargo xtask WORD` that they name is a command of this crate, and each suite after
//! `bench` one of its suites. Links are checked by the tidy rule on dead files. Outputs shown in
//! the README are not checked here.

use std::fs;
use std::path::Path;

use super::Outcome;
use crate::error::Error;
use crate::{bench, is_command};

const DOCUMENTS: &[&str] = &["README.md", "CONTRIBUTING.md"];

const CALL: &str = "cargo xtask ";

/// Checks both documents below `root`; one that is absent is said and left out.
///
/// # Errors
/// [`Error::Failed`] with every command that does not exist.
pub(super) fn check(root: &Path) -> Result<Outcome, Error> {
    let (mut wrong, mut absent) = (Vec::new(), Vec::new());
    for document in DOCUMENTS {
        match fs::read_to_string(root.join(document)) {
            Ok(text) => {
                wrong.extend(unknown(&text).map(|call| format!("{document} names `{call}`")))
            }
            Err(_) => absent.push(*document),
        }
    }
    match (wrong.is_empty(), absent.is_empty()) {
        (false, _) => Err(Error::Failed(wrong.join("; "))),
        (true, false) => Ok(Outcome::Skipped(format!("no {}", absent.join(", ")))),
        (true, true) => Ok(Outcome::Done),
    }
}

/// The calls in `text` of commands or suites that do not exist.
fn unknown(text: &str) -> impl Iterator<Item = String> {
    text.split(CALL).skip(1).filter_map(|rest| {
        let line = rest.lines().next().unwrap_or_default();
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '-'));
        let command = words.next().unwrap_or_default();
        if !is_command(command) {
            return Some(format!("{CALL}{command}"));
        }
        let suite = words.next().filter(|suite| command == "bench" && !suite.is_empty())?;
        // A placeholder such as SUITE is no name.
        let is_name = suite.chars().all(|c| c.is_ascii_lowercase());
        (is_name && bench::Suite::find(suite).is_none()).then(|| format!("{CALL}bench {suite}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_do_not_exist_are_found() {
        let text = "`cargo xtask tidy`, then cargo xtask tset --fast\ncargo xtask bench disks";
        let found: Vec<String> = unknown(text).collect();
        assert_eq!(found, ["cargo xtask tset", "cargo xtask bench disks"]);
    }

    #[test]
    fn commands_that_exist_pass() {
        let text = "cargo xtask test --fast\n`cargo xtask bench memory|storage`; cargo xtask bench SUITE; `cargo xtask bench`";
        assert_eq!(unknown(text).count(), 0);
    }
}
