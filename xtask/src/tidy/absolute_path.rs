//! Rule: no text holds a path that exists only on one developer's machine.
//!
//! Home directories, what is in root's home, a work directory and named files in the temporary
//! directory are such paths. System paths are not, nor the bare temporary directory, nor a home
//! under a made-up name, which fake trees in tests need. A path below another one (`sys/root`) is
//! not absolute.

use super::{Tree, Violation};

/// Directories that belong to one machine as a whole.
const WHOLE: &[&str] = &["work", "workspace"];

/// Directories whose entries belong to one machine.
const ENTRIES: &[&str] = &["home", "root", "tmp", "Users"];

/// Made-up names that may stand below [`ENTRIES`].
const PLACEHOLDERS: &[&str] = &["alice", "ann", "bob", "me", "user", "x", "you"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.files() {
        for (at, _) in text.match_indices('/') {
            if let Some(found) = absolute(text, at) {
                let what = format!("{found} is a path of one machine");
                violations.push(Violation::at(path, text, at, what));
            }
        }
    }
    violations
}

/// The machine's own path whose first slash is at `at`, if it is one.
fn absolute(text: &str, at: usize) -> Option<&str> {
    let before = text[..at].chars().next_back();
    if before.is_some_and(continues_path) {
        return None;
    }
    let first = name(&text[at + 1..]);
    let end = at + 1 + first.len();
    if WHOLE.contains(&first) {
        return Some(&text[at..end]);
    }
    let entry = name(text[end..].strip_prefix('/')?);
    let is_own = ENTRIES.contains(&first) && !entry.is_empty() && !PLACEHOLDERS.contains(&entry);
    is_own.then(|| &text[at..end + 1 + entry.len()])
}

/// Whether a slash after `c` goes on with a path or an address instead of starting one.
fn continues_path(c: char) -> bool {
    c.is_alphanumeric() || "._-~/}>)*$".contains(c)
}

/// The name that `text` starts with; empty for a placeholder such as `<name>`, `$HOME` or `{user}`.
fn name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || "._-".contains(c)));
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(text: &str) -> usize {
        check(&Tree::of(&[("docs/a.md", text)])).len()
    }

    /// An absolute path of `parts`, put together here so that this file has none.
    fn path(parts: &[&str]) -> String {
        format!("/{}", parts.join("/"))
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for parts in [
            &["home", "jane", "terrace"] as &[&str],
            &["home", "jane"],
            &["root", "terrace"],
            &["work", "main"],
            &["tmp", "target-x"],
            &["Users", "jane"],
        ] {
            let path = path(parts);
            for text in
                [format!("see {path}"), format!("(\"{path}\")"), format!("a={path},"), path.clone()]
            {
                assert_eq!(violations(&text), 1, "{text}");
            }
        }
    }

    #[test]
    fn system_paths_placeholders_and_parts_of_paths_pass() {
        for text in [
            "/proc/self/root and /sys/work and {root}/work",
            "/dev/vda /etc/fstab /usr/sbin /run/x /var/tmp/x /",
            "the directory /tmp is a tmpfs, /home too, /root not",
            "/home/<name>, /home/$USER, /home/user/file, /tmp/{name}",
            "https://example.org/work and read/work, tests/root/x",
            "/rooted /worker /tmpfs/x",
        ] {
            assert_eq!(violations(text), 0, "{text}");
        }
    }
}
