//! Order of sources: events before rows, rows before samples; a missing source is never
//! taken for a number.

use super::builder::{adds_up, command, delay, row, slice_ms};
use model::Grade;
use model::explanation::Explanation;
use model::recording::{TaskSource, Usage};

fn grade(explained: &Explanation, name: &str) -> Grade {
    let bar = &explained.bars.thread;
    bar.iter().find(|slice| slice.name == name).unwrap().grade
}

#[test]
fn events_name_the_sleep_and_close_the_bar() {
    let built = command(1000).events([300, 50, 250, 0, 400], [300, 50, 250, 400]).row(row(
        1000,
        290,
        60,
        Some(delay(9, 240, Some(40))),
    ));
    let explained = built.explained();
    adds_up(&explained);
    assert_eq!(slice_ms(&explained.bars.thread, "sleep"), Some(400));
    assert_eq!(slice_ms(&explained.bars.thread, "run"), Some(300));
    assert_eq!(slice_ms(&explained.bars.thread, "unexplained"), Some(0));
    assert_eq!(slice_ms(&explained.bars.wall, "block_io"), Some(250));
    assert_eq!(grade(&explained, "sleep"), Grade::Measured);
}

#[test]
fn a_life_that_events_missed_is_unexplained() {
    let built = command(1000)
        .events([300, 50, 250, 0, 100], [300, 50, 250, 100])
        .row(row(1000, 300, 50, None));
    let explained = built.explained();
    adds_up(&explained);
    assert_eq!(slice_ms(&explained.bars.thread, "unexplained"), Some(300));
    assert_eq!(slice_ms(&explained.bars.wall, "unexplained"), Some(300));
    assert_eq!(explained.unseen[0].what, "unexplained");
}

#[test]
fn lost_events_make_no_life_longer_than_the_rows_know() {
    // A sleep whose end was lost was counted on, beyond the end of its thread.
    let built = command(1000).events([300, 50, 250, 0, 900], [300, 50, 250, 400]).row(row(
        1000,
        300,
        50,
        Some(delay(9, 240, Some(40))),
    ));
    let whole = built.explained();
    assert_eq!(whole.thread_ns, 1_500_000_000, "without losses events are right");
    let lost = built.ended(|outcome| outcome.lost_events = 3).explained();
    adds_up(&lost);
    assert_eq!(lost.thread_ns, 1_000_000_000);
    assert_eq!(slice_ms(&lost.bars.thread, "sleep"), Some(400));
    assert_eq!(lost.repairs.len(), 1);
}

#[test]
fn closed_events_are_not_used_though_they_left_numbers() {
    let built = command(1000)
        .events([300, 50, 250, 0, 400], [300, 50, 250, 400])
        .closed("events.sched", "they came too fast")
        .row(row(1000, 200, 60, Some(delay(9, 240, Some(40)))));
    let explained = built.explained();
    assert_eq!(slice_ms(&explained.bars.thread, "run"), Some(200));
    assert_eq!(slice_ms(&explained.bars.thread, "sleep"), None);
    assert_eq!(slice_ms(&explained.bars.thread, "unexplained"), Some(500));
}

#[test]
fn lost_events_make_the_bar_inferred() {
    let built = command(1000)
        .events([300, 50, 250, 0, 400], [300, 50, 250, 400])
        .ended(|outcome| outcome.lost_events = 3);
    let explained = built.explained();
    assert_eq!(grade(&explained, "run"), Grade::Inferred);
    assert!(explained.doubts[0].contains("3 kernel events were lost"));
}

/// A sum that first appears in the second sample has grown from 0 to there.
#[test]
fn what_a_sum_of_events_starts_with_is_growth() {
    let built = command(200)
        .open("events.sched")
        .values("trace.sched.run_ns", &[None, Some(60_000_000), Some(90_000_000)])
        .values("trace.wall.run_ns", &[None, Some(60_000_000), Some(90_000_000)]);
    let explained = built.explained();
    assert_eq!(slice_ms(&explained.bars.thread, "run"), Some(90));
    assert_eq!(slice_ms(&explained.bars.wall, "run"), Some(90));
}

#[test]
fn without_delay_accounting_block_io_is_absent_and_not_0() {
    let explained = command(1000).row(row(1000, 300, 100, None)).explained();
    adds_up(&explained);
    assert_eq!(slice_ms(&explained.bars.thread, "block_io"), None);
    assert_eq!(slice_ms(&explained.bars.thread, "unexplained"), Some(600));
}

