//! The first remedy of each case, tried for real: `terrace run --try` on the case's own stage, for
//! `cargo xtask bench remedies`. One line of JSON for each case whose remedy can be tried.
//!
//! What is cached is dropped before each run, so that both sides begin as the case does. Scenes of
//! several programs have no command that could be run again, and are left out.

use crate::cases::Case;
use crate::stage;
use serde_json::{Value, json};

/// What the lines begin with.
const LINE: &str = "remedy ";

/// Tries the remedies of the cases and prints what they brought.
pub fn print_all(cases: &[&'static Case]) {
    for case in cases {
        match stage::try_remedy(case) {
            Ok(Some(comparison)) => println!("{LINE}{}", line(case.name, &comparison)),
            Ok(None) => println!("{}: no remedy that can be tried", case.name),
            Err(need) => testkit::skip(format!("{}: {need}", case.name)),
        }
    }
}

/// The figure that decides, and what was changed.
fn line(name: &str, comparison: &Value) -> Value {
    let wall = &comparison["items"][0];
    json!({
        "case": name,
        "tried": comparison["tried"]["words"],
        "finding": comparison["tried"]["finding"],
        "first_ns": wall["first"],
        "second_ns": wall["second"],
        "low_ns": wall["low"],
        "high_ns": wall["high"],
        "verdict": wall["verdict"],
    })
}
