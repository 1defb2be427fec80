//! How numbers and commands are written in a claim.
//!
//! Sizes, rates and times come from `model`; here is what only sentences need.

use model::bytes::three_digits;
pub(crate) use model::text::{count, long_time, shell_word};

/// A share as percent: `44 %`, `1.2 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// A factor of at least 0: `1.46`.
pub(crate) fn times(factor: f64) -> String {
    three_digits(factor)
}

/// How often: `once`, `4,812 times`.
pub(crate) fn often(times: u64) -> String {
    match times {
        1 => "once".to_owned(),
        _ => format!("{} times", count(times)),
    }
}

/// Names in a row: `a`, `a and b`, `a, b and c`.
pub(crate) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The command that surveys one path again, quoted for a shell.
pub(crate) fn survey_path(path: &str) -> String {
    format!("terrace survey --path {}", shell_word(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_sentences() {
        assert_eq!(percent(0.437), "43.7 %");
        assert_eq!((often(1), often(4_812)), ("once".into(), "4,812 times".into()));
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }

    #[test]
    fn a_path_with_a_quote_stays_one_word() {
        assert_eq!(survey_path("/data"), "terrace survey --path /data");
        assert_eq!(survey_path("/a b"), "terrace survey --path '/a b'");
    }
}
