//! Rule: a value has one name for its whole way, or two names; it is not bound twice in a row.
//!
//! Two consecutive statements `let NAME = ...;` of one block that bind the same name are refused:
//! one chain of calls, or a second name, says the same. `_` is no name. Where the second statement
//! needs a block of statements of its own, no chain could replace it.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{Tree, Violation};

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs")) {
        let mut found = Vec::new();
        // What is no Rust has no statements.
        in_block(text.parse().unwrap_or_default(), &mut found);
        violations.extend(found.into_iter().map(|(line, name)| {
            Violation::new(path, line, format!("`{name}` is bound twice in a row"))
        }));
    }
    violations
}

/// Adds line and name of each second binding in `tokens` and in the blocks below.
fn in_block(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut bound = None;
    for statement in tokens.split_inclusive(ends_statement) {
        let name = bound_name(statement);
        if name.is_some() && name == bound && !statement.iter().any(has_statements) {
            let line = statement[0].span().start().line;
            found.extend(name.clone().map(|name| (line, name)));
        }
        bound = name;
    }
    for token in tokens {
        if let TokenTree::Group(group) = token {
            in_block(group.stream(), found);
        }
    }
}

fn ends_statement(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';')
}

/// `x` of `let x = ...;`, `let mut x = ...;` and `let x: T = ...;`.
fn bound_name(statement: &[TokenTree]) -> Option<String> {
    let word = |at: usize| match statement.get(at)? {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    };
    let at = if word(1)? == "mut" { 2 } else { 1 };
    let after = statement.get(at + 1)?.to_string();
    let is_binding = word(0)? == "let" && (after == "=" || after == ":");
    word(at).filter(|name| is_binding && name != "_")
}

/// Whether a block of several statements is in `token`.
fn has_statements(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else {
        return false;
    };
    let mut inner = group.stream().into_iter();
    let is_block = group.delimiter() == Delimiter::Brace;
    inner.any(|token| is_block && ends_statement(&token) || has_statements(&token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(body: &str) -> Vec<String> {
        let text = format!("fn a() {{\n{body}\n}}");
        let found = check(&Tree::of(&[("crates/a/src/b.rs", &text)]));
        found.into_iter().map(|it| format!("{}: {}", it.line, it.text)).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_name_that_is_bound_twice_in_a_row_is_found() {
        for second in ["let x = x.b();", "let mut x = b(x);", "let x: u8 = x? as u8;"] {
            let body = format!("let x = a();\n{second}");
            assert_eq!(violations(&body), ["3: `x` is bound twice in a row"], "{second}");
        }
        let inner = "if b {\nlet x = a();\nlet x = x.c(|y| { y + 1 });\n}";
        assert_eq!(violations(inner), ["4: `x` is bound twice in a row"]);
    }

    #[test]
    fn other_bindings_pass() {
        for body in [
            "let x = a();\nlet y = x.b();\nlet x = y.c();",
            "let x = a();\nb(&x);\nlet x = x.c();",
            "let _ = a();\nlet _ = b();",
            "let x = a();\nlet x = { let y = b(); y + x };",
            "let x = a();\nlet Some(x) = x.b() else { return };",
            "{ let x = a(); }\nlet x = b();",
            "// let x = a();\n let x = \"let x = b(); let x = c();\";",
        ] {
            assert_eq!(violations(body), NONE, "{body}");
        }
    }
}
