//! The command line, declared once: parsing, help, the manual and the completions all
//! come from here.
//!
//! `Args` hold what was typed, as typed values. What will be done is a plan, which
//! `command` makes of them. [`parse`] turns each refusal into one line of this program.

pub mod classic;
pub mod compare;
pub mod compute;
pub mod explain;
pub mod export;
pub mod faults;
pub mod form;
pub mod hog;
pub mod import;
pub mod iolat;
pub mod lab;
pub mod mark;
pub mod memcpy;
pub mod memlat;
pub mod moment;
pub mod probe;
pub mod proof;
pub mod ramdisk;
pub mod record;
mod refusal;
pub mod run;
pub mod seqio;
pub mod survey;
pub mod target;
pub mod top;
pub mod undo;
pub mod value;
pub mod view;
pub mod warm;
pub mod watch;
pub mod words;

use crate::error::Error;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;

/// Exit codes, units and environment; shown by `--help` and the manual.
pub const CLOSING_SECTIONS: [(&str, &str); 3] = [
    (
        "Exit status",
        "0  done\n\
         1  partial failure: something failed or Ctrl-C came; what was measured is printed\n\
         2  usage: the command line makes no sense; nothing was touched\n\
         3  impossible here: this machine, kernel, file system or user cannot do it\n\
         4  compare --fail-if: the second is proven worse by so much\n\
         run gives the status of its command, 128 + n if signal n ended it; as env(1) does: 127\n\
         if the command was not found, 126 if it cannot be executed, 125 if terrace failed",
    ),
    (
        "Units",
        "sizes      4k, 16m, 1g, 1t and KiB, MiB, GiB, TiB are powers of 1024 (as in fio\n\
        \x20          and dd); KB, MB, GB, TB are powers of 1000; a bare number is bytes\n\
         durations  200ms, 10s, 5min, 1h; a bare number is seconds\n\
         rates      MB/s and GB/s are powers of 1000; a copied byte counts once",
    ),
    (
        "Environment",
        "NO_COLOR  when not empty, no colour unless --color always is given\n\
         COLUMNS   the width to fill when the output is no terminal (else 80)\n\
         TMPDIR    the temporary directory that survey looks at (else /tmp)",
    ),
];

/// Finds which level of this machine is slow, and shows the proof
///
/// Terrace measures every level that data passes through on a Linux machine: CPU caches, RAM, page cache, RAM disk,
/// compressed RAM, swap, disks; and it says where the time of a command went. Each number comes with its error bars and
/// with the counters that explain it. It reads /proc, /sys, kernel events and its own scratch files, sends nothing anywhere
/// and changes no setting unless told to by --apply. Start with `terrace survey`, or with `terrace run -- CMD`.
#[derive(Debug, Parser)]
#[command(name = "terrace", version, disable_help_subcommand = true, subcommand_value_name = "COMMAND", after_long_help = closing_text())]
pub struct Cli {
    /// When to colour the output
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = When::Auto)]
    pub color: When,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// When to do something that only suits a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The commands; those with options of their own are described where these are.
