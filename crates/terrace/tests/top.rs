//! `terrace top` on a pseudo-terminal: what it shows, what its keys do, at any size, and that the
//! terminal is as it was however it ends.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::pages::with_who;
use support::{as_ordinary_user, command, has_program, run, terrace};
use terminal::Terminal;
use testkit::TempDir;

const LEFT: &str = "\x1b[D";
const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const HOME: &str = "\x1b[H";
const END: &str = "\x1b[F";
const CTRL_C: &str = "\x03";

/// A process that ends with its test, however that ends.
struct Guarded(Option<Child>);

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// `terrace` with these words and a locale that has blocks.
fn on_terminal(line: &str, width: u16, height: u16) -> Option<Terminal> {
    let mut command = command(line);
    command.env("LC_ALL", "C.UTF-8");
    Terminal::start(&command, width, height)
}

fn fixture(name: &str) -> String {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/recordings");
    format!("{fixtures}/{name}")
}

/// Whether the axis begins at least three seconds ago, by the time of day.
fn has_three_columns(screen: &str) -> bool {
    let second = |text: &str| -> Option<i64> {
        let fields: Vec<i64> = text.split(':').map_while(|field| field.parse().ok()).collect();
        matches!(fields[..], [_, _, _]).then(|| fields[0] * 3600 + fields[1] * 60 + fields[2])
    };
    let now = screen.lines().next().and_then(|line| line.split_whitespace().rev().find_map(second));
    let axis = screen.lines().find(|line| line.contains(" a column"));
    let start = axis.and_then(|line| line.split_whitespace().find_map(second));
    now.zip(start).is_some_and(|(now, start)| (now - start).rem_euclid(86_400) >= 3)
}

#[test]
fn the_machine_is_shown_live_and_its_history_by_keys() {
    let Some(mut top) = on_terminal("top", 100, 30) else {
        return;
    };
    let screen = top.until("the whole machine");
    assert!(screen.starts_with(" terrace top: the whole machine"), "{screen}");
    top.until(" live: the last ");
    let screen = top.until_so("lanes of memory", |screen| screen.contains(" memory memory used"));
    assert!(screen.contains(" a column"), "{screen}");
    // Three columns at least, so that one can go back.
    top.until_so("three columns", has_three_columns);
    top.keys(LEFT);
    top.until_so("a moment of the past", |screen| {
        ["Live goes on; End returns", "▼", " then"].iter().all(|words| screen.contains(words))
    });
    top.keys(HOME);
    top.until_so("at the oldest moment", |screen| {
        screen.contains(" ago, the 1 s before it") || screen.contains(" ago, the 900 ms before it")
    });
    top.keys(END);
    top.until(" live: the last ");
    top.keys(" ");
    top.until(" ago, the ");
    top.keys(" ");
    top.until(" live: the last ");
    top.keys("\t");
    top.until(" Who waits");
    top.keys("?");
    top.until("one column of time back and on");
    top.keys("?q");
    top.ended(0);
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    for end in ["q", "\x1b", CTRL_C] {
        let Some(mut top) = on_terminal("top", 80, 24) else {
            return;
        };
        top.until("live");
        top.keys(end);
        top.ended(0);
    }
    for signal in ["INT", "TERM", "HUP"] {
        let Some(mut top) = on_terminal("top", 80, 24) else {
            return;
        };
        top.until("live");
        top.signal(signal);
        top.ended(0);
    }
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    let Some(mut top) = on_terminal("top", 80, 24) else {
        return;
    };
    top.until("live");
    top.hang_up();
    assert_eq!(top.wait().code(), Some(0));
}

#[test]
fn a_kill_leaves_nothing_behind() {
    let directory = TempDir::new();
    for line in ["top", "top --trace sched"] {
        let mut command = command(line);
        command.env("XDG_RUNTIME_DIR", directory.path());
        command.env("TMPDIR", directory.path()).current_dir(directory.path());
        let instances = || names_in(Path::new("/sys/kernel/tracing/instances"));
        let run = || names_in(Path::new("/run/terrace"));
        let Some(mut top) = Terminal::start(&command, 80, 24) else {
            return;
        };
        let before = instances();
        top.until("live");
        let sockets = run().into_iter().filter(|name| name.contains(&top.child.id().to_string()));
        assert_eq!(sockets.count(), 0);
        top.signal("KILL");
        assert_eq!(top.wait().code(), None);
        assert_eq!(directory.names(), [""; 0]);
        assert_eq!(instances(), before);
    }
}

