//! Groups of a machine that their own limit held back, and the processes in them: several by turns,
//! one process against another in one group, and groups that nothing looked at.

use super::builder::{Built, MIB, S, SECONDS, SESSION, finding, machine, names};
use model::explanation::ActorRole::{Culprit, Victim};
use model::recording::ProcessFigure::{
    BlockWait, CacheAdded, Cpu, Queue, ReadBytes, Reclaim, Refaulted,
};
use model::recording::{SourceState, limited_directory};

const ALL: (u64, u64) = (0, SECONDS);
const WEB: &str = "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const MAIL: &str = "/system.slice/mail.service";

/// A machine that was idle for most of the time, whose groups were looked at.
fn watched() -> Built {
    let mut built = machine().busy_s(20).grows_evenly("trace.sched.queue_ns", 40 * S);
    built.0.facts.sights.insert("group_limits".to_owned(), SourceState::Open);
    level(&mut built, "limited.groups", "all hierarchies", 7);
    for missed in ["limited.unreadable", "limited.unwatched"] {
        level(&mut built, missed, "all hierarchies", 0);
    }
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
        "Lost 7 s at memory limits, freeing memory and reading evicted data again: \
         docker-0123456789ab 7 s (limit 64 MiB, reached 5,000 times)"
    );
    assert_eq!((cause.ns, names(cause, Victim)), (Some(7 * S), vec!["node"]));
}

#[test]
fn one_that_streams_in_a_group_hides_no_wait_of_another() {
    let mut built = watched();
    counts(&mut built, "limited3.memory.failcnt", WEB, 5_000, 9);
    let node = built.process("node", 10, WEB);
    let backup = built.process("backup", 11, WEB);
    let again = [(ReadBytes, 100 * MIB), (Refaulted, 100 * MIB), (BlockWait, 8 * S)];
    built.used(node, ALL, &again);
    built.used(backup, ALL, &[(ReadBytes, 9_900 * MIB), (BlockWait, 20 * S)]);
    // Of all bytes of the group a hundredth was read again, and all that node waited was for that.
    assert_eq!(finding(&built.explained(), "memory_limit").ns, Some(8 * S));
}

/// The backup would evict the same data at a limit twice as high.
#[test]
fn what_a_stream_in_the_group_evicted_is_no_price_of_its_limit() {
    let mut built = watched()
        .grows("disk.vda.read_bytes", 10_000 * MIB, ALL)
        .grows("disk.vda.reads", 9_000, ALL)
        .reads_s(28, ALL)
        .grows("vmstat.workingset_refault_file", 100 * MIB / 4096, ALL);
    counts(&mut built, "limited3.memory.failcnt", WEB, 5_000, 9);
    let node = built.process("node", 10, WEB);
    let backup = built.process("backup", 11, WEB);
    let again = [(ReadBytes, 100 * MIB), (Refaulted, 100 * MIB), (BlockWait, 8 * S)];
    built.used(node, ALL, &again);
    built.used(node, ALL, &[(CacheAdded, 100 * MIB), (Reclaim, 3 * S)]);
    let once = [(ReadBytes, 9_900 * MIB), (CacheAdded, 9_900 * MIB), (BlockWait, 20 * S)];
    built.used(backup, ALL, &once);
    let explained = built.explained();
    assert_eq!(finding(&explained, "memory_limit").ns, Some(3 * S));
    let stream = finding(&explained, "cache_evicted_by_stream");
    assert_eq!((names(stream, Victim), names(stream, Culprit)), (vec!["node"], vec!["backup"]));
}

#[test]
fn a_limit_is_known_of_a_group_that_is_gone() {
    let mut built = watched();
    stopped(&mut built, 0, WEB, 20, 5);
    for series in &mut built.0.series {
        if series.schema.name.starts_with("limited0.") {
            series.push(SECONDS as u32, None);
        }
    }
    let nginx = built.process("nginx", 10, WEB);
    built.used(nginx, ALL, &[(Queue, 24 * S)]);
    let explained = built.explained();
    let claim = &finding(&explained, "cpu_limit").finding.claim;
    assert!(claim.ends_with(", 0.2 processors)"), "{claim}");
}

#[test]
fn of_a_group_in_a_group_no_time_counts_twice() {
    let mut built = watched();
    let inner = format!("{MAIL}/worker");
    stopped(&mut built, 0, MAIL, 20, 5);
    stopped(&mut built, 1, &inner, 20, 5);
    let postfix = built.process("postfix", 11, &inner);
    built.used(postfix, ALL, &[(Cpu, 3 * S), (Queue, 24 * S)]);
    let explained = built.explained();
    let cause = finding(&explained, "cpu_limit");
    assert_eq!((cause.ns, names(cause, Victim)), (Some(24 * S), vec!["postfix"]));
}

