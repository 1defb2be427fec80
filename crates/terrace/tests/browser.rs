//! The page of a recording in a real browser: Chromium, driven by `browser/drive.mjs`, which opens
//! a page, does what it is told and prints what came of it. It complains of nothing and asks
//! nobody; every test says so of its page. `cargo xtask test` gets browser and driver.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;
use support::pages::{
    Served, copied, fixture, hostile, made, reading, standing_out, with_who, with_who_in_two,
};
use support::{run_command, terrace};
use testkit::{TempDir, skip, web};

/// One browser at a time: two would wait for each other's processors.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first picture stands.
const READY: &str = "document.body.dataset.ready !== undefined";

/// What part of the time is shown, as numbers.
const SHOWN: &str = "(({from, to, whole}) => ({from: +from, to: +to, whole}))(document.querySelector('#window').dataset)";

/// The whole is shown.
const WHOLE: &str = "document.querySelector('#window').dataset.whole === 'true'";

/// A part of it is shown.
const ZOOMED: &str = "document.querySelector('#window').dataset.whole === 'false'";

/// How a page is looked at.
struct Screen {
    width: u32,
    height: u32,
    dark: bool,
}

const WIDE: Screen = Screen { width: 1600, height: 1000, dark: false };

/// Results of the steps in the page at `url`, in order; `None` (with the reason printed)
/// where no browser can be had. A complaint of the page, or a request for anything but the page,
/// fails.
#[track_caller]
fn results(url: &str, screen: &Screen, steps: &Value) -> Option<Vec<Value>> {
    let _turn = turn();
    results_in_turn(url, screen, steps)
}

/// As [`results`], for who has waited for the turn already.
#[track_caller]
fn results_in_turn(url: &str, screen: &Screen, steps: &Value) -> Option<Vec<Value>> {
    let driver = web::package("playwright-core").and_then(|package| {
        let order = json!({
            "packages": package.parent().unwrap(),
            "browser": web::browser()?,
            "url": url,
            "width": screen.width,
            "height": screen.height,
            "dark": screen.dark,
            "steps": steps,
        });
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/drive.mjs");
        let mut command = web::node()?;
        command.arg(script).arg(order.to_string());
        Ok(command)
    });
    let mut driver = match driver {
        Ok(driver) => driver,
        Err(need) => {
            skip(need);
            return None;
        }
    };
    let output = driver.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let seen: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(seen["complaints"], json!([]), "{seen}");
    let openings = steps.as_array().unwrap().iter().filter(|step| step[0] == "open");
    let opened = openings.filter_map(|step| step[1].as_str());
    let pages: Vec<&str> = opened.chain([url, "blob:"]).collect();
    for request in seen["requests"].as_array().unwrap() {
        let address = request.as_str().unwrap();
        let is_ours = pages.iter().any(|page| address.starts_with(page));
        assert!(is_ours, "{address}");
    }
    Some(seen["told"].as_array().unwrap().clone())
}

/// The page of these recordings as a file, and its address.
fn page_file(directory: &TempDir, recordings: &[&PathBuf]) -> String {
    let name = recordings[0].file_stem().unwrap().to_string_lossy();
    let out = directory.join(format!("{name}.html"));
    let words: Vec<String> = recordings.iter().map(|path| path.display().to_string()).collect();
    let line = format!("view {} --html {}", words.join(" "), out.display());
    assert_eq!(terrace(&line).done(), "");
    format!("file://{}", out.display())
}

fn explained(recording: &Path) -> Value {
    let text = terrace(&format!("explain --json {}", recording.display())).done();
    serde_json::from_str(&text).unwrap()
}

/// A fixture and the number of a finding in it that belongs to less than two thirds of its time.
fn with_a_short_finding() -> (PathBuf, usize, [f64; 2]) {
    for name in
        ["hog_beside", "swap_random", "fsync_storm", "lock_contention", "compaction", "cold_read"]
    {
        let path = fixture(name);
        let explanation = explained(&path);
        let whole_ns = explanation["wall_ns"].as_f64().unwrap();
        for (number, finding) in explanation["findings"].as_array().unwrap().iter().enumerate() {
            let span = [&finding["span"]["from_ns"], &finding["span"]["to_ns"]].map(Value::as_f64);
            if let [Some(from_ns), Some(to_ns)] = span
                && to_ns - from_ns < whole_ns * 0.67
            {
                return (path, number, [from_ns / 1e9, to_ns / 1e9]);
            }
        }
    }
    panic!("no fixture has a finding with a short span");
}

#[test]
fn a_file_opens_without_a_network_and_says_what_json_says() {
    let directory = TempDir::new();
    let recording = fixture("cold_read");
    let url = page_file(&directory, &[&recording]);
    let steps = json!([
        ["wait", READY],
        [
            "tell",
            "[...document.querySelectorAll('[data-finding]')].map((button) => button.dataset.finding)"
        ],
        ["tell", "[...document.querySelectorAll('[data-bar]')].map((bar) => bar.dataset.bar)"],
        ["tell", "document.querySelectorAll('[data-chart] canvas').length"],
        ["tell", "[document.documentElement.lang, document.title]"],
        ["tell", SHOWN],
        ["heap"],
    ]);
    let Some(results) = results(&url, &WIDE, &steps) else {
        return;
    };
    let explanation = explained(&recording);
    let findings = explanation["findings"].as_array().unwrap();
    let ids: Vec<&Value> = findings.iter().map(|finding| &finding["id"]).collect();
    assert_eq!(results[0], json!(ids));
    assert_eq!(results[1].as_array().unwrap().len(), 2, "{results:?}");
    assert!(results[2].as_u64().unwrap() > 0, "{results:?}");
    assert_eq!(results[3], json!(["en", "recording 1 - Terrace"]));
    assert_eq!(results[4]["whole"], "true");
    println!("heap of a page of {} samples: {} bytes", 21, results[5]);
}

