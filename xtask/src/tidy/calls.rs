//! Two rules of one shape: calls that only certain crates may make, and elsewhere by exception.
//!
//! `file_by_path`: outside of `sys` no file is opened, made, replaced or removed by its path.
//! Terrace runs as root; in a directory that another user can change, a path leads wherever that
//! user wants.
//!
//! `setting_writes`: only `undo` writes below /proc/sys and /sys. Which file a call writes cannot
//! be read from the tree, so every call that opens a file for writing by its path counts. What is
//! reached through a held directory (`sys::directory`) is a file of a user.
//!
//! Each exception has its reason; one that is not needed is a violation too.

use super::tree::crate_of;
use super::{Tree, Violation};
use crate::rust::words;

/// A file, a call in it, and why it may be made there.
type Exception = (&'static str, &'static str, &'static str);

struct CallRule {
    /// The crates that may.
    allowed: &'static [&'static str],
    calls: &'static [&'static str],
    /// What follows the call in the text of a violation.
    advice: &'static str,
    exceptions: &'static [Exception],
}

/// `sys` does it right, the others never run on a user's machine.
const FILE_BY_PATH: CallRule = CallRule {
    allowed: &["sys", "testkit", "xtask"],
    calls: &[
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
    ],
    advice: "by path: use `sys::directory` or `sys::file`",
    exceptions: &[
        ("crates/lab/src/process.rs", "fs::write", GROUP),
        ("crates/lab/src/process.rs", "remove_dir_all", LAB),
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
        ("crates/undo/src/change.rs", "OpenOptions", SETTING),
        ("crates/undo/src/zram.rs", "fs::write", SETTING),
    ],
};

const PROC: &str = "files of /proc, which only the kernel makes";
const GROUP: &str = "files of a control group: no links in their file system, and no settings";
const LAB: &str = "its own directory, in one that no other user can change; links are not followed";
const SETTING: &str = "checked to be below /proc/sys or /sys, which only the kernel makes";

/// The writer, and the crates that never run on a user's machine. Swap areas and mounts are not
/// among the calls: `undo` has no kinds for them yet.
const SETTING_WRITES: CallRule = CallRule {
    allowed: &["testkit", "undo", "xtask"],
    calls: &[
        ".append(true)",
        ".write(true)",
        "File::create",
        "File::create_new",
        "O_RDWR",
        "O_WRONLY",
        "OFlags::RDWR",
        "OFlags::WRONLY",
        "fs::write",
    ],
    advice: "outside of `undo`: use `undo` for a setting, or say here what it writes",
    exceptions: &[
        ("crates/lab/src/process.rs", "fs::write", GROUP),
        ("crates/measure/src/helper.rs", "fs::write", ITSELF),
        ("crates/measure/src/pressure/group.rs", "fs::write", GROUP),
        ("crates/record/src/capture/group.rs", "fs::write", GROUP),
        ("crates/sys/src/block.rs", ".write(true)", DAMAGED),
        ("crates/sys/src/directory.rs", "OFlags::RDWR", HELD),
        ("crates/sys/src/directory/found.rs", "OFlags::RDWR", HELD),
        ("crates/sys/src/file/scratch.rs", ".write(true)", NAMELESS),
        ("crates/sys/src/fuse_device.rs", ".write(true)", FUSE),
        ("crates/sys/src/helper.rs", "fs::write", GROUP),
        ("crates/sys/src/perf/holder.rs", "O_WRONLY", GROUP),
        ("crates/sys/src/shared_memory.rs", "OFlags::RDWR", NAMELESS),
    ],
};

const ITSELF: &str = "what the kernel kills first, of the process itself";
const DAMAGED: &str = "what an own write replaced on a disk that lies about its size";
const FUSE: &str = "/dev/fuse: answers to requests of the kernel";
const HELD: &str = "a file below a held directory, which callers choose";
const NAMELESS: &str = "a file without a name, through its descriptor or in memory";

pub(super) fn file_by_path(tree: &Tree) -> Vec<Violation> {
    FILE_BY_PATH.check(tree)
}

pub(super) fn setting_writes(tree: &Tree) -> Vec<Violation> {
    SETTING_WRITES.check(tree)
}

impl CallRule {
    fn check(&self, tree: &Tree) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut unused: Vec<&Exception> = self.exceptions.iter().collect();
        for (path, code) in tree.product() {
            if crate_of(path).is_none_or(|name| self.allowed.contains(&name)) {
                continue;
            }
            for call in self.calls {
                let mut found = words::find(&code, call).peekable();
                let is_it = |(file, word, _): &Exception| (*file, *word) == (path, *call);
                if found.peek().is_some() && self.exceptions.iter().any(is_it) {
                    unused.retain(|exception| !is_it(exception));
                    continue;
                }
                let text = format!("`{call}` {}", self.advice);
                violations.extend(found.map(|at| Violation::at(path, &code, at, text.as_str())));
            }
        }
        let exists = |file: &str| tree.product().any(|(path, _)| path == file);
        violations.extend(unused.iter().filter(|(file, _, _)| exists(file)).map(
            |(file, word, _)| {
                Violation::new(file, 1, format!("the exception for `{word}` is not needed"))
            },
        ));
        violations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(rule: &CallRule, path: &str, text: &str) -> Vec<String> {
        let found = rule.check(&Tree::of(&[(path, text)]));
        let line = |violation: Violation| format!("{}: {}", violation.line, violation.text);
        found.into_iter().map(line).collect()
    }

    #[test]
    fn a_call_is_for_the_crates_that_may() {
        for rule in [FILE_BY_PATH, SETTING_WRITES] {
            for call in rule.calls {
                let text = format!("\nfn a() {{ x {call}(\"/proc/sys/vm/swappiness\") }}");
                let found = violations(&rule, "crates/record/src/a.rs", &text);
                assert_eq!(found, [format!("2: `{call}` {}", rule.advice)]);
                let allowed = rule.allowed.iter().map(|name| format!("crates/{name}/src/a.rs"));
                for path in allowed.chain(["crates/record/tests/a.rs".to_owned()]) {
                    assert!(violations(&rule, &path, &text).is_empty(), "{path}");
                }
            }
        }
        let text = "// fs::write\nfn reopen() { directory.open_own(name); options.write(false) }\n\
                    #[cfg(test)]\nmod tests { fn a() { fs::write(a, b) } }";
        for rule in [FILE_BY_PATH, SETTING_WRITES] {
            assert!(violations(&rule, "crates/record/src/a.rs", text).is_empty());
        }
        assert_eq!(
            violations(&SETTING_WRITES, "crates/sys/src/a.rs", "fn a() { O_RDWR }").len(),
            1
        );
    }

    #[test]
    fn an_exception_names_file_and_call_and_is_needed() {
        let file = "crates/machine/src/root.rs";
        let exceptions = &[("crates/machine/src/root.rs", "File::open", "files of the kernel")];
        let rule = CallRule { exceptions, ..FILE_BY_PATH };
        assert!(violations(&rule, file, "fn a() { File::open(p) }").is_empty());
        let found = violations(&rule, file, "fn a() { File::create(p) }");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].contains("is not needed"), "{found:?}");
    }
}
