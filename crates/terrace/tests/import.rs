//! `terrace import`: what other tools really print here becomes a recording that the other
//! commands take.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use support::terrace;
use testkit::{TempDir, skip};

/// Runs a tool into a file; false where it is not installed.
fn wrote(tool: &str, words: &[&str], file: &Path) -> bool {
    let Ok(output) = Command::new(tool).args(words).output() else {
        skip(tool);
        return false;
    };
    assert!(output.status.success(), "{tool}: {output:?}");
    std::fs::write(file, output.stdout).unwrap();
    true
}

/// Imports a file and gives the recording as JSON.
fn imported(file: &Path, recording: &Path) -> Value {
    let line = format!("import {} -o {}", file.display(), recording.display());
    let said = terrace(&line);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("terrace explain"), "{}", said.err);
    let line = format!("export {} --to json", recording.display());
    serde_json::from_str(&terrace(&line).done()).unwrap()
}

fn has(recording: &Value, name: &str) -> bool {
    let series = recording["series"].as_array().unwrap();
    series.iter().any(|one| one["name"] == name)
}

#[test]
fn what_vmstat_prints_here_is_explained() {
    let directory = TempDir::new();
    let (text, file) = (directory.join("v.txt"), directory.join("v.trec"));
    if !wrote("vmstat", &["-t", "1", "3"], &text) {
        return;
    }
    let recording = imported(&text, &file);
    assert_eq!(recording["samples"].as_array().unwrap().len(), 3);
    assert!(has(&recording, "stat.ctxt") && has(&recording, "meminfo.MemFree"));
    let page = terrace(&format!("explain {}", file.display())).done();
    assert!(page.contains("whole machine"), "{page}");
    let line = format!("explain {} --json", file.display());
    let explained: Value = serde_json::from_str(&terrace(&line).done()).unwrap();
    let unseen = explained["unseen"].to_string();
    assert!(unseen.contains("imported from vmstat"), "{unseen}");
}

#[test]
fn what_iostat_and_sar_print_here_names_the_disks() {
    let directory = TempDir::new();
    let file = directory.join("x.trec");
    let text = directory.join("i.txt");
    if wrote("iostat", &["-xt", "1", "3"], &text) {
        let recording = imported(&text, &file);
        let series = recording["series"].to_string();
        assert!(series.contains(".read_bytes"), "{series}");
    }
    let data = directory.join("sa");
    let data_text = data.display().to_string();
    if wrote("sar", &["-o", &data_text, "1", "3"], &text)
        && wrote("sadf", &["-j", &data_text, "--", "-A"], &text)
    {
        std::fs::remove_file(&file).unwrap();
        let recording = imported(&text, &file);
        assert!(has(&recording, "stat.cpu.user_ns") && has(&recording, "vmstat.pgfault"));
    }
}

#[test]
fn a_run_of_fio_is_taken_in_whole_and_by_its_log() {
    let directory = TempDir::new();
    let data = format!("--filename={}", directory.join("data").display());
    let log = format!("--write_bw_log={}", directory.join("db").display());
    let job = [
        "--name=db",
        "--size=8m",
        "--rw=randread",
        "--runtime=4",
        "--time_based",
        "--log_avg_msec=100",
        "--output-format=json",
        &data,
        &log,
    ];
    let text = directory.join("fio.json");
    if !wrote("fio", &job, &text) {
        return;
    }
    let whole = imported(&text, &directory.join("whole.trec"));
    assert!(has(&whole, "fio.db.read_bytes") && has(&whole, "fio.db.read_p99_ns"));
    let course = imported(&directory.join("db_bw.1.log"), &directory.join("log.trec"));
    assert!(has(&course, "fio.db.read_bytes"));
    assert!(course["samples"].as_array().unwrap().len() > 5, "{course}");
}

#[test]
fn unknown_text_is_refused_and_nothing_is_left() {
    let directory = TempDir::new();
    let (text, file) = (directory.join("x.txt"), directory.join("x.trec"));
    std::fs::write(&text, "hello\n").unwrap();
    let line = format!("import {} -o {}", text.display(), file.display());
    terrace(&line).refused(3, "not the output of a known tool");
    std::fs::write(&text, [0xff, 0xfe, 0, 1]).unwrap();
    terrace(&line).refused(3, "valid UTF-8");
    terrace(&format!("{line} --from sadf --interval 0s")).refused(2, "at least 1 ms");
    assert!(!file.exists());
}
