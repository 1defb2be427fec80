//! Sources of one recording that cannot both be right: what rests on them loses its grade, and what
//! nothing decides clears no suspect. Beside each stands a near miss.

use super::builder::{Built, adds_up, command, delay, row};
use model::explanation::{Contradiction, Explanation};
use model::recording::{Subject, Usage};
use model::{Evidence, Grade};

/// The only contradiction of it.
fn only(explained: &Explanation) -> &Contradiction {
    adds_up(explained);
    let [one] = &explained.contradictions[..] else { panic!("{:?}", explained.contradictions) };
    one
}

fn none(built: &Built) {
    let explained = built.explained();
    adds_up(&explained);
    assert_eq!(explained.contradictions, []);
}

fn grade_of(explained: &Explanation, id: &str) -> Grade {
    let found = explained.findings.iter().find(|cause| cause.finding.id == id);
    found.unwrap_or_else(|| panic!("{id}: {explained:?}")).finding.grade
}

fn is_cleared(explained: &Explanation, id: &str) -> bool {
    explained.cleared.iter().any(|cause| cause.id == id)
}

/// A command that its events call busy, on two processors of which `busy_ms` were used.
fn busy(busy_ms: u64) -> Built {
    command(10_000)
        .events([9800, 0, 0, 0, 200], [9800, 0, 0, 200])
        .grows_ms("stat.cpu.user_ns", busy_ms)
        .grows_ms("stat.cpu.idle_ns", 20_000 - busy_ms)
}

#[test]
fn threads_that_ran_longer_than_all_processors_are_no_measured_cause() {
    let explained = busy(200).explained();
    let one = only(&explained);
    assert_eq!(
        one.text,
        "its threads ran for 9.8 s by switch events, all processors ran for 200 ms by their own \
         count"
    );
    assert_eq!((one.believed.as_ref(), &one.lowered[..]), (None, &["cpu_bound".to_owned()][..]));
    assert_eq!(grade_of(&explained, "cpu_bound"), Grade::Inferred);
    let sound = busy(9900);
    none(&sound);
    assert_eq!(grade_of(&sound.explained(), "cpu_bound"), Grade::Measured);
}

/// Short runs between two ticks: what the kernel charged decides.
#[test]
fn a_third_source_decides() {
    let charged = |cpu_ms: u64| {
        busy(200).ended(|outcome| {
            outcome.usage = Some(Usage { user_ns: cpu_ms * 1_000_000, ..Usage::default() });
        })
    };
    let explained = charged(9700).explained();
    let believed = only(&explained).believed.clone().unwrap();
    assert!(believed.starts_with("the events; the kernel charged its threads with 9.7 s"));
    assert_eq!(only(&charged(300).explained()).believed, None);
}

/// Where all ticks are zero they say nothing.
#[test]
fn ticks_that_do_not_count_contradict_nothing() {
    none(
        &command(10_000)
            .events([9800, 0, 0, 0, 200], [9800, 0, 0, 200])
            .grows_ms("stat.cpu.user_ns", 0)
            .grows_ms("stat.cpu.idle_ns", 0),
    );
}

/// Seen: 370,338 pages read again in a group, and no wait for one of them, because the charges for
/// waits had been switched on after its processes began.
fn group(waited_ms: u64) -> Built {
    let mut built = command(10_000)
        .open("delay_accounting")
        .stands("tree.threads", 2)
        .grows_ms("tree.run_ns", 9000)
        .grows_ms("tree.queue_ns", 1)
        .grows_ms("tree.block_io_ns", waited_ms)
        .grows("tree.read_bytes", 1_514_000_000)
        .grows("tree.write_bytes", 0)
        .grows("group0.memory.stat.workingset_refault_file", 370_338);
    built.0.facts.subject = Subject::Group { path: "/app".to_owned(), unit: None };
    built
}

#[test]
fn pages_that_are_read_again_in_no_time_contradict_the_charges() {
    let explained = group(0).explained();
    let one = only(&explained);
    assert!(one.text.starts_with("370,338 evicted pages (1.41 GiB) were read again"), "{one:?}");
    assert_eq!(one.remedy.as_deref(), Some("terrace record --cgroup /app --trace sched"));
    for id in ["reads_from_device", "cache_too_small", "memory_limit"] {
        assert!(!is_cleared(&explained, id), "{id}: {explained:?}");
    }
    none(&group(2000));
}

/// A charge of 30 s that the events do not know of, and one that differs by as much as clocks do.
#[test]
fn charges_and_events_that_differ_by_a_quarter_clear_no_device() {
    let charged = |block_io_ms: u64| {
        command(10_000).events([3000, 500, 100, 0, 6400], [3000, 500, 100, 6400]).row(row(
            10_000,
            3000,
            500,
            Some(delay(9, block_io_ms, Some(40))),
        ))
    };
    let explained = charged(3000).explained();
    let one = only(&explained);
    assert_eq!(one.text, "block I/O was 100 ms by switch events and 3 s by delay accounting");
    let small = charged(115).explained();
    assert_eq!((small.contradictions.len(), small.usual_doubts.len()), (0, 1), "{small:?}");
}

#[test]
fn a_stall_for_devices_that_was_not_seen_clears_none() {
    let stalled = |waited_ms: u64| {
        let mut built = command(10_000)
            .events([3000, 0, waited_ms, 0, 6000], [3000, 0, waited_ms, 6000])
            .grows("tree.read_bytes", 0)
            .grows_ms("group0.pressure.io.some_ns", 4000);
        built.0.facts.subject = Subject::Group { path: "/app".to_owned(), unit: None };
        built
    };
    let explained = stalled(10).explained();
    let one = only(&explained);
    assert!(one.text.starts_with("some task was stalled for I/O for 4 s (40"), "{one:?}");
    assert!(!is_cleared(&explained, "reads_from_device"), "{explained:?}");
    none(&stalled(3900));
}

/// What it says of a suspect that it no longer clears.
#[test]
fn a_suspect_that_is_not_cleared_is_unseen_with_the_reason() {
    let built = |charged_ms| {
        let mut built = group(charged_ms).grows("trace.sched.switches", 100);
        built.0.series.retain(|series| !series.schema.name.starts_with("tree.block"));
        built.events([9000, 0, charged_ms, 0, 1000], [9000, 0, charged_ms, 1000])
    };
    // Events watched it: reads without a waiting thread were read ahead.
    none(&built(0));
    let stalled = built(0).grows_ms("group0.pressure.io.some_ns", 4000).explained();
    let unseen = stalled.unseen.iter().find(|one| one.what == "reads_from_device");
    let why = &unseen.unwrap_or_else(|| panic!("{stalled:?}")).why;
    assert!(why.starts_with("sources contradict each other: some task was stalled"), "{why}");
    let cleared = built(0).explained();
    let number = |one: &Evidence| one.series.first().cloned();
    let numbers: Vec<_> = cleared.cleared.iter().map(|one| number(&one.evidence)).collect();
    assert!(is_cleared(&cleared, "reads_from_device"), "{numbers:?}");
}
