//! Processor time by samples: parts with an error, calls by name, and nothing from too few; and
//! what of the wall time the findings then account for.

use super::builder::{Built, adds_up, command, machine, part};
use model::Grade;
use model::explanation::{EventSource, Explanation};

fn value(explained: &Explanation, part_name: &str, evidence: &str) -> f64 {
    let part = part(explained, part_name).unwrap();
    part.evidence.iter().find(|e| e.name == evidence).unwrap().value / 1e6
}

/// 10 s of which 8 s were run: 40 % user code, the rest in calls, faults and a softirq.
fn sampled(scale: u64) -> Built {
    command(10_000)
        .events([8000, 0, 0, 0, 2000], [8000, 0, 0, 2000])
        .grows_ms("trace.sleep.timer_ns", 2000)
        .grows("trace.cpu.samples", 100 * scale)
        .grows("trace.cpu.in.user", 40 * scale)
        .grows("trace.cpu.in.call", 30 * scale)
        .grows("trace.cpu.in.fault_first_touch", 25 * scale)
        .grows("trace.cpu.in.softirq", 5 * scale)
        .grows("trace.cpu.kernel.clearing", 22 * scale)
        .grows("trace.cpu.kernel.file_system", 38 * scale)
        .grows("trace.cpu.call.openat", 20 * scale)
        .grows("trace.cpu.call.read", 10 * scale)
}

fn ms(explained: &Explanation, name: &str) -> Option<u64> {
    part(explained, name).map(|part| part.ns / 1_000_000)
}

#[test]
fn the_run_is_divided_by_the_samples_with_their_error() {
    let explained = sampled(4).explained();
    adds_up(&explained);
    let origins = ["user", "system_calls", "first_touch", "soft_interrupts"];
    assert_eq!(origins.map(|name| ms(&explained, name).unwrap()), [3200, 2400, 2000, 400]);
    assert_eq!(ms(&explained, "kernel"), Some(4800));
    assert_eq!(ms(&explained, "kernel_clearing"), Some(1760));
    assert_eq!(ms(&explained, "call_openat"), Some(1600));
    assert_eq!(ms(&explained, "reclaim_run"), None);
    // A quarter of 400 samples: 21.0 to 29.5 % by Wilson's interval.
    assert!((value(&explained, "first_touch", "at least (95 %)") - 1680.0).abs() < 10.0);
    assert!((value(&explained, "first_touch", "at most (95 %)") - 2357.0).abs() < 10.0);
    assert_eq!(part(&explained, "first_touch").unwrap().grade, Grade::Measured);
}

#[test]
fn more_samples_have_a_smaller_error() {
    let width = |scale: u64| {
        let explained = sampled(scale).explained();
        let end = |name| value(&explained, "user", name);
        end("at most (95 %)") - end("at least (95 %)")
    };
    assert!(width(1) > 1.8 * width(4), "{} {}", width(1), width(4));
}

#[test]
fn samples_replace_the_ticks_and_too_few_do_not() {
    let ticks = |built: Built| {
        built.grows_ms("tree.user_ns", 6000).grows_ms("tree.system_ns", 2000).explained()
    };
    assert_eq!(ms(&ticks(sampled(1)), "user"), Some(3200));
    let few = command(10_000)
        .events([8000, 0, 0, 0, 2000], [8000, 0, 0, 2000])
        .grows("trace.cpu.samples", 19)
        .grows("trace.cpu.in.call", 19);
    let explained = ticks(few);
    assert_eq!(ms(&explained, "user"), Some(6000));
    assert_eq!(ms(&explained, "system_calls"), None);
    let unseen = explained.unseen.iter().find(|unseen| unseen.what == "events.cpu").unwrap();
    assert!(unseen.why.contains("19 samples of the processors are too few"), "{}", unseen.why);
}

#[test]
fn a_machine_is_divided_in_the_same_way() {
    let built = machine(10_000)
        .grows_ms("stat.cpu.user_ns", 6000)
        .grows_ms("stat.cpu.system_ns", 2000)
        .grows_ms("stat.cpu.idle_ns", 12_000)
        .grows("trace.cpu.samples", 400)
        .grows("trace.cpu.in.user", 100)
        .grows("trace.cpu.in.kernel_thread", 300);
    let explained = built.explained();
    adds_up(&explained);
    assert_eq!(ms(&explained, "user"), Some(2000));
    assert_eq!(ms(&explained, "kernel_thread"), Some(6000));
}

/// 1 s of run in the user's code, and of the other 9 s a timer took 6 s, metadata 2 s and a class
/// without a rule the rest.
#[test]
fn covered_is_the_share_that_findings_account_for() {
    let built = command(10_000)
        .events([1000, 0, 3000, 0, 6000], [1000, 0, 3000, 6000])
        .grows_ms("tree.user_ns", 1000)
        .grows_ms("tree.system_ns", 0)
        .grows_ms("trace.sleep.timer_ns", 6000)
        .grows_ms("trace.block_io.metadata_ns", 2000)
        .grows_ms("trace.block_io.read_ns", 200);
    let explained = built.explained();
    let ids: Vec<&str> = explained.findings.iter().map(|f| f.finding.id.as_str()).collect();
    assert_eq!(ids, ["timer_sleep", "metadata_reads", "other_block_io"]);
    // Of the block I/O without a class, only what a part names is accounted for.
    let covered = explained.covered.unwrap();
    assert!((covered - 8.2 / 9.0).abs() < 1e-6, "{covered}");
}

