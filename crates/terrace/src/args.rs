//! The command line, declared once: parsing, help, the manual and the completions come from here.
//!
//! `Args` hold the options as typed values; `command` makes plans of them. [`parse`] turns each
//! refusal of clap into one line of this program.

pub mod advise;
pub mod boost;
pub mod choice;
pub mod classic;
pub mod compare;
pub mod copy;
pub mod doctor;
pub mod hog;
pub mod lab;
pub mod measure;
pub mod ramdisk;
pub mod record;
pub mod recordings;
mod refusal;
pub mod run;
pub mod shared;
pub mod survey;
pub mod value;
mod version;
pub mod warm;

use crate::error::Error;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Exit codes, units and environment; shown by `--help` and the manual.
pub const CLOSING_SECTIONS: [(&str, &str); 3] = [
    (
        "Exit status",
        "0  done\n\
         1  partial: a step failed or Ctrl-C was pressed; the results so far are printed\n\
         2  usage: the command line is invalid; nothing was touched\n\
         3  impossible here: this machine, kernel, file system or user cannot do it\n\
         4  compare --fail-if: the second is proven worse by more than that\n\
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
        "NO_COLOR  if not empty, no colour unless --color always is given\n\
         COLUMNS   the width to fill if the output is not a terminal (else 80)\n\
         TMPDIR    the temporary directory that survey looks at (else /tmp)\n\
         STATE_DIRECTORY  where record --keep and explain have the ring, without a FILE",
    ),
];

