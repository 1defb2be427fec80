//! Redaction against names that are also words of the kernel and of the recorder: no secret
//! survives, and no name of a series, a file or a sentence of ours changes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use model::recording::{
    Ending, Facts, FileIdentity, GroupFacts, Process, Recording, RecordingOutcome, Schema, Series,
    SourceState, Span, Subject, Task, Who,
};
use proptest::prelude::*;

/// Words of the kernel and of ours that people and programs are called, too.
const OURS: &[&str] = &[
    "memory",
    "stat",
    "cpu",
    "limit",
    "group",
    "machine",
    "root",
    "events",
    "usage_bytes",
    "proc",
    "memory.stat",
    "io",
    "vmstat",
    "device",
    "always",
    "sys",
    "cgroup",
    "the",
    "failcnt",
    "process",
];

/// Names of series and of the files behind them, both without anything of anybody's.
const SERIES: &[(&str, &str)] = &[
    ("vmstat.pgfault", "/proc/vmstat"),
    ("stat.cpu.user_ns", "/proc/stat"),
    ("group0.memory.usage_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ("group0.memory.failcnt", "/sys/fs/cgroup/memory/memory.failcnt"),
    ("group0.pressure.io.some_ns", "/sys/fs/cgroup/unified/io.pressure"),
    ("tree.run_ns", "/proc/PID/task/*/schedstat"),
    ("own.cpu_ns", "getrusage"),
    ("trace.sched.run_ns", "sched_switch"),
];

/// Sentences of the recorder that have no names in them.
const SENTENCES: &[&str] = &[
    "the memory of the machine",
    "only root may watch kernel events",
    "events came too fast and were stopped",
    "the group had no process when the recording began",
    "the device vda appeared",
];

/// A name that is no word of ours: each holds a digit and a letter that ours do not.
fn secret() -> impl Strategy<Value = String> {
    "[a-z]{2,5}[0-9]q[a-z]{1,4}"
}

/// A name: a secret, or one that is also ours.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![secret(), prop::sample::select(OURS).prop_map(str::to_owned)]
}

fn series(name: &str, source: &str) -> Series {
    let schema = Schema { name: name.to_owned(), source: source.to_owned(), ..Schema::default() };
    Series { schema, steps: model::recording::Steps::new() }
}

fn span(kind: &str, text: String) -> Span {
    Span { kind: kind.to_owned(), text, start_ns: 0, end_ns: 0 }
}

/// Processes and files of these names; the second of each is the first again.
fn who(names: &[String]) -> Who {
    let [user, word, group, host] = names else {
        panic!("four names");
    };
    let process = |id, user| Process {
        id,
        user,
        name: word.clone(),
        group: format!("/{group}/{word}"),
        ..Process::default()
    };
    let path = Some(format!("/home/{user}/{word}/{host}"));
    let file = |id| FileIdentity { id, path: path.clone(), ..FileIdentity::default() };
    Who {
        processes: vec![process(0, 54_321), process(1, 54_321)],
        files: vec![file(0), file(1)],
        ..Who::default()
    }
}

/// A recording in which these names stand wherever one can.
fn recording(names: &[String]) -> Recording {
    let [user, word, group, host] = names else {
        panic!("four names");
    };
    let mut all: Vec<Series> = SERIES.iter().map(|(name, source)| series(name, source)).collect();
    let file = format!("/sys/fs/cgroup/memory/{group}/{word}/memory.stat");
    all.push(series("group1.memory.stat.pgfault", &file));
    let first = format!("/sys/fs/cgroup/{group}/memory.events");
    all.push(series("group2.memory.events.oom", &first));
    let machine = model::machine::MachineFacts { host: Some(host.clone()), ..Default::default() };
    let mut spans = vec![span("mark", format!("{word} begins"))];
    spans.push(span("group_changed", format!("moved (memory /{group}/{word}): new")));
    spans.extend(SENTENCES.iter().map(|text| span("device_added", (*text).to_owned())));
    Recording {
        facts: Facts {
            subject: Subject::Command {
                argv: vec![format!("/home/{user}/bin/run"), word.clone(), format!("--x={word}")],
            },
            machine: Some(machine),
            groups: vec![GroupFacts {
                paths: [("memory".to_owned(), format!("/{group}/{word}"))].into(),
                ..GroupFacts::default()
            }],
            settings: [("thp".to_owned(), "always [madvise] never".to_owned())].into(),
            sights: [(
                "exits".to_owned(),
                SourceState::closed(format!("/home/{user}/x is gone"), None),
            )]
            .into(),
            ..Facts::default()
        },
        series: all,
        spans,
        tasks: vec![Task { comm: word.clone(), ..Task::default() }],
        who: who(names),
        outcome: Some(RecordingOutcome {
            ending: Ending::Killed {
                signal: 9,
                out_of_memory: Some(format!("the limit of the group /{group}/{word}")),
            },
            stopped_early: Some(format!("{user} has no space on {host}")),
            ..RecordingOutcome::default()
        }),
        damage: vec![format!("cannot read /home/{user}/a.trec: /{group}/{word} is cut")],
        ..Recording::default()
    }
}

proptest! {
    #[test]
    fn no_secret_survives_and_no_word_of_ours_changes(names in prop::collection::vec(name(), 4)) {
        let mut redacted = recording(&names);
        record::redact::redact(&mut redacted);
        let text = format!("{redacted:?}");
        for secret in names.iter().filter(|name| !OURS.contains(&name.as_str())) {
            prop_assert!(!text.contains(secret.as_str()), "{secret} is in {text}");
        }
        for (series, (name, source)) in redacted.series.iter().zip(SERIES) {
            prop_assert_eq!(&series.schema.name, name);
            prop_assert_eq!(&series.schema.source, source);
        }
        let group = redacted.facts.groups[0].paths["memory"].clone();
        let source = &redacted.series[SERIES.len()].schema.source;
        prop_assert_eq!(source, &format!("/sys/fs/cgroup/memory{group}/memory.stat"));
        let source = &redacted.series[SERIES.len() + 1].schema.source;
        prop_assert!(source.ends_with("/memory.events"), "{}", source);
        let Who { processes, files, .. } = &redacted.who;
        prop_assert_eq!(&processes[0].group, &group);
        prop_assert_eq!(Process { id: 1, ..processes[0].clone() }, processes[1].clone());
        prop_assert_ne!(processes[0].user, 54_321);
        prop_assert_eq!(&files[0].path, &files[1].path);
        prop_assert!(files[0].path.as_ref().unwrap().starts_with("/path-"));
        let sentences: Vec<&str> = redacted.spans[2..].iter().map(|span| span.text.as_str()).collect();
        prop_assert_eq!(sentences, SENTENCES);
        prop_assert_eq!(&redacted.facts.settings["thp"], "always [madvise] never");
    }
}
