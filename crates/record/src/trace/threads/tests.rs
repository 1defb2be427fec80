//! Stories of a few threads, and the sums that must come out; then any events at all, after
//! which lives and wall must still close.

use super::*;
use crate::trace::event::Io;
use proptest::prelude::*;

const TIMER: State = State::Sleep(Sleep::Timer);

fn at(time_ns: u64, what: EventKind) -> Event {
    Event { time_ns, what }
}

fn seen(process: u32, thread: u32, state: State) -> EventKind {
    EventKind::Seen { process, thread, state: Some(state) }
}

/// It leaves, and its processor has nothing else to do.
fn out(thread: u32, state: State) -> EventKind {
    EventKind::Switch { thread, leave: Leave::Waits(state), next: 0 }
}

fn run(threads: &mut Threads, events: &[Event]) {
    events.iter().for_each(|event| threads.apply(event));
}

fn total(threads: &Threads) -> u64 {
    threads.states.iter().map(|state| state.sum_ns).sum()
}

fn sum_ns(threads: &Threads, state: State) -> u64 {
    threads.sums().states_ns[state.index()]
}

#[test]
fn a_sleep_goes_through_all_states() {
    let mut threads = Threads::new(false);
    threads.expect(10);
    let (thread, is_preempted) = (10, false);
    run(
        &mut threads,
        &[
            at(100, EventKind::Start),
            at(100, seen(10, 10, State::Run)),
            at(110, out(thread, TIMER)),
            at(111, EventKind::Out { thread, is_preempted }),
            at(150, EventKind::Wakeup { thread }),
            at(153, EventKind::In { thread }),
            at(160, EventKind::Out { thread, is_preempted: true }),
            at(165, EventKind::In { thread }),
            at(170, EventKind::Exit { thread }),
            // The last switch of a thread comes after its end.
            at(171, EventKind::Out { thread, is_preempted }),
        ],
    );
    threads.settle(200);
    assert_eq!(sum_ns(&threads, State::Run), 10 + 7 + 5);
    assert_eq!(sum_ns(&threads, State::Queue), 3 + 5);
    assert_eq!(sum_ns(&threads, TIMER), 40);
    assert_eq!(total(&threads), 70, "the life of the thread");
    assert_eq!(threads.sums().wall_ns, [22, 8, 0, 40 + 30]);
    assert_eq!(threads.switches, 2);
}

/// The notice that a thread has left comes after its stack was read, and another thread may have
/// woken it by then.
#[test]
fn a_wait_shorter_than_the_read_of_its_stack_is_counted() {
    let mut threads = Threads::new(true);
    let notice = EventKind::Out { thread: 1, is_preempted: false };
    run(
        &mut threads,
        &[
            at(10, EventKind::Start),
            at(10, seen(1, 1, State::Run)),
            at(10, EventKind::In { thread: 1 }),
            at(20, out(1, State::BlockIo(Io::Read))),
            at(23, EventKind::Wakeup { thread: 1 }),
            at(25, notice),
            at(31, EventKind::In { thread: 1 }),
            // Only the notice reports this one.
            at(40, notice),
        ],
    );
    threads.settle(50);
    assert_eq!(sum_ns(&threads, State::Run), 10 + 9);
    assert_eq!(sum_ns(&threads, State::BlockIo(Io::Read)), 3);
    assert_eq!(sum_ns(&threads, State::Queue), 8);
    assert_eq!(sum_ns(&threads, State::Sleep(Sleep::Unknown)), 10);
    assert_eq!(threads.switches, 2);
}

#[test]
fn unreported_wake_ups_are_counted() {
    let mut threads = Threads::new(true);
    run(
        &mut threads,
        &[
            at(10, EventKind::Start),
            at(10, seen(1, 1, TIMER)),
            // It slept before the first event.
            at(20, EventKind::In { thread: 1 }),
            at(30, out(1, TIMER)),
            at(40, EventKind::Wakeup { thread: 1 }),
            at(41, EventKind::Wakeup { thread: 1 }),
            at(50, EventKind::In { thread: 1 }),
            at(60, out(1, TIMER)),
            at(70, EventKind::In { thread: 1 }),
        ],
    );
    assert_eq!((threads.waits, threads.untold_wakeups), (2, 1));
}

#[test]
fn one_switch_tells_who_leaves_and_who_comes() {
    let mut threads = Threads::new(true);
    let switch = |thread, leave, next| EventKind::Switch { thread, leave, next };
    run(
        &mut threads,
        &[
            at(10, EventKind::Start),
            at(10, seen(1, 1, State::Run)),
            at(10, seen(2, 2, State::Queue)),
            at(20, switch(1, Leave::Ready, 2)),
            at(35, switch(2, Leave::Ended, 1)),
        ],
    );
    threads.settle(40);
    assert_eq!(sum_ns(&threads, State::Run), 10 + 15 + 5);
    assert_eq!(sum_ns(&threads, State::Queue), 10 + 15);
    assert_eq!(threads.known().collect::<Vec<_>>(), [1]);
}

#[test]
fn the_wall_belongs_to_the_first_state_that_someone_holds() {
    let mut threads = Threads::new(true);
    run(
        &mut threads,
        &[
            at(10, EventKind::Start),
            at(10, seen(1, 1, State::BlockIo(Io::Read))),
            at(10, seen(2, 2, TIMER)),
            at(10, EventKind::In { thread: 2 }),
            at(10, out(2, TIMER)),
            at(10, EventKind::Out { thread: 2, is_preempted: false }),
            at(30, EventKind::Wakeup { thread: 2 }),
            at(40, EventKind::In { thread: 2 }),
            at(70, EventKind::Exit { thread: 2 }),
        ],
    );
    threads.settle(100);
    assert_eq!(threads.sums().wall_ns, [30, 10, 20 + 30, 0]);
    assert_eq!(total(&threads), 90 + 60);
}

