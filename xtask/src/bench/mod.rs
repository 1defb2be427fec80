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

mod aa;
pub(crate) mod advise;
mod boost;
mod copy;
mod coverage;
mod days;
mod directory;
mod facts;
mod guest;
mod memory;
mod peer;
mod ramdisk;
mod ratio;
mod record;
pub(crate) mod recorder;
mod remedies;
mod report;
mod steps;
mod storage;
mod turns;
mod warm;

use directory::WorkDirectory;
use peer::Peer;
use record::Record;

/// Pairs per comparison unless asked otherwise: the median of 7 stands when 3 of them were
/// disturbed.
const ALTERNATIONS: usize = 7;

/// The same where one alternation takes minutes.
const LONG_ALTERNATIONS: usize = 3;

/// Repetitions of each probe unless asked otherwise: 5 % of them are one.
const REPETITIONS: usize = 20;

/// Surveys compared with each other unless asked otherwise: 190 pairs, so 5 % are 9 of them.
const SURVEYS: usize = 20;

/// Surveys with a slowdown unless asked otherwise: with [`SURVEYS`] plain ones, 200 pairs.
const SLOWED_SURVEYS: usize = 10;

/// More of anything than this takes hours and no longer narrows the result.
const COUNT_MAX: u64 = 1000;

/// The function of a suite, or of a part of one, that measures and adds to the record.
type Measure = fn(&mut Session) -> Result<(), Error>;

/// A named set of comparisons.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suite {
    /// What is typed.
    name: &'static str,
    /// What its records are called.
    title: &'static str,
    /// What it compares, for the usage text.
    what: &'static str,
    /// The peers that it looks for; each can be given with `--NAME PATH`.
    peers: &'static [&'static str],
    /// What it is made of; `--part NAME` runs one of them alone.
    parts: &'static [&'static str],
    /// Pairs per comparison unless asked otherwise.
    alternations: usize,
    /// Its other options, with the word that stands for the value.
    options: &'static [(&'static str, &'static str)],
    /// Measures.
    run: Measure,
}

/// Every suite, in the order of the usage text.
const SUITES: &[Suite] = &[
    Suite {
        name: "memory",
        title: "memory",
        what: "copies and load latency, against mbw, tinymembench, STREAM and multichase",
        peers: &["mbw", "tinymembench", "stream-16m", "stream-256m", "stream-1g", "multichase"],
        parts: &["copy", "latency"],
        alternations: ALTERNATIONS,
        options: &[("alternations", "N")],
        run: |session| session.run(memory::PARTS),
    },
    Suite {
        name: "storage",
        title: "storage",
        what: "reads, writes and latency, against fio and ioping",
        peers: &["fio", "ioping"],
        parts: &["random", "sequential", "latency"],
        alternations: ALTERNATIONS,
        options: &[("alternations", "N"), ("path", "DIR")],
        run: storage::run,
    },
    Suite {
        name: "record",
        title: "record",
        what: "what watching costs, against sadc, atop, dool, pmlogger, below, perf, strace and \
               offcputime",
        peers: &["sadc", "atop", "dool", "pmlogger", "below", "perf", "strace", "offcputime"],
        parts: &names::<{ recorder::PARTS.len() }>(recorder::PARTS),
        alternations: ALTERNATIONS,
        options: &[("alternations", "N")],
        run: |session| session.run(recorder::PARTS),
    },
    Suite {
        name: "warm",
        title: "machine warm",
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
        name: "copy",
        title: "copy",
        what: "files copied until they are durable, against cp, rsync, xcp, fcp and cpz",
        peers: &["terrace", "cp", "rsync", "xcp", "fcp", "cpz"],
        parts: &names::<{ copy::PARTS.len() }>(copy::PARTS),
        alternations: ALTERNATIONS,
        options: &[("alternations", "N"), ("path", "DIR")],
        run: |session| session.run(copy::PARTS),
    },
    Suite {
        name: "ramdisk",
        title: "ramdisk",
        what: "a RAM disk saved and restored, against rsync, scripts around it, tar and cp",
        peers: &["terrace", "rsync", "anything-sync-daemon", "log2ram", "tar", "cp"],
        parts: &names::<{ ramdisk::PARTS.len() }>(ramdisk::PARTS),
        alternations: ALTERNATIONS,
        options: &[("alternations", "N"), ("path", "DIR")],
        run: |session| session.run(ramdisk::PARTS),
    },
    Suite {
        name: "advise",
        title: "advise",
        what: "what caches and more memory would have kept: policies, predictions, the recorder's cost",
        peers: &["terrace", "cachesim", "fio"],
        parts: &names::<{ advise::PARTS.len() }>(advise::PARTS),
        alternations: ALTERNATIONS,
        options: &[("alternations", "N"), ("path", "DIR"), ("trace", "FILE")],
        run: |session| session.run(advise::PARTS),
    },
    Suite {
        name: "boost",
        title: "boost",
        what: "the flash cache: its engine in simulation, and beside bcache and dm-cache in guests",
        peers: &["terrace"],
        parts: &names::<{ boost::PARTS.len() }>(boost::PARTS),
        alternations: LONG_ALTERNATIONS,
        options: &[("alternations", "N")],
        run: |session| session.run(boost::PARTS),
    },
    Suite {
        name: "remedies",
        title: "remedies",
        what: "the first remedies of the verdict suite's cases, applied for real",
        peers: &["terrace"],
        parts: remedies::NAMES,
        alternations: ALTERNATIONS,
        options: &[],
        run: remedies::run,
    },
    Suite {
        name: "days",
        title: "days",
        what: "the days of three newcomers, as tests repeat them, and what was cleared blindly",
        peers: &["terrace"],
        parts: days::PARTS,
        alternations: ALTERNATIONS,
        options: &[],
        run: days::run,
    },
    Suite {
        name: "aa",
        title: "aa",
        what: "this machine and a command against themselves: what is called different and is not",
        peers: &["terrace"],
        parts: &["surveys", "compare", "against", "thrashed"],
        alternations: ALTERNATIONS,
        options: &[("runs", "N"), ("slowed", "N"), ("pace", "full|quick"), ("path", "DIR")],
        run: aa::run,
    },
    Suite {
        name: "coverage",
        title: "coverage",
        what: "each probe against itself: the share of its intervals that hold the median of all",
        peers: &["terrace"],
        parts: coverage::PARTS,
        alternations: REPETITIONS,
        options: &[("alternations", "N"), ("path", "DIR")],
        run: coverage::run,
    },
];

