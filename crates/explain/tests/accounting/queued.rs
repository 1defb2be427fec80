//! Time in the queue, against what the processors did meanwhile. A thread that slept for a
//! second was seen to be charged 999 ms of it at its end; each such recording has one beside it
//! in which the machine was as busy as the charge says.

use super::builder::{Built, MS, adds_up, command, row, slice_ms};
use model::explanation::Explanation;
use model::machine::MachineFacts;

/// A second of one thread, on two processors that were idle for so long.
fn second(idle_ms: u64) -> Built {
    let mut built = command(1000)
        .stands("tree.threads", 1)
        .grows_ms("tree.run_ns", 1)
        .grows_ms("stat.cpu.idle_ns", idle_ms)
        .grows_ms("stat.cpu.user_ns", 2000 - idle_ms);
    built.0.facts.machine = Some(MachineFacts { online_cpus: 2, ..MachineFacts::default() });
    built
}

/// So much queue, charged when the thread wakes up at the end.
fn charged_at_the_end(built: Built, ms: u64) -> Built {
    let mut values = [Some(0); 11];
    values[10] = Some((ms * MS) as i64);
    built.values("tree.queue_ns", &values)
}

fn is_left_out(built: &Built) -> bool {
    let explained = built.explained();
    adds_up(&explained);
    let has_queue_finding = |explained: &Explanation| {
        explained.findings.iter().any(|one| one.finding.id == "cpu_contention")
    };
    let queue_ms = slice_ms(&explained.bars.thread, "queue").unwrap();
    let repaired = explained.repairs.iter().any(|repair| {
        repair.after_ns == 0 && (repair.text.contains("queue_ns") || repair.text.contains("queue"))
    });
    assert_eq!(queue_ms == 0, repaired, "{:?}", explained.repairs);
    assert_eq!(queue_ms > 0, has_queue_finding(&explained), "{:?}", explained.findings);
    repaired
}

#[test]
fn no_thread_queues_for_a_second_on_an_idle_machine() {
    assert!(is_left_out(&charged_at_the_end(second(1950), 999)));
    // One processor is kept at work by somebody: it may be the one that is waited for.
    assert!(!is_left_out(&charged_at_the_end(second(1000), 990)));
}

#[test]
fn a_queue_on_one_processor_of_two_is_believed() {
    let pinned = second(1000).grows_ms("tree.queue_ns", 450);
    assert!(!is_left_out(&pinned));
    let pressed = pinned.grows_ms("pressure.cpu.some_ns", 225);
    assert!(!is_left_out(&pressed), "half of the processors' time");
}

#[test]
fn work_without_pressure_is_no_queue() {
    let hog_elsewhere = charged_at_the_end(second(1000), 990);
    assert!(is_left_out(&hog_elsewhere.clone().grows_ms("pressure.cpu.some_ns", 5)));
    assert!(!is_left_out(&hog_elsewhere.grows_ms("pressure.cpu.some_ns", 500)));
}

#[test]
fn a_limit_holds_threads_back_on_an_idle_machine() {
    let limited = second(1900).grows_ms("tree.queue_ns", 800);
    assert!(is_left_out(&limited));
    let explained = limited.grows_ms("group0.cpu.throttled_ns", 790).explained();
    assert_eq!(slice_ms(&explained.bars.thread, "queue"), Some(800));
}

#[test]
fn rows_are_asked_the_same() {
    let of = |idle_ms| second(idle_ms).row(row(1000, 1, 990, None));
    assert!(is_left_out(&of(1950)));
    assert!(!is_left_out(&of(1000)));
}

#[test]
fn without_idle_time_nothing_is_left_out() {
    let mut built = charged_at_the_end(second(1950), 990);
    built.0.facts.machine = None;
    assert!(!is_left_out(&built));
}
