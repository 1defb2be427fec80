//! What a benchmark leaves behind: a table for the terminal and a JSON file for the repository.
//!
//! A record holds every single value of every alternation, the commands that gave them and the
//! machine, so that a claim can be computed again from it. Files are in `benchmarks/record/`, are
//! named after day, machine and suite, and are never overwritten. Schema `terrace.bench/1`.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::facts::{self, Facts};
use super::peer::Peer;
use super::ratio::{self, Ratio, RatioError};
use crate::error::Error;

/// The directory of the records, from the workspace root.
pub const DIRECTORY: &str = "benchmarks/record";

/// The version of the JSON's shape.
pub const SCHEMA: &str = "terrace.bench/1";

/// More records of one suite, machine and day than anyone compares.
const PER_DAY_MAX: u32 = 99;

/// One run of a suite.
#[derive(Debug, Clone)]
pub struct Record {
    /// The suite's name.
    pub suite: String,
    /// The machine, read before the first measurement.
    pub machine: Facts,
    /// The load averages after the last measurement.
    pub load_average_after: Option<[f64; 3]>,
    /// The programs that took part.
    pub programs: Vec<Peer>,
    /// The command lines that gave the values, as typed.
    pub commands: Vec<String>,
    /// What was left out and why, and how a figure is to be read.
    pub notes: Vec<String>,
    /// The comparisons, in the order of the table.
    pub comparisons: Vec<Comparison>,
}

/// Every value that one program gave for one question.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The program or method.
    pub name: String,
    /// One value per alternation, in the order of measurement.
    pub values: Vec<f64>,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// At least this much: a ratio of bandwidths.
    AtLeast(f64),
    /// At most this much: a share of false alarms.
    AtMost(f64),
    /// No further from 1 than this: 0.07 is "within 7 %".
    Within(f64),
}

/// One row: a question, the values, the figure that they make, and what was wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    what: String,
    unit: &'static str,
    ours: Series,
    theirs: Option<Series>,
    /// The ratio of the pairs, or the values' own summary.
    pub(super) figure: Ratio,
    target: Option<Target>,
}

impl Series {
    /// The values of `name`, in the order of measurement.
    pub fn new(name: &str, values: &[f64]) -> Self {
        Self { name: name.to_owned(), values: values.to_vec() }
    }
}

impl Target {
    /// Whether `figure` meets this target.
    pub fn is_reached(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(least) => figure >= least,
            Self::AtMost(most) => figure <= most,
            Self::Within(distance) => (figure - 1.0).abs() <= distance,
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, ">= {least}"),
            Self::AtMost(most) => write!(f, "<= {most}"),
            Self::Within(distance) => write!(f, "1 +- {distance}"),
        }
    }
}

impl Comparison {
    /// Ours against theirs, measured in turn: the figure is the median of the pairs' ratios.
    ///
    /// # Errors
    /// [`Error::Malformed`] as [`ratio::pairwise`].
    pub fn against(
        what: &str,
        unit: &'static str,
        (ours, theirs): (Series, Series),
        target: Option<Target>,
    ) -> Result<Self, Error> {
        let figure =
            ratio::pairwise(&ours.values, &theirs.values).map_err(RatioError::malformed)?;
        Ok(Self { what: what.to_owned(), unit, ours, theirs: Some(theirs), figure, target })
    }

    /// Ours alone: the figure is the median of the values themselves.
    ///
    /// # Errors
    /// [`Error::Malformed`] without a value.
    pub fn alone(
        what: &str,
        unit: &'static str,
        ours: Series,
        target: Option<Target>,
    ) -> Result<Self, Error> {
        let figure = ratio::summary(&ours.values).ok_or_else(|| RatioError::Empty.malformed())?;
        Ok(Self { what: what.to_owned(), unit, ours, theirs: None, figure, target })
    }

    /// Whether the target is met; `None` where none was set.
    pub fn is_reached(&self) -> Option<bool> {
        self.target.map(|target| target.is_reached(self.figure.median))
    }

    fn json(&self) -> Value {
        let series = |series: &Series| json!({ "name": series.name, "values": series.values });
        json!({
            "what": self.what,
            "unit": self.unit,
            "ours": series(&self.ours),
            "theirs": self.theirs.as_ref().map(series),
            "figure": {
                "kind": if self.theirs.is_some() { "ratio" } else { "value" },
                "median": self.figure.median,
                "min": self.figure.min,
                "max": self.figure.max,
                "count": self.figure.pairs,
            },
            "target": self.target.map(|target| target.to_string()),
            "reached": self.is_reached(),
        })
    }

