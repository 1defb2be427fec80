//! The registry's promises,
//! the panics of a misused method, and the chases that are refused.

use std::collections::HashSet;

use crate::{Chase, Operation, Traffic, find, methods};

#[test]
fn names_are_unique_and_found() {
    let names: HashSet<&str> = methods().iter().map(|method| method.name()).collect();
    assert_eq!(names.len(), methods().len());
    assert!(
        methods()
            .iter()
            .all(|method| find(method.name()).is_some_and(|found| std::ptr::eq(found, method)))
    );
    assert!(find("no-such-method").is_none());
}

#[test]
fn a_method_is_absent_with_a_reason_or_has_a_loop() {
    for method in methods() {
        match method.absent() {
            Some(reason) => assert!(reason.starts_with("needs "), "{}: {reason}", method.name()),
            None => assert!(method.kernel.is_some(), "{} has no loop", method.name()),
        }
        assert!(!method.describe().is_empty());
    }
}

#[test]
fn traffic_counts_the_fetch_of_the_target() {
    assert_eq!(find("memcpy").unwrap().traffic_factor(), 3.0);
    assert_eq!(find("avx2-nt").unwrap().traffic_factor(), 2.0);
    assert_eq!(find("clzero").unwrap().traffic_factor(), 1.0);
    assert_eq!(find("write-u64").unwrap().traffic_factor(), 2.0);
    for method in methods() {
        let reads = method.traffic() == Traffic::Read;
        assert_eq!(reads, method.operation() == Operation::Read, "{}", method.name());
    }
}

#[test]
#[should_panic(expected = "as long as its source")]
fn copying_to_another_length_panics() {
    find("memcpy").unwrap().copy(&mut [0; 3], &[0; 4]);
}

#[test]
#[should_panic(expected = "memset does not copy")]
fn copying_by_a_write_panics() {
    find("memset").unwrap().copy(&mut [0; 4], &[0; 4]);
}

#[test]
#[cfg(target_arch = "x86_64")]
#[should_panic(expected = "needs aarch64")]
fn an_absent_method_panics() {
    find("neon").unwrap().copy(&mut [0; 4], &[0; 4]);
}

#[test]
fn a_chase_refuses_what_cannot_be_linked() {
    let mut buffer = vec![0u8; 4096];
    assert!(Chase::random(&mut [], 64, 1).is_none());
    assert!(Chase::random(&mut buffer[..100], 64, 1).is_none());
    assert!(Chase::random(&mut buffer, 48, 1).is_none());
    assert!(Chase::random(&mut buffer, 4, 1).is_none());
    assert!(Chase::in_page(&mut buffer, 64, 32, 1).is_none());
    assert!(Chase::in_page(&mut buffer, 64, 3000, 1).is_none());
    assert!(Chase::in_page(&mut buffer, 64, 4096, 1).is_some());
}

#[test]
fn a_seed_determines_the_chase() {
    let order = |seed| {
        let mut buffer = vec![0u8; 64 * 101];
        let skip = buffer.as_ptr().align_offset(64);
        let mut chase = Chase::random(&mut buffer[skip..][..6400], 64, seed).unwrap();
        (0..100).map(|_| (chase.walk(1), chase.position()).1).collect::<Vec<_>>()
    };
    assert_eq!(order(7), order(7));
    assert_ne!(order(7), order(8));
}
