//! `terrace view`: the file that it writes, the page that it serves, the stream that follows a running
//! recording, and what hostile recordings do to them. The server itself is tested in `viewer`, the page in
//! `browser`.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use support::pages::{Served, fixture, hostile, made};
use support::{as_ordinary_user, command, run, run_command, terrace};
use testkit::{TempDir, web};

/// A word of the recorded command line that nobody else should read.
const SECRET: &str = "xyzzy-secret-word";

/// How often a test looks whether something has begun; it ends long before, or never.
const LOOKS: u32 = 3_000;

fn words(path: &Path) -> String {
    path.display().to_string()
}

/// The JSON in the page's element of this id.
#[track_caller]
fn json_of(page: &str, id: &str) -> Value {
    let start = format!("<script type=\"application/json\" id=\"{id}\">");
    let (_, rest) = page.split_once(&start).unwrap();
    let (text, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_file_is_one_page_redacted_unless_told_otherwise() {
    let directory = TempDir::new();
    let file = directory.join("holiday.trec");
    let options = ["--quiet", "-o", file.to_str().unwrap()];
    run(run_command(&options, &["sh", "-c", "sleep 0.2", SECRET])).done();
    let out = directory.join("page.html");
    let write = |options: &str| {
        let line = format!("view {} --html {} {options}", words(&file), words(&out));
        assert_eq!(terrace(&line).done(), "");
        fs::read_to_string(&out).unwrap()
    };
    for options in ["", "--redact"] {
        let page = write(options);
        assert!(
            !page.contains(SECRET) && !page.contains("holiday"),
            "{options}"
        );
        assert_eq!(json_of(&page, "view")["name"], "recording 1");
    }
    let page = write("--no-redact");
    let view = json_of(&page, "view");
    assert_eq!(view["name"], "holiday.trec");
    assert!(page.contains(SECRET));
    let explained = terrace(&format!("explain {} --json", words(&file))).done();
    assert_eq!(
        view["explain"],
        serde_json::from_str::<Value>(&explained).unwrap()
    );
    // No address of anything, but those that uPlot's licence line and SVG's name are.
    for (at, _) in page.match_indices("http") {
        let rest = &page[at..page.len().min(at + 60)];
        let known = [
            "https://github.com/leeoniya/uPlot",
            "http://www.w3.org/2000/svg",
            "http-equiv",
        ];
        assert!(known.iter().any(|known| rest.starts_with(known)), "{rest}");
    }
    let standard = terrace(&format!("view {} --html - --no-redact", words(&file))).done();
    assert_eq!(standard, page);
    let mut names = directory.names();
    names.sort();
    assert_eq!(names, ["holiday.trec", "page.html"]);
}

#[test]
fn what_cannot_be_shown_is_refused_with_one_line() {
    let directory = TempDir::new();
    let text = directory.join("text");
    fs::write(&text, "no recording, but longer than a header").unwrap();
    let (text, file) = (words(&text), words(&fixture("cold_read")));
    for (line, code, complaint) in [
        (format!("view {text}"), 2, "not a recording"),
        (format!("view {text}-absent"), 2, "no such file"),
        (format!("view {file} {text}"), 2, "not a recording"),
        (format!("view --live {text}"), 2, "not a recording"),
        (
            format!("view --live {}", words(directory.path())),
            2,
            "no recording is in it",
        ),
        (format!("view --live {file} {file}"), 2, "--live"),
        (format!("view --live {file} --html x"), 2, "--live"),
        (format!("view {file} --no-redact"), 2, "--html"),
        (
            format!("view {file} --html {}", words(directory.path())),
            2,
            "directory",
        ),
    ] {
        terrace(&line).refused(code, complaint);
    }
    assert_eq!(directory.names(), ["text"]);
}

#[test]
fn two_recordings_are_served_until_ctrl_c_and_nothing_else() {
    let files = ["cold_read", "fsync_storm"].map(|name| words(&fixture(name)));
    let served = Served::start(&[&files[0], &files[1]]);
    let (_, secret) = served
        .address
        .trim_end_matches('/')
        .rsplit_once('/')
        .unwrap();
    assert!(secret.len() >= 32 && secret.bytes().all(|sign| sign.is_ascii_hexdigit()));
    let text = web::get(&served.address).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(json_of(&text, "view")["name"], "cold_read.trec");
    assert_eq!(json_of(&text, "view-2")["name"], "fsync_storm.trec");
    assert!(!text.contains("id=\"live\""));
    let foreign = served.address.replace(secret, &"0".repeat(secret.len()));
    assert!(web::get(&foreign).unwrap().starts_with("HTTP/1.1 404 "));
    let ran = served.end();
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn eight_series_of_100000_samples_fit_into_2_mb() {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    made(&file, 8, 100_000);
    let page = terrace(&format!("view {} --html -", words(&file))).done();
    println!("8 series x 100,000 samples: {} bytes", page.len());
    assert_eq!(json_of(&page, "view")["samples"], 100_000);
    assert!(page.len() <= 2_000_000, "{}", page.len());
}

/// A name that would be markup, values that no number of JavaScript holds, more series than there are.
#[test]
fn a_hostile_recording_makes_a_bounded_page_or_one_line() {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    let view = |count, name: &str| {
        hostile(&file, count, name);
        terrace(&format!("view {} --html - --no-redact", words(&file)))
    };
    let page = view(100, "").done();
    let harmless = terrace(&format!("view {} --html -", words(&fixture("cold_read")))).done();
    let ends = |page: &str| page.matches("</script>").count();
    assert_eq!(ends(&page), ends(&harmless));
    assert!(!page.contains("<img") && !page.contains("<!--"));
    let data = json_of(&page, "view");
    assert_eq!(data["series"].as_array().unwrap().len(), 100);

    let page = view(100_000, "").done();
    assert!(page.len() < 64 << 20, "{}", page.len());
    let long = "x".repeat(8 << 10);
    view(20_000, &long).refused(3, "too long for a page");
}

/// The events of a stream, read to its end.
fn events(address: &str) -> Vec<Value> {
    let text = web::get(address).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_running_recording_is_followed_to_its_end() {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    let options = ["--quiet", "-o", file.to_str().unwrap()];
    is_followed_to_its_end(run_command(&options, &["sleep", "5"]), &file);
}

/// A flight recorder with segments of two seconds.
#[test]
fn a_running_flight_recorder_is_followed_to_its_end() {
    let directory = TempDir::new();
    let ring = directory.join("ring");
    let mut watched = Command::new("sleep").arg("7").spawn().unwrap();
    let line = format!(
        "record --pid {} --keep 48s -o {}",
        watched.id(),
        words(&ring)
    );
    // As a parent does, or it would never be gone.
    let reaper = std::thread::spawn(move || watched.wait());
    is_followed_to_its_end(command(&line), &ring);
    assert!(reaper.join().unwrap().unwrap().success());
    assert!(ring.read_dir().unwrap().count() >= 3);
}

/// Follows what `recorder` writes to `file`; it ends by itself.
fn is_followed_to_its_end(mut recorder: Command, file: &Path) {
    recorder.stdout(Stdio::null()).stderr(Stdio::null());
    let mut recorder = recorder.spawn().unwrap();
    let newest = || match file.is_dir() {
        true => Some(file.read_dir().ok()?.next()?.ok()?.path()),
        false => Some(file.to_owned()),
    };
    let has_begun = |file: PathBuf| file.metadata().is_ok_and(|about| about.len() > 0);
    let begun = (0..LOOKS).any(|_| {
        sleep(Duration::from_millis(20));
        newest().is_some_and(has_begun)
    });
    assert!(begun);
    let served = Served::start(&["--live", file.to_str().unwrap()]);
    let page = web::get(&served.address).unwrap();
    let known = json_of(&page, "view")["samples"].as_u64().unwrap();
    let path = json_of(&page, "live")["events"]
        .as_str()
        .unwrap()
        .to_owned();
    let events = events(&format!("{}{path}", served.address));
    assert!(recorder.wait().unwrap().success());

    let mut next = known;
    for event in &events {
        assert_eq!(event["from_sample"], next, "{event}");
        next += event["ticks_ns"].as_array().unwrap().len() as u64;
    }
    let whole = terrace(&format!("export {} --to json", words(file))).done();
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(next, whole["samples"].as_array().unwrap().len() as u64);
    let (last, before) = events.split_last().unwrap();
    assert_eq!(last["ended"], true);
    assert!(before.iter().all(|event| event["ended"] == false));
    let explained = terrace(&format!("explain {} --json", words(file))).done();
    let explained: Value = serde_json::from_str(&explained).unwrap();
    assert_eq!(last["explain"], explained);
    // It was told while it ran, though so few rows are written late where nobody follows.
    let told = before.iter().flat_map(|event| event["ticks_ns"].as_array());
    assert!(told.flatten().count() > 0, "{events:?}");
    // And running is no doubt about it.
    let doubts = before
        .iter()
        .flat_map(|event| event["explain"]["doubts"].as_array());
    assert!(
        doubts
            .flatten()
            .all(|doubt| !doubt.as_str().unwrap().contains("was cut"))
    );
    assert!(known < next, "{known}");
    assert_eq!(served.end().code, Some(0));
}

/// A program in the place of `xdg-open`, which notes what it was told.
fn noted_browser(directory: &TempDir) -> std::path::PathBuf {
    let program = directory.join("xdg-open");
    let noted = directory.join("noted");
    fs::write(
        &program,
        format!("#!/bin/sh\necho \"$1\" > {}\n", words(&noted)),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    noted
}

#[test]
fn the_browser_of_an_ordinary_user_is_led_there_once_and_roots_never() {
    let directory = TempDir::new();
    let noted = noted_browser(&directory);
    let readable = directory.join("x.trec");
    fs::copy(fixture("cold_read"), &readable).unwrap();
    for path in [directory.path(), &readable] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let path = format!(
        "{}:{}",
        words(directory.path()),
        std::env::var("PATH").unwrap()
    );
    if testkit::is_root() {
        let mut command = support::command(&format!("view {}", words(&readable)));
        command.env("DISPLAY", ":9").env("PATH", &path);
        let served = Served::of(command);
        assert!(web::get(&served.address).is_ok());
        assert_eq!(served.end().code, Some(0));
        assert!(!noted.exists());
    }
    let Some(mut command) = as_ordinary_user(&format!("view {}", words(&readable))) else {
        return;
    };
    command.env("DISPLAY", ":9").env("PATH", &path);
    let served = Served::of(command);
    let told = (0..LOOKS).find_map(|_| {
        sleep(Duration::from_millis(20));
        fs::read_to_string(&noted)
            .ok()
            .filter(|text| text.ends_with('\n'))
    });
    let told = told.unwrap();
    assert_ne!(told.trim(), served.address);
    let answer = web::get(told.trim()).unwrap();
    let (_, path) = served.address.split_at(served.address.len() - 34);
    assert!(
        answer.contains(&format!("Location: {path}\r\n")),
        "{answer}"
    );
    assert!(web::get(told.trim()).unwrap().starts_with("HTTP/1.1 404 "));
    assert_eq!(served.end().code, Some(0));
}