    /// The cells of its row; see [`Record::table`].
    fn cells(&self) -> [String; 7] {
        let median = |series: &Series| {
            let middle = ratio::summary(&series.values).map(|summary| summary.median);
            format!("{} {} {}", series.name, middle.map_or("-".to_owned(), short), self.unit)
        };
        let Ratio { min, max, pairs, .. } = self.figure;
        [
            self.what.clone(),
            median(&self.ours),
            self.theirs.as_ref().map_or("-".to_owned(), median),
            short(self.figure.median),
            format!("{} to {} of {pairs}", short(min), short(max)),
            self.target.map_or("-".to_owned(), |target| target.to_string()),
            match self.is_reached() {
                Some(true) => "reached".to_owned(),
                Some(false) => "MISSED".to_owned(),
                None => "-".to_owned(),
            },
        ]
    }
}

impl Record {
    /// An empty record of `suite` on this machine, read now.
    pub fn start(suite: &str) -> Self {
        Self {
            suite: suite.to_owned(),
            machine: Facts::read(Path::new("/")),
            load_average_after: None,
            programs: Vec::new(),
            commands: Vec::new(),
            notes: Vec::new(),
            comparisons: Vec::new(),
        }
    }

    /// Adds a command line once, however often it was run.
    pub fn command(&mut self, line: String) {
        if !self.commands.contains(&line) {
            self.commands.push(line);
        }
    }

    /// Adds a note once, however often it was found.
    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a program that takes part, once.
    pub fn program(&mut self, peer: Peer) {
        if self.programs.iter().all(|known| known.name != peer.name) {
            self.programs.push(peer);
        }
    }

    /// Adds the row of [`Comparison::alone`].
    ///
    /// # Errors
    /// [`Error::Malformed`] without a value.
    pub fn add_alone(
        &mut self,
        what: &str,
        unit: &'static str,
        ours: Series,
        target: Option<Target>,
    ) -> Result<(), Error> {
        self.comparisons.push(Comparison::alone(what, unit, ours, target)?);
        Ok(())
    }

    /// Adds the row of [`Comparison::against`].
    ///
    /// # Errors
    /// As that.
    pub fn add_against(
        &mut self,
        what: &str,
        unit: &'static str,
        pair: (Series, Series),
        target: Option<Target>,
    ) -> Result<(), Error> {
        self.comparisons.push(Comparison::against(what, unit, pair, target)?);
        Ok(())
    }

    /// Notes the state of the machine after the last measurement.
    pub fn finish(&mut self) {
        self.load_average_after = facts::load_average(Path::new("/"));
    }

    /// Whether every target that was set is met.
    pub fn is_reached(&self) -> bool {
        self.comparisons.iter().all(|row| row.is_reached() != Some(false))
    }

    /// The comparisons as text, one line each below a heading, columns aligned, then the notes; no
    /// escapes.
    pub fn table(&self) -> String {
        let heading = ["what", "ours", "theirs", "figure", "spread", "target", ""];
        let mut rows = vec![heading.map(str::to_owned)];
        rows.extend(self.comparisons.iter().map(Comparison::cells));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> =
            (0..heading.len()).map(|column| width(column).unwrap_or(0)).collect();
        let mut text = String::new();
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        text
    }

    /// The whole record as JSON, dated `date`.
    pub fn json(&self, date: &str) -> Value {
        let programs: Vec<Value> = self
            .programs
            .iter()
            .map(|peer| json!({ "name": peer.name, "version": peer.version }))
            .collect();
        json!({
            "schema": SCHEMA,
            "suite": self.suite,
            "date": date,
            "machine": self.machine.json(),
            "load_average_after": self.load_average_after,
            "programs": programs,
            "commands": self.commands,
            "notes": self.notes,
            "comparisons": self.comparisons.iter().map(Comparison::json).collect::<Vec<_>>(),
            "reached": self.is_reached(),
        })
    }

