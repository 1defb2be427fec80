//! What an experiment is, as data: the original with its figures, what is done, what cannot be
//! repeated. The drivers take their applications and ways from it.

use crate::error::{Error, Result};
use serde::Deserialize;

/// All experiments; one more is one more file, and its driver in `lab`.
const FILES: [&str; 1] = [include_str!("experiments/recovery-2012.json")];

/// An experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: String,
    /// Its question.
    pub title: String,
    pub original: Original,
    /// What the author claimed and this can check.
    pub claims: Vec<String>,
    /// What is done, in order.
    pub steps: Vec<String>,
    /// What is compared.
    pub ways: Vec<Way>,
    /// What the original compared and this does not yet.
    pub missing_ways: Vec<Missing>,
    /// What cannot be repeated.
    pub cannot: Vec<String>,
    /// What it does to the machine, and what it needs.
    pub takes: String,
    pub applications: Vec<Application>,
}

/// What was published.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Original {
    pub machine: String,
    pub what: String,
    pub figures: Vec<Figure>,
}

/// A published figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    pub way: String,
    pub seconds: f64,
}

/// One of the ways that are compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    pub id: String,
    pub about: String,
    /// What the original took, where it tried that, s.
    pub original_s: Option<f64>,
}

/// A way of the original that is missing here.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    pub about: String,
    pub original_s: f64,
}

/// Something with a working set that answers requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    pub id: String,
    pub about: String,
    /// How to talk to a database; absent for this program's own toucher.
    pub sql: Option<Sql>,
}

/// A database that takes a statement a line and answers on its output. In all words `{dir}` is
/// its directory, `{rows}` the number of rows, `{half_kib}` half of the working set, `{id}` a key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sql {
    /// Whose process it is; this program's user where absent.
    pub user: Option<String>,
    /// What makes its directory, once.
    #[serde(default)]
    pub prepare: Vec<String>,
    pub client: Vec<String>,
    /// The statements that make the table.
    pub make: Vec<String>,
    /// The statement that is a request: answered with the row's payload.
    pub ask: String,
    /// The statement that is answered with "wrong N", N rows that are not as they were made.
    pub count_wrong: String,
    /// What stands before and after an answer in its line; nothing where the line is the answer.
    #[serde(default)]
    pub answer_after: String,
    #[serde(default)]
    pub answer_before: String,
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
        assert!(
            named("no-such")
                .unwrap_err()
                .hint
                .unwrap()
                .contains("recovery-2012")
        );
    }

    #[test]
    fn the_figures_of_2012_are_the_published_ones() {
        let figures: Vec<f64> = named("recovery-2012")
            .unwrap()
            .original
            .figures
            .iter()
            .map(|figure| figure.seconds)
            .collect();
        assert_eq!(figures, [155.0, 119.0, 35.0]);
    }
}