/// Finds which level of this machine is slow, and shows the proof
///
/// Terrace measures every level that data passes through on a Linux machine: CPU caches, RAM, page
/// cache, RAM disk, compressed RAM, swap, disks; and it says where the time of a command went. Each
/// number comes with its error bars and with the counters that explain it. It reads /proc, /sys,
/// kernel events and its own scratch files. It sends nothing anywhere, and changes no setting
/// without --apply. Start with `terrace survey`, or with `terrace run -- CMD`.
#[derive(Debug, Parser)]
#[command(name = "terrace", version, long_version = version::LONG.as_str(), disable_help_subcommand = true, subcommand_value_name = "COMMAND", after_long_help = closing_text())]
pub struct Cli {
    /// When to colour the output
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = When::Auto)]
    pub color: When,

    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Whether to colour the output.
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
/// clap builds the options only for the command that was typed (`defer`), which keeps the start
/// short. An `Args` has no doc comment: clap would take it for the help of the command.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    /// Measure every level of this machine, and list what is odd about them
    ///
    /// Finds the CPU caches, RAM (used before, and new), RAM disks, the page cache, compressed RAM,
    /// swap, and the devices behind the current, the home and the temporary directory and each
    /// --path. Takes at most 60 seconds, 15 with --quick, and removes all that it writes. Root sees
    /// more; without root the page says what is missing. The figures of the last 20 surveys are
    /// kept in the user's state directory, so that `compare` knows the noise of this machine.
    Survey(survey::SurveyArgs),
    /// Run a command, and say where its time went
    ///
    /// The command keeps its terminal, its signals and its exit status. After it has ended, about
    /// ten lines on standard error say what it waited for and what is not to blame, with the
    /// counters that prove it. Root sees more; without root the verdict says what is missing.
    /// Nothing is changed on the machine, except by --apply, and that is undone at the end.
    Run(Box<run::RunArgs>),
    /// Record the counters of this machine, of a process or of a control group
    ///
    /// Ends when the time is over, the process has ended or Ctrl-C is pressed. Then `terrace
    /// explain` says where the time went. If SIGINT is ignored (a background job of a shell without
    /// job control), end it with SIGTERM. With --keep it is a flight recorder: FILE is a directory
    /// that holds the last hours and never grows beyond --keep-bytes.
    Record(record::RecordArgs),
    /// Say where the time of a recording went, with the counters that prove it
    ///
    /// T is a time since the start of the recording (12.5s, 3min) or a time of day (14:32,
    /// 14:32:05) by the clock of the machine that was recorded.
    Explain(recordings::ExplainArgs),
    /// Say whether more memory would have helped, and by how many seconds
    ///
    /// Reads how far away each page was that left memory and came back, which every recording of
    /// root has, and the waits for such pages. Says so where the recording does not prove it.
    /// Nothing is changed.
    Advise(advise::AdviseArgs),
    /// Show a recording in a browser: where its time went, and every counter over time
    ///
    /// Serves one page on 127.0.0.1 until Ctrl-C, at an address that cannot be guessed, and opens
    /// the browser if there is a display. With --html it writes the same page as one file that
    /// needs no network. Nothing is sent anywhere.
    View(recordings::ViewArgs),
    /// Show in the terminal what costs time right now, and why
    ///
    /// The bars, the findings and the counters behind them, of the last ten seconds. The arrow keys
    /// show any moment of the last ten minutes, or of a recording. Nothing is written and nothing
    /// is changed. `?` shows the keys, q ends it.
    Top(recordings::TopArgs),
    /// Compare two surveys or recordings, or several of each
    ///
    /// Says what differs by more than noise, by how much (with 95 % intervals), and what made the
    /// difference. Surveys are the JSON files of `terrace survey --json`, recordings are .trec
    /// files. A difference that noise explains is called unproven. At least four runs of each side
    /// can prove one. Two single surveys are judged by those that this machine has kept.
    Compare(compare::CompareArgs),
    /// Make a card about a claim: which counters moved between two recordings, or that none did
    ///
    /// The card has the counters that the claim's words name, and those of the findings whose time
    /// differs most. It says what moved between two runs; it never says that the claim is proven.
    Proof(recordings::ProofArgs),
    /// Add a mark to every running recording of this user
    Mark(MarkArgs),
    /// Write a recording as CSV, JSON, a trace or a recording to share
    ///
    /// Command lines, user and host names and paths are replaced by stand-ins, the same one for the
    /// same name, because an export is meant to be shared. --no-redact keeps them.
    Export(recordings::ExportArgs),
    /// Convert the output of another tool to a recording: sadf, fio, vmstat, iostat
    ///
    /// Rates become the growth of counters under the names that they have here, so that `view`,
    /// `explain`, `compare` and `export` read the recording like any other. What the tool did not
    /// report stays unseen.
    Import(recordings::ImportArgs),
    /// Say which sources this kernel, this user and this container allow, and what is missing
    ///
    /// Tries each source that commands read (kernel events, accounting, memory, control groups,
    /// devices), for about a second. For each that does not work it prints why, which commands that
    /// costs, and the exact line that would allow it, with its risk. It runs none of these lines,
    /// changes nothing and leaves nothing. The exit status is 1 if one of them would allow more.
    Doctor(doctor::DoctorArgs),
    /// Restore settings that --apply changed and a crash left changed
    ///
    /// A run restores its own changes at its end. A journal lists what a crash left, and this
    /// restores it, unless a run still needs it or another program has changed it since.
    Undo(UndoArgs),
    /// Make memory short on purpose, and say what was evicted
    ///
    /// Starts processes that allocate memory, touch every page of it and end, as in the recovery
    /// experiment of 2012. The report names what was evicted, by process and by file. A request
    /// that would make the kernel kill other processes is refused. The hogs are the first that the
    /// kernel would kill, and they end with terrace, however it ends.
    Hog(hog::HogArgs),
    /// Run one of the processes of `hog`
    #[command(hide = true)]
    HogProcess,
    /// Copy files past the page cache; done means on the device
    ///
    /// Copies as `cp -a` does: holes, hard links, owners, times, extended attributes, special
    /// files. The copy gets its name when all of it is on the device; until then it is hidden, and
    /// after Ctrl-C or a crash the same command goes on with it. The page cache of others stays as
    /// it was. What cannot be copied is named, and the rest is copied.
    Copy(copy::CopyArgs),
    /// See which memory was evicted, and restore it
    #[command(subcommand_value_name = "ACTION", subcommand_help_heading = "Actions")]
    Warm {
        /// What to do.
        #[command(subcommand)]
        action: warm::Warm,
    },
    /// Read files from inside a control group, for `warm restore`
    #[command(hide = true)]
    WarmReader,
    /// Cache a disk on a stick or an SSD, and find out whether that helps
    #[command(subcommand_value_name = "ACTION", subcommand_help_heading = "Actions")]
    Boost {
        /// What to do.
        #[command(subcommand)]
        action: boost::Boost,
    },
    /// Run the process that serves, for `boost serve`
    #[command(hide = true)]
    BoostProcess(boost::CacheProcessArgs),
    /// See why a RAM disk is slow
    #[command(subcommand_value_name = "ACTION", subcommand_help_heading = "Actions")]
    Ramdisk {
        /// What to do.
        #[command(subcommand)]
        action: ramdisk::Ramdisk,
    },
    /// Run the process that writes, for `ramdisk why`
    #[command(hide = true)]
    RamdiskProcess,
    /// Repeat a published experiment, beside its figures
    #[command(subcommand_value_name = "ACTION", subcommand_help_heading = "Actions")]
    Lab {
        /// What to do.
        #[command(subcommand)]
        action: lab::Lab,
    },
    /// Run one of the processes of `lab`
    #[command(hide = true)]
    LabProcess {
        /// Which one.
        #[command(subcommand)]
        process: lab::LabProcess,
    },
    /// Measure one thing, with all its options
    #[command(subcommand_value_name = "PROBE", subcommand_help_heading = "Probes")]
    Measure {
        /// Which probe.
        #[command(subcommand)]
        probe: Box<Probe>,
    },
    /// Run a probe of `measure` once, for a run of it that combines several
    #[command(hide = true)]
    MeasureProcess {
        /// The words of that command line.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Print this program's manual page (read it with `terrace manual | man -l -`)
    Manual(ManualArgs),
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
    /// Runs all methods in turn, A/B/A/B, and verifies each copy. Says which method is fastest at
    /// each size, and what the C library leaves unused. A copied byte counts once; the bytes that
    /// cross the memory bus are a column of their own.
    Memcpy(measure::MemcpyArgs),
    /// How long a dependent load takes, at each size of buffer
    ///
    /// Follows a chain of pointers through a buffer, so that each load waits for the one before.
    /// Finds the real edges of the caches beside what the system claims, and splits the time of
    /// main memory into the memory and the page walk.
    Memlat(measure::MemlatArgs),
    /// What the first touch of memory costs
    ///
    /// Maps new memory and times each first touch. Finds memory that the host has not backed yet (a
    /// second, slower mode), and how soon freed memory is slow again. Never takes more than a
    /// quarter of the available memory.
    Faults(measure::FaultsArgs),
    /// How fast the processor computes without memory: the control
    ///
    /// Iterates one point of the Mandelbrot set in double precision, as the control of 2001 did. If
    /// a memory figure differs between two machines and this one does not, the cause is the memory.
    Compute(measure::ComputeArgs),
    /// How long one storage request takes, one at a time (as ioping)
    ///
    /// PATH is a directory, a file or a block device. In a directory, a scratch file without a name
    /// is made, filled with incompressible data, and removed afterwards; files and devices are only
    /// read. The kernel's counters show what served the requests: the page cache, RAM or the
    /// device.
    Iolat(measure::IolatArgs),
    /// How fast a file is written and read in sequence (what people use dd for)
    ///
    /// In a directory: writes a scratch file of incompressible data, syncs it, reads it cold, reads
    /// it from the page cache. The scratch file has no name and is removed afterwards. A file or a
    /// block device is only read.
    Seqio(measure::SeqioArgs),
}

