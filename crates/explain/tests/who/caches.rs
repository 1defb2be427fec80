//! Who filled the page cache, the memory and the device, and who waited for that.
//! A culprit is concluded from what it did at the same time: inferred.

use super::builder::{
    BACKUP, Built, GIB, MIB, S, SECONDS, SESSION, finding, machine, names, of_role,
};
use model::Grade;
use model::explanation::ActorRole::{Culprit, Victim};
use model::recording::ProcessFigure::{
    BlockWait, CacheAdded, ReadBytes, Reclaim, Refaulted, SwappedIn, WrittenBytes,
};

const ALL: (u64, u64) = (0, SECONDS);

/// A machine on which what chrome reads was evicted moments before, `again` bytes of it, while
/// a process added `added` bytes to the cache.
fn evicted(again: u64, added: u64) -> Built {
    let during = (20, 40);
    let mut built = machine()
        .reads_s(25, during)
        .grows("disk.vda.reads", 9_000, during)
        .grows("disk.vda.read_bytes", 2 * GIB + 16 * GIB, during)
        .grows("disk.vda.write_bytes", 0, during)
        .grows("vmstat.workingset_refault_file", again / 4096, during);
    let chrome = built.process("chrome", 4711, SESSION);
    let tar = built.process("tar", 812, BACKUP);
    built.used(
        chrome,
        during,
        &[(BlockWait, 20 * S), (ReadBytes, 2 * GIB), (CacheAdded, 2 * GIB), (Refaulted, again)],
    );
    built.used(tar, during, &[(BlockWait, 5 * S), (ReadBytes, added), (CacheAdded, added)]);
    built
}

#[test]
fn who_read_again_and_who_filled_the_cache() {
    let mut built = evicted(3 * GIB / 2, 14 * GIB);
    let (cache, db) = (built.file(Some("/srv/cache/x"), 1), built.file(None, 77));
    built.read(cache, 0, GIB, GIB);
    built.read(db, 0, GIB, GIB / 2);
    let explained = built.explained();
    let again = finding(&explained, "cache_evicted_by_stream");
    assert_eq!((names(again, Victim), names(again, Culprit)), (vec!["chrome"], vec!["tar"]));
    let tar = of_role(again, Culprit)[0];
    assert_eq!((tar.used.figure.as_str(), tar.used.value), ("cache_filled", 14 * GIB));
    assert_eq!(tar.used.grade, Grade::Inferred, "it did so at the same time");
    let victim = &of_role(again, Victim)[0].used;
    assert_eq!((victim.figure.as_str(), victim.grade), ("refaulted", Grade::Measured));
    assert_eq!(
        again.who,
        [
            "chrome (pid 4711, session-3.scope) read 2 GiB, 75 % of it evicted moments before; \
             backup.service (pid 812, tar) added 14 GiB to the page cache meanwhile (84.8 %)",
            "Read again: /srv/cache/x 1 GiB (66.7 %, by chrome (pid 4711)), inode 77 of vda \
             (254:0) 512 MiB (33.3 %, by chrome (pid 4711))",
        ]
    );
    let reads = finding(&explained, "reads_from_device");
    assert_eq!((names(reads, Victim), names(reads, Culprit)), (vec!["chrome"], vec!["tar"]));
    assert!(reads.who[0].starts_with(
        "chrome (pid 4711, session-3.scope) waited 20 s for block I/O and read 2 GiB, 75 % of it \
         evicted moments before; backup.service (pid 812, tar) read 14 GiB meanwhile"
    ));
    assert_eq!(reads.files[0].figure, "read");
}

/// Nearly: the one that adds most is the one that reads again. Its neighbour is no culprit.
#[test]
fn a_set_that_does_not_fit_is_its_own() {
    let mut built = evicted(3 * GIB / 2, 100 * MIB);
    // Chrome also adds what it had not read before.
    built.used(0, (20, 40), &[(CacheAdded, 5 * GIB), (ReadBytes, 5 * GIB)]);
    let explained = built.explained();
    let again = finding(&explained, "cache_too_small");
    assert_eq!((names(again, Victim), names(again, Culprit)), (vec!["chrome"], vec!["chrome"]));
    let said = &again.who[0];
    assert!(said.contains("; its own part of what filled the page cache was "), "{said}");
    assert!(said.contains("% (5.5 GiB)"), "{said}");
}

/// A culprit and a victim in one session, of one name: two processes.
#[test]
fn a_culprit_in_the_group_of_its_victim() {
    let mut built = evicted(3 * GIB / 2, 14 * GIB);
    built.0.who.processes[1].group = SESSION.to_owned();
    built.0.who.processes[1].name = "chrome".to_owned();
    let explained = built.explained();
    let again = finding(&explained, "cache_evicted_by_stream");
    let pids = |role| {
        let actors = of_role(again, role).into_iter();
        actors.map(|actor| actor.used.pid.unwrap()).collect::<Vec<u32>>()
    };
    assert_eq!((pids(Victim), pids(Culprit)), (vec![4711], vec![812]));
    assert!(
        again.who[0].contains("; chrome (pid 812, session-3.scope) added 14 GiB"),
        "{}",
        again.who[0]
    );
}