#[test]
fn children_belong_and_strangers_do_not() {
    let mut threads = Threads::new(false);
    threads.expect(10);
    let fork = |process, thread, parent| EventKind::Fork { process, thread, parent };
    run(
        &mut threads,
        &[
            at(1, EventKind::Start),
            at(2, fork(10, 10, 5)),
            at(3, fork(11, 11, 10)),
            at(4, fork(20, 20, 5)),
            at(5, fork(11, 12, 11)),
        ],
    );
    let mut known: Vec<_> = threads.known().collect();
    known.sort_unstable();
    assert_eq!(known, [10, 11, 12]);
    assert!(threads.includes(11) && !threads.includes(20));
    run(
        &mut threads,
        &[at(6, EventKind::Exit { thread: 12 }), at(7, EventKind::Exit { thread: 11 })],
    );
    assert!(!threads.includes(11), "its number may be used again");
}

#[test]
fn a_thread_that_starts_a_program_takes_the_number_of_its_process() {
    let mut threads = Threads::new(false);
    threads.expect(10);
    run(
        &mut threads,
        &[
            at(1, EventKind::Start),
            at(1, seen(10, 10, TIMER)),
            at(1, seen(10, 12, State::Run)),
            at(5, EventKind::Exit { thread: 10 }),
            at(6, EventKind::Exec { process: 10, thread: 10 }),
        ],
    );
    assert_eq!(threads.known().collect::<Vec<_>>(), [10]);
    threads.settle(10);
    assert_eq!(sum_ns(&threads, State::Run), 5 + 4);
}

#[test]
fn a_late_event_counts_from_the_latest_instant() {
    let mut threads = Threads::new(true);
    run(
        &mut threads,
        &[
            at(10, EventKind::Start),
            at(10, seen(1, 1, TIMER)),
            at(10, EventKind::In { thread: 1 }),
            at(10, out(1, TIMER)),
            at(10, EventKind::Out { thread: 1, is_preempted: false }),
        ],
    );
    threads.settle(50);
    run(&mut threads, &[at(40, EventKind::Wakeup { thread: 1 })]);
    threads.settle(60);
    assert_eq!(sum_ns(&threads, TIMER), 40);
    assert_eq!(sum_ns(&threads, State::Queue), 10);
}

#[test]
fn a_runnable_thread_is_judged_by_its_next_switch() {
    let unknown = |thread| EventKind::Seen { process: 1, thread, state: None };
    let mut events = [
        at(1, unknown(1)),
        at(1, unknown(2)),
        at(1, unknown(3)),
        at(2, EventKind::In { thread: 1 }),
        at(3, EventKind::Out { thread: 1, is_preempted: true }),
        at(3, EventKind::Out { thread: 2, is_preempted: true }),
    ];
    settle_seen(&mut events);
    let states = events[..3].iter().map(|event| match event.what {
        EventKind::Seen { state, .. } => state,
        _ => None,
    });
    let expected = [State::Queue, State::Run, State::Run].map(Some);
    assert_eq!(states.collect::<Vec<_>>(), expected);
}

/// Any event about a few threads.
fn any_event() -> impl Strategy<Value = EventKind> {
    let (process, thread) = (1..4u32, 1..6u32);
    let any_state = prop_oneof![
        Just(State::Run),
        Just(State::Queue),
        Just(State::Children),
        Just(State::BlockIo(Io::Flush)),
        Just(TIMER),
    ];
    (0..8u32, process, thread, any_state, any::<bool>()).prop_map(
        |(kind, process, thread, state, is_preempted)| match kind {
            0 => seen(process, thread, state),
            1 => EventKind::Fork { process, thread, parent: 1 },
            2 => EventKind::Exit { thread },
            3 => EventKind::Exec { process, thread },
            4 => EventKind::Switch { thread, leave: Leave::Waits(state), next: process },
            5 => EventKind::Out { thread, is_preempted },
            6 => EventKind::In { thread },
            _ => EventKind::Wakeup { thread },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is lost or absurd: lives and wall close exactly.
    #[test]
    fn sums_close_after_any_events(steps in prop::collection::vec((0..20u64, any_event()), 0..80)) {
        let mut threads = Threads::new(false);
        threads.expect(1);
        threads.apply(&at(1000, EventKind::Start));
        let (mut now, mut lives) = (1000, 0);
        for (pause, what) in steps {
            lives += pause * threads.threads.len() as u64;
            now += pause;
            threads.apply(&at(now, what));
        }
        threads.settle(now);
        prop_assert_eq!(total(&threads), lives);
        prop_assert_eq!(threads.sums().wall_ns.iter().sum::<u64>(), now - 1000);
    }
}

/// Some kernels hide the switches of a thread and report its wake-ups: it is then not runnable
/// until an event says that it ran.
#[test]
fn a_wakeup_alone_makes_no_thread_runnable() {
    let mut threads = Threads::new(true);
    run(
        &mut threads,
        &[
            at(10, EventKind::Start),
            at(10, seen(1, 1, TIMER)),
            at(20, EventKind::Wakeup { thread: 1 }),
        ],
    );
    threads.settle(100);
    assert_eq!(sum_ns(&threads, TIMER), 90);
    run(
        &mut threads,
        &[
            at(110, EventKind::In { thread: 1 }),
            at(120, out(1, TIMER)),
            at(120, EventKind::Out { thread: 1, is_preempted: false }),
            at(130, EventKind::Wakeup { thread: 1 }),
        ],
    );
    threads.settle(140);
    assert_eq!(sum_ns(&threads, State::Queue), 10);
    assert_eq!(sum_ns(&threads, State::Run), 10);
}
