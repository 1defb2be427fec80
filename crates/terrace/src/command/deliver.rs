//! A result on its way out: rendered in the form that was asked for, written whole,
//! what is missing said on standard error, the exit status decided.

use super::cost::Meter;
use super::machine_facts;
use crate::args::When;
use crate::args::form::FormArgs;
use crate::args::probe::ProbeArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::json::{self, Cost, Envelope};
use crate::output::lab::Outcome;
use crate::output::ramdisk;
use crate::output::report::Report;
use crate::output::survey::Detail;
use crate::output::warm::Answer;
use crate::output::{self, Page, Target, Written};
use lab::description::Experiment;
use machine::Root;
use measure::pressure::{self, Plan};
use model::machine::MachineFacts;
use model::survey::Survey;
use serde::Serialize;
use std::path::Path;

/// Where a result goes, checked before anything is measured.
#[derive(Debug)]
pub struct Delivery {
    target: Target,
    page: Page,
    json: bool,
    csv: bool,
    host_name: bool,
}

impl Delivery {
    /// The delivery of a probe's result.
    ///
    /// # Errors
    /// When the file of `-o` could not be written.
    pub fn of_probe(args: &ProbeArgs, color: When) -> Result<Self> {
        Ok(Self {
            csv: args.csv,
            ..Self::of(&args.form, color)?
        })
    }

    /// The delivery of a result that has no CSV.
    ///
    /// # Errors
    /// When the file of `-o` could not be written.
    pub fn of(form: &FormArgs, color: When) -> Result<Self> {
        let target = Target::of(form.output.as_deref())?;
        let page = Page::of(&target, color);
        Ok(Self {
            target,
            page,
            json: form.json,
            csv: false,
            host_name: form.host_name,
        })
    }

    /// The facts of this machine as the result may state them: the page for a person
    /// names the host, what is made to be passed on only when asked.
    fn stated(&self, facts: MachineFacts) -> MachineFacts {
        match self.json {
            true => self.passed_on(facts),
            false => facts,
        }
    }

    /// The facts for a file or for JSON.
    fn passed_on(&self, facts: MachineFacts) -> MachineFacts {
        MachineFacts {
            host: facts.host.filter(|_| self.host_name),
            ..facts
        }
    }

    /// Delivers a probe's result; `name` is the command that complaints name.
    ///
    /// # Errors
    /// When it did not arrive.
    pub fn probe<R: Report>(
        &self,
        name: &str,
        report: &R,
        meter: Meter,
        root: &Root,
    ) -> Result<Exit> {
        let text = if self.json {
            let schema = format!("terrace.measure.{}/1", R::NAME);
            let cost = meter.cost_of_measuring(report.written_bytes(), root);
            self.enveloped(schema, report, meter, &cost, root)?
        } else if self.csv {
            report.sheet().render()
        } else {
            report.page(self.page)
        };
        self.text(name, &text, report.shortfall())
    }

    /// Delivers what the hogs did.
    ///
    /// # Errors
    /// When it did not arrive.
    pub fn hog(
        &self,
        plan: &Plan,
        report: &pressure::Report,
        meter: Meter,
        root: &Root,
    ) -> Result<Exit> {
        let text = if self.json {
            let cost = meter.cost();
            self.enveloped("terrace.hog/1".to_owned(), report, meter, &cost, root)?
        } else {
            output::hog::page(plan, report, self.page)
        };
        self.text("hog", &text, output::hog::shortfall(report))
    }

    /// Delivers why a RAM disk is slow.
    ///
    /// # Errors
    /// When it did not arrive.
    pub fn ramdisk(&self, answer: &ramdisk::Answer, meter: Meter, root: &Root) -> Result<Exit> {
        let text = if self.json {
            let cost = meter.cost_of_measuring(0, root);
            let schema = "terrace.ramdisk-why/1".to_owned();
            self.enveloped(schema, answer, meter, &cost, root)?
        } else {
            output::ramdisk::page(answer, self.page)
        };
        self.text("ramdisk why", &text, output::ramdisk::shortfall(answer))
    }

    /// Delivers what `warm` saw or did.
    ///
    /// # Errors
    /// When it did not arrive.
    pub fn warm<A: Answer>(&self, answer: &A, meter: Meter, root: &Root) -> Result<Exit> {
        let text = if self.json {
            let cost = meter.cost();
            let schema = format!("terrace.{}/1", A::COMMAND.replace(' ', "."));
            self.enveloped(schema, answer, meter, &cost, root)?
        } else {
            answer.page(self.page)
        };
        self.text(A::COMMAND, &text, answer.shortfall())
    }

    /// Keeps what an experiment showed in `out`, where there is one, and delivers it.
    ///
    /// # Errors
    /// When it could not be kept, or did not arrive.
    pub fn lab<O: Outcome>(
        &self,
        experiment: &Experiment,
        outcome: &O,
        out: Option<&Path>,
        meter: Meter,
        root: &Root,
    ) -> Result<Exit> {
        let cost = meter.cost_of_measuring(0, root);
        let json = self.enveloped("terrace.lab/1".to_owned(), outcome, meter, &cost, root)?;
        out.map_or(Ok(()), |out| keep_result(out, &json))?;
        let text = match self.json {
            true => json,
            false => outcome.page(experiment, out, self.page),
        };
        self.text("lab", &text, outcome.shortfall())
    }

    /// A result as JSON, with what belongs around it.
    fn enveloped<R: Serialize>(
        &self,
        schema: String,
        result: &R,
        meter: Meter,
        cost: &Cost,
        root: &Root,
    ) -> Result<String> {
        json::render(&Envelope {
            schema,
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
        let machine = self.stated(survey.machine);
        let survey = Survey { machine, ..survey };
        let text = if self.json {
            json::render(&survey)?
        } else {
            output::survey::page(&survey, detail, self.page)
        };
        let shortfall = survey
            .interrupted
            .then(|| "interrupted: this is what was measured until then".to_owned());
        self.text("survey", &text, shortfall)
    }

    fn text(&self, name: &str, text: &str, shortfall: Option<String>) -> Result<Exit> {
        match (self.target.write(text)?, shortfall) {
            // Who closed the pipe has what he wanted, and no use for more words.
            (Written::ReaderGone, _) | (_, None) => Ok(Exit::Done),
            (Written::Whole, Some(missing)) => Ok(output::complain(
                &Error::new(Exit::Partial, missing).during(name),
            )),
        }
    }
}

/// Writes `result.json` into the directory of an experiment.
fn keep_result(out: &Path, json: &str) -> Result<()> {
    let directory = lab::output_directory::open(out)?;
    Target::in_directory(directory, "result.json")
        .write(json)
        .map(drop)
}
