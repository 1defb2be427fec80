//! A guest of `cargo xtask vm` with the scripts of this suite (`guest/`), and the figures that it
//! leaves: lines `NAME VALUE` in `out/results`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::bench::Session;
use crate::bench::report::malformed;
use crate::error::Error;
use crate::vm;

const TIMEOUT_S: &str = "900";

const SCRIPTS: [(&str, &str); 5] = [
    ("lib.sh", include_str!("guest/lib.sh")),
    ("build.sh", include_str!("guest/build.sh")),
    ("memory.sh", include_str!("guest/memory.sh")),
    ("set.py", include_str!("guest/set.py")),
    ("flash.sh", include_str!("guest/flash.sh")),
];

/// A machine, and the script that runs in it.
pub(super) struct GuestRun<'a> {
    /// In words.
    pub(super) what: &'a str,
    pub(super) memory: &'a str,
    /// `NAME:SIZE[,KEY=VALUE...]` each.
    pub(super) disks: &'a [String],
    pub(super) packages: &'a [&'a str],
    pub(super) modules: &'a [&'a str],
    /// The script and its words.
    pub(super) command: &'a [&'a str],
}

/// What the guest counted, by name.
pub(super) struct Counts(BTreeMap<String, f64>);

/// Runs it; what it left is in `out` of the suite's directory then.
pub(super) fn boot(session: &mut Session, run: &GuestRun<'_>) -> Result<Counts, Error> {
    let (scripts, out) = (session.directory.file("scripts"), session.directory.file("out"));
    for folder in [&scripts, &out] {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(Error::io("make", Path::new(folder)))?;
    }
    for (name, text) in SCRIPTS {
        let path = format!("{scripts}/{name}");
        fs::write(&path, text).map_err(Error::io("write", Path::new(&path)))?;
    }
    let mut words = Vec::new();
    let mut add = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
    run.disks.iter().for_each(|disk| add("--disk", disk));
    run.packages.iter().for_each(|package| add("--package", package));
    run.modules.iter().for_each(|module| add("--module", module));
    add("--mem", run.memory);
    add("--timeout", TIMEOUT_S);
    add("--bin", &session.terrace.program.to_string_lossy());
    add("--dir", &scripts);
    add("--out", &out);
    words.extend(["--", "bash"].map(str::to_owned));
    words.extend(run.command.iter().map(|word| (*word).to_owned()));
    let shown: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !word.contains('/')).collect();
    session.record.command(format!("cargo xtask vm {}", shown.join(" ")));
    eprintln!("{}: {}, {}", run.what, run.command[0], run.memory);
    match vm::run(&words) {
        0 => Counts::read(&fs::read_to_string(format!("{out}/results")).unwrap_or_default()),
        status => Err(Error::Failed(format!("the guest ended with {status}"))),
    }
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
