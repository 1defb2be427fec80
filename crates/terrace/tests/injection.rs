//! Text of other users on a terminal: recordings and surveys with control characters in every
//! field, and real processes, groups, mounts and files with such names. Nothing that a terminal
//! obeys leaves Terrace but the colours that it paints itself, and no markup leaves in Markdown.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;
// Only written to here, and never typed at.
#[allow(dead_code)]
#[path = "support/terminal.rs"]
mod terminal;

use model::recording::{Ending, Facts, Recording, RecordingOutcome, Schema, Span, Task};
use record::Row;
use record::file::Writer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use support::pages::fixture;
use support::{TERRACE, has_program, run};
use terminal::Terminal;
use testkit::{Cgroup, TempDir, skip};

/// What a terminal obeys in its several forms, what turns and ends lines, marks of Terrace's own
/// colours, and markup.
const POISON: &str = "\x1b]0;PWN\x07\x1b[31mE\r\n\x7f\u{9b}2JB\u{202e}I\u{2066}\u{2028}\u{feff}\u{200f}\
                      \u{fdd0}\u{fdd3}<img src=x onerror=alert(1)></script>";

/// What Terrace paints with.
const COLOURS: [&str; 8] = ["0", "1", "2", "32", "33", "35", "36", "7"];

/// Whether a terminal would take it for more than a sign.
fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || "\u{61c}\u{200e}\u{200f}\u{feff}".contains(letter)
        || ('\u{2028}'..='\u{202e}').contains(&letter)
        || ('\u{2066}'..='\u{2069}').contains(&letter)
        || ('\u{fdd0}'..='\u{fdef}').contains(&letter)
}

#[track_caller]
fn assert_clean(what: &str, text: &str) {
    let found = text.find(|letter| letter != '\n' && is_obeyed(letter));
    if let Some(at) = found {
        let from = text[..at].rfind('\n').unwrap_or(0);
        let line: String = text[from..].chars().take(300).collect();
        panic!("{what}: {line:?}");
    }
}

/// The text without the colours of Terrace.
fn without_colours(text: &str) -> String {
    let mut text = text.to_owned();
    for code in COLOURS {
        text = text.replace(&format!("\x1b[{code}m"), "");
    }
    text
}

/// What a run printed, on both outputs; invalid UTF-8 is a fault.
fn printed(words: &[&str]) -> String {
    let output = Command::new(TERRACE).args(words).stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8(text).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// Runs it with and without colour; what it printed without.
#[track_caller]
fn clean(words: &[&str]) -> String {
    let with = |color| {
        let mut all = vec!["--color", color];
        all.extend(words);
        printed(&all)
    };
    let plain = with("never");
    assert_clean(&format!("{words:?}"), &plain);
    let coloured = without_colours(&with("always"));
    assert_clean(&format!("{words:?} in colour"), &coloured);
    plain
}

/// `value` with poison in every string that is not the name of a variant.
fn poison(value: &mut Value) {
    match value {
        Value::String(text) => text.push_str(POISON),
        Value::Array(values) => values.iter_mut().for_each(poison),
        Value::Object(fields) => {
            let kinds = ["kind", "state", "schema", "fingerprint", "grade", "unit"];
            let fields = fields.iter_mut().filter(|(name, _)| !kinds.contains(&name.as_str()));
            fields.for_each(|(_, value)| poison(value));
        }
        _ => {}
    }
}

/// The same with poison; itself where a variant without a field called `kind` cannot take it.
fn poisoned<T: Serialize + DeserializeOwned + Clone>(clean: &T) -> T {
    let mut value = serde_json::to_value(clean).unwrap();
    poison(&mut value);
    serde_json::from_value(value).unwrap_or_else(|_| clean.clone())
}

/// Which strings are poisoned: names of series lead to rules, so with poison in them none applies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Where {
    /// All but the names and units of series.
    Facts,
    /// Those too.
    Series,
}

