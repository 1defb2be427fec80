//! What `terrace --version` says: version, commit, target, and which recorders are built in.
//!
//! The commit is the one that `cargo xtask dist` sets, or that of an archive of `git archive`, so
//! that no build needs git. A build of a working tree names none: its files may be of no commit.

use std::sync::LazyLock;

/// Set by `cargo xtask dist` for its builds.
const BUILT_COMMIT: Option<&str> = option_env!("TERRACE_COMMIT");

/// A commit if `git archive` wrote this tree, else what it replaces.
const ARCHIVED_COMMIT: &str = include_str!("../commit.txt");

/// The C library that is linked.
const ENVIRONMENT: &str = if cfg!(target_env = "gnu") {
    "gnu"
} else if cfg!(target_env = "musl") {
    "musl"
} else {
    "other"
};

/// The text after the name of the program.
pub(super) static LONG: LazyLock<String> = LazyLock::new(|| long(BUILT_COMMIT, ARCHIVED_COMMIT));

fn long(built: Option<&str>, archived: &str) -> String {
    // Its time follows.
    let archived = archived.split_whitespace().next().unwrap_or_default();
    let is_commit = archived.len() >= 40 && archived.bytes().all(|byte| byte.is_ascii_hexdigit());
    let commit = match built {
        Some(commit) => commit,
        None if is_commit => archived,
        None => "not recorded: built from a working tree",
    };
    let (version, architecture) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let recorders = record::RECORDERS.join(", ");
    format!(
        "{version}\n\
         commit     {commit}\n\
         target     {architecture}-unknown-linux-{ENVIRONMENT}\n\
         recorders  {recorders}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_that_of_the_build_or_of_the_archive() {
        let archived = "0123456789abcdef0123456789abcdef01234567 1700000000\n";
        let commit = |built, archived| {
            let text = long(built, archived);
            let line = text.lines().find_map(|line| line.strip_prefix("commit "));
            line.map(|commit| commit.trim().to_owned()).unwrap()
        };
        assert_eq!(commit(Some("abc, changed since"), archived), "abc, changed since");
        assert_eq!(commit(None, archived), &archived[..40]);
        assert!(commit(None, "$Format:%H %ct$").starts_with("not recorded"));
    }
}
