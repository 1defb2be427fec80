//! The commit that is built, and its time: from git, or from an archive that `git archive` made.
//!
//! Every archive and package has this time in place of that of the build, so that the same
//! commit gives the same bytes. `SOURCE_DATE_EPOCH` goes before it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::error::Error;
use crate::process;

/// What `git archive` writes the commit and its time into.
const ARCHIVED: &str = "crates/terrace/src/commit.txt";

const GIT_LIMIT: Duration = Duration::from_secs(60);

/// What is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The commit; with words after it if files were changed since.
    pub(super) commit: String,
    /// The time of the commit.
    pub(super) epoch_s: u64,
}

impl Source {
    /// Of the tree at `root`.
    ///
    /// # Errors
    /// If neither git nor an archive says which commit it is of.
    pub(super) fn of(root: &Path) -> Result<Self, Error> {
        let fixed = std::env::var("SOURCE_DATE_EPOCH").ok();
        let source = match of_git(root) {
            Some(source) => source,
            None => {
                let path = root.join(ARCHIVED);
                let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
                archived(&text).ok_or_else(|| {
                    let text = "neither git nor an archive of `git archive` says which commit \
                                this is";
                    Error::Failed(text.to_owned())
                })?
            }
        };
        let Some(fixed) = fixed else { return Ok(source) };
        let wrong = |_| Error::Usage(format!("SOURCE_DATE_EPOCH is not a number: {fixed}"));
        Ok(Self { epoch_s: fixed.parse().map_err(wrong)?, ..source })
    }
}

fn of_git(root: &Path) -> Option<Source> {
    let said = git(root, &["show", "-s", "--format=%H %ct", "HEAD"])?;
    let source = archived(&said)?;
    let is_changed = !git(root, &["status", "--porcelain"])?.trim().is_empty();
    let commit =
        if is_changed { format!("{}, changed since", source.commit) } else { source.commit };
    Some(Source { commit, ..source })
}

fn git(root: &Path, words: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.current_dir(root).args(words);
    Some(process::run(command, GIT_LIMIT).ok()?.success().ok()?.stdout)
}

/// `COMMIT SECONDS`.
fn archived(text: &str) -> Option<Source> {
    let (commit, time) = text.trim().split_once(' ')?;
    let is_commit = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let epoch_s = time.parse().ok()?;
    is_commit.then(|| Source { commit: commit.to_owned(), epoch_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_says_its_commit_and_a_tree_does_not() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let source = archived(&format!("{commit} 1700000000\n")).unwrap();
        assert_eq!(source, Source { commit: commit.to_owned(), epoch_s: 1_700_000_000 });
        assert_eq!(archived("$Format:%H %ct$"), None);
        let kept = fs::read_to_string(crate::workspace::current_root().unwrap().join(ARCHIVED));
        assert_eq!(kept.unwrap(), "$Format:%H %ct$");
    }
}