#[test]
fn a_click_on_a_finding_zooms_to_its_time_and_lifts_its_series() {
    let directory = TempDir::new();
    let (recording, number, [from, to]) = with_a_short_finding();
    let url = page_file(&directory, &[&recording]);
    let button = format!(":nth-match([data-finding], {})", number + 1);
    let steps = json!([
        ["wait", READY],
        ["tell", SHOWN],
        ["click", button],
        ["wait", ZOOMED],
        ["tell", SHOWN],
        ["wait", "document.querySelector('#evidence [data-chart][data-lifted] canvas') !== null"],
        ["tell", "document.querySelectorAll('[data-finding][aria-pressed=true]').length"],
        ["click", "#whole"],
        ["wait", WHOLE],
        ["drag", "[data-question] .u-over", 0.25, 0.5],
        ["wait", ZOOMED],
        ["tell", SHOWN],
        ["press", "Escape"],
        ["wait", WHOLE],
    ]);
    let Some(results) = results(&url, &WIDE, &steps) else {
        return;
    };
    let number = |value: &Value| value.as_f64().unwrap();
    let all = [number(&results[0]["from"]), number(&results[0]["to"])];
    let zoomed = [number(&results[1]["from"]), number(&results[1]["to"])];
    // All of its time is shown, with a twentieth of it as room on both sides.
    let slack = 1e-6;
    assert!(zoomed[0] <= from.max(all[0]) + slack, "{results:?}");
    assert!(zoomed[1] >= to.min(all[1]) - slack, "{results:?}");
    let longest = (to - from) * 1.1 + slack;
    assert!(zoomed[1] - zoomed[0] <= longest, "{results:?}");
    assert_eq!(results[2], 1);
    let whole = all[1] - all[0];
    let dragged = number(&results[3]["to"]) - number(&results[3]["from"]);
    assert!((dragged / whole - 0.25).abs() < 0.05, "{results:?}");
}

#[test]
fn two_recordings_lie_over_each_other() {
    let files = ["cold_read", "fsync_storm"].map(fixture);
    let words = files.each_ref().map(|path| path.to_str().unwrap());
    let served = Served::start(&words);
    let steps = json!([
        ["wait", READY],
        ["tell", "[...document.querySelectorAll('[data-bar]')].map((bar) => bar.dataset.bar)"],
        [
            "tell",
            "[...document.querySelectorAll('[data-chart]')].filter((chart) => \
            chart.querySelector('.dashed') && chart.querySelector('[data-series] i:not(.dashed)')).length"
        ],
    ]);
    let Some(results) = results(&served.address, &WIDE, &steps) else {
        return;
    };
    assert_eq!(results[0].as_array().unwrap().len(), 4, "{results:?}");
    assert!(results[1].as_u64().unwrap() > 0, "{results:?}");
    assert_eq!(served.end().code, Some(0));
}

/// The page of three copies, as a file.
fn three_copies(directory: &TempDir) -> String {
    let files = ["cached.trec", "two-thread.trec", "default.trec"].map(|name| directory.join(name));
    for (file, (late, megabytes)) in
        files.iter().zip([(30, [10; 60]), (0, [10; 60]), (5, [12; 60])])
    {
        copied(file, late, &megabytes);
    }
    let out = directory.join("over.html");
    let words = files.each_ref().map(|file| file.to_str().unwrap()).join(" ");
    assert_eq!(terrace(&format!("view {words} --html {} --no-redact", out.display())).done(), "");
    assert!(out.metadata().unwrap().len() < 1_000_000);
    format!("file://{}", out.display())
}

#[test]
fn three_recordings_have_a_colour_each_and_begin_together_at_a_mark() {
    let directory = TempDir::new();
    let colours = "(chart) => [...document.querySelectorAll(`[data-chart=${chart}] .legend button`)]\
                   .map((it) => [it.textContent.trim(), it.querySelector('i').style.cssText])";
    let steps = json!([
        ["wait", READY],
        ["tell", format!("({colours})('over-written')")],
        ["tell", format!("({colours})('over-unwritten')")],
        ["tell", "[...document.querySelectorAll('#recordings li')].map((it) => it.innerText)"],
        ["tell", "document.querySelectorAll('#overlay [data-chart^=composition-]').length"],
        ["tell", SHOWN],
        // By keys alone: hide the first, then align.
        ["tell", "document.querySelector('[data-recording]').focus()"],
        ["press", "Enter"],
        [
            "tell",
            "[...document.querySelectorAll('[data-chart=over-written] .legend button')]\
            .map((it) => it.ariaPressed)"
        ],
        ["tell", "document.querySelector('[data-chart=composition-0]').hidden"],
        [
            "tell",
            "(() => { const one = document.querySelector('#align-mark'); one.value = 'copy begins'; \
            one.dispatchEvent(new Event('change')); })()"
        ],
        ["tell", SHOWN],
    ]);
    let Some(results) = results(&three_copies(&directory), &WIDE, &steps) else {
        return;
    };
    let names = ["cached.trec", "two-thread.trec", "default.trec"];
    for chart in &results[..2] {
        let lines = chart.as_array().unwrap();
        let named: Vec<&str> = lines.iter().map(|line| line[0].as_str().unwrap()).collect();
        assert_eq!(named, names, "{results:?}");
    }
    assert_eq!(results[0], results[1], "one colour in all charts");
    let cards = results[2].as_array().unwrap();
    let is_described = |card: &Value| card.as_str().unwrap().contains("All was on the disk after");
    assert!(cards.iter().all(is_described), "{cards:?}");
    assert_eq!(results[3], 3);
    assert_eq!(results[4], json!({ "from": 0, "to": 9, "whole": "true" }));
    assert_eq!(results[6], json!(["false", "true", "true"]));
    assert_eq!(results[7], true);
    assert_eq!(results[9], json!({ "from": -3, "to": 6, "whole": "true" }));
}

