//! The bars of the whole machine: its processors' time, by ticks. Events are believed for
//! the clock only.

use super::builder::{Built, adds_up, command, machine, part, slice_ms};
use model::Grade;
use model::recording::Subject;

fn busy() -> Built {
    machine(1000)
        .grows_ms("stat.cpu.user_ns", 500)
        .grows_ms("stat.cpu.system_ns", 200)
        .grows_ms("stat.cpu.softirq_ns", 100)
        .grows_ms("stat.cpu.steal_ns", 50)
        .grows_ms("stat.cpu.iowait_ns", 150)
        .grows_ms("stat.cpu.idle_ns", 1000)
}

#[test]
fn processor_time_adds_up() {
    let explained = busy().explained();
    adds_up(&explained);
    assert_eq!(explained.thread_ns, 2_000_000_000);
    let listed: Vec<(&str, u64)> = explained
        .bars
        .thread
        .iter()
        .map(|slice| (slice.name.as_str(), slice.ns / 1_000_000))
        .collect();
    assert_eq!(
        listed,
        [("run", 800), ("steal", 50), ("block_io", 150), ("idle", 1000), ("unexplained", 0)]
    );
    assert_eq!(part(&explained, "user").unwrap().ns / 1_000_000, 500);
    assert_eq!(part(&explained, "kernel").unwrap().ns / 1_000_000, 200);
    assert_eq!(explained.bars.thread[2].grade, Grade::Inferred);
}

#[test]
fn its_wall_is_what_some_processor_ran_at_most() {
    let explained = busy().explained();
    assert_eq!(slice_ms(&explained.bars.wall, "run"), Some(800));
    assert_eq!(slice_ms(&explained.bars.wall, "steal"), Some(50));
    assert_eq!(slice_ms(&explained.bars.wall, "block_io"), Some(150));
    assert_eq!(slice_ms(&explained.bars.wall, "idle"), Some(0));
    let exact = busy().events([800, 9, 9, 0, 9], [700, 100, 50, 150]);
    let explained = exact.explained();
    adds_up(&explained);
    assert_eq!(slice_ms(&explained.bars.wall, "run"), Some(700));
    assert_eq!(slice_ms(&explained.bars.wall, "sleep"), Some(150));
}

/// Seen on a kernel that loses the switch to the idle task: "CPU 98 %" of an idle machine.
#[test]
fn a_thread_that_ran_longer_than_all_processors_is_not_believed() {
    let idle = machine(1000).grows_ms("stat.cpu.user_ns", 20).grows_ms("stat.cpu.idle_ns", 1980);
    let explained = idle.events([980, 0, 0, 0, 20], [980, 0, 0, 20]).explained();
    adds_up(&explained);
    assert_eq!(slice_ms(&explained.bars.wall, "run"), Some(20));
    assert!(explained.bars.wall.iter().all(|slice| slice.grade != Grade::Measured));
    let text = "some thread ran for 980 ms by switch events, all processors ran for 20 ms";
    let [one] = &explained.contradictions[..] else { panic!("{:?}", explained.contradictions) };
    assert!(one.text.starts_with(text), "{one:?}");
    assert!(one.believed.as_ref().unwrap().starts_with("the processors' own count"), "{one:?}");
}

#[test]
fn without_ticks_nothing_is_explained() {
    let explained = machine(1000).explained();
    adds_up(&explained);
    assert_eq!(slice_ms(&explained.bars.thread, "unexplained"), Some(2000));
    assert_eq!(explained.bars.thread.len(), 1);
}

#[test]
fn a_probe_is_the_machine_and_a_group_is_not() {
    let mut built = busy();
    built.0.facts.subject = Subject::Probe { name: "survey".to_owned() };
    let explained = built.explained();
    assert_eq!(explained.subject, "the whole machine during terrace survey");
    assert_eq!(explained.thread_ns, 2_000_000_000);
    let mut built = command(1000).stands("tree.threads", 3);
    built.0.facts.subject = Subject::Group { path: "/app".to_owned(), unit: None };
    assert_eq!(built.explained().thread_ns, 3_000_000_000);
}