/// The facts of `recording` with poison, of one that was `is_killed` also in what was not seen.
fn poisoned_facts(recording: &Recording, is_killed: bool) -> Facts {
    let mut facts: Facts = recording.facts.clone();
    facts.redacted = false;
    let mut facts = poisoned(&facts);
    if is_killed {
        let mut value = serde_json::to_value(&facts).unwrap();
        let sights = value["sights"].as_object_mut().unwrap().values_mut();
        sights.for_each(|sight| {
            *sight = json!({ "state": "closed", "why": POISON, "remedy": POISON })
        });
        facts = serde_json::from_value(value).unwrap();
    }
    facts
}

/// Writes `recording` anew with poison.
fn write_poisoned(recording: &Recording, out: &Path, at: Where, is_killed: bool) {
    let facts = poisoned_facts(recording, is_killed);
    let schema = |schema: &Schema| {
        let mut schema = schema.clone();
        schema.source.push_str(POISON);
        if at == Where::Series {
            schema.name.push_str(POISON);
            schema.unit.push_str(POISON);
        }
        schema
    };
    let series = &recording.series;
    let schemas: Vec<Schema> = series.iter().map(|series| schema(&series.schema)).collect();
    let mut writer = Writer::new(fs::File::create(out).unwrap(), &facts).unwrap();
    for (sample, tick) in (0..).zip(&recording.ticks) {
        let mut row = Row::default();
        for (id, series) in (0..).zip(series) {
            series.at(sample).into_iter().for_each(|value| row.set(id, value));
        }
        writer.sample(*tick, &schemas, &row).unwrap();
    }
    for kind in [
        "mark",
        "rate",
        "clock_jump",
        "device_added",
        "device_removed",
        "group_changed",
        "events_stopped",
        "gap",
        "progress",
        "imported",
        "weird",
    ] {
        let text = format!("text{POISON}");
        let (kind, start_ns, end_ns) = (kind.to_owned(), 1_000, 2_000);
        writer.span(&Span { kind, text, start_ns, end_ns }).unwrap();
    }
    let comm = |task: &Task| {
        let mut task = task.clone();
        task.comm.push_str(POISON);
        task
    };
    let tasks: Vec<Task> = recording.tasks.iter().map(comm).collect();
    writer.tasks(&tasks).unwrap();
    let mut outcome: RecordingOutcome = recording.outcome.clone().unwrap();
    if is_killed {
        outcome.stopped_early = Some(format!("disk full{POISON}"));
        let out_of_memory = Some(format!("group /x{POISON}"));
        outcome.ending = Ending::Killed { signal: 9, out_of_memory };
    }
    writer.finish(&facts, &outcome).unwrap();
}

/// No element of HTML, and no code that would let one through.
#[track_caller]
fn assert_no_markup(what: &str, text: &str) {
    // In code it is text.
    let outside: String = text.split('`').step_by(2).collect();
    for never in ["<img", "<script", "</script"] {
        assert!(!outside.contains(never), "{what}: {text}");
    }
}

#[test]
fn hostile_recordings_print_nothing_that_a_terminal_obeys() {
    let directory = TempDir::new();
    let folder = fixture("x");
    let mut files: Vec<PathBuf> = fs::read_dir(folder.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "trec"));
    files.sort();
    let mut escaped = 0;
    for (number, file) in files.iter().enumerate() {
        let recording = record::file::open(file).unwrap();
        let combinations = [(Where::Facts, false), (Where::Facts, true), (Where::Series, true)];
        for (at, is_killed) in combinations {
            // One after the other of the slower ones is enough for the rarer kinds.
            if at == Where::Series && number % 4 != 0 {
                continue;
            }
            let path = directory.join("x.trec");
            write_poisoned(&recording, &path, at, is_killed);
            let path = path.to_str().unwrap();
            for words in
                [&["explain", path][..], &["explain", "--details", path], &["compare", path, path]]
            {
                let text = clean(words);
                escaped += usize::from(text.contains("\\x1b") || text.contains("PWN"));
            }
            let markdown = clean(&["compare", "--markdown", path, path]);
            assert_no_markup("compare", &markdown);
            let claim = format!("swap{POISON}");
            let proof = clean(&["proof", path, path, "--claim", &claim]);
            assert_no_markup("proof", &proof);
            for words in [&["explain", "--json", path][..], &["compare", "--json", path, path]] {
                let text = clean(words);
                let _: Value = serde_json::from_str(&text).unwrap();
            }
        }
    }
    assert!(escaped > files.len(), "the poison was printed, as escapes: {escaped}");
}