#[test]
fn an_ordinary_user_gets_run_and_queue_and_a_rest_without_a_name() {
    let explained = command(1000)
        .closed("events.sched", "only root may see them")
        .closed("exits", "only root may listen to exits")
        .stands("tree.threads", 1)
        .grows_ms("tree.run_ns", 200)
        .grows_ms("tree.queue_ns", 50)
        .grows_ms("tree.block_io_ns", 0)
        .explained();
    adds_up(&explained);
    assert_eq!(slice_ms(&explained.bars.thread, "run"), Some(200));
    assert_eq!(slice_ms(&explained.bars.thread, "queue"), Some(50));
    assert_eq!(slice_ms(&explained.bars.thread, "block_io"), None);
    assert_eq!(slice_ms(&explained.bars.thread, "unexplained"), Some(750));
    assert_eq!(slice_ms(&explained.bars.wall, "run"), Some(200));
    assert_eq!(slice_ms(&explained.bars.wall, "unexplained"), Some(750));
    let rest = &explained.unseen[0];
    assert_eq!(rest.why, "rest 75 %: cause cannot be seen: only root may see them");
    assert_eq!(rest.remedy.as_deref(), Some("sudo"));
}

/// A user without the right to events reads so, and not that events were not requested.
#[test]
fn events_not_requested_are_said_to_need_root() {
    for (root, reason, sudo) in [
        (false, "switch events need root", "sudo "),
        (true, "switch events were not asked for", ""),
    ] {
        let mut built = command(1000).stands("tree.threads", 1).grows_ms("tree.run_ns", 200);
        built.0.facts.root = root;
        let rest = &built.explained().unseen[0];
        assert!(rest.why.ends_with(reason), "{}", rest.why);
        let command = format!("{sudo}terrace run --trace sched -- CMD");
        assert_eq!(rest.remedy.as_deref(), Some(command.as_str()));
    }
}

/// Rows that were read from /proc are only of those that lived to the end.
#[test]
fn rows_of_survivors_do_not_stand_for_all() {
    let mut survivor = row(1000, 10, 0, None);
    survivor.source = TaskSource::Proc;
    let explained = command(1000)
        .stands("tree.threads", 2)
        .grows_ms("tree.run_ns", 700)
        .row(survivor)
        .explained();
    assert_eq!(slice_ms(&explained.bars.thread, "run"), Some(700));
    assert_eq!(explained.thread_ns, 2_000_000_000);
}

#[test]
fn a_command_without_samples_has_the_usage_of_wait4() {
    let explained = command(10)
        .values("tree.run_ns", &[Some(0), Some(0)])
        .ended(|outcome| {
            outcome.usage =
                Some(Usage { user_ns: 3_000_000, system_ns: 4_000_000, ..Usage::default() });
        })
        .explained();
    adds_up(&explained);
    assert_eq!(slice_ms(&explained.bars.thread, "run"), Some(7));
    assert_eq!(slice_ms(&explained.bars.wall, "run"), Some(7));
    assert_eq!(grade(&explained, "run"), Grade::Measured);
}

#[test]
fn processor_time_of_lost_exits_is_run_all_the_same() {
    let explained = command(1000)
        .row(row(1000, 100, 0, None))
        .ended(|outcome| {
            outcome.lost_exits = 5;
            outcome.usage = Some(Usage { user_ns: 400_000_000, ..Usage::default() });
        })
        .explained();
    adds_up(&explained);
    assert_eq!(slice_ms(&explained.bars.thread, "run"), Some(400));
    assert_eq!(explained.thread_ns, 1_300_000_000);
    assert_eq!(grade(&explained, "run"), Grade::Inferred);
}

/// Two threads that ran 150 ms in 100 ms filled them, and no more than them.
#[test]
fn samples_give_an_interval_to_the_first_state_only() {
    let ms = |values: &[i64]| -> Vec<Option<i64>> {
        values.iter().map(|v| Some(v * 1_000_000)).collect()
    };
    let explained = command(300)
        .stands("tree.threads", 2)
        .open("delay_accounting")
        .values("tree.run_ns", &ms(&[0, 150, 190, 190]))
        .values("tree.queue_ns", &ms(&[0, 30, 60, 60]))
        .values("tree.block_io_ns", &ms(&[0, 0, 80, 100]))
        .explained();
    adds_up(&explained);
    let wall = &explained.bars.wall;
    assert_eq!(slice_ms(wall, "run"), Some(140));
    assert_eq!(slice_ms(wall, "queue"), Some(30));
    assert_eq!(slice_ms(wall, "block_io"), Some(50));
    assert_eq!(slice_ms(wall, "unexplained"), Some(80));
}

