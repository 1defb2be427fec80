//! The commands of the tour and of the pages that answer questions, run as they stand there: each
//! block marked `sh`, in order, by a shell that stops at the first that fails.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::TempDir;

const DOCUMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

/// The blocks of a page, one after another.
fn blocks(page: &str) -> String {
    let text = fs::read_to_string(Path::new(DOCUMENTS).join(page)).unwrap();
    let mut script = String::new();
    let mut is_inside = false;
    for line in text.lines() {
        match line {
            "```sh" => is_inside = true,
            "```" => is_inside = false,
            _ if is_inside => script.extend([line, "\n"]),
            _ => {}
        }
    }
    assert!(script.contains("terrace "), "{page} has no command");
    script
}

/// Runs what a page says, in a directory of its own where `docs` is.
fn run(page: &str) {
    if !testkit::is_root() {
        return testkit::skip("root");
    }
    let directory = TempDir::new();
    symlink(DOCUMENTS, directory.join("docs")).unwrap();
    let programs = Path::new(support::TERRACE).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = testkit::with_default_signals("bash");
    command.args(["-eu", "-c", &blocks(page)]).current_dir(directory.path());
    command.env("PATH", path).env("XDG_STATE_HOME", directory.path()).stdin(Stdio::null());
    // A file: a server that the page starts would hold a pipe open.
    let (out, err) = (directory.join("out"), directory.join("err"));
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let status = command.status().unwrap();
    let said = fs::read_to_string(&err).unwrap();
    assert!(status.success(), "{page}: {status}\n{said}");
}

#[test]
fn a_slow_database_in_a_container() {
    if !Path::new("/usr/lib/postgresql").exists() {
        return testkit::skip("PostgreSQL");
    }
    /// Whatever failed, nothing of it stays.
    struct Stop;
    impl Drop for Stop {
        fn drop(&mut self) {
            let script = Path::new(DOCUMENTS).join("tour/database.sh");
            let stop =
                Command::new("sh").arg(script).args(["stop", "/var/lib/terrace-tour"]).output();
            assert!(stop.is_ok());
        }
    }
    let _stop = Stop;
    run("tour.md");
    assert!(!Path::new("/var/lib/terrace-tour").exists());
}

#[test]
fn is_it_the_disk_or_the_memory() {
    run("how-to/disk-or-memory.md");
}

#[test]
fn would_more_memory_help() {
    run("how-to/more-memory.md");
}

#[test]
fn what_stopped_it() {
    run("how-to/what-stopped-it.md");
}

#[test]
fn is_b_faster_than_a() {
    run("how-to/is-b-faster.md");
}

#[test]
fn what_a_cloud_volume_gives() {
    run("how-to/cloud-volume.md");
}
