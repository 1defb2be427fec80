//! Who used the processors, and who waited for them.
//! Both are counted for each process: measured.

use super::builder::{
    BACKUP, Built, S, SECONDS, SESSION, command, finding, machine, names, of_role,
};
use model::Grade;
use model::explanation::ActorRole::{Culprit, Victim};
use model::recording::ProcessFigure::{Cpu, Queue, WrittenBytes};

const ALL: (u64, u64) = (0, SECONDS);

/// A machine whose two processors are busy, where threads waited so many seconds.
fn crowded(queued_s: u64) -> Built {
    machine().busy_s(2 * SECONDS).grows_evenly("trace.sched.queue_ns", queued_s * S)
}

#[test]
fn a_machine_says_who_kept_it_busy() {
    let mut built = machine().busy_s(100);
    let firefox = built.process("firefox", 4711, SESSION);
    let tar = built.process("tar", 812, BACKUP);
    let idle = built.process("sshd", 30, "/system.slice/ssh.service");
    built.used(firefox, ALL, &[(Cpu, 60 * S)]);
    built.used(tar, ALL, &[(Cpu, 30 * S)]);
    built.used(idle, ALL, &[(Cpu, S)]);
    let explained = built.explained();
    let bound = finding(&explained, "cpu_bound");
    assert_eq!(bound.finding.claim, "The processors were busy for 100 s of 2 min");
    assert_eq!(
        bound.who,
        [
            "firefox (pid 4711, session-3.scope) ran 60 s (60 %), backup.service (pid 812, tar) 30 s \
          (30 %)"
        ]
    );
    let culprits = of_role(bound, Culprit);
    assert_eq!(culprits.len(), 2);
    let first = &culprits[0].used;
    assert_eq!((first.process, first.pid, first.value), (Some(0), Some(4711), 60 * S));
    assert_eq!((first.figure.as_str(), first.unit.as_str(), first.share), ("cpu", "ns", 0.6));
    assert_eq!((first.group.as_str(), first.grade), (SESSION, Grade::Measured));
    assert_eq!(of_role(bound, Victim).len(), 0, "no process waited");
}

#[test]
fn a_hog_is_the_culprit_and_the_one_that_waits_the_victim() {
    let mut built = crowded(60);
    let hog = built.process("stress", 9, SESSION);
    let victim = built.process("mpv", 10, SESSION);
    // The hog's own threads wait for each other most of all.
    built.used(hog, ALL, &[(Cpu, 110 * S), (Queue, 50 * S)]);
    built.used(victim, ALL, &[(Cpu, 5 * S), (Queue, 10 * S)]);
    let explained = built.explained();
    let waited = finding(&explained, "cpu_contention");
    assert_eq!((names(waited, Victim), names(waited, Culprit)), (vec!["mpv"], vec!["stress"]));
    assert_eq!(
        waited.who,
        ["mpv (pid 10, session-3.scope) waited 10 s for a processor; stress (pid 9, \
          session-3.scope) ran 110 s meanwhile (91.7 %)"]
    );
}

/// Nearly: no other process waited long enough to notice.
#[test]
fn a_hog_alone_waits_for_itself() {
    let mut built = crowded(60);
    let hog = built.process("stress", 9, SESSION);
    let calm = built.process("mpv", 10, SESSION);
    built.used(hog, ALL, &[(Cpu, 118 * S), (Queue, 58 * S)]);
    built.used(calm, ALL, &[(Cpu, S), (Queue, S)]);
    let explained = built.explained();
    let waited = finding(&explained, "cpu_contention");
    assert_eq!((names(waited, Victim), names(waited, Culprit)), (vec!["stress"], vec!["stress"]));
    assert_eq!(
        waited.who,
        ["stress (pid 9, session-3.scope) waited 58 s for a processor; its own part of the \
             processor time was 98.3 % (118 s)"]
    );
}

/// Two programs share the processors, and only they wait: the larger one is no mere victim.
#[test]
fn of_two_that_wait_for_each_other_the_larger_is_a_culprit_too() {
    let mut built = crowded(60);
    let (large, small) = (built.process("cc1", 9, SESSION), built.process("tar", 10, BACKUP));
    built.used(large, ALL, &[(Cpu, 70 * S), (Queue, 32 * S)]);
    built.used(small, ALL, &[(Cpu, 50 * S), (Queue, 28 * S)]);
    let explained = built.explained();
    let waited = finding(&explained, "cpu_contention");
    assert_eq!(names(waited, Victim), ["cc1"]);
    assert_eq!(names(waited, Culprit), ["cc1", "tar"]);
    assert!(
        waited.who[0].ends_with(
            "; its own part of the processor time was 58.3 % (70 s); backup.service (pid 10, tar) \
             ran 50 s meanwhile (41.7 %)"
        ),
        "{}",
        waited.who[0]
    );
}

