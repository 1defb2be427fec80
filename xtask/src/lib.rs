//! The workspace's own automation: `cargo xtask` with `tidy`, `test`, `attack`, `bench`,
//! `bpf`, `dist`, `docs` and `vm`.
//!
//! `tidy` holds the rules that no compiler knows, `test` is the one command that says whether a
//! change is good, `attack` runs the binary against hostile input, `bench` compares with peer
//! programs and keeps the records, `bpf` builds the recorder's programs in the kernel, `dist` makes
//! the packages, `docs` a site of the documents, `vm` runs a command in a machine of its own.
//! Nothing here is needed to build or run the product.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for people at a terminal")]

mod attack;
mod bench;
mod bpf;
pub mod copy_cuts;
pub mod database_cuts;
pub mod dist;
mod docs;
mod error;
mod markdown;
mod process;
mod rust;
mod test;
mod tidy;
pub mod vm;
mod workspace;

pub use error::Error;

use clap::{CommandFactory, Parser, Subcommand, error::ErrorKind};

/// What is typed after `cargo xtask`.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// The rules of the project, one line for each violation
    Tidy,
    /// Everything that must hold
    Test {
        /// Leave out what is slow
        #[arg(long)]
        fast: bool,
        /// Only the tests of the crates, on this processor, in emulated machines
        #[arg(long, value_enum, conflicts_with = "fast")]
        arch: Option<vm::Arch>,
        /// Of these crates alone
        #[arg(requires = "arch")]
        packages: Vec<String>,
    },
    /// Hostile files, users, disks and signals against the binary
    Attack(attack::AttackOptions),
    /// Against peer programs: `bench SUITE --help`
    #[command(disable_help_flag = true)]
    Bench {
        /// The suite, then its options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// The recorder's programs in the kernel, built from C
    Bpf {
        /// Only say whether the kept object is what its sources give
        #[arg(long)]
        check: bool,
    },
    /// The packages, from this commit; or, with --check, whether they are as they should be
    Dist(dist::DistOptions),
    /// The documents as a site of linked pages, with search
    Docs,
    /// What a bench watches
    #[command(hide = true)]
    PingPong { passes: u64 },
    /// What a bench watches
    #[command(hide = true)]
    Crowd { processes: u64, busy: u64, forkers: u64, threads: u64 },
    /// One process of that
    #[command(hide = true)]
    CrowdMember { kind: String, threads: u64 },
    /// What a bench watches
    #[command(hide = true)]
    Fsyncs { count: u64, path: std::path::PathBuf },
    /// What a bench watches
    #[command(hide = true)]
    ReadPages { path: std::path::PathBuf, seconds: u64, at_once: u64 },
    /// What a bench watches
    #[command(hide = true)]
    SplitWork { path: std::path::PathBuf },
    /// What a bench watches
    #[command(hide = true)]
    Desktop { directory: std::path::PathBuf },
    /// One process of that
    #[command(hide = true)]
    DesktopMember { kind: String, number: u64, directory: std::path::PathBuf },
    /// A command in a small throw-away machine (Debian, emulated unless KVM works)
    #[command(disable_help_flag = true)]
    Vm {
        /// Its options, then `--` and the command: `vm --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

/// Whether `cargo xtask` has this command.
pub fn is_command(name: &str) -> bool {
    Line::command().find_subcommand(name).is_some()
}

/// Runs the command that `args` (without the program's name) asks for; gives the exit status, which
/// is 0 unless a command in a virtual machine ended with another.
///
/// # Errors
/// [`Error::Usage`] for a command or option that does not exist; otherwise why the command failed.
pub fn run(args: &[String]) -> Result<u8, Error> {
    // Its words are not for the parser of the others, which would take the `--` among them.
    if let Some(("vm", words)) = args.split_first().map(|(name, words)| (name.as_str(), words)) {
        return Ok(vm::run(words));
    }
    let Some(line) = shown(parse::<Line>("cargo xtask", args))? else {
        return Ok(0);
    };
    match line.task {
        Task::Tidy => tidy::run()?,
        Task::Test { arch: Some(arch), packages, .. } => test::other_arch::run(arch, &packages)?,
        Task::Test { fast, .. } => test::run(fast)?,
        Task::Attack(options) => attack::run(&options)?,
        Task::Bench { words } => bench::run(&words)?,
        Task::Bpf { check } => bpf::run(check)?,
        Task::Dist(options) => dist::run(&options)?,
        Task::Docs => docs::run()?,
        Task::PingPong { passes } => bench::recorder::switches::ping_pong(passes)?,
        Task::Crowd { processes, busy, forkers, threads } => {
            bench::recorder::crowd::crowd(processes, busy, forkers, threads)?;
        }
        Task::CrowdMember { kind, threads } => bench::recorder::crowd::member(&kind, threads)?,
        Task::Fsyncs { count, path } => bench::recorder::events::fsyncs(count, &path)?,
        Task::ReadPages { path, seconds, at_once } => {
            bench::advise::cost::read_pages(&path, seconds, at_once)?
        }
        Task::SplitWork { path } => bench::recorder::split::work(&path)?,
        Task::Desktop { directory } => bench::recorder::desktop::desktop(&directory)?,
        Task::DesktopMember { kind, number, directory } => {
            bench::recorder::desktop::member(&kind, number, &directory)?;
        }
        Task::Vm { words } => return Ok(vm::run(&words)),
    }
    Ok(0)
}

/// Reads words with the parser of `P`.
fn parse<P: Parser>(program: &str, words: &[String]) -> Result<P, clap::Error> {
    let words = words.iter().map(String::as_str);
    P::try_parse_from(std::iter::once(program).chain(words))
}

/// Prints the text of `--help` and gives `None`; makes any other refusal an [`Error::Usage`].
fn shown<T>(parsed: Result<T, clap::Error>) -> Result<Option<T>, Error> {
    match parsed {
        Ok(parsed) => Ok(Some(parsed)),
        Err(help) if help.kind() == ErrorKind::DisplayHelp => {
            print!("{help}");
            Ok(None)
        }
        Err(error) => Err(Error::Usage(one_line(&error.to_string()))),
    }
}

/// What is wrong and what may be meant, without the usage that `--help` prints.
fn one_line(message: &str) -> String {
    let is_said = |line: &&str| {
        !line.is_empty() && !line.starts_with("Usage:") && !line.starts_with("For more information")
    };
    let lines: Vec<&str> = message.lines().map(str::trim).filter(is_said).collect();
    let text = lines.join("; ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line() {
        let words = ["attack", "--for", "tape", "no-case"].map(str::to_owned);
        let error = run(&words).unwrap_err();
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }

    #[test]
    fn a_wrong_command_is_a_usage_error_that_names_the_right_one() {
        let error = run(&["tidu".to_owned()]).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        assert!(error.to_string().contains("'tidy'"), "{error}");
        assert!(is_command("attack") && !is_command("tidu"));
    }

    #[test]
    fn no_command_is_a_usage_error() {
        assert!(matches!(run(&[]), Err(Error::Usage(_))));
    }
}
