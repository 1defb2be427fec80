//! Groups of a machine that their own limit held back, and the processes in them: several by turns,
//! one process against another in one group, and groups that nothing looked at.

use super::builder::{Built, MIB, S, SECONDS, SESSION, finding, machine, names};
use model::explanation::ActorRole::{Culprit, Victim};
use model::recording::ProcessFigure::{BlockWait, Cpu, Queue, ReadBytes, Reclaim, Refaulted};
use model::recording::{SourceState, limited_directory};

const ALL: (u64, u64) = (0, SECONDS);
const WEB: &str = "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const MAIL: &str = "/system.slice/mail.service";

/// A machine that was idle for most of the time, whose groups were looked at.
fn watched() -> Built {
    let mut built = machine().busy_s(20).grows_evenly("trace.sched.queue_ns", 40 * S);
    built.0.facts.sights.insert("group_limits".to_owned(), SourceState::Open);
    level(&mut built, "limited.groups", "all hierarchies", 7);
    built
}

fn level(built: &mut Built, name: &str, source: &str, value: i64) {
    *built = built.clone().grows_evenly(name, 0);
    let series = built.0.series.last_mut().unwrap();
    source.clone_into(&mut series.schema.source);
    series.push(0, Some(value));
    for second in 1..=SECONDS {
        series.push(second as u32, Some(value));
    }
}

/// A counter of a group that appears when it is held back, with what it counted until then.
fn counts(built: &mut Built, name: &str, path: &str, total: u64, since: u64) {
    *built = built.clone().grows(name, total, ALL);
    let series = built.0.series.last_mut().unwrap();
    let directory = limited_directory("/sys/fs/cgroup/cpu", path);
    series.schema.source = format!("{directory}/cpu.stat");
    let all: Vec<_> = series.steps.iter().collect();
    series.steps = Default::default();
    for step in all.into_iter().filter(|step| u64::from(step.sample) >= since) {
        series.push(step.sample, step.value);
    }
}

fn stopped(built: &mut Built, number: u32, path: &str, seconds: u64, since: u64) {
    let name = |rest: &str| format!("limited{number}.cpu.{rest}");
    counts(built, &name("throttled_ns"), path, seconds * S, since);
    counts(built, &name("throttled_periods"), path, seconds * 10, since);
    level(built, &name("quota_us"), "cpu.max", 20_000);
    level(built, &name("period_us"), "cpu.max", 100_000);
}

#[test]
fn containers_that_are_stopped_by_turns_are_all_named() {
    let mut built = watched();
    stopped(&mut built, 0, WEB, 20, 5);
    stopped(&mut built, 1, MAIL, 10, 5);
    let nginx = built.process("nginx", 10, &format!("{WEB}/workers"));
    let postfix = built.process("postfix", 11, MAIL);
    let outside = built.process("firefox", 12, SESSION);
    built.used(nginx, ALL, &[(Cpu, 6 * S), (Queue, 24 * S)]);
    built.used(postfix, ALL, &[(Cpu, 3 * S), (Queue, 10 * S)]);
    built.used(outside, ALL, &[(Cpu, 9 * S), (Queue, 6 * S)]);
    let explained = built.explained();
    let cause = &explained.findings[0];
    assert_eq!(cause.finding.id, "cpu_limit");
    // What had been counted when the series appeared is growth; threads waited longer than the
    // kernel counts, and processors were idle.
    assert_eq!(
        cause.finding.claim,
        "Stopped for 34 s by CPU limits: docker-0123456789ab 24 s (200 times, 0.2 processors) and \
         mail.service 10 s (100 times, 0.2 processors)"
    );
    assert_eq!(names(cause, Victim), ["nginx", "postfix"]);
    assert!(names(cause, Culprit).is_empty(), "each used up its own quota");
}

#[test]
fn one_process_of_a_container_uses_up_the_quota_of_another() {
    let mut built = watched();
    stopped(&mut built, 0, WEB, 20, 5);
    let hog = built.process("batch", 10, WEB);
    let served = built.process("nginx", 11, WEB);
    let outside = built.process("firefox", 12, SESSION);
    built.used(hog, ALL, &[(Cpu, 6 * S), (Queue, 14 * S)]);
    built.used(served, ALL, &[(Cpu, S / 5), (Queue, 10 * S)]);
    built.used(outside, ALL, &[(Cpu, 13 * S), (Queue, 16 * S)]);
    let explained = built.explained();
    let cause = finding(&explained, "cpu_limit");
    assert_eq!((names(cause, Victim), names(cause, Culprit)), (vec!["nginx"], vec!["batch"]));
}

#[test]
fn on_a_busy_machine_a_limit_explains_no_more_than_the_kernel_counted() {
    let mut built = machine().busy_s(120).grows_evenly("trace.sched.queue_ns", 90 * S);
    built.0.facts.sights.insert("group_limits".to_owned(), SourceState::Open);
    level(&mut built, "limited.groups", "all hierarchies", 1);
    stopped(&mut built, 0, WEB, 20, 0);
    let nginx = built.process("nginx", 10, WEB);
    let stress = built.process("stress", 11, SESSION);
    built.used(nginx, ALL, &[(Cpu, 10 * S), (Queue, 50 * S)]);
    built.used(stress, ALL, &[(Cpu, 110 * S), (Queue, 40 * S)]);
    let explained = built.explained();
    assert_eq!(finding(&explained, "cpu_limit").ns, Some(20 * S));
    assert_eq!(finding(&explained, "cpu_contention").ns, Some(70 * S));
}

#[test]
fn a_container_at_its_memory_limit_is_named_with_what_that_cost() {
    let mut built = watched();
    counts(&mut built, "limited3.memory.failcnt", WEB, 5_000, 9);
    level(&mut built, "limited3.memory.usage_bytes", "usage", 64 << 20);
    level(&mut built, "limited3.memory.limit_bytes", "limit", 64 << 20);
    let node = built.process("node", 10, WEB);
    let other = built.process("tar", 11, SESSION);
    let read =
        [(ReadBytes, 100 * MIB), (Refaulted, 50 * MIB), (BlockWait, 8 * S), (Reclaim, 3 * S)];
    built.used(node, ALL, &read);
    built.used(other, ALL, &[(BlockWait, 30 * S), (Reclaim, 9 * S)]);
    let explained = built.explained();
    let cause = finding(&explained, "memory_limit");
    assert_eq!(
        cause.finding.claim,
        "Freed and read memory again at memory limits: docker-0123456789ab 7 s (limit 64 MiB, \
         reached 5,000 times)"
    );
    assert_eq!((cause.ns, names(cause, Victim)), (Some(7 * S), vec!["node"]));
}

#[test]
fn groups_that_were_looked_at_clear_and_others_are_not_seen() {
    let explained = watched().explained();
    for id in ["cpu_limit", "memory_limit", "io_limit"] {
        let cleared = explained.cleared.iter().find(|one| one.id == id).unwrap();
        assert_eq!(cleared.evidence.value, 7.0, "{id}");
    }
    let mut unread = watched();
    level(&mut unread, "limited.unreadable", "all hierarchies", 2);
    let explained = unread.explained();
    assert!(explained.cleared.iter().all(|one| one.id != "cpu_limit"));
    let unseen = explained.unseen.iter().find(|one| one.what == "cpu_limit").unwrap();
    assert!(unseen.why.starts_with("2 control groups"), "{}", unseen.why);
}