#[test]
fn hostile_surveys_print_nothing_that_a_terminal_obeys() {
    let directory = TempDir::new();
    let mut survey: Value = serde_json::from_str(include_str!("fixtures/survey.json")).unwrap();
    for tier in survey["tiers"].as_array_mut().unwrap() {
        poison(&mut tier["name"]);
    }
    poison(&mut survey["machine"]);
    for finding in survey["findings"].as_array_mut().unwrap() {
        let names = ["claim", "remedy", "tier", "confirm"];
        let fields = finding.as_object_mut().unwrap().iter_mut();
        fields
            .filter(|(name, _)| names.contains(&name.as_str()))
            .for_each(|(_, value)| poison(value));
    }
    let file = directory.join("s.json");
    fs::write(&file, survey.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let text = clean(&["compare", file, file]);
    assert!(text.contains("PWN"), "{text}");
    assert_no_markup("compare", &clean(&["compare", "--markdown", file, file]));
    let _: Value = serde_json::from_str(&clean(&["compare", "--json", file, file])).unwrap();
}

/// Errors, refusals and the lines about a file name it.
#[test]
fn hostile_names_of_files_and_words_are_shown_as_escapes() {
    let directory = TempDir::new();
    let name = directory.join("a\x1b[31m\u{9b}2J\u{202e}\n.trec");
    fs::copy(fixture("cold_read"), &name).unwrap();
    let (name, absent) = (name.to_str().unwrap(), format!("{}x", name.display()));
    for words in [
        &["explain", name][..],
        &["explain", &absent],
        &["compare", name, name],
        &["compare", name, &absent],
        &["view", &absent],
        &["export", &absent, "--to", "csv"],
        &["warm", "evict", name],
        &["warm", "restore", name],
        &["measure", "seqio", &format!("{absent}/x")],
        &["record", "--pid", "1", "-o", &format!("{absent}/x")],
        &["run", "-o", &format!("{absent}/x"), "--", "true"],
        &["run", "--", &absent],
        &["survey", name],
        &["measure", "memcpy", name],
        &["--color", name],
        &[name],
        &["top", name],
    ] {
        let text = clean(words);
        let lines = text.lines().filter(|line| line.starts_with("terrace: ")).count();
        assert!(lines <= 1, "{text}");
    }
    let text = clean(&["explain", name]);
    // What is to be copied says the same to a shell, and stays in its line.
    assert!(text.contains("a\\x1b[31m\\xc2\\x9b2J\\xe2\\x80\\xae\\x0a.trec'"), "{text}");
    let text = clean(&["explain", &absent]);
    assert!(text.contains("a\\x1b[31m\\u{9b}2J\\u{202e}"), "{text}");
}

/// An export goes to a terminal if it is sent nowhere else.
#[test]
fn data_on_a_terminal_is_clean_too() {
    let directory = TempDir::new();
    let path = directory.join("x.trec");
    let recording = record::file::open(&fixture("fsync_storm")).unwrap();
    write_poisoned(&recording, &path, Where::Series, false);
    for form in ["json", "csv", "openmetrics"] {
        let mut command = Command::new(TERRACE);
        command.args(["export", "--no-redact", "--to", form]).arg(&path);
        let Some(mut terminal) = Terminal::start(&command, 80, 24) else {
            return;
        };
        terminal.ended(0);
        let written = String::from_utf8(terminal.written.clone()).unwrap();
        // The terminal itself makes CR LF of an end of a line.
        let text = written.replace("\r\n", "\n").replace('\t', " ");
        assert!(text.contains("PWN"), "{form}");
        assert_clean(form, &text);
    }
}

/// A process with the longest hostile name that there can be, of another user.
#[test]
fn the_name_of_a_process_reaches_no_terminal() {
    if !testkit::is_root() || !has_program("setpriv") || !has_program("bash") {
        skip("root, setpriv and bash");
        return;
    }
    let directory = TempDir::new();
    fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .unwrap();
    let ready = directory.join("ready");
    let script = "printf '\\033[2J\\033]0;P\\a\\233X' > /proc/self/comm; x=$(head -c 4194304 /dev/zero | tr '\\0' a); \
                  echo > \"$0\"; read -r _";
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", script]);
    command.arg(&ready).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let hostile = support::Started(command.spawn().unwrap());
    let is_ready = (0..1_000).any(|_| {
        sleep(Duration::from_millis(10));
        ready.exists()
    });
    assert!(is_ready);
    let pid = hostile.pid().to_string();
    let text = clean(&["warm", "show", "--pid", &pid]);
    assert!(text.contains("\\x1b[2J\\x1b]0;P\\x07"), "{text}");
    let text = clean(&["warm", "show", "--json", "--pid", &pid]);
    let _: Value = serde_json::from_str(&text).unwrap();
}

/// A command that reaches the limit of a group with a hostile name.
#[test]
fn the_name_of_a_group_reaches_no_terminal() {
    let group = match Cgroup::v1_memory(256 << 20) {
        Ok(group) => group,
        Err(need) => return skip(need),
    };
    let hostile = group.path().join("sec\x1b]0;PWN\x07\u{9b}2J");
    struct Removed(PathBuf);
    impl Drop for Removed {
        fn drop(&mut self) {
            // Groups of a recorder that was killed with its test would be left in it.
            let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.path().is_dir());
            folders.for_each(|entry| drop(fs::remove_dir(entry.path())));
            let _ = fs::remove_dir(&self.0);
        }
    }
    fs::create_dir(&hostile).unwrap();
    let _removed = Removed(hostile.clone());
    fs::write(hostile.join("memory.limit_in_bytes"), (24 << 20).to_string()).unwrap();
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    let script = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(&hostile).arg(TERRACE);
    command.args(["--color", "always", "run", "--details", "-o"]).arg(&file);
    let big = format!("of={}", directory.join("big").display());
    command.args(["--", "dd", "if=/dev/zero", "bs=1M", "count=96", "status=none", &big]);
    let ran = run(command);
    assert_clean("run", &without_colours(&ran.err));
    let file = file.to_str().unwrap();
    let text = clean(&["explain", "--details", file]);
    assert!(text.contains("sec\\x1b]0;PWN"), "{text}");
}

