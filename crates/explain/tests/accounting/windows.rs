//! Parts of a recording: what samples and events tell of them, and what rows cannot. A
//! window is as wide as its samples are apart.

use super::builder::{Built, adds_up, command, delay, row, slice_ms};
use model::recording::Span;

fn built() -> Built {
    command(10_000)
        .events([4000, 0, 2000, 0, 4000], [4000, 0, 2000, 4000])
        .stands("tree.threads", 1)
        .grows_ms("tree.run_ns", 3000)
        .grows_ms("own.cpu_ns", 20)
        .row(row(10_000, 4000, 0, Some(delay(9, 2000, None))))
}

#[test]
fn a_window_has_its_share_and_adds_up() {
    let explained = built().between(2000, 4000);
    adds_up(&explained);
    assert_eq!(explained.wall_ns, 2_000_000_000);
    assert_eq!(slice_ms(&explained.bars.thread, "run"), Some(800));
    assert_eq!(slice_ms(&explained.bars.wall, "sleep"), Some(800));
    let cost = explained.watching.core_share.unwrap();
    assert!((cost - 0.002).abs() < 1e-9, "{cost}");
    assert_eq!(explained.watching.samples, 21);
}

#[test]
fn a_window_is_as_wide_as_its_samples() {
    let explained = built().between(2030, 2050);
    adds_up(&explained);
    assert_eq!(explained.from_ns, 2_000_000_000);
    assert_eq!(explained.to_ns, 2_100_000_000);
    assert_eq!(slice_ms(&explained.bars.thread, "run"), Some(40));
    assert!(explained.doubts.iter().any(|d| d.contains("two samples")));
}

#[test]
fn rows_say_nothing_of_a_window() {
    let explained = built().closed("events.sched", "stopped").between(2000, 4000);
    assert_eq!(slice_ms(&explained.bars.thread, "run"), Some(600));
    let usual = explained.usual_doubts.join("; ");
    assert!(usual.contains("whole recording only"), "{usual}");
}

#[test]
fn events_count_where_they_were_not_paused() {
    let mut paused = built();
    paused.0.spans.push(Span {
        kind: "events_paused".to_owned(),
        text: "events came too fast".to_owned(),
        start_ns: 6_000_000_000,
        end_ns: 7_000_000_000,
    });
    for (from, to, is_followed) in [(2000, 4000, true), (5000, 8000, false), (8000, 9000, true)] {
        let explained = paused.between(from, to);
        let has_sleep = slice_ms(&explained.bars.thread, "sleep").is_some();
        let is_doubted = explained.doubts.iter().any(|doubt| {
            doubt.contains("events came too fast, and were not followed for 1 s of these 3 s")
        });
        assert_eq!((has_sleep, is_doubted), (is_followed, !is_followed), "{from} to {to}");
    }
}

#[test]
fn events_count_until_they_were_stopped() {
    let stopped = built().closed("events.sched", "they came too fast").span(
        "events_stopped",
        "events came too fast",
        6000,
    );
    let before = stopped.between(2000, 4000);
    assert_eq!(slice_ms(&before.bars.thread, "sleep"), Some(800));
    assert!(before.doubts.iter().all(|d| !d.contains("too fast")));
    let after = stopped.between(5000, 8000);
    assert_eq!(slice_ms(&after.bars.thread, "sleep"), None);
    assert!(after.doubts.iter().any(|d| d.contains("too fast")));
}

#[test]
fn a_window_beyond_the_end_is_empty_and_sound() {
    let explained = built().between(90_000, 99_000);
    adds_up(&explained);
    let reversed = built().between(4000, 2000);
    adds_up(&reversed);
}
