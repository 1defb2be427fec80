//! `terrace compare` and `terrace run --against`: real runs that differ in a known way are found
//! apart and the cause is named, equal ones are not; what cannot be compared is refused.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{run, run_command, schema_complaint, terrace};
use testkit::{TempDir, is_root, skip};

const SCHEMA: &str = include_str!("../../../docs/compare.schema.json");
const RECORDED: &str = include_str!("fixtures/survey.json");

/// How often a comparison is made anew before it is believed to be wrong: one in twenty of equal
/// things may be called different, and a machine under load holds runs up.
const TRIES: u32 = 3;

/// A comparison as JSON that the schema accepts and whose parts add up.
#[track_caller]
fn valid(text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(schema_complaint(SCHEMA, &value), None, "{text}");
    if let Some(split) = value["split"].as_object() {
        let parts = split["parts"].as_array().unwrap();
        let slices = parts.iter().filter(|part| part["within"].is_null());
        let sum: f64 = slices.map(|part| part["difference_ns"].as_f64().unwrap()).sum();
        let whole = split["difference_ns"].as_f64().unwrap();
        assert!((sum - whole).abs() < 10.0, "{sum} {whole}");
    }
    value
}

/// `run --against second` with these options; the comparison, the exit status must be 0.
#[track_caller]
fn against(directory: &TempDir, second: &str, options: &[&str], first: &[&str]) -> Value {
    let file = directory.join("comparison.json");
    let json = file.to_str().unwrap();
    let all = [&["--against", second, "--json", json, "--quiet"], options].concat();
    let ran = run(run_command(&all, first));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    valid(&fs::read_to_string(json).unwrap())
}

fn wall(comparison: &Value) -> &str {
    assert_eq!(comparison["items"][0]["of"], "wall");
    comparison["items"][0]["verdict"].as_str().unwrap()
}

