//! Comings that a kernel does not tell in the idle task of a processor: what it charged as run
//! is taken from the waits, and only as far as that can be the reason.

use crate::builder::{Built, adds_up, command, delay, row, slice_ms};

/// A thread of a second that waited for block I/O 8,000 times and slept 2,000 times; the kernel
/// charged `charged_ms` of run, events saw 300 ms.
fn thread(charged_ms: u64, unreported: u64) -> Built {
    let io = Some(delay(8000, 500, None));
    command(1000)
        .events([300, 0, 600, 0, 100], [300, 0, 600, 100])
        .grows("trace.sched.waits", 10_000)
        .grows("trace.sched.block_io_waits", 8000)
        .grows("trace.sched.untold_wakeups", unreported)
        .row(row(1000, charged_ms, 0, io))
}

#[test]
fn what_the_kernel_charged_as_run_is_taken_from_the_waits_before_it() {
    let explained = thread(400, 9000).explained();
    adds_up(&explained);
    for bar in [&explained.bars.thread, &explained.bars.wall] {
        let ms = ["run", "block_io", "sleep"].map(|name| slice_ms(bar, name).unwrap());
        assert_eq!(ms, [400, 520, 80]);
    }
    let repair = &explained.repairs[0];
    assert!(repair.text.contains("untold"), "{}", repair.text);
    let ms = [repair.before_ns, repair.after_ns].map(|ns| ns / 1_000_000);
    assert_eq!(ms, [300, 400]);
}

#[test]
fn no_notice_is_late_by_more_than_its_delay_or_reported_twice() {
    let run = |built: Built| slice_ms(&built.explained().bars.thread, "run");
    assert_eq!(run(thread(400, 1000)), Some(320), "20 us each");
    assert_eq!(run(thread(400, 0)), Some(300));
    assert_eq!(run(thread(200, 9000)), Some(300), "rows may know of less");
}