#[test]
fn without_a_clear_one_the_first_is_named_with_its_share() {
    let mut built = machine().busy_s(100);
    for number in 0..11 {
        let process = built.process(&format!("worker{number}"), 100 + number, "/");
        built.used(process, ALL, &[(Cpu, (9 - u64::from(number / 2)) * S)]);
    }
    let explained = built.explained();
    let bound = finding(&explained, "cpu_bound");
    assert_eq!(bound.actors, []);
    assert_eq!(
        bound.who,
        ["no single process: the first of them, worker0 (pid 100), had 9 % of the processor time"]
    );
}

#[test]
fn many_small_ones_of_a_program_or_a_group_are_one_user() {
    let mut built = machine().busy_s(100);
    for number in 0..20 {
        let compiler = built.process("cc1plus", 1000 + number, SESSION);
        built.used(compiler, (3 * u64::from(number), 3 * u64::from(number) + 3), &[(Cpu, 4 * S)]);
    }
    let explained = built.explained();
    let bound = finding(&explained, "cpu_bound");
    assert_eq!(bound.who, ["cc1plus (20 processes, session-3.scope) ran 80 s (80 %)"]);
    let compilers = &bound.actors[0].used;
    assert_eq!((compilers.processes, compilers.pid, compilers.process), (20, None, None));

    let id = "0123456789abcdef".repeat(4);
    let mut built = machine().busy_s(100);
    for number in 0..10 {
        let process = built.process(&format!("php{number}"), 50 + number, &format!("/docker/{id}"));
        built.used(process, ALL, &[(Cpu, 6 * S)]);
    }
    let explained = built.explained();
    let bound = finding(&explained, "cpu_bound");
    assert_eq!(bound.who, ["docker-0123456789ab (10 processes) ran 60 s (60 %)"]);
    assert_eq!(bound.actors[0].used.name, "docker-0123456789ab");
}

#[test]
fn a_storm_of_short_lived_ones_names_who_started_them() {
    let mut built = machine().busy_s(100);
    let cron = built.process("cron", 700, "/system.slice/cron.service");
    built.used(cron, ALL, &[(Cpu, S)]);
    let storm = built.process("sh", 0, "/system.slice/cron.service");
    built.0.who.processes[storm as usize].is_many = true;
    built.0.who.processes[storm as usize].parent = 700;
    built.used(storm, ALL, &[(Cpu, 90 * S)]);
    let rows = built.0.who.rows.iter_mut().filter(|row| row.process == storm);
    rows.for_each(|row| row.processes = 100);
    let explained = built.explained();
    assert_eq!(
        finding(&explained, "cpu_bound").who,
        [
            "cron.service (6,000 short-lived processes, started by cron (pid 700), sh) ran 90 s (90 %)"
        ]
    );
}

/// A build in several containers: no program of one of them is clear, the name is.
#[test]
fn one_name_in_several_groups_is_one_user() {
    let mut built = machine().busy_s(100);
    for number in 0..40 {
        let group = format!("/build/{}", number % 5);
        let compiler = built.process("rustc", 1000 + number, &group);
        built.used(compiler, ALL, &[(Cpu, 2 * S)]);
    }
    let explained = built.explained();
    let bound = finding(&explained, "cpu_bound");
    assert_eq!(bound.who, ["rustc (40 processes in 5 groups) ran 80 s (80 %)"]);
    let used = &bound.actors[0].used;
    assert_eq!((used.group.as_str(), used.group_name.as_deref()), ("", None));
}

/// Three with much, and none of them with enough.
#[test]
fn without_a_clear_one_the_first_with_much_are_named() {
    let mut built = machine().busy_s(100);
    for (number, seconds) in (0..).zip([20u64, 15, 12, 8]) {
        let process = built.process(&format!("worker{number}"), 100 + number, "/");
        built.used(process, ALL, &[(Cpu, seconds * S)]);
    }
    let explained = built.explained();
    assert_eq!(
        finding(&explained, "cpu_bound").who,
        ["no single process: the first of them, worker0 (pid 100), had 20 % of the processor \
          time, worker1 (pid 101) 15 %, worker2 (pid 102) 12 %"]
    );
}

/// The kernel gave a number to a second process: two actors, each with its own name.
#[test]
fn a_number_that_was_used_twice_is_two_actors() {
    let mut built = machine().busy_s(100);
    let first = built.process("gcc", 77, SESSION);
    let second = built.process("ld", 77, SESSION);
    built.used(first, (0, 30), &[(Cpu, 40 * S)]);
    built.used(second, (30, 60), &[(Cpu, 50 * S)]);
    let explained = built.explained();
    let bound = finding(&explained, "cpu_bound");
    assert_eq!(names(bound, Culprit), ["ld", "gcc"]);
    let ids: Vec<_> =
        bound.actors.iter().map(|actor| (actor.used.process, actor.used.pid)).collect();
    assert_eq!(ids, [(Some(1), Some(77)), (Some(0), Some(77))]);
}