#[test]
fn three_recordings_are_readable_in_both_themes_and_on_narrow_screens() {
    let directory = TempDir::new();
    let url = three_copies(&directory);
    for (width, dark) in [(400, false), (400, true), (1600, false), (1600, true)] {
        let screen = Screen { width, height: 1000, dark };
        let steps = json!([
            ["wait", READY],
            ["tell", "document.documentElement.scrollWidth"],
            ["tell", "document.querySelector('[data-chart]').getBoundingClientRect().top"],
            ["shot", directory.join("page.png")],
        ]);
        let Some(results) = results(&url, &screen, &steps) else {
            return;
        };
        assert!(results[0].as_f64().unwrap() <= f64::from(width), "{width}: {results:?}");
        assert!(results[1].as_f64().unwrap() < 1000.0, "a chart is on the first screen");
    }
}

/// Twenty counters by powers of two are three lines: the slowest read of a sample lies below a
/// power of two.
#[test]
fn how_long_requests_took_is_one_chart_of_three_lines() {
    let directory = TempDir::new();
    let url = page_file(&directory, &[&fixture("cold_read")]);
    let chart = "[data-chart^=evidence-trace]";
    let steps = json!([
        ["wait", READY],
        ["click", "[data-finding=reads_from_device]"],
        [
            "tell",
            "Math.max(...[...document.querySelectorAll('#evidence [data-chart]')].map((chart) => chart.querySelectorAll('[data-series]').length))"
        ],
        ["tell", format!("document.querySelector('{chart} h3').textContent")],
        ["click", format!("{chart} summary")],
        ["wait", format!("document.querySelector('{chart} td') !== null")],
        [
            "tell",
            format!(
                "[...document.querySelectorAll('{chart} tr')].slice(1).map((row) => [...row.cells].slice(1).map((cell) => cell.textContent))"
            )
        ],
    ]);
    let Some(results) = results(&url, &WIDE, &steps) else {
        return;
    };
    assert_eq!(results[0], 3);
    assert_eq!(results[1], "How long each read of loop0 took");
    let time = |cell: &Value| -> Option<f64> {
        let (number, unit) = cell.as_str()?.split_once(' ')?;
        let factor = match unit {
            "ms" => 1e3,
            "us" => 1.0,
            _ => return None,
        };
        Some(number.parse::<f64>().ok()? * factor)
    };
    let table = results[2].as_array().unwrap().iter();
    let rows: Vec<Vec<f64>> = table
        .map(|row| row.as_array().unwrap().iter().filter_map(time).collect())
        .filter(|row: &Vec<f64>| !row.is_empty())
        .collect();
    assert!(rows.len() > 10, "{results:?}");
    for row in rows {
        let power = row[2].log2().round().exp2();
        assert!(
            row[0] <= row[1] && row[1] <= row[2] && (row[2] / power - 1.0).abs() < 0.01,
            "{row:?}"
        );
    }
}

/// The parts of the difference between these recordings that have a bar, and the sentence.
fn compared(first: &Path, second: &Path) -> (Vec<String>, String) {
    let line = format!("compare --json {} {}", first.display(), second.display());
    let results: Value = serde_json::from_str(&terrace(&line).done()).unwrap();
    let split = &results["split"];
    let number = |value: &Value| value.as_f64().unwrap();
    let least = 0.005 * number(&split["first_ns"]).max(number(&split["second_ns"]));
    let parts = split["parts"].as_array().unwrap().iter();
    let worth = parts.filter(|part| number(&part["difference_ns"]).abs() >= least);
    let names = worth.map(|part| part["name"].as_str().unwrap().to_owned());
    (names.collect(), results["sentence"].as_str().unwrap().to_owned())
}

#[test]
fn a_part_of_a_difference_is_shown_by_click_and_by_key() {
    let directory = TempDir::new();
    let files = ["cold_read", "fsync_storm"].map(fixture);
    let (parts, sentence) = compared(&files[0], &files[1]);
    let url = page_file(&directory, &[&files[0], &files[1]]);
    let evidence =
        "[...document.querySelectorAll('#evidence h3')].map((title) => title.textContent)";
    let both = "[...document.querySelectorAll('#evidence [data-lifted]')].some((chart) => \
        chart.querySelector('.dashed') && chart.querySelector('[data-series] i:not(.dashed)'))";
    let last = format!("[data-part={}]", parts.last().unwrap());
    let is_there = format!("document.activeElement.matches({last:?})");
    let steps = json!([
        ["wait", READY],
        ["tell", "[...document.querySelectorAll('[data-part]')].map((part) => part.dataset.part)"],
        ["tell", "document.querySelector('#comparison .verdict').textContent"],
        [
            "tell",
            "[...document.querySelectorAll('[data-part] .badge')].every((badge) => badge.textContent === 'unproven')"
        ],
        ["tell", "document.querySelector('[data-part]').getBoundingClientRect().bottom"],
        ["click", format!("[data-part={}]", parts[0])],
        ["wait", both],
        ["tell", evidence],
        ["until", "Tab", is_there, 60],
        ["press", "Enter"],
        [
            "tell",
            "[...document.querySelectorAll('.claim[aria-pressed=true]')].map((part) => part.dataset.part)"
        ],
        ["tell", evidence],
        ["size", 400, 800],
        ["tell", "document.documentElement.scrollWidth"],
    ]);
    let Some(results) = results(&url, &WIDE, &steps) else {
        return;
    };
    assert_eq!(results[0], json!(parts));
    assert_eq!(results[1], json!(sentence));
    assert_eq!(results[2], true, "one run each proves nothing");
    assert!(results[3].as_f64().unwrap() < 500.0, "{results:?}");
    let title = |part: &str| json!(format!("Evidence: {}", part.replace('_', " ")));
    assert_eq!(results[4][0], title(&parts[0]));
    assert_eq!(results[5], json!([parts.last()]));
    assert_eq!(results[6][0], title(parts.last().unwrap()));
    assert!(results[7].as_u64().unwrap() <= 400, "{results:?}");
}

