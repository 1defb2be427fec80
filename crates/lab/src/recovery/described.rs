//! The applications of the description, and how to talk to those that are databases: a database of
//! another make is one more item of data.

use crate::description::{Experiment, Item};
use crate::{Error, Result};
use serde::Deserialize;

/// Something with a working set that answers requests.
#[derive(Clone, Debug)]
pub struct Application {
    pub id: String,
    /// How to talk to a database; absent for this program's own working set.
    pub sql: Option<Sql>,
}

/// A database that takes a statement a line and answers on its output. In all words `{dir}` is
/// its directory, `{rows}` the number of rows, `{half_kib}` half of their bytes, `{id}` a key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sql {
    /// Whose process it is; this program's user where absent.
    pub user: Option<String>,
    /// What makes its directory, once.
    #[serde(default)]
    pub prepare: Vec<String>,
    pub client: Vec<String>,
    /// What the rows take in memory, in percent of their bytes: more than 100 where some lie in
    /// buffers of its own and in the page cache as well.
    #[serde(default = "once")]
    pub memory_percent: u64,
    /// The statements that make the table.
    pub make: Vec<String>,
    /// The statement that is a request: answered with the row's payload.
    pub ask: String,
    /// The statement that is answered with "wrong N", N rows that are not as they were made.
    pub count_wrong: String,
    /// The text before and after an answer in its line; empty if the line is the answer.
    #[serde(default)]
    pub answer_after: String,
    #[serde(default)]
    pub answer_before: String,
}

/// Of [`Sql::memory_percent`]: each row is in one place.
fn once() -> u64 {
    100
}

impl Application {
    /// The bytes of rows, or of plain memory, that make a working set of `bytes` in memory.
    pub fn content_bytes(&self, bytes: u64) -> u64 {
        let percent = self.sql.as_ref().map_or(100, |sql| sql.memory_percent);
        bytes / percent.max(1) * 100
    }
}

/// The applications that the description names.
///
/// # Errors
/// When one, which is part of this program, is not as it must be.
pub fn applications(experiment: &Experiment) -> Result<Vec<Application>> {
    let items = experiment.items("applications").iter();
    items.map(application).collect()
}

fn application(item: &Item) -> Result<Application> {
    let sql = serde_json::from_value(item.own.clone())
        .map_err(|error| Error::usage(format!("{} is broken: {error}", item.id)))?;
    let id = item.id.clone();
    Ok(Application { id, sql })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description;

    #[test]
    fn every_application_can_be_talked_to() {
        let all = applications(&description::named("recovery-2012").unwrap()).unwrap();
        let spoken: Vec<(&str, bool)> =
            all.iter().map(|one| (one.id.as_str(), one.sql.is_some())).collect();
        let known = [("toucher", false), ("sqlite", true), ("postgresql", true)];
        assert_eq!(spoken, known);
        let contents: Vec<u64> = all.iter().map(|one| one.content_bytes(300)).collect();
        assert_eq!(contents, [300, 300, 200]);
    }
}