#[test]
fn rarely_stopped_threads_waited_for_their_processor() {
    let mut built = watched();
    stopped(&mut built, 0, WEB, 4, 5);
    counts(&mut built, "limited0.cpu.periods", WEB, 600, 5);
    let nginx = built.process("nginx", 10, WEB);
    built.used(nginx, ALL, &[(Cpu, 6 * S), (Queue, 24 * S)]);
    assert_eq!(finding(&built.explained(), "cpu_limit").ns, Some(4 * S));
}

#[test]
fn groups_without_series_are_not_cleared() {
    for (counter, rule) in [
        ("cpu.throttled_periods", "cpu_limit"),
        ("memory.hits", "memory_limit"),
        ("io.held_ns", "io_limit"),
    ] {
        let explained = watched().grows_evenly(&format!("limited.others.{counter}"), 9).explained();
        assert!(explained.cleared.iter().all(|one| one.id != rule), "{rule}");
        assert!(explained.unseen.iter().any(|one| one.what == rule), "{rule}");
    }
}

#[test]
fn a_kill_is_a_groups_only_where_its_limit_was_reached() {
    let killed = |reached: &[&str]| {
        let mut built = watched().grows_evenly("vmstat.oom_kill", 1);
        for (number, path) in [(0, MAIL), (1, &*format!("{MAIL}/worker"))] {
            counts(&mut built, &format!("limited{number}.memory.events.oom_kill"), path, 1, 0);
        }
        for name in reached {
            let path = if name.starts_with("limited0") {
                MAIL.to_owned()
            } else {
                format!("{MAIL}/worker")
            };
            counts(&mut built, name, &path, 7, 0);
        }
        finding(&built.explained(), "out_of_memory").finding.claim.clone()
    };
    assert_eq!(killed(&[]), "The kernel killed a process for want of memory");
    let outer = killed(&["limited0.memory.failcnt"]);
    assert!(outer.contains(" in mail.service for want of memory: it is at its own"), "{outer}");
    let both = killed(&["limited0.memory.failcnt", "limited1.memory.failcnt"]);
    assert_eq!(outer.replace("mail.service", "X"), both.replace("mail.service", "X"));
}

#[test]
fn groups_that_may_have_no_more_processes_are_named() {
    let mut built = watched();
    counts(&mut built, "limited0.pids.refused", WEB, 31, 5);
    level(&mut built, "limited0.pids.limit", "pids.max", 64);
    let explained = built.explained();
    let cause = &explained.findings[0];
    assert_eq!((cause.finding.id.as_str(), cause.ns), ("process_limit", None));
    assert_eq!(
        cause.finding.claim,
        "31 new processes or threads were refused by process limits: docker-0123456789ab \
         (31 times, limit 64)"
    );
    let counted = watched().grows_evenly("limited.others.pids.refused", 9).explained();
    assert!(counted.unseen.iter().any(|one| one.what == "process_limit"));
}

#[test]
fn groups_that_were_looked_at_clear_and_others_are_not_seen() {
    let explained = watched().explained();
    for id in ["cpu_limit", "memory_limit", "io_limit", "process_limit"] {
        let mut all = explained.cleared.iter();
        let found = all.find(|one| one.id == id);
        let cleared = found.unwrap_or_else(|| panic!("{:#?}", explained.unseen));
        assert_eq!(cleared.evidence.value, 7.0, "{id}");
    }
    let mut unread = watched();
    level(&mut unread, "limited.unreadable", "all hierarchies", 2);
    let explained = unread.explained();
    assert!(explained.cleared.iter().all(|one| one.id != "cpu_limit"));
    let unseen = explained.unseen.iter().find(|one| one.what == "cpu_limit").unwrap();
    assert!(unseen.why.starts_with("2 control groups"), "{}", unseen.why);
}

#[test]
fn processors_that_were_idle_at_another_time_are_not_cleared() {
    let mut built = watched();
    let report = built.process("report", 10, SESSION);
    let served = built.process("nginx", 11, WEB);
    built.used(report, (0, 20), &[(Cpu, 18 * S), (Queue, 20 * S)]);
    built.used(served, (0, 20), &[(Cpu, S), (Queue, 20 * S)]);
    let explained = built.explained();
    let cause = finding(&explained, "cpu_contention");
    assert!(cause.finding.claim.contains("at times they wanted more"), "{}", cause.finding.claim);
    assert_eq!((names(cause, Victim), names(cause, Culprit)), (vec!["nginx"], vec!["report"]));
}