impl Suite {
    /// The suite called `name`.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        SUITES.iter().find(|suite| suite.name == name)
    }
}

/// What a suite is asked to do.
#[derive(Debug)]
pub(crate) struct SuiteRequest {
    suite: &'static Suite,
    /// Peers whose program was given, by name.
    peers: BTreeMap<String, PathBuf>,
    /// The only part to run, if not all.
    part: Option<String>,
    /// Pairs per comparison.
    alternations: usize,
    /// Plain surveys.
    runs: usize,
    /// Surveys with a slowdown.
    slowed: usize,
    /// Whether surveys are quick ones.
    is_quick: bool,
    /// The directory to measure in, for suites that write files.
    directory: Option<PathBuf>,
    /// A trace of requests, for the suite that simulates caches.
    trace: Option<PathBuf>,
}

impl SuiteRequest {
    /// Whether the part called `name` is asked for.
    fn includes(&self, name: &str) -> bool {
        self.part.as_deref().is_none_or(|part| part == name)
    }

    /// What its record is called. A part that ran alone and a quick run are named, so that their
    /// files do not pass for the whole.
    fn title(&self) -> String {
        let part = self.part.as_ref().map_or_else(String::new, |part| format!(" {part}"));
        let pace = if self.is_quick { " quick" } else { "" };
        format!("{}{part}{pace}", self.suite.title)
    }
}

/// A suite that runs: what was asked for, the program that is judged, and the record.
struct Session {
    request: SuiteRequest,
    root: PathBuf,
    /// Cargo's target directory.
    target: PathBuf,
    terrace: Peer,
    /// For files of the suite's own.
    directory: WorkDirectory,
    record: Record,
}

impl Session {
    /// Builds Terrace, or takes the one that was given, and opens the record.
    fn start(request: SuiteRequest) -> Result<Self, Error> {
        let root = workspace::current_root()?;
        let target = workspace::target_directory(&workspace::metadata(&root)?)?;
        let terrace = Peer::terrace(&request, &root, &target)?;
        let directory =
            WorkDirectory::make(request.directory.as_ref().unwrap_or(&target), request.suite.name)?;
        let mut record = Record::start(&request.title());
        record.programs.push(terrace.clone());
        Ok(Self { request, root, target, terrace, directory, record })
    }

    /// Runs those of `parts` that are asked for.
    fn run(&mut self, parts: &[(&str, Measure)]) -> Result<(), Error> {
        for (name, measure) in parts {
            if self.request.includes(name) {
                measure(self)?;
            }
        }
        Ok(())
    }
}

/// Runs the suite that `args` names, prints its table and keeps its record.
///
/// # Errors
/// [`Error::Usage`] for what cannot be asked, [`Error::Failed`] when a target is missed (the record
/// is kept then too); otherwise what the suite met.
pub(crate) fn run(args: &[String]) -> Result<(), Error> {
    let Some(request) = crate::shown(parse(args))? else {
        return Ok(());
    };
    let suite = request.suite;
    let mut session = Session::start(request)?;
    (suite.run)(&mut session)?;
    let Session { root, mut record, .. } = session;
    record.finish();
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
fn parse(args: &[String]) -> Result<SuiteRequest, clap::Error> {
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
    Ok(SuiteRequest {
        suite,
        peers: suite.peers.iter().filter_map(program).collect(),
        part: text("part"),
        alternations: count("alternations", suite.alternations),
        runs: count("runs", SURVEYS),
        slowed: count("slowed", SLOWED_SURVEYS),
        is_quick: text("pace").is_some_and(|pace| pace == "quick"),
        directory: text("path").map(PathBuf::from),
        trace: text("trace").map(PathBuf::from),
    })
}

/// The names of the parts of a suite.
const fn names<const N: usize>(parts: &[(&'static str, Measure)]) -> [&'static str; N] {
    let mut all = [""; N];
    let mut index = 0;
    while index < N {
        all[index] = parts[index].0;
        index += 1;
    }
    all
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
