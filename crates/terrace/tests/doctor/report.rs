//! The report itself: its first sentence, its forms, that it agrees with a recording, and that
//! nothing is changed or left by it.

use crate::support::TERRACE;
use crate::support::{has_program, run, terrace, valid_explanation};
use crate::{examined, health, report_of, source, sources, staged};
use std::collections::BTreeSet;
use std::path::Path;
use testkit::TempDir;

#[test]
fn text_and_json_say_the_same_and_each_source_is_named_once() {
    let report = report_of(terrace("doctor --json"));
    let ids: BTreeSet<&str> =
        sources(&report).map(|source| source["source"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), sources(&report).count());
    for id in ["ebpf", "tracepoints", "taskstats", "pressure", "cachestat", "pagemap"] {
        assert!(ids.contains(id), "{id}");
    }
    let page = terrace("doctor");
    let first = page.out.lines().next().unwrap();
    let summary = report["summary"].as_str().unwrap();
    assert!(summary.starts_with(first) || first == summary, "{first}: {summary}");
    assert!(first.contains("sources work"), "{first}");
    let flat: String = page.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for source in sources(&report) {
        let title = source["title"].as_str().unwrap();
        assert!(flat.contains(&format!("{title}:")), "{title}: {}", page.out);
    }
    assert!(page.out.lines().all(|line| line.chars().count() <= 120), "{}", page.out);
}

#[test]
fn every_command_that_it_names_exists() {
    let report = report_of(terrace("doctor --json"));
    let all = sources(&report).flat_map(|source| source["cost"]["commands"].as_array().unwrap());
    let names: BTreeSet<&str> = all.map(|name| name.as_str().unwrap()).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        terrace(&format!("{name} --help")).done();
    }
}

#[test]
fn it_writes_to_a_file_and_refuses_a_directory_that_is_not_there() {
    let directory = TempDir::new();
    let file = directory.join("doctor.json");
    let ran = terrace(&format!("doctor --json -o {}", file.display()));
    assert_eq!(ran.out, "");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"schema\": \"terrace.doctor/1\""), "{text}");
    let nowhere = directory.join("none/x");
    terrace(&format!("doctor -o {}", nowhere.display())).refused(2, "none");
}

#[test]
fn it_agrees_with_a_recording() {
    let directory = TempDir::new();
    let json = directory.join("x.json");
    let line = format!("run --quiet --json {} -- sleep 0.3", json.display());
    assert_eq!(terrace(&line).code, Some(0));
    let explained = valid_explanation(&std::fs::read_to_string(&json).unwrap());
    let unseen: BTreeSet<&str> = explained["unseen"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["what"].as_str().unwrap())
        .collect();
    let report = report_of(terrace("doctor --json"));
    for (id, sight) in [
        ("taskstats", "exits"),
        ("delay_accounting", "delay_accounting"),
        ("other_processes", "other_users"),
        ("processor_samples", "events.cpu"),
    ] {
        // Too few samples of a short run are another matter.
        let is_closed = ["partly", "missing"].contains(&health(&report, id));
        assert!(!is_closed || unseen.contains(sight) || !testkit::is_root(), "{id}: {unseen:?}");
        assert!(is_closed || sight == "events.cpu" || !unseen.contains(sight), "{id}: {unseen:?}");
    }
    if testkit::is_root() {
        let is_in_kernel = explained["watching"]["events"] == "in_kernel";
        assert_eq!(
            health(&report, "ebpf") != "missing",
            is_in_kernel,
            "{}",
            source(&report, "ebpf")
        );
    }
}

/// The settings, groups and files that a recorder changes or leaves elsewhere.
#[test]
fn it_changes_no_setting_and_leaves_nothing() {
    if !testkit::is_root() || !has_program("unshare") {
        return testkit::skip("root and unshare");
    }
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let settings = ["kernel/task_delayacct", "kernel/perf_event_paranoid", "vm/nr_hugepages"]
        .map(|name| format!("/proc/sys/{name}"));
    let before = settings.clone().map(|path| read(&path));
    // A /run of its own: nothing of another recorder is in it.
    let shell = "mount -t tmpfs none /run && mkdir /run/kept && touch /run/kept/x && \
                 \"$0\" doctor >/dev/null; status=$?; find /run -mindepth 1; exit $status";
    let ran = run(staged(&["unshare", "--mount", "sh", "-c", shell], TERRACE, &[]));
    assert!(ran.code.is_some_and(|code| code <= 1), "{ran:?}");
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("/run/kept\n/run/kept/x\n", ""));
    assert_eq!(settings.map(|path| read(&path)), before);
    let groups = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
    let left = groups.filter(|entry| entry.file_name().to_string_lossy().contains("terrace-"));
    let ended = left.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.split('-').nth(1).unwrap_or_default().to_owned();
        !Path::new("/proc").join(pid).exists()
    });
    assert_eq!(ended.count(), 0);
}

#[test]
fn what_another_recorder_keeps_stays() {
    if !testkit::is_root() || !has_program("unshare") {
        return testkit::skip("root and unshare");
    }
    let shell = "mount -t tmpfs none /run && mkdir -m 700 /run/terrace && \
                 touch /run/terrace/functions /run/terrace/rec-1-0.sock && \
                 \"$0\" doctor >/dev/null; ls /run/terrace";
    let ran = run(staged(&["unshare", "--mount", "sh", "-c", shell], TERRACE, &[]));
    assert_eq!(ran.out, "functions\nrec-1-0.sock\n", "{ran:?}");
}

#[test]
fn a_root_without_anything_else_is_still_examined() {
    // Neither XDG_RUNTIME_DIR nor HOME, as in a small container.
    let Some(report) = examined(&["env", "-i", "PATH=/usr/bin:/bin"]) else { return };
    assert!(sources(&report).count() > 20);
}
