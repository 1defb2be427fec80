//! Finds module declarations and test-only parts in the layers of one file.
//!
//! Works on text, so it also sees inside macros, and does not evaluate `cfg`: a module for another
//! architecture counts like any other. Limits: a `where` clause with a block expression outside of
//! brackets, and `#[cfg(test)]` on a struct field, are not understood; neither is used here.

use std::ops::Range;

use super::{Layers, words};

/// One `mod name;`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// The declared name.
    pub name: String,
    /// The value of its `#[path]`, if any.
    pub path: Option<String>,
    /// The inline modules around it, outermost first.
    pub inside: Vec<String>,
    /// Whether it exists only in tests.
    pub test: bool,
}

/// The parts of `code` that exist only in tests: items under `#[cfg(test)]`, with the attribute.
pub fn test_parts(code: &str) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (at, _) in code.match_indices("#![cfg(") {
        if is_test(code, at + 2) {
            parts.push(0..code.len());
        }
    }
    for (at, _) in code.match_indices("#[cfg(") {
        if is_test(code, at + 1) && !parts.iter().any(|part| part.contains(&at)) {
            parts.push(at..item_end(code, at));
        }
    }
    parts
}

/// `code` with its test-only parts blanked, of the same shape.
pub fn without_tests(code: &str) -> String {
    let mut text = code.as_bytes().to_vec();
    for part in test_parts(code) {
        for byte in &mut text[part] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The modules that a file declares in other files.
pub fn modules(layers: &Layers) -> Vec<Module> {
    let code = &layers.code;
    let tests = test_parts(code);
    let mut inline: Vec<(Range<usize>, String)> = Vec::new();
    let mut found = Vec::new();
    for at in words::find(code, "mod") {
        let rest = code[at + 3..].trim_start();
        let name = words::identifier(rest).to_owned();
        let after = rest[name.len()..].trim_start();
        if after.starts_with('{') {
            let open = words::body(code, at).unwrap_or(code.len());
            inline.push((open..words::closing(code, open), name));
        } else if after.starts_with(';') {
            let around = inline.iter().filter(|(range, _)| range.contains(&at));
            found.push(Module {
                name,
                path: path_attribute(layers, at),
                inside: around.map(|(_, name)| name.clone()).collect(),
                test: tests.iter().any(|part| part.contains(&at)),
            });
        }
    }
    found
}

/// Whether the attribute whose bracket opens at `open` holds its item for tests only.
fn is_test(code: &str, open: usize) -> bool {
    let attribute = &code[open..words::closing(code, open)];
    // `not(test)` and `any(test, ...)` also exist outside of tests.
    words::contains(attribute, "test") && !attribute.contains("not(") && !attribute.contains("any(")
}

/// The end of the item that starts, with its attributes, at `start`.
fn item_end(code: &str, start: usize) -> usize {
    match words::body(code, start) {
        Some(at) if code.as_bytes()[at] == b'{' => (words::closing(code, at) + 1).min(code.len()),
        Some(at) => at + 1,
        None => code.len(),
    }
}

/// The value of `#[path = "..."]` among the attributes directly before the `mod` at `at`.
fn path_attribute(layers: &Layers, at: usize) -> Option<String> {
    let before = layers.code[..at].rfind([';', '{', '}']).map_or(0, |end| end + 1);
    let attribute = before + layers.code[before..at].find("#[path")?;
    let open = attribute + layers.code[attribute..at].find('"')? + 1;
    let close = open + layers.code[open..at].find('"')?;
    Some(layers.literals[open..close].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_parts_are_blanked_and_the_rest_stays() {
        let source =
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\n#[cfg(not(test))]\nfn c() {}\n";
        let code = without_tests(source);
        assert!(!code.contains("fn b") && code.contains("fn a") && code.contains("fn c"));
        assert_eq!(code.len(), source.len());
        assert_eq!(without_tests("#![cfg(test)]\nfn a() {}").trim(), "");
        assert!(without_tests("#[cfg(test)]\nuse a::b;\nfn c() {}").contains("fn c"));
        assert!(without_tests("#[cfg(any(test, unix))]\nfn c() {}").contains("fn c"));
    }

    #[test]
    fn module_declarations_know_their_surroundings() {
        let source = "mod a;\n#[cfg(test)]\nmod tests;\nmod x { #[path = \"other.rs\"] pub mod b; }\n// mod c;";
        let found = modules(&Layers::of(source));
        let module = |name: &str, path: Option<&str>, inside: &[&str], test| Module {
            name: name.to_owned(),
            path: path.map(str::to_owned),
            inside: inside.iter().map(|s| (*s).to_owned()).collect(),
            test,
        };
        assert_eq!(
            found,
            [
                module("a", None, &[], false),
                module("tests", None, &[], true),
                module("b", Some("other.rs"), &["x"], false),
            ]
        );
    }
}