/// The names in a directory; none where it is not there.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn it_follows_the_size_of_its_terminal() {
    let Some(mut top) = on_terminal(&format!("top {}", fixture("cold_read.trec")), 80, 24) else {
        return;
    };
    top.until("q quit");
    for (width, height) in [(40, 12), (200, 60), (60, 18), (39, 5), (120, 40), (10, 2), (80, 24)] {
        top.resize(width, height);
        let last = usize::from(height) - 1;
        top.until_so(&format!("drawn for {width} x {height}"), |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            lines.len() == last + 1 && lines[last].starts_with(" q quit")
        });
    }
    top.keys("q");
    top.ended(0);
}

#[test]
fn a_recording_shows_what_explain_says_of_it() {
    let path = fixture("swap_random.trec");
    let Some(mut top) = on_terminal(&format!("top {path}"), 200, 60) else {
        return;
    };
    let explained = support::valid_explanation(&terrace(&format!("explain --json {path}")).done());
    let claim = |index: usize| {
        let claim = explained["findings"][index]["claim"].as_str().unwrap();
        claim.trim_end_matches('.').to_owned()
    };
    let screen = top.until(&format!("> 1 {}", claim(0)));
    assert!(screen.contains(" swap_random.trec") || screen.contains("top: swap_random.trec"));
    assert!(screen.contains(": all of "), "{screen}");
    assert!(explained["findings"].as_array().unwrap().len() > 1);
    top.keys(DOWN);
    top.until("> 2 ");
    top.keys(UP);
    top.until("> 1 ");
    top.keys(LEFT);
    top.until(" before it. End: all of it");
    top.keys("q");
    top.ended(0);
}

#[test]
fn one_that_is_being_written_is_followed_to_its_end() {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    let mut record = command(&format!("record -o {}", file.display()));
    record.stdout(Stdio::null()).stderr(Stdio::null());
    let mut recording = Guarded(Some(record.spawn().unwrap()));
    while file.metadata().map_or(true, |about| about.len() == 0) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let Some(mut top) = on_terminal(&format!("top {}", file.display()), 100, 30) else {
        return;
    };
    top.until(" live: the last ");
    top.until_so("three columns", has_three_columns);
    support::terminate(recording.0.take().unwrap());
    top.until(" stopped: all of ");
    top.keys("q");
    top.ended(0);
}

#[test]
fn a_flight_recorder_s_directory_opens_too() {
    let directory = TempDir::new();
    let ring = directory.join("ring");
    let path = ring.display();
    terrace(&format!("record --keep 1h --for 2s -o {path}")).done();
    let Some(mut top) = on_terminal(&format!("top {path}"), 80, 24) else {
        return;
    };
    top.until(": all of ");
    top.keys("q");
    top.ended(0);
}

#[test]
fn a_process_that_ends_stays_on_the_screen() {
    let child = Command::new("sleep").arg("600").spawn().unwrap();
    let line = format!("top --pid {}", child.id());
    let child = Guarded(Some(child));
    let Some(mut top) = on_terminal(&line, 80, 24) else {
        return;
    };
    top.until("live: the last ");
    drop(child);
    top.until(": all of ");
    top.keys("q");
    top.ended(0);
}