/// `others` has no name: it is in the total and never an actor.
#[test]
fn what_overflowed_is_no_actor() {
    let mut built = machine().busy_s(100);
    let others = built.process("others", 0, "");
    built.0.who.processes[0].parent = 0;
    built.0.who.processes[0].is_many = true;
    let tar = built.process("tar", 812, BACKUP);
    built.used(others, ALL, &[(Cpu, 70 * S)]);
    built.used(tar, ALL, &[(Cpu, 20 * S)]);
    let explained = built.explained();
    let bound = finding(&explained, "cpu_bound");
    assert_eq!(bound.actors, []);
    assert_eq!(
        bound.who,
        ["no single process: the first of them, backup.service (pid 812, tar), had 20 % of the \
          processor time"]
    );
}

#[test]
fn a_thread_of_the_kernel_stands_for_who_makes_its_work() {
    let built = |written: u64| {
        let mut built = machine().busy_s(100).grows_evenly("vmstat.nr_dirtied", 262_144);
        let flusher = built.kernel("kworker/u4:1-flush-254:0", 60);
        let dd = built.process("dd", 90, SESSION);
        built.used(flusher, ALL, &[(Cpu, 80 * S)]);
        built.used(dd, ALL, &[(Cpu, 2 * S), (WrittenBytes, written)]);
        built.explained()
    };
    let explained = built(1 << 30);
    let known = finding(&explained, "cpu_bound");
    assert_eq!(names(known, Culprit), ["dd"]);
    assert_eq!(known.actors[0].used.figure, "written_bytes");
    assert_eq!(known.actors[0].used.grade, Grade::Inferred);
    assert_eq!(
        known.who,
        [
            "dd (pid 90, session-3.scope) wrote 1 GiB (100 %); kernel thread kworker/u4:1-flush-254:0 \
          ran 80 s for it"
        ]
    );
    // A tenth of what was written is of no known process: then the thread stands for itself.
    let explained = built(100 << 20);
    let unknown = finding(&explained, "cpu_bound");
    assert_eq!(names(unknown, Culprit), ["kworker/u4:1-flush-254:0"]);
}

#[test]
fn in_a_command_a_process_is_named_only_if_there_are_several() {
    let built = |children: u32| {
        let mut built = command("make")
            .grows_evenly("tree.run_ns", 50 * S)
            .grows_evenly("trace.sched.run_ns", 50 * S)
            .grows_evenly("stat.cpu.user_ns", 55 * S);
        let make = built.process("make", 5, SESSION);
        built.used(make, ALL, &[(Cpu, if children == 0 { 50 * S } else { S })]);
        for number in 0..children {
            let child = built.process("cc1plus", 10 + number, SESSION);
            built.used(child, ALL, &[(Cpu, 49 * S / u64::from(children))]);
        }
        built.explained()
    };
    let explained = built(0);
    let alone = finding(&explained, "cpu_bound");
    assert_eq!((alone.actors.len(), alone.who.len()), (0, 0));
    let explained = built(2);
    // Everybody is in one session: that is not worth a word.
    assert_eq!(
        finding(&explained, "cpu_bound").who,
        ["cc1plus (pid 10) ran 24.5 s (44.5 %), cc1plus (pid 11) 24.5 s (44.5 %)"]
    );
    let explained = built(4);
    // Each of four has much: together they are the program.
    assert_eq!(finding(&explained, "cpu_bound").who, ["cc1plus (4 processes) ran 49 s (89.1 %)"]);
}

/// What others did is not in the recording of a command, and no process in it is its culprit.
#[test]
fn a_culprit_outside_of_the_recording_is_not_invented() {
    let mut built = command("work")
        .grows_evenly("trace.sched.run_ns", 20 * S)
        .grows_evenly("trace.sched.queue_ns", 40 * S)
        .grows_evenly("stat.cpu.user_ns", 120 * S);
    let work = built.process("work", 5, SESSION);
    let child = built.process("child", 6, SESSION);
    built.used(work, ALL, &[(Cpu, 18 * S), (Queue, 38 * S)]);
    built.used(child, ALL, &[(Cpu, 2 * S), (Queue, 2 * S)]);
    let explained = built.explained();
    let waited = finding(&explained, "cpu_contention");
    assert_eq!((names(waited, Victim), names(waited, Culprit)), (vec!["work"], vec![]));
    assert_eq!(
        waited.who,
        ["work (pid 5) waited 38 s for a processor; 83.3 % of the processor time is of processes \
          that this recording does not watch"]
    );
}
