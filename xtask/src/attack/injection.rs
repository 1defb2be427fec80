//! Hostile text in every place where a text comes from outside: what is printed holds no control
//! character, what is a page or Markdown holds no markup of it.
//!
//! Recordings and surveys are fixtures with a marker appended to every text that may be anything.
//! Names of processes, groups, mounts and files are made for real.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use super::judge::{self, Expected, Form, TIME_LIMIT, within};
use super::stage::{
    AttackStage, Held, PATIENCE, Stop, bad, ensure, need_admin, observe, shown, text, wait_until,
    words,
};
use super::trec::{self, Chunk};
use super::who;
use crate::process::{self, Ended, Running};

/// ESC, BEL, CR, C1, right-to-left and line separator: each does something to some terminal.
const CONTROLS: &str = "\u{1b}]0;PWN\u{7}\u{1b}[31mE\r\u{9b}2JB\u{202e}I\u{2028}";
/// Markup that a page or a viewer of Markdown would run.
const MARKUP: &str = "<img src=x onerror=alert(1)></script><script>alert(2)</script>";
/// Traces of the markup in a page that let it in.
const TRACES: &[&str] = &["<img src=x", "<script>alert(2)"];

/// Which texts of a recording are hostile: some make its reader refuse the whole or take another
/// way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Everything,
    Names,
    Units,
    Outcome,
}

const REACHES: &[(Reach, &str)] = &[
    (Reach::Everything, "everything"),
    (Reach::Names, "names"),
    (Reach::Units, "units"),
    (Reach::Outcome, "outcome"),
];

fn marker() -> String {
    format!("{CONTROLS}{MARKUP}")
}

