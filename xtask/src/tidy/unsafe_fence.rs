//! Rule: `unsafe` stands only in `sys` and `memops`, and there each use carries its argument.
//!
//! A block or an `impl` has a `// SAFETY:` comment directly above its statement or at the top of the
//! block; a function or trait has one too, or documentation that says `# Safety` or `Caller guarantees`.
//! Whether the argument is true is for review. Types (`unsafe fn(u8)`) promise nothing and need none.

use super::tree::crate_of;
use super::{Tree, Violation};
use crate::rust::{Layers, words};

pub(super) const NAME: &str = "unsafe_fence";

const FENCED: &[&str] = &["memops", "sys"];

/// Shorter than this, nobody was named who guarantees anything.
const ARGUMENT_CHARS_MIN: usize = 20;

const MARK: &str = "SAFETY:";

/// What opens the contract of a function or trait in its documentation.
const CONTRACTS: &[&str] = &["# Safety", "Caller guarantees"];

const CLAIM_WANTED: &str = "`// SAFETY:` and 20 characters or more, directly above";

const CONTRACT_WANTED: &str = "`# Safety` or `Caller guarantees` in its documentation";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, layers) in tree.sources() {
        let fenced = crate_of(path).is_some_and(|name| FENCED.contains(&name));
        let lines = Lines::of(layers);
        for at in words::find(&layers.code, "unsafe") {
            let text = if fenced {
                unargued(layers, &lines, at)
            } else {
                Some(format!("`unsafe` outside of {}", FENCED.join(" and ")))
            };
            if let Some(text) = text {
                let line = words::line(&layers.code, at);
                violations.push(Violation::new(path, line, NAME, text));
            }
        }
    }
    violations
}

/// What kind of argument a use of `unsafe` needs.
enum Use {
    /// A block, an `impl`, an `extern` block, an attribute: the writer argues.
    Claim(&'static str),
    /// A function or trait: the documentation says what the caller guarantees.
    Contract(&'static str),
    /// A function type; or `unsafe(naked)`, which only says that the function's body is assembly.
    Nothing,
}

/// What is missing at the `unsafe` at `at`, if anything is.
fn unargued(layers: &Layers, lines: &Lines<'_>, at: usize) -> Option<String> {
    let line = words::line(&layers.code, at) - 1;
    let (what, wanted, argued) = match usage(&layers.code[at + "unsafe".len()..]) {
        Use::Nothing => return None,
        Use::Claim(what) => {
            let inside = lines.comment_within(line, layers.code[at..].lines().next());
            let above =
                starts(&layers.code, at).any(|line| is_argument(&lines.comment_above(line)));
            (what, CLAIM_WANTED, above || is_argument(&inside))
        }
        Use::Contract(what) => {
            let above = lines.comment_above(line);
            let is_documented = CONTRACTS.iter().any(|opening| above.contains(opening));
            (what, CONTRACT_WANTED, is_argument(&above) || is_documented)
        }
    };
    (!argued).then(|| format!("{what} without its argument: {wanted}"))
}

/// Which use of `unsafe` the code after it makes.
fn usage(after: &str) -> Use {
    let mut rest = after.trim_start();
    let is_extern = words::identifier(rest) == "extern";
    if is_extern {
        // The ABI's name is blank in this layer, its quotes are not.
        let skipped = |c: char| c.is_whitespace() || c == '"';
        rest = rest["extern".len()..].trim_start_matches(skipped);
    }
    match words::identifier(rest) {
        "fn" if rest["fn".len()..].trim_start().starts_with('(') => Use::Nothing,
        "fn" => Use::Contract("`unsafe fn`"),
        "trait" => Use::Contract("`unsafe trait`"),
        "impl" => Use::Claim("`unsafe impl`"),
        _ if is_extern => Use::Claim("`unsafe extern` block"),
        _ if rest.starts_with("(naked)") => Use::Nothing,
        _ if rest.starts_with('(') => Use::Claim("`unsafe` attribute"),
        _ => Use::Claim("`unsafe` block"),
    }
}

/// The lines (from 0) where what holds the code at `at` may start: its own, and those of the calls
/// whose arguments it is part of, up to the block that it is in.
fn starts(code: &str, at: usize) -> impl Iterator<Item = usize> {
    let mut depth = 0_usize;
    let mut starts = vec![words::line(code, at) - 1];
    for (before, byte) in code.bytes().enumerate().take(at).rev() {
        match byte {
            b')' | b']' | b'}' => depth += 1,
            b'(' | b'[' if depth == 0 => starts.push(words::line(code, before) - 1),
            b'{' if depth == 0 => break,
            b'(' | b'[' | b'{' => depth -= 1,
            _ => {}
        }
    }
    starts.into_iter()
}

fn is_argument(comment: &str) -> bool {
    comment
        .split_once(MARK)
        .is_some_and(|(_, argument)| argument.trim().chars().count() >= ARGUMENT_CHARS_MIN)
}

/// The code and the comments of a file, line by line.
struct Lines<'a> {
    code: Vec<&'a str>,
    comments: Vec<&'a str>,
}

impl<'a> Lines<'a> {
    fn of(layers: &'a Layers) -> Self {
        Self {
            code: layers.code.lines().map(str::trim).collect(),
            comments: layers.comments.lines().map(str::trim).collect(),
        }
    }

