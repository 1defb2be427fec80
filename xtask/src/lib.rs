//! The workspace's own automation: `cargo xtask` with `tidy`, `test`, `attack`, `bench` and `vm`.
//!
//! `tidy` holds the rules that no compiler knows, `test` is the one command that says whether a change
//! is good, `attack` runs the binary against hostile input, `bench` compares with peer programs and keeps the records, `vm` runs a command in a machine of
//! its own. Nothing here is part of the
//! product, and nothing here is needed to build or run it.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for people at a terminal"
)]

pub mod attack;
pub mod bench;
pub mod error;
pub mod process;
pub mod rust;
pub mod test;
pub mod tidy;
pub mod vm;
pub mod workspace;

pub use error::Error;

/// The commands of `cargo xtask`, as typed.
pub const COMMANDS: &[&str] = &["tidy", "test", "attack", "bench", "vm"];

const USAGE: &str = "\
usage: cargo xtask tidy                    the rules of the project, one line per violation
       cargo xtask test [--fast]           everything that must hold; --fast leaves out what is slow
       cargo xtask attack [OPTIONS] [CASE] hostile files, users, disks and signals against the binary; attack --help
       cargo xtask bench SUITE [OPTIONS]   against peer programs: memory, storage, record, warm, aa
       cargo xtask vm [OPTIONS] -- COMMAND in a small machine of its own, with modelled disks; vm --help";

/// Runs the command that `args` (without the program's name) asks for; gives the exit status, which is
/// 0 unless a command in a virtual machine ended with another.
///
/// # Errors
/// [`Error::Usage`] for a command or option that does not exist; otherwise what the command met.
pub fn run(args: &[String]) -> Result<u8, Error> {
    let (command, rest) = args
        .split_first()
        .ok_or_else(|| Error::Usage(USAGE.to_owned()))?;
    match command.as_str() {
        "tidy" => tidy::run(rest)?,
        "test" => test::run(rest)?,
        "attack" => attack::run(rest)?,
        "bench" => bench::run(rest)?,
        "vm" => return Ok(vm::run(rest)),
        "help" | "--help" | "-h" => println!("{USAGE}"),
        other => return Err(Error::Usage(format!("no command {other:?}\n{USAGE}"))),
    }
    Ok(0)
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
