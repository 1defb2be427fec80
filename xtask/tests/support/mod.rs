//! What the tests of guests and of power cuts share: the program that they run, a guest that runs
//! scripts, and what scripts say. The program is built by cargo, which knows whether it is new.

#![allow(clippy::unwrap_used, reason = "a helper of tests")]
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use testkit::TempDir;

/// What scripts say, by name.
pub struct Found(pub BTreeMap<String, String>);

impl Found {
    #[track_caller]
    pub fn is(&self, name: &str, value: &str) {
        assert_eq!(self.0.get(name).map(String::as_str), Some(value), "{name}: {:#?}", self.0);
    }

    #[track_caller]
    pub fn number(&self, name: &str) -> f64 {
        let value = self.0.get(name).and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("{name}: {:#?}", self.0))
    }

    #[track_caller]
    pub fn is_above(&self, name: &str, least: f64) {
        assert!(self.number(name) > least, "{name} is not above {least}: {:#?}", self.0);
    }
}

/// Runs `cargo xtask vm` with these words, the tool, and `files` where the command starts; what the
/// scripts say, and the standard error. All boots must succeed.
pub fn run_guest(files: &[(&str, &str)], words: &[impl AsRef<OsStr>]) -> (Found, String) {
    let (work, folder) = (TempDir::new(), TempDir::new());
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("vm").env("TMPDIR", work.path());
    command.arg("--bin").arg(program()).arg("--dir").arg(folder.path()).args(words);
    let run = command.output().unwrap();
    let [output, complained] = [run.stdout, run.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(run.status.code(), Some(0), "{output}{complained}");
    (Found(said(&output)), complained)
}

/// For scripts: a wait with an end.
pub const UNTIL: (&str, &str) = ("until.sh", include_str!("until.sh"));

/// The tool, as the tests' own profile has it: cargo knows whether it is new.
pub fn program() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--message-format=json", "-p", "terrace", "--bin", "terrace"]);
    let built = cargo.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let output = String::from_utf8(built.stdout).unwrap();
    let messages = output.lines().map(serde_json::from_str::<serde_json::Value>);
    let found = messages.flatten().find_map(|it| it["executable"].as_str().map(PathBuf::from));
    found.unwrap()
}

/// What a script says in lines `NAME VALUE`, by name; the values of a name that comes again follow
/// each other.
pub fn said(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::<String, String>::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once(' ')) {
        let all = found.entry(name.to_owned()).or_default();
        all.push_str(if all.is_empty() { "" } else { " " });
        all.push_str(value.trim());
    }
    found
}

/// Lines `NAME NUMBER`; others are left out, and of a name the last one counts.
pub fn counted(text: &str) -> BTreeMap<String, f64> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    let numbers = pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
    numbers.collect()
}