/// Two recordings of the same work, the second of which stands still for a while: by the work it
/// ends where the first does, by the clock later.
#[test]
fn a_second_recording_is_drawn_by_the_work_that_it_did() {
    let directory = TempDir::new();
    let files = ["even", "stalled"].map(|name| directory.join(format!("{name}.trec")));
    reading(&files[0], &[4096; 100]);
    reading(&files[1], &[&[4096; 25][..], &[0; 50], &[4096; 75]].concat());
    let words = files.each_ref().map(|path| path.to_str().unwrap());
    let align = ["--align", "progress"];
    let served = Served::start(&[&words[..], &align].concat());
    let steps = json!([
        ["wait", READY],
        ["tell", SHOWN],
        ["click", "#pieces summary"],
        ["click", ":nth-match(#pieces .claim, 3)"],
        ["wait", ZOOMED],
        ["tell", SHOWN],
        ["click", "#align"],
        ["wait", WHOLE],
        ["tell", SHOWN],
        ["tell", "document.querySelector('#align').getAttribute('aria-pressed')"],
        ["click", ":nth-match(#pieces .claim, 3)"],
        ["wait", ZOOMED],
        ["tell", SHOWN],
    ]);
    let Some(results) = results(&served.address, &WIDE, &steps) else {
        return;
    };
    assert_eq!(served.end().code, Some(0));
    let ends =
        |at: usize| [&results[at]["from"], &results[at]["to"]].map(|end| end.as_f64().unwrap());
    let near = |[from, to]: [f64; 2], expected: [f64; 2]| {
        (from - expected[0]).abs() < 0.11 && (to - expected[1]).abs() < 0.11
    };
    assert!(near(ends(0), [0.0, 10.0]), "{results:?}");
    assert!(near(ends(1), [2.0, 3.0]), "the stall is of no length: {results:?}");
    assert!(near(ends(2), [0.0, 15.0]), "{results:?}");
    assert_eq!(results[3], "false");
    assert!(near(ends(4), [2.0, 8.0]), "{results:?}");
}

