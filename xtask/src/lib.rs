//! The workspace's own automation: `cargo xtask tidy`, `cargo xtask test`, `cargo xtask bench`.
//!
//! `tidy` holds the rules that no compiler knows, `test` is the one command that says whether a change
//! is good, `bench` compares with peer programs and keeps the records. Nothing here is part of the
//! product, and nothing here is needed to build or run it.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for people at a terminal"
)]

pub mod bench;
pub mod error;
pub mod process;
pub mod rust;
pub mod test;
pub mod tidy;
pub mod workspace;

pub use error::Error;

/// The commands of `cargo xtask`, as typed.
pub const COMMANDS: &[&str] = &["tidy", "test", "bench"];

const USAGE: &str = "\
usage: cargo xtask tidy                    the rules of the project, one line per violation
       cargo xtask test [--fast]           everything that must hold; --fast leaves out what is slow
       cargo xtask bench SUITE [OPTIONS]   against peer programs: memory, storage, aa";

/// Runs the command that `args` (without the program's name) asks for.
///
/// # Errors
/// [`Error::Usage`] for a command or option that does not exist; otherwise what the command met.
pub fn run(args: &[String]) -> Result<(), Error> {
    let (command, rest) = args
        .split_first()
        .ok_or_else(|| Error::Usage(USAGE.to_owned()))?;
    match command.as_str() {
        "tidy" => tidy::run(rest),
        "test" => test::run(rest),
        "bench" => bench::run(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(Error::Usage(format!("no command {other:?}\n{USAGE}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_command_is_a_usage_error_that_names_the_right_ones() {
        let error = run(&["tidier".to_owned()]).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        for command in COMMANDS {
            assert!(error.to_string().contains(command), "{error}");
        }
    }

    #[test]
    fn no_command_is_a_usage_error() {
        assert!(matches!(run(&[]), Err(Error::Usage(_))));
    }
}
