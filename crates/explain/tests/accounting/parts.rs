//! What is inside of the bars: each part comes from its best source and is no longer than
//! the slice that holds it.

use super::builder::{Built, adds_up, command, delay, machine, part, row};
use model::Grade;
use model::recording::GroupFacts;

fn eventful() -> Built {
    command(10_000).events([2000, 1000, 3000, 500, 3500], [2000, 1000, 3000, 4000])
}

fn ms(built: &Built, name: &str) -> Option<(u64, String)> {
    let explained = built.explained();
    adds_up(&explained);
    part(&explained, name).map(|part| (part.ns / 1_000_000, part.within.clone()))
}

#[test]
fn waits_for_block_io_are_split_by_purpose() {
    let built = eventful()
        .grows_ms("trace.block_io.read_ns", 1500)
        .grows_ms("trace.block_io.dirty_ns", 700)
        .grows_ms("trace.block_io.swap_in_ns", 300)
        .grows_ms("trace.block_io.write_ns", 0)
        .grows_ms("trace.writeback.dirty_wait_ns", 690);
    let held = |ms| Some((ms, "block_io".to_owned()));
    assert_eq!(ms(&built, "block_read"), held(1500));
    assert_eq!(ms(&built, "dirty_throttle"), held(700));
    assert_eq!(ms(&built, "swap_in"), held(300));
    assert_eq!(ms(&built, "block_write"), None);
}

#[test]
fn sleep_is_split_by_purpose() {
    let built = eventful()
        .grows_ms("trace.sleep.lock_ns", 2000)
        .grows_ms("trace.sleep.timer_ns", 1000)
        .grows_ms("trace.sleep.kernel_ns", 400)
        .grows_ms("trace.sleep.file_lock_ns", 60)
        .grows_ms("trace.sleep.file_ns", 100);
    let held = |ms| Some((ms, "sleep".to_owned()));
    assert_eq!(ms(&built, "lock"), held(2000));
    assert_eq!(ms(&built, "timer"), held(1000));
    assert_eq!(ms(&built, "kernel_wait"), held(400));
    assert_eq!(ms(&built, "file_lock"), held(60));
    assert_eq!(ms(&built, "file_system"), held(100));
}

/// A flush waits for the device and for the journal; the two are one part.
#[test]
fn a_flush_is_the_sum_of_its_two_waits() {
    let built =
        eventful().grows_ms("trace.block_io.flush_ns", 300).grows_ms("trace.sleep.flush_ns", 900);
    assert_eq!(ms(&built, "flush"), Some((1200, "sleep".to_owned())));
    let built = eventful().grows_ms("trace.sleep.flush_ns", 900);
    assert_eq!(ms(&built, "flush"), Some((900, "sleep".to_owned())));
}

#[test]
fn events_are_asked_before_rows() {
    let mut task = row(10_000, 2000, 1000, Some(delay(9, 3000, None)));
    task.reclaim = Some(delay(40, 1100, None));
    task.compact = Some(delay(2, 30, None));
    let built = eventful()
        .row(task)
        .grows_ms("trace.vmscan.direct_reclaim_ns", 1000)
        .grows("trace.vmscan.direct_reclaims", 77);
    let explained = built.explained();
    let reclaim = part(&explained, "direct_reclaim").unwrap();
    assert_eq!((reclaim.ns / 1_000_000, reclaim.count), (1000, Some(77)));
    assert_eq!(part(&explained, "compaction").unwrap().count, Some(2));
    let name = &reclaim.evidence[0].name;
    assert_eq!(name, "trace.vmscan.direct_reclaim_ns");
    assert_eq!(reclaim.evidence[0].source, format!("source of {name}"));
}

#[test]
fn a_part_is_no_longer_than_its_slice() {
    let built =
        eventful().grows_ms("trace.sleep.lock_ns", 9000).grows_ms("group0.cpu.throttled_ns", 9000);
    assert_eq!(ms(&built, "lock").unwrap().0, 3500);
    assert_eq!(ms(&built, "cpu_limit"), Some((1000, "queue".to_owned())));
}

#[test]
fn run_is_split_in_the_proportion_of_the_ticks() {
    let mut task = row(1000, 400, 0, None);
    task.user_ns = 30_000_000;
    task.system_ns = 10_000_000;
    let built = command(1000).row(task);
    assert_eq!(ms(&built, "user"), Some((300, "run".to_owned())));
    assert_eq!(ms(&built, "kernel"), Some((100, "run".to_owned())));
    let none = command(1000).row(row(1000, 400, 0, None));
    assert_eq!(ms(&none, "user"), None);
}

#[test]
fn the_tightest_group_is_the_cpu_limit() {
    let mut built = command(1000)
        .row(row(1000, 100, 800, None))
        .grows_ms("group0.cpu.throttled_ns", 0)
        .grows_ms("group1.cpu.throttled_ns", 600)
        .grows("group1.cpu.throttled_periods", 9);
    for level in 0..2 {
        built.0.facts.groups.push(GroupFacts { level, ..GroupFacts::default() });
    }
    let explained = built.explained();
    let limit = part(&explained, "cpu_limit").unwrap();
    assert_eq!((limit.ns / 1_000_000, limit.count), (600, Some(9)));
}

#[test]
fn waits_with_reads_and_few_writes_were_for_reads() {
    let mut task = row(1000, 100, 0, Some(delay(50, 800, Some(30))));
    task.read_bytes = 40_960_000;
    let built = command(1000).row(task);
    assert_eq!(ms(&built, "block_read"), Some((800, "block_io".to_owned())));
    let swapping = built.grows("vmstat.pswpin", 2500);
    assert_eq!(ms(&swapping, "block_read").unwrap().0, 600);
    assert_eq!(ms(&swapping, "swap_in").unwrap().0, 200);
    let explained = swapping.explained();
    let read = part(&explained, "block_read").unwrap();
    assert_eq!(read.grade, Grade::Inferred);
}

#[test]
fn refaults_are_counted_even_where_thrashing_says_0() {
    let mut task = row(6142, 1424, 2065, Some(delay(47_542, 2619, None)));
    task.thrash = Some(delay(0, 0, None));
    let built = command(6142)
        .row(task)
        .grows("group0.memory.stat.workingset_refault_file", 192_497)
        .grows("vmstat.workingset_refault_file", 200_000);
    let explained = built.explained();
    let refault = part(&explained, "refault").unwrap();
    assert_eq!(refault.count, Some(192_497));
    assert_eq!(refault.grade, Grade::Inferred);
}

/// The machine lost 400 ms; the command had a quarter of what its processors ran.
#[test]
fn steal_is_the_subjects_share() {
    let built = command(1000)
        .row(row(1000, 300, 0, None))
        .grows_ms("stat.cpu.steal_ns", 400)
        .grows_ms("stat.cpu.user_ns", 1200);
    assert_eq!(ms(&built, "steal"), Some((100, "run".to_owned())));
}

#[test]
fn a_machines_waits_are_not_bounded_by_its_processors() {
    let built = machine(1000)
        .events([100, 0, 9000, 0, 90_000], [100, 0, 900, 0])
        .grows_ms("stat.cpu.iowait_ns", 700)
        .grows_ms("trace.block_io.read_ns", 9000);
    assert_eq!(ms(&built, "block_read").unwrap().0, 9000);
    assert_eq!(ms(&built, "lock"), None);
}
