//! The copy probe on this machine: every method verified at odd sizes, blocks,
//! offsets and strides, bad plans refused, and what does not fit left out.

use machine::Root;
use measure::memory::copy::{self, CopyPlan};
use measure::trial::Schedule;
use measure::{Budget, ErrorKind};
use memops::Operation;
use std::time::Duration;

fn quick() -> CopyPlan {
    CopyPlan {
        sizes: vec![64 << 10],
        schedule: Schedule { trial_ns: 50_000, rounds: 3, ..Schedule::default() },
        budget: Duration::from_secs(30),
        ..CopyPlan::default()
    }
}

fn stop() -> Budget {
    Budget::of(Duration::from_secs(120))
}

#[test]
fn every_method_of_this_machine_is_verified() {
    let plan = CopyPlan {
        operations: vec![Operation::Copy, Operation::Read, Operation::Write],
        sizes: vec![(64 << 10) + 13, 3 << 20],
        offset: (1, 7),
        ..quick()
    };
    let report = copy::measure(&plan, &Root::system(), &stop()).unwrap();
    assert!(report.rows.len() >= 40, "{}", report.rows.len());
    for row in &report.rows {
        assert!(row.verified, "{} at {}", row.method, row.size_bytes);
        assert!(row.bytes_per_s.is_some(), "{}", row.method);
        assert_eq!(row.bus_bytes_per_s, None, "inside the caches there is no bus");
    }
    // A winner for each operation and size, and libc to compare with for copies.
    assert_eq!(report.winners.len(), 6);
    let copies: Vec<_> =
        report.winners.iter().filter(|winner| winner.operation == "copy").collect();
    assert!(copies.len() == 2 && copies.iter().all(|w| w.over_libc >= Some(1.0)));
    for method in memops::methods().iter().filter(|m| m.absent().is_some()) {
        let listed = report.left_out.iter().any(|left| left.name == method.name());
        assert!(listed, "{}", method.name());
    }
}

#[test]
fn blocks_and_columns_copy_everything() {
    let blocks = CopyPlan { block_bytes: Some(1000), ..quick() };
    let columns = CopyPlan { stride: 12, ..quick() };
    for plan in [blocks, columns] {
        let report = copy::measure(&plan, &Root::system(), &stop()).unwrap();
        assert!(report.rows.iter().all(|row| row.verified));
    }
}

#[test]
fn a_column_walk_has_only_element_loops() {
    let plan = CopyPlan { stride: 12, ..quick() };
    let report = copy::measure(&plan, &Root::system(), &stop()).unwrap();
    let names: Vec<&str> = report.rows.iter().map(|row| row.method.as_str()).collect();
    assert_eq!(names, ["char", "short", "int", "long", "int64", "double"]);
}

#[test]
fn two_threads_count_the_bytes_of_both() {
    if sys::affinity::allowed().map_or(0, |cpus| cpus.len()) < 2 {
        println!("skipped: needs 2 processors");
        return;
    }
    let one = CopyPlan {
        methods: vec!["memcpy".to_owned()],
        sizes: vec![16 << 10],
        schedule: Schedule { trial_ns: 1_000_000, rounds: 60, ..Schedule::default() },
        ..quick()
    };
    let two = CopyPlan { threads: 2, ..one.clone() };
    let best = |plan: &CopyPlan| {
        let report = copy::measure(plan, &Root::system(), &stop()).unwrap();
        report.rows[0].bytes_per_s.as_ref().unwrap().best
    };
    // Twice in theory. Other tests hold the processors meanwhile, so only what is far
    // off is an error: the bytes of one thread alone over the wait for both.
    let ratio = best(&two) / best(&one);
    assert!((0.3..4.0).contains(&ratio), "{ratio}");
}

#[test]
fn nonsense_is_refused_before_memory_is_touched() {
    let root = Root::system();
    let with = |change: fn(&mut CopyPlan)| {
        let mut plan = quick();
        change(&mut plan);
        copy::check(&plan, &root).map_err(|error| error.kind)
    };
    assert_eq!(with(|p| p.sizes = vec![0]), Err(ErrorKind::Usage));
    assert_eq!(with(|p| p.sizes.clear()), Err(ErrorKind::Usage));
    assert_eq!(with(|p| p.sizes = vec![u64::MAX]), Err(ErrorKind::Usage));
    assert_eq!(with(|p| p.threads = 0), Err(ErrorKind::Usage));
    assert_eq!(with(|p| p.block_bytes = Some(0)), Err(ErrorKind::Usage));
    assert_eq!(with(|p| p.offset = (2 << 20, 0)), Err(ErrorKind::Usage));
    let unknown = with(|p| p.methods = vec!["bcopy".to_owned()]);
    assert_eq!(unknown, Err(ErrorKind::Usage));
    let columns_by_memcpy = with(|p| {
        p.methods = vec!["memcpy".to_owned()];
        p.stride = 12;
    });
    assert_eq!(columns_by_memcpy, Err(ErrorKind::Usage));
    assert_eq!(with(|p| p.sizes = vec![60 << 30]), Err(ErrorKind::Impossible));
    assert_eq!(with(|_| ()), Ok(()));
}

#[test]
fn a_size_that_does_not_fit_is_left_out_and_named() {
    let plan =
        CopyPlan { methods: vec!["memcpy".to_owned()], sizes: vec![64 << 10, 60 << 30], ..quick() };
    let report = copy::measure(&plan, &Root::system(), &stop()).unwrap();
    assert!(report.rows.iter().all(|row| row.size_bytes == 64 << 10));
    let left = &report.left_out[0];
    assert_eq!(left.name, "60 GiB");
    assert!(left.reason.contains("may be taken here"), "{}", left.reason);
}

#[test]
fn no_time_is_an_error_and_no_number() {
    let plan = CopyPlan { budget: Duration::ZERO, ..quick() };
    let error = copy::measure(&plan, &Root::system(), &stop()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Impossible);
}
