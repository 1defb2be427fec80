//! `terrace export`: CSV and JSON of a recording, redacted unless that is switched off.
//! What stands in the columns is tested beside the exporter.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use support::{closed_pipe, run, run_command, terrace};
use testkit::{Cgroup, LoopDevice, TempDir, Tmpfs};

/// A word of the recorded command line that no other user should read.
const SECRET: &str = "xyzzy-secret-word";

fn recorded(directory: &TempDir) -> PathBuf {
    let file = directory.join("x.trec");
    let options = ["--quiet", "--rate", "20", "-o", file.to_str().unwrap()];
    run(run_command(&options, &["sh", "-c", "sleep 0.3", SECRET])).done();
    file
}

#[test]
fn csv_has_a_row_for_each_sample() {
    let directory = TempDir::new();
    let file = recorded(&directory);
    let text = terrace(&format!("export {} --to csv", file.display())).done();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(header[0], "time_s");
    assert!(header.contains(&"vmstat.pgfault"), "{header:?}");
    let mut before = -1.0;
    let mut rows = 0;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), header.len(), "{line}");
        let time: f64 = fields[0].parse().unwrap();
        assert!(time > before, "{line}");
        before = time;
        rows += 1;
    }
    // The first sample before the command and the last one after it, however slow it was.
    assert!(rows >= 2, "{text}");
}

#[test]
fn what_is_personal_stays_here_unless_asked_for() {
    let directory = TempDir::new();
    let file = recorded(&directory);
    let export = |options: &str| {
        let line = format!("export {} --to json {options}", file.display());
        let text = terrace(&line).done();
        assert!(serde_json::from_str::<Value>(&text).unwrap().is_object());
        text
    };
    assert!(export("--no-redact").contains(SECRET));
    for options in ["", "--redact"] {
        assert!(!export(options).contains(SECRET));
    }
}

/// What a recording of a command with secrets everywhere holds of them, and what its exports do.
#[test]
fn a_secret_in_the_words_place_file_mark_group_or_mount_is_nowhere_in_an_export() {
    let directory = TempDir::new();
    let place = directory.join("plugh-place");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("plugh-image"), vec![0; 1 << 20]).unwrap();
    fs::copy("/bin/sleep", place.join("plugh-prog")).unwrap();
    // Secrets that only root can make; what it cannot have here is not looked for.
    let image = LoopDevice::over(&place.join("plugh-image"));
    let mount = Tmpfs::mount(64 << 10);
    let group = Cgroup::v2();
    let file = directory.join("x.trec");
    let (started, marked) = (directory.join("started"), directory.join("marked"));
    let script = format!(
        "echo > plugh-file; touch {}; until [ -e {} ]; do ./plugh-prog 0.1; done",
        started.display(),
        marked.display()
    );
    let options = ["--quiet", "-o", file.to_str().unwrap()];
    let words = ["sh", "-c", &script, SECRET];
    let command = run_command(&options, &words);
    let mut joined = match &group {
        Ok(group) => {
            let mut joined = group.command(command.get_program());
            joined.args(command.get_args());
            joined
        }
        Err(_) => command,
    };
    let mut child = joined.current_dir(&place).spawn().unwrap();
    while !started.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it never started");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mark = terrace("mark plugh-mark");
    fs::write(marked, "").unwrap();
    mark.done();
    assert!(child.wait().unwrap().success());
    let export = |options: &str| terrace(&format!("export {} {options}", file.display())).done();
    let mut secrets = vec![SECRET.to_owned(), "plugh-file".to_owned(), "plugh-mark".to_owned()];
    secrets.extend(image.is_ok().then(|| "plugh-image".to_owned()));
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    secrets.extend(mount.as_ref().ok().map(|mount| name(mount.path())));
    secrets.extend(group.as_ref().ok().map(|group| name(group.path())));
    let raw = export("--to json --no-redact");
    for secret in &secrets {
        assert!(raw.contains(secret), "{secret} is not recorded");
    }
    let place = name(directory.path());
    for text in [export("--to json"), export("--to csv")] {
        for secret in secrets.iter().chain([&place, &"plugh".to_owned()]) {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }
}

#[test]
fn a_file_is_written_whole_and_a_closed_pipe_is_no_fault() {
    let directory = TempDir::new();
    let file = recorded(&directory);
    for form in ["csv", "json"] {
        let line = format!("export {} --to {form}", file.display());
        let out = directory.join(form);
        assert_eq!(terrace(&format!("{line} -o {}", out.display())).done(), "");
        assert_eq!(fs::read_to_string(&out).unwrap(), terrace(&line).done());
        closed_pipe(&line);
    }
    let mut names = directory.names();
    names.sort();
    assert_eq!(names, ["csv", "json", "x.trec"]);
}

/// Whether anything is left to undo depends on this machine; the question never fails.
#[test]
fn undo_can_be_asked() {
    terrace("undo --list").done();
}