#[derive(Clone, Debug, Args)]
pub struct MarkArgs {
    /// Its words
    #[arg(value_name = "TEXT", required = true, num_args = 1..)]
    pub text: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub struct ManualArgs {
    /// Write a page for the program and one for each command to DIR instead, as packages need them
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub to: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct UndoArgs {
    /// Only list what would be put back
    #[arg(long)]
    pub list: bool,
}

/// A parsed command line.
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
/// If the command line is invalid: one line with a hint.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Parsed, Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    match Cli::try_parse_from(&words) {
        Ok(cli) => Ok(Parsed::Run(Box::new(cli))),
        Err(error) if !error.use_stderr() => Ok(Parsed::Show(error.render().to_string())),
        Err(error) => Err(refused(&error, &named_command(&words))),
    }
}

/// The error for a refused command line; that of `run` has a status that no command uses.
fn refused(error: &clap::Error, command: &str) -> Error {
    let refused = refusal::explain(error, command);
    match command {
        "run" => refused.of_run(),
        _ => refused,
    }
}

/// The commands among `words`, as far as they exist: `measure memcpy`.
fn named_command(words: &[OsString]) -> String {
    let mut command = Cli::command();
    let mut names = Vec::new();
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(found) = command.find_subcommand(word) {
            names.push(word.to_owned());
            command = found.clone();
            // Its own subcommands are declared only now.
            command.build();
        }
    }
    names.join(" ")
}

fn closing_text() -> String {
    let indented = |text: &str| text.lines().map(|line| format!("  {line}\n")).collect::<String>();
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
                let (name, about) =
                    (listed.get_name(), listed.get_about().map(ToString::to_string));
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

    /// Commands in the documents are commands of this program.
    #[test]
    fn commands_named_by_the_documents_exist() {
        const FINDINGS: &str = include_str!("../../../docs/findings.md");
        const README: &str = include_str!("../../../README.md");
        let documents = [FINDINGS, README].map(|text| text.replace("```", ""));
        let commands = documents
            .iter()
            .flat_map(|text| text.split('`').skip(1).step_by(2))
            .map(|text| text.trim_start_matches("sudo "))
            .map(|text| text.split(" |").next().unwrap_or(text))
            .filter(|text| text.starts_with("terrace "));
        let mut count = 0;
        for command in commands {
            assert!(matches!(parse(words(command)), Ok(Parsed::Run(_))), "{command}");
            count += 1;
        }
        assert!(count > 0);
    }

    #[test]
    fn help_is_no_error() {
        for line in ["terrace --help", "terrace measure iolat -h", "terrace --version"] {
            assert!(matches!(parse(words(line)), Ok(Parsed::Show(_))), "{line}");
        }
    }
}