/// 25 processes are read once a second: what they ran is spread over it.
#[test]
fn a_slow_source_grows_over_all_of_its_second() {
    let mut run = vec![Some(0); 10];
    run.push(Some(600_000_000));
    let explained = command(1000)
        .stands("tree.processes", 25)
        .stands("tree.threads", 25)
        .values("tree.run_ns", &run)
        .explained();
    assert_eq!(slice_ms(&explained.bars.wall, "run"), Some(600));
}

/// Field 42 of stat has the same wrong start stamp as the rows, and no longest wait: a step
/// that is longer than the time since the last one is left out, the others count.
#[test]
fn sampled_block_io_longer_than_the_lives_is_left_out_and_reported() {
    let ms = |values: &[i64]| -> Vec<Option<i64>> {
        values.iter().map(|v| Some(v * 1_000_000)).collect()
    };
    let explained = command(400)
        .stands("tree.threads", 1)
        .grows_ms("tree.run_ns", 80)
        .values("tree.block_io_ns", &ms(&[0, 50, 50, 3_506_790, 3_506_820]))
        .explained();
    adds_up(&explained);
    assert_eq!(slice_ms(&explained.bars.thread, "block_io"), Some(80));
    assert_eq!(slice_ms(&explained.bars.thread, "unexplained"), Some(240));
    assert_eq!(slice_ms(&explained.bars.wall, "block_io"), Some(80));
    assert_eq!(explained.repairs.len(), 1);
    assert_eq!(explained.repairs[0].before_ns, 3_506_740_000_000);
}

/// Without a sample, a row or an event there is only the clock.
#[test]
fn a_recording_of_nothing_is_all_unexplained() {
    let explained = command(1000).explained();
    adds_up(&explained);
    assert_eq!(explained.thread_ns, 1_000_000_000);
    assert_eq!(slice_ms(&explained.bars.thread, "unexplained"), Some(1000));
    assert_eq!(explained.bars.thread.len(), 1);
}

/// Threads that came and went between two samples ran all the same, so they lived.
#[test]
fn lives_are_no_shorter_than_what_was_counted_in_them() {
    let explained = command(100)
        .stands("tree.threads", 1)
        .grows_ms("tree.run_ns", 180)
        .grows_ms("tree.queue_ns", 40)
        .explained();
    adds_up(&explained);
    assert_eq!(explained.thread_ns, 220_000_000);
    assert_eq!(slice_ms(&explained.bars.thread, "queue"), Some(40));
    assert!(explained.repairs.is_empty());
}

/// What `wait4` tells is of the whole command.
#[test]
fn the_usage_of_a_command_says_nothing_of_a_window() {
    let explained = command(1000)
        .stands("tree.threads", 1)
        .grows_ms("tree.run_ns", 100)
        .ended(|outcome| {
            outcome.usage = Some(Usage { user_ns: 900_000_000, ..Usage::default() });
        })
        .between(200, 400);
    assert_eq!(slice_ms(&explained.bars.thread, "run"), Some(20));
}

/// Events go on for a moment after the subject's end; that moment is no part of its time.
#[test]
fn the_moment_after_the_end_is_no_error() {
    let built = command(66).events([10, 40, 1, 0, 15], [10, 40, 1, 40]);
    let explained = built.explained();
    adds_up(&explained);
    assert_eq!(slice_ms(&explained.bars.wall, "sleep"), Some(15));
    assert!(explained.repairs.is_empty());
}

/// Seen on Linux 6.18: 1.48 s of block I/O in a life of 761 ms, no single wait too long.
#[test]
fn what_was_cut_is_no_longer_measured() {
    let built = command(761).row(row(761, 200, 71, Some(delay(300, 1480, Some(30)))));
    let explained = built.explained();
    adds_up(&explained);
    assert_eq!(slice_ms(&explained.bars.thread, "block_io"), Some(490));
    assert_eq!(grade(&explained, "block_io"), Grade::Inferred);
    assert_eq!(grade(&explained, "queue"), Grade::Measured);
    assert_eq!(explained.repairs.len(), 1);
}