#[test]
fn user_code_alone_is_not_judged() {
    let built = command(10_000)
        .events([9990, 10, 0, 0, 0], [9990, 10, 0, 0])
        .grows_ms("tree.user_ns", 9990)
        .grows_ms("tree.system_ns", 0);
    assert_eq!(built.explained().covered, None);
}

#[test]
fn all_findings_of_the_samples_account_for_the_kernel() {
    let explained = sampled(4).explained();
    let ids: Vec<&str> = explained.findings.iter().map(|f| f.finding.id.as_str()).collect();
    assert!(ids.contains(&"file_storm") && ids.contains(&"first_touch"), "{ids:?}");
    let covered = explained.covered.unwrap();
    assert!((0.9..=1.0).contains(&covered), "{covered} by {ids:?}");
}

/// Locks by class and `openat` by origin overlap in the kernel's 60 %; at the least they are what
/// the locks are, and the finding of the rest names the other classes.
#[test]
fn two_divisions_of_the_same_time_count_once() {
    let built = |locks: u64, rest: &str| {
        command(10_000)
            .events([10_000, 0, 0, 0, 0], [10_000, 0, 0, 0])
            .grows("trace.cpu.samples", 1000)
            .grows("trace.cpu.in.user", 400)
            .grows("trace.cpu.in.call", 600)
            .grows("trace.cpu.call.openat", 200)
            .grows("trace.cpu.call.futex", 400)
            .grows("trace.cpu.kernel.locks", locks)
            .grows(&format!("trace.cpu.kernel.{rest}"), 600 - locks)
            .explained()
    };
    let claim = |explained: &Explanation, id: &str| {
        let mut findings = explained.findings.iter();
        findings.find(|f| f.finding.id == id).map(|f| f.finding.claim.clone())
    };
    let explained = built(500, "block");
    let rest = claim(&explained, "kernel_time").unwrap();
    assert_eq!(rest, "Ran in the kernel for 1 s: kernel: block layer 1 s");
    assert_eq!(explained.covered, Some(1.0));
    let explained = built(150, "block");
    let rest = claim(&explained, "kernel_time").unwrap();
    assert_eq!(rest, "Ran in the kernel for 4 s: futex call 4 s");
}

#[test]
fn waits_whose_class_is_a_sample_say_so() {
    let built = command(10_000)
        .events([1000, 0, 6000, 0, 3000], [1000, 0, 6000, 3000])
        .grows_ms("trace.block_io.read_ns", 6000);
    let read = |built: &Built| part(&built.explained(), "block_read").unwrap().clone();
    assert_eq!(read(&built).evidence.len(), 1);
    let little = read(&built.clone().grows_ms("trace.sched.sampled_ns", 900));
    assert_eq!((little.grade, little.evidence[1].value), (Grade::Measured, 0.1));
    let much = read(&built.grows_ms("trace.sched.sampled_ns", 8100));
    assert_eq!((much.grade, much.evidence[1].value), (Grade::Inferred, 0.9));
}

#[test]
fn an_explanation_says_how_events_came() {
    let silent = command(1000).explained();
    assert_eq!(silent.watching.events, None);
    let built = command(1000).events([500, 0, 0, 0, 500], [500, 0, 0, 500]);
    assert_eq!(built.explained().watching.events, Some(EventSource::Ring));
    let inside = built.open("events.in_kernel");
    assert_eq!(inside.explained().watching.events, Some(EventSource::InKernel));
}

/// Reads by faults on a mapped file: 6 s of waiting, and of 4 s on a processor 2.5 s for asking.
fn mapped_reads() -> Explanation {
    command(10_000)
        .events([4000, 0, 6000, 0, 0], [4000, 0, 6000, 0])
        .grows_ms("trace.block_io.read_ns", 6000)
        .grows("tree.read_bytes", 1 << 30)
        .grows("trace.cpu.samples", 400)
        .grows("trace.cpu.in.user", 100)
        .grows("trace.cpu.in.fault_file", 300)
        .grows("trace.cpu.kernel.block", 300)
        .grows("trace.cpu.within.fault_file.block", 150)
        .grows("trace.cpu.within.fault_file.cache_fill", 100)
        .explained()
}

#[test]
fn waits_for_reads_account_for_the_processor_time_of_asking() {
    let explained = mapped_reads();
    let reads = explained.findings.iter().find(|f| f.finding.id == "reads_from_device").unwrap();
    assert_eq!((reads.ns, reads.on_processor_ns), (Some(8_500_000_000), Some(2_500_000_000)));
    let places: Vec<(&str, &str, u64)> = reads
        .accounts_for
        .iter()
        .map(|lies| (lies.slice.as_str(), lies.part.as_str(), lies.ns / 1_000_000))
        .collect();
    assert_eq!(places, [("block_io", "block_read", 6000), ("run", "file_fault", 2500)]);
    let claim = &reads.finding.claim;
    assert!(claim.contains(", and 2.5 s of processor time to ask for them"), "{claim}");
    let of_asking = reads.finding.evidence.iter().find(|e| e.name == "processor time for it");
    let series = &of_asking.unwrap().series;
    assert!(series.contains(&"trace.cpu.within.fault_file.block".to_owned()), "{series:?}");
    // Of 9 s outside of user code; the other faults were no asking for reads.
    let covered = explained.covered.unwrap();
    assert!((covered - 8.5 / 9.0).abs() < 1e-6, "{covered}");
}