/// `terrace run` of a command that ends when `end` is there; it has begun to write `file`.
fn recorder(file: &Path, end: &Path) -> Child {
    let options = ["--quiet", "-o", file.to_str().unwrap()];
    let script = format!("until [ -e {} ]; do sleep 0.1; done", end.display());
    let mut command: Command = run_command(&options, &["sh", "-c", &script]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let recorder = command.spawn().unwrap();
    while !file.metadata().is_ok_and(|about| about.len() > 0) {
        sleep(Duration::from_millis(20));
    }
    recorder
}

#[test]
fn a_page_grows_with_the_recording_that_it_follows_and_knows_its_end() {
    let _turn = turn();
    let directory = TempDir::new();
    let (file, end) = (directory.join("x.trec"), directory.join("end"));
    let mut recorder = recorder(&file, &end);
    let served = Served::start(&["--live", file.to_str().unwrap()]);
    let shown = "+document.querySelector('#window').dataset.to";
    let steps = json!([
        ["wait", READY],
        ["tell", "document.querySelector('#state').textContent"],
        ["tell", format!("globalThis.first = {shown}")],
        ["wait", format!("{shown} > globalThis.first + 3")],
        ["tell", "document.querySelector('#state').textContent"],
        ["touch", end],
        ["wait", "document.querySelector('#state').textContent === 'ended'"],
        ["tell", shown],
        ["tell", "document.querySelectorAll('[data-chart] canvas').length"],
    ]);
    let results = results_in_turn(&served.address, &WIDE, &steps);
    std::fs::write(&end, "").unwrap();
    assert!(recorder.wait().unwrap().success());
    assert_eq!(served.end().code, Some(0));
    let Some(results) = results else {
        return;
    };
    assert_eq!([&results[0], &results[2]], ["live", "live"]);
    let whole_s = explained(&file)["wall_ns"].as_f64().unwrap() / 1e9;
    println!("at first {} s of {whole_s} s, at last {} s", results[1], results[3]);
    assert!((results[3].as_f64().unwrap() - whole_s).abs() < 1.0, "{results:?}");
    assert!(results[4].as_u64().unwrap() > 0, "{results:?}");
}

#[test]
fn who_did_it_grows_with_a_recording_and_stays_alone() {
    let _turn = turn();
    let directory = TempDir::new();
    let (file, go_on) = (directory.join("who.trec"), directory.join("go_on"));
    let (begun, has_begun) = std::sync::mpsc::channel();
    let writer = {
        let (file, go_on) = (file.clone(), go_on.clone());
        std::thread::spawn(move || {
            with_who_in_two(&file, || {
                begun.send(()).unwrap();
                while !go_on.exists() {
                    sleep(Duration::from_millis(20));
                }
            });
        })
    };
    has_begun.recv().unwrap();
    let served = Served::start(&["--live", file.to_str().unwrap()]);
    let steps = json!([
        ["wait", READY],
        ["tell", "document.querySelectorAll('[data-chart=\"who-read_bytes\"]').length"],
        ["click", "[data-chart=\"who-cpu\"] [data-series=\"cpu: browser 4711\"]"],
        ["touch", go_on],
        ["wait", "document.querySelector('#state').textContent === 'ended'"],
        ["wait", "document.querySelector('[data-chart=\"who-read_bytes\"]')"],
        ["tell", legend("read_bytes")],
        ["tell", "document.querySelector('#files').innerText"],
    ]);
    let results = results_in_turn(&served.address, &WIDE, &steps);
    std::fs::write(&go_on, "").unwrap();
    writer.join().unwrap();
    assert_eq!(served.end().code, Some(0));
    let Some(results) = results else {
        return;
    };
    assert_eq!(results[0], 0);
    assert_eq!(results[1], json!(["backup 812 false", "browser 4711 true", "all others false"]));
    assert!(results[2].as_str().unwrap().contains("backup 812 100 %"), "{results:?}");
}

#[test]
fn what_a_hostile_recording_says_is_text() {
    let directory = TempDir::new();
    let recording = directory.join("x.trec");
    hostile(&recording, 100, "");
    let out = directory.join("page.html");
    let line = format!("view {} --no-redact --html {}", recording.display(), out.display());
    assert_eq!(terrace(&line).done(), "");
    let steps = json!([
        ["wait", READY],
        ["click", "#counters summary"],
        ["wait", "document.querySelectorAll('[data-add]').length > 0"],
        [
            "tell",
            "[...document.querySelectorAll('[data-add]')].forEach((button) => button.click())"
        ],
        ["tell", "document.querySelectorAll('#added [data-chart]').length"],
        ["tell", "document.querySelectorAll('img').length"],
        [
            "tell",
            "document.querySelector('#counter-list b').textContent.startsWith('</script><img')"
        ],
    ]);
    let Some(results) = results(&format!("file://{}", out.display()), &WIDE, &steps) else {
        return;
    };
    assert!(results[1].as_u64().unwrap() > 0, "{results:?}");
    assert_eq!((&results[2], &results[3]), (&json!(0), &json!(true)));
}

/// The label of each line of a chart of processes, and whether it is drawn.
fn legend(chart: &str) -> String {
    format!(
        "[...document.querySelectorAll('[data-chart=\"who-{chart}\"] .legend button')].map(\
         it => it.firstChild.nextSibling.data + ' ' + (it.ariaPressed === 'true'))"
    )
}

#[test]
fn who_did_it_is_drawn_and_one_is_shown_alone() {
    let directory = TempDir::new();
    let file = directory.join("who.trec");
    with_who(&file);
    let out = directory.join("named.html");
    let line = format!("view --no-redact {} --html {}", file.display(), out.display());
    assert_eq!(terrace(&line).done(), "");
    let url = format!("file://{}", out.display());
    let shares = "[...document.querySelectorAll('[data-chart=\"who-read_bytes\"] output')].map(\
                  it => it.textContent)";
    let backup = "[data-chart=\"who-cpu\"] [data-series=\"cpu: backup 812\"]";
    let focused = "document.activeElement.dataset.series";
    let steps = json!([
        ["wait", READY],
        ["tell", "[...document.querySelectorAll('[data-chart^=who]')].map(it => it.dataset.chart)"],
        ["tell", legend("read_bytes")],
        // Bytes that were read, over 20 s each: 150 of 170 MB/s.
        ["wait", "document.querySelector('[data-chart=\"who-read_bytes\"] output').textContent"],
        ["tell", shares],
        ["tell", "document.querySelector('#files').innerText"],
        ["click", backup],
        ["tell", legend("cpu")],
        ["tell", legend("memory")],
        ["tell", focused],
        ["press", "Enter"],
        ["tell", legend("refaulted")],
        // A part without the backup has other first ones.
        ["tell", "document.querySelector('[data-chart=\"who-cpu\"] [role]').ariaLabel"],
        ["drag", "[data-chart=\"who-cpu\"] .u-over", 0.0, 0.2],
        ["wait", "!document.querySelector('[data-chart=\"who-read_bytes\"]')"],
        ["tell", legend("cpu")],
        ["tell", "document.querySelectorAll('[data-question=who] :is(b, img, script)').length"],
    ]);
    let Some(values) = results(&url, &WIDE, &steps) else {
        return;
    };
    let figures = ["cpu", "queue", "block_wait", "read_bytes", "written_bytes", "refaulted"];
    let charts: Vec<String> =
        figures.into_iter().chain(["swapped_in", "memory"]).map(|it| format!("who-{it}")).collect();
    assert_eq!(values[0], json!(charts));
    assert_eq!(values[1], json!(["backup 812 true", "browser 4711 true", "all others true"]));
    assert_eq!(values[2], json!(["88.2 %", "11.8 %", ""]));
    let files = values[3].as_str().unwrap();
    assert!(
        files.contains("/srv/photos/2026.tar") && files.contains("backup 812 100 %"),
        "{files}"
    );
    assert!(files.contains("<img src=x onerror=alert(1)>"), "{files}");
    assert!(files.contains("inode 72 of device 8:1"), "{files}");
    assert!(files.contains(r"<b>\x1b[31mx 999 100 %"), "{files}");
    let cpu: Vec<&str> = values[4].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(cpu.len(), 11, "{cpu:?}");
    assert_eq!(
        cpu.iter().filter(|it| it.ends_with("true")).collect::<Vec<_>>(),
        [&"backup 812 true"]
    );
    // It is not among the first ten of memory, and is shown there, too.
    let memory = values[5].as_array().unwrap();
    assert!(memory.contains(&json!("backup 812 true")), "{memory:?}");
    assert_eq!(values[6], "cpu: backup 812");
    assert_eq!(values[7], json!(["browser 4711 true", "all others true"]));
    let said = values[8].as_str().unwrap();
    assert!(said.contains("browser 4711: 0.08 processors to 0.55 processors"), "{said}");
    let early = values[9].as_array().unwrap();
    assert_eq!(early[0], "browser 4711 true");
    assert!(!early.contains(&json!("backup 812 true")), "{early:?}");
    assert_eq!(values[10], 0);
}

#[test]
fn who_did_it_is_readable_in_both_themes_and_on_narrow_screens() {
    let directory = TempDir::new();
    let file = directory.join("who.trec");
    with_who(&file);
    let url = page_file(&directory, &[&file]);
    for width in [380, 1280] {
        for dark in [false, true] {
            let steps = json!([
                ["wait", READY],
                ["tell", "document.documentElement.scrollWidth <= innerWidth"],
                [
                    "tell",
                    "[...document.querySelectorAll('[data-question=who] .legend button')]\
                          .every(it => it.scrollWidth <= it.clientWidth + 1)"
                ],
                // A page for others has stand-ins for names and paths.
                [
                    "tell",
                    "/backup|browser|photos/.test(\
                          document.querySelector('[data-question=who]').innerText)"
                ],
            ]);
            let screen = Screen { width, height: 900, dark };
            let Some(values) = results(&url, &screen, &steps) else {
                return;
            };
            assert_eq!(values, [json!(true), json!(true), json!(false)], "{width} {dark}");
        }
    }
}

#[test]
fn a_recording_without_processes_says_why() {
    let directory = TempDir::new();
    let url = page_file(&directory, &[&fixture("cold_read")]);
    let steps = json!([
        ["wait", READY],
        ["tell", "document.querySelector('[data-question=who]').innerText"],
    ]);
    if let Some(values) = results(&url, &WIDE, &steps) {
        let text = values[0].as_str().unwrap();
        assert_eq!(text.split('\n').next_back(), Some("Processes were not watched."), "{text}");
    }
}

#[test]
fn everything_can_be_reached_and_done_by_keys() {
    let directory = TempDir::new();
    let (recording, number, _) = with_a_short_finding();
    let url = page_file(&directory, &[&recording]);
    let focused = |selector: &str| format!("document.activeElement.matches({selector:?})");
    let is_there =
        format!("document.activeElement === document.querySelectorAll('[data-finding]')[{number}]");
    let steps = json!([
        ["wait", READY],
        ["until", "Tab", is_there, 60],
        ["press", "Enter"],
        ["wait", ZOOMED],
        ["until", "Tab", focused("[data-chart] .plot"), 60],
        ["tell", "getComputedStyle(document.activeElement).outlineStyle"],
        ["press", "ArrowRight"],
        ["press", "ArrowRight"],
        ["tell", "document.querySelector('#said').textContent"],
        ["press", "?"],
        ["wait", "document.querySelector('#help').open"],
        ["press", "Escape"],
        ["wait", "!document.querySelector('#help').open"],
        ["press", "Escape"],
        ["wait", WHOLE],
        ["press", "+"],
        ["wait", ZOOMED],
        ["until", "Tab", focused("#counters summary"), 200],
        ["press", "Enter"],
        ["until", "Tab", focused("#counter-search"), 2],
        ["type", "pgfault"],
        ["wait", "document.querySelectorAll('[data-add]').length > 0"],
        ["until", "Tab", focused("[data-add]"), 3],
        ["press", "Enter"],
        ["wait", "document.querySelector('#added [data-chart] canvas') !== null"],
        [
            "tell",
            "[...document.querySelectorAll('.plot')].every((plot) => plot.getAttribute('tabindex') === '0')"
        ],
    ]);
    let Some(results) = results(&url, &WIDE, &steps) else {
        return;
    };
    assert_ne!(results[0], "none");
    assert_ne!(results[1], "");
    assert_eq!(results[2], true);
}

#[test]
fn two_machines_lie_over_each_other_and_a_figure_leads_to_its_step() {
    let directory = TempDir::new();
    let recorded: Value = serde_json::from_str(include_str!("fixtures/survey.json")).unwrap();
    let mut slower = recorded.clone();
    slower["started_unix_s"] = json!(7);
    slower["tiers"][3]["latency_ns"]["median"] = json!(400.0);
    let file = |name: &str, survey: &Value| {
        let path = directory.join(name);
        std::fs::write(&path, survey.to_string()).unwrap();
        path.display().to_string()
    };
    let (first, second) = (file("a.json", &recorded), file("b.json", &slower));
    let page = directory.join("page.html");
    terrace(&format!("compare {first} {second} --html {}", page.display())).done();
    let is_there = "document.activeElement.matches('[data-part=\"RAM latency\"]')";
    let steps = json!([
        ["wait", "document.querySelector('.terrace-tread') !== null"],
        ["tell", "document.querySelectorAll('.terrace-second').length"],
        ["until", "Tab", is_there, 80],
        ["press", "Enter"],
        ["tell", "document.activeElement.id"],
        ["tell", "document.querySelector('#terrace p').textContent"],
        ["size", 400, 800],
        ["tell", "document.documentElement.scrollWidth"],
    ]);
    let Some(results) = results(&format!("file://{}", page.display()), &WIDE, &steps) else {
        return;
    };
    let tiers = recorded["tiers"].as_array().unwrap().iter();
    let seen = tiers.filter(|tier| !tier["latency_ns"].is_null());
    assert_eq!(results[0], json!(seen.count()));
    assert_eq!(results[1], "level-3");
    let text = results[2].as_str().unwrap();
    assert!(text.starts_with("RAM, first: latency +"), "{text}");
    assert!(results[3].as_u64().unwrap() <= 400, "{results:?}");
}

/// Seen at 500 px: rows 70 px high, the last columns cut off, and a hint for a mouse.
#[test]
fn a_phone_has_cards_instead_of_tables_and_is_not_asked_to_point() {
    let directory = TempDir::new();
    let page = directory.join("survey.html");
    let survey = include_str!("fixtures/survey.json").to_owned();
    std::fs::write(&page, viewer::survey_page(survey)).unwrap();
    let url = format!("file://{}", page.display());
    // The table is folded in nothing; its first row after the names of the columns is a level.
    let cell = "document.querySelector('#row-0 td')";
    for (width, is_card) in [(390, true), (500, true), (599, true), (600, false), (1280, false)] {
        for dark in [false, true] {
            let steps = json!([
                ["wait", "document.querySelector('#row-3') !== null"],
                ["tell", "document.documentElement.scrollWidth <= innerWidth"],
                ["tell", "getComputedStyle(document.querySelector('#row-0')).display"],
                ["tell", format!("getComputedStyle({cell}, '::before').content")],
                [
                    "tell",
                    "[...document.querySelectorAll('.cards td')].every(it => {\
                        const {left, right} = it.getBoundingClientRect();\
                        return left >= 0 && right <= innerWidth;\
                    })"
                ],
                ["tell", "document.querySelector('#terrace figcaption').textContent"],
            ]);
            let screen = Screen { width, height: 900, dark };
            let Some(values) = results(&url, &screen, &steps) else {
                return;
            };
            assert_eq!(values[0], true, "{width}");
            assert_eq!(values[1], if is_card { "block" } else { "table-row" }, "{width}");
            let name = if is_card { "\"one access\"" } else { "none" };
            assert_eq!(values[2], name, "{width}");
            assert!(!is_card || values[3] == true, "{width}");
            // The word depends on what can be pointed with, not on the width.
            let how = values[4].as_str().unwrap();
            assert!(how.contains("Point at") != how.contains("Press a step"), "{how}");
        }
    }
}

/// What each recording of a staged cause says of it on the first screen, and what of a cause that
/// was nearly one must not stand there (`fixtures/recordings/README.md`).
const NAMED: &[(&str, &[&str], &str)] = &[
    ("cold_read", &["for reads from", "by an I/O limit of 52.4 MB/s"], "for swap"),
    ("compaction", &["Compacted memory for 3.34 s"], "for reads"),
    ("cpu_quota", &["by a CPU limit of 0.2 processors"], "for reads"),
    ("first_touch", &["for the first touch of memory"], "for swap"),
    ("fsync_storm", &["for small synchronous writes to /"], "for swap"),
    ("hog_beside", &["for a processor, others ran 16.9 s"], "CPU limit"),
    ("huge_pages_refused", &["Bound by the processor"], "ompacted"),
    ("lock_contention", &["for each other at locks"], "for reads"),
    ("numa_local", &["Bound by the processor"], "another node"),
    ("numa_remote", &["of new pages (57,962) lie on another node"], "for reads"),
    ("stolen_little", &["for a processor, others ran"], "taken by the host"),
    ("swap_random", &["Reached the limit 64 MiB", "waited 3.33 s for swap"], "for reads"),
    ("thp_fallback", &["Huge pages were not to be had in 600 of 600"], "ompacted"),
];

/// A stranger reads no further than what is there when the page opens.
#[test]
fn the_first_screen_alone_names_the_cause() {
    let folder = fixture("x");
    let files = folder.parent().unwrap().read_dir().unwrap();
    let is_recording = |path: &PathBuf| path.extension().is_some_and(|it| it == "trec");
    let files = files.map(|entry| entry.unwrap().path());
    assert_eq!(files.filter(is_recording).count(), NAMED.len());
    let directory = TempDir::new();
    let page = |(name, ..): &(&str, &[&str], &str)| page_file(&directory, &[&fixture(name)]);
    let pages: Vec<String> = NAMED.iter().map(page).collect();
    let mut steps = Vec::new();
    for (width, height) in [(1280, 800), (400, 800)] {
        steps.push(json!(["size", width, height]));
        for page in &pages {
            steps.extend([json!(["open", page]), json!(["wait", READY]), json!(["visible"])]);
        }
    }
    let Some(results) = results(&pages[0], &WIDE, &json!(steps)) else {
        return;
    };
    let mut wrong = Vec::new();
    for (at, seen) in results.iter().enumerate() {
        let (name, words, not) = NAMED[at % NAMED.len()];
        let seen = seen.as_str().unwrap().to_lowercase();
        let is_shown = |text: &str| seen.contains(&text.to_lowercase());
        if !words.iter().all(|words| is_shown(words)) || is_shown(not) {
            wrong.push(format!("{name}, page {at}: {seen}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What stood out is a button that a key reaches and that zooms to it, and a mark in each chart
/// whose words are read where it is pointed at; in both themes and on a phone.
#[test]
fn moments_that_stood_out_are_marks_and_are_reached_by_keys() {
    let directory = TempDir::new();
    let file = directory.join("moments.trec");
    standing_out(&file);
    let moments = explained(&file)["moments"].as_array().unwrap().clone();
    let [moment] = &moments[..] else { panic!("{moments:?}") };
    let [from_s, to_s] =
        [&moment["from_ns"], &moment["to_ns"]].map(|ns| ns.as_f64().unwrap() / 1e9);
    assert!(from_s > 90.0 && to_s < 125.0, "{moment}");
    let url = page_file(&directory, &[&file]);
    for (width, dark) in [(400, false), (400, true), (1600, false), (1600, true)] {
        let is_focused = "document.activeElement?.dataset.moment !== undefined";
        let at = "document.querySelector('#at').textContent";
        let said = format!("{at}.includes({})", moment["time"]);
        let chart = "[data-chart] .plot";
        let steps = json!([
            ["wait", READY],
            ["tell", "document.querySelector('[data-moment]').innerText"],
            ["until", "Tab", is_focused, 60],
            ["press", "Enter"],
            ["wait", ZOOMED],
            ["tell", SHOWN],
            ["press", "Escape"],
            ["wait", WHOLE],
            ["tell", format!("document.querySelector('{chart}').scrollIntoView()")],
            ["until", "Tab", "document.activeElement?.matches('.plot') ?? false", 90],
            ["until", "ArrowRight", said, 400],
            ["tell", at],
            ["tell", "document.documentElement.scrollWidth"],
            ["shot", directory.join("moments.png")],
        ]);
        let screen = Screen { width, height: 1000, dark };
        let Some(seen) = results(&url, &screen, &steps) else {
            return;
        };
        let button = seen[0].as_str().unwrap();
        let claim = moment["claim"].as_str().unwrap();
        assert!(button.contains(moment["time"].as_str().unwrap()), "{button}");
        assert!(button.contains(claim), "{button}: {claim}");
        let [from, to] = ["from", "to"].map(|end| seen[1][end].as_f64().unwrap());
        assert!(from <= from_s && to >= to_s && to - from < 60.0, "{seen:?}");
        assert!(seen[3].as_str().unwrap().contains(claim), "{seen:?}");
        assert!(seen[4].as_f64().unwrap() <= f64::from(width), "{seen:?}");
        if let Some(kept) = std::env::var_os("TERRACE_SHOTS") {
            let name = format!("moments-{width}-{dark}.png");
            std::fs::copy(directory.join("moments.png"), Path::new(&kept).join(name)).unwrap();
        }
    }
}

#[test]
fn both_themes_and_all_widths_are_readable() {
    let directory = TempDir::new();
    let url = page_file(&directory, &[&fixture("swap_random")]);
    let mut grounds = Vec::new();
    for (width, dark) in [(400, false), (400, true), (1600, false), (1600, true)] {
        let screen = Screen { width, height: 1000, dark };
        let steps = json!([
            ["wait", READY],
            ["tell", "document.documentElement.scrollWidth"],
            [
                "tell",
                "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
            ],
            ["tell", "document.querySelector('[data-finding]').getBoundingClientRect().top"],
            ["shot", directory.join("page.png")],
        ]);
        let Some(results) = results(&url, &screen, &steps) else {
            return;
        };
        let overflow = results[0].as_f64().unwrap();
        assert!(overflow <= f64::from(width), "{width}: {overflow}");
        assert!(results[2].as_f64().unwrap() < 1000.0, "the cause is on the first screen");
        assert_ne!(results[1][0], results[1][1]);
        grounds.push(results[1].clone());
    }
    assert_ne!(grounds[0], grounds[1], "the themes differ");
    assert_eq!(grounds[0], grounds[2]);
}

/// The figures of the design are printed; only what no load changes is asserted.
#[test]
fn eight_charts_of_100000_samples_stay_below_60_mb() {
    let directory = TempDir::new();
    let recording = directory.join("x.trec");
    made(&recording, 8, 100_000);
    let url = page_file(&directory, &[&recording]);
    let draw_all =
        "[...document.querySelectorAll('[data-add]')].forEach((button) => button.click())";
    let look_at_all = "(async () => { for (const chart of document.querySelectorAll('#added [data-chart]')) { \
        chart.scrollIntoView(); await new Promise((done) => setTimeout(done, 100)); } })()";
    // All charts that are on screen are drawn anew before the key's handler returns.
    let zoom = "(() => { const chart = document.querySelector('#added .plot'); chart.focus(); const times = []; \
        for (const key of ['+', '+', '+', '-', '-', '-']) { const from = performance.now(); \
        chart.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })); times.push(performance.now() - from); } \
        return times; })()";
    let steps = json!([
        ["wait", READY],
        ["tell", "performance.now()"],
        ["click", "#counters summary"],
        ["click", "#counter-search"],
        ["type", "made"],
        ["wait", "document.querySelectorAll('[data-add]').length === 8"],
        ["tell", draw_all],
        ["tell", look_at_all],
        ["wait", "document.querySelectorAll('#added [data-chart] canvas').length === 8"],
        ["tell", zoom],
        ["heap"],
    ]);
    let Some(results) = results(&url, &WIDE, &steps) else {
        return;
    };
    println!("ready after {} ms, zooms {} ms, heap {} bytes", results[0], results[3], results[4]);
    assert!(results[4].as_u64().unwrap() <= 60 << 20, "{results:?}");
}
