//! `cargo xtask bench SUITE`: Terrace against peer programs, in the same run, alternating.
//!
//! A suite measures, fills a [`record::Record`] and hands it back; this file parses what was typed,
//! prints the record as a table and keeps it as JSON below `benchmarks/record/`. [`peer`] finds and runs
//! programs, [`ratio`] compares what they measured, [`facts`] says on which machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::error::Error;
use crate::workspace;

pub mod facts;
pub mod peer;
pub mod ratio;
pub mod record;

/// Pairs per comparison unless asked otherwise: the median of 7 stands when 3 of them were disturbed.
pub const ALTERNATIONS: usize = 7;

/// More than this takes hours and no longer narrows the median.
const ALTERNATIONS_MAX: usize = 1000;

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
    /// Absent until the suite is built.
    pub run: Option<Measure>,
}

/// Every suite, in the order of the usage text.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "memory",
        what: "copies and load latency, against mbw, tinymembench, STREAM and multichase",
        peers: &["mbw", "tinymembench", "stream", "multichase"],
        run: None,
    },
    Suite {
        name: "storage",
        what: "reads, writes and latency, against fio and ioping",
        peers: &["fio", "ioping"],
        run: None,
    },
    Suite {
        name: "aa",
        what: "surveys of this machine against each other: what is called different and is not",
        peers: &[],
        run: None,
    },
];

impl Suite {
    /// The suite called `name`.
    #[must_use]
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
    /// Pairs per comparison.
    pub alternations: usize,
    /// The directory to measure in, for suites that write files: `--path`.
    pub directory: Option<PathBuf>,
}

/// Runs the suite that `args` names, prints its table and keeps its record.
///
/// # Errors
/// [`Error::Usage`] for what cannot be asked, [`Error::Failed`] when a target is missed (the record is
/// kept then too); otherwise what the suite met.
pub fn run(args: &[String]) -> Result<(), Error> {
    let request = parse(args)?;
    let suite = request.suite;
    let Some(measure) = suite.run else {
        return Err(Error::Usage(format!("bench {}: not built yet", suite.name)));
    };
    let root = workspace::current_root()?;
    let record = measure(&request)?;
    print!("{}", record.table());
    let path = record.write(&root.join(record::DIRECTORY), SystemTime::now())?;
    println!(
        "kept as {}",
        path.strip_prefix(&root).unwrap_or(&path).display()
    );
    if record.is_reached() {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "bench {}: a target is missed",
        suite.name
    )))
}

/// What `args` ask for.
///
/// # Errors
/// [`Error::Usage`] that names the suites or the options there are.
pub fn parse(args: &[String]) -> Result<Request, Error> {
    let name = args.first().map_or("", String::as_str);
    let suite = Suite::find(name).ok_or_else(|| Error::Usage(usage()))?;
    let mut request = Request {
        suite,
        peers: BTreeMap::new(),
        alternations: ALTERNATIONS,
        directory: None,
    };
    let mut rest = args[1..].iter();
    while let Some(option) = rest.next() {
        let value = rest
            .next()
            .ok_or_else(|| wrong(suite, &format!("{option} needs a value")))?;
        match option.strip_prefix("--") {
            Some("alternations") => request.alternations = alternations(suite, value)?,
            Some("path") => request.directory = Some(PathBuf::from(value)),
            Some(peer) if suite.peers.contains(&peer) => {
                request.peers.insert(peer.to_owned(), PathBuf::from(value));
            }
            _ => return Err(wrong(suite, &format!("no option {option}"))),
        }
    }
    Ok(request)
}

fn alternations(suite: &Suite, value: &str) -> Result<usize, Error> {
    let count = value
        .parse()
        .ok()
        .filter(|count| (1..=ALTERNATIONS_MAX).contains(count));
    count.ok_or_else(|| {
        wrong(
            suite,
            &format!("--alternations is 1 to {ALTERNATIONS_MAX}, not {value}"),
        )
    })
}

fn wrong(suite: &Suite, what: &str) -> Error {
    let peers: String = suite
        .peers
        .iter()
        .map(|peer| format!(" [--{peer} PROGRAM]"))
        .collect();
    let name = suite.name;
    Error::Usage(format!(
        "bench {name}: {what}\nusage: cargo xtask bench {name} [--alternations N] [--path DIR]{peers}"
    ))
}

fn usage() -> String {
    let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
    let mut text = format!("bench: {}", names.join(", "));
    for suite in SUITES {
        text.push_str(&format!("\n  {:<8} {}", suite.name, suite.what));
    }
    text
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
        for line in ["", "disk"] {
            assert!(error(line).starts_with("bench: memory, storage, aa\n"));
            assert_eq!(run(&args(line)).unwrap_err().exit_status(), 2);
        }
    }

    #[test]
    fn peers_and_options_are_read() {
        let request = parse(&args("memory --mbw ./mbw --alternations 3 --path dir")).unwrap();
        assert_eq!(request.peers["mbw"], PathBuf::from("./mbw"));
        assert_eq!(request.alternations, 3);
        assert_eq!(request.directory, Some(PathBuf::from("dir")));
        assert_eq!(parse(&args("aa")).unwrap().alternations, ALTERNATIONS);
    }

    #[test]
    fn what_cannot_be_asked_is_said_with_what_can() {
        assert!(error("memory --fio x").contains("no option --fio"));
        assert!(error("memory --mbw").contains("--mbw needs a value"));
        for count in ["0", "-1", "1001", "many"] {
            assert!(error(&format!("aa --alternations {count}")).contains("1 to 1000"));
        }
        assert!(error("storage -x y").contains("[--fio PROGRAM]"));
    }
}
