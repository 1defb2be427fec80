//! A result on its way out: rendered in the form that was asked for, written whole,
//! what is missing said on standard error, the exit status decided.

use super::{machine_facts, record_options};
use crate::args::When;
use crate::args::measure::ProbeArgs;
use crate::args::shared::FormArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::json::{self, Cost, Envelope, Harness};
use crate::output::progress::Progress;
use crate::output::report::interrupted;
use crate::output::survey::Detail;
use crate::output::{self, OutputTarget, Page, Report, Written};
use machine::Root;
use measure::calibrate;
use measure::disturbance::Bracket;
use model::machine::MachineFacts;
use model::progress::{Control, Progress as Amount};
use model::survey::Survey;
use record::capture::BackgroundRecording;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What is displayed of a command while it works, and the recording beside it.
#[derive(Debug)]
pub struct Activity {
    command: &'static str,
    line: Progress,
    background: Option<BackgroundRecording>,
}

impl Activity {
    /// Begins to record to `file`, if there is one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn start(command: &'static str, file: Option<&Path>) -> Result<Self> {
        Ok(Self {
            command,
            line: Progress::new(),
            background: record_options::start_background(command, file)?,
        })
    }

    /// Displays what is being done.
    pub fn display(&self, what: &str) {
        self.line.step(&format!("terrace {}: {what}", self.command));
    }

    /// Displays several lines, as they are.
    pub fn display_panel(&self, lines: &[String]) {
        self.line.panel(lines);
    }

    /// Displays a step that begins, and marks it in the recording.
    pub fn begin(&self, step: &str) {
        self.display(step);
        if let Some(background) = &self.background {
            background.mark(step);
        }
    }

    /// A sink for the progress of an operation.
    pub fn amounts(&self) -> impl FnMut(Amount<'_>) -> Control {
        self.line.display(self.command)
    }

    /// A sink for the progress of an operation that ends when a signal comes.
    pub fn until_interrupted(&self) -> impl FnMut(Amount<'_>) -> Control {
        let mut amounts = self.amounts();
        move |amount| {
            // The display itself never stops it.
            let _ = amounts(amount);
            Control::stop_if(sys::interrupt::requested())
        }
    }

    /// Erases the line and closes the recording.
    ///
    /// # Errors
    /// When the recording is not whole.
    pub fn finish(self) -> Result<()> {
        drop(self.line);
        Ok(self.background.map_or(Ok(()), BackgroundRecording::finish)?)
    }
}

/// Where a result goes, checked before anything is measured.
#[derive(Debug)]
pub struct Delivery {
    target: OutputTarget,
    page: Page,
    json: bool,
    csv: bool,
    host_name: bool,
    record: Option<PathBuf>,
}

impl Delivery {
    /// The delivery of a probe's result.
    ///
    /// # Errors
    /// When the file of `-o` could not be written.
    pub fn of_probe(args: &ProbeArgs, color: When) -> Result<Self> {
        Ok(Self { csv: args.csv, ..Self::of(&args.form, color)? })
    }

    /// The delivery of a result that has no CSV.
    ///
    /// # Errors
    /// When the file of `-o` could not be written.
    pub fn of(form: &FormArgs, color: When) -> Result<Self> {
        let target = OutputTarget::of(form.output.as_deref())?;
        let page = Page::of(&target, color);
        Ok(Self {
            target,
            page,
            json: form.json,
            csv: false,
            host_name: form.host_name,
            record: form.record.clone(),
        })
    }

    /// The facts for a file or for JSON, which is made to be passed on: the host is named only when
    /// asked.
    fn passed_on(&self, facts: MachineFacts) -> MachineFacts {
        MachineFacts { host: facts.host.filter(|_| self.host_name), ..facts }
    }

