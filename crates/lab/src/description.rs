//! What an experiment is, as data: the original with its figures, what is done, what cannot be
//! repeated. The drivers take what they compare from its parts.

use crate::{Error, Result};
use serde::Deserialize;
use serde_json::Value;
use std::fmt;

/// All experiments; one more is one more file, and its driver in `lab`.
const FILES: [&str; 4] = [
    include_str!("experiments/file-copy-2008.json"),
    include_str!("experiments/memory-copy-2001.json"),
    include_str!("experiments/ramdisk-puzzle.json"),
    include_str!("experiments/recovery-2012.json"),
];

/// An experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: String,
    /// Its question.
    pub title: String,
    /// What was published.
    pub original: Original,
    /// What the author claimed and this can check.
    pub claims: Vec<String>,
    /// What is done, in order.
    pub steps: Vec<String>,
    /// What it is made of: the ways that are compared, the methods, the sizes.
    pub parts: Vec<ExperimentPart>,
    /// What cannot be repeated.
    pub cannot: Vec<String>,
    /// What it does to the machine, and what it needs.
    pub takes: String,
}

/// What was published.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Original {
    /// The machine it was measured on.
    pub machine: String,
    /// What was measured.
    pub what: String,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// A published figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What it says: its name.
    pub what: String,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

impl fmt::Display for Figure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {}", self.value, self.unit)
    }
}

/// Things of one kind that an experiment is made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentPart {
    /// What its driver calls it.
    pub id: String,
    /// What a person reads: `The ways`.
    pub title: String,
    /// The things.
    pub items: Vec<Item>,
}

/// One of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// What its driver calls it.
    pub id: String,
    /// What a person reads.
    pub about: String,
    /// The published figure that it repeats: a [`Figure::what`].
    pub original: Option<String>,
    /// What its driver alone reads.
    #[serde(default)]
    pub own: Value,
}

impl Experiment {
    /// The items of a part; none where it has no such part.
    pub fn items(&self, part: &str) -> &[Item] {
        let found = self.parts.iter().find(|one| one.id == part);
        found.map_or(&[], |one| &one.items)
    }

    /// The published figure of this name.
    pub fn figure(&self, what: &str) -> Option<&Figure> {
        self.original.figures.iter().find(|one| one.what == what)
    }
}

/// All experiments.
///
/// # Errors
/// When one of the files, which are part of this program, is not as it must be.
pub fn all() -> Result<Vec<Experiment>> {
    FILES
        .iter()
        .map(|text| serde_json::from_str(text))
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| Error::usage(format!("an experiment of this program is broken: {error}")))
}

/// The experiment of this name.
///
/// # Errors
/// `Usage` with the names that there are.
pub fn named(name: &str) -> Result<Experiment> {
    let all = all()?;
    let names: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
    all.into_iter().find(|one| one.name == name).ok_or_else(|| {
        Error::usage(format!("there is no experiment {name}"))
            .hint(format!("there are: {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_this_program_are_whole() {
        let all = all().unwrap();
        assert!(all.iter().all(|one| named(&one.name).is_ok()));
        assert!(named("no-such").unwrap_err().hint.unwrap().contains("recovery-2012"));
    }

    #[test]
    fn the_figures_of_2012_are_the_published_ones() {
        let figures: Vec<f64> = named("recovery-2012")
            .unwrap()
            .original
            .figures
            .iter()
            .map(|figure| figure.value)
            .collect();
        assert_eq!(figures, [155.0, 119.0, 35.0]);
    }

    #[test]
    fn what_repeats_a_figure_names_a_published_one() {
        for one in all().unwrap() {
            let items = one.parts.iter().flat_map(|part| &part.items);
            for name in items.filter_map(|item| item.original.as_deref()) {
                assert!(one.figure(name).is_some(), "{}: {name}", one.name);
            }
        }
    }
}
