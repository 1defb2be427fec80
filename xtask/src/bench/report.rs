//! What Terrace itself prints with `--json`, read field by field.
//!
//! The fields are those of `docs/json.md`. A field that is missing or absent is an error that names
//! it: a bench never replaces a figure by another.

use std::time::Duration;

use serde_json::Value;

use super::peer::Peer;
use crate::error::Error;

/// Runs `terrace ARGS... --json` and gives what it printed.
///
/// # Errors
/// As [`Peer::run`]; [`Error::Malformed`] when the output is not JSON.
pub fn run(terrace: &Peer, args: &[&str], limit: Duration) -> Result<Value, Error> {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    parse(&terrace.run(&args, limit)?.stdout)
}

/// `text` as JSON.
///
/// # Errors
/// [`Error::Malformed`] when it is not.
pub fn parse(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| malformed(error.to_string()))
}

/// The number at `pointer` (RFC 6901) in `value`.
///
/// # Errors
/// [`Error::Malformed`] if it is absent.
pub fn number(value: &Value, pointer: &str) -> Result<f64, Error> {
    let found = value.pointer(pointer).and_then(Value::as_f64);
    found.ok_or_else(|| malformed(format!("no number at {pointer}")))
}

/// The text at `pointer` in `value`.
///
/// # Errors
/// [`Error::Malformed`] if it is absent.
pub fn text<'v>(value: &'v Value, pointer: &str) -> Result<&'v str, Error> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.ok_or_else(|| malformed(format!("no text at {pointer}")))
}

/// The list at `pointer` in `value`.
///
/// # Errors
/// [`Error::Malformed`] if it is absent.
pub fn list<'v>(value: &'v Value, pointer: &str) -> Result<&'v [Value], Error> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.map(Vec::as_slice).ok_or_else(|| malformed(format!("no list at {pointer}")))
}

/// An error about JSON that a program printed.
pub fn malformed(why: String) -> Error {
    Error::Malformed { what: "what a program printed", why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_missing_ones_named() {
        let value = parse(r#"{"a": [{"b": 1.5, "c": "x", "d": null}]}"#).unwrap();
        assert_eq!(number(&value, "/a/0/b").unwrap(), 1.5);
        assert_eq!(text(&value, "/a/0/c").unwrap(), "x");
        assert_eq!(list(&value, "/a").unwrap().len(), 1);
        for error in [
            number(&value, "/a/0/d").unwrap_err(),
            text(&value, "/a/0/d").unwrap_err(),
            list(&value, "/a/0/d").unwrap_err(),
        ] {
            assert!(error.to_string().ends_with("at /a/0/d"), "{error}");
        }
        assert!(parse("usage: ...").is_err());
    }
}
