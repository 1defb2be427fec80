//! Whatever a recording holds, both bars add up, no part is longer than what holds it, and
//! nothing panics: times that go back, counters that jump between the ends of their range,
//! rows of impossible lives, series that come and go, any window.

use super::builder::{Built, adds_up};
use explain::recording::accounting::ELAPSED;
use explain::recording::{Window, explain};
use model::explanation::Explanation;
use model::recording::{
    Delay, GroupFacts, Recording, RecordingOutcome, SourceState, Span, Subject, Task, TaskSource,
    Tick, Usage,
};
use proptest::prelude::*;

const NAMES: [&str; 62] = [
    "trace.sched.run_ns",
    "trace.sched.queue_ns",
    "trace.sched.block_io_ns",
    "trace.sched.children_ns",
    "trace.sched.sleep_ns",
    "trace.wall.run_ns",
    "trace.wall.queue_ns",
    "trace.wall.block_io_ns",
    "trace.wall.asleep_ns",
    "trace.sleep.lock_ns",
    "trace.sleep.flush_ns",
    "trace.sleep.reclaim_ns",
    "trace.sleep.kernel_ns",
    "trace.block_io.read_ns",
    "trace.block_io.dirty_ns",
    "trace.block_io.flush_ns",
    "trace.block_io.swap_in_ns",
    "trace.vmscan.direct_reclaim_ns",
    "trace.vmscan.direct_reclaims",
    "trace.vmscan.throttled_ns",
    "trace.vmscan.compaction_ns",
    "trace.writeback.dirty_wait_ns",
    "trace.lost",
    "tree.run_ns",
    "tree.queue_ns",
    "tree.block_io_ns",
    "tree.user_ns",
    "tree.system_ns",
    "tree.threads",
    "tree.processes",
    "tree.read_bytes",
    "tree.write_bytes",
    "stat.cpu.user_ns",
    "stat.cpu.nice_ns",
    "stat.cpu.system_ns",
    "stat.cpu.softirq_ns",
    "stat.cpu.steal_ns",
    "stat.cpu.iowait_ns",
    "stat.cpu.idle_ns",
    "group0.cpu.throttled_ns",
    "group0.cpu.throttled_periods",
    "vmstat.workingset_refault_file",
    "vmstat.workingset_refault_anon",
    "vmstat.pswpin",
    "trace.sched.sampled_ns",
    "trace.block_io.metadata_ns",
    "trace.block_io.journal_ns",
    "trace.block_io.writeback_ns",
    "trace.block_io.lower_ns",
    "trace.block_io.other_ns",
    "trace.cpu.samples",
    "trace.cpu.in.user",
    "trace.cpu.in.call",
    "trace.cpu.in.fault_first_touch",
    "trace.cpu.in.reclaim",
    "trace.cpu.in.softirq",
    "trace.cpu.kernel.copying",
    "trace.cpu.kernel.locks",
    "trace.cpu.call.read",
    "trace.cpu.call.openat",
    "trace.cpu.call.A-b",
    "own.cpu_ns",
];

/// Mostly times that a run may have, now and then the ends of the range.
fn nanos() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0..2_000_000_000u64,
        1 => Just(0),
        1 => Just(u64::MAX),
        1 => any::<u64>(),
    ]
}

fn value() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        8 => (0..2_000_000_000i64).prop_map(Some),
        1 => Just(None),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>()].prop_map(Some),
    ]
}

fn delay() -> impl Strategy<Value = Delay> {
    (nanos(), nanos(), proptest::option::of(nanos())).prop_map(|(count, total_ns, max_ns)| Delay {
        count,
        total_ns,
        max_ns,
    })
}

fn task() -> impl Strategy<Value = Task> {
    let times = proptest::collection::vec(nanos(), 10);
    let delays = proptest::collection::vec(proptest::option::of(delay()), 7);
    (times, delays, delay(), 0..3u8).prop_map(|(times, delays, queue, source)| Task {
        threads: times[0],
        alive_ns: times[1],
        run_ns: times[2],
        user_ns: times[3],
        system_ns: times[4],
        minor_faults: times[5],
        read_bytes: times[6],
        write_bytes: times[7],
        source: match source {
            0 => TaskSource::Exit,
            1 => TaskSource::Asked,
            _ => TaskSource::Proc,
        },
        queue,
        block_io: delays[0],
        swap_in: delays[1],
        reclaim: delays[2],
        thrash: delays[3],
        compact: delays[4],
        copy_on_write: delays[5],
        interrupts: delays[6],
        ..Task::default()
    })
}