/// A file of 64 MiB on a disk, in the page cache.
fn on_disk() -> (TempDir, PathBuf) {
    let directory = TempDir::in_dir(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let file = directory.join("data");
    fs::write(&file, vec![7u8; 64 << 20]).unwrap();
    let synced = fs::File::open(&file).unwrap().sync_all();
    synced.unwrap();
    (directory, file)
}

fn reads(file: &Path, more: &str) -> Vec<String> {
    let line = format!("dd if={} of=/dev/null bs=16k status=none {more}", file.display());
    line.split_whitespace().map(str::to_owned).collect()
}

/// Whether what was seen of the runs has a slice for the device at all.
fn sees_the_device(report: &Value) -> bool {
    let mut parts = report["split"]["parts"].as_array().unwrap().iter();
    parts.any(|part| part["name"] == "block_io")
}

/// Whether the second takes longer, and waits for the device are a proven part of that. On a busy
/// machine waiting for a processor may be another.
fn blames_the_device(report: &Value) -> bool {
    let mut parts = report["split"]["parts"].as_array().unwrap().iter();
    let device = parts.find(|part| part["name"] == "block_io").unwrap();
    wall(report) == "larger" && device["verdict"] == "larger"
}

/// Reads past the page cache wait for the device, reads from it do not: the difference is
/// block I/O, and every run is kept to be compared again.
#[test]
fn real_reads_are_named_as_the_cause() {
    if !is_root() {
        return skip("root, to see who waits for a device");
    }
    let (directory, file) = on_disk();
    let direct = reads(&file, "iflag=direct");
    let works = Command::new(&direct[0]).args(&direct[1..]).status();
    if !works.is_ok_and(|status| status.success()) {
        return skip("a file system with direct I/O");
    }
    let words = reads(&file, "");
    let cached: Vec<&str> = words.iter().map(String::as_str).collect();
    let kept = directory.join("x.trec");
    let options = ["--runs", "6", "--force", "-o", kept.to_str().unwrap()];
    let mut tries = (0..TRIES).map(|_| against(&directory, &direct.join(" "), &options, &cached));
    if !sees_the_device(&against(&directory, &direct.join(" "), &options, &cached)) {
        return skip("delay accounting or events, to see who waits for a device");
    }
    let blaming = tries.find(blames_the_device);
    let report = blaming.expect("no comparison blamed the device");
    let sentence = report["sentence"].as_str().unwrap();
    assert!(sentence.contains("of that, ") && sentence.contains("block I/O"), "{sentence}");
    again_from_files(&directory, &report);
}

/// The kept recordings, compared as files: the same figures; a gate that fails and one that
/// does not; Markdown.
fn again_from_files(directory: &TempDir, report: &Value) {
    let files = |side: &str| {
        let paths = (1..=6).map(|run| directory.join(format!("x.{side}.{run}.trec")));
        let names: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        names.join(" ")
    };
    let (first, second) = (files("first"), files("second"));
    let line = |options: &str, a: &str, b: &str| {
        terrace(&format!("compare {options} --first {a} --second {b}"))
    };
    let again = valid(&line("--json", &first, &second).done());
    assert_eq!(again["items"], report["items"]);
    let failed = line("--fail-if worse:5%", &first, &second);
    assert_eq!(failed.code, Some(4), "{failed:?}");
    assert!(failed.err.contains("the wall time is"), "{failed:?}");
    assert!(failed.out.contains("larger, worse"), "{failed:?}");
    line("--fail-if worse:5%", &second, &first).done();
    let markdown = line("--markdown", &first, &second).done();
    assert!(markdown.contains("| block I/O |"), "{markdown}");
    // One of each: nothing is proven, and it says what differs all the same.
    let one = |side: &str| directory.join(format!("x.{side}.2.trec")).display().to_string();
    let pair = format!("compare --fail-if worse:5% {} {}", one("first"), one("second"));
    let page = terrace(&pair).done();
    assert!(page.contains("Unproven: one run each.") && page.contains("block I/O"), "{page}");
}

#[test]
fn a_command_does_not_differ_from_itself_and_a_longer_one_does() {
    let directory = TempDir::new();
    let options = ["--runs", "6"];
    let equal =
        |_| wall(&against(&directory, "sleep 0.05", &options, &["sleep", "0.05"])) == "unproven";
    assert!((0..TRIES).any(equal));
    // One run that the host holds up leaves six against six unproven.
    let mut tries =
        (0..TRIES).map(|_| against(&directory, "sleep 0.5", &options, &["sleep", "0.05"]));
    let is_longer = |compared: &Value| {
        println!("{compared:#}");
        wall(compared) == "larger"
    };
    let longer = tries.find(is_longer).unwrap();
    assert!(longer["sentence"].as_str().unwrap().contains("longer ("), "{longer:#}");
    assert_eq!(longer["first"]["runs"], 6, "the warming run does not count");
}

#[test]
fn the_page_is_printed_and_the_commands_keep_their_output() {
    let ran = run(run_command(&["--against", "echo 'b c'", "--runs", "4"], &["echo", "a"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // The warming runs first; then the order rotates.
    let said: Vec<&str> = ran.out.lines().collect();
    assert_eq!(said, ["a", "b c", "b c", "a", "a", "b c", "b c", "a", "a", "b c"]);
    assert!(ran.err.starts_with("-- terrace compare ---"), "{ran:?}");
    assert!(ran.err.contains("Where the difference is:"), "{ran:?}");
}

#[test]
fn a_run_that_fails_ends_it_with_its_status() {
    let ran = run(run_command(&["--against", "sh -c 'exit 7'", "--runs", "4"], &["true"]));
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(ran.err.contains("nothing is compared"), "{ran:?}");
    run(run_command(&["--against", "a | b"], &["true"])).refused(125, "--against");
    let missing = run(run_command(&["--against", "no-such-program-anywhere"], &["true"]));
    assert_eq!(missing.code, Some(127), "{missing:?}");
}

fn recorded(directory: &TempDir, name: &str, script: &str) -> String {
    let file = directory.join(name).display().to_string();
    let options = ["--quiet", "--rate", "100", "-o", &file];
    run(run_command(&options, &["sh", "-c", script])).done();
    file
}

/// The same work with a pause in its midst: by progress the pause stands where it was.
#[test]
fn a_pause_is_found_by_the_work_that_was_done() {
    let directory = TempDir::new();
    let script = |pause: &str| {
        format!(
            "for i in 1 2 3 4 5 6 7 8 9 10; do head -c 1000000 /dev/zero; sleep 0.03; \
             [ $i = 5 ] && sleep {pause}; done | cat >/dev/null; true"
        )
    };
    let even = recorded(&directory, "even.trec", &script("0"));
    let paused = recorded(&directory, "paused.trec", &script("0.7"));
    let line = format!("compare --json --align progress {even} {paused}");
    let report = valid(&terrace(&line).done());
    let sections = report["aligned"]["sections"].as_array().unwrap();
    let longer = |section: &Value| {
        section["second_ns"].as_f64().unwrap() - section["first_ns"].as_f64().unwrap()
    };
    let most =
        (0..10).max_by(|&a, &b| longer(&sections[a]).total_cmp(&longer(&sections[b]))).unwrap();
    assert!((3..=6).contains(&most), "{most}: {report:#}");
    assert!(longer(&sections[most]) > 0.3e9, "{report:#}");
    let page = terrace(&line.replace(" --json", "")).done();
    assert!(page.contains("By the work done, tree."), "{page}");
    let level = format!("compare --align progress:tree.threads {even} {paused}");
    terrace(&level).refused(2, "is a level");
    let none = format!("compare --align progress:no.such {even} {paused}");
    terrace(&none).refused(2, "no.such does not grow");
}

/// A survey's JSON with this start and the latency of RAM times `factor`.
fn survey(directory: &TempDir, start: u64, factor: f64) -> String {
    let mut value: Value = serde_json::from_str(RECORDED).unwrap();
    value["started_unix_s"] = start.into();
    for tier in value["tiers"].as_array_mut().unwrap() {
        if tier["name"] == "RAM" {
            for figure in ["median", "low", "high"] {
                let ns = tier["latency_ns"][figure].as_f64().unwrap();
                tier["latency_ns"][figure] = (ns * factor).into();
            }
        }
    }
    let file = directory.join(format!("{start}.json"));
    fs::write(&file, value.to_string()).unwrap();
    file.display().to_string()
}

fn latency_of<'a>(comparison: &'a Value, tier: &str) -> &'a Value {
    let mut items = comparison["items"].as_array().unwrap().iter();
    let found = items.find(|item| item["of"] == tier && item["name"] == "latency");
    found.unwrap()
}

fn ram(comparison: &Value) -> &Value {
    latency_of(comparison, "RAM")
}

#[test]
fn surveys_are_judged_by_how_sure_they_can_be() {
    let directory = TempDir::new();
    let (plain, slow) = (survey(&directory, 1, 1.0), survey(&directory, 2, 1.6));
    let state = |line: &str| {
        let mut command = support::command(line);
        command.env("XDG_STATE_HOME", directory.path());
        run(command)
    };
    let report = valid(&state(&format!("compare --json {plain} {slow}")).done());
    assert_eq!(
        (&ram(&report)["basis"], &ram(&report)["verdict"]),
        (&"trials".into(), &"larger".into())
    );
    assert!(report["notes"][0].as_str().unwrap().contains("Fewer than 4"), "{report:#}");
    let gate = state(&format!("compare --fail-if worse:5% {plain} {slow}"));
    assert_eq!(gate.code, Some(4), "{gate:?}");
    assert!(gate.err.contains("RAM latency is 60 % worse, more than 5 %"), "{gate:?}");
    state(&format!("compare --fail-if worse:61% {plain} {slow}")).done();
    let sides = |factor: f64, from: u64| {
        let wobble = [0.99, 1.0, 1.01, 1.005, 0.995];
        let files = (from..).zip(wobble).map(|(start, by)| survey(&directory, start, factor * by));
        files.collect::<Vec<_>>().join(" ")
    };
    let line = format!("compare --json --first {} --second {}", sides(1.0, 10), sides(1.2, 20));
    let report = valid(&state(&line).done());
    assert_eq!(
        (&ram(&report)["basis"], &ram(&report)["verdict"]),
        (&"ranks".into(), &"larger".into())
    );
}

/// Two real surveys are kept with the user's knowledge, and only then; what is kept judges.
#[test]
fn real_surveys_are_kept_and_judge_later_ones() {
    let directory = TempDir::new();
    let state = |line: &[&str]| {
        let mut command = Command::new(support::TERRACE);
        command.args(line).env("XDG_STATE_HOME", directory.path());
        command.env_remove("COLUMNS");
        run(command)
    };
    let path = directory.join("a.json");
    let file = path.to_str().unwrap();
    let made = state(&["survey", "--quick", "--json", "-o", file]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.err.contains("kept its figures as 1 of at most 20"), "{made:?}");
    assert!(made.err.contains("--no-keep"), "{made:?}");
    let machine = fs::read_dir(directory.join("terrace/surveys")).unwrap().next().unwrap();
    let place = machine.unwrap().path();
    let kept =
        || fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let text = fs::read_to_string(&kept()[0]).unwrap();
    let survey: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&survey["machine"]["host"], &survey["findings"]),
        (&Value::Null, &Value::Array(vec![]))
    );
    let unkept = state(&["survey", "--quick", "--no-keep", "-o", file, "--json"]);
    assert_eq!((unkept.code, unkept.err.as_str(), kept().len()), (Some(0), "", 1));
    judged_by_kept(&directory, &place, &survey, &state);
}

