//! What is said of a recording that deserves less trust, and of what watching cost. A sound
//! recording is the near miss: nothing is said of it.

use super::builder::{Built, adds_up, command, delay, row};
use model::recording::{Ending, Span};

fn doubts(built: &Built) -> String {
    let explained = built.explained();
    adds_up(&explained);
    explained.doubts.join("; ")
}

/// What changes no verdict.
fn usual(built: &Built) -> String {
    assert_eq!(doubts(built), "");
    built.explained().usual_doubts.join("; ")
}

#[test]
fn a_sound_recording_raises_none() {
    let built = command(1000).events([300, 50, 250, 0, 400], [300, 50, 250, 400]).row(row(
        1000,
        301,
        52,
        Some(delay(9, 251, Some(40))),
    ));
    assert_eq!(usual(&built), "");
}

#[test]
fn two_sources_that_differ_are_reported_with_both_numbers() {
    let built = command(10_000)
        .events([3000, 500, 2500, 0, 4000], [3000, 500, 2500, 4000])
        .row(row(10_000, 3000, 800, Some(delay(9, 2500, Some(40)))));
    assert_eq!(
        usual(&built),
        "run and queue: 3.5 s by switch events, 3.8 s by delay accounting; the bar has the former"
    );
    let stolen = built.grows_ms("stat.cpu.steal_ns", 400);
    assert_eq!(usual(&stolen), "");
}

#[test]
fn what_was_repaired_to_a_bound_is_not_compared() {
    let built = command(10_000)
        .events([3000, 500, 2500, 0, 4000], [3000, 500, 2500, 4000])
        .row(row(10_000, 3000, 500, Some(delay(9, 35_000_000, Some(3_500_000)))));
    assert_eq!(doubts(&built), "");
}

#[test]
fn a_pause_of_a_flight_recorder_is_reported() {
    let mut built = command(10_000);
    let gap = |start_ms: u64, end_ms: u64| Span {
        kind: "gap".to_owned(),
        text: "nothing was recorded".to_owned(),
        start_ns: start_ms * 1_000_000,
        end_ns: end_ms * 1_000_000,
    };
    built.0.spans = vec![gap(1000, 3500), gap(5000, 6000)];
    assert!(doubts(&built).contains("no recorder ran for 3.5"), "{}", doubts(&built));
    built.0.spans.clear();
    assert!(!doubts(&built).contains("no recorder"));
}

#[test]
fn losses_and_damage_are_reported() {
    let mut built =
        command(1000).span("clock_jump", "the clock jumped by 3 s", 500).ended(|outcome| {
            outcome.lost_exits = 12_000;
            outcome.missed_samples = 4;
            outcome.stopped_early = Some("the disk is full".to_owned());
        });
    built.0.damage.push("chunk 3 is damaged".to_owned());
    built.0.facts.redacted = true;
    let text = doubts(&built);
    assert!(!text.contains("replaced"), "no number changed: {text}");
    for words in [
        "chunk 3 is damaged",
        "stopped before the end: the disk is full",
        "ends of 12,000 threads",
        "4 of 15 samples were missed",
        "clock jumped by 3 s",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn missing_ends_of_requests_are_doubted() {
    let done = |reads, writes| {
        command(1000)
            .grows("trace.block.issued", 10_000)
            .grows("trace.block.reads", reads)
            .grows("trace.block.writes", writes)
    };
    assert_eq!(
        usual(&done(60, 12)),
        "10,000 requests were issued and 72 completions were seen: the kernel lost the others, so \
         the figures of a disk are its own counters'"
    );
    assert_eq!(usual(&done(9000, 950)), "", "the rest are under way");
}

#[test]
fn missing_wake_ups_are_doubted() {
    let unreported = |unreported| {
        command(1000)
            .grows("trace.sched.waits", 13_000)
            .grows("trace.sched.untold_wakeups", unreported)
    };
    assert_eq!(
        usual(&unreported(5000)),
        "the wake-ups after 5,000 of 13,000 waits were lost: what these waited for a processor \
         counts as wait"
    );
    assert_eq!(usual(&unreported(1000)), "");
}

/// Programs inside the kernel see what the ring of samples misses: the same numbers then mean
/// requests that are under way.
#[test]
fn events_summed_inside_the_kernel_raise_no_doubt_of_loss() {
    let lossy = command(1000)
        .grows("trace.block.issued", 10_000)
        .grows("trace.block.reads", 60)
        .grows("trace.sched.waits", 13_000)
        .grows("trace.sched.untold_wakeups", 5000);
    assert_ne!(usual(&lossy), "");
    let inside = lossy.open("events.in_kernel").grows("trace.lost", 0);
    assert_eq!(usual(&inside), "");
    let overflowed = inside.ended(|outcome| outcome.lost_events = 12);
    assert!(doubts(&overflowed).contains("12 kernel events were lost"));
}

#[test]
fn a_cut_recording_says_so_and_is_explained_as_far_as_it_goes() {
    let mut built = command(1000).stands("tree.threads", 1);
    built.0.outcome = None;
    let explained = built.explained();
    adds_up(&explained);
    assert_eq!(explained.ending, "cut");
    assert_eq!(explained.wall_ns, 1_000_000_000);
    assert!(explained.doubts[0].contains("was cut"));
}

#[test]
fn closed_sights_are_unseen_with_their_remedy() {
    let built = command(1000)
        .closed("exits", "only root may listen to exits")
        .closed("realtime", "only root may be first in line");
    let unseen = built.explained().unseen;
    let exits = unseen.iter().find(|unseen| unseen.what == "exits").unwrap();
    assert_eq!(exits.remedy.as_deref(), Some("sudo"));
    assert!(unseen.iter().all(|unseen| unseen.what != "realtime"));
}

/// Opening and closing count from one second on; below they would dwarf what was watched.
#[test]
fn watching_has_its_price() {
    let cost = |wall_ms| {
        let built = command(wall_ms).ended(|outcome| {
            outcome.own_cpu_ns = 5_000_000;
            outcome.own_setup_ns = 4_000_000;
        });
        built.explained().watching.core_share.unwrap()
    };
    assert!((cost(1000) - 0.005).abs() < 1e-12);
    assert!((cost(500) - 0.002).abs() < 1e-12);
}

#[test]
fn an_end_for_want_of_memory_names_the_limit() {
    let built = command(1000).ended(|outcome| {
        outcome.ending = Ending::Killed {
            signal: 9,
            out_of_memory: Some("limit 64 MiB of group /x".to_owned()),
        };
    });
    assert_eq!(
        built.explained().ending,
        "killed by SIGKILL: out of memory, limit 64 MiB of group /x"
    );
}
