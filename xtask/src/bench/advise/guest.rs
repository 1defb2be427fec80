//! The scripts of this suite in a guest (`guest/`), and the figures that they leave: lines
//! `NAME VALUE` in `out/results`.

use std::collections::BTreeMap;
use std::fs;

use crate::bench::Session;
use crate::bench::guest::{self, GuestRun};
use crate::bench::report::malformed;
use crate::error::Error;

const TIMEOUT_S: u64 = 900;

const SCRIPTS: [(&str, &str); 5] = [
    ("lib.sh", include_str!("guest/lib.sh")),
    ("build.sh", include_str!("guest/build.sh")),
    ("memory.sh", include_str!("guest/memory.sh")),
    ("set.py", include_str!("guest/set.py")),
    ("flash.sh", include_str!("guest/flash.sh")),
];

/// A machine, and the script that runs in it.
pub(super) struct ScriptRun<'a> {
    /// In words.
    pub(super) what: &'a str,
    pub(super) memory: &'a str,
    /// `NAME:SIZE[,KEY=VALUE...]` each.
    pub(super) disks: &'a [&'a str],
    pub(super) packages: &'a [&'a str],
    pub(super) modules: &'a [&'a str],
    /// The script and its words.
    pub(super) command: &'a [&'a str],
}

/// What the guest counted, by name.
pub(super) struct Counts(BTreeMap<String, f64>);

/// Runs it; what it left is in [`guest::out`] then.
pub(super) fn boot(session: &mut Session, run: &ScriptRun<'_>) -> Result<(), Error> {
    eprintln!("{}: {}, {}", run.what, run.command[0], run.memory);
    let command = [&["bash"], run.command].concat();
    let machine = GuestRun {
        disks: run.disks,
        memory: run.memory,
        timeout_s: TIMEOUT_S,
        packages: run.packages,
        modules: run.modules,
        programs: &[],
        scripts: &SCRIPTS,
        then: None,
        command: &command,
    };
    guest::run(session, &machine)
}

/// As [`boot`], of a script that counts; its counts.
pub(super) fn counted(session: &mut Session, run: &ScriptRun<'_>) -> Result<Counts, Error> {
    boot(session, run)?;
    let results = guest::out(session).join("results");
    Counts::read(&fs::read_to_string(&results).map_err(Error::io("read", &results))?)
}

impl Counts {
    fn read(text: &str) -> Result<Self, Error> {
        let pair = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let all = text.lines().map(|line| pair(line).ok_or_else(|| malformed(line.to_owned())));
        all.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn get(&self, name: &str) -> Result<f64, Error> {
        self.0.get(name).copied().ok_or_else(|| malformed(format!("no {name} of the guest")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_guest_are_counts() {
        let counts = Counts::read("pswpin 3\nup_us 2.5\n").unwrap();
        assert_eq!(counts.get("up_us").unwrap(), 2.5);
        assert!(counts.get("x").is_err());
        assert!(Counts::read("pswpin\n").is_err());
    }
}