/// A survey and a slower one, judged by four that are kept as if made before.
fn judged_by_kept(
    directory: &TempDir,
    place: &Path,
    survey: &Value,
    state: &dyn Fn(&[&str]) -> support::Ran,
) {
    for number in 1..=4u64 {
        let mut other = survey.clone();
        other["started_unix_s"] = number.into();
        let file = place.join(format!("{number:012}-1.json"));
        fs::write(file, other.to_string()).unwrap();
    }
    // The nearest level that has a latency; a busy machine may leave some out.
    let mut slower = survey.clone();
    slower["started_unix_s"] = 9.into();
    let mut tiers = slower["tiers"].as_array_mut().unwrap().iter_mut();
    let has_latency = |tier: &&mut Value| tier["latency_ns"]["median"].is_number();
    let tier = tiers.find(has_latency).unwrap();
    let median = tier["latency_ns"]["median"].as_f64().unwrap();
    tier["latency_ns"]["median"] = (median * 1.15).into();
    let tier = tier["name"].as_str().unwrap().to_owned();
    let (a, b) = (directory.join("b.json"), directory.join("c.json"));
    fs::write(&a, survey.to_string()).unwrap();
    fs::write(&b, slower.to_string()).unwrap();
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let report = valid(&state(&["compare", "--json", a, b]).done());
    let item = latency_of(&report, &tier);
    assert_eq!((&item["basis"], &item["verdict"]), (&"kept_runs".into(), &"larger".into()));
}