    /// Does the `work` of a command, recorded if that was asked for, and delivers its report.
    ///
    /// # Errors
    /// What the work failed with, or why its report or its recording did not arrive.
    pub fn carry_out<R: Report, E>(
        &self,
        root: &Root,
        work: impl FnOnce(&Activity) -> std::result::Result<R, E>,
    ) -> Result<Exit>
    where
        Error: From<E>,
    {
        let meter = Meter::start();
        let activity = Activity::start(R::COMMAND, self.record.as_deref())?;
        let report = work(&activity);
        let recorded = activity.finish();
        let report = report?;
        recorded?;
        let directory = report.directory();
        let json = if self.json || directory.is_some() {
            let cost = if R::TIMED {
                meter.cost_of_measuring(report.written_bytes(), root)
            } else {
                meter.cost()
            };
            self.enveloped(&report, meter, &cost, root)?
        } else {
            String::new()
        };
        directory.map_or(Ok(()), |directory| store_result(directory, &json))?;
        let text = if self.json {
            json
        } else {
            let csv = self.csv.then(|| report.csv()).flatten();
            csv.unwrap_or_else(|| report.page(self.page))
        };
        self.text(R::COMMAND, &text, report.shortfall())
    }

    /// A result as JSON, with what belongs around it.
    fn enveloped<R: Report>(
        &self,
        result: &R,
        meter: Meter,
        cost: &Cost,
        root: &Root,
    ) -> Result<String> {
        json::render(&Envelope {
            schema: R::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            started_unix_s: meter.started_unix_s(),
            command: std::env::args().skip(1).collect(),
            interrupted: sys::interrupt::requested(),
            machine: &self.passed_on(machine_facts::read(root)),
            result,
            cost,
        })
    }

    /// Delivers a survey.
    ///
    /// # Errors
    /// When it did not arrive.
    pub fn survey(&self, survey: Survey, detail: Detail) -> Result<Exit> {
        let shortfall = interrupted(survey.interrupted);
        let text = if self.json {
            json::render(&Survey { machine: self.passed_on(survey.machine), ..survey })?
        } else {
            output::survey::page(&survey, detail, self.page)
        };
        self.text("survey", &text, shortfall)
    }

    fn text(&self, name: &str, text: &str, shortfall: Option<String>) -> Result<Exit> {
        match (self.target.write(text)?, shortfall) {
            // Who closed the pipe has what he wanted, and no use for more words.
            (Written::ReaderGone, _) | (_, None) => Ok(Exit::Done),
            (Written::Whole, Some(missing)) => {
                Ok(output::complain(&Error::new(Exit::Partial, missing).during(name)))
            }
        }
    }
}

/// Writes `result.json` into the directory of an experiment.
fn store_result(out: &Path, json: &str) -> Result<()> {
    let directory = lab::output_directory::open(out)?;
    OutputTarget::in_directory(directory, "result.json").write(json).map(drop)
}

/// Measures what a run of this program costs the machine, which is stated beside its result; the
/// harness's own overhead is never subtracted. Started with the work.
#[derive(Clone, Copy, Debug)]
struct Meter {
    started: Instant,
    started_unix_s: u64,
}

impl Meter {
    /// Starts now.
    fn start() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            started: Instant::now(),
            // A clock before 1970 is not set; nothing better than 0 can be said of it.
            started_unix_s: since_1970.map_or(0, |since| since.as_secs()),
        }
    }

    /// When it started, seconds since 1970 UTC.
    fn started_unix_s(&self) -> u64 {
        self.started_unix_s
    }

    /// The cost until now of a run that measured nothing by the harness.
    fn cost(&self) -> Cost {
        // A probe that is repeated measures in processes of its own.
        let usages = || [sys::usage::process(), sys::usage::children()].into_iter().flatten();
        Cost {
            wall_s: self.started.elapsed().as_secs_f64(),
            cpu_s: usages().map(|usage| usage.cpu_ns()).sum::<u64>() as f64 / 1e9,
            max_resident_bytes: usages().map(|usage| usage.max_rss_bytes).max().unwrap_or(0),
            written_bytes: 0,
            harness: None,
        }
    }

    /// The cost until now of a run that measured and wrote `written_bytes` to files. What the
    /// harness costs is found out by calling it: milliseconds, which are not part of the run.
    fn cost_of_measuring(&self, written_bytes: u64, root: &Root) -> Cost {
        let cost = self.cost();
        let overhead = calibrate::overhead(&mut Bracket::for_this_thread(root, None));
        Cost {
            written_bytes,
            harness: Some(Harness { timer_ns: overhead.timer_ns, bracket_ns: overhead.bracket_ns }),
            ..cost
        }
    }
}