/// What is done before and after the waits is not done meanwhile.
#[test]
fn a_culprit_is_looked_for_while_it_happened() {
    let mut built = evicted(3 * GIB / 2, 14 * GIB);
    let early = built.process("updatedb", 300, "/system.slice/locate.service");
    built.used(early, (0, 15), &[(CacheAdded, 40 * GIB), (ReadBytes, 40 * GIB)]);
    let explained = built.explained();
    assert_eq!(names(finding(&explained, "cache_evicted_by_stream"), Culprit), ["tar"]);
    let part = built.between(25, 35);
    let again = finding(&part, "cache_evicted_by_stream");
    assert_eq!(names(again, Culprit), ["tar"]);
    assert!(again.who[0].contains("added 7 GiB to the page cache"), "{}", again.who[0]);
}

/// Swapping: who took the memory, whose memory came back, and no thread of the kernel.
#[test]
fn a_leak_takes_the_memory_of_others() {
    let mut built = machine()
        .grows_evenly("trace.block_io.swap_in_ns", 20 * S)
        .grows_evenly("trace.sched.block_io_ns", 20 * S)
        .grows_evenly("trace.sched.run_ns", S)
        .grows_evenly("trace.vmscan.direct_reclaim_ns", 10 * S)
        .grows_evenly("vmstat.pswpin", 100_000)
        .grows_evenly("vmstat.pswpout", 900_000);
    let editor = built.process("code", 50, SESSION);
    let leak = built.process("python3", 66, "/system.slice/report.service");
    let kswapd = built.kernel("kswapd0", 40);
    built.used(editor, ALL, &[(SwappedIn, 380 * MIB), (BlockWait, 18 * S), (Reclaim, 9 * S)]);
    built.used(leak, ALL, &[(Reclaim, S)]);
    built.used(kswapd, ALL, &[(Reclaim, 30 * S)]);
    built.rises(leak, 3 * GIB);
    let explained = built.explained();
    let swapped = finding(&explained, "swapping");
    assert_eq!((names(swapped, Victim), names(swapped, Culprit)), (vec!["code"], vec!["python3"]));
    assert!(
        swapped.who[0].starts_with(
            "code (pid 50, session-3.scope) read 380 MiB of its memory back from swap; \
             report.service (pid 66, python3) took "
        ),
        "{}",
        swapped.who[0]
    );
    let reclaim = finding(&explained, "reclaim_direct");
    assert_eq!((names(reclaim, Victim), names(reclaim, Culprit)), (vec!["code"], vec!["python3"]));
}

/// The kernel killed a process: who had the memory just then, however calm it was by then.
#[test]
fn who_had_the_memory_when_it_was_out() {
    let built = |held: u64| {
        let mut built = machine().grows("vmstat.oom_kill", 1, (50, 51));
        let gone = built.process("firefox", 12, SESSION);
        built.used(gone, (0, 20), &[]);
        built.0.who.rows.iter_mut().for_each(|row| row.memory_bytes = 40 * GIB);
        built.0.who.rows.last_mut().unwrap().has_ended = true;
        let cache = built.process("java", 50, "/system.slice/search.service");
        built.used(cache, (0, 30), &[]);
        built.rises(cache, held);
        for number in 0..6 {
            let small = built.process("worker", 60 + number, SESSION);
            built.used(small, ALL, &[]);
        }
        built.explained()
    };
    let explained = built(6 * GIB);
    let killed = finding(&explained, "out_of_memory");
    assert_eq!(
        killed.who,
        ["search.service (pid 50, java) had 6.1 GiB of memory (91.2 %), worker (6 processes, \
          session-3.scope) 600 MiB (8.77 %)"]
    );
    assert_eq!(
        (killed.actors[0].used.figure.as_str(), killed.actors[0].used.grade),
        ("memory_held", Grade::Inferred)
    );
}

#[test]
fn a_writer_is_held_back_by_who_writes_more() {
    let built = |culprit: u64| {
        let mut built = machine()
            .grows_evenly("trace.block_io.dirty_ns", 20 * S)
            .grows_evenly("trace.sched.block_io_ns", 20 * S)
            .grows_evenly("trace.sched.run_ns", S)
            .grows_evenly("vmstat.nr_dirtied", 10 * GIB / 4096);
        let logger = built.process("logger", 50, SESSION);
        let copy = built.process("rsync", 66, BACKUP);
        built.used(logger, ALL, &[(WrittenBytes, 40 * MIB), (BlockWait, 15 * S)]);
        built.used(copy, ALL, &[(WrittenBytes, culprit), (BlockWait, S)]);
        let file = built.file(Some("/backup/disk.img"), 5);
        built.read(file, copy, 0, 0);
        built.0.who.file_rows[0].dirtied_bytes = culprit;
        built.explained()
    };
    let explained = built(9 * GIB);
    let held = finding(&explained, "dirty_throttle");
    assert_eq!((names(held, Victim), names(held, Culprit)), (vec!["logger"], vec!["rsync"]));
    assert_eq!(
        held.who,
        [
            "logger (pid 50, session-3.scope) waited 15 s for block I/O; backup.service (pid 66, \
             rsync) wrote 9 GiB meanwhile (90 %)",
            "Written: /backup/disk.img 9 GiB (100 %, by rsync (pid 66))",
        ]
    );
    // Nearly: most was written by processes that have no rows.
    let explained = built(GIB);
    let held = finding(&explained, "dirty_throttle");
    assert_eq!((names(held, Victim), names(held, Culprit)), (vec!["logger"], vec![]));
    assert!(held.who[0].ends_with(
        "no single process: the first of them, backup.service (pid 66, rsync), had 10 % of the \
         bytes written"
    ));
}