#[test]
fn what_cannot_be_compared_is_refused_in_one_line() {
    let directory = TempDir::new();
    let file = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let survey = file("survey.json", RECORDED);
    let recording = recorded(&directory, "x.trec", "true");
    for (bad, words) in [
        (file("cut.json", &RECORDED[..RECORDED.len() / 2]), "is no survey"),
        (file("other.json", "{\"schema\": \"terrace.explain/1\"}"), "its schema is not"),
        (file("less.json", "{\"schema\": \"terrace.survey/1\"}"), "missing field"),
        (file("empty", ""), ""),
        (file("words", "no recording"), "cannot read the recording"),
        (recording.clone(), "cannot be compared with a recording"),
        ("/nonexistent".to_owned(), "/nonexistent"),
    ] {
        terrace(&format!("compare {survey} {bad}")).refused(2, words);
    }
    terrace(&format!("compare --align progress {survey} {survey}")).refused(2, "recordings");
    terrace(&format!("compare --first {survey} {recording} --second {survey}"))
        .refused(2, "a side has");
    terrace(&format!("compare {survey}")).refused(2, "");
    terrace("compare --first a").refused(2, "");
    terrace(&format!("compare --fail-if 5% {survey} {survey}")).refused(2, "worse:");
}

/// A recording that was cut opens with what is whole, and the page says so.
/// The JSON in the page's element of this id.
fn embedded(page: &str, id: &str) -> Value {
    let begin = format!("<script type=\"application/json\" id=\"{id}\">");
    let text = page.split_once(&begin).unwrap().1;
    serde_json::from_str(text.split_once("</script>").unwrap().0).unwrap()
}

