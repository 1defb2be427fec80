//! Rule: only `undo` writes below /proc/sys and /sys.
//!
//! Which file a call writes cannot be read from the tree, so outside of `undo` every call that
//! opens a file for writing by its path is a violation, and each exception says what it writes.
//! What is reached through a held directory (`sys::directory`) is a file of a user, and swap areas
//! and mounts are not named here: `undo` has no kinds for them yet.

use super::file_by_path::CallRule;
use super::{Tree, Violation};

pub(super) const NAME: &str = "setting_writes";

/// The writer, and the crates that never run on a user's machine.
const ALLOWED: &[&str] = &["undo", "testkit", "xtask"];

/// What opens a file for writing by its path.
const CALLS: &[&str] = &[
    ".append(true)",
    ".write(true)",
    "File::create",
    "File::create_new",
    "O_RDWR",
    "O_WRONLY",
    "fs::write",
];

/// A file, a call in it, and what is written.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/lab/src/process.rs", "fs::write", GROUP),
    ("crates/measure/src/helper.rs", "fs::write", ITSELF),
    ("crates/measure/src/pressure/group.rs", "fs::write", GROUP),
    ("crates/record/src/capture/group.rs", "fs::write", GROUP),
    (
        "crates/sys/src/file/scratch.rs",
        ".write(true)",
        "a file that has no name, through /proc/self/fd",
    ),
    ("crates/sys/src/helper.rs", "fs::write", GROUP),
    ("crates/sys/src/perf/holder.rs", "O_WRONLY", GROUP),
    ("crates/sys/src/shared_memory.rs", "O_RDWR", "a file in memory that has no name"),
];

const GROUP: &str =
    "members and limits of a control group that this process made, or its own place";
const ITSELF: &str = "what the kernel kills first, of the process itself";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    check_with(tree, EXCEPTIONS)
}

fn check_with(tree: &Tree, exceptions: &[(&str, &str, &str)]) -> Vec<Violation> {
    let rule = CallRule {
        name: NAME,
        allowed: ALLOWED,
        calls: CALLS,
        advice: "outside of `undo`: use `undo` for a setting, or say here what it writes",
    };
    rule.check(tree, exceptions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(path: &str, text: &str, exceptions: &[(&str, &str, &str)]) -> Vec<String> {
        let found = check_with(&Tree::of(&[(path, text)]), exceptions);
        let line = |violation: Violation| format!("{}: {}", violation.line, violation.text);
        found.into_iter().map(line).collect()
    }

    #[test]
    fn only_undo_opens_for_writing() {
        for call in CALLS {
            let text = format!("\nfn a() {{ x {call}(\"/proc/sys/vm/swappiness\") }}");
            for file in ["crates/record/src/a.rs", "crates/sys/src/a.rs"] {
                let found = violations(file, &text, &[]);
                assert_eq!(found.len(), 1, "{call}: {found:?}");
                assert!(found[0].starts_with(&format!("2: `{call}`")), "{found:?}");
            }
            for allowed in ["crates/undo/src/a.rs", "crates/testkit/src/a.rs", "xtask/src/a.rs"] {
                assert!(violations(allowed, &text, &[]).is_empty(), "{allowed}");
            }
        }
        let harmless = "fn a() { File::open(path); options.write(false) } // fs::write\n\
                        #[cfg(test)]\nmod tests { fn a() { fs::write(a, b) } }";
        assert!(violations("crates/record/src/a.rs", harmless, &[]).is_empty());
    }

    #[test]
    fn an_exception_names_file_and_call_and_is_needed() {
        let file = "crates/record/src/capture/group.rs";
        let exceptions = [(file, "fs::write", "its own group")];
        assert!(violations(file, "fn a() { fs::write(p, t) }", &exceptions).is_empty());
        let found = violations(file, "fn a() { File::create(p) }", &exceptions);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].contains("is not needed"), "{found:?}");
    }
}
