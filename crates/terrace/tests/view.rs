//! `terrace view`: the file that it writes, the page that it serves, the stream that follows a
//! running recording, and what hostile recordings do to them. The server itself is tested in
//! `viewer`, the page in `browser`.
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

/// A word of the recorded command line that no other user should read.
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
fn a_file_is_one_page_redacted_by_default() {
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
        assert!(!page.contains(SECRET) && !page.contains("holiday"), "{options}");
        assert_eq!(json_of(&page, "view")["name"], "recording 1");
    }
    let page = write("--no-redact");
    let view = json_of(&page, "view");
    assert_eq!(view["name"], "holiday.trec");
    assert!(page.contains(SECRET));
    let explained = terrace(&format!("explain {} --json", words(&file))).done();
    assert_eq!(view["explain"], serde_json::from_str::<Value>(&explained).unwrap());
    // No address of anything, but those that uPlot's licence line and SVG's name are.
    for (at, _) in page.match_indices("http") {
        let rest = &page[at..page.len().min(at + 60)];
        let known =
            ["https://github.com/leeoniya/uPlot", "http://www.w3.org/2000/svg", "http-equiv"];
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
        (format!("view --live {}", words(directory.path())), 2, "no recording is in it"),
        (format!("view --live {file} {file}"), 2, "--live"),
        (format!("view --live {file} --html x"), 2, "--live"),
        (format!("view {file} --no-redact"), 2, "--html"),
        (format!("view {file} --html {}", words(directory.path())), 2, "directory"),
    ] {
        terrace(&line).refused(code, complaint);
    }
    assert_eq!(directory.names(), ["text"]);
}

#[test]
fn two_recordings_are_served_until_ctrl_c_and_nothing_else() {
    let files = ["cold_read", "fsync_storm"].map(|name| words(&fixture(name)));
    let served = Served::start(&[&files[0], &files[1]]);
    let (_, secret) = served.address.trim_end_matches('/').rsplit_once('/').unwrap();
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

/// A name that would be markup, values that no number of JavaScript holds, more series than there
/// are.
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
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
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
    let line = format!("record --pid {} --keep 48s -o {}", watched.id(), words(&ring));
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
    let newest = || {
        if file.is_dir() {
            Some(file.read_dir().ok()?.next()?.ok()?.path())
        } else {
            Some(file.to_owned())
        }
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
    let path = json_of(&page, "live")["events"].as_str().unwrap().to_owned();
    let events = events(&format!("{}{path}", served.address));
    assert!(recorder.wait().unwrap().success());

    let mut next = known;
    for event in &events {
        assert_eq!(event["from_sample"], next, "{event}");
        next += event["ticks_ns"].as_array().unwrap().len() as u64;
    }
    let exported = terrace(&format!("export {} --to json", words(file))).done();
    let whole: Value = serde_json::from_str(&exported).unwrap();
    assert_eq!(next, whole["samples"].as_array().unwrap().len() as u64);
    let (last, before) = events.split_last().unwrap();
    assert_eq!(last["ended"], true);
    assert!(before.iter().all(|event| event["ended"] == false));
    let text = terrace(&format!("explain {} --json", words(file))).done();
    let explained: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(last["explain"], explained);
    // It was told while it ran, though so few rows are written late where nobody follows.
    let found = before.iter().flat_map(|event| event["ticks_ns"].as_array());
    assert!(found.flatten().count() > 0, "{events:?}");
    // And running is no doubt about it.
    let doubts = before.iter().flat_map(|event| event["explain"]["doubts"].as_array());
    assert!(doubts.flatten().all(|doubt| !doubt.as_str().unwrap().contains("was cut")));
    assert!(known < next, "{known}");
    assert_eq!(served.end().code, Some(0));
}

/// Two users of the machine: one that views, and one that wants to see what.
const VIEWER: &str = "65534";
const SPY: &str = "65533";

/// A program run as the user of this number.
fn as_user(number: &str, program: &str) -> Command {
    let mut command = Command::new("setpriv");
    let user = format!("--reuid={number}");
    command.args([&user, "--regid=65534", "--clear-groups", program]);
    command
}

fn with_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// What `file` says once it is there and ends with a line.
fn awaited(file: &Path) -> String {
    let found = (0..LOOKS).find_map(|_| {
        sleep(Duration::from_millis(20));
        let text = fs::read_to_string(file).ok();
        text.filter(|text| text.ends_with('\n'))
    });
    found.unwrap_or_else(|| panic!("{} was not written", file.display()))
}

/// A machine with a screen: a directory for this run, a recording, and a program in the place of
/// `xdg-open`, which takes a while to start and then notes what it was given and what it says.
struct Desktop {
    directory: TempDir,
    recording: PathBuf,
    runtime: PathBuf,
    noted: PathBuf,
    path: String,
}

impl Desktop {
    fn new() -> Self {
        let directory = TempDir::new();
        with_mode(directory.path(), 0o755);
        let recording = directory.join("x.trec");
        fs::copy(fixture("cold_read"), &recording).unwrap();
        with_mode(&recording, 0o644);
        let (runtime, notes) = (directory.join("runtime"), directory.join("notes"));
        for (path, mode) in [(&runtime, 0o700), (&notes, 0o733)] {
            fs::create_dir(path).unwrap();
            with_mode(path, mode);
        }
        if testkit::is_root() {
            let number = VIEWER.parse().ok();
            std::os::unix::fs::chown(&runtime, number, number).unwrap();
        }
        let noted = notes.join("noted");
        let program = directory.join("xdg-open");
        let (file, part) = (words(&noted), words(&notes.join("part")));
        let script = format!(
            "#!/bin/sh\nsleep 0.5\n{{ echo \"$1\"; cat \"${{1#file://}}\"; }} > {part}\nmv {part} {file}\n"
        );
        fs::write(&program, script).unwrap();
        with_mode(&program, 0o755);
        let others = std::env::var("PATH").unwrap();
        let path = format!("{}:{others}", words(directory.path()));
        Self { directory, recording, runtime, noted, path }
    }

    fn on_screen(&self, mut command: Command) -> Command {
        command.env("DISPLAY", ":9").env("PATH", &self.path);
        command.env("XDG_RUNTIME_DIR", &self.runtime);
        command
    }

    fn line(&self) -> String {
        format!("view {}", words(&self.recording))
    }

    /// The files that lead to pages.
    fn signposts(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.runtime.join("terrace")).into_iter();
        let paths = entries.flatten().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|it| it == "html")).collect()
    }
}