/// What `compare` prints of two files, and the page that it wrote.
fn paged(options: &str, page: &Path, [first, second]: &[String; 2]) -> (String, String) {
    let line = format!("compare {options} --html {} {first} {second}", page.display());
    (terrace(&line).done(), fs::read_to_string(page).unwrap())
}

#[test]
fn the_page_holds_what_json_says_and_stand_ins_for_names() {
    let directory = TempDir::new();
    let files = ["even", "slower"].map(|name| recorded(&directory, name, "sleep 0.2"));
    let out = directory.join("page.html");
    let page = |options: &str| paged(options, &out, &files);
    let (report, whole) = page("--json --no-redact");
    assert_eq!(embedded(&whole, "compare"), valid(&report));
    let (report, redacted) = page("--json");
    let (mut shown, report) = (embedded(&redacted, "compare"), valid(&report));
    assert!(!redacted.contains("slower") && !redacted.contains("sleep 0.2"));
    assert_eq!(shown["first"]["name"], embedded(&redacted, "view")["explain"]["subject"]);
    for side in ["first", "second"] {
        assert_ne!(shown[side], report[side]);
        shown[side] = report[side].clone();
    }
    assert_eq!(shown, report);
    terrace("compare --html - a b").refused(2, "the page goes to a file");
    terrace("compare --no-redact a b").refused(2, "--html");
    terrace("view --align progress a").refused(2, "FILE2");
}

/// Takes the fields with these names out of a value, at any depth.
fn remove(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            fields.values_mut().for_each(|value| remove(value, names));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| remove(value, names)),
        _ => {}
    }
}

#[test]
fn the_page_of_surveys_holds_them_and_no_names() {
    let directory = TempDir::new();
    let files = [survey(&directory, 1, 1.0), survey(&directory, 2, 1.5)];
    let out = directory.join("page.html");
    let page = |options: &str| paged(options, &out, &files);
    let (report, whole) = page("--json --no-redact");
    assert_eq!(embedded(&whole, "compare"), valid(&report));
    let given: Value = serde_json::from_str(&fs::read_to_string(&files[1]).unwrap()).unwrap();
    let mut tiers = embedded(&whole, "survey-2")["tiers"].clone();
    // A survey of before does not say it.
    remove(&mut tiers, &["covers", "runs"]);
    assert_eq!(tiers, given["tiers"]);
    assert!(whole.contains("/srv/archive") && whole.contains("db-3"));
    let (_, redacted) = page("");
    assert!(!redacted.contains("/srv/archive") && !redacted.contains("db-3"));
    // The figures are the same, and each is of a level that is drawn.
    let (shown, report) = (embedded(&redacted, "compare"), valid(&report));
    let drawn = embedded(&redacted, "survey")["tiers"].clone();
    let names: Vec<&Value> = drawn.as_array().unwrap().iter().map(|tier| &tier["name"]).collect();
    let pairs = shown["items"].as_array().unwrap().iter().zip(report["items"].as_array().unwrap());
    for (shown, report) in pairs {
        assert_eq!(shown["difference"], report["difference"]);
        assert!(names.contains(&&shown["of"]), "{shown}");
    }
}

#[test]
fn a_cut_recording_is_compared_with_a_warning() {
    let directory = TempDir::new();
    let whole = recorded(&directory, "whole.trec", "sleep 0.3");
    let bytes = fs::read(&whole).unwrap();
    let cut = directory.join("cut.trec");
    fs::write(&cut, &bytes[..bytes.len() - 40]).unwrap();
    let page = terrace(&format!("compare {whole} {}", cut.display())).done();
    assert!(page.contains("Not every run ended well (cut)"), "{page}");
}