fn subject() -> impl Strategy<Value = Subject> {
    prop_oneof![
        3 => Just(Subject::Command { argv: vec!["a b".to_owned()] }),
        1 => Just(Subject::Machine),
        1 => Just(Subject::Process { pid: 1, argv: Vec::new() }),
        1 => Just(Subject::Group { path: "/a".to_owned(), unit: None }),
    ]
}

fn outcome() -> impl Strategy<Value = Option<RecordingOutcome>> {
    let numbers = proptest::collection::vec(nanos(), 8);
    proptest::option::of((numbers, any::<bool>()).prop_map(|(numbers, used)| RecordingOutcome {
        ended_ns: numbers[0],
        lost_exits: numbers[1] % 3,
        lost_events: numbers[2] % 3,
        missed_samples: numbers[3],
        own_cpu_ns: numbers[4],
        own_setup_ns: numbers[5],
        usage: used.then(|| Usage {
            user_ns: numbers[6],
            system_ns: numbers[7],
            ..Usage::default()
        }),
        ..RecordingOutcome::default()
    }))
}

fn recording() -> impl Strategy<Value = Recording> {
    let series = proptest::collection::vec(value(), 1..8);
    let all = proptest::collection::vec(proptest::option::weighted(0.8, series), NAMES.len());
    let ticks = prop_oneof![
        3 => (0..8u64).prop_map(|n| (0..n).map(|i| i * 100_000_000).collect()),
        1 => proptest::collection::vec(nanos(), 0..8),
    ];
    let tasks = proptest::collection::vec(task(), 0..4);
    let rest = (any::<bool>(), proptest::option::of(nanos()), 0..4u32, nanos());
    (subject(), all, ticks, tasks, outcome(), rest).prop_map(
        |(subject, all, ticks, tasks, outcome, (open, stopped, processors, page_bytes))| {
            let mut built = Built(Recording::default());
            built.0.facts.subject = subject;
            built.0.facts.processors = processors;
            built.0.facts.page_bytes = page_bytes;
            let groups = [0, processors].map(|level| GroupFacts {
                level,
                made: true,
                ..GroupFacts::default()
            });
            built.0.facts.groups = groups.to_vec();
            built.0.ticks =
                ticks.into_iter().map(|at_ns: u64| Tick { due_ns: at_ns, at_ns }).collect();
            built.0.tasks = tasks;
            built.0.outcome = outcome;
            if open {
                let sights = &mut built.0.facts.sights;
                sights.insert("events.sched".to_owned(), SourceState::Open);
            }
            built.0.spans.extend(stopped.map(|start_ns| Span {
                kind: "events_stopped".to_owned(),
                text: "stopped".to_owned(),
                start_ns,
                end_ns: start_ns,
            }));
            for (name, values) in NAMES.iter().zip(all) {
                if let Some(values) = values {
                    built = built.values(name, &values);
                }
            }
            built.0
        },
    )
}

fn parts_fit(explanation: &Explanation, machine: bool) {
    for part in &explanation.of_which {
        let mut slices = explanation.bars.thread.iter();
        let within = slices
            .find(|slice| slice.name == part.within)
            .unwrap_or_else(|| panic!("{} in no slice", part.name));
        let bound = if ELAPSED.iter().any(|of| part.name == *of) {
            explanation.thread_ns
        } else {
            within.ns
        };
        let bounded = part.ns <= bound || (machine && part.within != "run");
        assert!(bounded, "{part:?} in {within:?}");
        assert!(!part.evidence.is_empty(), "{part:?}");
    }
    let names: std::collections::BTreeSet<&str> =
        explanation.of_which.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names.len(), explanation.of_which.len(), "a part twice");
}

proptest! {
    #[test]
    fn bars_add_up(
        recording in recording(),
        from_ns in proptest::option::of(nanos()),
        to_ns in proptest::option::of(nanos()),
    ) {
        let explanation = explain(&recording, Window { from_ns, to_ns });
        adds_up(&explanation);
        parts_fit(&explanation, recording.facts.subject == Subject::Machine);
        let repaired = explanation.repairs.iter();
        prop_assert!(repaired.clone().all(|r| r.after_ns <= r.before_ns));
        let share = explanation.watching.core_share;
        prop_assert!(share.is_none_or(f64::is_finite));
        let covered = explanation.covered;
        prop_assert!(covered.is_none_or(|share| (0.0..=1.0).contains(&share)), "{covered:?}");
        let json = serde_json::to_value(&explanation).unwrap();
        prop_assert_eq!(super::schema::complaint(&json), None);
    }
}
