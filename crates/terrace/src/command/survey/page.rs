//! The survey's web page: where it goes, checked before anything is measured, and what is
//! taken out of it, because a page is made to be shown around.

use super::places;
use crate::args::survey::SurveyArgs;
use crate::command::page;
use crate::error::Result;
use crate::output::{OutputTarget, json};
use model::survey::Survey;
use record::redact;
use std::path::PathBuf;

/// A page that was asked for.
#[derive(Debug)]
pub struct PageFile {
    target: OutputTarget,
    /// What is replaced in it, besides what is known by its form; `None`: nothing is.
    private: Option<Vec<String>>,
}

impl PageFile {
    /// The page that `args` ask for, if they do.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn of(args: &SurveyArgs) -> Result<Option<Self>> {
        let target = page::target(args.html.as_deref(), !args.no_redact)?;
        Ok(target.map(|target| Self {
            target,
            private: (!args.no_redact).then(|| private_words(&args.paths)),
        }))
    }

    /// Writes the page of `survey`.
    ///
    /// # Errors
    /// When it did not arrive whole.
    pub fn write(&self, survey: &Survey) -> Result<()> {
        let mut survey = survey.clone();
        if let Some(private) = &self.private {
            redact::redact_survey(&mut survey, private);
        }
        let page = viewer::survey_page(json::render(&survey)?);
        self.target.write_data(&page).map(drop)
    }
}

/// The directories that a survey looks at, and the names of the user.
fn private_words(asked: &[PathBuf]) -> Vec<String> {
    let real = |path: PathBuf| std::fs::canonicalize(&path).unwrap_or(path);
    let directories = asked.iter().cloned().chain(places::own_directories());
    let paths = directories.flat_map(|path| [real(path.clone()), path]);
    let named = ["USER", "LOGNAME", "SUDO_USER"].map(std::env::var);
    let users = named.into_iter().flatten().filter(|user| user != "root");
    paths.map(|path| path.display().to_string()).chain(users).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    const RECORDED: &str = include_str!("../../../tests/fixtures/survey.json");

    fn written(private: Option<Vec<String>>) -> String {
        let directory = TempDir::new();
        let path = directory.path().join("page.html");
        let file = PageFile { target: OutputTarget::of(Some(&path)).unwrap(), private };
        // Of a version that kept no curves, as any stored survey may be.
        file.write(&serde_json::from_str(RECORDED).unwrap()).unwrap();
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn names_are_left_in_a_page_only_when_asked_for() {
        let whole = written(None);
        assert!(whole.contains("db-3") && whole.contains("/srv/archive"));
        let redacted = written(Some(Vec::new()));
        assert!(!redacted.contains("db-3") && !redacted.contains("/srv/archive"));
        for kept in ["AMD EPYC 9R45", "/path-1  vdb", "/  vda"] {
            assert!(redacted.contains(kept), "{kept}");
        }
    }
}
