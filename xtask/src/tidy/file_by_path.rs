//! Rule: outside of `sys` no file is opened, made, replaced or removed by its path.
//!
//! Terrace runs as root. In a directory that another user can change, a path leads wherever that
//! user wants. `sys::directory` opens what Terrace writes, `sys::file` what it only reads. The
//! exceptions are files of the kernel, which no user can exchange; an exception that is not needed
//! is a violation too.

use super::tree::crate_of;
use super::{Tree, Violation};
use crate::rust::words;

pub(super) const NAME: &str = "file_by_path";

/// The crates that may: the one that does it right, and those that never run on a user's machine.
const ALLOWED: &[&str] = &["sys", "testkit", "xtask"];

/// What takes a path and opens or changes what is there.
const CALLS: &[&str] = &[
    "DirBuilder",
    "File::create",
    "File::create_new",
    "File::open",
    "File::options",
    "OpenOptions",
    "chown",
    "create_dir",
    "create_dir_all",
    "fs::rename",
    "fs::write",
    "hard_link",
    "lchown",
    "remove_dir",
    "remove_dir_all",
    "remove_file",
    "set_permissions",
    "symlink",
];

/// A file, a call in it, and why no other user can exchange what it opens.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/machine/src/pagemap.rs", "File::open", PROC),
    ("crates/machine/src/root.rs", "File::open", PROC),
    ("crates/measure/src/helper.rs", "fs::write", PROC),
    ("crates/measure/src/pressure/group.rs", "create_dir", GROUP),
    ("crates/measure/src/pressure/group.rs", "fs::write", GROUP),
    ("crates/measure/src/pressure/group.rs", "remove_dir", GROUP),
    ("crates/place/src/workingset/targets.rs", "File::open", PROC),
    ("crates/record/src/capture/group.rs", "create_dir", GROUP),
    ("crates/record/src/capture/group.rs", "fs::write", GROUP),
    ("crates/record/src/capture/group.rs", "remove_dir", GROUP),
    ("crates/record/src/collect/tree/members.rs", "File::open", PROC),
    ("crates/record/src/collect/tree/process.rs", "File::open", PROC),
    ("crates/record/src/process_tree.rs", "File::open", PROC),
    ("crates/record/src/tasks/proc.rs", "File::open", PROC),
    ("crates/record/src/trace/stack/kept.rs", "File::open", PROC),
    ("crates/lab/src/process.rs", "fs::write", GROUP),
    (
        "crates/lab/src/process.rs",
        "remove_dir_all",
        "its own directory, in one that no other user can change; links are not followed",
    ),
    ("crates/undo/src/change.rs", "OpenOptions", SETTING),
];

const PROC: &str = "files of /proc, which only the kernel makes";
const GROUP: &str = "files of a control group: there are no links in their file system";
const SETTING: &str = "checked to be below /proc/sys or /sys, which only the kernel makes";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    check_with(tree, EXCEPTIONS)
}

fn check_with(tree: &Tree, exceptions: &[(&str, &str, &str)]) -> Vec<Violation> {
    let rule = CallRule {
        name: NAME,
        allowed: ALLOWED,
        calls: CALLS,
        advice: "by path: use `sys::directory` or `sys::file`",
    };
    rule.check(tree, exceptions)
}

/// A rule that permits certain calls in certain crates, and elsewhere only by exception.
pub(super) struct CallRule {
    pub(super) name: &'static str,
    /// The crates that may.
    pub(super) allowed: &'static [&'static str],
    pub(super) calls: &'static [&'static str],
    /// What follows the call in the text of a violation.
    pub(super) advice: &'static str,
}

impl CallRule {
    /// The violations in `tree`. An exception is a file, a call in it, and the reason; one that is
    /// not needed is a violation too.
    pub(super) fn check(&self, tree: &Tree, exceptions: &[(&str, &str, &str)]) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut used = vec![false; exceptions.len()];
        for (path, code) in tree.product() {
            if crate_of(path).is_none_or(|name| self.allowed.contains(&name)) {
                continue;
            }
            for call in self.calls {
                let excepted =
                    exceptions.iter().position(|(file, word, _)| (*file, *word) == (path, *call));
                for at in words::find(&code, call) {
                    let Some(index) = excepted else {
                        let line = words::line(&code, at);
                        let text = format!("`{call}` {}", self.advice);
                        violations.push(Violation::new(path, line, self.name, text));
                        continue;
                    };
                    used[index] = true;
                }
            }
        }
        let exists = |file: &str| tree.product().any(|(path, _)| path == file);
        let unused = exceptions.iter().zip(used).filter(|(_, used)| !used);
        for ((file, word, _), _) in unused.filter(|((file, _, _), _)| exists(file)) {
            let text = format!("the exception for `{word}` is not needed");
            violations.push(Violation::new(file, 1, self.name, text));
        }
        violations
    }
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
    fn a_path_is_opened_in_sys_only() {
        for call in CALLS {
            let text = format!("\nfn a() {{ std::{call}(path) }}");
            let found = violations("crates/record/src/ring.rs", &text, &[]);
            assert_eq!(
                found,
                [format!("2: `{call}` by path: use `sys::directory` or `sys::file`")]
            );
            for allowed in ["crates/sys/src/a.rs", "xtask/src/a.rs", "crates/record/tests/a.rs"] {
                assert!(violations(allowed, &text, &[]).is_empty(), "{allowed}");
            }
        }
        let text = "// File::open\nfn reopen() { directory.open_own(name) }\n\
                    #[cfg(test)]\nmod tests { fn a() { fs::write(a, b) } }";
        assert!(violations("crates/record/src/ring.rs", text, &[]).is_empty());
    }

    #[test]
    fn an_exception_names_file_and_call_and_is_needed() {
        let file = "crates/machine/src/root.rs";
        let exceptions = [(file, "File::open", "files of the kernel")];
        assert!(violations(file, "fn a() { File::open(p) }", &exceptions).is_empty());
        let found = violations(file, "fn a() { File::create(p) }", &exceptions);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].contains("is not needed"), "{found:?}");
    }
}
