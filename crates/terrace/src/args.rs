//! The command line, declared once: parsing, help, the manual and the completions all
//! come from here.
//!
//! `Args` hold what was typed, as typed values. What will be done is a plan, which
//! `command` makes of them. [`parse`] turns each refusal into one line of this program.

mod choice;
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

/// The commands, with their help.
///
/// Options are declared with the `Args` of each command. clap builds them only for the command that
/// was typed (`defer`), so that a start does not pay for all the others. So an `Args` has no doc
/// comment: clap would take it for the help of the command.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    /// Measure every level of this machine, and say what is odd about them
    ///
    /// Finds the CPU caches, RAM (used before, and new), RAM disks, the page cache, compressed RAM, swap, and the devices
    /// behind the current directory, the home directory, the temporary directory and each --path. Takes at most 60 seconds,
    /// 15 with --quick, and removes all that it writes. As root it sees more, and it says what more. The figures of the last
    /// 20 surveys are kept in the user's state directory, so that `compare` knows the noise of this machine.
    Survey(survey::SurveyArgs),
    /// Run a command, and say where its time went
    ///
    /// The command keeps its terminal, its signals and its exit status; only afterwards about ten lines on standard error say
    /// what it waited for, with the counters that prove it, and who is not to blame. As root it sees more, and it says what
    /// more. Nothing is changed on the machine, unless by --apply, and that is undone.
    Run(Box<run::RunArgs>),
    /// Record the counters of this machine, of a process or of a control group
    ///
    /// Goes on until the time is over, the process has ended or Ctrl-C comes; then `terrace explain` says where the time went.
    /// Where SIGINT is ignored (a background job of a shell without job control), end it with SIGTERM.
    /// With --keep it is a flight recorder: FILE is a directory that holds the last hours and never grows beyond --keep-bytes.
    Record(record::RecordArgs),
    /// Say where the time of a recording went, with the counters that prove it
    ///
    /// T is a time since the start of the recording (12.5s, 3min) or a time of day (14:32, 14:32:05) by the clock of the machine
    /// that was recorded.
    Explain(explain::ExplainArgs),
    /// Look at a recording in a browser: where its time went, and every counter over time
    ///
    /// Serves one page on 127.0.0.1, at an address that nobody can guess, until Ctrl-C; opens the browser where there is one. With
    /// --html it writes the same page as one file that needs no network. Nothing is sent anywhere.
    View(view::ViewArgs),
    /// See in the terminal what hurts right now, and why
    ///
    /// The bars, the findings and the counters behind them, of the last ten seconds; with the arrow keys of any moment of the last
    /// ten minutes, or of a recording. Nothing is written and nothing is changed. `?` shows the keys, q ends it.
    Top(top::TopArgs),
    /// Compare two surveys or recordings, or several of each
    ///
    /// Says what differs by more than noise, by how much (with 95 % intervals), and what made the difference. Surveys are the
    /// JSON files of `terrace survey --json`, recordings are .trec files. What noise explains is called unproven; at least four
    /// runs of each side can prove a difference, and two single surveys are judged by those that this machine has kept.
    Compare(compare::CompareArgs),
    /// Make a card of a claim: which counters moved between two recordings, or that none did
    ///
    /// The card holds the counters that the claim's words name and those of the findings whose time differs most. It says what
    /// moved between two runs; it never says that the claim is proven.
    Proof(proof::ProofArgs),
    /// Put a mark into every recording of yours that runs now
    Mark(mark::MarkArgs),
    /// Write a recording as CSV, JSON, a trace or a recording that may be shared
    ///
    /// Command lines, user and host names and paths are replaced by stand-ins, the same one for the same name, because an export
    /// is meant to be shared; --no-redact keeps them.
    Export(export::ExportArgs),
    /// Make a recording of what another tool wrote: sadf, fio, vmstat, iostat
    ///
    /// Rates become the growth of counters under the names that they have here, so that `view`, `explain`, `compare` and `export`
    /// take the recording like one of their own. What the other tool did not tell stays unseen.
    Import(import::ImportArgs),
    /// Put back settings that --apply changed and a crash left so
    ///
    /// A run puts back by itself what it changed. What is left after a crash stands in a journal, and this puts it back, unless
    /// a run still needs it or somebody else has changed it since.
    Undo(undo::UndoArgs),
    /// Make memory short on purpose, and say who lost what
    ///
    /// Starts processes that take memory, touch every page of it and end, as in the recovery experiment of 2012. What was pushed
    /// out of memory by that is told, by process and by file. Refuses what would make the kernel kill others; its processes are
    /// the first that the kernel would kill, and end with it whatever happens.
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

// The probes of `measure`, with their help.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Probe {
    /// How fast memory is copied, read and written, by which method
    ///
    /// Runs every method in turn, A/B/A/B, verifies each copy, and says which method wins where and what the C library
    /// leaves on the table. A copied byte counts once; the bytes that cross the memory bus are a column of their own.
    Memcpy(memcpy::MemcpyArgs),
    /// How long a dependent load takes, at each size of buffer
    ///
    /// Follows a chain of pointers through a buffer, so that each load waits for the one before. Finds the real edges of
    /// the caches beside what the system claims, and splits the time of main memory into the memory and the page walk.
    Memlat(memlat::MemlatArgs),
    /// What the first touch of memory costs
    ///
    /// Maps new memory and times each first touch. Finds memory that the host has not backed yet (a second, slower mode),
    /// and how soon freed memory goes cold again. Never takes more than a quarter of the memory that is available.
    Faults(faults::FaultsArgs),
    /// How fast the processor computes without memory: the control
    ///
    /// Iterates one point of the Mandelbrot set in double precision, as the control of 2001 did. When a memory figure
    /// differs between two machines and this one does not, it is the memory.
    Compute(compute::ComputeArgs),
    /// How long one storage request takes, one at a time (as ioping)
    ///
    /// PATH is a directory (a scratch file without a name is made there, filled with incompressible data, and gone
    /// afterwards), a file or a block device (both only read). Says by the kernel's counters what really served the
    /// requests: the page cache, RAM or the device.
    Iolat(iolat::IolatArgs),
    /// How fast a file is written and read in sequence (what people use dd for)
    ///
    /// In a directory: writes a scratch file of incompressible data, syncs it, reads it cold, reads it from the page cache.
    /// The scratch file has no name and is gone afterwards. A file or a block device is only read.
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
            // What is below it is declared only now.
            command.build();
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

    /// A doc comment on an `Args` would replace the help of its command, once that is built.
    #[test]
    fn the_help_of_a_command_is_that_of_the_list() {
        let trees = [
            Cli::command(),
            Probe::augment_subcommands(clap::Command::new("measure")),
            warm::Warm::augment_subcommands(clap::Command::new("warm")),
        ];
        for tree in trees {
            let mut built = tree.clone();
            built.build();
            for listed in tree.get_subcommands() {
                let (name, about) = (
                    listed.get_name(),
                    listed.get_about().map(ToString::to_string),
                );
                let built = built.find_subcommand(name).unwrap();
                assert!(about.is_some(), "{name}");
                assert_eq!(about, built.get_about().map(ToString::to_string), "{name}");
            }
        }
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