/// `value` with the marker at the end of every text that is not the word for a kind.
fn poisoned(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(format!("{text}{}", marker())),
        Value::Array(items) => items.iter().map(poisoned).collect(),
        Value::Object(fields) => {
            let poison = |(name, field): (&String, &Value)| match name.as_str() {
                "kind" | "state" => (name.clone(), field.clone()),
                _ => (name.clone(), poisoned(field)),
            };
            Value::Object(fields.iter().map(poison).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn append(line: &mut Value, field: &str) {
    if let Some(text) = line[field].as_str() {
        line[field] = Value::from(format!("{text}{}", marker()));
    }
}

/// A recording whose texts are hostile.
fn recording(chunks: &[Chunk], reach: Reach) -> Vec<u8> {
    let spans: Vec<Value> = ["mark", "rate", "clock_jump", "device_added", "device_removed"]
        .iter()
        .chain(&["group_changed", "events_stopped", "events_paused", "gap", "progress", "imported"])
        .map(|kind| (*kind).to_owned())
        .chain([format!("unknown{}", marker())])
        .map(|kind| json!({"kind": kind, "text": marker(), "start_ns": 1000, "end_ns": 2000}))
        .collect();
    let mut changed: Vec<Chunk> = chunks.iter().map(|chunk| poisoned_chunk(chunk, reach)).collect();
    changed.insert(1.min(changed.len()), Chunk::lines(trec::SPANS, &spans));
    // The last chunk is the outcome, which ends a recording.
    let end = changed.len().saturating_sub(1);
    changed.splice(end..end, who::named(&marker()));
    trec::file(&changed)
}

fn poisoned_chunk(chunk: &Chunk, reach: Reach) -> Chunk {
    let mut lines = chunk.values();
    for line in &mut lines {
        match chunk.kind {
            trec::FACTS => facts(line, reach),
            trec::OUTCOME => {
                line["stopped_early"] = Value::from(format!("disk full {}", marker()));
                let group = format!("group /x{}", marker());
                line["ending"] = json!({"kind": "killed", "signal": 9, "out_of_memory": group});
            }
            trec::SCHEMA => {
                append(line, "source");
                match reach {
                    Reach::Names => append(line, "name"),
                    Reach::Units => append(line, "unit"),
                    Reach::Everything | Reach::Outcome => {}
                }
            }
            trec::TASKS => append(line, "comm"),
            trec::SPANS => append(line, "text"),
            _ => return chunk.clone(),
        }
    }
    Chunk { raw: trec::json_lines(&lines), ..chunk.clone() }
}

fn facts(line: &mut Value, reach: Reach) {
    if reach == Reach::Everything {
        *line = poisoned(line);
    } else {
        line["subject"] = json!({"kind": "command", "argv": [marker(), marker()]});
    }
    line["redacted"] = Value::from(false);
    if let Some(sights) = line["sights"].as_object_mut() {
        for sight in sights.values_mut() {
            *sight = json!({"state": "closed", "why": marker(), "remedy": marker()});
        }
    }
}

/// Writes every hostile recording; their paths.
fn write_recordings(stage: &AttackStage, directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    // Those that were made here tell nothing that the fixtures do not.
    let fixtures =
        stage.recordings.iter().zip(&stage.chunks).filter(|((name, _), _)| !name.contains('/'));
    for ((name, _), chunks) in fixtures {
        for (reach, suffix) in REACHES {
            let path = directory.join(format!("{name}.{suffix}.trec"));
            std::fs::write(&path, recording(chunks, *reach))?;
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Two surveys whose texts are hostile as far as the reader takes them, the second one slower.
fn write_surveys(stage: &AttackStage, directory: &Path) -> Result<[PathBuf; 2], Stop> {
    let [a, b, probe] = ["a.json", "b.json", "probe.json"].map(|name| directory.join(name));
    let mut hostile = stage.survey.clone();
    let mut count = 0;
    for field in text_fields(&stage.survey, &[]) {
        let mut tried = hostile.clone();
        change_field(&mut tried, &field);
        std::fs::write(&probe, tried.to_string())?;
        // A field that names a kind is refused with any other word.
        let compare = stage.terrace(&["compare", "--json", text(&probe), text(&probe)]);
        let compared = observe(compare)?;
        if compared.status() == Some(0) {
            hostile = tried;
            count += 1;
        }
    }
    ensure(count > 0, || "no text of a survey may be anything: the case tests nothing".to_owned())?;
    std::fs::write(&a, hostile.to_string())?;
    std::fs::write(&b, grown(&hostile).to_string())?;
    Ok([a, b])
}

/// The places of texts in `value`, those in all elements of a list as one: names joined by `/`.
fn text_fields(value: &Value, above: &[String]) -> Vec<Vec<String>> {
    let mut fields = match value {
        Value::String(_) => vec![above.to_vec()],
        Value::Object(object) => object
            .iter()
            .flat_map(|(name, field)| {
                text_fields(field, &[above, std::slice::from_ref(name)].concat())
            })
            .collect(),
        Value::Array(items) => items
            .iter()
            .flat_map(|item| text_fields(item, &[above, &["*".to_owned()]].concat()))
            .collect(),
        _ => Vec::new(),
    };
    fields.sort_unstable();
    fields.dedup();
    fields
}

fn change_field(value: &mut Value, path: &[String]) {
    match (value, path.split_first()) {
        (Value::String(text), None) => text.push_str(&marker()),
        (Value::Array(items), Some((_, rest))) => {
            items.iter_mut().for_each(|item| change_field(item, rest));
        }
        (Value::Object(fields), Some((name, rest))) => {
            if let Some(field) = fields.get_mut(name) {
                change_field(field, rest);
            }
        }
        _ => {}
    }
}

/// All figures larger, so that there is something to say about them.
fn grown(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => json!(number.as_f64().unwrap_or(0.0) * 1.7),
        Value::Array(items) => items.iter().map(grown).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| (name.clone(), grown(field)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// M1: `explain`, `compare` and `proof` of hostile recordings.
pub(super) fn recordings(stage: &AttackStage) -> Held {
    let directory = stage.scratch("hostile")?;
    let paths = write_recordings(stage, &directory)?;
    let card = directory.join("card.md");
    for path in &paths {
        let path = text(path);
        stage.attack(&words(["explain", path]), Form::Text)?;
        stage.attack(&words(["explain", "--details", "--color", "always", path]), Form::Colored)?;
    }
    for pair in paths.chunks_exact(2).step_by(2) {
        let [a, b] = [&pair[0], &pair[1]].map(|path| text(path));
        stage.attack(&words(["compare", a, b]), Form::Text)?;
        stage.attack(&words(["compare", "--align", "progress", a, b]), Form::Text)?;
        stage.attack(&words(["compare", "--json", a, b]), Form::Json)?;
        stage
            .attack(&words(["proof", "--claim", &marker(), "-o", text(&card), a, b]), Form::Text)?;
    }
    Ok(())
}

/// M1: `compare` of hostile surveys.
pub(super) fn surveys(stage: &AttackStage) -> Held {
    let directory = stage.scratch("hostile-surveys")?;
    let [a, b] = write_surveys(stage, &directory)?;
    let [a, b] = [&a, &b].map(|path| text(path));
    stage.attack(&words(["compare", a, b]), Form::Text)?;
    stage.attack(&words(["compare", "--color", "always", a, b]), Form::Colored)?;
    stage.attack(&words(["compare", "--json", a, b]), Form::Json)?;
    Ok(())
}

/// L8: no raw markup in Markdown.
pub(super) fn markdown(stage: &AttackStage) -> Held {
    let directory = stage.scratch("hostile-markdown")?;
    let paths = write_recordings(stage, &directory)?;
    let mut pairs: Vec<[PathBuf; 2]> =
        paths.chunks_exact(2).map(|pair| [pair[0].clone(), pair[1].clone()]).collect();
    pairs.push(write_surveys(stage, &directory)?);
    for [a, b] in &pairs {
        let [a, b] = [a, b].map(|path| text(path));
        let compare = stage.terrace(&["compare", "--markdown", a, b]);
        let observed = observe(compare)?;
        no_markup(&outside_code(&observed.text()), &format!("compare --markdown {a} {b}"))?;
    }
    let card = directory.join("card.md");
    let [a, b] = [&paths[0], &paths[4]].map(|path| text(path));
    let proof = stage.terrace(&["proof", "--claim", &marker(), "-o", text(&card), a, b]);
    observe(proof)?;
    no_markup(&outside_code(&std::fs::read_to_string(&card)?), "proof")
}

/// No raw markup of a recording or survey in a page, redacted or not.
pub(super) fn pages(stage: &AttackStage) -> Held {
    let directory = stage.scratch("hostile-pages")?;
    let page = directory.join("page.html");
    let out = text(&page);
    let paths = write_recordings(stage, &directory)?;
    let [first, second] = write_surveys(stage, &directory)?;
    let mut commands = vec![
        words(["compare", "--html", out, text(&first), text(&second)]),
        words(["compare", "--html", out, "--no-redact", text(&first), text(&second)]),
    ];
    for pair in paths.chunks_exact(2).step_by(3) {
        let [a, b] = [&pair[0], &pair[1]].map(|path| text(path));
        let card = directory.join("card.md");
        commands.push(words(["view", "--html", out, "--no-redact", a]));
        commands.push(words(["view", "--html", out, a, b]));
        commands.push(words(["compare", "--html", out, "--no-redact", a, b]));
        commands.push(words([
            "proof",
            "--claim",
            &marker(),
            "--html",
            out,
            "-o",
            text(&card),
            a,
            b,
        ]));
    }
    for command in commands {
        let _ = std::fs::remove_file(&page);
        let observed = observe(stage.terrace(&command))?;
        if observed.status() == Some(0) {
            no_markup(&std::fs::read_to_string(&page)?, &shown(&command))?;
        }
    }
    Ok(())
}

/// Markdown without its code between backticks, which viewers show as it is; an unclosed one is
/// none.
fn outside_code(markdown: &str) -> String {
    let outside = |line: &str| match line.matches('`').count() % 2 {
        0 => line.split('`').step_by(2).collect::<Vec<_>>().join("`"),
        _ => line.to_owned(),
    };
    markdown.lines().map(outside).collect::<Vec<_>>().join("\n")
}

fn no_markup(page: &str, what: &str) -> Held {
    let found = TRACES.iter().find_map(|trace| page.find(trace));
    let around = |at: usize| -> String {
        page[..at].chars().rev().take(60).collect::<Vec<_>>().iter().rev().collect()
    };
    found.map_or(Ok(()), |at| {
        Err(Stop::Failed(format!("{what}: raw markup after {:?}", around(at))))
    })
}

/// A name of a file that a terminal would obey; no `/`, which no name holds.
fn hostile_name() -> String {
    "x\u{1b}]0;PWN\u{7}\u{1b}[2J\u{9b}B\r\u{202e}\u{2028}y".to_owned()
}

/// M1: names of files, groups and mounts, in what is said about them.
pub(super) fn names(stage: &AttackStage) -> Held {
    let directory = stage.scratch("hostile-names")?;
    let name = hostile_name();
    let absent_path = directory.join(&name);
    let absent = text(&absent_path);
    let present_path = directory.join(format!("{name}.trec"));
    std::fs::write(&present_path, stage.recording("hog_beside")?)?;
    let present = text(&present_path);
    let commands = [
        words(["explain", absent]),
        words(["explain", present]),
        words(["explain", "--details", present]),
        words(["compare", absent, absent]),
        words(["compare", present, present]),
        words(["view", "--html", absent, absent]),
        words(["import", absent, "-o", absent]),
        words(["import", present, "-o", absent]),
        words(["warm", "restore", "--dry-run", absent]),
        words(["warm", "restore", "--dry-run", present]),
        words(["warm", "show", "--cgroup", absent]),
        words(["warm", "show", "--app", &name]),
        words(["warm", "evict", present]),
        words(["record", "--for", "1s", "--cgroup", absent, "-o", absent]),
        words(["record", "--for", "1s", "--unit", &name, "-o", absent]),
        words(["run", "-o", absent, "--", absent]),
        words(["run", "-q", "-o", present, "--", "true"]),
        words(["mark", &name]),
        words([&name]),
    ];
    for command in commands {
        let observed = process::observe(stage.terrace(&command), within(TIME_LIMIT * 4))?;
        printable(&observed, &shown(&command))?;
    }
    mounted(stage, &directory)
}

/// A mount with a hostile name, where this user may mount.
fn mounted(stage: &AttackStage, directory: &Path) -> Held {
    if need_admin().is_err() {
        return Ok(());
    }
    let point = directory.join(format!("mount{}", hostile_name()));
    std::fs::create_dir(&point)?;
    let mount = |program: &str, arguments: &[&OsStr]| {
        Command::new(program).args(arguments).arg(&point).status()
    };
    mount("mount", &["-t", "tmpfs", "-o", "size=64m", "terrace-test"].map(OsStr::new))?;
    let observed = [
        words(["measure", "iolat", text(&point), "-c", "3", "--budget", "2s"]),
        words(["ramdisk", "why", text(&point), "--size", "16m", "--budget", "1s"]),
        words(["run", "--details", "--", "true"]),
    ]
    .map(|command| (observe(stage.terrace(&command)), shown(&command)));
    mount("umount", &[])?;
    for (observed, command) in observed {
        printable(&observed?, &command)?;
    }
    Ok(())
}

/// Whether nothing that was printed is a control character; any status.
fn printable(observed: &Ended, command: &str) -> Held {
    let outputs = [("output", &observed.stdout), ("error", &observed.stderr)];
    for (name, bytes) in outputs {
        if let Some(found) = judge::control_character(bytes, Form::Text) {
            let why = format!("a control character on standard {name}: {found}");
            return Err(bad(&why, command));
        }
    }
    Ok(())
}

/// M1: a process of another user whose name is a command to the terminal.
pub(super) fn process(stage: &AttackStage) -> Held {
    let directory = stage.scratch("hostile-process")?;
    // The kernel takes the name from the file, 15 bytes of it.
    let program = directory.join(OsStr::from_bytes(b"\x1b]0;PWN\x07\x1b[2J"));
    std::fs::copy("/bin/sh", &program)?;
    let mut command = Command::new(&program);
    command.args(["-c", "x=$(head -c 30000000 /dev/zero | tr '\\0' x); while :; do sleep 1; done"]);
    let running = Running::silent(command)?;
    let pid = running.pid().to_string();
    let is_large = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        let pages = status.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
        pages.unwrap_or(0) > 7000
    };
    ensure(wait_until(PATIENCE, is_large), || "the hostile process takes no memory".to_owned())?;
    for arguments in [
        words(["warm", "show", "--pid", &pid]),
        words(["warm", "restore", "--dry-run", "--pid", &pid]),
    ] {
        let observed = observe(stage.terrace(&arguments))?;
        judge::judge(&observed, &Expected::of(Form::Text))
            .map_err(|why| bad(&why, &shown(&arguments)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_a_survey_is_found_and_changed() {
        let value = json!({"a": "x", "b": [{"c": "y"}, {"c": "z"}], "d": 1});
        let fields = text_fields(&value, &[]);
        assert_eq!(fields, [vec!["a".to_owned()], ["b", "*", "c"].map(str::to_owned).to_vec()]);
        let mut changed = value.clone();
        fields.iter().for_each(|field| change_field(&mut changed, field));
        assert_eq!(changed["b"][1]["c"], format!("z{}", marker()));
        assert_eq!(changed["d"], 1);
    }

    #[test]
    fn raw_markup_is_seen() {
        no_markup("a &lt;img src=x>", "page").unwrap();
        assert!(no_markup(&format!("a{MARKUP}"), "page").is_err());
        no_markup(&outside_code(&format!("a `{MARKUP}` b")), "card").unwrap();
        for shown in [format!("`a` {MARKUP}"), format!("`{MARKUP}")] {
            assert!(no_markup(&outside_code(&shown), "card").is_err());
        }
    }
}