/// A mount that another user may have made, and a file in it.
#[test]
fn the_path_of_a_mount_reaches_no_terminal() {
    if !testkit::is_admin() {
        skip("root that may mount");
        return;
    }
    let directory = TempDir::new();
    let place = directory.join("m\x1b]0;PWN\x07\u{202e}x");
    fs::create_dir(&place).unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "none"]).arg(&place).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return skip("to mount a tmpfs");
    }
    struct Mounted(PathBuf);
    impl Drop for Mounted {
        fn drop(&mut self) {
            // Lazily: what watched a command may hold its mounts a moment longer.
            let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        }
    }
    let mounted = Mounted(place.clone());
    let file = place.join("f\x1b[2J");
    fs::write(&file, [7; 65_536]).unwrap();
    let (file, folder) = (file.to_str().unwrap(), place.to_str().unwrap());
    let text = clean(&["warm", "evict", file]);
    assert!(text.contains("\\x1b]0;PWN\\x07\\u{202e}x"), "{text}");
    let recording = place.join("x.trec");
    let trec = recording.to_str().unwrap();
    clean(&[
        "run",
        "-o",
        trec,
        "--force",
        "--",
        "dd",
        "if=/dev/zero",
        "bs=64k",
        "count=1",
        "conv=fsync",
        &format!("of={file}"),
    ]);
    clean(&["explain", "--details", trec]);
    clean(&["measure", "iolat", folder, "--budget", "100ms"]);
    drop(mounted);
    assert!(place.as_os_str().as_bytes().contains(&0x1b));
}

