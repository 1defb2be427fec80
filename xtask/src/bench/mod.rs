//! `cargo xtask bench SUITE`: Terrace against peer programs, in the same run, alternating.
//!
//! A suite measures, fills a [`record::Record`] and hands it back; this file parses what was typed,
//! prints the record as a table and keeps it as JSON below `benchmarks/record/`. [`peer`] finds and
//! runs programs, [`ratio`] compares what they measured, [`facts`] says on which machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, value_parser};

use crate::error::Error;
use crate::workspace;

pub mod aa;
pub mod facts;
pub mod memory;
pub mod peer;
pub mod ratio;
pub mod record;
pub mod recorder;
pub mod report;
pub mod storage;
pub mod turns;
pub mod warm;

/// Pairs per comparison unless asked otherwise: the median of 7 stands when 3 of them were
/// disturbed.
pub const ALTERNATIONS: usize = 7;

/// The same where one alternation takes minutes.
const LONG_ALTERNATIONS: usize = 3;

/// Surveys compared with each other unless asked otherwise: 190 pairs, so 5 % are 9 of them.
pub const SURVEYS: usize = 20;

/// Surveys with a slowdown unless asked otherwise: with [`SURVEYS`] plain ones, 200 pairs.
pub const SLOWED_SURVEYS: usize = 10;

/// More of anything than this takes hours and no longer narrows the result.
const COUNT_MAX: u64 = 1000;

/// The function of a suite that measures and gives the record.
pub type Measure = fn(&Request) -> Result<record::Record, Error>;

/// A named set of comparisons.
#[derive(Debug, Clone, Copy)]
pub struct Suite {
    /// What is typed.
    pub name: &'static str,
    /// What it compares, for the usage text.
    pub what: &'static str,
    /// The peers that it looks for; each can be given with `--NAME PATH`.
    pub peers: &'static [&'static str],
    /// What it is made of; `--part NAME` runs one of them alone.
    pub parts: &'static [&'static str],
    /// Pairs per comparison unless asked otherwise.
    pub alternations: usize,
    /// Its other options, with the word that stands for the value.
    pub options: &'static [(&'static str, &'static str)],
    /// Measures.
    pub run: Measure,
}

/// Every suite, in the order of the usage text.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "memory",
        what: "copies and load latency, against mbw, tinymembench, STREAM and multichase",
        peers: &["mbw", "tinymembench", "stream-16m", "stream-256m", "stream-1g", "multichase"],
        parts: &["copy", "latency"],
        alternations: ALTERNATIONS,
        options: &[("alternations", "N")],
        run: memory::run,
    },
    Suite {
        name: "storage",
        what: "reads, writes and latency, against fio and ioping",
        peers: &["fio", "ioping"],
        parts: &["random", "sequential", "latency"],
        alternations: ALTERNATIONS,
        options: &[("alternations", "N"), ("path", "DIR")],
        run: storage::run,
    },
    Suite {
        name: "record",
        what: "what watching costs, against sadc, atop, dool, pmlogger and below",
        peers: &["sadc", "atop", "dool", "pmlogger", "below"],
        parts: &["cost", "size", "pressure", "explained"],
        alternations: ALTERNATIONS,
        options: &[("alternations", "N")],
        run: recorder::run,
    },
    Suite {
        name: "warm",
        what: "memory brought back in a guest, against demand, swapoff and the order of addresses",
        peers: &[],
        parts: &[
            "scattered",
            "contiguous",
            "fast",
            "mapped",
            "snapshot",
            "sqlite",
            "postgres",
            "recovery",
            "short",
            "beside",
            "noting",
        ],
        alternations: LONG_ALTERNATIONS,
        options: &[("alternations", "N"), ("pace", "full|quick")],
        run: warm::run,
    },
    Suite {
        name: "aa",
        what: "this machine and a command against themselves: what is called different and is not",
        peers: &["terrace"],
        parts: &["surveys", "compare", "against", "thrashed"],
        alternations: ALTERNATIONS,
        options: &[("runs", "N"), ("slowed", "N"), ("pace", "full|quick"), ("path", "DIR")],
        run: aa::run,
    },
];

impl Suite {
    /// The suite called `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        SUITES.iter().find(|suite| suite.name == name)
    }
}

/// What a suite is asked to do.
#[derive(Debug)]
pub struct Request {
    /// The suite that is asked.
    pub suite: &'static Suite,
    /// Peers whose program was given, by name.
    pub peers: BTreeMap<String, PathBuf>,
    /// The only part to run, if not all.
    pub part: Option<String>,
    /// Pairs per comparison.
    pub alternations: usize,
    /// Plain surveys.
    pub runs: usize,
    /// Surveys with a slowdown.
    pub slowed: usize,
    /// Whether surveys are quick ones.
    pub is_quick: bool,
    /// The directory to measure in, for suites that write files.
    pub directory: Option<PathBuf>,
}

impl Request {
    /// Whether the part called `name` is asked for.
    pub fn includes(&self, name: &str) -> bool {
        self.part.as_deref().is_none_or(|part| part == name)
    }
}

