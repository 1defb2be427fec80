//! What is drawn together, by the question that it answers: `web/questions.json`, which a page
//! reads as it is and `terrace top` as these types.

use serde::Deserialize;

/// The questions as JSON.
pub const QUESTIONS: &str = include_str!("../web/questions.json");

/// One question and the charts that answer it.
#[derive(Clone, Debug, Deserialize)]
pub struct Question {
    /// Its word: `waits`.
    pub id: String,
    /// In full: `Who waits`.
    pub title: String,
    /// What is said where no chart has anything to show.
    pub still: String,
    /// The charts, in their order.
    pub charts: Vec<Chart>,
}

/// Series that share an axis.
#[derive(Clone, Debug, Deserialize)]
pub struct Chart {
    /// Its name.
    pub id: String,
    /// The heading above it.
    pub title: String,
    /// What a terminal puts before the labels of its series: `pressure`.
    pub lane: String,
    /// What its axis counts, where the unit of the series does not say it: `share`.
    pub unit: Option<String>,
    /// Whether the series add up.
    #[serde(default)]
    pub stacked: bool,
    /// The series.
    pub series: Vec<Wanted>,
    /// Levels that add up, drawn instead of `series` where there are any.
    #[serde(default)]
    pub layers: Vec<Layer>,
}

/// A series: its name (`*` is any word; after `|` what is taken where the first has nothing to
/// say), its label (`*` is that word), and the colour of a page.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Vec<String>")]
pub struct Wanted {
    /// The names, the one to be preferred first.
    pub patterns: Vec<String>,
    /// The label.
    pub label: String,
}

impl From<Vec<String>> for Wanted {
    fn from(words: Vec<String>) -> Self {
        let mut words = words.into_iter();
        let patterns = words.next().unwrap_or_default();
        Self {
            patterns: patterns.split('|').map(str::to_owned).collect(),
            label: words.next().unwrap_or_default(),
        }
    }
}

/// A level less others.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "(String, String, String, Vec<String>)")]
pub struct Layer {
    /// Its name; `*` is any word.
    pub pattern: String,
    /// Its label; `*` is that word.
    pub label: String,
    /// The names whose levels are taken out of it.
    pub less: Vec<String>,
}

impl From<(String, String, String, Vec<String>)> for Layer {
    fn from((pattern, label, _colour, less): (String, String, String, Vec<String>)) -> Self {
        Self { pattern, label, less }
    }
}

/// All of them, in their order.
///
/// # Errors
/// None but of a program that was built wrong; a test reads them.
pub fn questions() -> serde_json::Result<Vec<Question>> {
    serde_json::from_str(QUESTIONS)
}

/// The part of `name` that matches `*` in `pattern`; empty for a pattern without `*`.
#[must_use]
pub fn matched<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    match pattern.split_once('*') {
        None => (pattern == name).then_some(""),
        Some((before, after)) => {
            let word = name.strip_prefix(before)?.strip_suffix(after)?;
            (!word.is_empty()).then_some(word)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Meanings;

    #[test]
    fn every_series_that_is_asked_for_is_documented() {
        let meanings = Meanings::documented();
        let mut count = 0;
        for chart in questions().unwrap().iter().flat_map(|one| &one.charts) {
            assert!(chart.series.is_empty() != chart.layers.is_empty());
            let layers =
                chart.layers.iter().flat_map(|layer| layer.less.iter().chain([&layer.pattern]));
            let series = chart.series.iter().flat_map(|wanted| &wanted.patterns);
            for pattern in series.chain(layers) {
                let name = pattern
                    .replace("group*", "group0")
                    .replace("sleep.*", "sleep.pipe")
                    .replace('*', "vda");
                assert!(meanings.of(&name).is_some(), "{name}");
                count += 1;
            }
        }
        assert!(count > 40, "{count}");
    }

    #[test]
    fn a_star_is_any_word() {
        assert_eq!(matched("disk.*.reads", "disk.vda.reads"), Some("vda"));
        assert_eq!(matched("disk.*.reads", "disk..reads"), None);
        assert_eq!(matched("disk.*.reads", "disk.vda.read_ns"), None);
        assert_eq!(matched("a.b", "a.b"), Some(""));
        assert_eq!(matched("a.*", "a."), None);
    }
}
