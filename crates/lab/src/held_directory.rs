//! A directory of an experiment that is removed with all that is in it when the experiment ends,
//! however it ends: a process of its own makes it, keeps it and waits for the end of its input.

use crate::{Error, Host, Result};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The directory and the process that keeps it; removed on drop.
#[derive(Debug)]
pub struct HeldDirectory {
    keeper: Child,
    path: PathBuf,
}

impl HeldDirectory {
    /// A directory below `above`, whose name has `purpose` in it.
    ///
    /// # Errors
    /// `Impossible` where it cannot be made.
    pub fn make(host: &Host, above: &Path, purpose: &str) -> Result<Self> {
        let above =
            above.canonicalize().map_err(|error| Error::impossible(sys::plain_reason(&error)))?;
        let path = above.join(format!("terrace-lab-{}-{purpose}", std::process::id()));
        let (keeper, answer) = start_keeper(host, ["directory".into(), path.clone().into()])?;
        // From here on `Drop` ends it.
        let made = Self { keeper, path };
        answer.map_err(|why| {
            Error::impossible(format!("cannot have a directory in {}: {why}", above.display()))
        })?;
        Ok(made)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for HeldDirectory {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Starts a helper process that says "ready" and then waits for the end of its input; its
/// complaint, if it did not say so.
pub(crate) fn start_keeper(
    host: &Host,
    words: impl IntoIterator<Item = OsString>,
) -> Result<(Child, std::result::Result<(), String>)> {
    let mut line = host.programs.lab.command_line();
    line.extend(words);
    let mut keeper = Command::new(&line[0])
        .args(&line[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C is the lab's to hear.
        .process_group(0)
        .spawn()
        .map_err(|error| Error::impossible(sys::plain_reason(&error)))?;
    let mut said = String::new();
    if let Some(output) = keeper.stdout.take() {
        let _ = BufReader::new(output).read_line(&mut said);
    }
    let answer = if said == "ready\n" { Ok(()) } else { Err(complaint(&mut keeper)) };
    Ok((keeper, answer))
}

/// The first line that it complained in.
pub(crate) fn complaint(keeper: &mut Child) -> String {
    let mut text = String::new();
    if let Some(errors) = keeper.stderr.take() {
        let _ = errors.take(4096).read_to_string(&mut text);
    }
    let line = text.lines().next().unwrap_or("it ended without a word");
    line.trim_start_matches("terrace: lab-process: ").to_owned()
}