    /// Writes the JSON to a new file in `directory`, made if need be, and gives its path.
    ///
    /// The name is `<date>-<machine>-<suite>.json`; a second record of a day gets `-2`, and so on.
    ///
    /// # Errors
    /// [`Error::Io`] when the directory or file cannot be written, or the day has its last record.
    pub fn write(&self, directory: &Path, now: SystemTime) -> Result<PathBuf, Error> {
        let date = facts::date(now);
        let stem = format!("{date}-{}-{}", self.machine.slug(), facts::slug(&self.suite));
        fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
        for number in 1..=PER_DAY_MAX {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let path = directory.join(format!("{stem}{suffix}.json"));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    let text = format!("{:#}\n", self.json(&date));
                    file.write_all(text.as_bytes()).map_err(Error::io("write", &path))?;
                    return Ok(path);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("create", &path)(error)),
            }
        }
        Err(Error::io("create", &directory.join(stem))(ErrorKind::AlreadyExists.into()))
    }
}

/// Four significant digits, as far as a benchmark can be believed.
fn short(value: f64) -> String {
    let mut text = String::new();
    let decimals = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    // Writing to a String cannot fail.
    let _ = write!(text, "{value:.decimals$}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    fn record(target: Target) -> Record {
        let pair = (
            Series::new("rep-movsb", &[28.0, 30.0, 14.0]),
            Series::new("mbw", &[20.0, 20.0, 10.0]),
        );
        let mut record = Record::start("memory");
        record.machine.cpu_model = Some("Test CPU".to_owned());
        record.machine.kernel = Some("6.1.0-x".to_owned());
        record.commands.push("mbw -n 1 256".to_owned());
        let row = Comparison::against("copy, 256 MiB", "GB/s", pair, Some(target)).unwrap();
        record.comparisons.push(row);
        record
    }

    #[test]
    fn a_target_is_reached_or_missed() {
        assert!(record(Target::AtLeast(1.4)).is_reached());
        assert!(!record(Target::AtLeast(1.41)).is_reached());
        assert!(Target::Within(0.07).is_reached(0.94) && !Target::Within(0.07).is_reached(1.08));
        assert!(Target::AtMost(0.05).is_reached(0.05) && !Target::AtMost(0.05).is_reached(0.06));
        assert!(!Target::AtLeast(1.0).is_reached(f64::NAN));
    }

    #[test]
    fn the_table_shows_values_figure_and_target() {
        let table = record(Target::AtLeast(1.45)).table();
        let row = table.lines().nth(1).unwrap();
        for cell in [
            "copy, 256 MiB",
            "rep-movsb 28.00 GB/s",
            "mbw 20.00 GB/s",
            "1.400",
            "1.400 to 1.500 of 3",
            ">= 1.45",
            "MISSED",
        ] {
            assert!(row.contains(cell), "{cell} in {row}");
        }
    }

    #[test]
    fn a_figure_without_a_peer_is_the_median_of_its_values() {
        let alone = Comparison::alone(
            "false alarms",
            "",
            Series::new("survey", &[0.02, 0.04]),
            Some(Target::AtMost(0.05)),
        )
        .unwrap();
        assert_eq!((alone.figure.median, alone.is_reached()), (0.03, Some(true)));
        assert_eq!(alone.json()["figure"]["kind"], "value");
        let error = Comparison::alone("x", "", Series::new("y", &[]), None).unwrap_err();
        assert!(error.to_string().ends_with("nothing to compare"), "{error}");
    }

    #[test]
    fn the_file_holds_every_value_and_is_never_overwritten() {
        let directory = testkit::TempDir::new();
        let now = UNIX_EPOCH + Duration::from_secs(995_155_200);
        let record = record(Target::AtLeast(1.0));
        let first = record.write(directory.path(), now).unwrap();
        let second = record.write(directory.path(), now).unwrap();
        assert!(first.ends_with("2001-07-15-test-cpu-linux-6.1.0-memory.json"), "{first:?}");
        assert!(second.ends_with("2001-07-15-test-cpu-linux-6.1.0-memory-2.json"));
        let json: Value = serde_json::from_str(&fs::read_to_string(first).unwrap()).unwrap();
        assert_eq!(json["schema"], SCHEMA);
        assert_eq!(json["comparisons"][0]["ours"]["values"], json!([28.0, 30.0, 14.0]));
        assert_eq!(json["commands"][0], "mbw -n 1 256");
        assert_eq!(json["reached"], true);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let error =
            record(Target::AtLeast(1.0)).write(Path::new("/proc/no-such"), UNIX_EPOCH).unwrap_err();
        assert!(error.to_string().contains("/proc/no-such"), "{error}");
    }

    #[test]
    fn figures_have_four_digits() {
        assert_eq!(
            [short(0.12345), short(12.345), short(123.45), short(12345.6)],
            ["0.123", "12.35", "123.5", "12346"]
        );
    }
}