#[test]
fn processes_are_sorted_filtered_and_looked_at_back_in_time() {
    let directory = TempDir::new();
    let file = directory.join("who.trec");
    with_who(&file);
    let Some(mut top) = on_terminal(&format!("top {}", file.display()), 160, 50) else {
        return;
    };
    let screen = top.until("unit or group");
    assert!(screen.contains(" CPU▼ ") && screen.contains("backup.service"), "{screen}");
    // A name of others is text, whatever it holds.
    top.keys("/31mx");
    top.until_so("the one process", |screen| {
        screen.contains("with \"31mx_\" in their name") && screen.contains(r" <b>\x1b[31mx ")
    });
    top.keys("\x1b");
    // Before the next key, which would make one of both.
    top.until_so("no filter", |screen| {
        screen.contains(" 812 backup") && !screen.contains("in their name")
    });
    top.keys(">>>");
    top.until("read/s▼");
    top.keys("r");
    top.until("read/s▲");
    top.keys("r/scope");
    top.until("with \"scope_\" in their name or group");
    top.keys("\r");
    let screen = top.until("with \"scope\" in their name or group");
    assert!(!screen.contains(" 812 backup"), "{screen}");
    top.keys("/\x1b");
    top.until_so("all again", |screen| screen.contains(" 812 backup"));
    // The first second: compilers, and no backup yet.
    top.keys(HOME);
    top.until_so("without the backup", |screen| {
        screen.contains("before it. End: all") && !screen.contains(" 812 backup")
    });
    top.keys("p");
    top.until_so("processes alone", |screen| !screen.contains(" a column"));
    top.keys("q");
    top.ended(0);
}

#[test]
fn without_colour_and_blocks_it_is_plain() {
    for (line, no_color) in [("--color never top", ""), ("top", "1")] {
        let mut command = command(&format!("{line} {}", fixture("cold_read.trec")));
        command.env("LC_ALL", "C").env("NO_COLOR", no_color);
        let Some(mut top) = Terminal::start(&command, 80, 24) else {
            return;
        };
        top.until("q quit");
        top.keys("q");
        top.ended(0);
        assert!(top.written.is_ascii());
        let written = String::from_utf8(top.written.clone()).unwrap();
        let sequences = written.split("\x1b[").skip(1);
        for sequence in sequences.filter_map(|rest| rest.split_once('m').map(|(codes, _)| codes)) {
            let codes = sequence.split(';').filter_map(|code| code.parse::<u32>().ok());
            let colours = codes.filter(|code| (30..39).contains(code) || (40..49).contains(code));
            assert!(
                !sequence.bytes().all(|b| b.is_ascii_digit() || b == b';') || colours.count() == 0,
                "{sequence}"
            );
        }
    }
}

#[test]
fn an_ordinary_user_sees_what_may_be_seen_and_what_not() {
    let Some(mut command) = as_ordinary_user("top") else {
        return;
    };
    command.env("LC_ALL", "C.UTF-8");
    let Some(mut top) = Terminal::start(&command, 100, 30) else {
        return;
    };
    top.until("Cannot be seen without root (why: `terrace doctor`): ");
    top.until(" memory memory used");
    top.keys("q");
    top.ended(0);
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    terrace("top").refused(2, "it needs a terminal");
    terrace("top x.trec --pid 1").refused(2, "--pid");
    terrace("top x.trec --rate 10").refused(2, "--rate");
    if !has_program("script") {
        return;
    }
    // Refused before the terminal is touched.
    let line = format!("{} top /dev/null", support::TERRACE);
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]);
    let ran = run(script);
    assert!(ran.out.contains("terrace: top: ") && !ran.out.contains('\x1b'), "{ran:?}");
}

/// One screen as text, of what goes on here and of a recording, whose axis has the time of day.
#[test]
fn one_screen_is_printed_without_a_terminal() {
    let here = support::terrace("top --once --trace none").done();
    assert!(here.lines().count() > 10 && !here.contains('\u{1b}'), "{here}");
    assert!(here.contains("now"), "{here}");
    let directory = TempDir::new();
    let file = directory.join("x.trec").to_string_lossy().into_owned();
    support::terrace(&format!("record --for 1s -o {file}")).done();
    let whole = support::terrace(&format!("top {file} --once")).done();
    let json = support::terrace(&format!("export {file} --to csv --columns time")).done();
    let last = json.lines().last().unwrap();
    let (minute, _) = last.split_once('T').unwrap().1.split_at("14:32".len());
    assert!(whole.contains(minute), "{minute}: {whole}");
}
