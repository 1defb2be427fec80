//! The page of a survey: the terrace, the curves, the findings, the machine, in one file; and that
//! of two surveys over each other.
//!
//! It holds exactly the JSON that `terrace survey --json` prints (`terrace.survey/1`), that of two
//! also what `terrace compare --json` does; all drawing is done by `web/survey.js`,
//! `web/surveys.js` and what they import.

use crate::page::{PageData, page};

/// The modules, each after what it imports.
const MODULES: &[&str] = &[
    include_str!("../web/dom.js"),
    include_str!("../web/format.js"),
    include_str!("../web/curves.js"),
    include_str!("../web/terrace.js"),
    include_str!("../web/survey.js"),
];

/// Those of two surveys.
const PAIR_MODULES: &[&str] = &[
    include_str!("../web/dom.js"),
    include_str!("../web/format.js"),
    include_str!("../web/curves.js"),
    include_str!("../web/terrace.js"),
    include_str!("../web/differences.js"),
    include_str!("../web/surveys.js"),
];

const STYLE: &str = concat!(
    include_str!("../web/page.css"),
    include_str!("../web/differences.css"),
    include_str!("../web/survey.css")
);

/// The page of a survey from its JSON.
#[must_use]
pub fn survey_page(json: String) -> String {
    page("terrace survey", STYLE, MODULES, &[PageData::Json("survey", json)])
}

/// The page of two surveys and of their comparison, each as its JSON.
#[must_use]
pub fn surveys_page([first, second]: [String; 2], comparison: String) -> String {
    let data = [
        PageData::Json("survey", first),
        PageData::Json("survey-2", second),
        PageData::Json("compare", comparison),
    ];
    page("terrace compare", STYLE, PAIR_MODULES, &data)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What would fetch something; the names of standards are no addresses to go to.
    const FETCHES: &[&str] =
        &["http:", "https:", " src=", "url(\"", "url(h", "fetch(", "@import", "WebSocket"];

    #[test]
    fn the_page_asks_for_nothing_and_ends_in_its_module() {
        let text = survey_page("{}".to_owned());
        assert!(text.contains("default-src 'none'"));
        let addresses = text.replace("http://www.w3.org/2000/svg", "");
        for fetch in FETCHES {
            assert!(!addresses.contains(fetch), "{fetch}");
        }
        // Only lines of imports and exports are taken out: nothing of them may be left.
        assert!(
            !text.lines().any(|line| line.starts_with("import ") || line.starts_with("export "))
        );
    }
}