#[test]
fn the_browser_of_an_ordinary_user_gets_a_file_that_leads_there_and_root_s_never() {
    let desktop = Desktop::new();
    if testkit::is_root() {
        let served = Served::of(desktop.on_screen(command(&desktop.line())));
        assert!(web::get(&served.address).is_ok());
        assert_eq!(served.end().code, Some(0));
        assert!(!desktop.noted.exists());
    }
    let Some(view) = as_ordinary_user(&desktop.line()) else {
        return;
    };
    let served = Served::of(desktop.on_screen(view));
    let [signpost] = &desktop.signposts()[..] else {
        panic!("{:?}", desktop.signposts());
    };
    assert_eq!(signpost.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let found = awaited(&desktop.noted);
    let (url, page) = found.split_once('\n').unwrap();
    assert_eq!(url, format!("file://{}", words(signpost)));
    assert!(page.contains(&format!("url={}\"", served.address)), "{page}");
    // It goes when the browser has come, and the page stays.
    assert!(web::get(&served.address).unwrap().starts_with("HTTP/1.1 200 "));
    let is_gone = (0..LOOKS).any(|_| {
        sleep(Duration::from_millis(20));
        !signpost.exists()
    });
    assert!(is_gone);
    assert!(web::get(&served.address).unwrap().starts_with("HTTP/1.1 200 "));
    assert_eq!(served.end().code, Some(0));
}

/// Ctrl-C before any browser came, and a server that is killed.
#[test]
fn no_way_to_a_page_outlives_its_server() {
    let desktop = Desktop::new();
    let start = || {
        let view = as_ordinary_user(&desktop.line())?;
        Some(Served::of(desktop.on_screen(view)))
    };
    let Some(served) = start() else {
        return;
    };
    assert_eq!(desktop.signposts().len(), 1);
    assert_eq!(served.end().code, Some(0));
    assert_eq!(desktop.signposts(), Vec::<PathBuf>::new());
    let killed = start().unwrap();
    let left = desktop.signposts();
    assert_eq!(left.len(), 1);
    // That is a SIGKILL.
    drop(killed);
    assert_eq!(desktop.signposts(), left);
    let served = start().unwrap();
    let now = desktop.signposts();
    assert!(now.len() == 1 && now != left, "{now:?}");
    assert_eq!(served.end().code, Some(0));
}

/// Reads all command lines and environments that it may, all the time, and tries each file and each
/// address in them.
#[test]
fn another_user_of_the_machine_finds_no_way_to_the_page() {
    if !testkit::is_root() {
        testkit::skip("root, to be two other users");
        return;
    }
    let desktop = Desktop::new();
    let Some(view) = as_ordinary_user(&desktop.line()) else {
        return;
    };
    let seen = desktop.directory.join("notes/seen");
    // In brackets, so that the spy does not find its own words.
    let script = format!(
        "while :; do cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | \
         grep -aE 'file:/[/]{0}|http:/[/]127' >> {1}; for f in $(grep -ao 'file:/[/]{0}[^ ]*' {1} | sort -u); do \
         cat \"${{f#file://}}\" >> {1} 2>/dev/null; ls \"$(dirname \"${{f#file://}}\")\" >> {1} 2>/dev/null; done; done",
        words(&desktop.runtime),
        words(&seen)
    );
    let file = desktop.directory.join("spy.sh");
    fs::write(&file, script).unwrap();
    let mut spy = as_user(SPY, "sh");
    spy.arg(&file).stdin(Stdio::null());
    spy.stdout(Stdio::null()).stderr(Stdio::null());
    let spy = support::Started(spy.spawn().unwrap());
    let served = Served::of(desktop.on_screen(view));
    let found = awaited(&desktop.noted);
    assert!(found.contains(&served.address), "the browser got there: {found}");
    let seen = awaited(&seen);
    drop(spy);
    assert!(seen.contains("file://"), "the spy saw the command line: {seen}");
    let (_, secret) = served.address.trim_end_matches('/').rsplit_once('/').unwrap();
    assert!(!seen.contains(secret) && !seen.contains("http://"), "{seen}");
    assert!(!seen.lines().any(|line| line.starts_with("view-")), "{seen}");
    assert_eq!(served.end().code, Some(0));
}

/// The processor time of a process, in ticks of a hundredth of a second.
fn processor_ticks(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = text.rsplit_once(')').unwrap();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_stream_of_a_page_that_is_not_live_costs_no_processor() {
    let served = Served::start(&[fixture("cold_read").to_str().unwrap()]);
    let address = format!("{}events", served.address);
    let before = processor_ticks(served.pid());
    let started = std::time::Instant::now();
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let address = address.clone();
            // As a browser does that comes back whenever the stream ends.
            std::thread::spawn(move || {
                while started.elapsed() < Duration::from_secs(2) {
                    use std::io::{Read, Write};
                    let rest = address.strip_prefix("http://").unwrap();
                    let (host, path) = rest.split_once('/').unwrap();
                    let mut stream = std::net::TcpStream::connect(host).unwrap();
                    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
                    let head = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
                    stream.write_all(head.as_bytes()).unwrap();
                    let mut text = String::new();
                    let ended = stream.read_to_string(&mut text);
                    assert!(ended.is_ok() && text.starts_with("HTTP/1.1 204 "), "{text}");
                    sleep(Duration::from_secs(1));
                }
            })
        })
        .collect();
    let failed = clients.into_iter().map(|client| client.join().is_err());
    assert_eq!(failed.filter(|failed| *failed).count(), 0);
    let ticks = processor_ticks(served.pid()) - before;
    let wall_ms = started.elapsed().as_millis() as u64;
    assert!(ticks * 10 * 10 < wall_ms, "{ticks} ticks in {wall_ms} ms");
    assert_eq!(served.end().code, Some(0));
}