#[derive(Debug, Subcommand)]
pub enum Command {
    Survey(survey::SurveyArgs),
    Run(Box<run::RunArgs>),
    Record(record::RecordArgs),
    Explain(explain::ExplainArgs),
    View(view::ViewArgs),
    Top(top::TopArgs),
    Compare(compare::CompareArgs),
    Proof(proof::ProofArgs),
    Mark(mark::MarkArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Undo(undo::UndoArgs),
    Hog(hog::HogArgs),
    /// Be one of the processes of `hog`, which tells it what to do
    #[command(hide = true)]
    HogProcess,
    /// See which memory was pushed out, and bring it back
    #[command(subcommand_value_name = "ACTION", subcommand_help_heading = "Actions")]
    Warm {
        /// What to do.
        #[command(subcommand)]
        action: warm::Warm,
    },
    /// Read files from inside of a control group, as `warm restore` tells
    #[command(hide = true)]
    WarmReader,
    /// See why a RAM disk is slow
    #[command(subcommand_value_name = "ACTION", subcommand_help_heading = "Actions")]
    Ramdisk {
        /// What to do.
        #[command(subcommand)]
        action: ramdisk::Ramdisk,
    },
    /// Be the process that writes, as `ramdisk why` tells it
    #[command(hide = true)]
    RamdiskProcess,
    /// Repeat a published experiment, beside its figures
    #[command(subcommand_value_name = "ACTION", subcommand_help_heading = "Actions")]
    Lab {
        /// What to do.
        #[command(subcommand)]
        action: lab::Lab,
    },
    /// Be one of the processes of `lab`, which tells it what to do
    #[command(hide = true)]
    LabProcess {
        /// Which one.
        #[command(subcommand)]
        process: lab::LabProcess,
    },
    /// Measure one thing, with all its knobs
    #[command(subcommand_value_name = "PROBE", subcommand_help_heading = "Probes")]
    Measure {
        /// Which probe.
        #[command(subcommand)]
        probe: Box<Probe>,
    },
    /// Print this program's manual page (read it with `terrace manual | man -l -`)
    Manual,
    /// Print the completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// The probes of `measure`, described where their options are.
#[derive(Debug, Subcommand)]
pub enum Probe {
    Memcpy(memcpy::MemcpyArgs),
    Memlat(memlat::MemlatArgs),
    Faults(faults::FaultsArgs),
    Compute(compute::ComputeArgs),
    Iolat(iolat::IolatArgs),
    Seqio(seqio::SeqioArgs),
}

/// What a command line asks for.
#[derive(Debug)]
pub enum Parsed {
    /// A command to run.
    Run(Box<Cli>),
    /// A text to print: help or the version.
    Show(String),
}

/// Parses a command line, program name first.
///
/// # Errors
/// One line with a hint for whatever cannot be understood.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Parsed, Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    match Cli::try_parse_from(&words) {
        Ok(cli) => Ok(Parsed::Run(Box::new(cli))),
        Err(error) if !error.use_stderr() => Ok(Parsed::Show(error.render().to_string())),
        Err(error) => Err(refused(&error, &named_command(&words))),
    }
}

/// The refusal of a command line; that of `run` has a status that no command uses.
fn refused(error: &clap::Error, command: &str) -> Error {
    let refused = refusal::explain(error, command);
    match command {
        "run" => refused.of_run(),
        _ => refused,
    }
}

/// The commands among `words`, as far as they are known: `measure memcpy`.
fn named_command(words: &[OsString]) -> String {
    let mut command = Cli::command();
    let mut names = Vec::new();
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(found) = command.find_subcommand(word) {
            names.push(word.to_owned());
            command = found.clone();
        }
    }
    names.join(" ")
}

fn closing_text() -> String {
    let indented = |text: &str| {
        text.lines()
            .map(|line| format!("  {line}\n"))
            .collect::<String>()
    };
    CLOSING_SECTIONS
        .iter()
        .map(|(title, text)| format!("{title}:\n{}", indented(text)))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_declaration_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn commands_are_named_as_far_as_known() {
        let named = |line| named_command(&words(line));
        assert_eq!(named("terrace measure memcpy --size 0"), "measure memcpy");
        assert_eq!(named("terrace --color never measure x"), "measure");
        assert_eq!(named("terrace frobnicate"), "");
    }

    /// What the documents tell a person to type is a command of this program.
    #[test]
    fn commands_named_by_the_documents_exist() {
        const FINDINGS: &str = include_str!("../../../docs/findings.md");
        const README: &str = include_str!("../../../README.md");
        // Fences of three are quotes of nothing to this.
        let documents = [FINDINGS, README].map(|text| text.replace("```", ""));
        let commands = documents
            .iter()
            .flat_map(|text| text.split('`').skip(1).step_by(2))
            .map(|text| text.trim_start_matches("sudo "))
            .map(|text| text.split(" |").next().unwrap_or(text))
            .filter(|text| text.starts_with("terrace "));
        let mut count = 0;
        for command in commands {
            assert!(
                matches!(parse(words(command)), Ok(Parsed::Run(_))),
                "{command}"
            );
            count += 1;
        }
        assert!(count > 0);
    }

    #[test]
    fn help_is_no_error() {
        for line in [
            "terrace --help",
            "terrace measure iolat -h",
            "terrace --version",
        ] {
            assert!(matches!(parse(words(line)), Ok(Parsed::Show(_))), "{line}");
        }
    }
}
