//! What the tests of guests and of power cuts share: the program that they run.
//! It is built by cargo, which knows whether it is new.

#![allow(clippy::unwrap_used, reason = "a helper of tests")]

use std::path::PathBuf;
use std::process::Command;

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
