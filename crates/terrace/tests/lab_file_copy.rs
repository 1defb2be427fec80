//! `terrace lab run file-copy-2008`: a small one for real, its JSON, its page, what it keeps and
//! removes, and what it refuses.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{as_ordinary_user, command, run, schema_complaint, terrace};
use testkit::TempDir;

const SCHEMA: &str = include_str!("../../../docs/lab.schema.json");

#[track_caller]
fn result(text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(schema_complaint(SCHEMA, &value), None, "{text}");
    value["result"].clone()
}

fn entries(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

#[test]
fn it_says_what_it_repeats_and_refuses_nonsense() {
    assert!(terrace("lab list").done().contains("file-copy-2008"));
    let text = terrace("lab show file-copy-2008").done();
    for words in ["69 files", "15 s", "Fire File Copy", "Needs no root"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let directory = TempDir::new();
    let (at, empty) = (directory.path().display(), TempDir::new());
    terrace(&format!("lab run file-copy-2008 --from {at}")).refused(2, "--to");
    terrace(&format!("lab run file-copy-2008 --to {at}")).refused(2, "--from");
    let both = format!("lab run file-copy-2008 --from {at} --to {at} --out {at}/kept");
    terrace(&format!("{both} --size 9m")).refused(2, "--size is at least 160 MiB");
    terrace(&format!("{both} --size 900t")).refused(3, "are needed");
    terrace(&format!("lab run file-copy-2008 --from {at} --to /nonexistent"))
        .refused(2, "/nonexistent is no directory");
    let empty = empty.path().display();
    let none = format!("lab run file-copy-2008 --files {empty} --to {at} --out {at}/kept");
    terrace(&none).refused(2, "there is no data");
    terrace(&format!("lab run file-copy-2008 --from {at} --to /dev/shm --out {at}/kept"))
        .refused(3, "is no disk");
    assert_eq!(entries(directory.path()), 0);
}

#[test]
fn three_copiers_are_recorded_laid_over_each_other_and_answered() {
    let (disk, out) = (TempDir::new(), TempDir::new());
    let kept = out.join("kept");
    let at = disk.path().display();
    let line = format!(
        "lab run file-copy-2008 --from {at} --to {at} --size 160m --json --out {}",
        kept.display()
    );
    let ran = terrace(&line);
    if ran.code == Some(3) {
        return testkit::skip("a disk below the directory of temporary files");
    }
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("three times"), "{ran:?}");
    let report = result(&ran.out);
    assert_eq!((&report["files"], &report["bytes"]), (&Value::from(69), &Value::from(160 << 20)));
    assert_eq!(report["is_one_disk"], true);
    let copies = report["copies"].as_array().unwrap();
    let names: Vec<&str> = copies.iter().map(|copy| copy["copier"].as_str().unwrap()).collect();
    assert_eq!(names, ["cached", "two-thread", "default"]);
    for copy in copies {
        let of = |field: &str| copy[field].as_u64();
        assert!(of("done_ns").is_some() && of("durable_ns").is_some(), "{copy}");
        // It never says done before its last write has returned.
        assert!(of("first_read_ns") > Some(0), "{copy}");
        assert!(of("readers_waited_ns").is_some() && of("writers_waited_ns").is_some(), "{copy}");
        let recording = kept.join(copy["recording"].as_str().unwrap());
        let explained = terrace(&format!("explain {}", recording.display())).done();
        assert!(!explained.is_empty());
    }
    let used = |at: usize| copies[at]["engines"][0].as_str().unwrap();
    assert_eq!(used(0), "cached");
    if copies[1]["faults"].as_array().unwrap().is_empty() {
        assert_eq!(used(1), "two-thread");
        // What passes the cache leaves it as it was; what goes through it stays.
        if let Some(cached) = copies[1]["target_cached_bytes"].as_u64() {
            assert!(cached < 16 << 20, "{}", copies[1]);
            assert!(copies[0]["target_cached_bytes"].as_u64() > Some(80 << 20), "{}", copies[0]);
            assert!(copies[0]["first_read_cached_bytes"].as_u64() > Some(80 << 20));
        }
    }
    let page = fs::read_to_string(kept.join(report["page"].as_str().unwrap())).unwrap();
    for name in ["\"cached\"", "\"two-thread\"", "\"terrace copy\""] {
        assert!(page.contains(name), "{name}");
    }
    assert_eq!(result(&fs::read_to_string(kept.join("result.json")).unwrap()), report);
    assert_eq!(entries(disk.path()), 0, "what was made is removed");
    terrace(&line).refused(2, "is no empty directory");
}

/// Own files are copied as they are, stay, and are not made; the text has every answer.
#[test]
fn own_files_are_copied_by_an_ordinary_user() {
    let (disk, out) = (TempDir::new(), TempDir::new());
    let own = disk.join("own");
    fs::create_dir(&own).unwrap();
    fs::create_dir(disk.join("to")).unwrap();
    for at in 0..3 {
        fs::write(own.join(format!("file{at}")), vec![at + 1; 5 << 20]).unwrap();
    }
    for path in [disk.path(), &own, &disk.join("to"), out.path()] {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let (at, to) = (disk.path().display(), disk.join("to"));
    let line = format!(
        "lab run file-copy-2008 --files {at}/own --to {} --out {}/kept",
        to.display(),
        out.path().display()
    );
    let Some(command) = as_ordinary_user(&line) else { return };
    let ran = run(command);
    if ran.code == Some(3) {
        return testkit::skip("a disk below the directory of temporary files");
    }
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for answer in ["3 files, 15 MiB", "said done after", "a first read of it took", "no bcache"] {
        assert!(words.contains(answer), "{answer}: {words}");
    }
    assert_eq!((entries(&own), entries(&to)), (3, 0));
    assert!(out.join("kept/page.html").exists());
}

/// After Ctrl-C and after a kill nothing of what it made is left.
#[test]
fn what_it_made_goes_however_it_ends() {
    for signal in ["INT", "KILL"] {
        let (disk, out) = (TempDir::new(), TempDir::new());
        let at = disk.path().display();
        let kept = out.join("kept");
        let mut line = command(&format!(
            "lab run file-copy-2008 --from {at} --to {at} --size 1g --out {}",
            kept.display()
        ));
        let mut child = line.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        // Until a copy is under way, whose directory is the second one.
        while entries(disk.path()) < 2 && child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(20));
        }
        let pid = child.id().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{signal}"), &pid]).status();
        assert!(sent.unwrap().success());
        let ended = child.wait().unwrap();
        if ended.code() == Some(3) {
            return testkit::skip("a disk below the directory of temporary files, with room");
        }
        assert_eq!(ended.code(), (signal == "INT").then_some(1), "{signal}");
        // The process that keeps a directory sees that the lab has ended.
        while entries(disk.path()) > 0 {
            assert!(start.elapsed() < Duration::from_secs(90), "{signal}: something is left");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