/// Runs the suite that `args` names, prints its table and keeps its record.
///
/// # Errors
/// [`Error::Usage`] for what cannot be asked, [`Error::Failed`] when a target is missed (the record
/// is kept then too); otherwise what the suite met.
pub fn run(args: &[String]) -> Result<(), Error> {
    let Some(request) = crate::shown(parse(args))? else {
        return Ok(());
    };
    let suite = request.suite;
    let root = workspace::current_root()?;
    let record = (suite.run)(&request)?;
    print!("{}", record.table());
    let path = record.write(&root.join(record::DIRECTORY), SystemTime::now())?;
    println!("kept as {}", path.strip_prefix(&root).unwrap_or(&path).display());
    if record.is_reached() {
        return Ok(());
    }
    Err(Error::Failed(format!("bench {}: a target is missed", suite.name)))
}

/// Reads the words after `bench`.
///
/// # Errors
/// Why they cannot be read, or the text of `--help`.
pub fn parse(args: &[String]) -> Result<Request, clap::Error> {
    let words = std::iter::once("cargo xtask bench").chain(args.iter().map(String::as_str));
    let line = Command::new("bench")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands(SUITES.iter().map(command))
        .try_get_matches_from(words)?;
    let found = line.subcommand().and_then(|(name, matches)| Some((Suite::find(name)?, matches)));
    let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
    let (suite, matches) = found.ok_or_else(missing)?;
    let text = |name: &str| {
        let value = matches.try_get_one::<String>(name).ok().flatten();
        value.cloned()
    };
    let count = |name: &str, default: usize| {
        let value = matches.try_get_one::<u64>(name).ok().flatten();
        value.map_or(default, |value| *value as usize)
    };
    let program = |name: &&str| Some(((*name).to_owned(), PathBuf::from(text(name)?)));
    Ok(Request {
        suite,
        peers: suite.peers.iter().filter_map(program).collect(),
        part: text("part"),
        alternations: count("alternations", suite.alternations),
        runs: count("runs", SURVEYS),
        slowed: count("slowed", SLOWED_SURVEYS),
        is_quick: text("pace").is_some_and(|pace| pace == "quick"),
        directory: text("path").map(PathBuf::from),
    })
}

/// The command line of a suite: its parts, its options, its peers.
fn command(suite: &Suite) -> Command {
    let value = |name: &'static str, word: &'static str| Arg::new(name).long(name).value_name(word);
    let count = |least: usize| value_parser!(u64).range(least as u64..=COUNT_MAX);
    let option = |(name, word): &(&'static str, &'static str)| match *name {
        "alternations" => value(name, word).value_parser(count(1)),
        "runs" => value(name, word).value_parser(count(aa::RUNS_MIN)),
        "slowed" => value(name, word).value_parser(count(0)),
        "pace" => value(name, word).value_parser(["full", "quick"]),
        _ => value(name, word),
    };
    Command::new(suite.name)
        .about(suite.what)
        .arg(value("part", "PART").value_parser(PossibleValuesParser::new(suite.parts)))
        .args(suite.options.iter().map(option))
        .args(suite.peers.iter().map(|peer| value(peer, "PROGRAM")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn error(line: &str) -> String {
        parse(&args(line)).unwrap_err().to_string()
    }

    #[test]
    fn without_a_suite_the_suites_are_named() {
        let text = error("");
        assert!(SUITES.iter().all(|suite| text.contains(suite.name)), "{text}");
        for line in ["", "disk"] {
            assert_eq!(run(&args(line)).unwrap_err().exit_status(), 2);
        }
    }

    #[test]
    fn peers_and_options_are_read() {
        let request = parse(&args("memory --mbw ./mbw --alternations 3 --part copy")).unwrap();
        assert_eq!(request.peers["mbw"], PathBuf::from("./mbw"));
        assert_eq!(request.alternations, 3);
        assert!(request.includes("copy") && !request.includes("latency"));
        let request = parse(&args("aa --runs 8 --slowed 0 --pace quick --path dir")).unwrap();
        assert_eq!((request.runs, request.slowed), (8, 0));
        assert_eq!(request.directory, Some(PathBuf::from("dir")));
        assert!(request.is_quick && request.includes("anything"));
        let plain = parse(&args("storage")).unwrap();
        assert_eq!(plain.alternations, ALTERNATIONS);
        let long = parse(&args("warm")).unwrap();
        assert_eq!(long.alternations, LONG_ALTERNATIONS);
    }

    #[test]
    fn what_cannot_be_asked_is_said_with_what_can() {
        assert!(error("memory --fio x").contains("unexpected argument '--fio'"));
        assert!(error("memory --path x").contains("unexpected argument '--path'"));
        assert!(error("memory --part disk").contains("copy, latency"));
        assert!(error("memory --mbw").contains("a value is required for '--mbw"));
        for count in ["0", "1001", "many"] {
            let text = error(&format!("storage --alternations {count}"));
            assert!(text.contains("invalid value"), "{text}");
        }
        assert!(error("aa --runs 5").contains("6..=1000"));
        assert!(error("aa --pace slow").contains("full, quick"));
    }
}
