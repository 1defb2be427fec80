//! An error and its causes in one line, for a person. Errors of all crates are printed through
//! this function, so a cause is worded once.

/// All causes of `error` in one line, `outer: inner`.
///
/// A cause that begins with the text before it replaces that text, and a cause that the text
/// already contains is left out: `cannot open /x: cannot open /x: no` does not help.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut line = one_line(&error.to_string());
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = one_line(&inner.to_string());
        if text.starts_with(&line) {
            line = text;
        } else if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
        cause = inner.source();
    }
    line
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
