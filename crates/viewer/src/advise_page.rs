//! The page of advice: the answer, the curve with its interval, the sizes and who waited, in one
//! file. It holds exactly the JSON that `terrace advise --json` prints (`terrace.advise/1`).

use crate::page::{PageData, page};

/// The modules, each after what it imports.
const MODULES: &[&str] = &[
    include_str!("../web/dom.js"),
    include_str!("../web/format.js"),
    include_str!("../web/curves.js"),
    include_str!("../web/advise.js"),
];

const STYLE: &str = concat!(
    include_str!("../web/page.css"),
    include_str!("../web/survey.css"),
    include_str!("../web/advise.css")
);

/// The page of advice from its JSON.
#[must_use]
pub fn advise_page(json: String) -> String {
    page("terrace advise", STYLE, MODULES, &[PageData::Json("advise", json)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_for_nothing() {
        let text = advise_page("{}".to_owned()).replace("http://www.w3.org/2000/svg", "");
        assert!(text.contains("default-src 'none'"));
        for fetch in ["http:", "https:", " src=", "fetch(", "@import"] {
            assert!(!text.contains(fetch), "{fetch}");
        }
    }
}
