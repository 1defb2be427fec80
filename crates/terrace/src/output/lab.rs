//! The pages of `lab`: the list, and what an experiment is; the page of a result is in a file of
//! the experiment's own. Pure.

mod file_copy;
mod memory_copy;
mod ramdisk_puzzle;
mod recovery;

use super::prose::PageText;
use super::table::Table;
use super::{Page, Report};
use lab::description::Experiment;
use serde::Serialize;
use std::path::Path;

/// The page of one experiment's outcome.
pub trait OutcomePage {
    /// Writes the text for a person; `directory` is where the outcome is kept, if it is.
    fn write_page(&self, experiment: &Experiment, directory: Option<&Path>, out: &mut PageText);

    /// What of it cannot stand as it is, or is missing.
    fn shortfall(&self) -> Option<String>;
}

/// The outcome of an experiment, and what its page needs besides.
#[derive(Debug, Serialize)]
pub struct ExperimentResult<'a, O> {
    #[serde(skip)]
    pub experiment: &'a Experiment,
    /// The directory in which the JSON is stored too, if any.
    #[serde(skip)]
    pub directory: Option<&'a Path>,
    #[serde(flatten)]
    pub outcome: O,
}

impl<O: OutcomePage + Serialize> Report for ExperimentResult<'_, O> {
    const COMMAND: &'static str = "lab";
    const SCHEMA: &'static str = "terrace.lab/1";

    fn write_page(&self, out: &mut PageText) {
        self.outcome.write_page(self.experiment, self.directory, out);
    }

    fn shortfall(&self) -> Option<String> {
        self.outcome.shortfall()
    }

    fn directory(&self) -> Option<&Path> {
        self.directory
    }
}

/// The experiments, one a line.
pub fn list(all: &[Experiment], page: Page) -> String {
    let table = Table::of(all).words("experiment", 0, |one| one.name.as_str()).words(
        "its question",
        0,
        |one| one.title.as_str(),
    );
    table.render(page, 0)
}

/// All about one.
pub fn describe(experiment: &Experiment, page: Page) -> String {
    let title = format!("{}: {}", experiment.name, experiment.title);
    let mut out = PageText::new(page);
    out.heading(&title);
    let original = &experiment.original;
    let mut part = |title: &str, lines: &[String]| {
        out.heading(title);
        out.sentences(lines);
    };
    let mut published = vec![original.machine.clone(), original.what.clone()];
    let figures = original.figures.iter();
    published.extend(figures.map(|figure| format!("{}: {figure}", figure.what)));
    part("The original", &published);
    part("What it claims", &experiment.claims);
    part("What is done", &experiment.steps);
    for of in &experiment.parts {
        let items = of.items.iter();
        let lines = items.map(|item| format!("{}: {}", item.id, item.about));
        part(&of.title, &lines.collect::<Vec<_>>());
    }
    part("What cannot be repeated", &experiment.cannot);
    let takes = std::slice::from_ref(&experiment.takes);
    part("What it does to this machine", takes);
    out.finish()
}
