//! `cargo xtask`: turns the arguments into one call of the library and its error into an exit
//! status.
//!
//! Exit status: 0 done, 1 something failed or violates a rule, 2 wrong usage; `vm` has its own.
#![allow(clippy::print_stderr, reason = "a tool for people at a terminal")]

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match xtask::run(&args) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}
