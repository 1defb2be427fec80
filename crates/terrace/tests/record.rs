//! `terrace record` and `terrace mark`: what runs already is watched until its end, and one
//! line says what came of it.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Read;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use support::{command, run, terrace, valid_explanation};
use testkit::{TempDir, ZramDevice};

/// How often a test looks whether something has begun; it ends long before, or never.
const LOOKS: u32 = 3_000;

/// The JSON of all that `file` holds.
fn explained(file: &Path) -> serde_json::Value {
    valid_explanation(&terrace(&format!("explain --json {}", file.display())).done())
}

/// A recording in the background, which has begun to write.
fn recording(options: &str, file: &Path) -> Child {
    let mut command = command(&format!("record {options} -o {}", file.display()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begun = (0..LOOKS).any(|_| {
        sleep(Duration::from_millis(20));
        file.metadata().is_ok_and(|what| what.len() > 0)
    });
    if !begun {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("{options}: nothing was written");
    }
    child
}

/// What it printed when it was asked to end.
fn interrupt(child: Child) -> String {
    support::terminate(child).done()
}

/// A shell without job control ignores SIGINT for its background jobs.
#[test]
fn an_ignored_sigint_is_reported_and_sigterm_ends_it() {
    let directory = TempDir::new();
    let file = directory.join("background.trec");
    let script = "trap '' INT; exec \"$0\" record --for 1h -o \"$1\"";
    let mut shell = testkit::with_default_signals("sh");
    shell.args(["-c", script, support::TERRACE]).arg(&file);
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = shell.spawn().unwrap();
    let begun = (0..LOOKS).any(|_| {
        sleep(Duration::from_millis(20));
        file.metadata().is_ok_and(|what| what.len() > 0)
    });
    assert!(begun);
    let pid = child.id().to_string();
    let asked = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(asked.success());
    let ran = support::terminate(child);
    let line = "terrace: record: SIGINT is ignored here (started in the background of a shell): \
                end it with SIGTERM\n";
    assert_eq!((ran.err.as_str(), ran.code), (line, Some(0)), "{ran:?}");
    assert!(terrace("record --help").done().contains("SIGTERM"));
}

/// A flight recorder under a service manager, whose socket is this test's.
#[test]
fn a_service_manager_is_notified() {
    let directory = TempDir::new();
    let (ring, path) = (directory.join("ring"), directory.join("notify"));
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut command = command(&format!("record --keep 1m -o {}", ring.display()));
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // The kernel keeps ten messages, so they are read all the time, as a service manager does.
    let (sender, messages) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(length) = socket.recv(&mut bytes) {
            let _ = sender.send(String::from_utf8(bytes[..length].to_vec()).unwrap());
        }
    });
    let message = || messages.recv_timeout(Duration::from_secs(60)).unwrap();
    let ready = message();
    assert!(ready.starts_with("READY=1\nSTATUS=records to "), "{ready}");
    // The first sample was taken before.
    assert!(ring.read_dir().unwrap().count() > 0);
    for _ in 0..3 {
        assert_eq!(message(), "WATCHDOG=1");
    }
    let status = status_of(child.id());
    assert_eq!(status["schema"], "terrace.status/1", "{status}");
    assert_eq!(status["target"], *ring.to_string_lossy(), "{status}");
    assert!(status["cost"]["max_resident_bytes"].as_u64() > Some(1 << 20));
    let second = terrace(&format!("record --keep 1m -o {}", ring.display()));
    assert_eq!((second.code, second.err.lines().count()), (Some(2), 1), "{second:?}");
    interrupt(child);
    let mut last = message();
    while last == "WATCHDOG=1" {
        last = message();
    }
    assert_eq!(last, "STOPPING=1");
}

/// The kernel keeps ten messages for a service manager that reads none.
#[test]
fn a_service_manager_that_stopped_reading_is_not_waited_for() {
    let directory = TempDir::new();
    let (ring, path) = (directory.join("ring"), directory.join("notify"));
    let _socket = UnixDatagram::bind(&path).unwrap();
    let mut command = command(&format!("record --keep 1m -o {}", ring.display()));
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "20000");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    interrupt(child);
}

/// What a flight recorder answers on its status socket, which only its user can reach.
fn status_of(pid: u32) -> serde_json::Value {
    let path = record::run_directory::own().unwrap().path().join(format!("status-{pid}.sock"));
    let mut client = UnixStream::connect(path).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut line = String::new();
    client.read_to_string(&mut line).unwrap();
    serde_json::from_str(line.strip_suffix('\n').unwrap()).unwrap()
}

/// Ctrl-C where SIGINT is not ignored: no such line, and it ends.
#[test]
fn sigint_ends_a_recording() {
    let directory = TempDir::new();
    let file = directory.join("foreground.trec");
    let ran = support::signalled("record --for 1h -o", &[file.as_os_str()], "INT", "2");
    assert_eq!(ran.err, "", "{ran:?}");
    assert!(ran.out.contains("samples"), "{ran:?}");
}

#[test]
fn the_machine_for_a_while() {
    let directory = TempDir::new();
    let file = directory.join("machine.trec");
    let said = terrace(&format!("record --for 400ms -o {}", file.display())).done();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].contains("samples") && lines[0].contains("of a core"), "{said}");
    assert_eq!(lines[1], format!("Look at it: terrace explain {}", file.display()));
    let value = explained(&file);
    // It recorded for at least as long as it was told to; a slow machine makes it longer.
    assert!(value["wall_ns"].as_u64().unwrap() >= 400_000_000, "{value}");
    assert!(value["watching"]["samples"].as_u64().unwrap() >= 2, "{value}");
}

