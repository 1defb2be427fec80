//! Eight workloads that were measured with delay accounting on Linux 6.18, one thread
//! each: the bar closes as far as it did there, and what the kernel charged beside it
//! stays beside it.

use super::builder::{Built, adds_up, command, delay, part, row, slice_ms};
use model::recording::Delay;

/// Elapsed, run, queue, block I/O in milliseconds; the share that these three explained.
type Measured = (&'static str, u64, u64, u64, Delay, f64);

fn measured() -> [Measured; 8] {
    [
        ("cold read", 1407, 977, 412, delay(60, 15, Some(3)), 0.998),
        ("cold mmap", 155, 62, 11, delay(2971, 80, Some(2)), 0.987),
        ("first touch", 1318, 763, 548, delay(0, 0, Some(0)), 0.995),
        ("swap", 6902, 2973, 3085, delay(900, 829, Some(9)), 0.998),
        ("file twice, small group", 919, 228, 392, delay(300, 707_184, Some(706_898)), 0.986),
        ("mmap, group", 6142, 1424, 2065, delay(47_542, 2619, Some(8)), 0.994),
        ("buffered write", 733, 173, 332, delay(1, 0, Some(0)), 0.689),
        ("throttled write", 1013, 62, 253, delay(54, 682, Some(40)), 0.984),
    ]
}

fn recorded((_, wall, run, queue, block_io, _): Measured) -> Built {
    command(wall).open("exits").open("delay_accounting").row(row(wall, run, queue, Some(block_io)))
}

#[test]
fn each_closes_as_it_did() {
    for workload in measured() {
        let (name, wall, run, queue, _, closes) = workload;
        let explained = recorded(workload).explained();
        adds_up(&explained);
        assert_eq!(explained.thread_ns / 1_000_000, wall, "{name}");
        assert_eq!(slice_ms(&explained.bars.thread, "run"), Some(run), "{name}");
        assert_eq!(slice_ms(&explained.bars.thread, "queue"), Some(queue), "{name}");
        assert_eq!(slice_ms(&explained.bars.thread, "sleep"), None, "{name}");
        let rest = slice_ms(&explained.bars.thread, "unexplained").unwrap();
        let explained_share = 1.0 - rest as f64 / wall as f64;
        assert!((explained_share - closes).abs() < 0.002, "{name}: {explained_share}");
    }
}

#[test]
fn a_delay_longer_than_the_life_is_repaired_and_reported() {
    let repaired: Vec<usize> = measured()
        .into_iter()
        .map(|workload| recorded(workload).explained().repairs.len())
        .collect();
    assert_eq!(repaired, [0, 0, 0, 0, 1, 0, 0, 0]);
    let explained = recorded(measured()[4]).explained();
    let repair = &explained.repairs[0];
    assert_eq!(repair.before_ns / 1_000_000, 707_184);
    assert_eq!(repair.after_ns / 1_000_000, 286);
    assert_eq!(slice_ms(&explained.bars.thread, "block_io"), Some(286));
}

/// The naive sum of what was charged to the swapping one is 160 % of its life.
#[test]
fn what_the_kernel_charged_beside_is_not_stacked() {
    let mut task = row(6902, 2973, 3085, Some(delay(900, 829, Some(9))));
    task.reclaim = Some(delay(5000, 3736, Some(20)));
    task.swap_in = Some(delay(131_130, 74, Some(1)));
    task.copy_on_write = Some(delay(65_536, 340, Some(1)));
    let built = command(6902).open("exits").row(task);
    let explained = built.explained();
    adds_up(&explained);
    assert_eq!(explained.bars.thread.len(), 4);
    assert_eq!(part(&explained, "direct_reclaim").unwrap().ns / 1_000_000, 3736);
    let swap_in = part(&explained, "swap_in").unwrap();
    assert_eq!((swap_in.ns / 1_000_000, swap_in.count), (74, Some(131_130)));
    assert_eq!(part(&explained, "copy_on_write").unwrap().ns / 1_000_000, 340);
}

/// 682 ms of block I/O with 8 KB read and 300 MB written: that was no wait for reads.
#[test]
fn a_held_back_writer_did_not_wait_for_reads() {
    let mut task = row(1013, 62, 253, Some(delay(54, 682, Some(40))));
    task.read_bytes = 8192;
    task.write_bytes = 300_000_000;
    let explained = command(1013).open("exits").row(task).explained();
    assert_eq!(slice_ms(&explained.bars.thread, "block_io"), Some(682));
    assert!(part(&explained, "block_read").is_none());
}

/// How many faults there were is counted; what they took is not guessed from it.
#[test]
fn first_touches_are_counted_and_have_no_time_without_samples() {
    let mut task = row(1318, 763, 548, Some(delay(0, 0, Some(0))));
    task.minor_faults = 512_078;
    task.copy_on_write = Some(delay(256_011, 375, Some(1)));
    task.user_ns = 700_000_000;
    task.system_ns = 63_000_000;
    let built = command(1318).open("exits").row(task);
    let explained = built.explained();
    let touched = part(&explained, "first_touch").unwrap();
    assert_eq!((touched.ns, touched.count), (0, Some(512_078)));
    let sampled = built
        .grows("trace.cpu.samples", 100)
        .grows("trace.cpu.in.user", 80)
        .grows("trace.cpu.in.fault_first_touch", 20);
    let explained = sampled.explained();
    let touched = part(&explained, "first_touch").unwrap();
    assert_eq!((touched.ns, touched.count), (152_600_000, Some(512_078)));
    assert_eq!(touched.grade, model::Grade::Measured);
}