    /// The comment lines directly above the statement that line `line` (from 0) is part of.
    fn comment_above(&self, line: usize) -> String {
        let mut at = line;
        while at > 0 && self.belongs_below(at - 1) {
            at -= 1;
        }
        let mut first = at;
        while first > 0 && self.is_comment(first - 1) {
            first -= 1;
        }
        self.comments[first..at].join("\n")
    }

    /// The comment at the top of the block that opens on line `line`, whose code from the keyword on is
    /// `opening`; empty when more than the brace stands there.
    fn comment_within(&self, line: usize, opening: Option<&str>) -> String {
        let opens = opening.is_some_and(|code| code.trim_end().ends_with('{'));
        if !opens {
            return String::new();
        }
        let below = (line + 1..self.code.len()).take_while(|at| self.is_comment(*at));
        below
            .map(|at| self.comments[at])
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn is_comment(&self, at: usize) -> bool {
        self.code[at].is_empty() && !self.comments[at].is_empty()
    }

    /// Whether line `at` is an attribute of, or the unfinished start of, the statement below it.
    fn belongs_below(&self, at: usize) -> bool {
        let code = self.code[at];
        let finished = code.ends_with([';', '{', '}', ',']);
        code.starts_with("#[") || (!code.is_empty() && !finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(path: &str, text: &str) -> Vec<Violation> {
        check(&Tree::of(&[(path, text)]))
    }

    fn sys(text: &str) -> usize {
        violations("crates/sys/src/a.rs", text).len()
    }

    #[test]
    fn unsafe_outside_of_the_fence_is_found_however_well_argued() {
        let text = "// SAFETY: the pointer is valid for the whole call.\nunsafe { a() }";
        for path in [
            "crates/measure/src/a.rs",
            "crates/measure/tests/a.rs",
            "xtask/src/a.rs",
        ] {
            let found = violations(path, text);
            assert_eq!((found.len(), found[0].line), (1, 2), "{path}");
        }
        assert_eq!(
            violations(
                "crates/model/src/a.rs",
                "// unsafe\nlet a = \"unsafe\"; unsafe_a();"
            ),
            []
        );
    }

    #[test]
    fn a_block_needs_an_argument_of_some_length() {
        assert_eq!(sys("fn a() {\n    unsafe { b() }\n}"), 1);
        assert_eq!(sys("// SAFETY: trust me.\nunsafe { b() }"), 1);
        assert_eq!(
            sys("// it is all fine here, really it is\nunsafe { b() }"),
            1
        );
        assert_eq!(
            sys("// SAFETY: `b` takes no pointer at all.\nunsafe { b() }"),
            0
        );
    }

    #[test]
    fn the_argument_is_directly_above_the_statement_or_inside() {
        let argument = "// SAFETY: the caller owns the buffer.";
        assert_eq!(
            sys(&format!("{argument}\nlet a =\n    unsafe {{ b() }};")),
            0
        );
        assert_eq!(
            sys(&format!(
                "{argument}\n#[inline]\nunsafe impl Send for A {{}}"
            )),
            0
        );
        assert_eq!(sys(&format!("unsafe {{\n    {argument}\n    b()\n}}")), 0);
        let call = "count(\n    OPERATION,\n    || unsafe { b() },\n)";
        assert_eq!(sys(&format!("{argument}\n{call}")), 0);
        assert_eq!(sys(&format!("{argument}\nif a(c) {{\n    {call}\n}}")), 1);
        assert_eq!(sys(&format!("{argument}\n\nunsafe {{ b() }}")), 1);
        assert_eq!(sys(&format!("{argument}\nlet c = 1;\nunsafe {{ b() }}")), 1);
        assert_eq!(sys(&format!("unsafe {{ b() }}\n{argument}")), 1);
    }

    #[test]
    fn a_function_or_trait_documents_its_contract() {
        assert_eq!(sys("unsafe fn a() {}"), 1);
        assert_eq!(
            sys("/// A.\n///\n/// # Safety\n/// `p` is valid.\n#[inline]\npub unsafe fn a() {}"),
            0
        );
        assert_eq!(
            sys("/// Caller guarantees: `p` is valid.\n#[unsafe(naked)]\nunsafe fn a() {}"),
            0
        );
        assert_eq!(sys("/// A.\n#[unsafe(naked)]\nunsafe fn a() {}"), 1);
        assert_eq!(sys("unsafe trait A {}"), 1);
        assert_eq!(sys("unsafe extern \"C\" fn a() {}"), 1);
    }

    #[test]
    fn types_need_no_argument_and_foreign_blocks_do() {
        assert_eq!(
            sys("type F = unsafe fn(u8); type G = unsafe extern \"C\" fn(u8);"),
            0
        );
        assert_eq!(sys("unsafe extern \"C\" { fn memcpy(); }"), 1);
        assert_eq!(sys("#[unsafe(no_mangle)]\nfn a() {}"), 1);
    }
}
