//! A guest of `cargo xtask vm` as the suites run one: the measured program and the suite's scripts
//! go in, what the guest leaves in a folder comes out.

use std::fs;
use std::path::{Path, PathBuf};

use super::Session;
use crate::error::Error;
use crate::vm;

/// A machine, and what runs in it.
pub(super) struct GuestRun<'a> {
    /// `NAME:SIZE[,KEY=VALUE...]` each.
    pub(super) disks: &'a [&'a str],
    /// As `512M`.
    pub(super) memory: &'a str,
    pub(super) timeout_s: u64,
    pub(super) packages: &'a [&'a str],
    pub(super) modules: &'a [&'a str],
    /// Besides the measured one.
    pub(super) programs: &'a [&'a Path],
    /// Names and texts of the files in the directory where the command begins.
    pub(super) scripts: &'a [(&'a str, &'a str)],
    /// In the next boot, with the same disks.
    pub(super) then: Option<&'a str>,
    pub(super) command: &'a [&'a str],
}

/// The folder in which a guest leaves its files.
pub(super) fn out(session: &Session) -> PathBuf {
    session.directory.path().join("out")
}

/// Runs it, with an empty [`out`]. Paths of this machine are no part of the recorded command.
///
/// # Errors
/// When a file cannot be written, or the guest fails; what it left is there then too.
pub(super) fn run(session: &mut Session, guest: &GuestRun<'_>) -> Result<(), Error> {
    let (scripts, out) = (session.directory.path().join("scripts"), out(session));
    for folder in [&scripts, &out] {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
    }
    for (name, text) in guest.scripts {
        let path = scripts.join(name);
        fs::write(&path, text).map_err(Error::io("write", &path))?;
    }
    let words = words(session, guest, &scripts);
    let shown: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !word.contains('/')).collect();
    session.record.command(format!("cargo xtask vm {}", shown.join(" ")));
    match vm::run(&words) {
        0 => Ok(()),
        status => Err(Error::Failed(format!("the guest ended with {status}"))),
    }
}

fn words(session: &Session, guest: &GuestRun<'_>, scripts: &Path) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
    let options =
        [("--disk", guest.disks), ("--package", guest.packages), ("--module", guest.modules)];
    for (option, values) in options {
        values.iter().for_each(|value| add(option, value));
    }
    if let Some(then) = guest.then {
        add("--then", then);
    }
    add("--mem", guest.memory);
    add("--timeout", &guest.timeout_s.to_string());
    let measured = session.terrace.program.as_path();
    for program in [measured].into_iter().chain(guest.programs.iter().copied()) {
        add("--bin", &program.to_string_lossy());
    }
    if !guest.scripts.is_empty() {
        add("--dir", &scripts.to_string_lossy());
    }
    add("--out", &out(session).to_string_lossy());
    words.push("--".to_owned());
    words.extend(guest.command.iter().map(|word| (*word).to_owned()));
    words
}