/// A process and the file that it writes, both named by programs in the kernel.
#[test]
fn names_from_inside_the_kernel_reach_no_terminal() {
    let directory = TempDir::new();
    // A program is named by the link that it was started by.
    let program = directory.join("\x1b[31m\n<b>H");
    let bash = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|path| Path::new(path).exists());
    let Some(bash) = bash.filter(|_| testkit::is_root()) else {
        return skip("root and bash");
    };
    std::os::unix::fs::symlink(bash, &program).unwrap();
    let mut command = Command::new(&program);
    // It computes between its writes, so as to keep no device busy.
    let script =
        "while :; do for ((i=0; i<20000; i++)); do :; done; printf %65536s x > \"$0\"; done";
    command.args(["-c", script]);
    command.arg(directory.join("f\x1b[2J\n<b>G")).stdin(Stdio::null());
    let hostile = support::Started(command.spawn().unwrap());
    let (trec, page) = (directory.join("x.trec"), directory.join("x.html"));
    let (trec, page) = (trec.to_str().unwrap(), page.to_str().unwrap());
    assert_clean("record", &printed(&["record", "--for", "1s", "-o", trec]));
    drop(hostile);
    let who = record::file::open(Path::new(trec)).unwrap().who;
    if !who.processes.iter().any(|process| process.name == "\x1b[31m\n<b>H") {
        return skip("programs in the kernel");
    }
    let is_file = |path: &str| path.ends_with("f\x1b[2J\n<b>G");
    assert!(who.files.iter().any(|file| file.path.as_deref().is_some_and(is_file)));
    // Sentences are broken into lines where a word ends.
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    clean(&["explain", trec]);
    // Files are named only where something waited for a device; the process is in any case.
    let details = one_line(&clean(&["explain", "--details", trec]));
    assert!(details.contains("\\x1b[31m <b>H"), "{details}");
    let exported = |form| printed(&["export", "--no-redact", "--to", form, trec]);
    let json = exported("json");
    // What a terminal gets of data is another test's; the names of other tests may be here too.
    assert!(!json.contains('\x1b'));
    let value: Value = serde_json::from_str(&json).unwrap();
    let names = value["who"]["processes"].as_array().unwrap();
    assert!(names.iter().any(|process| process["name"] == "\x1b[31m\n<b>H"));
    let metrics = exported("openmetrics");
    assert!(!metrics.contains('\x1b'));
    // A name that ended its line would begin one that is neither comment nor metric.
    let is_whole = |line: &str| line.starts_with('#') || line.starts_with("terrace_");
    let broken = metrics.lines().find(|line| !is_whole(line));
    assert_eq!(broken, None);
    // Its strings have a length and no end, and nothing else reads them.
    let words = ["export", "--no-redact", "--to", "perfetto", trec];
    let trace = Command::new(TERRACE).args(words).output().unwrap();
    let name = b"\x1b[31m\n<b>H";
    assert!(trace.status.success() && trace.stdout.windows(name.len()).any(|it| it == name));
    assert_clean("view", &printed(&["view", "--html", page, trec]));
    let html = fs::read_to_string(page).unwrap();
    for never in ["<b>H", "<b>G", "\x1b[31m", "\x1b[2J"] {
        assert!(!html.contains(never), "{never:?}");
    }
}