#[test]
fn ctrl_c_ends_a_recording_that_is_whole() {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    let said = interrupt(recording("", &file));
    assert!(said.contains("Look at it: terrace explain"), "{said}");
    let value = explained(&file);
    assert!(!value["ending"].as_str().unwrap().contains("cut"), "{value}");
}

#[test]
fn a_process_is_watched_to_its_end() {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    let mut sleeper = Command::new("sleep").arg("1").spawn().unwrap();
    // It ends by itself; a zombie until then, which is an end too.
    let said = terrace(&format!("record --pid {} -o {}", sleeper.id(), file.display()));
    sleeper.wait().unwrap();
    // On a machine that stalls for a second it has ended before it was looked at.
    if said.code == Some(0) {
        let value = explained(&file);
        let subject = value["subject"].as_str().unwrap();
        assert!(subject.contains("sleep"), "{value}");
    }
}

#[test]
fn a_process_that_is_not_there_is_refused() {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    // No Linux has so many processes (2^22 at most).
    let ran = terrace(&format!("record --pid 4999999 -o {}", file.display()));
    assert!(matches!(ran.code, Some(2 | 3)), "{ran:?}");
    ran.refused(ran.code.unwrap(), "4999999");
    assert!(directory.names().is_empty());
}

#[test]
fn a_mark_arrives_in_a_recording_that_runs() {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    let child = recording("--trace none", &file);
    // Recordings of other tests may run as well, so not exactly one.
    let said = terrace("mark import starts here").done();
    interrupt(child);
    assert!(said.starts_with("marked "), "{said}");
    let line = format!("export {} --to json --no-redact", file.display());
    assert!(terrace(&line).done().contains("import starts here"));
}

#[test]
fn a_flight_recorder_is_a_directory() {
    let directory = TempDir::new();
    let ring = directory.join("ring");
    let line = format!("record --for 300ms --keep 1h --keep-bytes 16m -o {}", ring.display());
    terrace(&line).done();
    assert!(ring.is_dir());
    assert!(explained(&ring)["wall_ns"].as_u64().unwrap() > 0);
}

/// The directory that systemd gives a unit with `StateDirectory=`.
#[test]
fn a_ring_is_found_without_its_name() {
    let directory = TempDir::new();
    let ring = directory.join("ring");
    let with_ring = |line: &str| {
        let mut command = command(line);
        command.env("STATE_DIRECTORY", &ring).env("XDG_STATE_HOME", directory.join("state"));
        run(command)
    };
    // One of the service may be here.
    if !std::path::Path::new("/var/lib/terrace/recorder").exists() {
        with_ring("explain").refused(2, "no flight recorder has a ring here");
    }
    let said = with_ring("record --for 300ms --keep 1h --keep-bytes 16m").done();
    assert!(said.contains(&ring.display().to_string()), "{said}");
    let explained = valid_explanation(&with_ring("explain --json").done());
    assert!(explained["wall_ns"].as_u64().unwrap() > 0);
    assert!(with_ring("top --recorder --once").done().contains("CPU"));
    assert!(with_ring("view --html -").done().starts_with("<!"));
    with_ring("record --for 300ms").refused(2, "--output FILE is missing");
}

#[test]
fn a_directory_that_is_missing_is_refused() {
    terrace("record --for 1h -o /nonexistent/x.trec").refused(1, "/nonexistent/x.trec");
}

#[test]
fn a_probe_records_the_machine_meanwhile() {
    let directory = TempDir::new();
    let file = directory.join("probe.trec");
    let line = format!("measure compute --budget 2s --record {}", file.display());
    let page = terrace(&line).done();
    assert!(page.starts_with("terrace measure compute"), "{page}");
    let value = explained(&file);
    assert!(value["subject"].as_str().unwrap().contains("compute"), "{value}");
    let mut again = command(&line);
    again.stdin(Stdio::null());
    assert_ne!(run(again).code, Some(0), "an existing recording is not replaced");
}

/// Rows of a device that is gone are no zeros: a window after it knows nothing of it.
#[test]
fn a_device_that_went_is_not_explained_as_idle() {
    let device = match ZramDevice::add(16 << 20) {
        Ok(device) => device,
        Err(need) => return testkit::skip(need),
    };
    let name = device.name();
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    let child = recording("--rate 50", &file);
    std::fs::write(device.path(), vec![7; 4 << 20]).unwrap();
    sleep(Duration::from_millis(600));
    drop(device);
    sleep(Duration::from_millis(600));
    terrace("mark gone").done();
    sleep(Duration::from_millis(600));
    interrupt(child);
    let json: serde_json::Value = {
        let line = format!("export --no-redact --to json {}", file.display());
        serde_json::from_str(&terrace(&line).done()).unwrap()
    };
    let spans = json["spans"].as_array().unwrap();
    let gone = spans.iter().find(|span| span["text"] == "gone").unwrap();
    let from_s = gone["start_ns"].as_f64().unwrap() / 1e9;
    let line = format!("explain --json --from {from_s}s {}", file.display());
    let explained = valid_explanation(&terrace(&line).done());
    assert!(explained["from_ns"].as_u64() > Some(0));
    assert!(!explained.to_string().contains(&name), "{explained}");
}
